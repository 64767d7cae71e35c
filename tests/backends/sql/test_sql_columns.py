"""A name of a column means one column: what SQL cannot tell apart is refused, and what is renamed is told."""

from __future__ import annotations

import datetime as dt
import gzip
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.backends.sql.sql_columns import column_names, distinct_names
from reyn_jupyter.support.secret_names import secret_name

CASES = pd.DataFrame({"Region": ["x", "y"], "region": ["p", "q"], "v": [1, 2]})
CSV = "Region,region,v\nx,p,1\ny,q,2\n"


@pytest.fixture
def names() -> dict[str, Any]:
    return {"cases": CASES}


@pytest.fixture
def session(tmp_path: Path, names: dict[str, Any]) -> Iterator[reyn.Session]:
    with closing(reyn.Session(tmp_path, namespace=names, store="memory")) as opened:
        yield opened


def ask(session: reyn.Session, sql: str, source: str = "cases") -> reyn.Result:
    return session.invoke_action("table__query", {"sql": sql, "sources": {"t": source}})


def test_a_name_of_two_columns_is_refused_with_the_names_to_use(session: reyn.Session) -> None:
    for sql in (
        "SELECT region FROM t",
        'SELECT "Region" FROM t',
        "SELECT t.region FROM t",
        "SELECT v FROM t WHERE REGION = 'p'",
        "SELECT * EXCLUDE (region) FROM t",
        "SELECT * REPLACE (1 AS region) FROM t",
        "FROM t ORDER BY region",
        "SELECT sum(v) FROM t GROUP BY region",
        "FROM t JOIN t u USING (region)",
        "PIVOT t ON region USING sum(v)",
        "UNPIVOT t ON region",
        "SELECT COLUMNS('^region$') FROM t",
        "SELECT max(v) OVER (PARTITION BY region) FROM t",
    ):
        result = ask(session, sql)
        assert result.error is not None, sql
        assert (
            "Region_0 is the column 'Region'" in result.error
            and "region_1 is the column 'region'" in result.error
        )
        assert '"Region_0" or "region_1"' in result.payload["hint"] and result.fix is None
    other = ask(session, "SELECT 'region'::INT FROM t")
    assert "Could not convert" in str(other.error) and "Region_0" not in str(other.error)
    assert ask(session, "SELECT v FROM t").payload == '[{"v":1},{"v":2}]'
    assert ask(session, "SELECT Region_0 AS region FROM t").df["region"].tolist() == ["x", "y"]
    assert ask(session, "SELECT region FROM (SELECT region_1 AS region FROM t)").df["region"].tolist() == [
        "p",
        "q",
    ]


def test_a_result_tells_which_columns_were_renamed(session: reyn.Session) -> None:
    for sql in ("FROM t", "SELECT max(COLUMNS(*)) FROM t", "SELECT region_1, Region_0 FROM t"):
        payload = ask(session, sql).payload
        assert (
            "renamed: Region_0 is the column 'Region' in t, region_1 is the column 'region' in t" in payload
        )
    assert "renamed" not in ask(session, "SELECT v FROM t").payload
    twice = ask(session, "SELECT 1 AS a, 2 AS a, 3 AS a_1")
    assert twice.df.iloc[0].to_dict() == {"a": 1, "a_2": 2, "a_1": 3}
    assert "a_2 is another column 'a' of the query" in twice.payload


def test_labels_of_every_kind_have_a_name_and_keep_their_values(
    session: reyn.Session, names: dict[str, Any]
) -> None:
    def frame(*labels: Any) -> pd.DataFrame:
        return pd.DataFrame([range(len(labels))], columns=pd.Index(labels, dtype=object, tupleize_cols=False))

    days = pd.to_datetime(["2024-01-01", "2024-02-01"])
    for given_frame, wanted, told in (
        (pd.DataFrame([[0, 1]], columns=days), ["2024-01-01T00:00:00", "2024-02-01T00:00:00"], ""),
        (pd.DataFrame([[0, 1]], columns=pd.period_range("2024-01", periods=2, freq="M")), ["2024-01", "2024-02"], ""),
        (pd.DataFrame([[0, 1]], columns=pd.IntervalIndex.from_breaks([0, 1, 2])), ["(0, 1]", "(1, 2]"], ""),
        (pd.DataFrame([[0]], columns=pd.to_timedelta(["1 day"])), ["1 days 00:00:00"], ""),
        (pd.DataFrame([[0, 1]], columns=pd.CategoricalIndex(["x", "y"])), ["x", "y"], ""),
        (frame(dt.date(2024, 1, 1), pd.Timestamp("2024-01-01 05:00").to_pydatetime()),
         ["2024-01-01", "2024-01-01T05:00:00"], ""),
        (frame(7, 1.5, True, np.int64(8)), ["7", "1.5", "True", "8"], ""),
        (frame(1, "1"), ["1_0", "1_1"], "1_0 is the column 1 in t, 1_1 is the column '1' in t"),
        (frame(None, "", float("nan")), ["column_0", "column_1", "column_2"], "column_1 is the column without a name"),
        (frame("column_1", None), ["column_1", "column_2"], "column_2 is the column without a name in t"),
        (frame(("a_b", "c"), ("a", "b_c")), ["a_b_c_0", "a_b_c_1"], "a_b_c_1 is the column ('a', 'b_c')"),
        (frame("a", "a", "a_1"), ["a_0", "a_2", "a_1"], "a_2 is the column 'a' (number 2) in t"),
        (frame("a\0", "a"), ["a_0", "a_1"], "a_0 is the column 'a\\x00'"),
        (frame(object()), ["column_0"], "column_0 is the column <object> in t"),
        (frame("a", " a", "A.b", "select"), ["a", " a", "A.b", "select"], ""),
        (pd.DataFrame({"key": [1]}, index=pd.Index([0], name="Key")), ["Key_0", "key_1"], "Key_0 is the index 'Key'"),
        (pd.DataFrame({"v": [2]}, index=pd.MultiIndex.from_tuples([(0, 1)], names=["v", None])),
         ["v_0", "level_1", "v_1"], "v_1 is the column 'v' in t"),
        (pd.Series([1], name="x", index=pd.Index([0], name="X")), ["X_0", "x_1"], "X_0 is the index 'X' in t"),
        ([{"A": 0, "a": 1}], ["A_0", "a_1"], "a_1 is the column 'a' in t"),
        ({"K": [0], "k": [1]}, ["K_0", "k_1"], "k_1 is the column 'k' in t"),
        (np.array([(0, 1)], dtype=[("a", ">i4"), ("b", ">f8")]), ["a", "b"], ""),
    ):  # fmt: skip
        names["f"] = given_frame
        result = ask(session, "FROM t", "f")
        assert list(result.df) == wanted and result.df.iloc[0].tolist() == list(range(len(wanted))), wanted
        note = str(result.payload).partition("\n[renamed: ")[2]
        assert (told in note) if told else not note, (wanted, note)


