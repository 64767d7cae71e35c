"""The messages of the data grid: texts that are made to be shown; a column is meant by its position.

Operations of the data grid: windows of a stored table, its figures, one cell whole, the code that gives its rows.

Invariants: an answer has at most 200 rows, 40 columns beside those that name the rows, and 60 characters a cell; a
window of rows as they are stored never loads the table. Loading, sorting and matching run on a thread, once for all
who ask; a request that is given up leaves what it began to the next one.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

from pydantic import Field

from reyn_jupyter.notebook.render.blocks import Cell
from reyn_jupyter.notebook.render.dataframe_view import ColumnStyle, plain_cell, stored_cells, stored_column
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.open_frames import OpenFrames, frames_of
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.outputs.table import frame_table as tables
from reyn_jupyter.outputs.table.held_table import HeldTable
from reyn_jupyter.outputs.table.open_table import OpenedTable
from reyn_jupyter.outputs.table.pandas_code import code_of
from reyn_jupyter.outputs.table.row_filter import RowFilterError
from reyn_jupyter.support.text import count

ROWS = 200
COLUMNS = 40
MOST_RANKED = 2_000


class SortKey(WireMessage):
    """Sort by the column at a position."""

    column: int = Field(ge=0)
    descending: bool = False


class FilterKey(WireMessage):
    """Keep the rows that match. `most` and `least` are at most and at least; `value` is read as the column's values."""

    column: int = Field(ge=0)
    op: Literal["contains", "equals", "differs", "less", "most", "greater", "least", "missing", "present"]
    value: str = Field(default="", max_length=1000)


class OpenFrame(WireMessage):
    blob: str


class FrameColumn(WireMessage):
    """Describe a column. `position` counts all columns, those that name the rows first; these have `header` set."""

    position: int
    name: str
    dtype: str
    right: bool
    header: bool


class OpenedFrame(WireMessage):
    """Describe a table and the columns that its viewer begins with.

    Attributes:
        columns: those that name the rows, and the first of the others.
        width: how many columns there are; `revision` moves when rows were met that have further ones.
        headers: how many of the columns name the rows.
        inferred: no description of the columns is stored; they are those of the rows met so far.
        figures: whether figures of columns may be asked for at once: the table is in memory, or small enough to be.
    """

    rows: int
    width: int
    headers: int
    revision: int
    inferred: bool
    figures: bool
    columns: list[FrameColumn]


class AskRows(WireMessage):
    """Ask for a window; `first_column` and `column_count` choose among the columns that do not name the rows."""

    blob: str
    start: int = Field(default=0, ge=0)
    count: int = Field(default=ROWS, ge=1, le=ROWS)
    first_column: int = Field(default=0, ge=0)
    column_count: int = Field(default=COLUMNS, ge=1, le=COLUMNS)
    sort: list[SortKey] = Field(default_factory=list)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameRows(WireMessage):
    """Carry the cells of a window of rows.

    Attributes:
        total: how many rows match.
        labels: what names each row where no column does; else empty.
        cells: for each row a text for each of `columns`.
        muted: for each row the places of the cells that say that nothing is there.
    """

    start: int
    total: int
    width: int
    revision: int
    columns: list[FrameColumn]
    labels: list[str]
    cells: list[list[str]]
    muted: list[list[int]]


class AskRanks(WireMessage):
    blob: str
    count: int = Field(ge=1, le=MOST_RANKED)


class FrameRanks(WireMessage):
    """Carry the order of the first rows by each of the first columns, for a page that sorts without a kernel.

    Attributes:
        ranks: for each column of a window a number for each row, equal for equal values; -1 for a missing one.
    """

    ranks: list[list[int]]


class AskColumn(WireMessage):
    blob: str
    column: int = Field(ge=0)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameFigures(WireMessage):
    """Summarise a column over the rows that match.

    Attributes:
        facts: (label, value) pairs.
        top: the most frequent values, as (value, how often, share of the widest bar).
        bins: how high each bar of the histogram is, between 0 and 1; `low` and `high` are its ends.
        edges: where the bars begin, and where the last one ends, as a filter takes them.
    """

    name: str
    dtype: str
    facts: list[tuple[str, str]]
    top: list[tuple[str, str, float]]
    bins: list[float]
    low: str
    high: str
    edges: list[str]


class AskCell(WireMessage):
    """Ask for a whole cell; `row` counts the rows that match, in their order."""

    blob: str
    row: int = Field(ge=0)
    column: int = Field(ge=0)
    sort: list[SortKey] = Field(default_factory=list)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameCell(WireMessage):
    """Carry the text of a whole cell; `cut` is True where it is longer still."""

    text: str
    cut: bool


class AskCode(WireMessage):
    blob: str
    sort: list[SortKey] = Field(default_factory=list)
    filter: list[FilterKey] = Field(default_factory=list)


class FrameCode(WireMessage):
    code: str


WHOLE = 64 * 1024  # characters of one cell shown whole
_KEYS = 40  # sort keys and filters of one request


