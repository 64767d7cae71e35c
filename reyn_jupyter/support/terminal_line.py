"""How far something is, on the error stream: in a terminal one line that is drawn again, else a line now and then.

Invariants: what is over soon says nothing; what is no terminal gets whole lines; no control character of what is shown
reaches either. A stream that is missing, closed or broken never ends what goes on.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from reyn_jupyter.support.sanitize import printable, visible
from reyn_jupyter.support.text import shorten

_REDRAW = 0.5  # seconds between two drawings of the one line


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; one that is missing or closed is none."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


class TerminalLine:
    """A place for the state of something that goes on.

    Args:
        stream: where to; the error stream when None.
        clock: seconds, monotonic.
        first: seconds before it says anything.
        every: seconds between two lines where it cannot draw one again.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        first: float = 2.0,
        every: float = 5.0,
    ) -> None:
        self._stream, self._clock, self._every = stream, clock, every
        self._next = clock() + first
        self._drawn = False  # a line stands there without its end
        self.has_spoken = False

    def show(self, state: object, whole: object | None = None) -> None:
        """Show a state, or leave it out where the last one was shown only just now.

        Args:
            whole: the words for it where lines are not drawn again; `state` when None.
        """
        now = self._clock()
        if now < self._next:
            return
        self.has_spoken = True
        if is_terminal(self._out):
            self._next, self._drawn = now + _REDRAW, True
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{shorten(printable(str(state)), width)}")
        else:
            self._next = now + self._every
            self._write(f"{visible(str(state if whole is None else whole))}\n")

    def end(self, last: object | None = None) -> None:
        """Take away the line that is drawn again, and print the last word where anything was said."""
        if self._drawn:
            self._write("\r\x1b[K")
        self._drawn = False
        if last is not None and self.has_spoken:
            self._write(f"{visible(str(last))}\n")

    def _write(self, text: str) -> None:
        if self._out is not None:
            with suppress(OSError, ValueError):
                self._out.write(text)
                self._out.flush()

    @property
    def _out(self) -> TextIO | None:
        return self._stream or sys.stderr