def test_columns_of_files_are_told_apart_too(session: reyn.Session, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(CSV)
    (tmp_path / "c.tsv").write_text(CSV.replace(",", "\t"))
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (tmp_path / "c.json").write_text(
        '[{"Region": "x", "region": "p", "v": 1}, {"region": "q", "Region": "y", "v": 2}]'
    )
    (tmp_path / "c.jsonl").write_text(
        '{"Region": "x", "region": "p", "v": 1}\n{"Region": "y", "region": "q", "v": 2}\n'
    )
    for path in ("c.csv", "c.tsv", "c.csv.gz", "c.json", "c.jsonl"):
        result = ask(session, "FROM t ORDER BY v", path)
        assert result.df["region_1"].tolist() == ["p", "q"] and list(result.df) == [
            "Region_0",
            "region_1",
            "v",
        ], path
        assert "renamed: Region_0 is the column 'Region' in t" in result.payload
        assert "region_1 is the column 'region'" in str(ask(session, "SELECT region FROM t", path).error)
    (tmp_path / "numbered.csv").write_text("a,a_1\n1,2\n")
    assert ask(session, "SELECT a FROM t", "numbered.csv").payload == '[{"a":1}]'
    (tmp_path / "both.csv").write_text("a,a,,a_1\n1,2,3,4\n")
    assert ask(session, "FROM t", "both.csv").df.iloc[0].tolist() == [1, 2, 3, 4]
    assert ask(session, "SELECT a_1 FROM t", "both.csv").df["a_1"].tolist() == [4]


def test_a_secret_stays_hidden_under_its_other_name(
    session: reyn.Session, names: dict[str, Any], tmp_path: Path
) -> None:
    names["f"] = pd.DataFrame([["plover", "xyzzy"]], columns=["pass", "Pass"])
    (tmp_path / "p.csv").write_text("pass,Pass\nplover,xyzzy\n")
    for source in ("f", "p.csv"):
        payload = str(ask(session, "FROM t", source).payload)
        assert "plover" not in payload and "xyzzy" not in payload and payload.count("[hidden]") >= 2


@given(st.lists(st.one_of(st.none(), st.integers(0, 3), st.text("aAbÄ_01", max_size=3)), max_size=8))
def test_names_are_distinct_without_case_and_none_is_plain_if_it_is_ambiguous(labels: list[Any]) -> None:
    names = column_names(labels)
    assert len({name.lower() for name in names}) == len(labels) and all(names)
    texts = ["" if label is None else str(label) for label in labels]
    for text in texts:
        if text and sum(other.lower() == text.lower() for other in texts) > 1:
            assert text.lower() not in {name.lower() for name in names}
        elif text:
            assert text in names
    assert all(secret_name(name) for name, text in zip(names, texts, strict=True) if secret_name(text))
    unique, phrases = distinct_names(texts)
    assert len(set(unique)) == len(texts) and len(phrases) == sum(
        a != b for a, b in zip(unique, texts, strict=True)
    )


def test_the_first_example_of_the_manual_runs_as_it_is_printed() -> None:
    manual = Path(reyn.__file__).parent / "docs" / "sql.md"
    example = re.findall(r"```python\n(.*?)```", manual.read_text(), re.DOTALL)[0]
    statements, _, last = example.rstrip().rpartition("\nsession.invoke_action(")
    space: dict[str, Any] = {}
    exec(statements, space)
    try:
        assert eval(f"session.invoke_action({last}", space)["total"].tolist() == [3]
    finally:
        space["session"].close()


def test_a_result_that_is_no_table_says_so(session: reyn.Session) -> None:
    from reyn_jupyter.runtime.record.run_result import NoTableError
    from reyn_jupyter.sessions.result_objects import ActionFailedError

    @session.action
    def word() -> str:
        """Give a word."""
        return "plover"

    with pytest.raises(NoTableError, match="no table"):
        session.invoke_action("function__word", {}).df  # noqa: B018
    with pytest.raises(ActionFailedError):
        ask(session, "SELECT region FROM t").df  # noqa: B018
