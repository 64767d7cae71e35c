"""How often the intervals hold the truth, and how often the tests err, on synthetic outcome tables.

A table is what a study leaves: passes by scenario. Scenarios differ by a beta distribution with a stated intraclass
correlation, repeats within one are independent, and two arms share their scenarios' difficulty through a Gaussian
copula. The formulas are those that `rate` and `difference` use, over many tables at a time. The rules that one might
use instead run over the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy import special, stats

from reyn_jupyter.evaluation.statistics.confidence_sequence import betting_limits, stop
from reyn_jupyter.evaluation.statistics.intervals import bootstrap_t, rate_limits, spread, tango_limits
from reyn_jupyter.evaluation.statistics.paired import mcnemar, sign_flip_counts

LEVEL, BAND = 0.95, (0.94, 0.97)
TABLES = 100_000
# The worst cell of hundreds is mostly bad luck, so that the candidates are drawn again.
REDRAWN, REDRAWS = 24, 4_000
RATES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
GAPS = ((0.05, 0.05), (0.05, 0.15), (0.2, 0.5), (0.36, 0.8), (0.5, 0.5), (0.5, 0.65), (0.9, 0.95))
SCENARIOS, CORRELATIONS, REPEATS = (10, 20, 40, 80, 200), (0.0, 0.1, 0.3, 0.5), (1, 2, 3, 5, 10)
STOPPED_GAPS = ((0.5, 0.5), (0.36, 0.8), (0.5, 0.65), (0.1, 0.6), (0.9, 0.95))
Limits = tuple[Any, Any]


@dataclass(frozen=True)
class Cell:
    """One kind of table: true rates of a and b, scenarios, ICC, repeats, and how far the arms share difficulty."""

    a: float
    b: float
    scenarios: int
    icc: float
    repeats: int
    shared: float = 0.0


STOPPED = [Cell(*gap, 120, 0.4, repeats) for gap, repeats in product(STOPPED_GAPS, (1, 2))]


def rate_cells() -> list[Cell]:
    return [Cell(p, p, *rest) for p, *rest in product(RATES, SCENARIOS, CORRELATIONS, REPEATS)]


def difference_cells() -> list[Cell]:
    cells = product(GAPS, SCENARIOS, CORRELATIONS, REPEATS)
    return [Cell(*gap, *rest, (0.0, 0.7, 1.0)[i % 3]) for i, (gap, *rest) in enumerate(cells)]


def draw(cell: Cell, tables: int, random: np.random.Generator) -> tuple[Any, Any, Any]:
    """Pairs that only a passed, only b passed, and both passed, each of shape (tables, scenarios)."""
    common = random.standard_normal((tables, cell.scenarios))
    own = random.standard_normal((tables, cell.scenarios))
    other = cell.shared * common + np.sqrt(1 - cell.shared**2) * own
    chance_a, chance_b = _chances(cell.a, cell.icc, common), _chances(cell.b, cell.icc, other)
    passed_b = random.binomial(cell.repeats, chance_b)
    both = random.binomial(passed_b, chance_a)
    return random.binomial(cell.repeats - passed_b, chance_a), passed_b - both, both


def _chances(rate: float, icc: float, normal: Any) -> Any:
    """Chances of passing by scenario: beta distributed about the rate, by the quantiles of a normal variable."""
    if icc == 0:
        return np.full(normal.shape, rate)
    return np.interp(special.ndtr(normal), *_quantiles(rate, icc))


@cache
def _quantiles(rate: float, icc: float) -> tuple[Any, Any]:
    grid = np.linspace(0, 1, 2_001)
    return grid, special.betaincinv(rate * (1 - icc) / icc, (1 - rate) * (1 - icc) / icc, grid)


def rate_rule(passed: Any, repeats: int) -> Limits:
    """What `rate` does, over tables: passes of shape (tables, scenarios)."""
    shares = passed / repeats
    estimate = shares.mean(axis=1)
    sizes = np.full(passed.shape[1], float(repeats))
    return rate_limits(estimate, spread(shares, sizes, estimate * (1 - estimate), LEVEL).adjusted, LEVEL)


def difference_rule(a_only: Any, b_only: Any, repeats: int) -> Limits:
    """What `difference` does, over tables: discordant pairs of shape (tables, scenarios)."""
    gaps = (b_only - a_only) / repeats
    left, right = a_only.mean(axis=1) / repeats, b_only.mean(axis=1) / repeats
    simple = np.maximum(left + right - (right - left) ** 2, 0)
    sizes = np.full(a_only.shape[1], float(repeats))
    return tango_limits(left, right, spread(gaps, sizes, simple, LEVEL).adjusted, LEVEL)


def t_rule(values: Any) -> Limits:
    """The t interval over means of scenarios."""
    count = values.shape[1]
    half = stats.t.ppf((1 + LEVEL) / 2, count - 1) * values.std(axis=1, ddof=1) / np.sqrt(count)
    return values.mean(axis=1) - half, values.mean(axis=1) + half


def percentile_rule(values: Any, random: np.random.Generator, resamples: int = 999) -> Limits:
    """The percentile bootstrap over means of scenarios."""
    count = values.shape[1]
    weights = random.multinomial(count, np.full(count, 1 / count), size=resamples)
    low, high = np.quantile(values @ weights.T / count, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    return low, high


def share_holding(limits: Limits, truth: float) -> float:
    low, high = limits
    return float(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).mean())


def rate_coverage(cell: Cell, tables: int, random: np.random.Generator) -> float:
    a_only, _, both = draw(cell, tables, random)
    return share_holding(rate_rule(a_only + both, cell.repeats), cell.a)


def difference_coverage(cell: Cell, tables: int, random: np.random.Generator) -> float:
    a_only, b_only, _ = draw(cell, tables, random)
    return share_holding(difference_rule(a_only, b_only, cell.repeats), cell.b - cell.a)


def sign_flip_errors(cell: Cell, tables: int, random: np.random.Generator) -> tuple[float, float]:
    """How often p ≤ .05 without a difference: the sign-flip test over scenarios, and McNemar's over all pairs."""
    a_only, b_only, _ = draw(cell, tables, random)
    sizes = [cell.repeats] * cell.scenarios
    ours = [(sign_flip_counts(row.tolist(), sizes) or 0) <= 0.05 for row in b_only - a_only]
    pairs = zip(a_only.sum(axis=1), b_only.sum(axis=1), strict=True)
    return float(np.mean(ours)), float(np.mean([mcnemar(int(a), int(b)) <= 0.05 for a, b in pairs]))


