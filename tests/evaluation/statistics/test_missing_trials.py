"""What surrounds a single figure: many comparisons, missing trials, and a machine without scipy."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from reyn_jupyter.evaluation.statistics.missing import worst_difference, worst_rate
from reyn_jupyter.evaluation.statistics.multiple import benjamini_hochberg, holm
from reyn_jupyter.evaluation.statistics.paired import difference
from reyn_jupyter.evaluation.statistics.rates import rate

P_VALUES = st.lists(st.floats(0, 1), max_size=30)


def test_holms_own_example() -> None:
    # Sorted p of .01, .02, .03, .04 times 4, 3, 2, 1, and never falling.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert benjamini_hochberg([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.04, 0.04, 0.04, 0.04))


@pytest.fixture(scope="module")
def no_garbage_collection() -> Iterator[None]:
    """statsmodels collects all garbage at every correction: two seconds each where the whole suite is loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda *_: 0)
        yield


@pytest.mark.usefixtures("no_garbage_collection")
@given(P_VALUES)
def test_corrections_keep_order_and_never_help(p_values: list[float]) -> None:
    strict, loose = holm(p_values), benjamini_hochberg(p_values)
    assert len(strict) == len(loose) == len(p_values)
    for p, held, shared in zip(p_values, strict, loose, strict=True):
        assert p - 1e-12 <= shared <= held + 1e-12 <= 1 + 1e-12
    if p_values:
        assert strict == pytest.approx(multipletests(p_values, method="holm")[1])
        assert loose == pytest.approx(false_discovery_control(p_values))


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_what_is_no_p_is_refused(value: float) -> None:
    for correct in (holm, benjamini_hochberg):
        with pytest.raises(ValueError, match="is not a p-value"):
            correct([0.5, value])


ARM = {"a": {0: 1, 1: 1}, "b": {0: 0, 1: 1}, "c": {0: 0, 1: 0}, "d": {0: 1, 1: 0}}


MISSING = st.dictionaries(st.sampled_from("abcdef"), st.sets(st.integers(0, 4)))


@given(MISSING)
def test_missing_trials_widen_the_bounds_around_the_rate(missing: dict[str, set[int]]) -> None:
    low, high = worst_rate(ARM, missing)
    assert 0 <= low <= rate(ARM).estimate + 1e-12 and rate(ARM).estimate - 1e-12 <= high <= 1


@given(MISSING, st.randoms(use_true_random=False))
def test_whatever_missing_trials_had_shown_the_rate_and_the_difference_lie_within_the_bounds(
    missing: dict[str, set[int]], random: Random
) -> None:
    gone = {name: repeats - ARM.get(name, {}).keys() for name, repeats in missing.items()}
    shown = {name: {i: random.randint(0, 1) for i in repeats} for name, repeats in gone.items()}
    whole = {name: {**ARM.get(name, {}), **shown.get(name, {})} for name in ARM.keys() | shown.keys()}
    low, high = worst_rate(ARM, missing)
    assert low - 1e-12 <= rate(whole).estimate <= high + 1e-12
    other = {name: {i: (i + ord(name)) % 2 for i in range(5)} for name in "abcdef"}
    low, high = worst_difference(other, ARM, {}, gone)
    assert low - 1e-12 <= difference(other, whole).estimate <= high + 1e-12
    assert worst_difference(ARM, other, gone, {}) == pytest.approx((-high, -low))


def test_the_bounds_are_the_rates_with_every_missing_trial_failed_and_passed() -> None:
    missing = {"a": [2, 3, 4, 5, 6], "b": [2], "e": [0, 1]}
    filled = [
        {name: {**ARM.get(name, {}), **dict.fromkeys(missing.get(name, ()), value)} for name in "abcde"}
        for value in (0, 1)
    ]
    assert worst_rate(ARM, missing) == pytest.approx(tuple(rate(arm).estimate for arm in filled))


def test_missing_trials_count_in_the_scenario_where_they_are_missing() -> None:
    """One pass with two missing beside three failures: a sixth at worst, not a third."""
    assert worst_rate({"a": {0: 1}, "b": {0: 0, 1: 0, 2: 0}}, {"a": [1, 2]}) == pytest.approx((1 / 6, 1 / 2))


def test_the_bounds_of_a_difference_go_against_b_and_for_b() -> None:
    a, b = {"x": {0: 0}, "y": {0: 1}}, {"x": {0: 1}, "y": {0: 1}}
    assert worst_difference(a, b, {}, {}) == (0.5, 0.5)
    assert worst_difference(a, b, {}, {"x": [1]}) == (0.5, 0.5), "a has no such repeat, so there is no pair"
    assert worst_difference(a, b, {"x": [1]}, {"x": [1]}) == (0.0, 0.5)
    assert worst_difference(a, {"x": {0: 1}}, {}, {"y": [0]}) == (0.0, 0.5)


def test_nothing_but_missing_trials_says_nothing() -> None:
    gone = {"a": [0, 1], "b": [0]}
    assert worst_rate({}, gone) == (0, 1) == worst_rate({}, {})
    assert worst_difference({}, {}, gone, gone) == (-1, 1) == worst_difference({}, {}, {}, {})


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_modules_load_neither_scipy_nor_pandas_and_corrections_need_neither() -> None:
    loaded = run(
        "import sys, importlib, pkgutil, reyn_jupyter.evaluation.statistics as room\n"
        "for found in pkgutil.iter_modules(room.__path__, room.__name__ + '.'): importlib.import_module(found.name)\n"
        "room.multiple.holm([.1, .2]), room.multiple.benjamini_hochberg([.1, .2])\n"
        "print(*({'scipy', 'statsmodels', 'pandas'} & set(sys.modules)))"
    )
    assert loaded.strip() == ""


def test_without_scipy_the_error_carries_the_line_that_installs_it() -> None:
    said = run(
        "import sys\nsys.modules['scipy'] = None\n"
        "from reyn_jupyter.evaluation.statistics import rates\n"
        "try: rates.rate({'a': {0: 1, 1: 0}, 'b': {0: 1}})\nexcept ImportError as error: print(error)"
    )
    assert said.startswith("scipy is not installed")
    assert "pip install 'reyn-jupyter[eval]'" in said
