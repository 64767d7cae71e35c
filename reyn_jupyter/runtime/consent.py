"""Questions of consent: asked with `input()` in a cell, or queued where no cell waits (background runs, panels).

Invariants: nobody there to answer is an answer of its own, and it means no. A queued question is settled once, by the
first answer, and ends with the call that asks; it may be asked on the engine and answered from any thread. Its
answers, and their words outside the front end, stand in `CHOICES`; the prompt, the gate and the verb read them there.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from reyn_jupyter.support.sanitize import printable

PersonAnswer = Literal["once", "always", "deny"]
Answer = Literal[PersonAnswer, "nobody", "unanswered"]


@dataclass(frozen=True)
class Choice:
    """An answer that a person may give, with its words at the prompt and after the verb.

    Attributes:
        answer: what `ApprovalQueue.answer` takes.
        keys: what is typed for it at the prompt, which shows the first one.
        prompt: its words at the prompt; `{pattern}` stands for the question's pattern.
        verb: its word after `%reyn approvals`.
        reason: what the record says of the call.
        allows: whether the call may run.
        keeps: whether the pattern is allowed from now on; offered only where the question has a pattern.
    """

    answer: PersonAnswer
    keys: tuple[str, ...]
    prompt: str
    verb: str
    reason: str
    allows: bool
    keeps: bool = False


# Three lines that are no answer mean the last one, so it must not allow.
CHOICES = (
    Choice(
        "once",
        ("y", "yes"),
        prompt="once",
        verb="allow",
        reason="allowed once by the person",
        allows=True,
    ),
    Choice(
        "always",
        ("a", "always"),
        prompt="always for {pattern}",
        verb="always",
        reason="always allowed by the person",
        allows=True,
        keeps=True,
    ),
    Choice(
        "deny",
        ("n", "no", ""),
        prompt="no",
        verb="deny",
        reason="the person said no",
        allows=False,
    ),
)


@dataclass(frozen=True)
class Question:
    """A question of consent to one call, as plain text.

    Attributes:
        action: the action's name.
        detail: lines that name the targets and show a bounded diff.
        pattern: what "always" would stand for; None where it cannot be offered.
        run: the run that waits for the answer.
    """

    action: str
    detail: str
    pattern: str | None
    run: str | None = None

    @property
    def heading(self) -> str:
        """Return the question in a few words, for the prompt."""
        return f"Allow {self.action}?"

    @property
    def title(self) -> str:
        """Return the line above the detail."""
        return f"{printable(self.action)} asks for consent to:"

    @property
    def text(self) -> str:
        """Return title and detail, for places that show text alone."""
        return f"{self.title}\n{self.detail}"

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the answers that this question offers, its pattern in their words."""
        return tuple(
            replace(each, prompt=each.prompt.format(pattern=self.pattern))
            for each in CHOICES
            if self.pattern is not None or not each.keeps
        )


def ask_by_input(question: Question) -> Answer:
    """Ask with `input()`, which every front end has; call it on the notebook's thread.

    Returns "nobody" where no one can answer: a headless run, a script without a terminal.
    """
    if not _somebody_there():
        return "nobody"
    sys.stdout.write(question.text.rstrip() + "\n")
    sys.stdout.flush()
    choices = question.choices
    offer = "  ".join(f"[{each.keys[0]}] {each.prompt}" for each in choices)
    for _ in range(3):
        try:
            typed = input(f"{question.heading} {offer}: ").strip().lower()
        except EOFError:
            return "nobody"
        except RuntimeError as error:  # ipykernel: the front end does not support input
            if type(error).__name__ != "StdinNotImplementedError":
                raise
            return "nobody"
        for each in choices:
            if typed in each.keys:
                return each.answer
    return choices[-1].answer


def front_end_there() -> bool:
    """Return whether this is a kernel whose last cell came from a front end that a person sits at."""
    return bool(getattr(_kernel(), "_allow_stdin", False))


def _somebody_there() -> bool:
    if _kernel() is not None:
        return front_end_there()
    return bool(sys.stdin is not None and sys.stdin.isatty())


def _kernel() -> Any:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None)


OPEN = 600.0  # seconds that a question stays open
ARRIVING = 3.0  # seconds after a run's start in which a front end may still connect
_LOOK = 0.05  # seconds between two looks whether one has


