"""What a person can do with an answer: look at its table and its query, take it as code, ask again.

Invariants: a button opens what the record holds, never a second result. Code holds only literals of the record, with
the secrets of the environment taken out; nothing is run by inserting it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from reyn_jupyter.backends.charts.renderer import why_not
from reyn_jupyter.notebook.holes import escape_holes
from reyn_jupyter.notebook.render.blocks import Block, Code, Grid, Toolbar, ToolbarItem
from reyn_jupyter.notebook.render.dataframe_view import ROWS, records_grid
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.record.run_outcome import informs_answer
from reyn_jupyter.runtime.record.script import ScriptError, script_of

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.run_result import RunResult
    from reyn_jupyter.runtime.record.trace import Trace

_CODE = 6000  # characters of code that a card holds
_PROMPT = 4000
_CHART_COLUMNS = 4
_MODEL = re.compile(r"\w[\w./:@+-]*", re.ASCII)  # a label that is one word of a line, and no option of it


def answer_toolbar(trace: Trace, look: Look, *, live: bool = False) -> tuple[Toolbar, ...]:
    """Return the buttons under an answer; none where there is nothing to do with it.

    Args:
        live: the kernel answers, so that a chart can be drawn when it is asked for.
    """
    if trace.started.run_kind not in ("turn", "replay"):  # a trial's data are not here
        return ()
    items = [*_result_items(trace, look, live), *_code_items(trace, look)]
    if not items:
        return ()
    words = ["trace.df is the table"] if any(item.label == "Table" for item in items) else []
    words += ["%reyn script gives the code"] if any(item.label == "Insert as code" for item in items) else []
    return (Toolbar(tuple(items), " · ".join(words)),)


def _result_items(trace: Trace, look: Look, live: bool) -> list[ToolbarItem]:
    """Return the table that the answer rests on, a chart of it, and the query that made it."""
    result = trace.result
    if result is None:
        return []
    items = []
    grid = _first_rows(result, look)
    if grid is not None:
        items.append(ToolbarItem("Table", (grid,), result.finished.blob or ""))
        if live and _may_be_drawn(grid):
            items.append(ToolbarItem("Chart", chart=True))
    if result.sql:
        items.append(ToolbarItem("Query", (Code(look.text(result.sql, _CODE), "SQL"),)))
    return items


def _may_be_drawn(grid: Grid) -> bool:
    """Return whether a chart may suggest itself: a few columns, one of them of numbers. Needs no pandas."""
    narrow = 2 <= len(grid.columns) <= _CHART_COLUMNS and why_not() is None
    return narrow and any(
        row[place].value is not None for row in grid.rows for place in range(len(grid.columns))
    )


def _first_rows(result: RunResult, look: Look) -> Grid | None:
    """Return the first rows of a result; None where it is no table, or is not at hand any more."""
    with suppress(BlobStoreError, TypeError):
        if result.is_table:
            rows, total = result.first_rows(ROWS)
            return records_grid(rows, (total, None), look, "trace.df") if rows else None
    return None


def _code_items(trace: Trace, look: Look) -> list[ToolbarItem]:
    items = []
    if any(informs_answer(call) for call in trace.calls):
        try:
            code = script_of(trace).code
        except ScriptError:
            code = ""
        if code and len(code) <= _CODE:
            items.append(_insertion("Insert as code", look.text(code, _CODE)))
    if trace.model is not None and 0 < len(trace.prompt) <= _PROMPT:
        named = trace.started.real and _MODEL.fullmatch(trace.model) is not None
        options = f" -m {trace.model}" if named else ""
        again = f"%%reyn{options}\n{escape_holes(trace.prompt)}"
        items.append(_insertion("Ask again", look.text(again, 2 * _PROMPT)))
    return items


def _insertion(label: str, code: str) -> ToolbarItem:
    blocks: tuple[Block, ...] = (Code(code.rstrip("\n")),)
    return ToolbarItem(label, blocks, inserts=True)
