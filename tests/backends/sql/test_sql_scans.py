"""A query that is sent only what it reads of its frames answers as one that is sent everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter.backends.sql.sql_query import SqlAnswer, SqlError, SqlQuery, sql_child
from reyn_jupyter.backends.sql.sql_scans import WHOLE, Scan
from reyn_jupyter.support.programs.child_process import ChildProcess, ChildProcesses

ROWS = 700


@pytest.fixture(scope="module")
def child() -> Iterator[ChildProcess]:
    with ChildProcesses() as children:
        yield sql_child(children)


def _frames() -> dict[str, pd.DataFrame]:
    at = np.arange(ROWS)
    late = [None] * (ROWS - 5) + ["late"] * 5  # no value among the first rows
    mixed = [1, 2.5, "three", None, True] * (ROWS // 5)
    left = pd.DataFrame({
        "id": at,
        "a": at % 7,
        "b": [f"text {n % 13}" for n in at],
        "x y": at / 3,
        'say "hi"': [None if n % 3 else f"é\0{n}" for n in at],
        "late": pd.Series(late, dtype=object),
        "mixed": pd.Series(mixed, dtype=object),
        "kind": pd.Categorical([f"k{n % 4}" for n in at]),
        "zoned": pd.date_range("2026-01-01", periods=ROWS, freq="h", tz="Europe/Berlin"),
        "span": pd.to_timedelta(at, unit="s"),
        "day": [date(2026, 1, 1 + n % 28) for n in at],
        "money": [Decimal(int(n)) / 4 for n in at],
        "nested": [[int(n), {"k": str(n)}] for n in at],
        "password": [f"secret {n}" for n in at],
        "maybe": pd.array([None if n % 2 else int(n) for n in at], dtype="Int64"),
    })  # fmt: skip
    right = pd.DataFrame({"id": at[::2], "name": [f"n{n}" for n in at[::2]], "b": ["text 1"] * len(at[::2])})
    return {"t": left, "u": right}


FRAMES = _frames()


def answer(
    child: ChildProcess, sql: str, *, whole: bool, limit: int = 2000
) -> tuple[SqlAnswer | str, dict[str, Scan]]:
    with closing(SqlQuery(child)) as query:
        try:
            query.check(sql)
            scans = {} if whole else dict(query.scans(sql, FRAMES, limit))
            for alias, frame in FRAMES.items():
                query.add_table(alias, frame, scans.get(alias, WHOLE))
            return query.run(sql, limit), scans
        except SqlError as error:
            return str(error), {}


def _same(child: ChildProcess, sql: str, limit: int = 2000) -> dict[str, Scan]:
    part, scans = answer(child, sql, whole=False, limit=limit)
    all_of_it, _ = answer(child, sql, whole=True, limit=limit)
    if isinstance(part, str) or isinstance(all_of_it, str):
        assert part == all_of_it
        return scans
    pd.testing.assert_frame_equal(part.frame, all_of_it.frame)
    assert part.more == all_of_it.more
    return scans


def test_a_query_whose_tables_were_asked_for_is_planned_too(child: ChildProcess) -> None:
    sql = "SELECT a FROM t"
    with closing(SqlQuery(child)) as query:
        assert query.table_names(sql) == (("t",),)
        assert query.scans(sql, FRAMES, 10)["t"].rows == 11


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT count(*) FROM t", set()),
        ("SELECT sum(a) FROM t WHERE b = 'text 3'", {"a", "b"}),
        ("SELECT a FROM (SELECT a, upper(b), mixed FROM t)", {"a"}),
        ("SELECT a FROM (SELECT a, late, nested, kind, zoned, money, span FROM t ORDER BY id)", {"a", "id"}),
        ('SELECT max("say ""hi""") FROM t', {'say "hi"'}),
        ("SELECT min(password) FROM t", {"password"}),
        ("SELECT count(maybe) FROM t", {"maybe"}),
        ("SELECT COLUMNS('^(a|id)$') FROM t ORDER BY id", {"a", "id"}),
        ("SELECT a, row_number() OVER (PARTITION BY b ORDER BY id) AS n FROM t ORDER BY id", {"a", "b", "id"}),
        ("WITH w AS (SELECT * FROM t) SELECT \"x y\" FROM w ORDER BY id", {"x y", "id"}),
        ("SELECT u.name FROM t JOIN u USING (id) ORDER BY u.name", {"id"}),
        ("SELECT DISTINCT ON (a) a FROM t ORDER BY a, id", {"a", "id"}),
        (("WITH RECURSIVE r AS (SELECT id FROM t WHERE id < 3 UNION ALL SELECT id + 3 FROM r WHERE id < 9) "
         "FROM r ORDER BY id"), {"id"}),
    ],
)  # fmt: skip
def test_columns_without_use_are_left_out(child: ChildProcess, sql: str, read: set[str]) -> None:
    scans = _same(child, sql)
    # The type of a category is long to write, and a column of nothing has none.
    assert set(FRAMES["t"].columns) - scans["t"].left_out <= read | {"kind", "late"}


