"""The events of a trial as a study's file keeps them: what many trials share is stored once.

Invariant: `unpack_event` gives an event equal to the one that `pack_events` took. Messages, tool definitions and long
outputs are bodies under the SHA-256 of their JSON; an event holds their digests. A system prompt that ten thousand
trials sent is one body.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pydantic_core

from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record import runlog
from reyn_jupyter.runtime.record.events import EVENT_TYPES, ActionFinished, Event, ModelRequested

SHORT = 200  # characters of an output that are kept inside the event
_BODY = "$body"


@dataclass(frozen=True)
class Packed:
    """The events' own JSON, in order, and the bodies that they refer to by digest."""

    events: tuple[bytes, ...]
    bodies: Mapping[bytes, bytes]


def pack_events(events: Iterable[Event]) -> Packed:
    """Take the bodies out of a run's events."""
    bodies: dict[bytes, bytes] = {}

    def store_body(value: Any) -> str:
        body = _json(value)
        digest = hashlib.sha256(body)
        bodies[digest.digest()] = body
        return digest.hexdigest()

    lines = []
    for event in events:
        fields = {name: getattr(event, name) for name in _names(type(event).__name__)}
        if isinstance(event, ModelRequested):
            fields["messages"] = [store_body(message) for message in event.messages]
            if event.tool_specs is not None:
                fields["tool_specs"] = {_BODY: store_body(event.tool_specs)}
        elif isinstance(event, ActionFinished) and len(event.output) > SHORT:
            fields["output"] = {_BODY: store_body(event.output)}
        lines.append(b'{"type":"%s",%s' % (type(event).__name__.encode(), _json(fields)[1:]))
    return Packed(tuple(lines), bodies)


def unpack_event(line: bytes, body: Callable[[str], Any]) -> Event | None:
    """Return one event again; None for one of a type that this version does not know.

    Args:
        line: its JSON.
        body: gives the value of a body by its digest in hex.
    """
    data = json.loads(line)
    if data.get("type") == ModelRequested.__name__:
        data["messages"] = [body(digest) for digest in data["messages"]]
    for name in ("tool_specs", "output"):
        if isinstance(data.get(name), dict):
            data[name] = body(data[name][_BODY])
    return runlog.decode(json.dumps(data))


def facts_text(trial: Trial) -> str:
    """Return a trial's facts as JSON; lone surrogates, which a model may write, are escaped instead of refused."""
    try:
        return trial.model_dump_json()
    except pydantic_core.PydanticSerializationError:
        return json.dumps(trial.model_dump(), default=_plain)


def facts_of(text: str) -> Trial:
    """Return a trial from its facts. Raises ValueError for a text that is none."""
    try:
        return Trial.model_validate_json(text)
    except pydantic_core.ValidationError:  # a lone surrogate, which only the standard library reads
        return Trial.model_validate(json.loads(text))


def message_digests(line: bytes) -> list[str]:
    """Return the digests that an event refers to."""
    data = json.loads(line)
    found = list(data.get("messages", ())) if data.get("type") == ModelRequested.__name__ else []
    return found + [
        data[name][_BODY] for name in ("tool_specs", "output") if isinstance(data.get(name), dict)
    ]


@cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(EVENT_TYPES[kind]))


def _json(value: Any) -> bytes:
    try:
        return pydantic_core.to_json(value)
    except pydantic_core.PydanticSerializationError:
        # Lone surrogates and the like, which a model may put into arguments: escaped instead of refused.
        return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> Any:
    return (
        dataclasses.asdict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else str(value)
    )
