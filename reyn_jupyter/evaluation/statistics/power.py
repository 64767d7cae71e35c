"""Plan a comparison: how many scenarios a question needs, and what a number of scenarios can find.

Invariants: whatever is assumed is said, in `Plan.assumptions`, and is the same in both directions, so that the two
agree. One pair a scenario is planned exactly, by adding up the outcomes of McNemar's exact test; repeats by simulating
the sign-flip test over scenarios, and large ones by the t test, which promises too much for few scenarios with few
repeats: there are few sign patterns, and below six of them no p reaches .05. A simulation draws the same study again
for the same arguments, so that a plan is reproducible, and a larger study contains the smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.evaluation.statistics.intervals import normal_quantile, rate_limits, t_quantile
from reyn_jupyter.evaluation.statistics.scipy_import import library
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.statistics.arms import Floats


TYPICAL_ICC = 0.4  # of verdicts in tau-bench airline, 50 tasks with 4 trials of gpt-4o each
MOST = 100_000


@dataclass(frozen=True)
class Plan:
    """The size that a comparison of two variants needs.

    Attributes:
        pairs: pairs of trials, scenarios times repeats.
        scenarios: how many different ones.
        repeats: pairs of each.
        trials: of both variants together.
        power: chance of finding the difference, by the rounded numbers.
        detect: the difference of rates to be found.
        discordant: share of pairs that differ, as assumed.
        alpha: the chance of a false finding.
        assumptions: sentences for people.
    """

    pairs: int
    scenarios: int
    repeats: int
    trials: int
    power: float
    detect: float
    discordant: float
    alpha: float
    assumptions: tuple[str, ...]


def independent_arms(a: float, b: float) -> tuple[float, float]:
    """Discordant share, and the share of it that b wins, of two rates whose trials have nothing in common.

    Args:
        a: the rate of the first variant.
        b: that of the second.

    Returns:
        The share of pairs that differ, and b's part of them (one half where none differ).

    Raises:
        ValueError: a rate is not between 0 and 1.

    Example:
        >>> share, split = independent_arms(0.36, 0.80)
        >>> f"{share:.3f} {split:.3f}"
        '0.584 0.877'
    """
    _share(a, "rate")
    _share(b, "rate")
    b_only, a_only = (1 - a) * b, a * (1 - b)
    return b_only + a_only, b_only / (b_only + a_only) if b_only + a_only else 0.5


def mcnemar_power(pairs: int, discordant: float, split: float, alpha: float = 0.05) -> float:
    """Return the exact power of McNemar's exact two-sided test.

    Adds up every number of discordant pairs, and for each the outcomes that reject (Duffy, 1984).

    Args:
        pairs: independent pairs, one a scenario.
        discordant: share of pairs that differ.
        split: share of those that b wins.
        alpha: the level of the test.

    Returns:
        The chance of p ≤ alpha.

    Raises:
        ValueError: a share is not between 0 and 1, or there is no pair.

    Example:
        >>> round(mcnemar_power(24, *independent_arms(0.36, 0.80)), 3)
        0.811
    """
    for value, name in ((discordant, "discordant share"), (split, "split"), (alpha, "alpha")):
        _share(value, name)
    if pairs < 1:
        raise ValueError(f"{pairs!r} pairs have no power; give 1 or more")
    special = library("scipy.special")
    differ = np.arange(pairs + 1)
    near = np.ceil(np.nan_to_num(special.bdtrik(alpha / 2, differ, 0.5)))
    last = np.where(2 * special.bdtr(near, differ, 0.5) <= alpha, near, near - 1)
    tail = np.maximum(last, 0)
    rejects = special.bdtr(tail, differ, split) + special.bdtr(tail, differ, 1 - split)
    ways = special.gammaln(pairs + 1) - special.gammaln(differ + 1) - special.gammaln(pairs - differ + 1)
    chances = np.exp(ways + special.xlogy(differ, discordant) + special.xlog1py(pairs - differ, -discordant))
    return min(1.0, float((chances * np.where(last >= 0, rejects, 0.0)).sum()))


def pairs_needed(discordant: float, split: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return how many independent pairs McNemar's exact test needs.

    Args:
        discordant: share of pairs that differ, more than 0.
        split: share of those that b wins, not one half.
        power: the chance of p ≤ alpha that is wanted.
        alpha: the level of the test.

    Returns:
        A number of pairs that suffices while one less does not.

    Raises:
        ValueError: the shares leave nothing to find, or the number is beyond 100,000.

    Example:
        >>> pairs_needed(*independent_arms(0.36, 0.80))
        24
    """
    _inside(power, "power")
    _inside(alpha, "alpha")
    if discordant == 0 or split == 0.5:
        raise ValueError("without a difference between the variants no number of pairs finds one")
    return least(lambda pairs: mcnemar_power(pairs, discordant, split, alpha) >= power, 1)


