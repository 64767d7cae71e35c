"""Every suite that is shipped can be solved, and is not solved by doing nothing, by looping, by pasting what a file
holds or by naming all that could be meant: oracle and null agents bound it."""

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
DONE = ("chain", "right_action", "task_done", "state_reached", "decided_rightly")
# What an agent fails wherever something is to be done. One that pastes has searched, and rightly where that was asked.
FAILS: dict[str, tuple[str, ...]] = {
    "lists": (*DONE, "came_to_end"),
    "repeats": ("chain", "task_done", "came_to_end"),
    "pastes": ("task_done", "state_reached"),
    "enumerates": ("task_done", "state_reached"),
    "sweeps": ("task_done", "state_reached"),
}
# Where an agent that calls everything makes the right call, and leaves nothing behind that shows the others.
SWEPT = {
    "arguments": ("simple_python_256", "simple_python_29"),
    "mandates": ("retry-delete", "obscure-digest"),
}


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
    assert "pass" in primary and set(primary) <= {"pass", "na"}


@pytest.mark.parametrize("manner", MANNERS)
def test_the_null_agent_does_not_solve_the_suite(bench: TrialRunner, manner: str) -> None:
    tasks = sampled(bench.suite.scenarios, UNSOLVED)
    primary = []
    for task in tasks:
        tried, _ = run(bench, task, Variant("null", model=manner))
        found = kinds(tried, task)
        primary.append(found[bench.suite.primary])
        if task.gold.steps:
            failing = FAILS.get(manner, DONE)
            assert {found[name] for name in failing} == {"fail"}, (task.id, found, tried.answer)
    assert primary.count("pass") <= sum(task.gold.unanswerable for task in tasks)


@pytest.mark.parametrize(("name", "tried"), [("arguments", 40), ("mandates", 16), ("abstention", 24)])
@pytest.mark.parametrize("surface", ["universal", "flat"])
def test_an_agent_that_calls_everything_with_everything_does_no_task(
    name: str, tried: int, surface: str
) -> None:
    """In `arguments` it makes the labelled call of some requests, which would pass were only that looked for."""
    suite = load_suite(name)
    tasks = [task for task in suite.scenarios if task.gold.steps]
    tasks = random.Random(8).sample(tasks, tried)
    tasks += [suite.scenario(each) for each in SWEPT.get(name, ()) if suite.scenario(each) not in tasks]
    careless = 0
    needed = {each.catalog: suite.catalogs[each.catalog] for each in tasks}
    part = replace(suite, scenarios=tuple(tasks), catalogs=needed)
    with TrialRunner(part, models={"sweeps": NullAgent("sweeps")}) as bench:
        for task in tasks:
            trial, _ = run(bench, task, Variant("null", model="sweeps", surface=surface), 1)
            found = kinds(trial, task)
            assert (found["task_done"], found["state_reached"]) == ("fail", "fail"), (task.id, trial.calls)
            assert name == "mandates" or found["chain"] == "fail", (task.id, trial.calls)
            careless += kinds(trial, task.model_copy(update={"no_other": ()}))["task_done"] == "pass"
    assert careless or name not in SWEPT
