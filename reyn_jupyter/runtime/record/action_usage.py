"""Counts of the invocations of actions, with time and duration of the last: for the hot list and the action table."""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from reyn_jupyter.runtime.record.events import ActionFinished, Event

INTERVAL = 5.0  # seconds between two writes: a turn must not wait for the disk each time


@dataclass(frozen=True)
class ActionUse:
    """Invocations of one action: count, time of the last one (seconds since the epoch), its duration in seconds."""

    count: int
    last: float
    seconds: float


class ActionUsage:
    """Uses by qualified name, kept in one small file of the workspace. Losing it loses no more than an order."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._uses: dict[str, ActionUse] | None = None
        self._written = 0.0
        self._changed = False
        if path is not None:
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
                before = uses.get(event.name)
                uses[event.name] = ActionUse((before.count if before else 0) + 1, event.at, event.seconds)
                self._changed = True
        if self._changed and time.monotonic() - self._written > INTERVAL:
            self.flush()

    def _read(self) -> dict[str, ActionUse]:
        if self._path is None:
            return {}
        try:
            raw = json.loads(self._path.read_text("utf-8"))
            return {
                str(name): ActionUse(int(u["count"]), float(u["last"]), float(u["seconds"]))
                for name, u in raw.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def flush(self) -> None:
        """Write the file now, if there is something new, and its folder is still there."""
        if self._path is None or self._uses is None or not self._changed:
            return
        if not self._path.parent.parent.is_dir():
            return
        self._written, self._changed = time.monotonic(), False
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({name: asdict(use) for name, use in self._uses.items()}), "utf-8")
            temporary.replace(self._path)
        except OSError:
            return
