"""What the inspector of a blob asks while a person looks around in its beginning, for an exported page.

Invariant: a page that holds a part says so in the inspector's own line, and the counts of its panes are of that part,
so that nothing in it leads to rows that are not there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from reyn_jupyter.notebook.render.figures import count
from reyn_jupyter.notebook.serving.frame_messages import COLUMNS, ROWS
from reyn_jupyter.notebook.serving.protocol import LiveBlob

WHOLE = 2_000  # rows up to which a table is in the page whole
LINES = 600
_BRANCHES = 100  # children of the root that are in the page with their own children
_CHILDREN = 100  # of one value with many, as the tree asks for them

Json = dict[str, Any]
Requests = AsyncGenerator[tuple[str, Json], Json | None]


async def of_blob(live: LiveBlob) -> Requests:
    """The requests, in the order of the view. Answers are changed in place: what is recorded is what they say then."""
    if live.selector:  # a part somewhere inside: its snapshot shows it
        return
    opened = yield "blob.open", {"blob": live.blob, "selector": None}
    if opened is None:
        return
    said: list[str] = []
    for pane in opened["panes"]:
        requests = {"grid": _rows, "tree": _tree, "text": _lines}[pane](live.blob, said)
        answer = None
        async for request in _sent(requests):
            answer = yield request[0], request[1]
            request[2].append(answer)
    if said:
        opened["start"]["note"] = f"This page holds {' and '.join(said)}; the notebook has the rest."


async def _sent(requests: Requests) -> AsyncGenerator[tuple[str, Json, list[Json | None]], None]:
    """Goes through requests whose answers come from outside, each put into the list beside it."""
    answer: Json | None = None
    while True:
        try:
            name, arguments = await requests.asend(answer)
        except StopAsyncIteration:
            return
        back: list[Json | None] = []
        yield name, arguments, back
        answer = back[0] if back else None


async def _rows(blob: str, said: list[str]) -> Requests:
    opened = yield "frame.open", {"blob": blob}
    if opened is None:
        return
    total = opened["rows"]
    held = total if total <= WHOLE else ROWS
    columns = {"first_column": 0, "column_count": COLUMNS}
    for start in range(0, max(1, held), ROWS):
        rows = yield (
            "frame.rows",
            {"blob": blob, "sort": [], "filter": [], **columns, "start": start, "count": ROWS},
        )
        if rows is not None:
            rows["total"] = held
    if held < total:
        said.append(f"the first {held:,} of {count(total, 'row')}")
    if opened["width"] > COLUMNS:
        said.append(f"the first {COLUMNS} of {count(opened['width'], 'column')}")


async def _tree(blob: str, said: list[str]) -> Requests:
    root = yield "tree.children", {"blob": blob, "path": [], "place": None, "offset": 0, "limit": 1}
    if root is None:
        return
    page = yield "tree.children", _children(blob, root["value"])
    for child in (page or {}).get("children", ())[:_BRANCHES]:
        if child["count"]:
            yield "tree.children", _children(blob, child)


def _children(blob: str, value: Json) -> Json:
    number = value["count"] or 1
    limit = number if number <= 2 * _CHILDREN else _CHILDREN
    return {"blob": blob, "path": [], "place": value["place"], "offset": 0, "limit": limit}


async def _lines(blob: str, said: list[str]) -> Requests:
    for first in range(1, LINES, ROWS):
        window = yield "lines.window", {"blob": blob, "first": first, "count": ROWS}
        if window is None:
            return
        total = window["total"]
        window["total"] = min(total, LINES)
        if first + ROWS > total:
            return
    said.append(f"the first {LINES} of {count(total, 'line')}")