def peeking_errors(cell: Cell, runs: int, random: np.random.Generator) -> tuple[float, float]:
    """How often a look after every scenario stops without a difference: by E ≥ 20, and by the exact p ≤ .05."""
    a_only, b_only, _ = draw(cell, runs, random)
    gaps = b_only - a_only
    wins, seen = (gaps > 0).cumsum(axis=1), (gaps != 0).cumsum(axis=1)
    counts = np.arange(cell.scenarios + 1)
    least = np.minimum(wins, seen - wins)
    peeked = 2 * stats.binom.cdf(counts[None, :], counts[:, None], 0.5)
    return (
        float(np.mean([stop(row / cell.repeats) is not None for row in gaps])),
        float((peeked[seen, least] <= 0.05).any(axis=1).mean()),
    )


def at_stops(cell: Cell, runs: int, random: np.random.Generator) -> tuple[float, float, float, float]:
    """Runs that stop at E ≥ 20, or after the last scenario: how often the confidence sequence holds the truth where
    they stop, how often Tango's interval does, and how wide both are on average."""
    a_only, b_only, _ = draw(cell, runs, random)
    gaps = (b_only - a_only) / cell.repeats
    ours, fixed = np.empty((2, runs)), np.empty((2, runs))
    for run, row in enumerate(gaps):
        count = stop(row) or cell.scenarios
        ours[:, run] = betting_limits(row[:count], LEVEL)
        limits = difference_rule(a_only[run : run + 1, :count], b_only[run : run + 1, :count], cell.repeats)
        fixed[:, run] = limits[0][0], limits[1][0]
    truth = cell.b - cell.a
    return (
        share_holding((ours[0], ours[1]), truth),
        share_holding((fixed[0], fixed[1]), truth),
        float((ours[1] - ours[0]).mean()),
        float((fixed[1] - fixed[0]).mean()),
    )


def ever_missed(cell: Cell, runs: int, random: np.random.Generator) -> tuple[float, float]:
    """How often an interval misses the truth at some scenario of a run: the confidence sequence, whose last interval
    is where all before it meet, and Tango's, looked at from the ninth scenario on."""
    a_only, b_only, _ = draw(cell, runs, random)
    truth = cell.b - cell.a
    missed = np.zeros(runs, dtype=bool)
    for count in range(9, cell.scenarios + 1):
        low, high = difference_rule(a_only[:, :count], b_only[:, :count], cell.repeats)
        missed |= (low > truth + 1e-9) | (high < truth - 1e-9)
    gaps = (b_only - a_only) / cell.repeats
    limits = np.array([betting_limits(row, LEVEL) for row in gaps]).T
    return 1 - share_holding((limits[0], limits[1]), truth), float(missed.mean())