def plan(
    *,
    detect: float = 0.15,
    power: float = 0.8,
    discordant: float | None = None,
    repeats: int = 1,
    icc: float = TYPICAL_ICC,
    alpha: float = 0.05,
) -> Plan:
    """Plan the comparison of two variants.

    Args:
        detect: the smallest difference of rates that must not be missed, in either direction.
        power: the chance of finding it.
        discordant: share of pairs that differ; None takes two unrelated variants around one half, the most that
            variants differ unless they avoid each other.
        repeats: pairs of each scenario.
        icc: correlation of the paired differences of one scenario; it matters with repeats only.
        alpha: the chance of a false finding.

    Returns:
        A `Plan` with its assumptions.

    Raises:
        ValueError: a share is out of range, the discordant share is below the difference, or no repeats.

    Example:
        >>> found = plan(detect=0.15)
        >>> found.scenarios, found.trials
        (187, 374)
    """
    gap = abs(detect)
    for value, name in ((gap, "difference to detect"), (power, "power"), (alpha, "alpha")):
        _inside(value, name)
    _share(icc, "icc")
    if repeats < 1:
        raise ValueError(f"{repeats!r} repeats; give 1 or more")
    assumed = independent_arms((1 - gap) / 2, (1 + gap) / 2)[0] if discordant is None else discordant
    _share(assumed, "discordant share")
    if assumed < gap:
        raise ValueError(
            f"rates that differ by {gap:g} have at least that share of discordant pairs, not {assumed:g}"
        )
    said = [
        f"{100 * assumed:.0f} % of pairs differ"
        + (" (not known: two unrelated variants around one half)." if discordant is None else ", as given.")
    ]
    if repeats == 1:
        split = (assumed + gap) / (2 * assumed)
        scenarios = pairs_needed(assumed, split, power, alpha)
        reached = mcnemar_power(scenarios, assumed, split, alpha)
        said.append("One pair a scenario: McNemar's exact test, power added up exactly.")
    else:
        spread = math.sqrt((assumed - gap**2) * (1 + (repeats - 1) * icc) / repeats)
        if spread == 0:
            raise ValueError("every pair differs the same way, so one repeat finds it: plan with repeats=1")
        fewest = max(2, math.ceil(1 - math.log2(alpha)))  # with fewer no sign pattern is rare enough
        scenarios = least(lambda count: t_power(count, gap / spread, alpha) >= power, fewest)
        reached = t_power(scenarios, gap / spread, alpha)
        how = "Power by the t test over scenarios, which the sign-flip test follows."
        if scenarios * repeats <= MOST_PAIRS:
            shares = ((assumed + gap) / 2, (assumed - gap) / 2)
            scenarios = least(lambda n: sign_flip_power(n, repeats, shares, icc, alpha) >= power, scenarios)
            reached = sign_flip_power(scenarios, repeats, shares, icc, alpha)
            how = f"Power by {STUDIES:,} simulated studies under the sign-flip test over scenarios."
        said.append(f"{count(repeats, 'repeat')} a scenario, whose differences correlate by {icc:g}.")
        said.append(how)
    said.append(f"Two-sided, alpha {alpha:g}; no trial missing; n fixed before the run.")
    pairs = scenarios * repeats
    return Plan(pairs, scenarios, repeats, 2 * pairs, reached, gap, assumed, alpha, tuple(said))


