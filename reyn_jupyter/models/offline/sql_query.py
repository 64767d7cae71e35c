"""A question about a table as one SQL statement in DuckDB's dialect, each part with the name that the answer gives it.

Invariant: every identifier is quoted and every value a literal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reyn_jupyter.models.offline.conditions import Condition
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema, literal, quoted

# ruff: noqa: S608  (every identifier is quoted and every value a literal; the engine runs one statement, locked down)


@dataclass(frozen=True)
class Output:
    """One thing to compute or show: SQL, the name that the answer gives it, and the column that it is made of."""

    sql: str
    label: str
    column: ColumnSchema | None = field(default=None, compare=False)


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
        text: a statement in place of all of the above, and `title` what its rows are.
        unsaid: the columns of which the question does not say how the rows of one group are put together.
        last: how many rows at the end of the table are shown.
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
    unsaid: tuple[Output, ...] = ()
    last: int | None = None
    text: str = ""
    title: str = ""
    note: str = ""

    @property
    def zones(self) -> tuple[str, ...]:
        """The columns with a time zone whose moments the answer shows or filters by, with that zone."""
        columns = [output.column for output in (*self.outputs, *self.groups)]
        columns += [condition.column for condition in self.conditions]
        return tuple(dict.fromkeys(f"{c.name} in {c.zone} time" for c in columns if c is not None and c.zone))


def of_column(column: ColumnSchema) -> Output:
    """A column as it is shown: moments as their own time zone has them."""
    return Output(column.local_sql if column.kind == "date" else column.sql, column.name, column)


def aggregate(function: str, measure: Output) -> Output:
    """A function of a measure, with the words for it."""
    if function == "count":
        return Output(f"COUNT({measure.sql})", f"number of {measure.label}", measure.column)
    words = {"avg": "average", "sum": "total", "max": "maximum", "min": "minimum", "median": "median",
             "stddev": "standard deviation", "var_samp": "variance"}  # fmt: skip
    if measure.column is not None and measure.column.kind == "date":
        words |= {"max": "latest", "min": "earliest"}
    name = f"{words[function]}{' of' if function == 'var_samp' else ''} {measure.label}"
    return Output(f"{function.upper()}({measure.sql})", name, measure.column)


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
    """A date column cut to months, weekdays and so on, in the column's own time zone."""
    day = column.date_sql
    sql = {
        "month": f"strftime({day}, '%Y-%m')",
        "quarter": f"strftime({day}, '%Y') || '-Q' || EXTRACT(quarter FROM {day})",
        "week": f"strftime({day}, '%G-W%V')",
        "dayofweek": f"dayname({day})",
        "day": f"strftime({day}, '%Y-%m-%d')",
    }.get(name, f"EXTRACT({name} FROM {day})")
    return Output(sql, "weekday" if name == "dayofweek" else name, column)


MOST = "most rows of one group"


def statement(query: TableQuery, source: str, rows: str = "*") -> str:
    """The SQL of a query over a source (an alias, or a join); `rows` is what stands for whole rows.

    >>> from reyn_jupyter.models.offline.sql_query import Output, TableQuery
    >>> statement(TableQuery((Output('AVG("fee")', "average fee"),)), "visits")
    'SELECT AVG("fee") AS "average fee" FROM visits'
    """
    if query.text:
        return query.text
    conditions = query.conditions
    if query.extreme is not None:
        inner = f"SELECT {query.extreme.label} FROM {source}{where(conditions)}"
        conditions = (*conditions, Condition(f"{query.extreme.sql} = ({inner})", ""))
    shown = [*query.groups, *query.outputs]
    columns = ", ".join(f"{output.sql} AS {quoted(output.label)}" for output in shown) or rows
    columns += f", MAX(COUNT(*)) OVER () AS {quoted(MOST)}" if query.unsaid else ""
    text = f"SELECT {'DISTINCT ' if query.distinct else ''}{columns} FROM {source}{where(conditions)}"
    if query.groups:
        text += f" GROUP BY {', '.join(output.sql for output in query.groups)}"
    if query.having is not None:
        text += f" HAVING {query.having.sql}"
    if query.last is not None:
        rows = f"SELECT greatest(0, COUNT(*) - {query.last}) FROM {source}{where(conditions)}"
        return f"{text} LIMIT {query.last} OFFSET ({rows})"
    return text + _order(query)


def whole_rows(table: TableSchema) -> str:
    """What stands for whole rows: moments as their own time zone has them."""
    local = [f"{c.local_sql} AS {c.sql}" for c in table.columns if c.zone]
    return f"* REPLACE ({', '.join(local)})" if local else "*"


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


def where(conditions: Sequence[Condition]) -> str:
    """The WHERE clause of some conditions; empty for none."""
    return f" WHERE {' AND '.join(f'({condition.sql})' for condition in conditions)}" if conditions else ""


def head(alias: str, rows: int) -> str:
    """The first rows of a table, to learn its columns."""
    return f"SELECT * FROM {alias} LIMIT {rows}"


def row_count(alias: str) -> str:
    """How many rows a table has, as `rows`."""
    return f'SELECT COUNT(*) AS "rows" FROM {alias}'


def values(tables: Sequence[tuple[int, TableSchema, Sequence[str]]]) -> str:
    """Which of some lower-case words are values of text columns of tables: the place of the table, column and value."""
    pieces = [
        f'SELECT {place} AS "table", {literal(column.name)} AS "column", CAST({column.sql} AS VARCHAR) AS "value" '
        f"FROM {table.alias} WHERE lower(CAST({column.sql} AS VARCHAR)) IN "
        f"({', '.join(literal(word) for word in wanted)}) GROUP BY ALL"
        for place, table, wanted in tables
        for column in table.of_kind("text")[:8]
    ]
    return " UNION ALL ".join(pieces) + " LIMIT 50"
