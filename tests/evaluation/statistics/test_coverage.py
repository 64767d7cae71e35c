"""The intervals hold the truth as often as they say, and the test over scenarios errs as rarely as it says."""

from __future__ import annotations

import numpy as np
import pytest

from reyn_jupyter.evaluation.statistics.paired import difference
from reyn_jupyter.evaluation.statistics.rates import rate
from tests.benchmarks import coverage, rate_intervals


def test_the_simulated_rules_are_those_of_rate_and_difference() -> None:
    random = np.random.default_rng(1)
    for cell in (*coverage.rate_cells()[::41], *coverage.difference_cells()[::41]):
        a_only, b_only, both = coverage.draw(cell, 1, random)
        a = {
            f"s{i}": _trials(cell.repeats, n, k, 0)
            for i, (n, k) in enumerate(zip(a_only[0], both[0], strict=True))
        }
        b = {
            f"s{i}": _trials(cell.repeats, n, k, skip)
            for i, (n, k, skip) in enumerate(zip(b_only[0], both[0], a_only[0], strict=True))
        }
        found, compared = rate(a), difference(a, b)
        low, high = coverage.rate_rule(a_only + both, cell.repeats)
        assert (found.low, found.high) == pytest.approx((low[0], high[0]), abs=1e-9)
        low, high = coverage.difference_rule(a_only, b_only, cell.repeats)
        assert (compared.low, compared.high) == pytest.approx((low[0], high[0]), abs=1e-9)
        assert (compared.a_only, compared.b_only, compared.both) == (a_only.sum(), b_only.sum(), both.sum())


def _trials(repeats: int, alone: int, both: int, skip: int) -> dict[int, float]:
    """Passes of both arms first, then those of the other arm, then this arm's own."""
    return {i: float(i < both or both + skip <= i < both + skip + alone) for i in range(repeats)}


def test_intervals_of_rates_cover_as_promised() -> None:
    random = np.random.default_rng(2)
    found = [coverage.rate_coverage(cell, 20, random) for cell in coverage.rate_cells()]
    assert 0.95 <= np.mean(found) <= 0.98


@pytest.mark.parametrize(
    "kind",
    [(0.01, 12, 1, 0.0), (0.99, 12, 1, 0.8), (0.005, 12, 2, 0.0), (0.5, 12, 1, 0.3), (0.05, 50, 5, 0.8)],
    ids=lambda kind: "rate {}, {} scenarios, {} repeats, ICC {}".format(*kind),
)
def test_a_rate_near_0_or_1_of_few_scenarios_is_held_as_promised(kind: rate_intervals.Kind) -> None:
    """Wilson's interval holds the first three in 88 to 89 % of studies; the last two are the worst of this one."""
    (covered, width), (wilson, _) = (
        rate_intervals.measure(kind, 4_000, np.random.default_rng(6))[name]
        for name in ("Clopper-Pearson", "Wilson")
    )
    assert covered >= 0.95 - 0.02 - 0.01, "two points below at the worst, and one of luck"
    assert covered >= wilson and width < 0.6


def test_intervals_of_differences_cover_as_promised() -> None:
    random = np.random.default_rng(3)
    found = [coverage.difference_coverage(cell, 20, random) for cell in coverage.difference_cells()]
    assert 0.94 <= np.mean(found) <= 0.97


@pytest.mark.parametrize(
    "cell",
    [coverage.Cell(0.05, 0.05, 20, 0.5, 10), coverage.Cell(0.05, 0.05, 40, 0.5, 10)],
    ids=["20 scenarios", "40 scenarios"],
)
def test_the_hardest_cells_do_not_fall_far_short(cell: coverage.Cell) -> None:
    assert coverage.rate_coverage(cell, 4_000, np.random.default_rng(4)) > 0.86


def test_the_sign_flip_errs_in_5_percent_where_pooled_trials_err_in_a_third() -> None:
    ours, pooled = coverage.sign_flip_errors(
        coverage.Cell(0.5, 0.5, 40, 0.5, 10), 800, np.random.default_rng(5)
    )
    assert ours < 0.07
    assert pooled > 0.3
