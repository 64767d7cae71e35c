"""Check that the needed actions are called, with the right arguments.

Invariants: `right_action` and `arguments_correct` split one question, which `chain` asks whole: it applies wherever
there are gold steps, so that a model that never gets as far as a call cannot drop out of it. An action that was called
and answered with an error was not done: only `arguments_correct`, which is about what was written, looks at such calls.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.checks.call_matching import (
    Served,
    other_calls,
    serve,
    unread_calls,
    unread_sentence,
)
from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.checks.discovery import discovered_before_invoke
from reyn_jupyter.evaluation.plan.scenario import Gold, Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.call_facts import CallFact
from reyn_jupyter.runtime.record.call_predicates import (
    accepted_calls,
    call_evidence,
    call_sentence,
    join_reasons,
    name_of,
    names_an_action,
    worked_calls,
)
from reyn_jupyter.runtime.record.verdict import Verdict, failed, not_applicable, passed

_NO_STEPS = "the scenario names no needed call"


def _named_calls(trial: Trial) -> list[CallFact]:
    return [call for call in trial.calls if names_an_action(call)]


@check(
    "right action",
    "Is an accepted action called for every needed step, whatever its arguments, and does the call work?",
    version=2,
)
def right_action(trial: Trial, scenario: Scenario) -> Verdict:
    gold = scenario.gold
    if not gold.steps:
        return not_applicable(_NO_STEPS)
    called = _right_name(trial, scenario)
    if called.kind != "pass":
        return called
    worked = worked_calls(trial.calls)
    served = serve(gold, worked, arguments=False)
    if served.complete:
        return passed(
            "an accepted action worked for every step",
            *call_evidence([worked[i] for i in served.by if i is not None]),
        )
    broken = [call for call in _named_calls(trial) if call not in worked and call.name in gold.actions]
    reasons = [f"{name_of(call)} did not work: {call.error or 'it has no result'}" for call in broken]
    return failed(join_reasons(reasons), *call_evidence(broken))


def _right_name(trial: Trial, scenario: Scenario) -> Verdict:
    """Return whether an accepted action was called for every needed step, whatever came of it."""
    calls = _named_calls(trial)
    served = serve(scenario.gold, calls, arguments=False)
    if served.complete:
        return passed("an accepted action was called for every step", *call_evidence(calls))
    return failed(join_reasons(served.faults.values()), *call_evidence(calls))


@check(
    "right arguments",
    "Of the needed steps whose action was called: are the arguments taken by the schema, with "
    "accepted values, and none left out?",
    version=2,
)
def arguments_correct(trial: Trial, scenario: Scenario) -> Verdict:
    gold = scenario.gold
    if not gold.steps:
        return not_applicable(_NO_STEPS)
    attempted = serve(gold, _named_calls(trial), arguments=False).count
    if not attempted:
        return not_applicable("no accepted action was called")
    calls = accepted_calls(trial.calls)
    served = serve(gold, calls)
    if served.count >= attempted:
        return passed(
            "the arguments are accepted ones", *call_evidence([calls[i] for i in served.by if i is not None])
        )
    refused = [
        call for call in _named_calls(trial) if call.problem == "invalid" and call.name in gold.actions
    ]
    reasons = [f"{call.name}: the schema does not take the arguments" for call in refused[:3]]
    # A call that the schema refused was made, so it is not told as missing too.
    known = {f"{call.name} was not called" for call in refused}
    reasons += [fault for fault in served.faults.values() if fault not in known]
    return failed(join_reasons(reasons), *call_evidence(calls or refused))


@check(
    "whole chain",
    "Is the catalog looked at first, then every needed action called, rightly and with success, and no other that "
    "the scenario forbids? A failure at any link is a failure.",
    version=4,
)
def chain(trial: Trial, scenario: Scenario) -> Verdict:
    gold = scenario.gold
    if not gold.steps:
        return not_applicable(_NO_STEPS)
    links = [("right action", _right_name), ("right arguments", arguments_correct)]
    if trial.surface != "flat":
        links.insert(0, ("discovery", discovered_before_invoke))
    for link, grade in links:
        verdict = grade(trial, scenario)
        if verdict.kind != "pass":
            return failed(f"broken at {link}: {verdict.reason}", *verdict.evidence)
    # A call that was right and one that worked are not enough: they have to be the same.
    worked = worked_calls(trial.calls)
    served = serve(gold, worked)
    if not served.complete:
        return failed(f"broken at result: no right call worked for {_missing_steps(gold, served)}")
    # A right call among wrong ones that worked was not chosen: whoever calls everything makes it too.
    if others := other_calls(scenario, trial.calls):
        reasons = join_reasons(call_sentence(call) for call in others)
        return failed(f"broken at restraint: {reasons}", *call_evidence(others))
    if unread := unread_calls(scenario, trial.calls):
        return not_applicable(join_reasons(map(unread_sentence, unread)), *call_evidence(unread))
    return passed(
        "looked, chose and called rightly" if trial.surface != "flat" else "chose and called rightly"
    )


def _missing_steps(gold: Gold, served: Served) -> str:
    """Return the actions of the steps that no call serves."""
    lacking = (step for step, by in zip(gold.steps, served.by, strict=True) if by is None)
    return ", ".join(dict.fromkeys(step[0].action for step in lacking))
