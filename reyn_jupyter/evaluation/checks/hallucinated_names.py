"""Check that the model makes up no names of actions, by the kind of mistake.

Invariants: a call whose JSON could not be read has no name to judge; a gated call is not judged; where no action was
named, there is nothing to pass. What was repaired was a made-up name too. Names of categories in a listing are not
names of actions.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.call_facts import CallFact
from reyn_jupyter.runtime.record.call_predicates import DESCRIBE, call_evidence, is_attempt, is_gated
from reyn_jupyter.runtime.record.verdict import Verdict, failed, not_applicable, passed

_KINDS = {
    "malformed": "malformed",
    "unknown": "unknown",
    "hidden": "hidden",
    "not_installed": "hidden",
    "stale": "stale",
}


def _calls_with_name(trial: Trial) -> list[CallFact]:
    """Return the calls that name an action: readable ones, which the gate did not answer."""
    return [
        call
        for call in trial.calls
        if (is_attempt(call) or call.wrapper == DESCRIBE)
        and not is_gated(call)
        and not (call.problem == "malformed" and (call.name is None or isinstance(call.args, str)))
        and (call.name is not None or call.problem in _KINDS)
    ]


def _kind(call: CallFact) -> str | None:
    if call.problem is None:
        return "unknown" if "repaired" in call.flags else None
    return _KINDS.get(call.problem)


def _without(trial: Trial, kinds: frozenset[str], what: str) -> Verdict:
    named = _calls_with_name(trial)
    if not named:
        return not_applicable("no action was named")
    found = [call for call in named if _kind(call) in kinds]
    if not found:
        return passed(f"none of {len(named)} names was {what}")
    evidence = [f"{where} ({_kind(call)})" for where, call in zip(call_evidence(found), found, strict=False)]
    return failed(
        f"{len(found)} of {len(named)} names {'was' if len(found) == 1 else 'were'} {what}", *evidence
    )


@check("no made-up name", "Is every action that the model names one that it is offered?")
def hallucinated_name(trial: Trial, scenario: Scenario) -> Verdict:
    return _without(trial, frozenset(_KINDS.values()), "made up")


@check("no malformed name", "Could every name that the model writes be the name of an action?")
def malformed_name(trial: Trial, scenario: Scenario) -> Verdict:
    return _without(trial, frozenset({"malformed"}), "malformed")


@check(
    "no unknown name",
    "Does an action stand behind every well-formed name? A name that was repaired counts here.",
)
def unknown_name(trial: Trial, scenario: Scenario) -> Verdict:
    return _without(trial, frozenset({"unknown"}), "unknown")


@check("no hidden name", "Is no action named that is hidden or not installed here?")
def hidden_name(trial: Trial, scenario: Scenario) -> Verdict:
    return _without(trial, frozenset({"hidden"}), "hidden")


@check("no stale name", "Is no name used that an earlier catalog had?")
def stale_name(trial: Trial, scenario: Scenario) -> Verdict:
    return _without(trial, frozenset({"stale"}), "stale")
