"""Reading that somebody waits for: it tells how far it is, and stops when nobody waits any more.

Invariant: whoever reads through a `WatchedSource` needs to know nothing of it; stopping is an exception out of the
next read.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

from reyn_jupyter.outputs.byte_source import ByteSource

_AFTER, _EVERY = 0.2, 0.1  # seconds until the first word, and between two


class ReadListener(Protocol):
    """Hears of how much of how much is done; called from the reading thread."""

    def __call__(self, done: float, total: float, note: str = "") -> None: ...


class StoppedError(Exception):
    """Nobody waits for this reading any more."""


class Watch:
    """One piece of work under way in a thread."""

    def __init__(self, listener: ReadListener, note: str) -> None:
        self._listener = listener
        self._note = note
        self._stopped = threading.Event()
        self._next = time.monotonic() + _AFTER

    def stop(self) -> None:
        """Let the next read raise StoppedError; safe from any thread, and more than once."""
        self._stopped.set()

    def reached(self, done: int, total: int) -> None:
        """Raises StoppedError when nobody waits."""
        if self._stopped.is_set():
            raise StoppedError
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY
            self._listener(min(done, total), total, self._note)


class WatchedSource:
    """A source under a watch."""

    def __init__(self, inner: ByteSource, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch
        self.size = inner.size

    def read(self, offset: int, length: int) -> bytes:
        self._watch.reached(offset, self.size)
        return self._inner.read(offset, length)

    def close(self) -> None:
        self._inner.close()
