"""A question about a table as one SQL statement in DuckDB's dialect, each part with the name that the answer gives it.

Invariant: every identifier is quoted and every value a literal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reyn_jupyter.models.offline.filters import Condition
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema, literal, quoted


@dataclass(frozen=True)
class Output:
    """One thing to compute or show: SQL, and the name that the answer gives it."""

    sql: str
    label: str


@dataclass(frozen=True)
class TableQuery:
    """A query of the table.

    Attributes:
        outputs: aggregates, or the columns of rows; none for whole rows.
        groups: what to group by.
        conditions: which rows count.
        order: what to order by, and whether downwards.
        limit: how many rows of the answer.
        extreme: only rows where this column has its greatest or smallest value.
    """

    outputs: tuple[Output, ...]
    groups: tuple[Output, ...] = ()
    conditions: tuple[Condition, ...] = ()
    order: tuple[str, bool] | None = None
    limit: int | None = None
    extreme: Output | None = None


def of_column(column: ColumnSchema) -> Output:
    return Output(column.sql, column.name)


def aggregate(function: str, measure: Output) -> Output:
    """A function of a measure, with the words for it."""
    if function == "count":
        return Output(f"COUNT({measure.sql})", f"number of {measure.label}")
    words = {"avg": "average", "sum": "total", "max": "maximum", "min": "minimum", "median": "median",
             "stddev": "standard deviation", "var_samp": "variance"}  # fmt: skip
    return Output(f"{function.upper()}({measure.sql})", f"{words[function]} {measure.label}")


def period(name: str, column: ColumnSchema) -> Output:
    """A date column cut to months, weekdays and so on."""
    if name == "month":
        return Output(f"strftime({column.date_sql}, '%Y-%m')", "month")
    if name == "dayofweek":
        return Output(f"dayname({column.date_sql})", "weekday")
    if name == "day":
        return Output(f"strftime({column.date_sql}, '%Y-%m-%d')", "day")
    return Output(f"EXTRACT({name} FROM {column.date_sql})", name)


# ruff: noqa: S608  (every identifier is quoted and every value a literal; the engine runs one statement, locked down)


MOST_GROUPS = 200  # rows of a grouped answer


def statement(query: TableQuery, source: str) -> str:
    """The SQL of a query over a source (an alias, or a join).

    >>> from reyn_jupyter.models.offline.sql_query import Output, TableQuery
    >>> statement(TableQuery((Output('AVG("fee")', "average fee"),)), "visits")
    'SELECT AVG("fee") AS "average fee" FROM visits'
    """
    shown = [*query.groups, *query.outputs]
    conditions = [f"({condition.sql})" for condition in query.conditions]
    if query.extreme is not None:
        inner = f"SELECT {query.extreme.label} FROM {source}{_where(conditions)}"
        conditions = [*conditions, f"{query.extreme.sql} = ({inner})"]
    columns = ", ".join(f"{output.sql} AS {quoted(output.label)}" for output in shown) or "*"
    text = f"SELECT {columns} FROM {source}"
    text += _where(conditions)
    if query.groups:
        text += f" GROUP BY {', '.join(output.sql for output in query.groups)}"
    if query.order is not None:
        column, down = query.order
        text += f" ORDER BY {column} {'DESC' if down else 'ASC'} NULLS LAST"
        text += "".join(f", {output.sql}" for output in query.groups if output.sql != column)
    limit = query.limit or (MOST_GROUPS if query.groups else None)
    return f"{text} LIMIT {limit}" if limit else text


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def head(alias: str, rows: int) -> str:
    """The first rows of a table, to learn its columns."""
    return f"SELECT * FROM {alias} LIMIT {rows}"


def values(table: TableSchema, source: str, wanted: Sequence[str]) -> str:
    """Return which of some lower-case words are values of the table's text columns, and of which one."""
    listed = ", ".join(literal(word) for word in wanted)
    pieces = [
        f'SELECT {literal(column.name)} AS "column", CAST({column.sql} AS VARCHAR) AS "value" FROM {source} '
        f"WHERE lower(CAST({column.sql} AS VARCHAR)) IN ({listed}) GROUP BY ALL"
        for column in table.of_kind("text")[:8]
    ]
    return " UNION ALL ".join(pieces) + " LIMIT 20"
