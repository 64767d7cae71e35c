"""Questions of consent: asked with `input()` in a cell, or queued where no cell waits (background runs, panels).

Invariants: nobody there to answer is an answer of its own, and it means no. A queued question is settled once, by the
first answer, and ends with the call that asks; it may be asked on the engine and answered from any thread. What is
kept from an answer is offered only after everything was shown. All words of a question and of its answers stand in
`Question` and `CHOICES`; the prompt, the gate, the verb and every front end read them there.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from reyn_jupyter.runtime.questions.question_detail import DetailLine, QuestionDetail
from reyn_jupyter.support.sanitize import printable, printable_path
from reyn_jupyter.support.text import count, enumerate_words

PersonAnswer = Literal["once", "always", "deny"]
Answer = Literal[PersonAnswer, "nobody", "unanswered"]

PAGE = 100  # lines of a question that are shown at once where it is answered
NAMED = 3  # patterns that a button names; the question lists the targets, and the hint every pattern
EXCERPT = 12  # lines of one on a card or in a list


@dataclass(frozen=True)
class Choice:
    """An answer that a person may give, with all of its words.

    Attributes:
        answer: what `ApprovalQueue.answer` takes.
        keys: what is typed for it at the prompt, which shows the first one.
        prompt: its words at the prompt; in these and the next `{patterns}` stands for the question's patterns, which
            are counted where they are many. The hint names each.
        label: its words on a button.
        hint: what it means, as the button's tooltip.
        outcome: what is said once it was given.
        verb: its word after `%reyn approvals`.
        reason: what the record says of the call.
        allows: whether the call may run.
        keeps: whether the patterns are allowed from now on; offered only where the question has one and hides nothing.
    """

    answer: PersonAnswer
    keys: tuple[str, ...]
    prompt: str
    label: str
    hint: str
    outcome: str
    verb: str
    reason: str
    allows: bool
    keeps: bool = False


# Three lines that are no answer mean the last one: it must not allow.
CHOICES = (
    Choice(
        "once",
        ("y", "yes"),
        prompt="once",
        label="Allow once",
        hint="This call runs; the next one asks again.",
        outcome="Allowed once.",
        verb="allow",
        reason="allowed once by the person",
        allows=True,
    ),
    Choice(
        "always",
        ("a", "always"),
        prompt="always for {patterns}",
        label="Always for {patterns}",
        hint="Every call of {patterns} runs from now on, whatever its content; %reyn approvals takes it back.",
        outcome="Allowed, always.",
        verb="always",
        reason="always allowed by the person",
        allows=True,
        keeps=True,
    ),
    Choice(
        "deny",
        ("n", "no", ""),
        prompt="no",
        label="Deny",
        hint="This call does not run.",
        outcome="Denied.",
        verb="deny",
        reason="the person said no",
        allows=False,
    ),
)
MORE = ("m", "more")  # what is typed at the prompt for the next lines


@dataclass(frozen=True)
class Question:
    """A question of consent to one call, as plain text.

    Attributes:
        action: the action's name.
        detail: the targets and the change or the arguments, whole.
        patterns: what "always" would stand for, one for each target; none where it cannot be offered.
        run: the run that waits for the answer; of an inner run the outermost one.
        callers: the actions that the call is within, the nearest first.
        client: what the MCP or A2A client that asks says of itself; None where the person does.
    """

    action: str
    detail: QuestionDetail
    patterns: tuple[str, ...]
    run: str | None = None
    callers: tuple[str, ...] = ()
    client: str | None = None

    @property
    def heading(self) -> str:
        """Return the question in a few words, for the prompt and the title of a dialog."""
        return f"Allow {printable(self.action)}?"

    @property
    def title(self) -> str:
        """Return the line above the detail."""
        called = f", called by {', '.join(map(printable, self.callers))}," if self.callers else ""
        if self.client is not None:
            called += f"{'' if called else ','} for a client that calls itself “{printable(self.client)}”,"
        return f"{printable(self.action)}{called} asks for consent to:"

    @property
    def region(self) -> str:
        """Return the name of the detail, for who hears a page."""
        return f"What {printable(self.action)} would do"

    @property
    def text(self) -> str:
        """Return title and detail, whole."""
        return "\n".join([self.title, *map(str, self.detail.lines)])

    def excerpt(self, most: int) -> str:
        """Return title and detail up to `most` lines, with a line that counts the rest."""
        rest = len(self.detail.lines) - most
        more = [f"  … {count(rest, 'more line')}"] if rest > 0 else []
        return "\n".join([self.title, *map(str, self.detail.lines[:most]), *more])

    def page(self, start: int, most: int = PAGE) -> tuple[DetailLine, ...]:
        """Return the lines of the detail from `start` (0 is the first) on."""
        return self.detail.lines[max(0, start) : max(0, start) + most]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the answers that are offered once everything was shown, the patterns in their words."""
        kept = bool(self.patterns) and not self.detail.withheld
        return tuple(self._worded(each) for each in CHOICES if kept or not each.keeps)

    def choices_after(self, shown: int) -> tuple[Choice, ...]:
        """Return the answers that are offered when the first `shown` lines were shown."""
        whole = shown >= len(self.detail.lines)
        return tuple(each for each in self.choices if whole or not each.keeps)

    def prompt(self, shown: int) -> str:
        """Return what the prompt says when the first `shown` lines were shown: the answers and their keys."""
        rest = len(self.detail.lines) - shown
        offers = [f"[{MORE[0]}] {count(rest, 'more line')}"] if rest > 0 else []
        offers += [f"[{each.keys[0]}] {each.prompt}" for each in self.choices_after(shown)]
        return f"{self.heading} {'  '.join(offers)}: "

    def _worded(self, choice: Choice) -> Choice:
        named = enumerate_words([printable_path(pattern) for pattern in self.patterns])
        few = named if len(self.patterns) <= NAMED else f"these {len(self.patterns)} targets"
        return replace(
            choice,
            prompt=choice.prompt.replace("{patterns}", few),
            label=choice.label.replace("{patterns}", few),
            hint=choice.hint.replace("{patterns}", named),
        )


