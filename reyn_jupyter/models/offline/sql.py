# ruff: noqa: S608  (every identifier is quoted and every value a literal; the engine runs one statement, locked down)
"""A query as SQL text in DuckDB's dialect: identifiers quoted, values as literals, one statement."""

from __future__ import annotations

from collections.abc import Sequence

from reyn_jupyter.models.offline.query import Query
from reyn_jupyter.models.offline.table import Table, literal, quoted

MOST_GROUPS = 200  # rows of a grouped answer


def statement(query: Query, source: str) -> str:
    """The SQL of a query over a source (an alias, or a join).

    >>> from reyn_jupyter.models.offline.query import Output
    >>> statement(Query((Output('AVG("fee")', "average fee"),)), "visits")
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


def values(table: Table, source: str, wanted: Sequence[str]) -> str:
    """Which of some lower-case words are values of the table's text columns, and of which one."""
    listed = ", ".join(literal(word) for word in wanted)
    pieces = [
        f'SELECT {literal(column.name)} AS "column", CAST({column.sql} AS VARCHAR) AS "value" FROM {source} '
        f"WHERE lower(CAST({column.sql} AS VARCHAR)) IN ({listed}) GROUP BY ALL"
        for column in table.of_kind("text")[:8]
    ]
    return " UNION ALL ".join(pieces) + " LIMIT 20"
