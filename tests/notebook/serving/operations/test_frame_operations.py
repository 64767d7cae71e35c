"""The data grid's operations, asked as a view asks them: over a connection to a real session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter.notebook.render.dataframe_view import frame_grid, records_grid
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.outputs.table import matches, order_key
from reyn_jupyter.outputs.table.open_table import OpenedTable
from reyn_jupyter.sessions.session import Session
from tests.notebook.render.samples import HOSTILE
from tests.notebook.serving.frames_support import CORPUS, Line, RefusedError, stored


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield Session(root=tmp_path_factory.mktemp("frames"), store="memory")


@pytest.fixture
def line(session: Session) -> Iterator[Line]:
    made = Line(session)
    yield made
    made.connection.close()


@pytest.fixture
def orders() -> pd.DataFrame:
    rows = np.arange(3000)
    return pd.DataFrame(
        {
            "order": rows,
            "amount": (rows * 7919 % 1000) / 8,
            "region": np.array(["north", "south", None], dtype=object)[rows % 3],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rows % 50, unit="D"),
        }
    )


def execute(code: str, session: Session) -> pd.DataFrame:
    """What the code's `df` is in a cell, where `reyn.session()` is the session."""
    names: dict[str, Any] = {"session": session}
    exec(code.replace("reyn.session()", "session"), names)
    frame: pd.DataFrame = names["df"]
    return frame


# What is shown


@pytest.mark.parametrize("name", CORPUS)
def test_every_window_shows_the_words_of_the_static_view(name: str, session: Session, line: Line) -> None:
    frame = CORPUS[name]
    blob = stored(session, frame)
    handle = session.blob(blob)
    keys = list(handle.dtypes)
    records = handle.json
    opened = line.ask("frame.open", blob=blob)
    assert opened["rows"] == len(frame) and not opened["inferred"]
    static = records_grid(records[:20], (len(records), len(keys)), Look(), "blob.df", handle.info)
    before = line.ask("frame.rows", blob=blob, count=20)
    shown = len(static.columns)
    assert [row[:shown] for row in before["cells"]] == [[cell.text for cell in row] for row in static.rows]
    assert [each["name"] for each in before["columns"]][:shown] == [each.name for each in static.columns]

    # Sorting loads the frame; the same cells still read the same, wherever they come to stand.
    whole = line.ask("frame.rows", blob=blob, count=200)
    line.ask("frame.rows", blob=blob, sort=[{"column": 0}])
    again = line.ask("frame.rows", blob=blob, count=200)
    assert again["cells"] == whole["cells"] and again["muted"] == whole["muted"]


@pytest.mark.parametrize("name", [name for name in CORPUS if name != "ten thousand columns"])
def test_any_column_sorts_filters_and_counts_and_the_code_gives_the_same_rows(
    name: str, session: Session, line: Line
) -> None:
    blob = stored(session, CORPUS[name])
    for column in range(min(2, len(session.blob(blob).dtypes))):
        sort = [{"column": column, "descending": True}]
        window = line.ask("frame.rows", blob=blob, sort=sort)
        quiet = [window["columns"].index(each) for each in window["columns"] if each["position"] == column]
        missing = [quiet[0] in muted for muted in window["muted"]]
        assert missing == sorted(missing), "missing values come last"
        assert line.ask("frame.column", blob=blob, column=column)["facts"][0][0] == "values"
        for filters in (
            [],
            [{"column": column, "op": "present"}],
            [{"column": column, "op": "contains", "value": "1"}],
        ):
            code = line.ask("frame.code", blob=blob, sort=sort, filter=filters)["code"]
            expected = line.ask("frame.rows", blob=blob, sort=sort, filter=filters)
            got = execute(code, session)
            assert len(got) == expected["total"], code
            if expected["labels"] and len(got):
                assert [str(label) for label in got.index[:200]] == expected["labels"], code


def test_live_and_stored_frames_use_the_same_words(session: Session, line: Line) -> None:
    frame = CORPUS["floats"].assign(
        day=pd.to_datetime("2024-01-01"),
        at=pd.to_datetime("2024-01-01 08:30"),
        n=pd.array([1, None] * 240, dtype="Int64"),
    )
    window = line.ask("frame.rows", blob=stored(session, frame), count=20)
    live = frame_grid(frame, Look(), "df")
    assert [[label, *row] for label, row in zip(window["labels"], window["cells"], strict=True)] == [
        [cell if isinstance(cell, str) else cell.text for cell in row] for row in live.rows
    ]


