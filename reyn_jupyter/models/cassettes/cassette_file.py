"""The file of a recording: one JSON object a line, its event's name under ``type``; written, and read again.

Invariants: a request and its answer are two whole lines, next to each other, in the order in which answers came,
however many conversations are recorded at once; nothing in which a key is left is written or read. What is read is
checked line by line before anything is made of it: a last line that a crash tore off is left out, and any other line
that is no event makes the file no recording.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, get_args
from weakref import WeakValueDictionary

from reyn_jupyter.models.base import ErrorKind, ModelError, Reasoning, Request, Response, ToolCall, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel


_OPEN: WeakValueDictionary[Path, CassetteFile] = WeakValueDictionary()
_LAST: deque[CassetteFile] = deque(
    maxlen=8
)  # kept beyond their recorders: one for each trial would read the file again
_OPENING = threading.Lock()


class CassetteFile:
    """Appends to one recording. Get it by `CassetteFile.of`, so that two recorders of a file share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._step = 0
        self._tools: set[bytes] = set()
        self._size = -1

    @classmethod
    def of(cls, path: Path) -> CassetteFile:
        """The tape of a path in this process."""
        with _OPENING:
            resolved = path.resolve()
            tape = _OPEN.get(resolved)
            if tape is None:
                tape = _OPEN[resolved] = cls(path)
            if tape not in _LAST:
                _LAST.append(tape)
            return tape

    def write(
        self,
        request: Request,
        reply: Response | ModelError,
        *,
        last: Request | None,
        conversation: str | None,
        times: tuple[float, float],
        contains_key_shape: KeyDetector,
    ) -> None:
        """Write a request and its answer down.

        Args:
            last: the request before it in its conversation, None for the first.
            conversation: which one it is, None in a file that holds one.
            times: when it was asked and answered.

        Raises:
            ModelError: kind "configuration", when one of the two holds a key.
        """
        with self._lock:
            if self._begins_anew():
                last = None
            step, (asked, now) = self._step + 1, times
            requested: dict[str, Any] = {"type": "ModelRequested", "step": step, "at": asked}
            requested |= request_event(request, last, tools_known=request.tools.digest in self._tools)
            if conversation is not None:
                requested["conversation"] = conversation
            replied = {"type": "ModelReplied", "step": step, "at": now, "seconds": now - asked}
            replied |= reply_event(request, reply)
            lines = [json.dumps(event, ensure_ascii=False) for event in (requested, replied)]
            if any(map(contains_key_shape, lines)):
                raise key_left(f"the request or the answer of step {step}", "It was not recorded.")
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write("\n".join(lines) + "\n")
                file.flush()
                self._size = file.tell()
            self._step = step
            self._tools.add(request.tools.digest)

    def _begins_anew(self) -> bool:
        """Return whether the file is not as it was left: another one, one that a crash cut short, or none."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == self._size:
            return False
        self._path.parent.mkdir(parents=True, exist_ok=True)
        mend_end(self._path)
        self._step = 0
        self._tools.clear()
        return True


KeyDetector = Callable[[str], bool]
MODEL_EVENTS = ("ModelRequested", "ModelReplied")
_KINDS: tuple[str, ...] = get_args(ErrorKind)


def read_events(path: Path, contains_key_shape: KeyDetector) -> Iterator[dict[str, Any]]:
    """The events of a recording or run log, in order; the model's are checked, others passed on as they are.

    Raises ModelError, kind "configuration", when the file is no recording, cannot be read or has a key in it.
    """
    torn: int | None = None
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if torn is not None:
                    raise _no_recording(path, torn, "is no JSON object")
                if contains_key_shape(line):
                    where = f"{path.name}, line {number}"
                    raise key_left(where, "Take it out, or record again with redaction on.")
                event = _json_object(line)
                if event is None:
                    torn = number
                else:
                    yield _checked(event, path, number)
    except (OSError, UnicodeDecodeError) as error:
        hint = "Give the path of a cassette or a run log."
        raise ModelError("configuration", f"The recording {path} cannot be read: {error}.", hint) from error


def request_event(request: Request, last: Request | None, *, tools_known: bool) -> dict[str, Any]:
    """Return what ``ModelRequested`` says of a request.

    It holds only what is new since `last`, the request before it in the same conversation, so that a long conversation
    stays a short file; with `tools_known` the tools stand earlier in the file, and are found by their hash.
    """
    shared = len(last.messages) if last is not None else 0
    if last is not None and request.messages[:shared] != last.messages:
        shared = 0
    return {
        "key": request.key,
        "components": request.components,
        "model": request.model,
        "messages": [message.wire for message in request.messages[shared:]],
        "total_messages": len(request.messages),
        "tools": list(request.tools.names),
        "tool_specs": None if tools_known else list(request.tools.specs),
        "tool_choice": request.tool_choice,
        "parameters": dict(request.parameters),
        "repeat": request.repeat,
        **({} if request.context is None else {"context": request.context}),
    }


def reply_event(request: Request, reply: Response | ModelError) -> dict[str, Any]:
    """Return what ``ModelReplied`` says of an answer or a failure."""
    if isinstance(reply, ModelError):
        return {
            "key": request.key,
            "finish_reason": "error",
            "error": reply.message,
            "error_kind": reply.kind,
        }
    return {
        "key": request.key,
        "text": reply.text,
        "tool_calls": [asdict(each) for each in reply.tool_calls],
        "finish_reason": reply.finish_reason,
        **asdict(reply.usage),
        "cost": reply.cost,
        "fingerprint": reply.fingerprint,
        "reasoning": reply.reasoning.text,
    }


def reply_of(event: dict[str, Any], model: str) -> Response | ModelError:
    """The answer or the failure that a checked ``ModelReplied`` records."""
    if event["error"] is not None:
        kind: Any = event["error_kind"] if event["error_kind"] in _KINDS else "unavailable"
        return ModelError(kind, event["error"], "This failure was recorded, and is served as it was.")
    figures = {
        name: event[name]
        for name in (
            "prompt_tokens", "completion_tokens", "cached_tokens", "estimated", "reasoning_tokens",
            "cache_write_tokens",
        )
    }  # fmt: skip
    return Response(
        text=event["text"],
        tool_calls=tuple(ToolCall(**each) for each in event["tool_calls"]),
        finish_reason=event["finish_reason"],
        usage=Usage(**figures),
        cost=event["cost"],
        model=model,
        fingerprint=event["fingerprint"],
        reasoning=Reasoning(event["reasoning"]),
    )


def mend_end(path: Path) -> None:
    """See that the next line written begins on a line of its own: what a crash tore off is cut away."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        content = file.read()
        begin = content.rfind(b"\n") + 1
        last = content[begin:]
        if last and _json_object(last.decode("utf-8", "replace")) is not None:
            file.write(b"\n")
        else:
            file.truncate(begin)


