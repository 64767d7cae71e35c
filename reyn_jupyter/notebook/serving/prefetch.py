"""The answers that an exported page carries: what its views would ask the kernel for, asked beforehand.

Invariants: what is recorded went through the same operations as a live view's requests, so it is bounded and redacted
as they are; a page carries a few megabytes at most, and what is not in it the view says in its place. Of a blob it is
what the inspector asks while a person looks around in its beginning. A page that holds a part says so in the
inspector's own line, and the counts of its panes are of that part, so that nothing in it leads to rows that are not
there.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from reyn_jupyter.notebook.render.hosts.page import request_key
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.operation import OperationContext, OperationError, operations
from reyn_jupyter.notebook.serving.operations.frame_operations import COLUMNS, ROWS
from reyn_jupyter.notebook.serving.protocol import Live, LiveBlob, LiveDiff, LiveTrace
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.support.secrets import environment_redaction
from reyn_jupyter.support.text import count

MOST_BYTES = 4_000_000

Json = dict[str, Any]
Requests = AsyncGenerator[tuple[str, Json], Json | None]


async def record_answers(session: Session, live: Live | None, room: int = MOST_BYTES) -> dict[str, Json]:
    """The answers to what the view of `live` asks, by `request_key`, in about `room` bytes; none for a view that needs
    a kernel."""
    if isinstance(live, LiveTrace):
        requests = _of_trace(live)
    elif isinstance(live, LiveDiff):
        requests = _of_diff(live)
    elif isinstance(live, LiveBlob):
        requests = of_blob(live)
    else:
        return {}
    context = OperationContext(session, Look(redact=environment_redaction()), _quiet, _nobody)
    answers: dict[str, Json] = {}
    size = 0
    answer: Json | None = None
    with suppress(StopAsyncIteration):
        while size < room:
            name, arguments = await requests.asend(answer)
            answer = await _answer(context, name, arguments)
            if answer is not None:
                answers[request_key(name, arguments)] = answer
                size += len(json.dumps(answer, ensure_ascii=False))
    await requests.aclose()
    return answers


async def _answer(context: OperationContext, name: str, arguments: Json) -> Json | None:
    """None for what cannot be opened: its view keeps to the snapshot, or says so."""
    operation = operations()[name]
    try:
        value = await operation.run(context, operation.arguments.model_validate(arguments))
    except OperationError:
        return None
    made: Json = value.model_dump(mode="json")
    return made


# One function a view: it yields what the view asks, in its order, and is sent each answer.


async def _of_trace(live: LiveTrace) -> Requests:
    opened = yield "trace.open", {"run": live.run}
    for row in (opened or {}).get("steps", ()):
        yield "trace.part", {"run": live.run, "id": row["id"]}


async def _of_diff(live: LiveDiff) -> Requests:
    both = {"a": live.a, "b": live.b}
    compared = yield "trace.diff", both
    for pair in (compared or {}).get("pairs", ()):
        yield "trace.pair", {**both, "id": pair["id"]}


def _quiet(done: float, total: float, note: str = "") -> None:
    return None


async def _nobody(question: Question) -> Answer:
    return "nobody"


WHOLE = 2_000  # rows up to which a table is in the page whole
LINES = 600
_BRANCHES = 100  # children of the root that are in the page with their own children
_CHILDREN = 100  # of one value with many, as the tree asks for them


async def of_blob(live: LiveBlob) -> Requests:
    """The requests, in the order of the view. Answers are changed in place: what is recorded is what they say then."""
    if live.selector:  # a part somewhere inside: its snapshot shows it
        return
    opened = yield "blob.open", {"blob": live.blob, "selector": None}
    if opened is None:
        return
    said: list[str] = []
    for pane in opened["panes"]:
        requests = {"content": _content, "grid": _rows, "tree": _tree, "text": _lines}[pane](live.blob, said)
        answer = None
        async for request in _sent(requests):
            answer = yield request[0], request[1]
            request[2].append(answer)
    if said:
        opened["start"]["note"] = f"This page holds {' and '.join(said)}; the notebook has the rest."


async def _content(blob: str, said: list[str]) -> Requests:
    yield "blob.content", {"blob": blob}


async def _sent(requests: Requests) -> AsyncGenerator[tuple[str, Json, list[Json | None]], None]:
    """Go through requests whose answers come from outside, each put into the list beside it."""
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
    if held > 1:
        yield "frame.ranks", {"blob": blob, "count": held}
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
