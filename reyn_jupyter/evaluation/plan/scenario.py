"""A scenario: what a model is asked, where, and what counts as right.

Invariant: a scenario is plain data. What is expected (`Gold`, `Expected`) is stated in advance and never seen by the
model; a scenario whose gold contradicts itself is refused when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, field_validator, model_validator

from reyn_jupyter.evaluation.plan.validation import Stated


def _one_word(text: str) -> str:
    if any(character.isspace() or not character.isprintable() for character in text):
        raise ValueError(
            f"{text!r:.80} holds a space or a control character; write it as one word, like read-notes-1"
        )
    return text


def _one_line(text: str) -> str:
    if any(character < " " for character in text):
        raise ValueError(f"{text!r:.80} holds a control character; write it as one line")
    return text


Identifier = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_word)]
# An entry may hold spaces: a memory, a record of somebody's tool list.
QualifiedName = Annotated[str, StringConstraints(min_length=1, max_length=1100), AfterValidator(_one_line)]
MAY_BE_LEFT_OUT = ""  # among the accepted values of an argument; the convention of BFCL's labelled calls


class AcceptedCall(Stated):
    """One way to do a needed step: an action, and for each argument the accepted values.

    Attributes:
        action: the qualified name.
        args: argument → accepted values; `""` among them says that it may be left out. An argument that is not named
            here is accepted with any value that the schema allows.
        exact: arguments that are not named here are wrong (the convention of BFCL's labelled calls).

    Example:
        >>> AcceptedCall(action="file__read", args={"path": ("notes.md",), "limit": (20, "")}).action
        'file__read'
    """

    action: QualifiedName
    args: Mapping[str, tuple[JsonValue, ...]] = Field(default_factory=dict)
    exact: bool = False

    @model_validator(mode="after")
    def _something_accepted(self) -> Self:
        for name, accepted in self.args.items():
            if not accepted:
                raise ValueError(
                    f"argument {name!r} of {self.action} accepts no value; list at least one, or leave it out"
                )
        return self

    def play(self, /, **arguments: JsonValue | tuple[JsonValue, ...]) -> tuple[AcceptedCall, AcceptedCall]:
        """Return a step in which the call is complete for an oracle, while a model stays free in these arguments.

        Args:
            arguments: a value each, or a tuple of accepted ones of which the first is played.

        Returns:
            The complete call, and this one; other calls that count stand behind them: ``(*grep.play(…), read)``.

        Example:
            >>> grep = AcceptedCall(action="file__grep")
            >>> Gold(steps=(grep.play(pattern="failed", path="long.log"),)).steps[0][0].args["pattern"]
            ('failed',)
        """
        played = {name: value if isinstance(value, tuple) else (value,) for name, value in arguments.items()}
        complete = type(self)(action=self.action, args={**self.args, **played}, exact=self.exact)
        return complete, self


class Gold(Stated):
    """The contents of a right transcript.

    Attributes:
        steps: the needed steps, each a call, or a tuple of calls of which any one counts. Order does not matter.
        unanswerable: nothing in the catalog fits; right is to invoke nothing and say so.
    """

    steps: tuple[tuple[AcceptedCall, ...], ...] = ()
    unanswerable: bool = False

    @field_validator("steps", mode="before")
    @classmethod
    def _each_a_tuple(cls, steps: Any) -> Any:
        if not isinstance(steps, list | tuple):
            raise ValueError("a tuple of steps is needed: steps=(AcceptedCall(…), …)")
        for step in steps:
            if not isinstance(step, list | tuple | AcceptedCall):
                raise ValueError(
                    f"{step!r:.80} is no step; a step is an AcceptedCall, or a tuple of those that count"
                )
        return tuple((step,) if isinstance(step, AcceptedCall) else step for step in steps)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.unanswerable and self.steps:
            raise ValueError("a scenario that is unanswerable has no gold steps; take one of the two out")
        if any(not step for step in self.steps):
            raise ValueError("a gold step accepts no call; list at least one")
        return self

    @property
    def actions(self) -> frozenset[str]:
        """Every action that counts for some step."""
        return frozenset(call.action for step in self.steps for call in step)


class Expected(Stated):
    """The state of one workspace file when the trial is over.

    Attributes:
        path: relative to the workspace.
        exists: whether the file must be there.
        text: its exact text; None when only parts matter.
        line: all of its text, whatever blank space stands around it: who is asked to write a word may end the line.
        contains, lacks: texts that it must, and must not, contain.
        unchanged: it must hold what the template held.
    """

    path: str = Field(min_length=1)
    exists: bool = True
    text: str | None = None
    line: str | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    unchanged: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        whole = self.text is not None or self.line is not None
        about_text = whole or self.contains or self.lacks or self.unchanged
        if not self.exists and about_text:
            raise ValueError(f"{self.path} must not exist, so nothing can be said of its text")
        return self


class Scenario(Stated):
    """One task, the unit and cluster of every statistic.

    Attributes:
        id: unique in its suite.
        family: what it belongs to in tables ("discover", "edit"); the claim that it tests.
        prompts: phrasings of the same task by name ("explicit", "natural"), in order; repeat r takes the r-th, and
            begins again after the last one.
        catalog: the name of one of the suite's catalogs.
        workspace: path → text of the template that each trial gets a fresh copy of.
        gold: the accepted calls.
        expected: files afterwards; with `says`, the state of the world that `task_done` checks.
        says: texts of which each must stand in the answer (case does not matter); alternatives by "|".
        omits: texts of which none may stand in the answer, for those that are as near as what is right: an answer that
            names every candidate says nothing.
        no_other: actions, by name or with wildcards (``tool__*``), of which no call may work but the accepted ones:
            what is done beside the right thing, where no file shows it afterwards. What a call does within, such as the
            steps of a workflow, counts as well, unless the call itself is accepted. A call that answered with an error
            did nothing, and one more call that is accepted is a matter of how the turn ends.
        setup_error: an error that the first matching action answers once, for scenarios of recovery: {action: message}.
        forecast: the author's probability that a model gets it right, where one was made before the run.
        origin: where it comes from ("written by hand", "BFCL v4 simple_python_95").

    Example:
        >>> Scenario(id="read-1", family="discover", prompts={"natural": "What do the notes say?"}).prompt(3)
        ('natural', 'What do the notes say?')
    """

    id: Identifier
    family: Identifier
    prompts: Mapping[str, str] = Field(min_length=1)
    catalog: Identifier = "standard"
    workspace: Mapping[str, str] = Field(default_factory=dict)
    gold: Gold = Gold()
    expected: tuple[Expected, ...] = ()
    says: tuple[str, ...] = ()
    omits: tuple[str, ...] = ()
    no_other: tuple[QualifiedName, ...] = ()
    setup_error: Mapping[str, str] = Field(default_factory=dict)
    forecast: float | None = Field(default=None, ge=0, le=1)
    origin: str = Field(default="written by hand", min_length=1)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        for name, text in self.prompts.items():
            if not text.strip():
                raise ValueError(f"prompt {name!r} of scenario {self.id!r} says nothing")
        if self.omits and not self.says:
            raise ValueError(f"scenario {self.id!r}: omits narrows what the answer says; give says too")
        return self

    def forbids_other(self, action: str) -> bool:
        """Return whether no call of an action may work but the accepted ones."""
        return any(action == each or ("*" in each and fnmatchcase(action, each)) for each in self.no_other)

    def prompt(self, repeat: int) -> tuple[str, str]:
        """Return the name and the text of the phrasing that repeat `repeat` (from 0) takes."""
        names = tuple(self.prompts)
        name = names[repeat % len(names)]
        return name, self.prompts[name]


Source = Literal["real", "offline", "simulated", "scripted", "replayed"]