def scenarios_for_width(
    rate: float, half_width: float, repeats: int = 1, icc: float = TYPICAL_ICC, level: float = 0.95
) -> int:
    """Return how many scenarios bring the interval of a rate down to a width.

    Args:
        rate: the rate that is expected, 0 to 1.
        half_width: half the width of the interval that is wanted, more than 0 and less than one half.
        repeats: trials of each scenario.
        icc: correlation of trials of one scenario; it matters with repeats only.
        level: the confidence level.

    Returns:
        Scenarios, by the interval that `rates.rate` gives.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> scenarios_for_width(0.5, 0.1)
        93
    """
    _share(rate, "rate")
    _share(icc, "icc")
    if not 0 < half_width < 0.5 or repeats < 1:
        raise ValueError(
            f"half a width of {half_width!r} with {repeats!r} repeats; give 0 to 0.5, and 1 or more"
        )

    def narrow(count: int) -> bool:
        size = count * repeats / (1 + (repeats - 1) * icc)
        if repeats > 1 and 0 < rate < 1:
            size = min(count * repeats, size * (normal_quantile(level) / t_quantile(level, count - 1)) ** 2)
        elif repeats > 1:
            size = count
        low, high = rate_limits(np.asarray(rate), np.asarray(float(size)), level)
        return bool(high - low <= 2 * half_width)

    return least(narrow, 1 if repeats == 1 else 2)


def t_power(count: int, effect: float, alpha: float) -> float:
    """Power of the two-sided t test of one sample, for an effect in standard deviations."""
    special = library("scipy.special")
    shift, critical = effect * math.sqrt(count), t_quantile(1 - alpha, count - 1)
    return float(1 - special.nctdtr(count - 1, shift, critical) + special.nctdtr(count - 1, shift, -critical))


def least(enough: Callable[[int], bool], start: int) -> int:
    """Return a number from `start` on that is enough while one less is not, found by doubling and halving.

    Raises:
        ValueError: it would be more than 100,000.
    """
    below, high = start - 1, start
    while not enough(high):
        below, high = high, high * 2
        if high > MOST:
            raise ValueError(f"more than {MOST:,} would be needed; look for something larger")
    while high - below > 1:
        middle = (below + high) // 2
        below, high = (below, middle) if enough(middle) else (middle, high)
    return high


def _share(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"the {name} is {value!r}; it must lie between 0 and 1")


def _inside(value: float, name: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"the {name} is {value!r}; it must lie between 0 and 1, without the ends")


STUDIES = 2_000  # the chance is known to within a point (one standard error)
MOST_PAIRS = 1_000  # of one study; beyond it the t test is as good, and a simulation slow


def sign_flip_power(
    scenarios: int, repeats: int, shares: tuple[float, float], icc: float, alpha: float = 0.05
) -> float:
    """Return the chance that the exact two-sided sign-flip test over scenarios has p ≤ alpha.

    Of each scenario's pairs some are won and some lost, with chances that differ by scenario so that the differences of
    two pairs of one scenario correlate by `icc` (Dirichlet-multinomial).

    Args:
        scenarios: how many.
        repeats: pairs of each.
        shares: of pairs that b wins, and that it loses; together at most 1.
        icc: 0 to 1.
        alpha: the level of the test.

    Returns:
        The share of 2,000 simulated studies.

    Example:
        >>> sign_flip_power(5, 3, (0.9, 0.0), 0.4)
        0.0
    """
    gaps = draw_gaps(scenarios, repeats, shares, icc)
    return float((p_values(np.abs(gaps), np.abs(gaps.sum(axis=0)), repeats) <= alpha + 1e-9).mean())


