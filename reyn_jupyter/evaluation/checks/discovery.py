"""Check that a model looks at the catalog before it acts on it.

Invariants: on the flat surface there is nothing to list, so these do not apply; a look counts only for calls that were
written after its answer was there.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.call_predicates import (
    DESCRIBE,
    call_evidence,
)
from reyn_jupyter.runtime.record.conduct import DISCOVERS, LISTS_FIRST, judge_discovery, judge_first_call
from reyn_jupyter.runtime.record.verdict import Verdict, number


@check(*LISTS_FIRST)
def first_call_is(trial: Trial, scenario: Scenario) -> Verdict:
    return judge_first_call(trial.calls, trial.surface)


@check(*DISCOVERS)
def discovered_before_invoke(trial: Trial, scenario: Scenario) -> Verdict:
    return judge_discovery(trial.calls, trial.surface)


@check(
    "describe round trips",
    "How often does the model ask for the description of an action?",
    numeric=True,
    better="less",
)
def describe_round_trips(trial: Trial, scenario: Scenario) -> Verdict:
    found = [call for call in trial.calls if call.wrapper == DESCRIBE]
    return number(len(found), f"describe_action was called {len(found)} times", *call_evidence(found))