def test_hostile_texts_stay_texts_in_cells_columns_and_errors(session: Session, line: Line) -> None:
    frame = pd.DataFrame([HOSTILE] * 40, columns=pd.Index(HOSTILE, dtype=object), dtype=object)
    blob = stored(session, frame)
    window = line.ask("frame.rows", blob=blob)
    expected = [str(key) for key in session.blob(blob).dtypes]
    assert len(window["columns"]) == len(expected) == len(HOSTILE)
    code = line.ask(
        "frame.code",
        blob=blob,
        sort=[{"column": 1}],
        filter=[{"column": 0, "op": "equals", "value": HOSTILE[0]}],
    )
    assert len(execute(code["code"], session)) == 40


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame({"a": []}), pd.DataFrame(index=range(500)), pd.DataFrame({"a": ["x" * 9000]})],
    ids=["rows", "columns", "one"],
)
def test_frames_with_no_rows_no_columns_or_one_row(frame: pd.DataFrame, session: Session, line: Line) -> None:
    from reyn_jupyter.outputs.frames.records import to_structured

    blob = session.parts.services.blobs.put(to_structured(frame)).id
    opened = line.ask("frame.open", blob=blob)
    window = line.ask("frame.rows", blob=blob)
    assert (opened["rows"], opened["width"]) == frame.shape
    assert len(window["cells"]) == min(200, len(frame))
    assert line.ask("frame.rows", blob=blob, start=10**9)["cells"] == []


def test_records_that_never_were_a_frame_grow_columns_as_rows_are_met(session: Session, line: Line) -> None:
    rows = [{"id": n, "note": None} if n % 2 else {"id": n} for n in range(900)] + [
        {"id": 900, "late": [1]},
        7,
    ]
    blob = stored(session, rows)
    opened = line.ask("frame.open", blob=blob)
    assert opened["inferred"] and [each["name"] for each in opened["columns"]] == ["id", "note"]
    first = line.ask("frame.rows", blob=blob)
    assert first["cells"][:2] == [["0", ""], ["1", "null"]]
    last = line.ask("frame.rows", blob=blob, start=800)
    assert last["revision"] > opened["revision"]
    assert [each["name"] for each in last["columns"]] == ["id", "note", "late", "value"]
    assert last["cells"][-2:] == [["900", "", "[1]", ""], ["", "", "", "7"]]
    down = line.ask("frame.rows", blob=blob, sort=[{"column": 0, "descending": True}])
    assert down["cells"][0][0] == "900" and [each["name"] for each in down["columns"]] == [
        "id",
        "note",
        "late",
        "value",
    ]


# Windows


def test_an_answer_is_bounded_however_wide_the_frame_is(session: Session, line: Line) -> None:
    blob = stored(session, CORPUS["ten thousand columns"])
    window = line.ask("frame.rows", blob=blob, first_column=9990)
    assert [each["name"] for each in window["columns"]] == [str(n) for n in range(9990, 10_000)]
    assert len(line.ask("frame.open", blob=blob)["columns"]) == 40
    with pytest.raises(RefusedError, match="column_count"):
        line.ask("frame.rows", blob=blob, column_count=41)


def test_index_levels_come_with_every_window_of_columns(session: Session, line: Line) -> None:
    window = line.ask(
        "frame.rows", blob=stored(session, CORPUS["levels of rows and columns"]), first_column=1
    )
    assert [each["header"] for each in window["columns"]] == [True, True, False]
    assert window["labels"] == [] and window["cells"][0] == ["north", "0", "1.0"]


def test_a_long_cell_is_cut_in_the_window_and_given_whole_on_request(session: Session, line: Line) -> None:
    frame = CORPUS["texts"]
    blob = stored(session, frame)
    window = line.ask("frame.rows", blob=blob)
    assert all(len(cell) <= 60 for row in window["cells"] for cell in row)
    assert line.ask("frame.cell", blob=blob, row=7, column=0) == {"text": "z" * 5000, "cut": False}
    sort = [{"column": 0, "descending": True}]
    assert line.ask("frame.cell", blob=blob, row=0, column=0, sort=sort)["text"] == "漢字"


