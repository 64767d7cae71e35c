"""Objects of the session, one after the other, in one place of a cell's output.

Invariant: the cell shows one output for all of them; the last one is what the verb returns, and stays silent when the
cell displays it, since it is there already.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, TypeVar

from reyn_jupyter.notebook import live
from reyn_jupyter.notebook.render.display import bundle, view

T = TypeVar("T")


class InPlace:
    """Shows an object in the place of the one before, at most ten times a second.

    Args:
        shell: the IPython shell; without a kernel nothing is shown on the way.
    """

    def __init__(self, shell: Any) -> None:
        self._kernel = getattr(shell, "kernel", None) is not None
        self._handle: Any = None
        self._drawn = float("-inf")

    def show(self, shown: object) -> None:
        """Show it now, or leave it out where the last one was only just drawn."""
        if self._kernel and time.monotonic() - self._drawn >= live.INTERVAL:
            self._draw(shown)

    def last(self, shown: T) -> T:
        """Show what it came to, and give it back."""
        if self._kernel and self._handle is not None:
            self._draw(shown)
            live.shown_already(shown)
        return shown

    def _draw(self, shown: object) -> None:
        from IPython.display import display

        self._drawn = time.monotonic()
        made = bundle(shown, view(shown))
        if self._handle is None:
            self._handle = display(made, raw=True, display_id=uuid.uuid4().hex)
        else:
            self._handle.update(made, raw=True)
