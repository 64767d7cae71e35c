"""The progress of a run where no notebook shows a card: on the error stream, see `support.terminal_line`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from reyn_jupyter.support.terminal_line import TerminalLine

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.run.progress import Progress, RunSummary

EVERY = 10.0  # seconds between two lines


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
        self._line = TerminalLine(stream, clock, first, EVERY)

    def __call__(self, progress: Progress) -> None:
        self._line.show(repr(progress), progress)

    def finish(self, summary: RunSummary) -> None:
        """Print the summary where lines stand before it."""
        self._line.end(summary)

    def end(self) -> None:
        """Take away the line that is drawn again."""
        self._line.end()
