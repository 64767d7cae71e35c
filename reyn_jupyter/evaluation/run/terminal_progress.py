"""The progress of a run where no notebook shows a card: a line now and then on the error stream.

Invariant: a run that is over soon says nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.run.progress import Progress, RunSummary

EVERY = 10.0  # seconds between two lines


class TerminalProgress:
    """A listener that prints how far a run is, and what came of it once it had printed anything.

    Args:
        stream: where to; the error stream when None.
        clock: seconds, monotonic.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._printed = clock()
        self._begun = False

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._printed >= EVERY:
            self._printed, self._begun = now, True
            self._print(progress)

    def finish(self, summary: RunSummary) -> None:
        """Print the summary where lines stand before it."""
        if self._begun:
            self._print(summary)

    def _print(self, said: object) -> None:
        print(said, file=self._stream or sys.stderr, flush=True)