def test_secrets_of_the_environment_never_travel(
    session: Session, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-proj-Zz81hQ0vN3xk7TtWqYb2" + "Lm94"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    blob = stored(session, pd.DataFrame({secret: [f"key {secret} " + "x" * 100] * 60}))
    asked = [
        line.ask("frame.rows", blob=blob),
        line.ask("frame.cell", blob=blob, row=0, column=0),
        line.ask("frame.column", blob=blob, column=0),
        line.ask("frame.code", blob=blob, sort=[{"column": 0}]),
    ]
    assert secret not in str(asked)


# Order and matches


def _pandas_frames() -> st.SearchStrategy[pd.DataFrame]:
    size = st.integers(1, 30)
    floats = st.floats(allow_nan=True, allow_infinity=True, width=32)
    texts = st.one_of(st.none(), st.text(max_size=12), st.text("ab\0", max_size=40))
    days = st.one_of(
        st.none(),
        st.datetimes(pd.Timestamp("1700-01-01").to_pydatetime(), pd.Timestamp("2200-01-01").to_pydatetime()),
    )

    def make(rows: int) -> st.SearchStrategy[pd.DataFrame]:
        def listed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
            return st.lists(values, min_size=rows, max_size=rows)

        return st.builds(
            lambda i, f, s, d, b: pd.DataFrame(
                {
                    "i": np.array(i, dtype="int64"),
                    "f": np.array(f, dtype="float64"),
                    "s": pd.Series(s, dtype="str"),
                    "d": pd.to_datetime(pd.Series(d, dtype="datetime64[us]")),
                    "b": b,
                }
            ),
            listed(st.integers(-(2**63), 2**63 - 1)),
            listed(floats),
            listed(texts),
            listed(days),
            listed(st.booleans()),
        )

    return size.flatmap(make)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    _pandas_frames(),
    st.lists(
        st.tuples(st.sampled_from("ifsdb"), st.booleans()),
        min_size=1,
        max_size=3,
        unique_by=lambda key: key[0],
    ),
)
def test_rows_come_in_the_order_that_pandas_gives(frame: pd.DataFrame, keys: list[tuple[str, bool]]) -> None:
    from reyn_jupyter.outputs.table.sorting import order_of, sort_rows

    places = sort_rows([(order_of(frame[name]), descending) for name, descending in keys])
    expected = frame.sort_values(
        [name for name, _ in keys], ascending=[not descending for _, descending in keys], kind="stable"
    )
    assert places.tolist() == expected.index.tolist()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(_pandas_frames(), st.data())
def test_what_matches_is_what_pandas_finds(frame: pd.DataFrame, data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(frame["i"].tolist()))
    assert matches(frame["i"], "least", str(number)).tolist() == (frame["i"] >= number).tolist()
    text = data.draw(st.sampled_from(["a", "B", "\0", *frame["s"].dropna().tolist()]))
    found = [isinstance(cell, str) and text.upper() in cell.upper() for cell in frame["s"]]
    assert matches(frame["s"], "contains", text).tolist() == found
    assert matches(frame["s"], "equals", text).tolist() == [cell == text for cell in frame["s"]]
    assert matches(frame["f"], "missing").tolist() == frame["f"].isna().tolist()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abé漢\0", max_size=60), max_size=60))
def test_texts_are_ordered_letter_by_letter_however_long_they_agree(texts: list[str]) -> None:
    series = pd.Series(["shared beginning of them all " + text for text in texts], dtype="str")
    ranks = order_key(series)
    distinct = sorted(set(series))
    assert [distinct[int(rank)] for rank in ranks] == series.tolist()


def test_values_of_every_kind_have_one_order_and_missing_ones_come_last(session: Session, line: Line) -> None:
    blob = stored(session, CORPUS["mixed kinds"])
    up: list[str] = []
    for start in (0, 200):
        window = line.ask("frame.rows", blob=blob, start=start, sort=[{"column": 0}])
        up.extend(row[0] for row in window["cells"])
    kinds = list(dict.fromkeys(up))
    assert kinds[:4] == ["1", "True", "3.5", "1180591620717411303424"]
    assert kinds.index("two") < kinds.index('{"a": 1}') and len(up) == 300
    last = line.ask("frame.rows", blob=blob, start=280, sort=[{"column": 0}])["cells"]
    assert {row[0] for row in last} <= {"None", "NaN"}


def test_integers_that_floats_cannot_tell_apart_are_told_apart(session: Session, line: Line) -> None:
    values = [2**53 + 1, 2**53, 2**53 + 2, 10**40, -(10**40)]
    blob = stored(session, pd.DataFrame({"n": pd.Series(values * 80, dtype=object)}))
    window = line.ask("frame.rows", blob=blob, start=80, count=200, sort=[{"column": 0}])
    assert list(dict.fromkeys(row[0] for row in window["cells"])) == [
        str(2**53),
        str(2**53 + 1),
        str(2**53 + 2),
    ]


def test_filters_are_read_as_the_column_is_and_a_wrong_one_says_what_would_do(
    session: Session, line: Line, orders: pd.DataFrame
) -> None:
    blob = stored(session, orders)

    def total(column: int, op: str, value: str = "") -> int:
        found = line.ask("frame.rows", blob=blob, filter=[{"column": column, "op": op, "value": value}])
        return int(found["total"])

    assert total(1, "least", "100") == (orders["amount"] >= 100).sum()
    assert total(2, "contains", "NOR") == 1000 and total(2, "missing") == 1000
    assert total(3, "less", "2024-01-11") == 600
    with pytest.raises(RefusedError, match="'many' is no number") as failed:
        total(1, "least", "many")
    assert failed.value.hint
    with pytest.raises(RefusedError, match="such as 2024-05-31"):
        total(3, "less", "yesterday")
    with pytest.raises(RefusedError, match="there is no column 9"):
        total(9, "missing")


