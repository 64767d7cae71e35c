"""Intervals that hold at every look: their formula, their edges, and how often they miss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from reyn_jupyter.evaluation.statistics.confidence_sequence import Sequential, betting_limits, stop
from reyn_jupyter.evaluation.statistics.paired import difference
from tests.benchmarks import coverage

GAPS = st.lists(st.integers(-4, 4).map(lambda n: n / 4), min_size=1, max_size=60)


@settings(deadline=None)
@given(GAPS)
def test_it_leaves_0_out_just_where_the_e_value_stops(gaps: list[float]) -> None:
    low, high = betting_limits(np.array(gaps))
    assert (low > 0 or high < 0) is (stop(gaps) is not None)


@pytest.mark.parametrize("gaps", [[1, 0, -1, 1, 1], [0.5, -0.25, 1, 0, 0.75, 0.5, 1, 1], [-1] * 12])
def test_the_limit_is_where_the_capital_reaches_20(gaps: list[float]) -> None:
    def capital(mean: float) -> float:
        shares, centre = (np.array(gaps) + 1) / 2, (mean + 1) / 2

        def wealth(chance: float, until: int) -> float:
            bets = shares[:until] * chance / centre + (1 - shares[:until]) * (1 - chance) / (1 - centre)
            return float(stats.beta.pdf(chance, 0.5, 0.5) * bets.prod())

        return max(integrate.quad(wealth, 0, 1, args=(n,))[0] for n in range(1, len(gaps) + 1))

    low, high = betting_limits(np.array(gaps, dtype=float))
    for limit in (low, high):
        if abs(limit) < 1:
            assert capital(limit) == pytest.approx(20, rel=1e-3)


@settings(deadline=None)
@given(GAPS)
def test_it_mirrors_and_holds_the_mean(gaps: list[float]) -> None:
    values = np.array(gaps)
    low, high = betting_limits(values)
    assert betting_limits(-values) == pytest.approx((-high, -low), abs=1e-5)
    assert -1 <= low <= values.mean() <= high <= 1 and low < high
    earlier = betting_limits(values[:-1])
    assert earlier[0] <= low + 1e-5 and high - 1e-5 <= earlier[1]


def test_without_a_scenario_and_with_one_nearly_everything_is_possible() -> None:
    assert betting_limits(np.array([])) == (-1.0, 1.0)
    low, high = betting_limits(np.array([1.0]))
    assert low < -0.9 and high == 1.0


def test_what_is_no_difference_of_rates_is_refused() -> None:
    for value in (1.5, math.nan):
        with pytest.raises(ValueError, match="without bounds"):
            betting_limits(np.array([0.5, value]))
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="level"):
            betting_limits(np.array([]), level)


@pytest.mark.parametrize(
    "cell", [coverage.Cell(0.5, 0.65, 120, 0.4, 2), coverage.Cell(0.36, 0.8, 60, 0.4, 1)]
)
def test_where_a_run_stops_the_interval_holds_the_truth(cell: coverage.Cell) -> None:
    held, *_ = coverage.at_stops(cell, 300, np.random.default_rng(1))
    assert held >= 0.95


def test_it_seldom_misses_at_any_look_where_tangos_often_does() -> None:
    ours, tango = coverage.ever_missed(coverage.Cell(0.5, 0.5, 120, 0.4, 1), 300, np.random.default_rng(2))
    assert ours <= 0.05 < 0.15 < tango


def test_a_difference_that_was_looked_at_has_the_e_value_and_the_sequence() -> None:
    a = {f"s{n}": {0: 0.0, 1: float(n % 3 == 0)} for n in range(30)}
    b = {f"s{n}": {0: 1.0, 1: float(n % 2 == 0)} for n in range(30)}
    order = [f"s{n}" for n in reversed(range(30))]
    found = difference(a, b, looked=order)
    gaps = np.array([(b[name][0] + b[name][1] - a[name][0] - a[name][1]) / 2 for name in order])
    assert (found.low, found.high) == pytest.approx(betting_limits(gaps))
    single = [{name: {0: row[0]} for name, row in arm.items()} for arm in (a, b)]
    once = difference(*single, looked=order)
    assert (once.low, once.high) == pytest.approx(betting_limits(np.ones(30)))
    assert found.looks is not None and found.looks.stopped_at == stop(gaps)
    assert found.p == pytest.approx(math.exp(-found.looks.peak)) and found.test.startswith("e-value")
    fixed = difference(a, b)
    assert fixed.looks is None and found.estimate == fixed.estimate
    assert found.high - found.low > (fixed.high or 0) - (fixed.low or 0)


def test_numbers_that_were_looked_at_have_no_interval_and_say_what_to_do() -> None:
    a = {f"s{n}": {0: 100.0 + n} for n in range(20)}
    b = {f"s{n}": {0: 90.0 + n + n % 3} for n in range(20)}
    found = difference(a, b, looked=list(a), alpha=0.01)
    signs = Sequential(0.01)
    for _ in a:
        signs.add(-1)
    assert (found.low, found.estimate, found.high) == (None, pytest.approx(-9.05), None)
    assert any("run a fixed number" in each for each in found.warnings)
    assert found.looks is not None and found.looks == signs.state
    assert found.looks.threshold == pytest.approx(math.log(100))
