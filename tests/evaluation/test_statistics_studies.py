"""What surrounds a single figure: many comparisons, missing trials, and a machine without scipy."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from reyn_jupyter.evaluation.statistics.missing import worst_difference, worst_rate
from reyn_jupyter.evaluation.statistics.multiple import benjamini_hochberg, holm
from reyn_jupyter.evaluation.statistics.rates import rate

P_VALUES = st.lists(st.floats(0, 1), max_size=30)


def test_holms_own_example() -> None:
    # Sorted p of .01, .02, .03, .04 times 4, 3, 2, 1, and never falling.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert benjamini_hochberg([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.04, 0.04, 0.04, 0.04))


@settings(max_examples=15, deadline=None)
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


@given(st.integers(0, 40))
def test_missing_trials_widen_the_bounds_around_the_rate(missing: int) -> None:
    low, high = worst_rate(ARM, missing)
    assert 0 <= low <= rate(ARM).estimate <= high <= 1
    assert high - low == pytest.approx(missing / (8 + missing))


def test_the_bounds_are_the_rates_with_every_missing_trial_failed_and_passed() -> None:
    low, high = worst_rate(ARM, 8)
    filled = [{name: {**row, 2: value, 3: value} for name, row in ARM.items()} for value in (0, 1)]
    assert (low, high) == pytest.approx(tuple(rate(arm).estimate for arm in filled))


def test_the_bounds_of_a_difference_go_against_b_and_for_b() -> None:
    a, b = {"x": {0: 0}, "y": {0: 1}}, {"x": {0: 1}, "y": {0: 1}}
    assert worst_difference(a, b, 0, 0) == (0.5, 0.5)
    assert worst_difference(a, b, 2, 0) == pytest.approx((0.25, 0.75))
    assert worst_difference(a, b, 0, 2) == pytest.approx((0.0, 0.5))
    low, high = worst_difference(a, b, 5, 3)
    assert worst_difference(b, a, 3, 5) == pytest.approx((-high, -low))


def test_nothing_but_missing_trials_says_nothing() -> None:
    assert worst_rate({}, 5) == (0, 1)
    assert worst_difference({}, {}, 3, 3) == (-1, 1)
    with pytest.raises(ValueError, match="cannot be missing"):
        worst_rate(ARM, -1)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_modules_load_neither_scipy_nor_statsmodels_nor_pandas() -> None:
    loaded = run(
        "import sys, importlib, pkgutil, reyn_jupyter.evaluation.statistics as room\n"
        "for found in pkgutil.iter_modules(room.__path__, room.__name__ + '.'): importlib.import_module(found.name)\n"
        "print(*({'scipy', 'statsmodels', 'pandas'} & set(sys.modules)))"
    )
    assert loaded.strip() == ""


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("scipy", "rates.rate({'a': {0: 1, 1: 0}, 'b': {0: 1}})"),
        ("statsmodels", "multiple.holm([.1, .2])"),
    ],
)
def test_without_a_library_the_error_carries_the_line_that_installs_it(library: str, call: str) -> None:
    said = run(
        f"import sys\nsys.modules[{library!r}] = None\n"
        "from reyn_jupyter.evaluation.statistics import rates, multiple\n"
        f"try: {call}\nexcept ImportError as error: print(error)"
    )
    assert said.startswith(f"{library} is not installed")
    assert "pip install 'reyn-jupyter[eval]'" in said
