"""The listener of a run that was given none: in a notebook a card in the cell, elsewhere lines in the terminal.

Invariant: what shows things stands above this room, so it registers itself here. Loading the extension does that, and
must stay cheap: this module imports nothing of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.run.progress import Progress, RunSummary


class ProgressListener(Protocol):
    """A listener to one run: each progress, on the thread that called `Study.run`, then the summary."""

    def __call__(self, progress: Progress) -> None: ...
    def finish(self, summary: RunSummary) -> None: ...


_make: Callable[[], ProgressListener | None] | None = None


def watch_with(make: Callable[[], ProgressListener | None] | None) -> None:
    """Register the function that makes the listener of each run that starts from now on; where there is none, or it
    makes none, the terminal listens."""
    global _make
    _make = make


def watcher() -> ProgressListener:
    """Return the listener of a run that begins."""
    made = None if _make is None else _make()
    if made is None:
        from reyn_jupyter.evaluation.run.terminal_progress import TerminalProgress

        made = TerminalProgress()
    return made
