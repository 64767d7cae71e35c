"""The listener of an index that is built over records: in a notebook a card in the cell, elsewhere a terminal's line.

Invariant: what shows things stands above this room, so it registers itself here. Loading the extension does that, and
must stay cheap: this module imports nothing of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reyn_jupyter.search.index_state import BuildProgress
    from reyn_jupyter.support.terminal_line import TerminalLine


class BuildListener(Protocol):
    """A listener to one build: each progress, on the thread that builds, then its end, however it ended."""

    def __call__(self, progress: BuildProgress) -> None: ...
    def end(self) -> None: ...


_make: Callable[[], BuildListener | None] | None = None


def listen_with(make: Callable[[], BuildListener | None] | None) -> None:
    """Register the function that makes the listener of each build that starts from now on; where there is none, or it
    makes none, the terminal listens."""
    global _make
    _make = make


def listener() -> BuildListener:
    """Return the listener of a build that begins."""
    made = None if _make is None else _make()
    return _TerminalListener() if made is None else made


class _TerminalListener:
    """Speaks at once in a terminal where the model has to be loaded, else once the build takes its time."""

    def __init__(self) -> None:
        self._line: TerminalLine | None = None

    def __call__(self, progress: BuildProgress) -> None:
        if self._line is None:
            from reyn_jupyter.support.terminal_line import TerminalLine, is_terminal

            self._line = TerminalLine(first=0.0 if progress.doing and is_terminal(sys.stderr) else 2.0)
        self._line.show(f"index: {progress}")

    def end(self) -> None:
        if self._line is not None:
            self._line.end()
