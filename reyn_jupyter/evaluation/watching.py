"""Who watches a run that was given no listener: in a notebook a card in the cell, elsewhere nobody.

What shows things stands above this room, so it registers itself here instead of being imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.progress import Progress, RunSummary


class Watcher(Protocol):
    """Hears of one run: every progress on the thread that called `Study.run`, then how it ended."""

    def __call__(self, progress: Progress) -> None: ...
    def finish(self, summary: RunSummary) -> None: ...


_make: Callable[[], Watcher | None] | None = None


def watch_with(make: Callable[[], Watcher | None] | None) -> None:
    """Let `make` give the watcher of each run that starts from now on; None for nobody."""
    global _make
    _make = make


def watcher() -> Watcher | None:
    """The watcher for a run that begins."""
    return None if _make is None else _make()
