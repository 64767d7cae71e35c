"""Recorded answers, served again.

A request is found by its key, which covers model, messages, tools, tool choice, parameters and repeat
index. Equal requests recorded several times are served in the order of recording, each once. What is not
there raises, names the part of the request that moved, and never falls through to a model or the network.

Stored results have new ids in every run. A request is found whatever they are, and where a recorded answer names one,
the answer that is served names the one in its place.

A recording is a list of ``ModelRequested`` and ``ModelReplied`` events, so any run log serves as a
cassette, and `export` takes the model events out of one. Requests reach this module redacted; a key that is
left in one is refused, on writing and on reading.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from reyn_jupyter.models.recording import (
    MODEL_EVENTS,
    KeyDetector,
    key_left,
    mend_end,
    read_events,
    reply_event,
    reply_of,
    request_event,
)
from reyn_jupyter.models.seam import Model, ModelError, Request, Response, Tier, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class CassetteRecorder:
    """A model that passes every call on to another one and writes both sides down.

    Args:
        inner: the model that answers.
        path: the file; recordings are added to its end.
        contains_key_shape: tells whether a text holds something that looks like a key.
        clock: the time to note.

    Raises:
        ModelError: kind "configuration" when a request or an answer holds a key: nothing of it is written.
    """

    def __init__(
        self,
        inner: Model,
        path: Path,
        contains_key_shape: KeyDetector,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._inner = inner
        self._path = path
        self._contains_key_shape = contains_key_shape
        self._clock = clock
        self._lock = threading.Lock()
        self._step = 0
        self._last: Request | None = None
        mend_end(path)

    @property
    def label(self) -> str:
        return self._inner.label

    @property
    def tier(self) -> Tier:
        return self._inner.tier

    @property
    def host(self) -> str | None:
        return self._inner.host

    @property
    def real(self) -> bool:
        return self._inner.real

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """The inner model's answer, or its error; either is in the file before it is handed on."""
        asked = self._clock()
        try:
            response = await self._inner.complete(request, on_text)
        except ModelError as error:
            self._write(request, error, asked)
            raise
        self._write(request, response, asked)
        return response

    def _write(self, request: Request, reply: Response | ModelError, asked: float) -> None:
        with self._lock:
            step, now = self._step + 1, self._clock()
            requested = {
                "type": "ModelRequested",
                "step": step,
                "at": asked,
                **request_event(request, self._last),
            }
            replied = {"type": "ModelReplied", "step": step, "at": now, "seconds": now - asked}
            replied |= reply_event(request, reply)
            lines = [json.dumps(event, ensure_ascii=False) for event in (requested, replied)]
            if any(map(self._contains_key_shape, lines)):
                raise key_left(f"the request or the answer of step {step}", "It was not recorded.")
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write("\n".join(lines) + "\n")
            self._step, self._last = step, request


_STORED = re.compile(r"\[blob:([0-9a-f-]{36})\]")


@dataclass(frozen=True)
class _Recorded:
    """A request of the recording: what it was made of, for the diagnosis of a miss, and the stored results in it."""

    model: str
    components: Mapping[str, str]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    stored: tuple[str, ...] = ()


