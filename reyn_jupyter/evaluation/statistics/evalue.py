"""Stopping early without fooling oneself: the capital of a bettor against two rates being equal.

Invariant: however often one looks, the chance that E ever reaches 1 / α is at most α while scenarios differ by nothing
on average, however unlike they are. Looking at p after every scenario has no such promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.statistics.arms import Floats

# The share of the capital that is staked, mixed over Beta(1/2, 1/2) stretched to −1 … 1, as in the universal portfolio
# (Cover and Ordentlich, 1996; Orabona and Jun, 2024). At these points that mixture is a plain mean: Gauss and
# Chebyshev's quadrature, exact up to 511 scenarios and to six digits for thousands.
STAKES: Floats = np.cos(np.pi * (np.arange(256) + 0.5) / 256)


@dataclass(frozen=True)
class State:
    """What is known after a scenario.

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
        """Whether the evidence has sufficed; it stays so, whatever comes later."""
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
    state: State = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha is {self.alpha!r}; it must lie between 0 and 1, such as 0.05")
        self.state = State(0, 0, 0, 0, 0.0, 0.0, 0.0, -math.log(self.alpha), None)
        self._capital = np.zeros(len(STAKES))

    def add(self, gap: float) -> State:
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
            raise ValueError(
                f"a scenario's difference is {gap!r}; of rates it lies between −1 and 1. Give the sign of numbers "
                "without bounds, and leave out a scenario that has no pair of trials"
            )
        old = self.state
        self._capital += np.log1p(gap * STAKES)
        most = float(self._capital.max())
        now = most + math.log(float(np.exp(self._capital - most).mean()))
        seen, peak = old.scenarios + 1, max(old.peak, now)
        wins, losses = old.wins + (gap > 0), old.losses + (gap < 0)
        lead = old.lead if old.stopped else old.lead + gap
        stopped = old.stopped_at if old.stopped_at or peak < old.threshold else seen
        self.state = State(seen, wins, losses, seen - wins - losses, lead, now, peak, old.threshold, stopped)
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
    looking = Sequential(alpha)
    for gap in gaps:
        if looking.add(gap).stopped:
            return looking.state.stopped_at
    return None
