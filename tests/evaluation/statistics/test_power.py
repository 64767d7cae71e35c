"""Planning: the golden figure, brute force, other libraries, and simulations."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from reyn_jupyter.evaluation.results.findings import claim_support
from reyn_jupyter.evaluation.statistics.paired import mcnemar, sign_flip_counts
from reyn_jupyter.evaluation.statistics.power import (
    draw_gaps,
    independent_arms,
    mcnemar_power,
    p_values,
    pairs_needed,
    plan,
    scenarios_for_width,
)
from reyn_jupyter.evaluation.statistics.rates import clopper_pearson, rate
from tests.benchmarks.coverage import Cell, draw


def test_from_36_to_80_percent_takes_24_pairs() -> None:
    shares = independent_arms(0.36, 0.80)
    assert pairs_needed(*shares) == 24
    assert mcnemar_power(24, *shares) >= 0.8 > mcnemar_power(23, *shares)


@pytest.mark.parametrize(
    ("pairs", "discordant", "split"), [(1, 1, 1), (9, 0.4, 0.9), (14, 0.7, 0.2), (12, 1, 0.5)]
)
def test_power_adds_up_every_outcome(pairs: int, discordant: float, split: float) -> None:
    expected = 0.0
    for a_only, b_only in product(range(pairs + 1), repeat=2):
        if a_only + b_only <= pairs and mcnemar(a_only, b_only) <= 0.05:
            ways = math.comb(pairs, a_only) * math.comb(pairs - a_only, b_only)
            shares = (discordant * (1 - split)) ** a_only * (discordant * split) ** b_only
            expected += ways * shares * (1 - discordant) ** (pairs - a_only - b_only)
    assert mcnemar_power(pairs, discordant, split) == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 120), st.floats(0, 1), st.floats(0, 1))
def test_power_is_a_chance_that_does_not_care_which_variant_is_named_first(
    pairs: int, discordant: float, split: float
) -> None:
    found = mcnemar_power(pairs, discordant, split)
    assert 0 <= found <= 1
    assert found == pytest.approx(mcnemar_power(pairs, discordant, 1 - split), abs=1e-9)
    if split == 0.5:
        assert found <= 0.05


def test_fewer_than_six_pairs_can_never_find_anything() -> None:
    assert mcnemar_power(5, 1, 1) == 0
    assert mcnemar_power(6, 1, 1) == 1


def test_a_plan_without_repeats_is_that_of_mcnemar_and_says_what_it_assumes() -> None:
    found = plan(detect=0.15)
    assert found.discordant == pytest.approx(0.51125)
    assert found.pairs == pairs_needed(0.51125, (0.51125 + 0.15) / (2 * 0.51125))
    assert (found.scenarios, found.trials) == (found.pairs, 2 * found.pairs)
    assert found.power >= 0.8
    assert found.assumptions == (
        "51 % of pairs differ (not known: two unrelated variants around one half).",
        "One pair a scenario: McNemar's exact test, power added up exactly.",
        "Two-sided, alpha 0.05; no trial missing; n fixed before the run.",
    )


def test_a_large_plan_with_repeats_follows_the_t_test() -> None:
    found = plan(detect=0.05, repeats=5, icc=0.3)
    effect = 0.05 / math.sqrt((0.50125 - 0.05**2) * (1 + 4 * 0.3) / 5)
    power = TTestPower().power
    assert found.power == pytest.approx(power(effect, found.scenarios, 0.05), abs=1e-6)
    assert found.power >= 0.8 > power(effect, found.scenarios - 1, 0.05)
    assert (found.pairs, found.repeats) == (5 * found.scenarios, 5)


@pytest.mark.parametrize(
    ("detect", "repeats", "icc"), [(0.15, 2, 0.4), (0.3, 2, 0.4), (0.5, 2, 0.4), (0.7, 5, 0.2), (0.9, 5, 0.4)]
)
def test_a_plan_with_repeats_keeps_its_promise_under_the_sign_flip_test(
    detect: float, repeats: int, icc: float
) -> None:
    """Arms that have nothing in common, whose scenarios differ by a beta distribution."""
    found = plan(detect=detect, repeats=repeats, icc=icc)
    cell = Cell((1 - detect) / 2, (1 + detect) / 2, found.scenarios, icc, repeats)
    a_only, b_only, _ = draw(cell, 400, np.random.default_rng(7))
    sizes = [repeats] * found.scenarios
    p = [sign_flip_counts(row.tolist(), sizes) or 0 for row in b_only - a_only]
    assert np.mean(np.array(p) <= 0.05) >= 0.74 and found.power >= 0.8


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 12), st.integers(1, 4), st.floats(0, 1), st.floats(0, 1), st.sampled_from([0, 0.3, 1]))
def test_simulated_power_is_that_of_the_exact_test(
    scenarios: int, repeats: int, discordant: float, split: float, icc: float
) -> None:
    shares = (discordant * split, discordant * (1 - split))
    gaps = draw_gaps(scenarios, repeats, shares, icc)[:, :40]
    ours = p_values(np.abs(gaps), np.abs(gaps.sum(axis=0)), repeats)
    exact = [sign_flip_counts([int(n) for n in row], [repeats] * scenarios) for row in gaps.T]
    assert ours == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(("repeats", "alpha", "fewest"), [(5, 0.05, 6), (1_000, 0.05, 6), (1_000, 0.01, 8)])
def test_however_many_repeats_a_test_needs_scenarios(repeats: int, alpha: float, fewest: int) -> None:
    assert plan(detect=0.95, repeats=repeats, icc=0.0, alpha=alpha).scenarios == fewest


@pytest.mark.parametrize("icc", [0.0, 0.4, 1.0])
def test_simulated_differences_have_the_stated_mean_and_correlation(icc: float) -> None:
    gaps = draw_gaps(60, 3, (0.5, 0.2), icc) / 3
    assert gaps.mean() == pytest.approx(0.3, abs=0.01)
    one = 0.7 - 0.3**2
    assert gaps.var() == pytest.approx(one * (1 + 2 * icc) / 3, rel=0.02)


def test_a_planned_study_with_repeats_finds_the_difference_as_often_as_planned() -> None:
    random, gap, repeats = np.random.default_rng(5), 0.25, 4
    # The rates of scenarios lie .25 above or below those of the variants, which gives the differences an ICC.
    shift = random.choice([-0.25, 0.25], size=(500, 2, 400))
    chances = np.array([0.375, 0.625])[None, :, None] + shift
    icc = 2 * 0.25**2 / (2 * 0.375 * 0.625)
    found = plan(detect=gap, discordant=2 * 0.375**2 + gap, repeats=repeats, icc=icc)
    passes = random.binomial(repeats, chances[:, :, : found.scenarios])
    gaps = passes[:, 1] - passes[:, 0]
    p = [sign_flip_counts(row.tolist(), [repeats] * found.scenarios) or 0 for row in gaps]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(found.power, abs=0.06)


def test_scenarios_tell_more_than_repeats() -> None:
    spread, heaped = plan(repeats=1, discordant=0.4), plan(repeats=10, discordant=0.4)
    assert heaped.scenarios < spread.scenarios
    assert heaped.trials > spread.trials


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"detect": 0}, "difference to detect"),
        ({"detect": 1.2}, "difference to detect"),
        ({"power": 1}, "power"),
        ({"alpha": 0}, "alpha"),
        ({"repeats": 0}, "repeats"),
        ({"icc": 1.5}, "icc"),
        ({"discordant": 0.1, "detect": 0.15}, "at least that share"),
        ({"discordant": 1.4}, "discordant share"),
        ({"detect": 0.0001}, "more than 100,000"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        plan(**given)  # type: ignore[arg-type]


def test_nothing_to_find_is_refused() -> None:
    for discordant, split in ((0, 0.9), (0.4, 0.5)):
        with pytest.raises(ValueError, match="without a difference"):
            pairs_needed(discordant, split)
    with pytest.raises(ValueError, match="have no power"):
        mcnemar_power(0, 0.5, 0.5)


@given(st.floats(0, 1), st.floats(0.02, 0.4))
def test_the_planned_number_of_scenarios_just_gives_the_width(share: float, half: float) -> None:
    count = scenarios_for_width(share, half)
    if 0 < share < 1:
        low, high = clopper_pearson(share * count, count)
        assert high - low <= 2 * half + 1e-12


def test_a_planned_width_is_what_rate_gives() -> None:
    count = scenarios_for_width(0.5, 0.1, repeats=4, icc=1.0)
    found = rate({f"s{i}": dict.fromkeys(range(4), i % 2) for i in range(count)})
    assert found.high - found.low == pytest.approx(0.2, abs=0.005)
    assert scenarios_for_width(0.5, 0.1, repeats=4, icc=0.0) < count / 3
    assert scenarios_for_width(1.0, 0.1, repeats=4) == scenarios_for_width(1.0, 0.1)
    with pytest.raises(ValueError, match="half a width"):
        scenarios_for_width(0.5, 0.5)


def test_what_a_claim_supports_is_its_interval() -> None:
    found = claim_support(3, 4, against=0.5)
    assert (found.supported, found.needed) == (False, 19)
    assert (found.low, found.high) == clopper_pearson(3, 4)
    low, _ = clopper_pearson(0.75 * found.needed, found.needed)
    assert low > 0.5 >= clopper_pearson(0.75 * (found.needed - 1), found.needed - 1)[0]
    assert claim_support(16, 16, against=0.5).supported
    assert claim_support(0, 20, against=0.5).sentence == "0 of 20 is 0 % (0 to 17), so less than 50 %."
    assert claim_support(12, 20).sentence.endswith(" scenarios would tell it to within 10 points.")
    assert claim_support(10, 20, against=0.5).needed is None
    with pytest.raises(ValueError, match="cannot be held against"):
        claim_support(3, 4, against=2)
