"""How often the interval of one variant's rate holds the truth, and how wide it is, beside other intervals.

Rates from 0 to 1 with their ends, few scenarios, repeats, and scenarios that differ: the tables of `coverage`, where a
rate is near 0 or 1. All intervals take the same effective sample size (Korn and Graubard, 1998).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy import special, stats

from reyn_jupyter.evaluation.statistics.intervals import rate_limits, spread
from tests.benchmarks.coverage import LEVEL, Limits, share_holding

RATES = (0.0, 0.005, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
SCENARIOS, REPEATS, CORRELATIONS = (8, 12, 20, 50), (1, 2, 5), (0.0, 0.3, 0.8)
TABLES = 8_000
Kind = tuple[float, int, int, float]  # rate, scenarios, repeats, intraclass correlation
KINDS: list[Kind] = list(product(RATES, SCENARIOS, REPEATS, CORRELATIONS))


def draw(kind: Kind, tables: int, random: np.random.Generator) -> Any:
    """Passes of shape (tables, scenarios); scenarios differ by a beta distribution."""
    rate, scenarios, repeats, icc = kind
    alike = icc == 0 or rate in (0, 1)
    shape = (tables, scenarios)
    chances = (
        np.full(shape, rate)
        if alike
        else random.beta(rate * (1 - icc) / icc, (1 - rate) * (1 - icc) / icc, shape)
    )
    return random.binomial(repeats, chances)


def wilson(share: Any, size: Any) -> Limits:
    """Wilson's score interval, and Clopper and Pearson's where none or all passed."""
    z2 = stats.norm.ppf((1 + LEVEL) / 2) ** 2
    centre = (share + z2 / (2 * size)) / (1 + z2 / size)
    half = np.sqrt(z2 * (share * (1 - share) / size + z2 / (4 * size**2))) / (1 + z2 / size)
    return _exact_at_the_ends(share, size, (centre - half, centre + half))


def agresti_coull(share: Any, size: Any) -> Limits:
    """Agresti and Coull's interval, and Clopper and Pearson's where none or all passed."""
    z2 = stats.norm.ppf((1 + LEVEL) / 2) ** 2
    more = size + z2
    centre = (share * size + z2 / 2) / more
    half = np.sqrt(z2 * centre * (1 - centre) / more)
    return _exact_at_the_ends(share, size, (np.maximum(centre - half, 0), np.minimum(centre + half, 1)))


def mid_p(share: Any, size: Any) -> Limits:
    """The exact interval with half the weight of what was seen, and Clopper and Pearson's where none or all passed."""
    passed, failed = np.maximum(share * size, 1e-12), np.maximum((1 - share) * size, 1e-12)

    def at_least(rate: Any) -> Any:
        more, less = special.betainc(passed + 1, failed, rate), special.betainc(passed, failed + 1, rate)
        return (more + less) / 2

    tail = (1 - LEVEL) / 2
    low, high = np.zeros_like(share), np.ones_like(share)
    below, above = share.copy(), share.copy()
    for _ in range(50):
        middle, other = (low + below) / 2, (above + high) / 2
        left_out, beyond = at_least(middle) < tail, 1 - at_least(other) < tail
        low, below = np.where(left_out, middle, low), np.where(left_out, below, middle)
        high, above = np.where(beyond, other, high), np.where(beyond, above, other)
    return _exact_at_the_ends(share, size, (below, above))


def _exact_at_the_ends(share: Any, size: Any, limits: Limits) -> Limits:
    ends, exact = (share <= 0) | (share >= 1), rate_limits(share, size, LEVEL)
    return np.where(ends, exact[0], limits[0]), np.where(ends, exact[1], limits[1])


RULES: dict[str, Callable[[Any, Any], Limits]] = {
    "Clopper-Pearson": lambda share, size: rate_limits(share, size, LEVEL),
    "Wilson": wilson,
    "mid-p": mid_p,
    "Agresti-Coull": agresti_coull,
}


def measure(kind: Kind, tables: int, random: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Rule → the share of its intervals that hold the truth, and their mean width."""
    rate, scenarios, repeats, _ = kind
    # Tables with the same passes, in whichever scenarios, have the same interval.
    passed, times = np.unique(np.sort(draw(kind, tables, random), axis=1), axis=0, return_inverse=True)
    share = passed.mean(axis=1) / repeats
    size = spread(passed / repeats, np.full(scenarios, float(repeats)), share * (1 - share), LEVEL).adjusted
    found = {}
    for name, rule in RULES.items():
        low, high = (limit[times.ravel()] for limit in rule(share, size))
        found[name] = share_holding((low, high), rate), float((high - low).mean())
    return found


def main() -> None:
    random = np.random.default_rng(17)
    kinds = [kind for kind in KINDS if kind[0] not in (0, 1) or kind[3] == 0]
    found = {kind: measure(kind, TABLES, random) for kind in kinds}
    print(f"95 % intervals of a rate, {TABLES:,} tables of each of {len(kinds)} kinds")
    for repeats in REPEATS:
        for name in RULES:
            here = {kind: each[name] for kind, each in found.items() if kind[2] == repeats}
            worst = min(here, key=lambda kind: here[kind][0])
            covered, widths = zip(*here.values(), strict=True)
            print(
                f"  {repeats} repeats  {name:16} worst {here[worst][0]:.3f} (rate {worst[0]:g}, {worst[1]} scenarios, "
                f"ICC {worst[3]:g})   mean {np.mean(covered):.3f}   width {np.mean(widths):.3f}   "
                f"kinds below .93: {sum(each < LEVEL - 0.02 for each in covered)} of {len(covered)}"
            )
    print("by rate, one repeat: covered and mean width of Clopper-Pearson, then of Wilson")
    for rate, scenarios in product(RATES, SCENARIOS):
        ours, wilsons = (found[rate, scenarios, 1, 0.0][name] for name in ("Clopper-Pearson", "Wilson"))
        print(
            f"  rate {rate:<5g} {scenarios:2} scenarios   {ours[0]:.3f} {ours[1]:.3f}   "
            f"{wilsons[0]:.3f} {wilsons[1]:.3f}"
        )


if __name__ == "__main__":
    main()
