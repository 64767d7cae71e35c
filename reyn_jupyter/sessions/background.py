"""A run in the background: started, watched and stopped without holding the cell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from reyn_jupyter.runtime.engine import Job
from reyn_jupyter.runtime.trace import Trace
from reyn_jupyter.sessions.options import AskOptions
from reyn_jupyter.sessions.turns import turn
from reyn_jupyter.sessions.wiring import ENGINE, Parts


class BackgroundRun:
    """A turn under way. What would ask the person is denied, and the trace says so.

    Example:
        >>> run = session.start("summarise every file under reports/")      # doctest: +SKIP
        >>> run.done, run.cancel(), run.trace.status                        # doctest: +SKIP
    """

    def __init__(self, job: Job[Trace], prompt: str) -> None:
        self._job = job
        self.prompt = prompt

    @classmethod
    def begin(
        cls, parts: Parts, prompt: str, options: AskOptions, on_event: Callable[[Any], None] | None
    ) -> BackgroundRun:
        try:
            home = asyncio.get_running_loop()
        except RuntimeError:
            home = None
        return cls(ENGINE.start(turn(parts, prompt, options), on_event=on_event, home=home), prompt)

    @property
    def done(self) -> bool:
        return self._job.future.done()

    def cancel(self) -> None:
        """Ask the run to stop; the partial run is kept."""
        self._job.cancel()

    def result(self, timeout: float | None = None) -> Trace:
        """Wait for the trace, at most `timeout` seconds. Raises TimeoutError.

        In a notebook cell the kernel's loop waits too, so functions of the notebook cannot run meanwhile.
        """
        return self._job.future.result(timeout)

    @property
    def trace(self) -> Trace | None:
        """The finished trace, None while it runs."""
        return self._job.future.result() if self._job.future.done() else None

    @property
    def payload(self) -> dict[str, Any]:
        return {"prompt": self.prompt, "done": self.done}
