"""The e-value: its formula, its stopping rule, and its promise under a look after every scenario."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import betaln

from reyn_jupyter.evaluation.statistics.confidence_sequence import Sequential, stop
from tests.benchmarks.coverage import Cell, peeking_errors

SIGNS = st.lists(st.sampled_from([-1, 0, 1]), max_size=60)
GAPS = st.lists(st.integers(-5, 5).map(lambda n: n / 5), max_size=40)


def evidence(gaps: Sequence[float]) -> float:
    looking = Sequential()
    for gap in gaps:
        looking.add(gap)
    return looking.state.log_e


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=500))
def test_of_single_pairs_the_logarithm_follows_its_formula(signs: list[int]) -> None:
    n, k = sum(map(abs, signs)), signs.count(1)
    expected = betaln(0.5 + k, 0.5 + n - k) - betaln(0.5, 0.5) + n * math.log(2)
    assert evidence(signs) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("gaps", [[0.2, -0.4, 1, 0.6, 0.6], [0.5] * 12, [-1, 0.2, 0.2, 0.2, 0.2, 0.2]])
def test_with_repeats_it_is_the_capital_of_bettors_whose_stakes_are_mixed(gaps: list[float]) -> None:
    def wealth(chance: float) -> float:
        capital = math.prod(1 + gap * (2 * chance - 1) for gap in gaps)
        return float(stats.beta.pdf(chance, 0.5, 0.5)) * capital

    assert math.exp(evidence(gaps)) == pytest.approx(integrate.quad(wealth, 0, 1)[0], rel=1e-6)


def test_thousands_of_scenarios_keep_the_formula() -> None:
    expected = betaln(0.5 + 2_650, 0.5 + 2_350) - betaln(0.5, 0.5) + 5_000 * math.log(2)
    assert evidence([1, -1] * 2_350 + [1] * 300) == pytest.approx(expected, abs=1e-4)


@given(GAPS)
def test_it_sees_both_variants_alike_whatever_the_order(gaps: list[float]) -> None:
    assert evidence([-gap for gap in gaps]) == pytest.approx(evidence(gaps), abs=1e-9)
    assert evidence(sorted(gaps)) == pytest.approx(evidence(gaps), abs=1e-9)


@pytest.mark.parametrize("gaps", [(-1, 1), (-0.8, 0.2, 0.2, 0.2, 0.2), (-0.4, 0.2, 0.2)])
def test_while_scenarios_differ_by_nothing_on_average_the_e_value_is_one_on_average(
    gaps: tuple[float, ...],
) -> None:
    found = [math.exp(evidence(drawn)) for drawn in itertools.product(gaps, repeat=5)]
    assert np.mean(found) == pytest.approx(1)


@given(SIGNS)
def test_looking_one_by_one_stops_where_the_whole_run_would_have(signs: list[int]) -> None:
    looking = Sequential()
    states = [looking.add(sign) for sign in signs]
    reached = [i for i, state in enumerate(states, 1) if state.log_e >= math.log(20)]
    assert stop(signs) == (reached[0] if reached else None)
    if states:
        last = states[-1]
        assert last.stopped_at == stop(signs)
        assert (last.wins, last.losses, last.ties) == tuple(signs.count(sign) for sign in (1, -1, 0))
        assert last.scenarios == len(signs)
        assert last.p == pytest.approx(min(1.0, *(math.exp(-state.log_e) for state in states)))
        assert last.stopped == (last.p <= 0.05)


def test_seven_wins_in_a_row_suffice_and_ties_tell_nothing() -> None:
    assert stop([1] * 40) == 7
    assert stop([-1] * 40) == 7
    assert stop([0, 1] * 40) == 14
    assert stop([0] * 100) is None
    assert stop([]) is None


def test_a_narrow_win_tells_less_than_a_clear_one() -> None:
    found = [stop([gap] * 200) for gap in (0.2, 0.4, 0.6, 0.8, 1)]
    assert found == sorted(found, key=lambda n: -(n or 0)) and len(set(found)) == 5


def test_once_stopped_it_stays_stopped_and_knows_for_whom() -> None:
    looking = Sequential()
    for gap in [1] * 7 + [-1] * 9:
        looking.add(gap)
    assert looking.state.log_e < 0
    assert (looking.state.stopped, looking.state.stopped_at, looking.state.lead) == (True, 7, 7)


def test_a_stricter_alpha_waits_longer() -> None:
    found = [stop([1] * 40, alpha) for alpha in (0.1, 0.05, 0.01)]
    assert found == sorted(found, key=lambda n: n or 0)
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    "cell",
    [
        Cell(0.5, 0.5, 120, 0.5, 1),
        Cell(0.5, 0.5, 120, 0.5, 5),
        Cell(0.1, 0.1, 120, 0.3, 3, 0.7),
    ],
    ids=["one repeat", "five repeats", "rare passes, shared difficulty"],
)
def test_a_look_after_every_scenario_errs_in_at_most_5_percent_of_runs(cell: Cell) -> None:
    """Scenarios favour one variant or the other at random, but neither on the whole; p would err far more often."""
    by_e, by_p = peeking_errors(cell, 2_000, np.random.default_rng(11))
    assert by_e <= 0.05
    assert by_p > 0.12


@pytest.mark.parametrize("gaps", [(-0.8, 0.2), (-0.6, 0.2)], ids=["wins of 1 in 5", "wins of 1 in 3"])
def test_many_narrow_wins_and_a_few_heavy_losses_are_no_difference(gaps: tuple[float, float]) -> None:
    """The rates are the same, and yet one variant is ahead in most scenarios: signs alone would stop nearly always."""
    random = np.random.default_rng(5)
    lost = gaps[1] / (gaps[1] - gaps[0])
    runs = random.choice(gaps, size=(1_000, 120), p=[lost, 1 - lost])
    assert np.mean([stop(run) is not None for run in runs]) <= 0.05
    assert np.mean([stop(run) is not None for run in np.sign(runs)]) > 0.9


def test_a_real_difference_is_found_early() -> None:
    random = np.random.default_rng(3)
    stops = [stop(random.choice([1, -1], size=100, p=[0.8, 0.2]).tolist()) for _ in range(300)]
    assert np.median([found or 100 for found in stops]) < 30


@pytest.mark.parametrize("alpha", [0, 1, -0.1, math.nan])
def test_an_alpha_that_makes_no_sense_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        Sequential(alpha)


@pytest.mark.parametrize("gap", [math.nan, 1.5, -math.inf])
def test_what_is_no_difference_of_rates_is_refused(gap: float) -> None:
    with pytest.raises(ValueError, match="between −1 and 1"):
        Sequential().add(gap)
