"""Operations of the data grid: windows of a stored table, its figures, one cell whole, the code that gives its rows.

Invariants: an answer has at most 200 rows, 40 columns beside those that name the rows, and 60 characters a cell; a
window of rows as they are stored never loads the table. Loading, sorting and matching run on a thread, once for all
who ask; a request that is given up leaves what it began to the next one.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from reyn_jupyter.notebook.render import figures
from reyn_jupyter.notebook.render.frames import ColumnStyle, plain_cell, stored_cells, stored_column
from reyn_jupyter.notebook.render.model import Cell
from reyn_jupyter.notebook.render.untrusted import Look
from reyn_jupyter.notebook.serving.frame_messages import (
    COLUMNS,
    AskCell,
    AskCode,
    AskColumn,
    AskRows,
    FilterKey,
    FrameCell,
    FrameCode,
    FrameColumn,
    FrameFigures,
    FrameOpened,
    FrameRows,
    OpenFrame,
    SortKey,
)
from reyn_jupyter.notebook.serving.open_frames import OpenFrames, frames_of
from reyn_jupyter.notebook.serving.operation import Asked, Operation, OperationError
from reyn_jupyter.outputs.tabular import table as tables
from reyn_jupyter.outputs.tabular.code import code_of
from reyn_jupyter.outputs.tabular.matching import FilterError
from reyn_jupyter.outputs.tabular.opened import OpenedTable

WHOLE = 64 * 1024  # characters of one cell shown whole
_KEYS = 40  # sort keys and filters of one request


async def open_frame(asked: Asked, arguments: OpenFrame) -> FrameOpened:
    """Rows and columns; the table itself is loaded afterwards, for what needs all of it."""
    frames = frames_of(asked)
    opened = await frames.opened(asked, arguments.blob)
    columns = _columns(frames, opened, _positions(opened, 0, COLUMNS), asked.look)
    frames.prepare(opened)
    return FrameOpened(
        rows=opened.rows,
        width=len(opened.columns) - opened.headers,
        headers=opened.headers,
        revision=opened.revision,
        inferred=opened.blob.info.frame is None,
        columns=columns,
    )


async def frame_rows(asked: Asked, arguments: AskRows) -> FrameRows:
    """One window."""
    frames = frames_of(asked)
    opened = await frames.opened(asked, arguments.blob)
    rows = await _matching(asked, frames, opened, arguments.sort, arguments.filter)
    total = opened.rows if rows is None else len(rows)
    start = min(arguments.start, total)
    stop = min(total, start + arguments.count)
    chosen = list(range(start, stop)) if rows is None else rows[start:stop].tolist()

    def made() -> FrameRows:
        return _window(frames, opened, arguments, chosen, total, asked.look)

    records = None
    if rows is None and opened.table is None:
        records = await asyncio.to_thread(opened.records, start, stop - start)
        if records is None:
            await frames.loaded(asked, opened)
    if records is None:
        return await asyncio.to_thread(made)
    return _window(frames, opened, arguments, chosen, total, asked.look, records)


def _window(
    frames: OpenFrames,
    opened: OpenedTable,
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


def _positions(opened: OpenedTable, first: int, count: int) -> list[int]:
    """The columns that name the rows, and a window of the others."""
    headers = opened.headers
    begin = headers + first
    return [*range(headers), *range(begin, min(len(opened.columns), begin + count))]


def _columns(frames: OpenFrames, opened: OpenedTable, positions: list[int], look: Look) -> list[FrameColumn]:
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
    asked: Asked, frames: OpenFrames, opened: OpenedTable, sort: list[SortKey], filters: list[FilterKey]
) -> Any:
    """The numbers of the rows that match, in order; None for all of them as they are stored."""
    if not sort and not filters:
        return None
    table = await frames.loaded(asked, opened)
    wanted = _asked(opened, sort, filters)
    known = table.known(wanted)
    if known is not None:
        return known
    asked.progress(0, 1, "sorting" if sort else "matching")
    try:
        return await asyncio.to_thread(table.matching, wanted)
    except FilterError as error:
        raise OperationError(str(error), "Change the filter, or take it away.") from None


def _asked(opened: OpenedTable, sort: list[SortKey], filters: list[FilterKey]) -> tables.Asked:
    if len(sort) + len(filters) > _KEYS:
        raise OperationError(f"{len(sort) + len(filters)} keys and filters at once", f"Take at most {_KEYS}.")
    for column in (*(each.column for each in sort), *(each.column for each in filters)):
        _known(opened, column)
    return tables.Asked(
        tuple(tables.SortKey(each.column, each.descending) for each in sort),
        tuple(tables.Filter(each.column, each.op, each.value) for each in filters),
    )


def _known(opened: OpenedTable, column: int) -> None:
    if column >= len(opened.columns):
        raise OperationError(
            f"there is no column {column}; the table has {len(opened.columns)}", "Open the table again."
        )


async def frame_column(asked: Asked, arguments: AskColumn) -> FrameFigures:
    """The figures of one column."""
    frames = frames_of(asked)
    opened = await frames.opened(asked, arguments.blob)
    _known(opened, arguments.column)
    wanted = _asked(opened, [], arguments.filter)
    table = await frames.loaded(asked, opened)
    asked.progress(0, 1, "counting")
    try:
        found = await asyncio.to_thread(table.figures, arguments.column, wanted.filters)
    except FilterError as error:
        raise OperationError(str(error), "Change the filter, or take it away.") from None
    look = asked.look
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
    )


async def frame_cell(asked: Asked, arguments: AskCell) -> FrameCell:
    """One cell, as long as it is."""
    frames = frames_of(asked)
    opened = await frames.opened(asked, arguments.blob)
    _known(opened, arguments.column)
    rows = await _matching(asked, frames, opened, arguments.sort, arguments.filter)
    total = opened.rows if rows is None else len(rows)
    if arguments.row >= total:
        raise OperationError(f"there is no row {arguments.row}; {figures.count(total, 'row')} match", "")
    row = arguments.row if rows is None else int(rows[arguments.row])
    records = None
    if opened.table is None:
        records = await asyncio.to_thread(opened.records, row, 1)
    if records is not None:
        values, specials = opened.cells(arguments.column, row, records)
    else:
        table = await frames.loaded(asked, opened)
        values, specials = table.cells(arguments.column, [row])
    value = values[0]
    if isinstance(value, dict | list):
        text = (
            json.dumps(value, ensure_ascii=False, indent=1)
            if _is_small(value)
            else asked.look.compact(value, WHOLE)
        )
    elif isinstance(value, str) and len(value) > 40:
        text = value
    else:
        style = frames.style(opened, arguments.column)
        text = stored_cells(values, specials, opened.columns[arguments.column].spec, style, asked.look)[
            0
        ].text
    return FrameCell(text=asked.look.text(text, WHOLE), cut=len(text) > WHOLE)


def _is_small(value: Any) -> bool:
    """Whether writing a value out with one item a line is cheap and cannot go too deep."""
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


async def frame_code(asked: Asked, arguments: AskCode) -> FrameCode:
    """The pandas code that gives the same rows."""
    frames = frames_of(asked)
    opened = await frames.opened(asked, arguments.blob)
    await _matching(asked, frames, opened, arguments.sort, arguments.filter)
    wanted = _asked(opened, arguments.sort, arguments.filter)
    look = asked.look
    return FrameCode(code=code_of(opened, wanted, lambda label: look.text(label, len(label) + 1) == label))


OPERATIONS: tuple[Operation, ...] = (
    Operation("frame.open", OpenFrame, FrameOpened, open_frame),
    Operation("frame.rows", AskRows, FrameRows, frame_rows),
    Operation("frame.column", AskColumn, FrameFigures, frame_column),
    Operation("frame.cell", AskCell, FrameCell, frame_cell),
    Operation("frame.code", AskCode, FrameCode, frame_code),
)
