"""The open questions of consent of a session, and everybody who shows them.

Invariants: a question belongs to its session, not to a page: whoever connects sees it, and the first answer settles it,
from any thread. It ends with the call that asks. While nobody shows it, it stays open for a limited time, whether a
cell waits for it or a run in the background; then the answer is "unanswered".
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakSet

from reyn_jupyter.config.settings import QUESTION_SECONDS
from reyn_jupyter.runtime.questions.cell_request import cell_request
from reyn_jupyter.runtime.questions.consent import CHOICES, Answer, Question
from reyn_jupyter.runtime.questions.text_prompt import front_end_there, in_kernel

ARRIVAL_SECONDS = 3.0  # in which a page may still connect, since a run began or a cell asked
LOOK_SECONDS = 0.05  # between two looks whether a page shows a question
NOT_ANSWERED = "Not answered, so not allowed."


class UnknownQuestionError(LookupError):
    """No open question has this id: it was answered, or its run has ended."""


@dataclass(frozen=True)
class OpenQuestion:
    """A question that waits for its answer.

    Attributes:
        id: 12 hexadecimal digits.
        question: What is asked.
        at: When, in seconds since the epoch.
        cell: The id of the cell that waits; None if none does, or it is unknown.
        read: Set once all of it was printed to the user, who may then say "always" by a verb.
        settled: Gets the answer.
    """

    id: str
    question: Question
    at: float
    cell: str | None = None
    read: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)
    settled: Future[Answer] = field(default_factory=Future, repr=False, compare=False)

    @property
    def outcome(self) -> str:
        """Return the outcome in a sentence, for pages where it was not answered; "" if it has none (yet)."""
        if not self.settled.done() or self.settled.cancelled():
            return ""
        given = self.settled.result()
        return next((each.outcome for each in CHOICES if each.answer == given), NOT_ANSWERED)


class QuestionViewer(Protocol):
    """Shows questions to users; it is told on the engine."""

    def shows(self, in_cell: bool) -> bool:
        """Return whether it shows questions now, and can answer them (`in_cell`: while a cell runs)."""

    def question_asked(self, waiting: OpenQuestion) -> None: ...
    def question_settled(self, waiting: OpenQuestion) -> None: ...


VIEWERS: list[QuestionViewer] = []
# Front ends, by their own name in the kernel's messages.
PAGES: set[str] = set()  # that have shown questions: if one of them asks and is away, it is expected back
_WITHOUT_PAGE: set[str] = set()  # for which a page was waited for in vain
_queues: WeakSet[ApprovalQueue] = WeakSet()

# Asks at a text prompt: the answer, or None once the question was settled elsewhere.
AtPrompt = Callable[[OpenQuestion], Awaitable[Answer | None]]


class ApprovalQueue:
    """The open questions of consent of one session.

    Args:
        seconds: Gives how long a question stays open while nobody shows it.

    Example:
        >>> queue = ApprovalQueue()
        >>> [open_question.question.action for open_question in queue.pending()]
        []
    """

    def __init__(self, seconds: Callable[[], float] = lambda: QUESTION_SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._open: dict[str, OpenQuestion] = {}
        _queues.add(self)

    def pending(self, run: str | None = None) -> tuple[OpenQuestion, ...]:
        """Return the open questions, oldest first; those of one run when it is given."""
        with self._lock:
            return tuple(each for each in self._open.values() if run in (None, each.question.run))

    async def ask(
        self,
        question: Question,
        *,
        since: float = 0.0,
        waits: bool = False,
        at_prompt: AtPrompt | None = None,
    ) -> Answer:
        """Put a question, and wait for its answer.

        Args:
            since: When the run began (seconds since the epoch): a page may be on its way to it.
            waits: It stays open though nobody shows it, for code that calls `answer`.
            at_prompt: Asks at a text prompt, for a cell that waits and that no page can show.

        Returns:
            The answer; "nobody" if no one can see the question; "unanswered" if nobody showed it for too long.
        """
        cell = cell_request().cell if at_prompt is not None else None
        asked = OpenQuestion(uuid.uuid4().hex[:12], question, time.time(), cell)
        with self._lock:
            self._open[asked.id] = asked
        for viewer in VIEWERS:
            with suppress(Exception):  # who looks must not decide what happens to the run
                viewer.question_asked(asked)
        try:
            answer = await self._answered(asked, since + ARRIVAL_SECONDS, waits, at_prompt)
            with suppress(InvalidStateError):
                asked.settled.set_result(answer)
            return answer
        finally:
            with self._lock:
                self._open.pop(asked.id, None)
            asked.settled.cancel()
            for viewer in VIEWERS:
                with suppress(Exception):
                    viewer.question_settled(asked)

    def answer(self, wanted: str, answer: Answer) -> OpenQuestion:
        """Settle the question of a whole id.

        Raises:
            UnknownQuestionError: It is not open.
            ValueError: The answer is unknown, or is not among the question's choices.
        """
        answers: list[str] = [each.answer for each in CHOICES]
        if answer not in answers:
            raise ValueError(f"unknown answer {answer!r}: say {', '.join(answers)}")
        with self._lock:
            found = self._open.get(wanted)
            if found is None:
                raise _unknown(wanted, len(self._open))
            offered: list[str] = [each.answer for each in found.question.choices]
            if answer not in offered:
                raise ValueError(_not_offered(found.question, offered))
            del self._open[wanted]
        try:
            found.settled.set_result(answer)
        except InvalidStateError:  # its run has ended just now
            raise _unknown(wanted, len(self._open)) from None
        return found

    def find(self, wanted: str) -> OpenQuestion:
        """Return the open question of a whole id. Raises UnknownQuestionError."""
        with self._lock:
            found = self._open.get(wanted)
            if found is None:
                raise _unknown(wanted, len(self._open))
        return found

    async def _answered(
        self, asked: OpenQuestion, arrival: float, waits: bool, at_prompt: AtPrompt | None
    ) -> Answer:
        client = cell_request().client
        # A page that asked and is away now (it is loaded again, or was closed) gets no prompt that it could not show.
        shown_once = waits or (at_prompt is not None and client in PAGES)
        ends = (
            self._seconds() if in_kernel() or at_prompt is None else float("inf")
        )  # a terminal is always there
        alone_since: float | None = None
        prompt: asyncio.Future[Answer | None] | None = None
        waiting = asyncio.wrap_future(asked.settled)
        try:
            while not waiting.done():
                if any(viewer.shows(at_prompt is not None) for viewer in list(VIEWERS)):
                    shown_once, alone_since = True, None
                elif alone_since is None:
                    alone_since = time.monotonic()
                if alone_since is not None and time.monotonic() - alone_since >= ends:
                    return "unanswered"
                if not shown_once and prompt is None and not _may_arrive(arrival, client):
                    if at_prompt is None:
                        return "nobody"
                    prompt = asyncio.ensure_future(at_prompt(asked))
                both: list[asyncio.Future[Any]] = [waiting, *([] if prompt is None else [prompt])]
                await asyncio.wait(both, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if prompt is not None and prompt.done() and not waiting.done():
                    typed = prompt.result()
                    if typed == "nobody":
                        return typed
                    if typed is not None:
                        with suppress(UnknownQuestionError):  # a page was faster
                            self.answer(asked.id, typed)
                    return await waiting
            return waiting.result()
        finally:
            if prompt is not None:
                prompt.cancel()


def all_pending() -> tuple[OpenQuestion, ...]:
    """Return the open questions of all sessions of this process, oldest first."""
    return tuple(
        sorted((each for queue in list(_queues) for each in queue.pending()), key=lambda each: each.at)
    )


def queue_of(wanted: str) -> ApprovalQueue:
    """Return the queue in which the question of a whole id is open. Raises UnknownQuestionError."""
    for queue in list(_queues):
        with suppress(UnknownQuestionError):
            queue.find(wanted)
            return queue
    raise _unknown(wanted, len(all_pending()))


def _may_arrive(arrival: float, client: str) -> bool:
    """Return whether a page may still connect; no front end is waited for twice."""
    if client in _WITHOUT_PAGE or not front_end_there():
        return False
    if time.time() < arrival:
        return True
    if client:
        _WITHOUT_PAGE.add(client)
    return False


def _unknown(wanted: str, there: int) -> UnknownQuestionError:
    return UnknownQuestionError(
        f"no open question has the id {wanted[:40]!r}: it was answered, its run has ended, or the id is not whole "
        f"({there} open)"
    )


def _not_offered(question: Question, offered: list[str]) -> str:
    if question.detail.withheld:
        return f"{question.detail.withheld[0].rstrip('.')}: say {' or '.join(offered)}"
    return f"no pattern stands for exactly what {question.action} would do: say {' or '.join(offered)}"