@pytest.mark.parametrize(
    "sql",
    [
        "FROM t", "SELECT t FROM t ORDER BY id LIMIT 3", "DESCRIBE t", "SUMMARIZE t", "SHOW TABLES",
        "SELECT column_name, data_type FROM information_schema.columns ORDER BY ALL",
        "SELECT column_name FROM duckdb_columns() WHERE table_name = 't'",
        "SELECT typeof(mixed), typeof(late), a FROM t ORDER BY id",
        "SELECT a FROM (SELECT a, typeof(late) AS k FROM t) ORDER BY ALL",
        "PIVOT t ON b USING sum(a) GROUP BY a ORDER BY a",
        "SELECT a FROM (PIVOT t ON kind USING count(*) GROUP BY a) ORDER BY a",
        "SELECT * EXCLUDE (b) FROM t ORDER BY id", "SELECT nothing FROM t", "SELECT upper(mixed) FROM t ORDER BY id",
        "SELECT a, (SELECT count(*) FROM u WHERE u.id = t.id) AS n FROM t ORDER BY id",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = t.b) ORDER BY id",
        "SELECT a FROM t SEMI JOIN u ON t.id = u.id ORDER BY t.id",
        "SELECT id FROM t UNION ALL BY NAME SELECT id, name FROM u ORDER BY ALL",
        "FROM t NATURAL JOIN u SELECT name ORDER BY name", "FROM t POSITIONAL JOIN u SELECT count(name)",
        "SELECT unnest(nested) FROM t ORDER BY id LIMIT 4", "SELECT length(b) FROM t WHERE false",
        "SELECT a FROM t WHERE id > 690 ORDER BY id", "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY id) = 9",
        "SELECT late FROM t WHERE late IS NOT NULL", "SELECT * FROM (VALUES (1), (2)) v(n) JOIN t ON t.id = v.n",
        "EXPLAIN SELECT 1", "SELECT list(a ORDER BY id) FROM t",
        "SELECT kind, count(*) FROM t GROUP BY ALL ORDER BY ALL",
        "SELECT 1 -- t", "/* t */ SELECT count(b) FROM t;", "SELECT sum(rowid) FROM t", "TABLE u",
        "SELECT mode(zoned), sum(span), max(day), sum(money) FROM t", "FROM u LIMIT 10%", "SELECT getenv('HOME')",
    ],
)  # fmt: skip
def test_whatever_is_asked_the_answer_is_the_same(child: ChildProcess, sql: str) -> None:
    _same(child, sql)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("FROM t", 11), ("SELECT upper(b), a + 1 FROM t", 11), ("FROM t LIMIT 5", 11), ("FROM t LIMIT 100", 11),
        ("FROM t OFFSET 20", 31), ("SELECT a FROM (FROM t OFFSET 3) LIMIT 50 OFFSET 4", 18),
        ("FROM t ORDER BY id DESC", None), ("FROM t WHERE a > 3", None), ("SELECT DISTINCT b FROM t LIMIT 3", None),
        ("SELECT max(id) FROM t LIMIT 2", None), ("SELECT unnest([a, id]) FROM t", None),
        ("SELECT id, lag(id) OVER () FROM t", None), ("FROM t, u", None), ("FROM t USING SAMPLE 5 ROWS", None),
        ("FROM t UNION ALL FROM t", None), ("FROM t LIMIT (SELECT 2)", None),
    ],
)  # fmt: skip
def test_rows_after_the_last_that_is_fetched_are_left_out(
    child: ChildProcess, sql: str, rows: int | None
) -> None:
    scans = answer(child, sql, whole=False, limit=10)[1]
    assert scans["t"].rows == rows
    if "SAMPLE" not in sql:
        _same(child, sql, limit=10)


COLUMNS = st.sampled_from(["id", "a", "b", '"x y"', "late", "kind", "day", "money", "maybe", "password"])
TERMS = st.one_of(
    COLUMNS,
    COLUMNS.map(lambda name: f"{name} IS NULL"),
    st.tuples(COLUMNS, COLUMNS).map(lambda pair: f"coalesce({pair[0]}::VARCHAR, {pair[1]}::VARCHAR)"),
)
CONDITIONS = st.one_of(
    st.just("true"),
    st.tuples(COLUMNS, st.sampled_from(["IS NOT NULL", "IS NULL"])).map(" ".join),
    st.integers(-2, 9).map(lambda number: f"a > {number}"),
    st.just("id IN (SELECT id FROM u WHERE name LIKE '%4')"),
)


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> str:
    inner = "t"
    if depth and draw(st.booleans()):
        inner = f"({draw(queries(depth - 1))}) AS t"
    terms = draw(st.lists(TERMS, min_size=1, max_size=3))
    if inner == "t" or depth == 0:
        chosen = ", ".join([*terms, *["*"] * draw(st.integers(0, 1))])
    else:
        chosen = draw(st.sampled_from(["*", "count(*)", "COLUMNS(*)"]))
    where = draw(CONDITIONS) if inner == "t" else "true"
    distinct = draw(st.sampled_from(["", "DISTINCT "]))
    order = draw(st.sampled_from([" ORDER BY ALL", " ORDER BY ALL DESC"]))
    limit = draw(st.sampled_from(["", " LIMIT 7", " LIMIT 7 OFFSET 3"]))
    return f"SELECT {distinct}{chosen} FROM {inner} WHERE {where}{order}{limit}"


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(sql=queries())
def test_any_query_gives_the_same_answer(child: ChildProcess, sql: str) -> None:
    _same(child, sql)