async def open_frame(context: OperationContext, arguments: OpenFrame) -> OpenedFrame:
    """Return rows and columns; the table itself is loaded afterwards, for what needs all of it."""
    frames = frames_of(context)
    opened = await frames.opened(context, arguments.blob)
    columns = _columns(frames, opened, _positions(opened, 0, COLUMNS), context.look)
    frames.prepare(opened)
    return OpenedFrame(
        rows=opened.rows,
        width=len(opened.columns) - opened.headers,
        headers=opened.headers,
        revision=opened.revision,
        inferred=opened.frame_info is None,
        figures=frames.is_light(opened),
        columns=columns,
    )


async def frame_rows(context: OperationContext, arguments: AskRows) -> FrameRows:
    """Return one window."""
    frames = frames_of(context)
    opened = await frames.opened(context, arguments.blob)
    rows = await _matching(context, frames, opened, arguments.sort, arguments.filter)
    total = opened.rows if rows is None else len(rows)
    start = min(arguments.start, total)
    stop = min(total, start + arguments.count)
    chosen = list(range(start, stop)) if rows is None else rows[start:stop].tolist()

    def compute() -> FrameRows:
        return _window(frames, opened, arguments, chosen, total, context.look)

    records = None
    if rows is None and opened.table is None:
        records = await asyncio.to_thread(opened.records, start, stop - start)
        if records is None:
            await frames.loaded(context, opened)
    if records is None:
        return await asyncio.to_thread(compute)
    return _window(frames, opened, arguments, chosen, total, context.look, records)


def _window(
    frames: OpenFrames,
    opened: OpenedTable | HeldTable,
    arguments: AskRows,
    rows: list[int],
    total: int,
    look: Look,
    records: list[dict[str, Any]] | None = None,
) -> FrameRows:
    positions = _positions(opened, arguments.first_column, arguments.column_count)
    columns = []
    for position in positions:
        if records is not None:
            values, specials = opened.cells(position, arguments.start, records)
        else:
            assert opened.table is not None
            values, specials = opened.table.cells(position, rows)
        style = frames.style(opened, position)
        columns.append(stored_cells(values, specials, opened.columns[position].spec, style, look))
    lines: list[tuple[Cell, ...]] = list(zip(*columns, strict=True)) if columns else [() for _ in rows]
    return FrameRows(
        start=arguments.start,
        total=total,
        width=len(opened.columns) - opened.headers,
        revision=opened.revision,
        columns=_columns(frames, opened, positions, look),
        labels=[] if opened.headers else [opened.label(row) for row in rows],
        cells=[[cell.text for cell in line] for line in lines],
        muted=[[place for place, cell in enumerate(line) if cell.tone == "muted"] for line in lines],
    )


def _positions(opened: OpenedTable | HeldTable, first: int, count: int) -> list[int]:
    """Return the columns that name the rows, and a window of the others."""
    headers = opened.headers
    begin = headers + first
    return [*range(headers), *range(begin, min(len(opened.columns), begin + count))]


def _columns(
    frames: OpenFrames, opened: OpenedTable | HeldTable, positions: list[int], look: Look
) -> list[FrameColumn]:
    found = []
    for position in positions:
        drawn = stored_column(opened.columns[position], frames.style(opened, position), look)
        found.append(
            FrameColumn(
                position=position,
                name=drawn.name,
                dtype=drawn.detail,
                right=drawn.right,
                header=position < opened.headers,
            )
        )
    return found


async def _matching(
    context: OperationContext,
    frames: OpenFrames,
    opened: OpenedTable | HeldTable,
    sort: list[SortKey],
    filters: list[FilterKey],
) -> Any:
    """Return the numbers of the rows that match, in order; None for all of them as they are stored."""
    if not sort and not filters:
        return None
    table = await frames.loaded(context, opened)
    wanted = _row_request(opened, sort, filters)
    known = table.find_rows(wanted)
    if known is not None:
        return known
    context.progress(0, 1, "sorting" if sort else "matching")
    try:
        return await asyncio.to_thread(table.matching, wanted)
    except RowFilterError as error:
        raise OperationError(str(error), "Change the filter, or take it away.") from None


def _row_request(
    opened: OpenedTable | HeldTable, sort: list[SortKey], filters: list[FilterKey]
) -> tables.RowRequest:
    if len(sort) + len(filters) > _KEYS:
        raise OperationError(f"{len(sort) + len(filters)} keys and filters at once", f"Take at most {_KEYS}.")
    for column in (*(each.column for each in sort), *(each.column for each in filters)):
        _check_column(opened, column)
    return tables.RowRequest(
        tuple(tables.SortColumn(each.column, each.descending) for each in sort),
        tuple(tables.RowFilter(each.column, each.op, each.value) for each in filters),
    )


def _check_column(opened: OpenedTable | HeldTable, column: int) -> None:
    if column >= len(opened.columns):
        raise OperationError(
            f"there is no column {column}; the table has {len(opened.columns)}", "Open the table again."
        )