class UnknownQuestionError(LookupError):
    """No open question has this id: it was answered, or its run has ended."""


@dataclass(frozen=True)
class OpenQuestion:
    """A question that waits for its answer, asked at `at` (seconds since the epoch)."""

    id: str
    question: Question
    at: float
    settled: Future[Answer] = field(default_factory=Future, repr=False, compare=False)


Listener = Callable[[OpenQuestion, bool], None]


class ApprovalQueue:
    """The open questions of consent of one session.

    Example:
        >>> queue = ApprovalQueue()
        >>> [open_question.question.action for open_question in queue.pending()]
        []
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, OpenQuestion] = {}
        self._listeners: dict[Listener, Callable[[], bool]] = {}

    def listen(self, listener: Listener, shows: Callable[[], bool] = lambda: False) -> None:
        """Tell `listener` of each question that is asked (False) and settled (True), on the engine.

        Args:
            shows: whether it can put a question before a person now.
        """
        self._listeners[listener] = shows

    def forget(self, listener: Listener) -> None:
        self._listeners.pop(listener, None)

    def pending(self, run: str | None = None) -> tuple[OpenQuestion, ...]:
        """Return the open questions, oldest first; those of one run when it is given."""
        with self._lock:
            return tuple(each for each in self._open.values() if run in (None, each.question.run))

    async def ask(self, question: Question, *, since: float = 0.0, waits: bool = False) -> Answer:
        """Put a question, and wait for its answer.

        Args:
            since: when the run began (seconds since the epoch): a front end may be on its way to it.
            waits: it stays open though no front end shows it, for code that calls `answer`.

        Returns:
            The answer; "nobody" where no one can see the question, "unanswered" after ten minutes.
        """
        asked = OpenQuestion(uuid.uuid4().hex[:12], question, time.time())
        with self._lock:
            self._open[asked.id] = asked
        self._tell(asked, False)
        try:
            return await self._answered(asked, since + ARRIVING, waits)
        finally:
            with self._lock:
                self._open.pop(asked.id, None)
            self._tell(asked, True)

    def answer(self, wanted: str, answer: Answer) -> OpenQuestion:
        """Settle a question, named by any unique beginning of its id.

        Raises:
            UnknownQuestionError: it is not open, or more than one is meant.
            ValueError: the answer is none, or is not among the question's choices.
        """
        answers: list[str] = [each.answer for each in CHOICES]
        if answer not in answers:
            raise ValueError(f"{answer!r} is no answer: say {', '.join(answers)}")
        with self._lock:
            found = [each for each in self._open.values() if wanted and each.id.startswith(wanted)]
            if len(found) != 1:
                raise UnknownQuestionError(_unknown(wanted, len(found), len(self._open)))
            question = found[0].question
            offered: list[str] = [each.answer for each in question.choices]
            if answer not in offered:
                raise ValueError(
                    f"no one pattern stands for what {question.action} would do: say {' or '.join(offered)}"
                )
            del self._open[found[0].id]
        try:
            found[0].settled.set_result(answer)
        except InvalidStateError:  # its run has ended just now
            raise UnknownQuestionError(_unknown(wanted, 0, len(self._open))) from None
        return found[0]

    async def _answered(self, asked: OpenQuestion, arriving: float, waits: bool) -> Answer:
        waiting = asyncio.wrap_future(asked.settled)
        try:
            while not (waits or self._shown()):
                if time.time() >= arriving or not front_end_there():
                    return "nobody"
                if (await asyncio.wait([waiting], timeout=_LOOK))[0]:
                    break
            async with asyncio.timeout(OPEN):
                return await waiting
        except TimeoutError:
            return "unanswered"
        finally:
            waiting.cancel()

    def _shown(self) -> bool:
        return any(shows() for shows in list(self._listeners.values()))

    def _tell(self, asked: OpenQuestion, settled: bool) -> None:
        for listener in list(self._listeners):
            with suppress(Exception):  # who looks must not decide what happens to the run
                listener(asked, settled)


def _unknown(wanted: str, found: int, there: int) -> str:
    if found:
        return f"{found} open questions begin with {wanted[:40]!r}; give more of the id"
    return (
        f"no open question has the id {wanted[:40]!r}: it was answered, or its run has ended ({there} open)"
    )


DESK = ApprovalQueue()  # one a process, as there is one person before it