class CassettePlayer:
    """A model that answers from a recording alone.

    `label`, `tier` and `parameters` are those of the recorded model: they are parts of every request's key. `system`
    is the first system prompt of the recording, None when it holds none.

    Args:
        path: a cassette or a run log.
        contains_key_shape: tells whether a text holds something that looks like a key.
        tier: the tier to report where the recording does not name one.

    Raises:
        ModelError: kind "configuration" when the file is missing, is no recording, or has a key in it; kind
            "miss" when a request was not recorded, or not as often as it is asked for.

    Example:
        player = CassettePlayer(Path("mandates.jsonl"), contains_key_shape)
        await player.complete(request)
    """

    def __init__(self, path: Path, contains_key_shape: KeyDetector, tier: Tier = "standard") -> None:
        self._name = path.name
        self._tier: Tier = tier
        self._requests: dict[str, _Recorded] = {}
        self._replies: dict[str, deque[tuple[Response | ModelError, _Recorded]]] = {}
        self._served: dict[str, int] = {}
        self.system: str | None = None
        stored: tuple[str, ...] = ()
        for event in read_events(path, contains_key_shape):
            if event["type"] == "ModelRequested":
                messages = event.get("messages") or ()
                if len(messages) == event.get("total_messages"):
                    stored = ()
                stored = _in_order((*stored, *_stored(messages)))
                self.system = self.system or next(_contents(messages, "system"), None)
                self._requests[event["key"]] = _Recorded(
                    event["model"], event["components"], event.get("parameters") or {}, stored
                )
            elif event["type"] == "ModelReplied":
                recorded = self._requests.get(event["key"]) or _Recorded("", {})
                reply = reply_of(event, recorded.model)
                self._replies.setdefault(event["key"], deque()).append((reply, recorded))
            elif event["type"] == "RunStarted" and event.get("tier") in get_args(Tier):
                self._tier = event["tier"]
        if not self._replies:
            hint = "Give a cassette, or the log of a run that called a model."
            raise ModelError("configuration", f"{path.name} holds no answer of a model.", hint)

    @property
    def label(self) -> str:
        return next((recorded.model for recorded in self._requests.values()), "cassette")

    @property
    def tier(self) -> Tier:
        return self._tier

    @property
    def host(self) -> str | None:
        return None

    @property
    def real(self) -> bool:
        return False

    @property
    def parameters(self) -> Mapping[str, Any]:
        return next((recorded.parameters for recorded in self._requests.values()), {})

    @property
    def remaining(self) -> int:
        """How many answers have not been served yet."""
        return sum(map(len, self._replies.values()))

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """The recorded answer, or the recorded failure; a ModelError of kind "miss" when there is none."""
        replies = self._replies.get(request.key)
        if not replies:
            raise self._miss(request)
        self._served[request.key] = self._served.get(request.key, 0) + 1
        reply, recorded = replies.popleft()
        if isinstance(reply, ModelError):
            raise reply
        reply = _renamed(reply, recorded.stored, _stored(message.wire for message in request.messages))
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    def _miss(self, request: Request) -> ModelError:
        served = self._served.get(request.key, 0)
        if served:
            times = "once" if served == 1 else f"{served} times"
            return ModelError(
                "miss",
                f"{self._name} holds this request {times}, and it was asked for once more.",
                "Record it as often as it is asked for, or give each repeat its own index.",
            )
        wanted = request.components
        nearest = max(
            (recorded.components for recorded in self._requests.values()),
            key=lambda known: sum(known.get(name) == value for name, value in wanted.items()),
            default={},
        )
        moved = [name for name, value in wanted.items() if nearest.get(name) != value]
        same = [name for name in wanted if name not in moved]
        what = f"{_listed(moved)} moved" if moved else "it was asked, but its answer was not recorded"
        rest = f" ({_listed(same)} as recorded)" if moved and same else ""
        return ModelError(
            "miss",
            f"{self._name} has no answer for this request: {what}{rest}.",
            "Record it again, or replay under the settings, model and catalog of the recording.",
        )


def export(log: Path, cassette: Path, contains_key_shape: KeyDetector) -> int:
    """Take the model events of a run log out into a cassette.

    Returns how many events it holds. Raises ModelError as `CassettePlayer` does.
    """
    events = [event for event in read_events(log, contains_key_shape) if event["type"] in MODEL_EVENTS]
    cassette.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
    cassette.write_text(text, encoding="utf-8", errors="backslashreplace")
    return len(events)


def _contents(messages: Iterable[Mapping[str, Any]], role: str) -> Iterator[str]:
    return (str(message.get("content") or "") for message in messages if message.get("role") == role)


def _stored(messages: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The ids of stored results in tool results, in the order of their first place."""
    return _in_order(found for text in _contents(messages, "tool") for found in _STORED.findall(text))


def _in_order(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _renamed(reply: Response, recorded: tuple[str, ...], now: tuple[str, ...]) -> Response:
    """The answer with each recorded id replaced by the one in its place now, counted from the last."""
    names = {old: new for old, new in zip(reversed(recorded), reversed(now), strict=False) if old != new}
    if not names:
        return reply
    pattern = re.compile("|".join(map(re.escape, names)))

    def rename(text: str) -> str:
        return pattern.sub(lambda found: names[found[0]], text)

    calls = tuple(ToolCall(call.id, call.name, rename(call.arguments)) for call in reply.tool_calls)
    return replace(reply, text=rename(reply.text), tool_calls=calls)


def _listed(names: list[str]) -> str:
    """Names as a sentence has them: "a, b and c"."""
    return " and ".join(", ".join(names).rsplit(", ", 1))
