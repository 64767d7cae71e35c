"""A run in the background: started, watched, asked about and stopped without holding the cell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.runtime.engine import also_tell, running_loop
from reyn_jupyter.runtime.pump import Job
from reyn_jupyter.runtime.questions.approval_queue import ApprovalQueue, OpenQuestion, UnknownQuestionError
from reyn_jupyter.runtime.questions.consent import Answer
from reyn_jupyter.runtime.record.events import Event, InnerEvent
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import new_run_id
from reyn_jupyter.sessions.assembly import ENGINE, Parts
from reyn_jupyter.sessions.runs.run_lifecycle import turn
from reyn_jupyter.sessions.runs.turn_options import TurnOptions

INTERVAL = 0.25  # seconds between two words to a watcher about one run
KEPT = 50  # runs that a session remembers after their end

Watcher = Callable[[str, bool], None]
WATCHERS: list[Watcher] = []  # told on the engine: (run id, whether it has ended)


class BackgroundRun:
    """A turn under way.

    What needs consent is asked where a front end shows it; with nobody there it is denied, and the trace says so.

    Example:
        >>> run = session.start("summarise every file under reports/")      # doctest: +SKIP
        >>> run.done, run.cancel(), run.trace.status                        # doctest: +SKIP
    """

    def __init__(self, job: Job[Trace], prompt: str, run_id: str, questions: ApprovalQueue) -> None:
        self._job = job
        self._questions = questions
        self.prompt = prompt
        self.run_id = run_id

    @classmethod
    def begin(
        cls,
        parts: Parts,
        prompt: str,
        options: TurnOptions,
        on_event: Callable[[Any], None] | None,
        waits: bool = False,
        home: asyncio.AbstractEventLoop | None = None,
    ) -> BackgroundRun:
        home = home or running_loop()
        run = options.run or new_run_id()
        ask = options.ask or partial(parts.questions.ask, since=time.time(), waits=waits)
        chosen = options.model_copy(update={"run": run, "ask": ask})
        job = ENGINE.start(watched_turn(parts, prompt, chosen), on_event=on_event, home=home)
        return cls(job, prompt, run, parts.questions)

    @property
    def done(self) -> bool:
        return self._job.future.done()

    @property
    def pending(self) -> tuple[OpenQuestion, ...]:
        """Return the questions about consent that wait for an answer."""
        return self._questions.pending(self.run_id)

    def answer(self, question: str, answer: Answer) -> None:
        """Answer one of `pending` by its whole id, with one of its `question.choices`.

        Raises:
            UnknownQuestionError: none of this run's open questions has the id.
            ValueError: no such answer.
        """
        if question not in [each.id for each in self.pending]:
            raise UnknownQuestionError(f"this run has no open question {question[:40]!r}; see .pending")
        self._questions.answer(question, answer)

    def cancel(self) -> None:
        """Ask the run to stop; the partial run is kept."""
        self._job.cancel()

    def when_done(self, tell: Callable[[], object]) -> None:
        """Call `tell` once the run is done, from whichever thread that is; now if it is."""
        self._job.future.add_done_callback(lambda _: tell())

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
        return {"run": self.run_id, "prompt": self.prompt, "done": self.done}


async def watched_turn(
    parts: Parts, prompt: str, options: TurnOptions, *, conversation: Conversation | None = None
) -> Trace:
    """Run a turn, and tell its watchers when its record grows and when it has ended; the options name its run."""
    assert options.run is not None
    told = _Reports(options.run)
    also_tell(told)
    try:
        return await turn(parts, prompt, options, conversation=conversation)
    finally:
        told.end()


class _Reports:
    """Tells the watchers of a run's events, at most four times a second."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._last = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, event: object) -> None:
        if not isinstance(event, Event | InnerEvent) or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(max(loop.time(), self._last + INTERVAL), self._tell)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for watcher in WATCHERS:
            watcher(self._run, True)

    def _tell(self) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        for watcher in WATCHERS:
            watcher(self._run, False)