class QuestionSheet(Protocol):
    """Where the lines of a question stand that is answered at a prompt."""

    def show(self, question: Question, shown: int, prompt: str) -> None:
        """Show the first `shown` lines, those after them when it is shown again; `prompt` is asked then."""

    def put_away(self) -> None:
        """Take the question off: it is answered, or its run was interrupted."""


class PrintedSheet:
    """Prints a question above its prompt, where it stays."""

    def __init__(self) -> None:
        self._printed = 0

    def show(self, question: Question, shown: int, prompt: str) -> None:
        if not self._printed:
            sys.stdout.write(question.title + "\n")
        lines = question.page(self._printed, shown - self._printed)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._printed = shown

    def put_away(self) -> None:
        return None


_SHEET: ContextVar[Callable[[], QuestionSheet | None] | None] = ContextVar("sheet", default=None)


@contextmanager
def questions_on(sheet: Callable[[], QuestionSheet | None]) -> Iterator[None]:
    """Let the questions that are asked on this thread meanwhile stand on a sheet.

    Args:
        sheet: gives it when a question is asked; None where nobody would see it, so that the question is printed.
    """
    token = _SHEET.set(sheet)
    try:
        yield
    finally:
        _SHEET.reset(token)


def ask_by_input(question: Question) -> Answer:
    """Ask with `input()`, which every front end has; call it on the notebook's thread.

    Returns "nobody" where no one can answer: a headless run, a script without a terminal.
    """
    if not somebody_there():
        return "nobody"
    find = _SHEET.get()
    sheet = (find() if find is not None else None) or PrintedSheet()
    try:
        return _answer_at_prompt(question, sheet)
    finally:
        sheet.put_away()


def _answer_at_prompt(question: Question, sheet: QuestionSheet) -> Answer:
    total = len(question.detail.lines)
    shown, unclear = min(PAGE, total), 0
    while unclear < 3:
        prompt = question.prompt(shown)
        sheet.show(question, shown, prompt)
        typed = _typed(prompt)
        if typed is None:
            return "nobody"
        if shown < total and typed in MORE:
            shown = min(shown + PAGE, total)
            continue
        for each in question.choices_after(shown):
            if typed in each.keys:
                return each.answer
        unclear += 1
    return CHOICES[-1].answer


def _typed(prompt: str) -> str | None:
    """Return what the person typed, in lower case; None where nobody can."""
    try:
        return input(prompt).strip().lower()
    except EOFError:
        return None
    except RuntimeError as error:  # ipykernel: the front end does not support input
        if type(error).__name__ != "StdinNotImplementedError":
            raise
        return None


def front_end_there() -> bool:
    """Return whether this is a kernel whose last cell came from a front end that a person sits at."""
    return bool(getattr(_kernel(), "_allow_stdin", False))


def somebody_there() -> bool:
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
    """A question that waits for its answer.

    Attributes:
        id: 12 hexadecimal digits.
        question: what is asked.
        at: when, in seconds since the epoch.
        read: set once all of it was printed to the person, who may then say "always" by a verb.
        settled: gets the answer.
    """

    id: str
    question: Question
    at: float
    read: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)
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
        """Settle the question of a whole id.

        Raises:
            UnknownQuestionError: it is not open.
            ValueError: the answer is none, or is not among the question's choices.
        """
        answers: list[str] = [each.answer for each in CHOICES]
        if answer not in answers:
            raise ValueError(f"{answer!r} is no answer: say {', '.join(answers)}")
        with self._lock:
            found = self._open.get(wanted)
            if found is None:
                raise UnknownQuestionError(_unknown(wanted, len(self._open)))
            offered: list[str] = [each.answer for each in found.question.choices]
            if answer not in offered:
                raise ValueError(_not_offered(found.question, offered))
            del self._open[wanted]
        try:
            found.settled.set_result(answer)
        except InvalidStateError:  # its run has ended just now
            raise UnknownQuestionError(_unknown(wanted, len(self._open))) from None
        return found

    def find(self, wanted: str) -> OpenQuestion:
        """Return the open question of a whole id. Raises UnknownQuestionError."""
        with self._lock:
            found = self._open.get(wanted)
            if found is None:
                raise UnknownQuestionError(_unknown(wanted, len(self._open)))
        return found

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


def _unknown(wanted: str, there: int) -> str:
    return (
        f"no open question has the id {wanted[:40]!r}: it was answered, its run has ended, or the id is not whole "
        f"({there} open)"
    )


def _not_offered(question: Question, offered: list[str]) -> str:
    if question.detail.withheld:
        return f"{question.detail.withheld[0].rstrip('.')}: say {' or '.join(offered)}"
    return f"no pattern stands for exactly what {question.action} would do: say {' or '.join(offered)}"


DESK = ApprovalQueue()  # one a process, as there is one person before it