def key_left(where: str, hint: str) -> ModelError:
    """The error for a text in which something that looks like a key is left."""
    return ModelError("configuration", f"There is something that looks like a key in {where}.", hint)


def _json_object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _checked(event: dict[str, Any], path: Path, number: int) -> dict[str, Any]:
    from pydantic import ValidationError

    kind = event.get("type")
    if not isinstance(kind, str):
        raise _no_recording(path, number, "names no event type")
    shape = _shapes().get(kind)
    if shape is None:
        return event
    try:
        return {"type": kind, **shape.model_validate(event).model_dump()}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _no_recording(path, number, f"is a wrong {kind} ({where}: {first['msg']})") from None


@cache
def _shapes() -> dict[str, type[BaseModel]]:
    """Return what the model's events must look like. Made on first use: importing the module costs nothing."""
    from pydantic import BaseModel, ConfigDict, Field

    class Shape(BaseModel):
        model_config = ConfigDict(strict=True)

    class Requested(Shape):
        model_config = ConfigDict(extra="allow")
        key: str
        components: dict[str, str]
        model: str

    class CallShape(Shape):
        id: str
        name: str
        arguments: str

    class Replied(Shape):
        model_config = ConfigDict(extra="allow")
        key: str
        text: str = ""
        tool_calls: tuple[CallShape, ...] = Field(default=(), strict=False)
        finish_reason: str = "stop"
        prompt_tokens: int = 0
        completion_tokens: int = 0
        cached_tokens: int = 0
        estimated: bool = False
        reasoning: str = ""
        reasoning_tokens: int = 0
        cache_write_tokens: int = 0
        cost: float | None = None
        fingerprint: str | None = None
        error: str | None = None
        error_kind: str | None = None

    return {"ModelRequested": Requested, "ModelReplied": Replied}


def _no_recording(path: Path, number: int, what: str) -> ModelError:
    hint = "Give a cassette or the log of a run."
    return ModelError("configuration", f"{path.name} is no recording: line {number} {what}.", hint)
