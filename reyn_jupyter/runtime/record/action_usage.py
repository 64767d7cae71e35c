"""Counts of the invocations of actions, with time and duration of the last: for the hot list and the action table.

Invariant: several kernels of a workspace share the file. Each adds its own counts to those in the file, under a lock.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from reyn_jupyter.runtime.record.events import ActionFinished, Event
from reyn_jupyter.support.files.locks import release, wait_for_lock
from reyn_jupyter.support.files.plain_files import PlainFolder, is_moment, parse_json

NAME = "uses.json"
LOCK = "uses.lock"
LOCK_SECONDS = (
    1.0  # longest wait for another kernel that writes; the counts are then written at the next flush
)
LARGEST = 16 << 20  # bytes
INTERVAL = 5.0  # seconds between two writes: a turn must not wait for the disk each time


@dataclass(frozen=True)
class ActionUse:
    """Invocations of one action: count, time of the last one (seconds since the epoch), its duration in seconds."""

    count: int
    last: float
    seconds: float

    def plus(self, other: ActionUse | None) -> ActionUse:
        """Return the invocations of both."""
        if other is None:
            return self
        latest = max(self, other, key=lambda use: use.last)
        return ActionUse(self.count + other.count, latest.last, latest.seconds)


class ActionUsage:
    """Uses by qualified name, kept in one small file of the workspace. Losing it loses no more than an order.

    Args:
        folder: where the file lies; None keeps them in memory alone.

    Attributes:
        problem: why the file was not read, or which of its entries were left out; None when all of it was.
    """

    def __init__(self, folder: PlainFolder | None) -> None:
        self.problem: str | None = None
        self._folder = folder
        self._uses: dict[str, ActionUse] | None = None
        self._written = 0.0
        self._unwritten: dict[str, ActionUse] = {}
        if folder is not None:
            atexit.register(self.flush)

    @property
    def uses(self) -> dict[str, ActionUse]:
        if self._uses is None:
            self._uses = self._read()
        return self._uses

    def record(self, events: Iterable[Event]) -> None:
        """Count the actions that a run invoked."""
        uses = self.uses
        for event in events:
            if (
                isinstance(event, ActionFinished)
                and event.ok
                and event.name is not None
                and event.wrapper != "describe_action"
            ):
                use = ActionUse(1, event.at, event.seconds)
                uses[event.name] = use.plus(uses.get(event.name))
                self._unwritten[event.name] = use.plus(self._unwritten.get(event.name))
        if self._unwritten and time.monotonic() - self._written > INTERVAL:
            self.flush()

    def _read(self) -> dict[str, ActionUse]:
        if self._folder is None:
            return {}
        try:
            raw = parse_json(self._folder.read(NAME, LARGEST))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.problem = f"{NAME} cannot be read: {why}"
            return {}
        if not isinstance(raw, dict):
            self.problem = f"{NAME} cannot be read: it is no JSON object"
            return {}
        read = {name: use for name, given in raw.items() if (use := _use(given)) is not None}
        if len(read) < len(raw):
            self.problem = (
                f"{NAME}: {len(raw) - len(read)} of {len(raw)} entries are no counts; they are left out"
            )
        return read

    def flush(self) -> None:
        """Add the new counts to the file now, if there are any and the workspace still exists."""
        if self._folder is None or not self._unwritten or not self._folder.path.parent.is_dir():
            return
        self._written = time.monotonic()
        with suppress(OSError):
            lock = self._folder.open(LOCK, os.O_RDWR | os.O_CREAT, make=True)
            try:
                if not wait_for_lock(lock, LOCK_SECONDS, required=False):
                    return
                uses = self._read()
                uses |= {name: use.plus(uses.get(name)) for name, use in self._unwritten.items()}
                written = {name: asdict(use) for name, use in uses.items()}
                self._folder.replace(NAME, json.dumps(written).encode())
                self._uses, self._unwritten = uses, {}
            finally:
                release(lock)


def _use(given: Any) -> ActionUse | None:
    """Return a use as the file has it; None for what can be none."""
    if not isinstance(given, dict):
        return None
    count, last, seconds = given.get("count"), given.get("last"), given.get("seconds")
    if isinstance(count, int) and 0 <= count < 1 << 53 and is_moment(last) and is_moment(seconds):
        return ActionUse(count, float(last), float(seconds))
    return None
