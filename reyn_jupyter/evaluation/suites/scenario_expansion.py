"""Scenarios as people write them, and the `Scenario` that each of them means.

Invariant: every short form has one meaning. A step of the gold is a mapping from accepted actions to accepted
arguments; `play` completes the first of them, so that every scenario can be carried out as it stands, while a model
stays free in what `play` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, JsonValue

from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Expected, Gold, Scenario
from reyn_jupyter.evaluation.suites.templates import Edit, FileText, Note, Written, apply_edits, template

EDIT, WRITE = "file__edit", "file__write"
Step = Mapping[str, Any]
Template = Mapping[str, FileText]


class After(Written):
    """The expected state of one file; see `Expected`."""

    exists: bool = True
    text: str | None = None
    line: str | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    unchanged: bool = False


class Shared(Written):
    """The fields that the scenarios of a file have in common; each may say otherwise."""

    family: str | None = None
    catalog: str = "standard"
    workspace: str | Template | None = None
    others: Literal["unchanged"] | None = None
    no_other: tuple[str, ...] = ()
    origin: str = "written by hand"
    workspaces: Mapping[str, Template] = Field(default_factory=dict)


class WrittenScenario(Written):
    """One scenario as it is written. What is not said here is said by the file; see the manual, "Suites".

    Attributes:
        explicit, natural, prompts: the phrasings; `prompts` names further ones.
        workspace: the name of a template of the file, or the template itself.
        memories: slug → a memory that is there from the beginning.
        gold: the needed steps, each {action: {argument: value or accepted values}}, with `play` and `exact`.
        edits: replacements that are asked for; gold and expectation follow from them.
        expected: path → "unchanged", "absent", or what is expected of it.
        others: "unchanged" holds every file of the template that is not expected otherwise to its text.
    """

    id: str
    family: str | None = None
    catalog: str | None = None
    origin: str | None = None
    explicit: str | None = None
    natural: str | None = None
    prompts: Mapping[str, str] = Field(default_factory=dict)
    workspace: str | Template | None = None
    memories: Mapping[str, Note] = Field(default_factory=dict)
    gold: tuple[Step, ...] = ()
    edits: tuple[Edit, ...] = ()
    unanswerable: bool = False
    expected: Mapping[str, Literal["unchanged", "absent"] | After] = Field(default_factory=dict)
    others: Literal["unchanged"] | None = None
    says: tuple[str, ...] = ()
    omits: tuple[str, ...] = ()
    no_other: tuple[str, ...] | None = None
    setup_error: Mapping[str, str] = Field(default_factory=dict)
    forecast: float | None = None

    def scenario(self, shared: Shared) -> Scenario:
        """Return the scenario that is meant. Raises ValueError (pydantic's included)."""
        texts = template(self._template(shared), self.memories)
        steps, expected = self._edits(texts)
        steps = [*(_step(step) for step in self.gold), *steps]
        expected |= {path: _expected_file(path, after) for path, after in self.expected.items()}
        if "unchanged" in (self.others, shared.others):
            expected |= {path: Expected(path=path, unchanged=True) for path in texts if path not in expected}
        return Scenario(
            id=self.id,
            family=self._answer_texts("family", shared),
            prompts=self._prompts(),
            catalog=self.catalog or shared.catalog,
            workspace=texts,
            gold=Gold(steps=tuple(steps), unanswerable=self.unanswerable),
            expected=tuple(expected.values()),
            says=self.says,
            omits=self.omits,
            no_other=self._no_other(shared),
            setup_error=self.setup_error,
            forecast=self.forecast,
            origin=self.origin or shared.origin,
        )

    def _no_other(self, shared: Shared) -> tuple[str, ...]:
        """Return the actions that are not to be called otherwise; what a file says is about those that have a gold."""
        if self.no_other is not None:
            return self.no_other
        return shared.no_other if self.gold or self.edits else ()

    def _template(self, shared: Shared) -> Template:
        chosen = self.workspace if self.workspace is not None else shared.workspace
        if not isinstance(chosen, str):
            return chosen or {}
        if chosen not in shared.workspaces:
            known = ", ".join(shared.workspaces) or "none"
            raise ValueError(f"workspace: there is no template {chosen!r}; the file has {known}")
        return shared.workspaces[chosen]

    def _answer_texts(self, key: str, shared: Shared) -> str:
        value: str | None = getattr(self, key) or getattr(shared, key)
        if value is None:
            raise ValueError(
                f"{key}: it is said neither here nor for the whole file; say it, for all at the top of the file"
            )
        return value

    def _prompts(self) -> dict[str, str]:
        named = {"explicit": self.explicit, "natural": self.natural, **self.prompts}
        prompts = {name: text for name, text in named.items() if text is not None}
        if not prompts:
            raise ValueError("prompts: there is none; give explicit, natural or prompts")
        return prompts

    def _edits(self, texts: Mapping[str, str]) -> tuple[list[tuple[AcceptedCall, ...]], dict[str, Expected]]:
        """Return a step and an expectation for each file that is edited."""
        steps, expected = [], {}
        for path in dict.fromkeys(edit.path for edit in self.edits):
            if path not in texts:
                raise ValueError(f"edits: the template has no file {path!r}")
            after, play = apply_edits(texts[path], tuple(edit for edit in self.edits if edit.path == path))
            given: dict[str, JsonValue] = {"old_string": play.old, "new_string": play.new}
            if play.all:
                given["replace_all"] = True
            # A rewrite that leaves the very same text does the task too; that it is no edit is a check of its own.
            steps.append(_step({EDIT: {"path": path}, WRITE: {"path": path}, "play": given}))
            expected[path] = Expected(path=path, text=after)
        return steps, expected


def _expected_file(path: str, after: str | After) -> Expected:
    if after == "unchanged":
        return Expected(path=path, unchanged=True)
    if after == "absent":
        return Expected(path=path, exists=False)
    assert isinstance(after, After)
    return Expected(path=path, **after.model_dump())


def _step(written: Step) -> tuple[AcceptedCall, ...]:
    """Return the accepted calls of a step, the complete one first."""
    step = dict(written)
    play, exact = step.pop("play", None), step.pop("exact", False)
    if not step:
        raise ValueError("gold: a step names no action; write {action: {argument: value}}")
    for key, value in (*step.items(), ("play", play)):
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(
                f"gold: {key} has {value!r:.80} where its arguments should be, {{argument: value}}"
            )
    calls = [
        AcceptedCall(action=action, args=_accepted_values(args or {}), exact=exact)
        for action, args in step.items()
    ]
    if play is None:
        return tuple(calls)
    return (*calls[0].play(**_accepted_values(play)), *calls[1:])


def _accepted_values(args: Mapping[str, Any]) -> dict[str, tuple[JsonValue, ...]]:
    return {name: tuple(value) if isinstance(value, list) else (value,) for name, value in args.items()}