def draw_gaps(scenarios: int, repeats: int, shares: tuple[float, float], icc: float) -> Floats:
    """Pairs that b wins less those that it loses, of shape (scenarios, studies). The arguments are those of
    `sign_flip_power`."""
    return _draw(1 << (scenarios - 1).bit_length(), repeats, shares, icc)[:scenarios]


@lru_cache(maxsize=4)  # a plan asks for many sizes of the same study
def _draw(scenarios: int, repeats: int, shares: tuple[float, float], icc: float) -> Floats:
    parts = np.array([*shares, max(0.0, 1 - sum(shares))])
    mixing, drawing = np.random.default_rng(1), np.random.default_rng(2)
    size = (scenarios, STUDIES)
    if icc >= 1:  # every pair of a scenario is alike
        counts = repeats * drawing.multinomial(1, parts, size=size)
    elif icc <= 0:
        counts = drawing.multinomial(repeats, parts, size=size)
    else:
        weights = mixing.standard_gamma(parts * (1 - icc) / icc, size=(*size, 3)) + 1e-300 * (parts > 0)
        counts = drawing.multinomial(repeats, weights / weights.sum(axis=-1, keepdims=True))
    gaps: Floats = (counts[..., 0] - counts[..., 1]).astype(np.float64)
    return gaps


def p_values(moved: Floats, seen: Floats, repeats: int) -> Floats:
    """Return the exact p of every study: how its signed sum is distributed follows from its characteristic
    function.

    Args:
        moved: how far the pairs of each scenario are apart, without the sign, shape (scenarios, studies).
        seen: the sum of the signed gaps of each study, without its sign, shape (studies,).
        repeats: pairs of each scenario.

    Returns:
        What `paired.sign_flip_counts` gives for each study.
    """
    span = len(moved) * repeats
    points = 1 << (2 * span).bit_length()  # more than there are sums, and quick to transform
    angles = 2 * np.pi * np.arange(points // 2 + 1) / points
    sizes = np.arange(1, repeats + 1)
    counts = np.stack([(moved == size).sum(axis=0, dtype=np.float64) for size in sizes], axis=1)
    waves = np.cos(np.outer(sizes, angles))
    size = np.exp(counts @ np.log(np.maximum(np.abs(waves), 1e-300)))
    signs = 1 - 2 * (counts @ (waves < 0) % 2)
    chances = np.fft.irfft(size * signs, axis=1)[:, : span + 1]  # of sums from 0 on
    beyond = chances[:, ::-1].cumsum(axis=1)[:, ::-1]
    tail = beyond[np.arange(len(seen)), seen.astype(int)]
    return np.where(seen == 0, 1.0, 2 * tail)


def smallest_found(
    scenarios: int,
    *,
    power: float = 0.8,
    discordant: float | None = None,
    repeats: int = 1,
    icc: float = TYPICAL_ICC,
    alpha: float = 0.05,
) -> float | None:
    """Return the smallest difference of two variants that so many scenarios find.

    Args:
        scenarios: how many there are.
        power, discordant, repeats, icc, alpha: as of `plan`; where the discordant share is below a difference, that
            difference takes its place.

    Returns:
        A difference of rates in whole points, 0 to 1; None where not even 99 points are found.

    Example:
        >>> smallest_found(187)
        0.15
    """

    def found(points: int) -> bool:
        gap = points / 100
        differ = (
            independent_arms((1 - gap) / 2, (1 + gap) / 2)[0] if discordant is None else max(gap, discordant)
        )
        if repeats == 1:
            return mcnemar_power(scenarios, differ, (differ + gap) / (2 * differ), alpha) >= power
        if scenarios * repeats > MOST_PAIRS:
            spread = math.sqrt((differ - gap**2) * (1 + (repeats - 1) * icc) / repeats)
            return t_power(scenarios, gap / spread, alpha) >= power
        shares = ((differ + gap) / 2, (differ - gap) / 2)
        return sign_flip_power(scenarios, repeats, shares, icc, alpha) >= power

    below, enough = 0, 100
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if found(middle) else (middle, enough)
    return enough / 100 if enough < 100 else None
