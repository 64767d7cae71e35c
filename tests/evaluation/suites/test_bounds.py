"""Every suite that is shipped can be solved, and is not solved by doing nothing: oracle and null agent bound it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest

from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.evaluation.models.baselines import Manner, NullAgent, Oracle
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.suites import load_suite, suite_names
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from tests.evaluation.trial_support import run

MANNERS: tuple[Manner, ...] = get_args(Manner)

SOLVED, UNSOLVED = 24, 6  # scenarios of each suite that are tried
# A null agent that lists for ever lists first; no other one passes a suite's primary check on more than its half.
NULL_MAY_PASS = {("lists", "first_call_is")}
DONE = ("chain", "right_action", "task_done", "decided_rightly")


def kinds(tried: Trial, task: Scenario) -> dict[str, str]:
    return {name: found.grade(tried, task).kind for name, found in CHECKS.items() if not found.numeric}


def sampled(scenarios: tuple[Scenario, ...], count: int) -> list[Scenario]:
    """By seed: a part of every family, and as many unanswerable scenarios as answerable ones where there are both."""
    chance = random.Random(20)
    parts: dict[tuple[bool, str], list[Scenario]] = {}
    for one in scenarios:
        parts.setdefault((one.gold.unanswerable, one.family), []).append(one)
    none = [part for (unanswerable, _), part in sorted(parts.items()) if unanswerable]
    some = [part for (unanswerable, _), part in sorted(parts.items()) if not unanswerable]
    halves = [half for half in (some, none) if half]
    return [
        chance.choice(half[position % len(half)])
        for half in halves
        for position in range(count // len(halves))
    ]


@pytest.fixture(scope="module", params=suite_names())
def bench(request: pytest.FixtureRequest) -> Iterator[TrialRunner]:
    suite = load_suite(request.param)
    tried = sampled(suite.scenarios, SOLVED)
    needed = {name: suite.catalogs[name] for name in {one.catalog for one in tried}}
    distinct = tuple({one.id: one for one in tried}.values())
    models = {"oracle": Oracle(), **{manner: NullAgent(manner) for manner in MANNERS}}
    made = TrialRunner(replace(suite, scenarios=distinct, catalogs=needed), models=models)
    yield made
    made.close()


@pytest.mark.parametrize("surface", ["universal", "flat"])
def test_the_oracle_solves_the_suite(bench: TrialRunner, surface: str) -> None:
    primary = []
    for task in bench.suite.scenarios:  # those that were sampled
        tried, _ = run(bench, task, Variant("oracle", model="oracle", surface=surface))
        found = kinds(tried, task)
        assert "fail" not in found.values(), (task.id, found, tried.calls, tried.answer)
        assert found["task_done"] == "pass", (task.id, tried.error)
        primary.append(found[bench.suite.primary])
    assert set(primary) <= {"pass", "na"}
    assert "pass" in primary or (surface == "flat" and bench.suite.primary == "first_call_is")


@pytest.mark.parametrize("manner", MANNERS)
def test_the_null_agent_does_not_solve_the_suite(bench: TrialRunner, manner: str) -> None:
    tasks = sampled(bench.suite.scenarios, UNSOLVED)
    primary = []
    for task in tasks:
        tried, _ = run(bench, task, Variant("null", model=manner))
        found = kinds(tried, task)
        primary.append(found[bench.suite.primary])
        if task.gold.steps:
            assert {found[name] for name in DONE} == {"fail"}, (task.id, found)
    if (manner, bench.suite.primary) not in NULL_MAY_PASS:
        assert primary.count("pass") <= sum(task.gold.unanswerable for task in tasks)