def _sweep(name: str, cells: list[Cell], measure: Callable[..., float], random: np.random.Generator) -> None:
    tables = -(-TABLES // len(cells))
    found = {cell: measure(cell, tables, random) for cell in cells}
    mean = np.mean(list(found.values()))
    print(f"{name}: {tables * len(cells):,} tables in {len(cells)} cells, 95 % intervals")
    print(f"  ours                   mean {mean:.4f}   must lie within {BAND[0]:.2f}–{BAND[1]:.2f}")
    for label, part in (
        ("one repeat", [c for c in cells if c.repeats == 1]),
        ("repeats, C < 40", [c for c in cells if c.repeats > 1 and c.scenarios < 40]),
        ("repeats, C ≥ 40", [c for c in cells if c.repeats > 1 and c.scenarios >= 40]),
    ):
        print(f"    {label:20} mean {np.mean([found[cell] for cell in part]):.4f}")
    worst = {c: measure(c, REDRAWS, random) for c in sorted(found, key=lambda c: found[c])[:REDRAWN]}
    cell = min(worst, key=lambda c: worst[c])
    print(f"    worst cell           {worst[cell]:.4f}  {cell}")


def _others(cells: Iterable[Cell], paired: bool, random: np.random.Generator) -> None:
    """The rules that one might use instead: t below 40 scenarios, the percentile bootstrap from 40 on."""
    t, bootstrap = {}, {}
    for cell in (cell for cell in cells if cell.repeats > 1):
        a_only, b_only, both = draw(cell, 60, random)
        values = (b_only - a_only if paired else a_only + both) / cell.repeats
        truth = cell.b - cell.a if paired else cell.a
        if cell.scenarios < 40:
            t[cell] = share_holding(t_rule(values), truth)
        else:
            bootstrap[cell] = share_holding(percentile_rule(values, random), truth)
    for label, found in (("t, C < 40", t), ("percentile bootstrap, C ≥ 40", bootstrap)):
        low = np.mean(sorted(found.values())[: len(found) // 10])
        print(
            f"  beside it: {label:29} mean {np.mean(list(found.values())):.4f}   worst tenth of cells {low:.3f}"
        )


def _means(random: np.random.Generator, tables: int = 1_500) -> None:
    """Numbers with a long tail, as tokens and seconds have: what `mean` does from 40 scenarios on, beside others."""
    print(f"mean of lognormal numbers, σ = 1, {tables:,} tables a line")
    truth = float(np.exp(0.5))
    for scenarios in (40, 80, 200):
        values = random.lognormal(0, 1, (tables, scenarios))
        ours = np.array([bootstrap_t(row, LEVEL, seed, draws=999) for seed, row in enumerate(values)]).T
        found = [
            share_holding((low, high), truth)
            for low, high in (ours, t_rule(values), percentile_rule(values, random))
        ]
        print("  {} scenarios: bootstrap-t {:.3f}   t {:.3f}   percentile {:.3f}".format(scenarios, *found))


def main() -> None:
    random = np.random.default_rng(20_260)
    _sweep("rate", rate_cells(), rate_coverage, random)
    _others(rate_cells(), False, random)
    _sweep("difference", difference_cells(), difference_coverage, random)
    _others(difference_cells(), True, random)
    _means(random)
    print("false findings at 5 %, equal rates, scenarios that favour one arm or the other at random")
    for cell in (Cell(0.5, 0.5, 20, 0.5, 5), Cell(0.5, 0.5, 40, 0.5, 10), Cell(0.1, 0.1, 40, 0.3, 10, 0.7)):
        ours, naive = sign_flip_errors(cell, 2_000, random)
        print(f"  sign-flip {ours:.3f}   McNemar over all pairs {naive:.3f}   {cell}")
    for cell in (Cell(0.5, 0.5, 200, 0.5, 1), Cell(0.5, 0.5, 200, 0.5, 5), Cell(0.1, 0.1, 200, 0.3, 3)):
        ours, naive = peeking_errors(cell, 20_000, random)
        print(f"  e-value at each scenario {ours:.3f}   p at each scenario {naive:.3f}   {cell}")
    print(
        "runs of at most 120 scenarios that stop at E ≥ 20: 95 % intervals that hold the truth, and their width"
    )
    for cell in STOPPED:
        held, naive, width, narrow = at_stops(cell, 600, random)
        ever, tango = ever_missed(cell, 300, random)
        print(
            f"  sequence {held:.3f} (width {width:.2f})   Tango {naive:.3f} ({narrow:.2f})   "
            f"missed at some look: {ever:.3f}, Tango {tango:.3f}   {cell}"
        )


if __name__ == "__main__":
    main()
