"""The run log: one JSON line an event, handed to the operating system before anything else happens.

Invariant: after a kill at any point the file is a valid partial run. Lines go out whole, in one write, in order;
a torn last line (the machine lost power) is left out on reading. No fsync: a run log must not slow a turn.
A sink that fails (full disk, read-only folder) never stops a run: the events stay in memory and the run says so.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pydantic_core
from pydantic import TypeAdapter, ValidationError

from reyn_jupyter.runtime.record.events import EVENT_TYPES, ActionFinished, ActionProgressed, Event
from reyn_jupyter.support.files.plain_files import PlainFolder, is_moment, parse_json, read_regular
from reyn_jupyter.support.files.replacement import replacement

LARGEST = 256 << 20  # bytes of a run file that is read


class Sink(Protocol):
    """The store of a run's lines. Its methods raise OSError when it can keep no more."""

    def write(self, line: bytes) -> None: ...
    def close(self) -> None: ...


class FileSink:
    """A JSONL file, mode 0600, appended to; made with the first line, never through a link."""

    def __init__(self, folder: PlainFolder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._descriptor: int | None = None

    def write(self, line: bytes) -> None:
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._descriptor = self._folder.open(self._name, flags, make=True)
        written = os.write(self._descriptor, line)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes were written to {self._name}")

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class RunLog:
    """The events of one run, in memory and in its sink.

    Args:
        sink: where the lines go; None keeps the events in memory alone.
        listener: gets each event after it was written (the pump, on its way to a live card).

    Attributes:
        events: the record so far.
        progress: the last word of each call that is under way, by its id; not all of these are in the record.
    """

    def __init__(self, sink: Sink | None, listener: Callable[[Any], None] | None = None) -> None:
        self.events: list[Event] = []
        self.progress: dict[str, ActionProgressed] = {}
        self.problem: str | None = None
        self.listener = listener
        self._sink = sink
        self._closed = False

    def append(self, event: Event) -> None:
        """Record an event, and tell the listener. A log that is closed takes no more: its run is over."""
        if self._closed:
            return
        self.events.append(event)
        if self._sink is not None and self.problem is None:
            try:
                self._sink.write(encode(event))
            except OSError as error:
                self.problem = (
                    f"the run log could not be written ({error.strerror or error}); it is kept in memory only"
                )
        self.tell(event)

    def tell(self, event: Event) -> None:
        """Tell the listener of an event that the record does without."""
        if isinstance(event, ActionProgressed):
            self.progress[event.call] = event
        elif isinstance(event, ActionFinished):
            self.progress.pop(event.call, None)
        if self.listener is not None:
            self.listener(event)

    @property
    def now(self) -> list[Event]:
        """Return the record so far, and after it where the calls under way are."""
        return [*self.events, *list(self.progress.values())]

    def close(self) -> None:
        self._closed = True
        if self._sink is not None:
            self._sink.close()


def encode(event: Event) -> bytes:
    """Return an event as one line of JSON, its type first."""
    try:
        body = pydantic_core.to_json(event)
    except pydantic_core.PydanticSerializationError:
        # Lone surrogates and the like, which a model may put into arguments: escaped instead of refused.
        body = json.dumps(
            dataclasses.asdict(event), default=lambda value: f"<{type(value).__name__}>"
        ).encode()
    return b'{"type":"%s",%s\n' % (type(event).__name__.encode(), body[1:])


def decode(line: bytes | str) -> Event | None:
    """Read one line back and validate it; None for an event of a type that this version does not know.

    Raises:
        ValueError: it is no event, or has a time that is none.
    """
    data = parse_json(line)
    if not isinstance(data, dict):
        raise ValueError("a line of a run log is a JSON object")
    kind = EVENT_TYPES.get(str(data.pop("type", "")))
    if kind is None:
        return None
    event = _adapter(kind.__name__).validate_python(data)
    numbers = (
        getattr(event, name, 0.0)
        for name in ("seconds", "waited", "wait", "cost", "estimated_cost", "done", "total")
    )
    if not is_moment(event.at) or not all(number is None or math.isfinite(number) for number in numbers):
        raise ValueError("a time or an amount of it is no number that can be")
    return event


@cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(EVENT_TYPES[kind])


def write(path: Path, events: Iterable[Event]) -> Path:
    """Write a whole run to a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacement(path) as part:
        part.write_bytes(b"".join(encode(event) for event in events))
    return path


class RunLogError(ValueError):
    """A file that is no run log."""


def read(path: Path) -> Iterator[Event]:
    """Read the events of a run file that somebody named, in order; see `events_of`. Raises OSError, RunLogError."""
    return events_of(read_regular(path, LARGEST), path.name)


def events_of(content: bytes, name: str) -> Iterator[Event]:
    """Read the events of a run, in order. A torn last line is left out.

    Args:
        content: of its file, of that name.

    Raises:
        RunLogError: a line inside the file is no event; says which.
    """
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            event = decode(line)
        except (ValueError, ValidationError) as error:
            if number == len(lines):
                return
            raise RunLogError(
                f"{name}, line {number}: not an event of a run ({type(error).__name__})"
            ) from error
        if event is not None:
            yield event
