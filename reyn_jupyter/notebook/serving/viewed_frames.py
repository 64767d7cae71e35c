"""The frames in memory that views of this kernel show.

Invariant: at most a few are held, and of these as many bytes as fit a bound, the ones opened last; a view of another
one is told that it is gone. A view's id is random, so that a page names only what it was given.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from threading import Lock

from reyn_jupyter.outputs.table.held_table import HeldTable
from reyn_jupyter.sessions.result_objects import FrameView

PREFIX = "frame:"  # of ids, which no blob has
_MOST = 8
_BYTES = 4_000_000_000  # of all together, the last one excepted


class ViewedFrames:
    """The frames that views show. Safe from any thread."""

    def __init__(self, most: int = _MOST, size: int = _BYTES) -> None:
        self._most = most
        self._size = size
        self._held: OrderedDict[str, HeldTable] = OrderedDict()
        self._lock = Lock()

    def hold(self, view: FrameView) -> str:
        """Hold the frame of a view, and return its id."""
        with self._lock:
            known = next((held for held in self._held.values() if held.shown is view), None)
        found = known or HeldTable(f"{PREFIX}{uuid.uuid4().hex}", view.frame, view.name or None, view)
        with self._lock:
            self._held[found.id] = found
            self._held.move_to_end(found.id)
            self._shrink()
        return found.id

    def find(self, frame_id: str) -> HeldTable | None:
        """Return the table of an id; None where it is held no longer."""
        with self._lock:
            return self._held.get(frame_id)

    def _shrink(self) -> None:
        size = 0
        for place, (frame_id, held) in enumerate(reversed(list(self._held.items()))):
            size += held.size
            if place and (place >= self._most or size > self._size):
                del self._held[frame_id]


VIEWED = ViewedFrames()
