"""Sequential tests and intervals: stop early without being misled by looking often.

Invariants: however often one looks, the chance that E, the capital of a bettor against two rates being equal, ever
reaches 1 / α is at most α while scenarios differ by nothing on average, however unlike they are; and the chance that
any of the intervals along a run misses the truth is at most 1 − level, with any number of scenarios. Looking at p,
or at an interval of a fixed number, after every scenario has no such promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.evaluation.statistics.intervals import normal_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from reyn_jupyter.evaluation.statistics.arms import Floats


# The share of the capital that is staked, mixed over Beta(1/2, 1/2) stretched to −1 … 1, as in the universal portfolio
# (Cover and Ordentlich, 1996; Orabona and Jun, 2024). At these points that mixture is a plain mean: Gauss and
# Chebyshev's quadrature, exact up to 511 scenarios and to six digits for thousands.
STAKES: Floats = np.cos(np.pi * (np.arange(256) + 0.5) / 256)


@dataclass(frozen=True)
class SequentialState:
    """The evidence after a scenario.

    Attributes:
        scenarios: looked at so far, ties included.
        wins, losses, ties: scenarios by who did better, seen from the second variant.
        lead: the sum of the differences b − a until the evidence sufficed: whom it favours.
        log_e: natural logarithm of the e-value now.
        peak: the largest logarithm so far, at least 0.
        threshold: log(1 / α).
        stopped_at: how many scenarios had been looked at when the threshold was first reached; None before.
    """

    scenarios: int
    wins: int
    losses: int
    ties: int
    lead: float
    log_e: float
    peak: float
    threshold: float
    stopped_at: int | None

    @property
    def stopped(self) -> bool:
        """True if the evidence has sufficed; it stays so, whatever comes later."""
        return self.stopped_at is not None

    @property
    def p(self) -> float:
        """A p-value that holds at any time: 1 over the largest e-value so far."""
        return math.exp(-self.peak)


@dataclass
class Sequential:
    """Looks at scenarios one by one.

    Before each scenario a bettor stakes a share λ of the capital on its difference g = b − a, which multiplies the
    capital by 1 + λ g. While the differences are 0 on average, no bettor gains in the long run; E is the capital of
    many, one for each λ between −1 and 1. Source: Waudby-Smith and Ramdas (2024). Where every difference is −1, 0 or 1,
    this is the e-value of a fair coin against a mixture of coins: with k wins among n scenarios that are no tie,
    log E = log B(½ + k, ½ + n − k) − log B(½, ½) + n log 2.

    Args:
        alpha: the chance of stopping that is accepted where the variants are alike.

    Raises:
        ValueError: alpha is not between 0 and 1.

    Example:
        >>> looking = Sequential(alpha=0.05)
        >>> [looking.add(+1).stopped for _ in range(7)][-2:]
        [False, True]
    """

    alpha: float = 0.05
    state: SequentialState = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha is {self.alpha!r}; it must lie between 0 and 1, such as 0.05")
        self.state = SequentialState(0, 0, 0, 0, 0.0, 0.0, 0.0, -math.log(self.alpha), None)
        self._capital = np.zeros(len(STAKES))

    def add(self, gap: float) -> SequentialState:
        """Look at one more scenario.

        Args:
            gap: the scenario's difference b − a of two rates, −1 to 1; of numbers without bounds its sign. 0 is a tie,
                which carries no evidence.

        Returns:
            The new state.

        Raises:
            ValueError: the difference does not lie between −1 and 1.
        """
        if not abs(gap) <= 1:
            _check_gaps(np.array([gap]))
        old = self.state
        self._capital += np.log1p(gap * STAKES)
        most = float(self._capital.max())
        now = most + math.log(float(np.exp(self._capital - most).mean()))
        seen, peak = old.scenarios + 1, max(old.peak, now)
        wins, losses = old.wins + (gap > 0), old.losses + (gap < 0)
        lead = old.lead if old.stopped else old.lead + gap
        stopped = old.stopped_at if old.stopped_at or peak < old.threshold else seen
        self.state = SequentialState(
            seen, wins, losses, seen - wins - losses, lead, now, peak, old.threshold, stopped
        )
        return self.state


def stop(gaps: Iterable[float], alpha: float = 0.05) -> int | None:
    """After how many scenarios a run would have stopped.

    Args:
        gaps: a scenario's difference b − a, in an order that no outcome had a part in.
        alpha: the accepted chance of stopping where the variants are alike.

    Returns:
        The number of scenarios, ties included; None where the evidence never sufficed.

    Raises:
        ValueError: a difference does not lie between −1 and 1, or alpha makes no sense.

    Example:
        >>> stop([1, 1, 0, 1, 1, 1, 1, 1, 1, 1])
        8
    """
    threshold = Sequential(alpha).state.threshold
    values = np.fromiter(gaps, float)
    _check_gaps(values)
    kinds, kind_of = np.unique(values, return_inverse=True)  # few: a logarithm for each of them is enough
    capital = np.log1p(np.outer(kinds, STAKES))[kind_of].cumsum(axis=0)
    most = capital.max(axis=1)
    reached = most + np.log(np.exp(capital - most[:, None]).mean(axis=1)) >= threshold
    return int(reached.argmax()) + 1 if reached.any() else None


def _check_gaps(gaps: Floats) -> None:
    for gap in gaps[~(np.abs(gaps) <= 1)]:
        raise ValueError(
            f"a scenario's difference is {float(gap)!r}; of rates it lies between −1 and 1. Give the sign of numbers "
            "without bounds, and leave out a scenario that has no pair of trials"
        )


_HALVINGS = 20  # of an interval of length 1: to six digits


def betting_limits(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return a confidence sequence for the mean of scenarios whose differences lie within −1 and 1.

    A mean is left out once a bettor who started with 1 would have had 1 / (1 − level) by betting against it, with the
    stakes of `Sequential`: so 0 is left out just where the e-value stops. Source: Waudby-Smith and Ramdas (2024), by
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
    """Return the mean furthest from the estimate, towards an end, that is not left out; the estimate where that one
    is."""
    inner, outer = estimate, end
    if inner == outer:
        return end
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if held(middle) else (inner, middle)
    return outer
