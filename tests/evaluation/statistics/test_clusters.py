"""How alike repeats are: tau-bench's figures, an independent analysis of variance, and the edges."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from reyn_jupyter.evaluation.statistics.arms import Arm, clusters_of
from reyn_jupyter.evaluation.statistics.clusters import icc_of
from reyn_jupyter.evaluation.statistics.rates import mean, rate
from reyn_jupyter.evaluation.statistics.repeat_success import reliability

REWARDS = Path(__file__).parents[2] / "data" / "tau_bench_airline_rewards.json"


def icc(arm: Arm) -> float | None:
    return icc_of(clusters_of(arm, verdicts=False))


def passing(counts: list[int], n: int) -> Arm:
    """Scenarios with so many passes in n trials each."""
    return {f"s{i}": {j: float(j < passes) for j in range(n)} for i, passes in enumerate(counts)}


@pytest.fixture(scope="module")
def airline() -> Arm:
    rows = json.loads(REWARDS.read_text())["reward"]
    return {f"task {number}": dict(enumerate(row)) for number, row in enumerate(rows)}


def test_tau_bench_airline_has_its_published_reliability(airline: Arm) -> None:
    found = [reliability(airline, k).estimate for k in (1, 2, 3, 4)]
    assert found == pytest.approx([0.420, 0.273, 0.220, 0.200], abs=5e-4)
    assert found[0] == pytest.approx(rate(airline).estimate)


def test_tau_bench_airline_has_its_icc_and_design_effect(airline: Arm) -> None:
    found = rate(airline)
    assert found.icc == icc(airline) == pytest.approx(0.4046, abs=5e-5)
    assert found.design_effect == pytest.approx(2.24, abs=5e-3)
    assert found.effective_n == pytest.approx(200 / 2.2385, abs=0.01)
    assert found.low < 0.33, "treating 200 trials as independent would say .35"
    assert found.warnings == ()


def test_pass_hat_k_comes_with_an_interval_over_scenarios(airline: Arm) -> None:
    found = reliability(airline, 4)
    assert found.estimate == pytest.approx(0.2)
    assert (found.scenarios, found.trials) == (50, 200)
    assert found.low is not None
    assert found.high is not None
    assert 0.08 < found.low < 0.2 < found.high < 0.35


def test_scenarios_with_too_few_trials_are_left_out_of_pass_hat_k_and_named(airline: Arm) -> None:
    short = {**airline, "task 0": {0: 1.0}, "task 1": {}}
    assert reliability(short, 2).warnings == ("1 scenario with fewer than 2 trials left out.",)
    with pytest.raises(ValueError, match="no scenario has 5 trials"):
        reliability(airline, 5)
    with pytest.raises(ValueError, match="neither 0 nor 1"):
        reliability({"a": {0: 0.5, 1: 1}}, 2)


def test_unequal_repeats_have_the_icc_of_an_analysis_of_variance() -> None:
    random = np.random.default_rng(8)
    arm = {
        f"s{i}": {j: float(random.random() < 0.2 + 0.6 * (i % 3 == 0)) for j in range(2 + i % 5)}
        for i in range(30)
    }
    rows = [(name, value) for name, row in arm.items() for value in row.values()]
    table = anova_lm(ols("y ~ C(g)", pd.DataFrame(rows, columns=["g", "y"])).fit())
    between, within = table["mean_sq"]
    sizes = np.array([len(row) for row in arm.values()])
    m0 = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(sizes) - 1)
    assert icc(arm) == pytest.approx((between - within) / (between + (m0 - 1) * within))


@pytest.mark.parametrize(
    "arm",
    [{}, {"a": {}}, {"a": {0: 1, 1: 0}}, {"a": {0: 1}, "b": {0: 0}}, {"a": {0: 1, 1: 1}, "b": {0: 1}}],
    ids=["nothing", "no trial", "one scenario", "no repeats", "constant"],
)
def test_an_icc_that_the_data_cannot_give_is_none(arm: Arm) -> None:
    assert icc(arm) is None


def test_without_repeats_the_design_effect_is_one() -> None:
    arm = {f"s{i}": {0: float(i % 3 == 0)} for i in range(12)}
    assert (rate(arm).design_effect, rate(arm).effective_n) == (1.0, 12.0)


def test_numbers_have_an_icc_too_and_nan_is_refused() -> None:
    alike = {f"s{i}": {j: 100.0 * i + j for j in range(3)} for i in range(10)}
    found = mean(alike).icc
    assert found is not None
    assert 0.99 < found < 1
    with pytest.raises(ValueError, match="not a finite number"):
        mean({"a": {0: math.nan}})


@given(st.lists(st.integers(0, 6), min_size=1, max_size=20))
def test_pass_hat_k_never_rises_with_k(passes: list[int]) -> None:
    found = [reliability(passing(passes, 6), k).estimate for k in range(1, 7)]
    assert found == pytest.approx(sorted(found, reverse=True))
    assert found[0] == pytest.approx(np.mean(passes) / 6)
    assert found[-1] == pytest.approx(passes.count(6) / len(passes))
