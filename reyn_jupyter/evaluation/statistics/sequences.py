"""An interval that holds however often one looks, and whenever one stops.

Invariant: the chance that any of the intervals along a run misses the truth is at most 1 − level, with any number of
scenarios. An interval of a fixed number has no such promise in a run that stopped when the figures looked good.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.evaluation.statistics.evalue import STAKES
from reyn_jupyter.evaluation.statistics.limits import normal_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from reyn_jupyter.evaluation.statistics.arms import Floats

_HALVINGS = 20  # of an interval of length 1: to six digits


def betting_limits(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """A confidence sequence for the mean of scenarios whose differences lie within −1 and 1.

    A mean is left out once a bettor who started with 1 would have had 1 / (1 − level) by betting against it, with the
    stakes of `evalue`: so 0 is left out just where the e-value stops. Source: Waudby-Smith and Ramdas (2024), by
    betting; Orabona and Jun (2024), the universal portfolio.

    Args:
        values: the difference of each scenario in the order in which they were looked at, shape (scenarios,).
        level: the confidence level.

    Returns:
        Low and high, within −1 and 1, around the mean; (−1, 1) without a scenario.

    Raises:
        ValueError: a value lies outside of −1 and 1, or the level outside of 0 and 1.

    Example:
        >>> low, high = betting_limits(np.array([1.0] * 7))
        >>> f"{low:.2f} to {high:.2f}"
        '0.02 to 1.00'
    """
    normal_quantile(level)
    if not len(values):
        return -1.0, 1.0
    if not (np.abs(values) <= 1).all():
        raise ValueError(
            "differences of rates lie within −1 and 1; numbers without bounds have no such interval"
        )
    shares = (values + 1) / 2
    estimate, threshold = float(shares.mean()), -math.log(1 - level)
    chances = (1 + STAKES) / 2
    kinds, kind_of = np.unique(shares, return_inverse=True)  # few: a logarithm for each of them is enough

    def held(mean: float) -> bool:
        bets = np.outer(kinds, chances / mean) + np.outer(1 - kinds, (1 - chances) / (1 - mean))
        capital = np.log(bets)[kind_of].cumsum(axis=0)
        most = capital.max(axis=1)
        return bool((most + np.log(np.exp(capital - most[:, None]).mean(axis=1))).max() < threshold)

    low, high = (_edge(held, estimate, end) for end in (0.0, 1.0))
    return 2 * low - 1, 2 * high - 1


def _edge(held: Callable[[float], bool], estimate: float, end: float) -> float:
    """The mean furthest from the estimate, towards an end, that is not left out; the estimate where that one is."""
    inner, outer = estimate, end
    if inner == outer:
        return end
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if held(middle) else (inner, middle)
    return outer
