"""A study's run in its cell: one card, updated in place a few times a second, the summary at the end.

Invariant: the card never slows the run down by more than it takes to draw it, and the summary that the cell returns is
not shown a second time.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.live import shown_already
from reyn_jupyter.notebook.render.display import mimebundle
from reyn_jupyter.support.secrets import environment_redaction

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.progress import Progress, RunSummary

INTERVAL = 0.25  # seconds between two updates


class StudyCard:
    """Shows one run. A terminal has no card that could be updated, so nothing is shown there."""

    def __init__(self) -> None:
        self._id = uuid.uuid4().hex
        self._handle: Any = None
        self._drawn = float("-inf")

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._drawn >= INTERVAL:
            self._drawn = now
            self._show(progress)

    def finish(self, summary: RunSummary) -> None:
        self._show(summary)
        shown_already(summary)

    def _show(self, shown: object) -> None:
        from IPython.display import display

        bundle = mimebundle(shown, redact=environment_redaction())
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=self._id)
        else:
            self._handle.update(bundle, raw=True)


def card_for(shell: Any) -> StudyCard | None:
    """A card where a kernel shows the cell, else None."""
    return StudyCard() if getattr(shell, "kernel", None) is not None else None
