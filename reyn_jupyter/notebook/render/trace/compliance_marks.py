"""What the rules of the catalog say of a run, mark by mark.

Invariant: verdicts are those of the checks that studies are graded by, so that a run and a study never disagree; what a
check cannot say without a scenario is not said. A rule that no mandate demanded is told without blame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.checks.call_predicates import DESCRIBE, LIST, is_gated, is_look, name_of, reached
from reyn_jupyter.evaluation.checks.conduct import EDIT, WRITE
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.facts import call_facts
from reyn_jupyter.evaluation.trial.trial import CallFact, Trial
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Column,
    Fold,
    Grid,
    Section,
    Span,
    Tone,
    number_cell,
)
from reyn_jupyter.notebook.render.sanitize import Look

if TYPE_CHECKING:
    from reyn_jupyter.runtime.trace import Call, Trace

_STEPS = 12
_ROWS = 16
_WORST: tuple[Tone, ...] = ("good", "plain", "muted", "info", "warn", "bad")
_ANY = Scenario(id="run", family="run", prompts={"natural": "run"})
_NAMES = {
    "malformed": ("malformed name", "The name could not be that of any action."),
    "unknown": ("unknown name", "No action stands behind the name."),
    "hidden": ("hidden name", "The action is there, and hidden from the model."),
    "not_installed": ("hidden name", "What the action needs is not installed here."),
    "stale": ("stale name", "An earlier catalog had this name; the current one does not."),
    "invalid": ("invalid arguments", "The schema of the action does not take the arguments."),
}


@dataclass(frozen=True, slots=True)
class RuleMark:
    """One mark: the step that it is about (from 1), what is said in two or three words, and why."""

    step: int
    text: str
    tone: Tone
    explanation: str


def ribbon(trace: Trace) -> tuple[RuleMark, ...]:
    """What can be said of a run's calls, in the order of its steps.

    Returns:
        Nothing for a call by hand, and nothing before the first call.

    Example:
        >>> [mark.text for mark in ribbon(trace)]                                    # doctest: +SKIP
        ['✓ lists first', '✓ discovers before it acts', 'invoked right after listing']
    """
    if trace.model is None or not trace.calls:
        return ()
    facts = call_facts(trace)
    marks = [*_looked_first(trace, facts), *_recovered(trace, facts)]
    listed: dict[int, set[str]] = {}
    for fact in facts:
        if fact.wrapper == LIST and fact.ok:
            listed.setdefault(fact.step, set()).update(fact.listed)
    for call, fact in zip(trace.calls, facts, strict=True):
        marks += _of_call(call, fact, listed, trace)
    return tuple(sorted(marks, key=lambda mark: mark.step))


def ribbon_blocks(trace: Trace, look: Look) -> list[Block]:
    """The ribbon as a row with a cell a step; behind it the reasons, beside it the mandates in force."""
    marks = ribbon(trace)
    if not marks:
        return []
    steps = list(dict.fromkeys(mark.step for mark in marks))
    shown = steps[:_STEPS]
    more = f"… {len(steps) - _STEPS:,} more steps have marks" if len(steps) > _STEPS else ""
    columns = tuple(Column(f"step {step}") for step in shown)
    row = tuple(_cell([mark for mark in marks if mark.step == step]) for step in shown)
    mandates = ", ".join(look.line(name, 60) for name in trace.started.mandates[:12]) or "none"
    line = Grid("", columns, (row,), more)
    aside = look.line(f"mandates in force: {mandates}", 160)
    why = Fold((Span("Why"),), (_kept(marks),), aside, (_reasons(marks, look),))
    return [Section("What the rules of the catalog say of this run", (line, why))]


def _cell(marks: list[RuleMark]) -> Cell:
    texts = Counter(mark.text for mark in marks)
    text = " · ".join(f"{count:,} × {said}" if count > 1 else said for said, count in texts.items())
    return Cell(text, max((mark.tone for mark in marks), key=_WORST.index), "badge")


def _kept(marks: tuple[RuleMark, ...]) -> Badge:
    broken = [mark for mark in marks if mark.text.startswith("✗")]
    kept = sum(mark.text.startswith("✓") for mark in marks)
    tone = max((mark.tone for mark in broken), key=_WORST.index, default="good" if kept else "muted")
    return Badge(f"{kept} ✓, {len(broken)} ✗", tone)


def _reasons(marks: tuple[RuleMark, ...], look: Look) -> Grid:
    """Each mark with its reason; what is said again of later steps is counted with the first."""
    first = {(mark.text, mark.explanation): mark for mark in reversed(marks)}
    times = Counter((mark.text, mark.explanation) for mark in marks)
    rows = []
    for key, count in list(times.items())[:_ROWS]:
        mark = first[key]
        text = f"{count:,} × {mark.text}" if count > 1 else mark.text
        step, why = number_cell(str(mark.step), mark.step), Cell(look.text(mark.explanation, 200))
        rows.append((step, Cell(text, mark.tone, "badge"), why))
    columns = (Column("step", right=True, header=True), Column("mark"), Column("why", wide=True))
    left = len(times) - len(rows)
    more = f"… {left:,} more marks; what they are about: trace.df" if left else ""
    return Grid("", columns, tuple(rows), more)


def _looked_first(trace: Trace, facts: tuple[CallFact, ...]) -> Iterator[RuleMark]:
    demanded = any(name.startswith(("list-first", "discovery")) for name in trace.started.mandates)
    trial = _trial(trace, facts)
    acted = next((fact for fact in facts if not is_look(fact)), facts[0])
    for name, step in (("first_call_is", facts[0].step), ("discovered_before_invoke", acted.step)):
        found = find_check(name)
        verdict = found.grade(trial, _ANY)
        why = f"{verdict.reason}. The question: {found.sentence}"
        if verdict.kind == "pass":
            yield RuleMark(step, f"✓ {found.title}", "good", why)
        elif verdict.kind == "fail":
            why = why if demanded else f"{why} No mandate demanded it."
            yield RuleMark(step, f"✗ {found.title}", "bad" if demanded else "muted", why)


def _recovered(trace: Trace, facts: tuple[CallFact, ...]) -> Iterator[RuleMark]:
    """Without a scenario, an error that the same action did not make good may have been made good by another."""
    error = next((fact for fact in facts if reached(fact) and fact.ok is False), None)
    if error is None:
        return
    found = find_check("recovered_after_error")
    verdict = found.grade(_trial(trace, facts), _ANY)
    if verdict.kind == "pass":
        yield RuleMark(error.step, f"✓ {found.title}", "good", verdict.reason)
    else:
        yield RuleMark(error.step, "error", "warn", verdict.reason)


def _trial(trace: Trace, facts: tuple[CallFact, ...]) -> Trial:
    """The calls of a run in the form that checks read."""
    flat = trace.started.settings.get("surface") == "flat"
    return Trial(
        key="run", scenario=_ANY.id, variant="run", repeat=0, code="run", source="real", calls=facts,
        surface="flat" if flat else "universal",
    )  # fmt: skip


def _of_call(call: Call, fact: CallFact, listed: Mapping[int, set[str]], trace: Trace) -> Iterator[RuleMark]:
    name = name_of(fact)
    if is_gated(fact):
        yield RuleMark(
            fact.step, "gated", "warn", f"{name}: the gate answered with the listing that was skipped."
        )
    elif fact.problem is not None:
        text, why = _NAMES[fact.problem]
        yield RuleMark(fact.step, f"✗ {text}", "bad", f"{name}: {why}")
    elif "repaired" in fact.flags:
        yield RuleMark(
            fact.step, "✗ unknown name", "bad", f"{name}: what was written was repaired to this name."
        )
    forgiven = [flag for flag in fact.flags if flag != "repaired"]
    if forgiven:
        what = ", ".join(forgiven)
        yield RuleMark(
            fact.step, f"forgiven: {what}", "info", f"{name}: the call was {what} before it was run."
        )
    if fact.wrapper == DESCRIBE and fact.problem is None:
        yield RuleMark(fact.step, "described", "plain", f"{name}: its schema was asked for.")
    if reached(fact) and fact.name in listed.get(fact.step - 1, ()):
        why = f"{name}: the listing sufficed to call it."
        yield RuleMark(fact.step, "invoked right after listing", "good", why)
    yield from _edited(call, fact, trace)


def _edited(call: Call, fact: CallFact, trace: Trace) -> Iterator[RuleMark]:
    """Whether a part was to be changed or all of it only a scenario knows, so this is no verdict."""
    changes = call.finished.changes if call.finished is not None and call.finished.ok else ()
    if fact.name == EDIT and changes:
        yield RuleMark(fact.step, "edited", "good", "a part of a file was changed, the rest left as it was")
    elif fact.name == WRITE and any(change.get("previous_blob") for change in changes):
        demanded = any(name.startswith("edit rule") for name in trace.started.mandates)
        why = "a file that was there was written anew" + (", though edits are demanded" if demanded else "")
        yield RuleMark(fact.step, "rewrote a file", "warn" if demanded else "muted", why)
