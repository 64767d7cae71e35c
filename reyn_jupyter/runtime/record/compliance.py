"""Compliance marks: how the rules of the catalog judge a single run, which has no scenario.

Invariant: a run and a study never disagree, since both ask the same functions; what cannot be said without a scenario
is not said, and a rule that no mandate demanded is not held against the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reyn_jupyter.runtime.record.call_facts import CallFact, call_facts, offered_surface
from reyn_jupyter.runtime.record.call_predicates import (
    DESCRIBE,
    LIST,
    is_accepted,
    is_gated,
    is_look,
    name_of,
)
from reyn_jupyter.runtime.record.conduct import (
    DISCOVERS,
    EDIT,
    LISTS_FIRST,
    RECOVERS,
    WRITE,
    ConductRule,
    judge_discovery,
    judge_first_call,
    judge_recovery,
)

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.run_steps import Call
    from reyn_jupyter.runtime.record.trace import Trace
    from reyn_jupyter.runtime.record.verdict import Verdict

Tone = Literal["good", "plain", "muted", "info", "warn", "bad"]
_NAMES = {
    "malformed": ("malformed name", "The name could not be that of any action."),
    "unknown": ("unknown name", "No action stands behind the name."),
    "hidden": ("hidden name", "The action is there, and hidden from the model."),
    "not_installed": ("hidden name", "What the action needs is not installed here."),
    "stale": ("stale name", "An earlier catalog had this name; the current one does not."),
    "invalid": ("invalid arguments", "The schema of the action does not take the arguments."),
}


@dataclass(frozen=True, slots=True)
class ComplianceMark:
    """One statement about one step of a run.

    Attributes:
        step: the model call that it is about, from 1.
        text: two or three words.
        tone: how good or bad it is.
        explanation: one or two sentences on why.
        kept: whether the rule was kept; None where the mark is an observation, and no verdict.
    """

    step: int
    text: str
    tone: Tone
    explanation: str
    kept: bool | None = None


def compliance_marks(trace: Trace) -> tuple[ComplianceMark, ...]:
    """Return the marks of a run, in the order of its steps.

    Returns:
        Nothing for a call by hand, and nothing before the first call.

    Example:
        >>> [mark.text for mark in compliance_marks(trace)]                          # doctest: +SKIP
        ['lists first', 'discovers before it acts', 'invoked right after listing']
    """
    if trace.model is None or not trace.calls:
        return ()
    facts = call_facts(trace)
    marks = [*_discovery_marks(trace, facts), *_recovery_marks(facts)]
    listed: dict[int, set[str]] = {}
    for fact in facts:
        if fact.wrapper == LIST and fact.ok:
            listed.setdefault(fact.step, set()).update(fact.listed)
    for call, fact in zip(trace.calls, facts, strict=True):
        marks += _call_marks(call, fact, listed, trace)
    return tuple(sorted(marks, key=lambda mark: mark.step))


def _discovery_marks(trace: Trace, facts: tuple[CallFact, ...]) -> Iterator[ComplianceMark]:
    demanded = any(name.startswith(("list-first", "discovery")) for name in trace.started.mandates)
    surface = offered_surface(trace)
    acted = next((fact for fact in facts if not is_look(fact)), facts[0])
    judged: tuple[tuple[ConductRule, int, Verdict], ...] = (
        (LISTS_FIRST, facts[0].step, judge_first_call(facts, surface)),
        (DISCOVERS, acted.step, judge_discovery(facts, surface)),
    )
    for rule, step, verdict in judged:
        why = f"{verdict.reason}. The question: {rule.question}"
        if verdict.kind == "pass":
            yield ComplianceMark(step, rule.title, "good", why, kept=True)
        elif verdict.kind == "fail":
            why = why if demanded else f"{why} No mandate demanded it."
            yield ComplianceMark(step, rule.title, "bad" if demanded else "muted", why, kept=False)


def _recovery_marks(facts: tuple[CallFact, ...]) -> Iterator[ComplianceMark]:
    """Without a scenario, an error that the same action did not make good may have been made good by another."""
    error = next((fact for fact in facts if is_accepted(fact) and fact.ok is False), None)
    if error is None:
        return
    verdict = judge_recovery(facts)
    if verdict.kind == "pass":
        yield ComplianceMark(error.step, RECOVERS.title, "good", verdict.reason, kept=True)
    else:
        yield ComplianceMark(error.step, "error", "warn", verdict.reason)


def _call_marks(
    call: Call, fact: CallFact, listed: Mapping[int, set[str]], trace: Trace
) -> Iterator[ComplianceMark]:
    """Return the marks of one call.

    Args:
        listed: step → the names that listings of that step answered with.
    """
    name, step = name_of(fact), fact.step
    if is_gated(fact):
        why = f"{name}: the gate answered with the listing that was skipped."
        yield ComplianceMark(step, "gated", "warn", why)
    elif fact.problem is not None:
        text, why = _NAMES[fact.problem]
        yield ComplianceMark(step, text, "bad", f"{name}: {why}", kept=False)
    elif "repaired" in fact.flags:
        why = f"{name}: what was written was repaired to this name."
        yield ComplianceMark(step, "unknown name", "bad", why, kept=False)
    forgiven = ", ".join(flag for flag in fact.flags if flag != "repaired")
    if forgiven:
        why = f"{name}: the call was {forgiven} before it was run."
        yield ComplianceMark(step, f"forgiven: {forgiven}", "info", why)
    if fact.wrapper == DESCRIBE and fact.problem is None:
        yield ComplianceMark(step, "described", "plain", f"{name}: its schema was asked for.")
    if is_accepted(fact) and fact.name in listed.get(step - 1, ()):
        why = f"{name}: the listing sufficed to call it."
        yield ComplianceMark(step, "invoked right after listing", "good", why)
    yield from _edit_marks(call, fact, trace)


def _edit_marks(call: Call, fact: CallFact, trace: Trace) -> Iterator[ComplianceMark]:
    """Only a scenario knows whether a part was to be changed or all of it, so this is no verdict."""
    changes = call.finished.changes if call.finished is not None and call.finished.ok else ()
    if fact.name == EDIT and changes:
        why = "a part of a file was changed, the rest left as it was"
        yield ComplianceMark(fact.step, "edited", "good", why)
    elif fact.name == WRITE and any(change.get("previous_blob") for change in changes):
        demanded = any(name.startswith("edit rule") for name in trace.started.mandates)
        why = "a file that was there was written anew" + (", though edits are demanded" if demanded else "")
        yield ComplianceMark(fact.step, "rewrote a file", "warn" if demanded else "muted", why)