async def frame_ranks(context: OperationContext, arguments: AskRanks) -> FrameRanks:
    """Return how the first rows stand to each other in each of the first columns."""
    frames = frames_of(context)
    opened = await frames.opened(context, arguments.blob)
    table = await frames.loaded(context, opened)
    positions = _positions(opened, 0, COLUMNS)
    ranks = await asyncio.to_thread(lambda: [table.ranks(each, arguments.count) for each in positions])
    return FrameRanks(ranks=ranks)


async def frame_column(context: OperationContext, arguments: AskColumn) -> FrameFigures:
    """Return the figures of one column."""
    frames = frames_of(context)
    opened = await frames.opened(context, arguments.blob)
    _check_column(opened, arguments.column)
    wanted = _row_request(opened, [], arguments.filter)
    table = await frames.loaded(context, opened)
    context.progress(0, 1, "counting")
    try:
        found = await asyncio.to_thread(table.figures, arguments.column, wanted.filters)
    except RowFilterError as error:
        raise OperationError(str(error), "Change the filter, or take it away.") from None
    look = context.look
    drawn = stored_column(opened.columns[arguments.column], ColumnStyle(), look)
    facts = [("values", f"{found.count:,}"), ("missing", f"{found.missing:,}")]
    if found.distinct is not None:
        facts.append(("distinct", f"{found.distinct:,}" if found.exact else f"about {found.distinct:,}"))
    facts.extend((label, plain_cell(value, look).text) for label, value in found.marks)
    most = max((number for _, number in found.top), default=1)
    highest = max(found.bins, default=1)
    return FrameFigures(
        name=drawn.name,
        dtype=drawn.detail,
        facts=facts,
        top=[(plain_cell(value, look).text, f"{number:,}", number / most) for value, number in found.top],
        bins=[number / highest for number in found.bins],
        low=plain_cell(found.low, look).text if found.bins else "",
        high=plain_cell(found.high, look).text if found.bins else "",
        edges=[
            repr(edge).removesuffix(".0") if isinstance(edge, float) else str(edge) for edge in found.edges
        ],
    )


async def frame_cell(context: OperationContext, arguments: AskCell) -> FrameCell:
    """Return one cell, as long as it is."""
    frames = frames_of(context)
    opened = await frames.opened(context, arguments.blob)
    _check_column(opened, arguments.column)
    rows = await _matching(context, frames, opened, arguments.sort, arguments.filter)
    total = opened.rows if rows is None else len(rows)
    if arguments.row >= total:
        raise OperationError(f"there is no row {arguments.row}; {count(total, 'row')} match", "")
    row = arguments.row if rows is None else int(rows[arguments.row])
    records = None
    if opened.table is None:
        records = await asyncio.to_thread(opened.records, row, 1)
    if records is not None:
        values, specials = opened.cells(arguments.column, row, records)
    else:
        table = await frames.loaded(context, opened)
        values, specials = table.cells(arguments.column, [row])
    value = values[0]
    if isinstance(value, dict | list):
        text = (
            json.dumps(value, ensure_ascii=False, indent=1)
            if _is_small(value)
            else context.look.compact(value, WHOLE)
        )
    elif isinstance(value, str) and len(value) > 40:
        text = value
    else:
        style = frames.style(opened, arguments.column)
        text = stored_cells(values, specials, opened.columns[arguments.column].spec, style, context.look)[
            0
        ].text
    return FrameCell(text=context.look.text(text, WHOLE), cut=len(text) > WHOLE)


def _is_small(value: Any) -> bool:
    """Return whether writing a value out with one item a line is cheap and cannot go too deep."""
    waiting, seen = [(value, 0)], 0
    while waiting:
        item, depth = waiting.pop()
        seen += 1
        if seen > 20_000 or depth > 100:
            return False
        if isinstance(item, dict | list):
            waiting.extend(
                (inner, depth + 1) for inner in (item.values() if isinstance(item, dict) else item)
            )
        elif isinstance(item, str) and len(item) > WHOLE:
            return False
    return True


async def frame_code(context: OperationContext, arguments: AskCode) -> FrameCode:
    """Return the pandas code that gives the same rows."""
    frames = frames_of(context)
    opened = await frames.opened(context, arguments.blob)
    await _matching(context, frames, opened, arguments.sort, arguments.filter)
    wanted = _row_request(opened, arguments.sort, arguments.filter)
    look = context.look
    return FrameCode(code=code_of(opened, wanted, lambda label: look.text(label, len(label) + 1) == label))


OPERATIONS: tuple[ServedOperation, ...] = (
    ServedOperation("frame.open", OpenFrame, OpenedFrame, open_frame),
    ServedOperation("frame.rows", AskRows, FrameRows, frame_rows),
    ServedOperation("frame.ranks", AskRanks, FrameRanks, frame_ranks),
    ServedOperation("frame.column", AskColumn, FrameFigures, frame_column),
    ServedOperation("frame.cell", AskCell, FrameCell, frame_cell),
    ServedOperation("frame.code", AskCode, FrameCode, frame_code),
)
