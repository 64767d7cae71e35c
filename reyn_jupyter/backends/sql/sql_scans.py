"""The part of its frames that a query reads, as DuckDB plans it over a few of their rows.

Invariants: a column or a row is left out only where the plan shows that no cell of it is read; where the plan has a
step that is not known here, everything is read. Of the optimizer only the step runs that finds the columns in use, so
that no value of the few rows decides anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.object_summary import without_attrs

if TYPE_CHECKING:
    import pandas as pd

FEWEST_CELLS = 100_000  # of a query's frames: with less, sending all is quicker than planning
_SAMPLE = 200  # rows, which decide the types of columns of objects
_FIND_COLUMNS = "unused_columns"
_SCAN = "PANDAS_SCAN"
_OTHER_SOURCES = frozenset({
    "CTE_SCAN", "REC_CTE_SCAN", "DELIM_SCAN", "DUMMY_SCAN", "COLUMN_DATA_SCAN", "EXPRESSION_SCAN",
})  # fmt: skip
_ROW_BY_ROW = frozenset({"PROJECTION", "STREAMING_LIMIT", "LIMIT"})
# A type that can be written after NULL:: and is short.
_TYPE = re.compile(r"[A-Z][A-Z0-9_]*(?: [A-Z]+)*(?:\(\d{1,2},\s?\d{1,2}\))?")


# The columns of a table in their order, each with its type where its cells are not read.
Layout = Sequence[tuple[str, str | None]]


@dataclass(frozen=True)
class Scan:
    """The part of one frame that a query reads.

    Args:
        columns: of the whole frame; empty where all of their cells are read.
        rows: how many rows are read at most, from the first on; None for all.
    """

    columns: Layout = ()
    rows: int | None = None

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Return the names of the columns that are not read."""
        return frozenset(name for name, kind in self.columns if kind is not None)


WHOLE = Scan()


def sample(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a few rows of a frame, from all over it."""
    bare: pd.DataFrame = without_attrs(frame)
    return bare.iloc[:: max(1, len(frame) // _SAMPLE)].head(_SAMPLE)


def read_scans(answer: Any) -> dict[str, Scan]:
    """Return the scans of an answer, by table.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: it is none.
    """
    found = {}
    for alias, scan in answer.items():
        columns = tuple((str(name), kind) for name, kind in scan["columns"])
        rows = scan["rows"]
        if not all(kind is None or _TYPE.fullmatch(kind) for _, kind in columns):
            raise ValueError("a type of a column is none")
        if rows is not None and (type(rows) is not int or rows < 0):
            raise ValueError("a number of rows is none")
        found[alias] = Scan(columns, rows)
    return found


# In the process that runs SQL


def prepare_planning(connection: Any) -> None:
    """Let a connection plan as `plan_scans` needs it, and answer no query any more."""
    steps = [name for (name,) in connection.execute("FROM duckdb_optimizers()").fetchall()]
    others = ",".join(name for name in steps if name != _FIND_COLUMNS)
    connection.execute(f"SET disabled_optimizers = '{others if _FIND_COLUMNS in steps else ''}'")
    connection.execute("SET explain_output = 'physical_only'")


def plan_scans(
    connection: Any, sql: str, rows: int, samples: Sequence[tuple[str, pd.DataFrame, Mapping[str, str]]]
) -> dict[str, Any]:
    """Return what a query reads of its frames, by table, as `read_scans` takes it; nothing where it cannot be said.

    Args:
        connection: one of `prepare_planning`.
        sql: a SELECT.
        rows: how many rows of the answer are fetched.
        samples: each frame's table, a few of its rows, and the columns to cast; see `sql_wire.read_casts`.

    Raises:
        duckdb.Error: the query cannot be planned.
    """
    with _tables(connection, samples):
        (_, plan), *_ = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()
        nodes = [node for root in json.loads(plan) for node in _nodes(root)]
        if not all(node.get("children") or node["name"] in _OTHER_SOURCES | {_SCAN} for node in nodes):
            return {}
        most = rows + _offsets(nodes) if _is_row_by_row(nodes) else None
        read = {name for node in nodes if node["name"] == _SCAN for name in _projections(node)}
        return {
            alias: {"columns": _layout(connection.table(alias), at, read), "rows": most}
            for at, (alias, _, _) in enumerate(samples)
        }


def _layout(table: Any, at: int, read: Collection[str]) -> Layout:
    kinds = [
        str(kind) if _column(at, position) not in read and _TYPE.fullmatch(str(kind)) else None
        for position, kind in enumerate(table.types)
    ]
    return list(zip(table.columns, kinds, strict=True)) if any(kinds) else []


@contextmanager
def _tables(
    connection: Any, samples: Sequence[tuple[str, pd.DataFrame, Mapping[str, str]]]
) -> Iterator[None]:
    """Make the tables, over frames whose columns have names by which the plan tells them apart."""
    views = []
    try:
        for at, (alias, frame, casts) in enumerate(samples):
            named = frame.set_axis([_column(at, position) for position in range(frame.shape[1])], axis=1)
            connection.register(f"frame {at}", named)
            columns = ", ".join(
                f"{_cast(_column(at, position), casts.get(name))} AS {quoted(name)}"
                for position, name in enumerate(frame.columns)
            )
            views.append(alias)
            connection.execute(f'CREATE VIEW {quoted(alias)} AS SELECT {columns} FROM "frame {at}"')  # noqa: S608 - quoted
        yield
    finally:
        for at, alias in enumerate(views):
            connection.execute(f"DROP VIEW IF EXISTS {quoted(alias)}")
            connection.unregister(f"frame {at}")


def view_of(alias: str, source: str, layout: Layout, casts: Mapping[str, str]) -> str:
    """Return the statement that makes a table of a frame as it was sent: without the columns that are not read.

    Args:
        alias: the table's name.
        source: the name under which the frame is registered.
        layout: the table's columns; those with a type are not in the frame.
        casts: the columns that were sent as texts, each with its type.
    """
    columns = ", ".join(
        f"{_cast(quoted(name), casts.get(name))} AS {quoted(name)}"
        if kind is None
        else f"NULL::{_plain_type(kind)} AS {quoted(name)}"
        for name, kind in layout
    )
    return f"CREATE VIEW {quoted(alias)} AS SELECT {columns} FROM {quoted(source)}"  # noqa: S608 - quoted


def _cast(column: str, kind: str | None) -> str:
    return column if kind is None else f"CAST({column} AS {_plain_type(kind)})"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain_type(kind: str) -> str:
    if not _TYPE.fullmatch(kind):
        raise ValueError(f"{kind[:100]} is no type")
    return kind


def _column(table: int, position: int) -> str:
    return f"c{table}_{position}"


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in node.get("children") or ():
        yield from _nodes(child)


def _is_row_by_row(nodes: Sequence[Any]) -> bool:
    """Return whether each row of the answer comes of one row of the only scan, in order."""
    *steps, source = nodes
    return source["name"] == _SCAN and all(
        step["name"] in _ROW_BY_ROW and len(step["children"]) == 1 for step in steps
    )


def _offsets(nodes: Sequence[Any]) -> int:
    return sum(int((node.get("extra_info") or {}).get("Offset", 0)) for node in nodes)


def _projections(scan: Any) -> Sequence[str]:
    names = (scan.get("extra_info") or {}).get("Projections", "")
    return [names] if isinstance(names, str) else names
