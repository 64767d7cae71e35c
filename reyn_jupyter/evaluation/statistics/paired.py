"""Compare two variants over the same scenarios and repeats, with a sign-flip permutation test over scenarios.

Invariants: the scenario is the unit. Trial-level discordant pairs are counted and shown, never tested, since repeats of
one scenario are not independent of each other; only pairs that both variants have are compared. p is never 0: were the
variants alike, each scenario's difference could as well have had the other sign, and p is the share of the sign
patterns whose mean is at least as far from 0 as the one seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.evaluation.statistics.arms import (
    FEW_CLUSTERS,
    Arm,
    Clusters,
    clusters_of,
    few_clusters,
    pair,
)
from reyn_jupyter.evaluation.statistics.clusters import sizes_of, variance_of
from reyn_jupyter.evaluation.statistics.confidence_sequence import Sequential, SequentialState, betting_limits
from reyn_jupyter.evaluation.statistics.intervals import tango_limits
from reyn_jupyter.evaluation.statistics.rates import (
    CONSTANT,
    ONE_SCENARIO,
    Mean,
    Rate,
    mean,
    mean_limits,
    rate,
)
from reyn_jupyter.evaluation.statistics.scipy_import import library
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.statistics.arms import Floats


NO_SEQUENCE = (
    "Numbers have no interval that holds at every look; run a fixed number of scenarios to know by how much."
)


@dataclass(frozen=True)
class Difference:
    """The difference of two variants: b − a.

    Attributes:
        estimate: mean over scenarios of their mean paired difference; of rates it lies within −1 and 1.
        low, high: confidence limits; None for numbers of one scenario, that differ by the same in all of them, or that
            were looked at on the way.
        level: the confidence level.
        method: how the limits were found, in words.
        p: two-sided; None with one scenario, which no test over scenarios can tell from chance. Where the evidence was
            looked at on the way, 1 over the largest e-value, which holds however often one looked.
        test: the test, in words.
        pairs, scenarios: pairs of trials, and scenarios that have one.
        a_only, b_only, both, neither: pairs by who passed; None for numbers.
        a, b: each variant over the pairs alone, so that b.estimate − a.estimate is the estimate.
        design_effect: how many times more pairs this took than independent ones; None where it is unknown.
        effective_n: pairs over the design effect; None where it is unknown.
        dropped: trials whose partner is missing; they do not count.
        warnings: sentences for people.
        looks: what looking at one scenario after the other saw; None for a number of scenarios that was fixed.
    """

    estimate: float
    low: float | None
    high: float | None
    level: float
    method: str
    p: float | None
    test: str
    pairs: int
    scenarios: int
    a_only: int | None
    b_only: int | None
    both: int | None
    neither: int | None
    a: Rate | Mean
    b: Rate | Mean
    design_effect: float | None
    effective_n: float | None
    dropped: int
    warnings: tuple[str, ...] = ()
    looks: SequentialState | None = None


def difference(
    a: Arm,
    b: Arm,
    *,
    level: float = 0.95,
    seed: int = 0,
    looked: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> Difference:
    """Compare two variants on the trials that both have.

    Verdicts, one pair a scenario: McNemar's exact test and the interval of Tango (1998). With repeats: the sign-flip
    permutation test over scenarios, and Tango's interval over the effective number of pairs of Korn and Graubard
    (1998). Values other than 0 and 1 are compared as numbers: the same permutation test, and the interval of `mean`.

    Of a run that could stop at any scenario neither holds what it promises: there the e-value takes the test's place,
    and for verdicts a confidence sequence that of the interval (see `confidence_sequence`); numbers have none.

    Args:
        a: scenario → repeat → value under the first variant.
        b: the same under the second.
        level: the confidence level.
        seed: of what is drawn; the same seed gives the same figures.
        looked: the scenarios in the order in which they were looked at, an order that no outcome had a part in; None
            where their number was fixed in advance.
        alpha: at which the looking stops.

    Returns:
        A `Difference`, b − a.

    Raises:
        ValueError: no pair in common, a value that is not finite, or a level not between 0 and 1.
        ImportError: scipy is not installed.

    Example:
        >>> a = {f"s{i}": {0: int(i < 4)} for i in range(20)}
        >>> b = {f"s{i}": {0: int(i < 13)} for i in range(20)}
        >>> found = difference(a, b)
        >>> f"{found.estimate:+.2f} ({found.low:.2f} to {found.high:.2f}), p = {found.p:.3f}"
        '+0.45 (0.22 to 0.66), p = 0.004'
    """
    shared = pair(a, b)
    if not shared.a:
        raise ValueError(
            "the two variants have no scenario and repeat in common, so there is nothing to compare. "
            "Run both over the same scenarios with the same repeats"
        )
    gaps = clusters_of(
        {name: {i: shared.b[name][i] - value for i, value in row.items()} for name, row in shared.a.items()},
        verdicts=False,
    )
    verdicts = _binary(shared.a) and _binary(shared.b)
    compare = _verdicts if verdicts else _numbers
    found = compare(shared.a, shared.b, gaps, shared.dropped, level, seed)
    if looked is not None:
        gap_of = dict(zip(sorted(shared.a), gaps.means, strict=True))
        seen = np.array([gap_of[name] for name in looked if name in gap_of])
        found = _at_any_look(found, seen, verdicts, alpha)
    return replace(found, warnings=_warnings(found, gaps))


def _verdicts(a: Arm, b: Arm, gaps: Clusters, dropped: int, level: float, seed: int) -> Difference:
    pairs = [(a[name][i], b[name][i], name) for name in a for i in a[name]]
    share = {name: 1 / (len(a[name]) * gaps.scenarios) for name in a}
    a_only = math.fsum(share[name] for left, right, name in pairs if left > right)
    b_only = math.fsum(share[name] for left, right, name in pairs if left < right)
    effect, effective, size = sizes_of(gaps, variance_of(gaps), level)
    low, high = tango_limits(np.asarray(a_only), np.asarray(b_only), np.asarray(size), level)
    repeated = gaps.repeated and gaps.scenarios > 1
    counts = Counter((left, right) for left, right, _ in pairs)
    p, test = _test(gaps, counts[1, 0], counts[0, 1], seed)
    estimate = b_only - a_only
    return Difference(
        estimate,
        float(low),
        float(high),
        level,
        "Tango, effective number of pairs" if repeated else "Tango",
        p,
        test,
        gaps.trials,
        gaps.scenarios,
        counts[1, 0],
        counts[0, 1],
        counts[1, 1],
        counts[0, 0],
        rate(a, level=level, seed=seed),
        rate(b, level=level, seed=seed),
        effect,
        effective,
        dropped,
    )


def _numbers(a: Arm, b: Arm, gaps: Clusters, dropped: int, level: float, seed: int) -> Difference:
    low, high, method, _ = mean_limits(gaps, level, seed)
    effect, effective, _ = sizes_of(gaps, variance_of(gaps), level)
    p, test = (None, "none: one scenario") if gaps.scenarios == 1 else sign_flip(gaps.means, seed=seed)
    return Difference(
        float(gaps.means.mean()),
        low,
        high,
        level,
        method,
        p,
        test,
        gaps.trials,
        gaps.scenarios,
        None,
        None,
        None,
        None,
        mean(a, level=level, seed=seed),
        mean(b, level=level, seed=seed),
        effect,
        effective,
        dropped,
    )


def _at_any_look(found: Difference, gaps: Floats, verdicts: bool, alpha: float) -> Difference:
    """Return the same difference with an interval and a test that hold however often one looked.

    Numbers have no bounds to bet within: their signs are looked at, and they have no interval.
    """
    looking = Sequential(alpha)
    for gap in gaps if verdicts else np.sign(gaps):
        looking.add(float(gap))
    low = high = None
    if verdicts:
        limits = betting_limits(gaps, found.level)
        # Pairs that came after the last look count for the estimate alone.
        low, high = min(limits[0], found.estimate), max(limits[1], found.estimate)
    return replace(
        found,
        low=low,
        high=high,
        method="confidence sequence, by betting" if verdicts else "none: numbers, looked at on the way",
        p=looking.state.p,
        test="e-value, by betting" if verdicts else "e-value over one sign a scenario",
        looks=looking.state,
    )


def _test(gaps: Clusters, a_only: int, b_only: int, seed: int) -> tuple[float | None, str]:
    if gaps.scenarios == 1:
        return None, "none: one scenario"
    if not gaps.repeated:
        return mcnemar(a_only, b_only), "exact McNemar"
    p = sign_flip_counts([int(total) for total in gaps.sums], [int(size) for size in gaps.sizes])
    return (p, "sign-flip permutation, exact") if p is not None else sign_flip(gaps.means, seed=seed)


def mcnemar(a_only: int, b_only: int) -> float:
    """McNemar's exact test of discordant pairs, two-sided: the binomial test of one half.

    Args:
        a_only: independent pairs that only the first variant passed.
        b_only: pairs that only the second passed.

    Returns:
        p; 1 where no pair is discordant.

    Example:
        >>> round(mcnemar(1, 7), 4)
        0.0703
    """
    total = a_only + b_only
    return min(1.0, 2 * float(library("scipy.special").bdtr(min(a_only, b_only), total, 0.5)))


def _binary(arm: Arm) -> bool:
    return all(value in (0, 1) for repeats in arm.values() for value in repeats.values())


def _warnings(found: Difference, gaps: Clusters) -> tuple[str, ...]:
    said = []
    if found.dropped:
        verbs = ("has", "does") if found.dropped == 1 else ("have", "do")
        said.append(
            f"{count(found.dropped, 'trial')} {verbs[0]} no partner under the other variant and {verbs[1]} not count."
        )
    moved = int((gaps.sums != 0).sum())
    if gaps.scenarios == 1:
        said.append(ONE_SCENARIO)
    elif found.low is None:
        said.append(CONSTANT if found.looks is None else NO_SEQUENCE)
    elif 0 < moved < 6 and found.looks is None:
        least = 2.0 ** (1 - moved)
        few = count(moved, "scenario differs", "scenarios differ")
        said.append(f"Only {few}: p cannot fall below {least:.3g}, however they differ.")
    if gaps.repeated and 1 < gaps.scenarios < FEW_CLUSTERS:
        said.append(few_clusters(gaps.scenarios))
    if found.p is not None and found.low is not None and found.high is not None:
        apart = found.low > 0 or found.high < 0
        where = "leaves 0 out" if apart else "holds 0"
        if found.looks is not None:
            if apart != found.looks.stopped:
                said.append(
                    f"On the edge: the interval {where}, and the e-value has p = {found.p:.3f}. It decides."
                )
        elif apart != (found.p <= 1 - found.level):
            said.append(
                f"On the edge: the interval {where}, and the test has p = {found.p:.3f}. The test decides."
            )
    return tuple(said)


DRAWS = 10_000
LARGEST_SUM = 200_000  # of whole steps; the exact distribution of sums up to it takes well under a second


def sign_flip(differences: Floats, *, seed: int = 0, draws: int = DRAWS) -> tuple[float, str]:
    """Return the two-sided sign-flip test for scenarios whose differences are any numbers.

    Twice the smaller tail. Exact where there are fewer sign patterns than `draws`, else over that many, the one seen
    among them (Phipson and Smyth, 2010).

    Args:
        differences: mean difference of each scenario, shape (scenarios,), finite.
        seed: of the draws.
        draws: patterns to look at.

    Returns:
        p, from 2 / draws to 1, and the name of the test.

    Example:
        >>> sign_flip(np.array([1.5, 2.5, 0.5, 1.0]))[0]
        0.125
    """
    moved = differences[differences != 0]
    # Both patterns of one scenario are as far from 0, and every pattern is at least as far as 0 itself.
    if len(moved) < 2 or abs(math.fsum(moved)) <= 1e-12 * np.abs(moved).sum():
        return 1.0, "sign-flip permutation, exact"
    found = library("scipy.stats").permutation_test(
        (moved / np.abs(moved).max(), np.zeros_like(moved)),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws - 1,
        batch=1_000,
        rng=seed,
    )
    exact = 2 ** len(moved) < draws
    return float(
        found.pvalue
    ), f"sign-flip permutation, {'exact' if exact else f'{draws:,} draws (seed {seed})'}"


def sign_flip_counts(sums: Sequence[int], sizes: Sequence[int]) -> float | None:
    """Return the exact two-sided sign-flip test for scenarios whose differences are fractions.

    The distribution of the signed sum is built scenario by scenario, so that no pattern need be drawn. With one pair
    a scenario this is McNemar's exact test.

    Args:
        sums: passes of b less passes of a, one a scenario.
        sizes: pairs of each scenario.

    Returns:
        p; None where the common step is too fine for an exact answer.

    Example:
        >>> sign_flip_counts([1, 1, 1, 1, 1], [1, 1, 1, 1, 1])
        0.0625
    """
    step = math.lcm(*sizes)
    steps = [abs(total) * (step // size) for total, size in zip(sums, sizes, strict=True)]
    span = sum(steps)
    if span > LARGEST_SUM:
        return None
    chance = np.zeros(2 * span + 1)
    chance[span] = 1.0
    reach = 0
    for size in filter(None, steps):
        lower, upper = span - reach - size, span + reach + size + 1
        window = chance[span - reach : span + reach + 1] / 2
        wider = np.zeros(upper - lower)
        wider[: len(window)] = window
        wider[2 * size :] += window
        chance[lower:upper] = wider
        reach += size
    seen = abs(sum(total * (step // size) for total, size in zip(sums, sizes, strict=True)))
    return min(1.0, float(chance[: span - seen + 1].sum() + chance[span + seen :].sum())) if seen else 1.0
