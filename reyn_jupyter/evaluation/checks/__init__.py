"""Grade a trial: pure functions from a stored trial and its scenario to a verdict.

Invariant: a verdict follows from the stored trial alone, so that a study is graded again without a model call.

>>> from reyn_jupyter.evaluation.plan.scenario import Scenario
>>> from reyn_jupyter.evaluation.trial.trial import Trial
>>> trial = Trial(key="k", scenario="s", variant="v", repeat=0, code="1", source="scripted")
>>> find_check("first_call_is").grade(trial, Scenario(id="s", family="f", prompts={"natural": "Hi"})).kind
'fail'
"""

from __future__ import annotations

from reyn_jupyter.evaluation.checks import (
    actions,
    conduct,
    cost,
    discovery,
    hallucinated_names,
    harness_help,
    outcome,
)
from reyn_jupyter.evaluation.checks.check_registry import (
    CHECKS,
    Grade,
    UnknownCheckError,
    check,
    find_check,
    forget,
    is_broken,
    is_missing,
)

__all__ = [
    "CHECKS",
    "Grade",
    "UnknownCheckError",
    "actions",
    "check",
    "conduct",
    "cost",
    "discovery",
    "find_check",
    "forget",
    "hallucinated_names",
    "harness_help",
    "is_broken",
    "is_missing",
    "outcome",
]
