"""A question about a table as one SQL statement in DuckDB's dialect, each part with the name that the answer gives it.

Invariant: every identifier is quoted and every value a literal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reyn_jupyter.models.offline.conditions import Condition
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema, literal, quoted

# ruff: noqa: S608  (every identifier is quoted and every value a literal; the engine runs one statement, locked down)


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
        having: which groups count.
        order: what to order by, and whether downwards.
        limit: how many rows of the answer; in each of the groups of `within`, where there are some.
        ties: whether rows equal to the last of `limit` are shown too.
        within: the groups inside which rows are ranked.
        extreme: only rows where this column has its greatest or smallest value.
        distinct: whether equal rows are shown once.
        missing: columns whose missing values are counted, a row each.
        note: what the answer says of how the question was read.
    """

    outputs: tuple[Output, ...]
    groups: tuple[Output, ...] = ()
    conditions: tuple[Condition, ...] = ()
    order: tuple[str, bool] | None = None
    limit: int | None = None
    extreme: Output | None = None
    having: Condition | None = None
    ties: bool = False
    within: tuple[Output, ...] = ()
    distinct: bool = False
    missing: tuple[ColumnSchema, ...] = ()
    note: str = ""


def of_column(column: ColumnSchema) -> Output:
    return Output(column.sql, column.name)


def aggregate(function: str, measure: Output) -> Output:
    """A function of a measure, with the words for it."""
    if function == "count":
        return Output(f"COUNT({measure.sql})", f"number of {measure.label}")
    words = {"avg": "average", "sum": "total", "max": "maximum", "min": "minimum", "median": "median",
             "stddev": "standard deviation", "var_samp": "variance"}  # fmt: skip
    return Output(f"{function.upper()}({measure.sql})", f"{words[function]} {measure.label}")


def correlation(left: Output, right: Output) -> Output:
    """Pearson's correlation of two number columns."""
    return Output(
        f"CORR({left.sql}, {right.sql})", f"correlation (Pearson) of {left.label} and {right.label}"
    )


def duplicates(column: ColumnSchema | None, table: TableSchema, conditions: Sequence[Condition]) -> Output:
    """How many rows repeat an earlier one, in one column or in all."""
    if column is not None:
        return Output(
            f"COUNT({column.sql}) - COUNT(DISTINCT {column.sql})",
            f"number of duplicate values of {column.name}",
        )
    held = "*" if table.cells == table.columns else ", ".join(each.sql for each in table.cells)
    inner = f"SELECT DISTINCT {held} FROM {table.alias}{where(conditions)}"
    return Output(
        f"COUNT(*) - (SELECT COUNT(*) FROM ({inner}))", "number of duplicate rows (each beyond the first)"
    )


def share(part: Sequence[Condition], measure: Output | None) -> Output:
    """How many of 100 rows, or how much of 100 of a measure, fit some conditions."""
    fits = " AND ".join(f"({condition.sql})" for condition in part)
    words = " and ".join(condition.words for condition in part)
    if measure is None:
        return Output(
            f"100.0 * COUNT(*) FILTER (WHERE {fits}) / NULLIF(COUNT(*), 0)",
            f"percentage of rows where {words}",
        )
    sql = f"100.0 * SUM({measure.sql}) FILTER (WHERE {fits}) / NULLIF(SUM({measure.sql}), 0)"
    return Output(sql, f"percentage of {measure.label} where {words}")


def period(name: str, column: ColumnSchema) -> Output:
    """A date column cut to months, weekdays and so on."""
    if name == "month":
        return Output(f"strftime({column.date_sql}, '%Y-%m')", "month")
    if name == "quarter":
        return Output(
            f"strftime({column.date_sql}, '%Y') || '-Q' || EXTRACT(quarter FROM {column.date_sql})", "quarter"
        )
    if name == "week":
        return Output(f"strftime({column.date_sql}, '%G-W%V')", "week")
    if name == "dayofweek":
        return Output(f"dayname({column.date_sql})", "weekday")
    if name == "day":
        return Output(f"strftime({column.date_sql}, '%Y-%m-%d')", "day")
    return Output(f"EXTRACT({name} FROM {column.date_sql})", name)


def statement(query: TableQuery, source: str) -> str:
    """The SQL of a query over a source (an alias, or a join).

    >>> from reyn_jupyter.models.offline.sql_query import Output, TableQuery
    >>> statement(TableQuery((Output('AVG("fee")', "average fee"),)), "visits")
    'SELECT AVG("fee") AS "average fee" FROM visits'
    """
    if query.missing:
        return _missing(query, source)
    conditions = query.conditions
    if query.extreme is not None:
        inner = f"SELECT {query.extreme.label} FROM {source}{where(conditions)}"
        conditions = (*conditions, Condition(f"{query.extreme.sql} = ({inner})", ""))
    shown = [*query.groups, *query.outputs]
    columns = ", ".join(f"{output.sql} AS {quoted(output.label)}" for output in shown) or "*"
    text = f"SELECT {'DISTINCT ' if query.distinct else ''}{columns} FROM {source}{where(conditions)}"
    if query.groups:
        text += f" GROUP BY {', '.join(output.sql for output in query.groups)}"
    if query.having is not None:
        text += f" HAVING {query.having.sql}"
    return text + _order(query)


def _order(query: TableQuery) -> str:
    text = ""
    limit = query.limit
    if query.order is not None:
        column, down = query.order
        order = f"ORDER BY {column} {'DESC' if down else 'ASC'} NULLS LAST"
        if query.limit is not None and (query.ties or query.within):
            inside = (
                f"PARTITION BY {', '.join(output.sql for output in query.within)} " if query.within else ""
            )
            text += f" QUALIFY rank() OVER ({inside}{order}) <= {query.limit}"
            limit = None
        leading = "".join(f"{output.sql}, " for output in query.within)
        text += f" {order.replace('ORDER BY ', f'ORDER BY {leading}', 1)}"
        text += "".join(
            f", {output.sql}"
            for output in query.groups
            if output.sql != column and output not in query.within
        )
    return f"{text} LIMIT {limit}" if limit else text


def _missing(query: TableQuery, source: str) -> str:
    """Return the missing values of each column, a row each."""
    return " UNION ALL ".join(
        f'SELECT {literal(column.name)} AS "column", COUNT(*) - COUNT({column.sql}) AS "missing values" '
        f"FROM {source}{where(query.conditions)}"
        for column in query.missing
    )


def where(conditions: Sequence[Condition]) -> str:
    """The WHERE clause of some conditions; empty for none."""
    return f" WHERE {' AND '.join(f'({condition.sql})' for condition in conditions)}" if conditions else ""


def head(alias: str, rows: int) -> str:
    """The first rows of a table, to learn its columns."""
    return f"SELECT * FROM {alias} LIMIT {rows}"


def row_count(alias: str) -> str:
    """How many rows a table has, as `rows`."""
    return f'SELECT COUNT(*) AS "rows" FROM {alias}'


def values(tables: Sequence[tuple[TableSchema, Sequence[str]]]) -> str:
    """Which of some lower-case words are values of text columns of tables: the place of the table, column and value."""
    pieces = [
        f'SELECT {place} AS "table", {literal(column.name)} AS "column", CAST({column.sql} AS VARCHAR) AS "value" '
        f"FROM {table.alias} WHERE lower(CAST({column.sql} AS VARCHAR)) IN "
        f"({', '.join(literal(word) for word in wanted)}) GROUP BY ALL"
        for place, (table, wanted) in enumerate(tables)
        for column in table.of_kind("text")[:8]
    ]
    return " UNION ALL ".join(pieces) + " LIMIT 50"
