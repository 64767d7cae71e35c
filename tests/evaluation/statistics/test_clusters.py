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

from reyn_jupyter.evaluation.statistics.arms import Arm
from reyn_jupyter.evaluation.statistics.clusters import design_effect, effective_n, icc
from reyn_jupyter.evaluation.statistics.rates import rate
from reyn_jupyter.evaluation.statistics.repeat_success import pass_hat_k, reliability

REWARDS = Path(__file__).parents[2] / "data" / "tau_bench_airline_rewards.json"


@pytest.fixture(scope="module")
def airline() -> Arm:
    rows = json.loads(REWARDS.read_text())["reward"]
    return {f"task {number}": dict(enumerate(row)) for number, row in enumerate(rows)}


def test_tau_bench_airline_has_its_published_reliability(airline: Arm) -> None:
    passes = [int(sum(row.values())) for row in airline.values()]
    found = [pass_hat_k(passes, 4, k) for k in (1, 2, 3, 4)]
    assert found == pytest.approx([0.420, 0.273, 0.220, 0.200], abs=5e-4)
    assert found[0] == pytest.approx(rate(airline).estimate)


def test_tau_bench_airline_has_its_icc_and_design_effect(airline: Arm) -> None:
    assert icc(airline) == pytest.approx(0.4046, abs=5e-5)
    assert design_effect(airline) == pytest.approx(2.24, abs=5e-3)
    assert effective_n(airline) == pytest.approx(200 / 2.2385, abs=0.01)
    found = rate(airline)
    assert (found.icc, found.design_effect) == (icc(airline), design_effect(airline))
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
    assert (design_effect(arm), effective_n(arm)) == (1.0, 12.0)
    assert (design_effect({}), effective_n({})) == (None, None)


def test_numbers_have_an_icc_too_and_nan_is_refused() -> None:
    alike = {f"s{i}": {j: 100.0 * i + j for j in range(3)} for i in range(10)}
    found = icc(alike)
    assert found is not None
    assert 0.99 < found < 1
    with pytest.raises(ValueError, match="not a finite number"):
        icc({"a": {0: math.nan}})


@given(st.lists(st.integers(0, 6), min_size=1, max_size=20))
def test_pass_hat_k_never_rises_with_k(passes: list[int]) -> None:
    found = [pass_hat_k(passes, 6, k) for k in range(1, 7)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(np.mean(passes) / 6)
    assert found[-1] == pytest.approx(passes.count(6) / len(passes))


@pytest.mark.parametrize(
    ("counts", "n", "k"), [([], 4, 1), ([5], 4, 1), ([1], 4, 5), ([1], 4, 0), ([1, 2], [4], 1)]
)
def test_counts_that_make_no_pass_hat_k_are_refused(counts: list[int], n: int | list[int], k: int) -> None:
    with pytest.raises(ValueError, match=r"pass\^|one size a scenario"):
        pass_hat_k(counts, n, k)
