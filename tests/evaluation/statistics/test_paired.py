"""Two variants: published tables, brute force, symmetry, and what happens when pairs are missing."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from reyn_jupyter.evaluation.statistics.paired import (
    Difference,
    difference,
    mcnemar,
    sign_flip,
    sign_flip_counts,
)
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate

PAIRED = st.dictionaries(
    st.integers(0, 40).map(str),
    st.dictionaries(
        st.integers(0, 5), st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=4
    ),
    min_size=1,
    max_size=45,
)


def table(both: int, a_only: int, b_only: int, neither: int) -> Difference:
    outcomes = [(1, 1)] * both + [(1, 0)] * a_only + [(0, 1)] * b_only + [(0, 0)] * neither
    return difference(
        {f"s{i}": {0: a} for i, (a, _) in enumerate(outcomes)},
        {f"s{i}": {0: b} for i, (_, b) in enumerate(outcomes)},
    )


@pytest.mark.parametrize(
    ("cells", "estimate", "low", "high"),
    [
        # Fagerland, Lydersen and Laake (2014): complete response before and after consolidation therapy, and airway
        # hyper-responsiveness before and after stem cell transplantation; Tango's interval.
        ((59, 6, 16, 80), 0.0621, 0.0054, 0.1240),
        ((1, 1, 7, 12), 0.2857, 0.0260, 0.5172),
        # Tango (1998): without a discordant pair the limits are ± z² / (n + z²).
        ((10, 0, 0, 10), 0.0, -3.8415 / 23.8415, 3.8415 / 23.8415),
    ],
)
def test_the_interval_is_tangos(
    cells: tuple[int, int, int, int], estimate: float, low: float, high: float
) -> None:
    found = table(*cells)
    assert (found.estimate, found.low, found.high) == pytest.approx((estimate, low, high), abs=6e-5)
    assert (found.both, found.a_only, found.b_only, found.neither) == cells
    assert (found.method, found.test) == ("Tango", "exact McNemar")


def test_the_interval_lies_near_that_of_newcombe() -> None:
    # Newcombe (1998), method 10, on the first table above: -.1186 to -.0046 of the other direction.
    found = table(59, 6, 16, 80)
    assert (found.low, found.high) == pytest.approx((0.0046, 0.1186), abs=6e-3)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_that_of_statsmodels_and_the_sign_flip_of_single_pairs(a_only: int, b_only: int) -> None:
    assume(a_only + b_only)
    theirs = float(statsmodels_mcnemar([[3, a_only], [b_only, 3]], exact=True).pvalue)
    signs = [1] * b_only + [-1] * a_only
    assert mcnemar(a_only, b_only) == pytest.approx(theirs, rel=1e-9)
    assert sign_flip_counts(signs, [1] * len(signs)) == pytest.approx(theirs, rel=1e-9)


def test_the_published_p_of_mcnemar() -> None:
    assert mcnemar(6, 16) == pytest.approx(0.052479, abs=5e-7)
    assert mcnemar(0, 0) == 1


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-4, 4)), min_size=1, max_size=8))
def test_the_exact_sign_flip_is_brute_force(rows: list[tuple[int, int]]) -> None:
    sizes = [size for size, _ in rows]
    sums = [max(-size, min(size, total)) for size, total in rows]
    values = np.array(sums) / np.array(sizes)
    patterns = np.array(list(product((1, -1), repeat=len(rows)))) @ values
    expected = (np.abs(patterns) >= abs(values.sum()) - 1e-9).mean()
    assert sign_flip_counts(sums, sizes) == pytest.approx(expected)
    assert sign_flip(values)[0] == pytest.approx(expected)


def test_many_scenarios_are_still_exact_where_differences_are_fractions() -> None:
    sums, sizes = [3, -1, 2, 0] * 50, [10, 7, 3, 9] * 50
    p = sign_flip_counts(sums, sizes)
    drawn, said = sign_flip(np.array(sums) / np.array(sizes), seed=1)
    assert said == "sign-flip permutation, 10,000 draws (seed 1)"
    assert p is not None
    assert p < 1e-9
    assert drawn == 2e-4, "drawn p never falls below what the draws can tell"
    assert sign_flip_counts([1] * 40, [*range(11, 51)]) is None, "a common step too fine for it"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
@settings(deadline=None, max_examples=40)
def test_a_permutation_p_lies_between_one_draw_and_one(values: list[float]) -> None:
    p, _ = sign_flip(np.array(values), draws=500)
    assert 1 / 500 < p <= 1
    assert sign_flip(-np.array(values), draws=500)[0] == p


@settings(deadline=None)
@given(PAIRED)
def test_a_difference_is_symmetric_and_lies_within_its_interval(
    pairs: dict[str, dict[int, tuple[int, int]]],
) -> None:
    a = {name: {i: left for i, (left, _) in row.items()} for name, row in pairs.items()}
    b = {name: {i: right for i, (_, right) in row.items()} for name, row in pairs.items()}
    there, back = difference(a, b), difference(b, a)
    assert there.low is not None
    assert there.high is not None
    assert -1 <= there.low <= there.estimate <= there.high <= 1
    assert there.low < there.high
    assert (-back.high, -back.estimate, -back.low) == pytest.approx(
        (there.low, there.estimate, there.high), abs=1e-9
    )  # type: ignore[operator]
    assert (back.p, back.a_only, back.b_only) == (there.p, there.b_only, there.a_only)
    assert there.b.estimate - there.a.estimate == pytest.approx(there.estimate, abs=1e-9)
    assert there.p is None or 0 < there.p <= 1
    discordant = (there.a_only, there.b_only, there.both, there.neither)
    assert sum(filter(None, discordant)) == there.pairs


def test_repeats_are_tested_over_scenarios_and_not_over_trials() -> None:
    a = {f"s{i}": dict.fromkeys(range(10), 0) for i in range(4)}
    b = {f"s{i}": dict.fromkeys(range(10), int(i < 3)) for i in range(4)}
    found = difference(a, b)
    assert (found.a_only, found.b_only) == (0, 30)
    assert found.p == 0.25, "thirty discordant pairs in three scenarios are three signs"
    assert found.test == "sign-flip permutation, exact"
    assert found.method == "Tango, effective number of pairs"
    assert found.effective_n == pytest.approx(4)
    assert "Only 3 scenarios differ: p cannot fall below 0.25, however they differ." in found.warnings
    assert any(sentence.startswith("4 scenarios: below about 40") for sentence in found.warnings)


def test_pairs_that_lack_a_partner_are_dropped_and_counted() -> None:
    a = {"one": {0: 1, 1: 0, 2: 1}, "two": {0: 0}, "only a": {0: 1}, "three": {0: 0}}
    b = {"one": {0: 1, 1: 1}, "two": {0: 1, 5: 0}, "three": {0: 0}}
    found = difference(a, b)
    assert (found.pairs, found.scenarios, found.dropped) == (4, 3, 3)
    assert found.warnings[0] == "3 trials have no partner under the other variant and do not count."
    assert (found.a.trials, found.b.trials) == (4, 4)
    assert found.estimate == pytest.approx((0.5 + 1 + 0) / 3)


def test_no_pair_in_common_is_an_error_that_says_what_to_do() -> None:
    for b in ({}, {"s": {1: 1}}, {"t": {0: 1}}):
        with pytest.raises(ValueError, match="no scenario and repeat in common"):
            difference({"s": {0: 1}}, b)


def test_variants_that_never_differ_still_have_an_interval() -> None:
    same = {f"s{i}": {j: float(i % 2) for j in range(3)} for i in range(30)}
    found = difference(same, same)
    assert (found.estimate, found.p) == (0, 1)
    assert (found.low, found.high) == pytest.approx((-3.8415 / 33.8415, 3.8415 / 33.8415), abs=1e-4)
    assert (found.design_effect, found.effective_n) == (None, None)


def test_always_the_one_and_never_the_other() -> None:
    found = table(0, 0, 12, 0)
    assert (found.estimate, found.high) == (1, 1)
    assert found.low is not None
    assert 0.4 < found.low < 1
    assert found.p == pytest.approx(2 / 2**12)


def test_one_scenario_is_not_tested() -> None:
    found = difference({"s": dict.fromkeys(range(9), 0)}, {"s": dict.fromkeys(range(9), 1)})
    assert (found.p, found.test) == (None, "none: one scenario")
    assert found.warnings[0].startswith("One scenario")


def test_an_interval_and_a_test_that_disagree_are_pointed_out() -> None:
    found = table(59, 6, 16, 80)
    assert found.warnings == (
        "On the edge: the interval leaves 0 out, and the test has p = 0.052. The test decides.",
    )


def test_numbers_are_compared_by_their_means() -> None:
    random = np.random.default_rng(2)
    a = {f"s{i}": {0: 100.0 + 10 * i, 1: 102.0 + 10 * i} for i in range(12)}
    b = {
        name: {i: value - 20 + float(random.normal()) for i, value in row.items()} for name, row in a.items()
    }
    found = difference(a, b)
    assert found.estimate == pytest.approx(-20, abs=1)
    assert (found.a_only, found.both) == (None, None)
    assert found.p == pytest.approx(2 / 2**12)
    assert isinstance(found.a, Mean)
    assert isinstance(table(1, 1, 1, 1).a, Rate)
    assert found.high is not None
    assert found.high < -18
    many = difference(
        {f"s{i}": {0: float(i)} for i in range(60)}, {f"s{i}": {0: i + 0.01 * (i % 7)} for i in range(60)}
    )
    assert many.method.startswith("bootstrap-t")
    assert many.test == "sign-flip permutation, 10,000 draws (seed 0)"


def test_numbers_that_differ_by_the_same_amount_say_that_nothing_varied() -> None:
    found = difference({f"s{i}": {0: 5.0} for i in range(8)}, {f"s{i}": {0: 7.0} for i in range(8)})
    assert (found.low, found.estimate, found.high) == (None, 2, None), (
        "one value tells nothing of how far others lie"
    )
    assert any(sentence.startswith("All scenarios are equal") for sentence in found.warnings)


def test_differences_that_cancel_are_as_near_to_0_as_can_be() -> None:
    assert sign_flip(np.array([-0.2, 0.1, -0.8, 1.2, -0.4, 0.1]))[0] == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_no_finite_number_is_refused(value: float) -> None:
    for a, b in (({"s": {0: value}}, {"s": {0: 1}}), ({"s": {0: value}}, {"s": {0: value}})):
        with pytest.raises(ValueError, match="not a finite number"):
            difference(a, b)
