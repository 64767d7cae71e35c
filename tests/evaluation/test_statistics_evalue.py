"""The e-value: its formula, its stopping rule, and its promise under a look after every scenario."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.coverage import Cell, peeking_errors
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln

from reyn_jupyter.evaluation.statistics.evalue import CONCENTRATION, Sequential, log_e, stop

SIGNS = st.lists(st.sampled_from([-1, 0, 1]), max_size=60)


@given(st.integers(0, 400), st.data(), st.sampled_from([0.5, 1.0, CONCENTRATION, 5.0]))
def test_the_logarithm_follows_its_formula(signs: int, data: st.DataObject, a: float) -> None:
    wins = data.draw(st.integers(0, signs))
    expected = betaln(a + wins, a + signs - wins) - betaln(a, a) + signs * math.log(2)
    assert log_e(wins, signs, a) == pytest.approx(expected, abs=1e-9)
    assert log_e(signs - wins, signs, a) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("signs", [1, 5, 30])
def test_under_no_difference_the_e_value_is_one_on_average(signs: int) -> None:
    mean = sum(math.comb(signs, k) / 2**signs * math.exp(log_e(k, signs)) for k in range(signs + 1))
    assert mean == pytest.approx(1)


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


def test_nine_wins_in_a_row_suffice_and_ties_tell_nothing() -> None:
    assert stop([1] * 40) == 9
    assert stop([-1] * 40) == 9
    assert stop([0, 1] * 40) == 18
    assert stop([0] * 100) is None
    assert stop([]) is None
    assert stop([0.3] * 40) == 9, "a difference counts by its sign"


def test_once_stopped_it_stays_stopped() -> None:
    looking = Sequential()
    for sign in [1] * 9 + [-1] * 9:
        looking.add(sign)
    assert looking.state.log_e < 0
    assert (looking.state.stopped, looking.state.stopped_at) == (True, 9)


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
    by_e, by_p = peeking_errors(cell, 6_000, np.random.default_rng(11))
    assert by_e <= 0.05
    assert by_p > 0.12


def test_a_real_difference_is_found_early() -> None:
    random = np.random.default_rng(3)
    stops = [stop(random.choice([1, -1], size=100, p=[0.8, 0.2]).tolist()) for _ in range(300)]
    assert np.median([found or 100 for found in stops]) < 30


@pytest.mark.parametrize("alpha", [0, 1, -0.1, math.nan])
def test_an_alpha_that_makes_no_sense_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        Sequential(alpha)


def test_signs_and_mixtures_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="sign is NaN"):
        Sequential().add(math.nan)
    for wins, signs, a in ((3, 2, 1.0), (-1, 2, 1.0), (1, 2, 0.0), (1, 2, math.inf)):
        with pytest.raises(ValueError, match="wins of"):
            log_e(wins, signs, a)
