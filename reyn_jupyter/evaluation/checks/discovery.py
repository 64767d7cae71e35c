"""Check that a model looks at the catalog before it acts on it.

Invariants: on the flat surface there is nothing to list, so these do not apply; a look counts only for calls that were
written after its answer was there.
"""

from __future__ import annotations

from collections.abc import Sequence

from reyn_jupyter.catalog.names import CHOOSE
from reyn_jupyter.evaluation.checks.call_predicates import (
    DESCRIBE,
    LIST,
    call_evidence,
    is_attempt,
    is_gated,
    is_look,
    seen_before,
)
from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.checks.verdict import Verdict, failed, not_applicable, number, passed
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import CallFact, Surface, Trial

_FLAT = "every action was its own tool; there was nothing to list"


@check(
    "lists first",
    "Is list_actions the first thing that the model calls? A search is not; a call that the gate "
    "answered is what it is. It does not apply where the harness listed for the model (discovery: two_steps).",
)
def first_call_is(trial: Trial, scenario: Scenario) -> Verdict:
    return judge_first_call(trial.calls, trial.surface)


def judge_first_call(calls: Sequence[CallFact], surface: Surface) -> Verdict:
    """Return whether the first of a run's calls lists the catalog."""
    if surface == "flat":
        return not_applicable(_FLAT)
    if not calls:
        return failed("no call was made")
    first = calls[0]
    if first.wrapper == CHOOSE:
        return not_applicable("the harness listed, and the model chose")
    if first.wrapper == LIST:
        return passed("the first call lists the catalog", *call_evidence([first]))
    return failed(f"the first call is {first.wrapper}", *call_evidence([first]))


@check(
    "discovers before it acts",
    "Was the answer of a listing, a search or the gate there before the model first "
    "invoked or described an action? A short list that the harness made counts (discovery: two_steps).",
)
def discovered_before_invoke(trial: Trial, scenario: Scenario) -> Verdict:
    return judge_discovery(trial.calls, trial.surface)


def judge_discovery(calls: Sequence[CallFact], surface: Surface) -> Verdict:
    """Return whether a look at the catalog was answered before the first call that needs one."""
    if surface == "flat":
        return not_applicable(_FLAT)
    first = next((call for call in calls if _acts(call)), None)
    if first is None:
        return not_applicable("nothing was invoked or described")
    look = next((call for call in calls if is_look(call) and seen_before(call, first)), None)
    if look is None:
        return failed(
            "an action was invoked or described before anything was listed", *call_evidence([first])
        )
    how = "the gate's answer" if is_gated(look) else f"{look.wrapper}'s answer"
    return passed(f"{how} came before the first invoke or describe", *call_evidence([look, first]))


def _acts(call: CallFact) -> bool:
    return not is_gated(call) and (is_attempt(call) or call.wrapper == DESCRIBE)


@check(
    "describe round trips",
    "How often does the model ask for the description of an action?",
    numeric=True,
    better="less",
)
def describe_round_trips(trial: Trial, scenario: Scenario) -> Verdict:
    found = [call for call in trial.calls if call.wrapper == DESCRIBE]
    return number(len(found), f"describe_action was called {len(found)} times", *call_evidence(found))
