"""Questions of consent and their answers, as plain words.

Invariant: if nobody can answer, that is an answer of its own, and it means no. An answer that is kept is offered only
after everything was shown. All words of a question and of its answers are in `Question` and `CHOICES`; the prompt, the
gate, the verb and every front end read them there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

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