def test_the_code_names_columns_and_gives_the_rows_of_the_grid(
    session: Session, line: Line, orders: pd.DataFrame
) -> None:
    blob = stored(session, orders)
    asked: dict[str, Any] = {
        "sort": [{"column": 2}, {"column": 1, "descending": True}],
        "filter": [
            {"column": 3, "op": "less", "value": "2024-01-11"},
            {"column": 0, "op": "greater", "value": "10"},
        ],
    }
    code = line.ask("frame.code", blob=blob, **asked)["code"]
    if orders["region"].dtype != object:  # texts of pandas 2 are objects, which are ordered by a key
        assert "df.sort_values(['region', 'amount'], ascending=[True, False]" in code
    window = line.ask("frame.rows", blob=blob, **asked)
    assert [str(label) for label in execute(code, session).index[:200]] == window["labels"]


def test_the_figures_of_a_column_are_of_the_rows_that_match(
    session: Session, line: Line, orders: pd.DataFrame
) -> None:
    blob = stored(session, orders)
    facts = dict(line.ask("frame.column", blob=blob, column=1)["facts"])
    assert facts["values"] == "3,000" and facts["max"] == "124.875" and facts["distinct"] == "1,000"
    found = line.ask(
        "frame.column", blob=blob, column=2, filter=[{"column": 2, "op": "equals", "value": "north"}]
    )
    assert found["top"] == [["north", "1,000", 1.0]] and dict(found["facts"])["missing"] == "0"
    spread = line.ask("frame.column", blob=blob, column=3)
    assert len(spread["bins"]) == 20 and spread["low"] == "2024-01-01"


# Loading


def test_windows_as_stored_load_nothing_and_sorting_loads_once(
    session: Session, line: Line, orders: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    load = OpenedTable.load
    monkeypatch.setattr(
        OpenedTable, "load", lambda table, tell: loads.append(table.blob.id) or load(table, tell)
    )
    blob = stored(session, orders)
    line.ask("frame.rows", blob=blob, start=2900)
    assert "reading the table" not in line.notes
    numbers = [line.send("frame.rows", blob=blob, sort=[{"column": column}]) for column in range(4)]
    said = [line.answers.get(timeout=120) for _ in range(4)]
    while sum(each["type"] == "answer" for each in said) < len(numbers):
        said.append(line.answers.get(timeout=120))
    assert sum(each["type"] == "answer" for each in said) == 4 and len(loads) == 1


def test_a_request_given_up_leaves_the_table_usable(
    session: Session, line: Line, orders: pd.DataFrame
) -> None:
    blob = stored(session, orders)
    number = line.send("frame.rows", blob=blob, sort=[{"column": 2}])
    line.connection.receive({"type": "cancel", "id": number})
    time.sleep(0.05)
    assert line.ask("frame.rows", blob=blob, sort=[{"column": 2}])["total"] == 3000


def test_only_the_last_tables_used_stay_loaded(session: Session, line: Line, orders: pd.DataFrame) -> None:
    blobs = [stored(session, orders.assign(n=number)) for number in range(4)]
    for blob in blobs:
        line.ask("frame.rows", blob=blob, sort=[{"column": 0}])
    assert [reads(line, blob) for blob in (*blobs[2:], blobs[0])] == [False, False, True]


def reads(line: Line, blob: str) -> bool:
    """Whether the table has to be read for another order of it."""
    line.notes.clear()
    line.ask("frame.rows", blob=blob, sort=[{"column": 1, "descending": True}])
    return "reading the table" in line.notes


def test_a_blob_that_was_removed_says_so(tmp_path: Path, orders: pd.DataFrame) -> None:
    session = Session(root=tmp_path)
    line = Line(session)
    blob = stored(session, orders)
    line.ask("frame.rows", blob=blob, sort=[{"column": 0}])
    session.collect_blobs(max_bytes=0, keep=[])
    with pytest.raises(RefusedError, match="this blob was removed") as failed:
        line.ask("frame.rows", blob=blob)
    assert "Run the cell again" in failed.value.hint
    line.connection.close()


def test_a_text_is_no_table(session: Session, line: Line) -> None:
    with pytest.raises(RefusedError, match="no table"):
        line.ask("frame.open", blob=stored(session, "line\n" * 9000))
