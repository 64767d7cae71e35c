"""Any frame in the grid, from memory: the words of a stored one, at once, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.serving.operations.frame_operations import FrameFigures
from reyn_jupyter.notebook.serving.viewed_frames import VIEWED, ViewedFrames
from reyn_jupyter.sessions.session import Session
from tests.notebook.serving.frames_support import CORPUS, Line, RefusedError, stored


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield Session(root=tmp_path_factory.mktemp("frames"), store="memory")


@pytest.fixture
def line(session: Session) -> Iterator[Line]:
    made = Line(session)
    yield made
    made.connection.close()


def held(frame: object, name: str = "") -> str:
    return VIEWED.hold(reyn.view(frame, name=name))


@pytest.mark.parametrize("name", CORPUS)
def test_a_frame_in_memory_shows_the_words_of_a_stored_one(name: str, session: Session, line: Line) -> None:
    ids = (stored(session, CORPUS[name]), held(CORPUS[name]))
    kept, live = (line.ask("frame.open", blob=each) for each in ids)
    assert {**kept, "figures": True} == live
    windows = [line.ask("frame.rows", blob=each) for each in ids]
    assert windows[0] == windows[1]
    if name == "mixed kinds":  # in memory they are still what they were, and are ordered as that
        return
    for column in range(min(3, len(live["columns"]))):
        sort = [{"column": column, "descending": True}]
        present = [{"column": column, "op": "present", "value": ""}]
        asked = [line.ask("frame.rows", blob=each, sort=sort, filter=present) for each in ids]
        assert asked[0] == asked[1]


HOSTILE_WORDS = "this object says nothing"


class Mute:
    """Raises whenever it is asked for its words."""

    def __repr__(self) -> str:
        raise RuntimeError(HOSTILE_WORDS)

    __str__ = __repr__


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2], [3, 4]], columns=["twice", "twice"]),
        pd.DataFrame({"n": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None])),
        pd.DataFrame({"object": [Mute(), Mute()]}),
        pd.DataFrame({"n": [1, 2]}, index=pd.Index([Mute(), Mute()], dtype=object, name="who")),
        pd.DataFrame({"nested": [{"a": [1, Mute()]}, None]}),
        pd.DataFrame({("a", 1): [1, 2], ("a", 2): [3, 4]}),
        pd.DataFrame(index=range(2)),
        pd.DataFrame({"n": []}),
    ],
)
def test_a_strange_frame_is_shown(line: Line, frame: pd.DataFrame) -> None:
    key = held(frame)
    opened = line.ask("frame.open", blob=key)
    rows = line.ask("frame.rows", blob=key)
    assert rows["total"] == len(frame) == len(rows["cells"])
    for column in opened["columns"]:
        line.ask("frame.column", blob=key, column=column["position"])
    assert HOSTILE_WORDS not in str(rows)


def test_a_view_shows_the_frame_as_it_was(line: Line) -> None:
    frame = pd.DataFrame({"n": [3, 1, 2]})
    key = held(frame)
    frame.loc[0, "n"] = 99
    frame["more"] = "x"
    assert line.ask("frame.rows", blob=key)["cells"] == [["3"], ["1"], ["2"]]
    sort = [{"column": 0, "descending": False}]
    assert line.ask("frame.rows", blob=key, sort=sort)["cells"] == [["1"], ["2"], ["3"]]


def test_a_frame_that_is_held_no_longer_says_so(line: Line) -> None:
    with pytest.raises(RefusedError, match="held no longer"):
        line.ask("frame.open", blob="frame:0123")


def test_the_frames_viewed_last_are_held() -> None:
    few = ViewedFrames(most=2)
    first, second, third = (few.hold(reyn.view(pd.DataFrame({"n": [number]}))) for number in range(3))
    assert few.find(first) is None and few.find(second) is not None and few.find(third) is not None
    small = ViewedFrames(size=100)
    ids = [small.hold(reyn.view(pd.DataFrame({"n": range(1000)}))) for _ in range(2)]
    assert [small.find(each) is not None for each in ids] == [False, True]


def test_the_same_view_is_held_once() -> None:
    few, view = ViewedFrames(), reyn.view(pd.DataFrame({"n": [1]}))
    assert few.hold(view) == few.hold(view)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(np.arange(1000) % 37),
        pd.Series(np.linspace(-1, 1, 500)),
        pd.Series(pd.date_range("2024-01-01", periods=300, freq="h")),
        pd.Series(pd.date_range("2024-01-01", periods=300, freq="h", tz="Europe/Berlin")),
        pd.Series(pd.to_timedelta(np.arange(300), unit="min")),
    ],
)
def test_the_bars_of_a_column_are_filters_that_keep_every_row_once(line: Line, values: pd.Series) -> None:
    key = held(pd.DataFrame({"value": values}))
    figures: dict[str, Any] = line.ask("frame.column", blob=key, column=0)
    edges = FrameFigures.model_validate(figures).edges
    assert len(edges) == len(figures["bins"]) + 1
    total = 0
    for place in range(len(edges) - 1):
        upper = "most" if place == len(edges) - 2 else "less"
        bounds = [
            {"column": 0, "op": "least", "value": edges[place]},
            {"column": 0, "op": upper, "value": edges[place + 1]},
        ]
        total += line.ask("frame.rows", blob=key, filter=bounds)["total"]
    assert total == len(values)


def test_figures_have_the_names_of_the_field(line: Line) -> None:
    key = held(pd.DataFrame({"n": range(101)}))
    facts = dict(line.ask("frame.column", blob=key, column=0)["facts"])
    assert {name: facts[name] for name in ("min", "25 %", "median", "75 %", "max")} == {
        "min": "0",
        "25 %": "25",
        "median": "50",
        "75 %": "75",
        "max": "100",
    }


def test_the_code_of_a_view_names_the_variable(line: Line) -> None:
    key = held(pd.DataFrame({"n": [2, 1]}), "big")
    sort = [{"column": 0, "descending": False}]
    code = line.ask("frame.code", blob=key, sort=sort)["code"]
    names: dict[str, Any] = {"big": pd.DataFrame({"n": [2, 1]})}
    exec(code, names)
    assert list(names["df"].n) == [1, 2] and "reyn" not in code


def test_an_arrow_table_is_read_through_its_stream(line: Line) -> None:
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT range AS n, 'x' || range AS word, DATE '2024-01-01' AS day FROM range(3)"
        )
        key = held(relation)
    cells = line.ask("frame.rows", blob=key)["cells"]
    assert cells == [["0", "x0", "2024-01-01"], ["1", "x1", "2024-01-01"], ["2", "x2", "2024-01-01"]]


@pytest.mark.parametrize("table", [pd.Series([1, 2], name="n"), np.array([[1, 2], [3, 4]])])
def test_a_series_and_an_array_are_tables(line: Line, table: object) -> None:
    assert line.ask("frame.rows", blob=held(table))["total"] == 2


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ReynError, match="A str is no table"):
        reyn.view("orders")


def test_nothing_is_stored_for_a_view(tmp_path: Path) -> None:
    session = Session(tmp_path)
    made = Line(session)
    made.ask("frame.open", blob=held(pd.DataFrame({"n": range(10_000)})))
    made.connection.close()
    assert len(session.blobs) == 0
