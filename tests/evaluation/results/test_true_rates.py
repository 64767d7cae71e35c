"""The true rates of simulated variants: worked out once, kept with the study, shown beside trials of their ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.models.simulator import BehaviourTable, Simulator
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.results import true_rates as truths
from reyn_jupyter.evaluation.results.true_rates import true_rates
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.verdict import Verdict, number
from tests.evaluation.models.simulator.simulator_support import BASE, MANDATED
from tests.evaluation.study_support import scenarios, small
from tests.evaluation.trial_support import suite

WEAK = MANDATED["explicit"].but("weak", model="weak")


def table(rate: float, **options: Any) -> Simulator:
    return Simulator(table=BehaviourTable(lists_first_explicit=(rate,)), **options)


def one_way(count: int) -> Suite:
    """Scenarios of one phrasing, which is the same however often it is taken."""
    return suite(*scenarios(count, prompts={"natural": "Read notes.md."}))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The checks whose true rates were worked out, call by call."""
    calls: list[list[str]] = []

    async def counted(suite: Any, variants: Any, checks: Any, *rest: Any, **options: Any) -> Any:
        calls.append([check.name for check in checks])
        return await true_rates(suite, variants, checks, *rest, **options)

    monkeypatch.setattr(truths, "true_rates", counted)
    return calls


def test_a_true_rate_is_worked_out_once_for_a_study(tmp_path: Path, made: list[list[str]]) -> None:
    file = tmp_path / "s.sqlite"
    with Study(file, one_way(3), models={"weak": table(0.25)}) as study:
        study.run(WEAK, repeats=1)
        study.run(WEAK, repeats=2)  # twice as often asks the same
    with Study(
        file, one_way(3), models={"weak": table(0.25, icc=0.3)}
    ) as again:  # other draws, the same table
        again.run(WEAK.but("other name"), repeats=1)
        first, *others = [list(run["truths"].values()) for run in again.parts.store.runs()]
    assert made == [["first_call_is"]] and others == [first, first]

    with Study(file, one_way(2), models={"weak": table(0.25)}) as fewer:
        fewer.run(WEAK, repeats=1)
    with Study(file, one_way(3), models={"weak": table(0.75)}) as changed:
        changed.run(WEAK, repeats=1)
    assert len(made) == 3


def test_the_rate_of_another_table_is_not_shown_beside_these_trials(tmp_path: Path) -> None:
    file = tmp_path / "s.sqlite"
    with Study(file, small(4), models={"weak": table(0.25)}) as study:
        study.run(WEAK, repeats=2)
        assert study.evidence.truths == {"weak": {"first_call_is": 0.25}}
    with Study(file, small(4), models={"weak": table(0.75)}) as study:
        study.run(WEAK, n=2, repeats=1)  # of fewer scenarios, but of what is shown
        assert study.evidence.truths == {"weak": {"first_call_is": 0.75}}
    assert Study.open(file).evidence.truths == {"weak": {"first_call_is": 0.75}}


def test_a_rate_that_takes_trials_of_its_own_is_left_to_those_who_ask(made: list[list[str]]) -> None:
    with Study(None, small(2, primary="task_done"), models={"weak": table(0.25)}) as study:
        study.run(WEAK, repeats=2)
        assert study.evidence.truths == {"weak": {"first_call_is": 0.25}}
    assert made == [["first_call_is"]]


@pytest.mark.parametrize(("repeats", "share"), [((0,), 0.0), ((1,), 1.0), ((5,), 1.0), ((0, 1, 2), 1 / 3)])
async def test_a_rate_is_of_the_phrasings_that_are_tried(repeats: tuple[int, ...], share: float) -> None:
    def grade(trial: Trial, scenario: Scenario) -> Verdict:
        return number(trial.phrasing == "natural", "told by its phrasing")

    terse = Check("natural", "natural", "Was it the second phrasing?", grade, numeric=True)

    found = await true_rates(small(2), [BASE], [terse], Simulator(), repeats=repeats, trials=12)

    assert found["base"]["natural"].rate == pytest.approx(share)
