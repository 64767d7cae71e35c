"""Stopping early without fooling oneself: an e-value over one sign a scenario.

Invariant: however often one looks, the chance that E ever reaches 1 / α is at most α while a scenario is as likely to
favour either variant. Looking at p after every scenario has no such promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

# The mixture Beta(a, a) over the share of wins. Its standard deviation 1 / (2 √(2a + 1)) is .22 for a = 2, about what
# separates variants that are worth telling apart (shares of wins of .65 to .88). In simulations over that range no a
# of .5, 1, 1.5, 3, 5 or 8 stops more than a tenth sooner, and the small ones wait longer where the gap is small.
CONCENTRATION = 2.0


@dataclass(frozen=True)
class State:
    """What is known after a scenario.

    Attributes:
        scenarios: looked at so far, ties included.
        wins, losses, ties: scenarios by who did better, seen from the second variant.
        log_e: natural logarithm of the e-value now.
        peak: the largest logarithm so far, at least 0.
        threshold: log(1 / α).
        stopped_at: how many scenarios had been looked at when the threshold was first reached; None before.
    """

    scenarios: int
    wins: int
    losses: int
    ties: int
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

    Args:
        alpha: the chance of stopping that is accepted where the variants are alike.
        a: concentration of the mixture, more than 0.

    Raises:
        ValueError: alpha is not between 0 and 1, or `a` is not positive.

    Example:
        >>> looking = Sequential(alpha=0.05)
        >>> [looking.add(+1).stopped for _ in range(9)][-2:]
        [False, True]
    """

    alpha: float = 0.05
    a: float = CONCENTRATION
    state: State = field(init=False)

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha is {self.alpha!r}; it must lie between 0 and 1, such as 0.05")
        log_e(0, 0, self.a)
        self.state = State(0, 0, 0, 0, 0.0, 0.0, -math.log(self.alpha), None)

    def add(self, sign: float) -> State:
        """Look at one more scenario.

        Args:
            sign: the scenario's difference b − a, or its sign; 0 is a tie, which carries no evidence.

        Returns:
            The new state.

        Raises:
            ValueError: the sign is not a number.
        """
        if math.isnan(sign):
            raise ValueError("a scenario's sign is NaN; leave out a scenario that has no pair of trials")
        old = self.state
        wins, losses = old.wins + (sign > 0), old.losses + (sign < 0)
        now = log_e(wins, wins + losses, self.a)
        seen, peak = old.scenarios + 1, max(old.peak, now)
        stopped = old.stopped_at if old.stopped_at or peak < old.threshold else seen
        self.state = State(seen, wins, losses, seen - wins - losses, now, peak, old.threshold, stopped)
        return self.state


def log_e(wins: int, signs: int, a: float = CONCENTRATION) -> float:
    """Logarithm of the e-value for a fair coin against a Beta(a, a) mixture of coins.

    log E = log B(a + k, a + n − k) − log B(a, a) + n log 2, the test martingale of Ville (1939) for a beta mixture;
    see Grünwald, de Heide and Koolen (2024).

    Args:
        wins: scenarios in which the second variant did better (k).
        signs: scenarios that were no tie (n).
        a: concentration of the mixture, more than 0.

    Returns:
        The natural logarithm; 0 without a sign.

    Raises:
        ValueError: the counts or `a` make no sense.

    Example:
        >>> round(log_e(9, 10), 3)
        1.969
    """
    if not (0 <= wins <= signs and 0 < a < math.inf):
        raise ValueError(
            f"{wins!r} wins of {signs!r} signs with a = {a!r}: wins go from 0 to signs, and a is more than 0"
        )
    return _log_beta(a + wins, a + signs - wins) - _log_beta(a, a) + signs * math.log(2)


def stop(signs: Iterable[float], alpha: float = 0.05, a: float = CONCENTRATION) -> int | None:
    """After how many scenarios a run would have stopped.

    Args:
        signs: a scenario's difference b − a, or its sign, in the order in which they were finished.
        alpha: the accepted chance of stopping where the variants are alike.
        a: concentration of the mixture.

    Returns:
        The number of scenarios, ties included; None where the evidence never sufficed.

    Raises:
        ValueError: a sign is NaN, or alpha or `a` make no sense.

    Example:
        >>> stop([1, 1, 0, 1, 1, 1, 1, 1, 1, 1])
        10
    """
    looking = Sequential(alpha, a)
    for sign in signs:
        if looking.add(sign).stopped:
            return looking.state.stopped_at
    return None


def _log_beta(x: float, y: float) -> float:
    return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)
