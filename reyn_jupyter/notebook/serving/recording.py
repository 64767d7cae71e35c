"""What a view would ask the kernel for, asked beforehand: the answers that an exported page carries.

Invariant: what is recorded went through the same operations as a live view's requests, so it is bounded and redacted
as they are; a page carries a few megabytes at most, and what is not in it the view says in its place.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from reyn_jupyter.notebook.render.page import request_key
from reyn_jupyter.notebook.render.untrusted import Look
from reyn_jupyter.notebook.serving.operation import Asked, OperationError
from reyn_jupyter.notebook.serving.protocol import Live, LiveBlob, LiveDiff, LiveTrace
from reyn_jupyter.notebook.serving.recording_blob import of_blob
from reyn_jupyter.notebook.serving.registry import operations
from reyn_jupyter.runtime.consent import Answer, Question
from reyn_jupyter.sessions.face import Session
from reyn_jupyter.support.secrets import environment_redaction

MOST_BYTES = 4_000_000

Json = dict[str, Any]
Requests = AsyncGenerator[tuple[str, Json], Json | None]


async def recorded(session: Session, live: Live | None, room: int = MOST_BYTES) -> dict[str, Json]:
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
    asked = Asked(session, Look(redact=environment_redaction()), _quiet, _nobody)
    answers: dict[str, Json] = {}
    size = 0
    answer: Json | None = None
    with suppress(StopAsyncIteration):
        while size < room:
            name, arguments = await requests.asend(answer)
            answer = await _answer(asked, name, arguments)
            if answer is not None:
                answers[request_key(name, arguments)] = answer
                size += len(json.dumps(answer, ensure_ascii=False))
    await requests.aclose()
    return answers


async def _answer(asked: Asked, name: str, arguments: Json) -> Json | None:
    """None for what cannot be opened: its view keeps to the snapshot, or says so."""
    operation = operations()[name]
    try:
        value = await operation.run(asked, operation.arguments.model_validate(arguments))
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
