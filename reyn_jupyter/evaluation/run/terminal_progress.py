"""The progress of a run where no notebook shows a card: on the error stream, a line now and then, or in a terminal one
line that is drawn again.

Invariants: a run that is over soon says nothing; what is no terminal gets whole lines without control characters.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.run.progress import Progress, RunSummary

EVERY = 10.0  # seconds between two lines
_REDRAW = 0.5  # seconds between two drawings of the one line


class TerminalProgress:
    """A listener that prints how far a run is, and what came of it once it had printed anything.

    Args:
        stream: where to; the error stream when None.
        clock: seconds, monotonic.
        first: seconds before it says anything.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        first: float = EVERY,
    ) -> None:
        self._stream, self._clock = stream, clock
        self._next = clock() + first
        self._begun = False
        self._drawn = False  # a line stands there without its end

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._begun = True
        if self._out.isatty():
            self._next, self._drawn = now + _REDRAW, True
            width = shutil.get_terminal_size().columns - 1
            self._out.write(f"\r\x1b[K{shorten(repr(progress), width)}")
            self._out.flush()
        else:
            self._next = now + EVERY
            print(progress, file=self._out, flush=True)

    def finish(self, summary: RunSummary) -> None:
        """Print the summary where lines stand before it."""
        self.end()
        if self._begun:
            print(summary, file=self._out, flush=True)

    def end(self) -> None:
        """Take away the line that is drawn again."""
        if self._drawn:
            self._out.write("\r\x1b[K")
            self._out.flush()
        self._drawn = False

    @property
    def _out(self) -> TextIO:
        return self._stream or sys.stderr
