"""DuckDB's own parser says which tables a statement reads, and where an unknown column stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from reyn_jupyter.backends.sql.sql_query import SqlError, SqlQuery, sql_child
from reyn_jupyter.support.programs.child_process import ChildProcesses


@pytest.fixture(scope="module")
def children() -> Iterator[ChildProcesses]:
    with ChildProcesses() as started:
        yield started


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM orders o JOIN Customers USING (id)", [["orders"], ["Customers"]]),
        ("FROM orders LIMIT 3", [["orders"]]),
        ("WITH o AS (SELECT * FROM orders), x AS (SELECT * FROM o) SELECT * FROM x", [["orders"]]),
        ("WITH orders AS (SELECT * FROM orders) SELECT * FROM ORDERS", [["orders"]]),
        ("WITH x AS (SELECT 1) SELECT * FROM (WITH y AS (SELECT 2) SELECT * FROM x, y, z), y", [["z"], ["y"]]),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, most) SELECT * FROM r", [["most"]]),
        ('SELECT * FROM "My Table" WHERE x IN (SELECT id FROM sub)', [["My Table"], ["sub"]]),
        ("SELECT (SELECT max(x) FROM inner_one) FROM one UNION SELECT * FROM two", [["inner_one"], ["one"], ["two"]]),
        ("SELECT 'FROM secret', orders FROM t -- FROM remark", [["t"]]),
        ("SELECT * FROM main.orders, a.b.c", [["main", "orders"], ["a", "b", "c"]]),
        ("SELECT * FROM 'data/orders.csv'", [["data/orders.csv"]]),
        ("SELECT * FROM data.csv", [["data", "csv"]]),
        ("DESCRIBE orders", [["orders"]]),
        ("SUMMARIZE SELECT * FROM orders", [["orders"]]),
        ("EXPLAIN SELECT * FROM orders", [["orders"]]),
        ("SELECT * FROM range(3)", []),
        ("SELECT", []),
        ("DROP TABLE orders", []),
    ],
)  # fmt: skip
def test_the_tables_that_a_statement_reads(
    children: ChildProcesses, sql: str, names: list[list[str]]
) -> None:
    with closing(SqlQuery(sql_child(children))) as query:
        assert sorted(query.table_names(sql)) == sorted(map(tuple, names))


def test_a_statement_that_is_nested_too_deep_has_no_names_and_the_next_one_has(
    children: ChildProcesses,
) -> None:
    deep = "SELECT " + "(" * 5000 + "1" + ")" * 5000
    with closing(SqlQuery(sql_child(children))) as query:
        try:
            assert query.table_names(deep) == ()
        except SqlError as error:
            assert "nested too deep" in str(error)
        assert query.table_names("FROM orders") == (("orders",),)


@pytest.mark.parametrize(
    ("sql", "fixed"),
    [
        ("SELECT amoun FROM t", 'SELECT "amount" FROM t'),
        ("SELECT 'ü', amoun FROM t WHERE amoun > 1", 'SELECT \'ü\', "amount" FROM t WHERE "amount" > 1'),
        ("SELECT sum(amoun) FROM t GROUP BY regoin", 'SELECT sum("amount") FROM t GROUP BY "region"'),
        ('SELECT "un it x" FROM t', 'SELECT "unit x" FROM t'),
        ("SELECT 'amoun', amoun FROM t", "SELECT 'amoun', \"amount\" FROM t"),
        ("SELECT nothing_like_it FROM t", None),
        ("SELECT foo(amount) FROM t", None),
    ],
)
def test_a_column_that_was_meant_is_put_into_its_place(
    children: ChildProcesses, sql: str, fixed: str | None
) -> None:
    with closing(SqlQuery(sql_child(children))) as query:
        query.add_table("t", [{"amount": 1, "region": "north", "unit x": "kg"}])
        with pytest.raises(SqlError) as refused:
            query.run(sql, 10)
        assert refused.value.fixed == fixed
