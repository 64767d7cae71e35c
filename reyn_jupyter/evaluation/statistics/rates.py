"""A rate or a mean of one variant, with its interval.

Invariant: every scenario weighs the same, however often it was repeated, and an interval never treats repeats of one
scenario as independent. No interval is Wald's, which promises too much near 0 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reyn_jupyter.evaluation.statistics.arms import (
    FEW_CLUSTERS,
    Arm,
    Clusters,
    clusters_of,
    few_clusters,
)
from reyn_jupyter.evaluation.statistics.clusters import icc_of, sizes_of, variance_of
from reyn_jupyter.evaluation.statistics.intervals import (
    RATE_METHOD,
    bootstrap_t,
    normal_quantile,
    rate_limits,
    t_quantile,
)
from reyn_jupyter.support.text import count

CONSTANT = (
    "All scenarios are equal, so there is no interval: nothing varied, which is not the same as certainty."
)
TOO_WIDE = "So few scenarios, so far apart, that the limits would say nothing: add scenarios."
WIDEST = 10.0  # times the estimate; a limit further away is not given
ONE_SCENARIO = "One scenario: the interval speaks of this scenario alone, not of others like it."
FLOOR = 0.005  # a limit below it is written as 0 %
NO_TRIAL = (
    "there is no trial to take a {} of. Run the variant, or leave it out of the report; "
    "missing trials are bounded by `missing.worst_rate`"
)


@dataclass(frozen=True)
class Rate:
    """A share of trials that passed.

    Attributes:
        estimate: mean over scenarios of their share of passes, 0 to 1.
        low, high: confidence limits.
        level: the confidence level, such as .95.
        method: how the limits were found, in words.
        trials, scenarios: how many there are; missing trials do not count.
        passed: passes among the trials.
        icc: intraclass correlation of repeats; None without repeats or where it cannot be estimated.
        design_effect: how many times more trials this took than independent ones; None where it is unknown.
        effective_n: trials over the design effect; None where it is unknown.
        warnings: sentences for people.
    """

    estimate: float
    low: float
    high: float
    level: float
    method: str
    trials: int
    scenarios: int
    passed: float
    icc: float | None
    design_effect: float | None
    effective_n: float | None
    warnings: tuple[str, ...]

    @property
    def on_floor(self) -> bool:
        """True if the rate cannot be told from 0: the lower limit is less than half a point."""
        return self.low < FLOOR

    @property
    def on_ceiling(self) -> bool:
        """True if the rate cannot be told from 1: the upper limit is within half a point of it."""
        return self.high > 1 - FLOOR


@dataclass(frozen=True)
class Mean:
    """A mean of numbers such as tokens, seconds or calls.

    Attributes:
        estimate: mean over scenarios of their means, in the unit of the values.
        low, high: confidence limits; None with one scenario, whose trials say nothing of other scenarios, and where all
            scenarios are equal, so that nothing says how far others may lie.
        level: the confidence level.
        method: how the limits were found, in words.
        trials, scenarios: how many there are.
        icc: intraclass correlation of repeats; None without repeats or where it cannot be estimated.
        design_effect: how many times more trials this took than independent ones; None where it is unknown.
        effective_n: trials over the design effect; None where it is unknown.
        warnings: sentences for people.
    """

    estimate: float
    low: float | None
    high: float | None
    level: float
    method: str
    trials: int
    scenarios: int
    icc: float | None
    design_effect: float | None
    effective_n: float | None
    warnings: tuple[str, ...]


def rate(arm: Arm, *, level: float = 0.95, seed: int = 0) -> Rate:
    """Return the rate at which a variant passes a check.

    The exact interval of Clopper and Pearson (1934), with repeats over the effective sample size of Korn and Graubard
    (1998), who recommend the two together for rates near 0 and 1 of clustered samples. Where every trial went the same
    way nothing is known of how alike repeats are, and each scenario counts once. With one scenario the trials count,
    and the interval speaks of that scenario.

    Args:
        arm: scenario → repeat → 0 or 1.
        level: the confidence level.
        seed: has no effect, as nothing is drawn; it is here so that `rate` and `mean` are called alike.

    Returns:
        A `Rate`.

    Raises:
        ValueError: there is no trial, a value is not 0 or 1, or the level is not between 0 and 1.
        ImportError: scipy is not installed.

    Example:
        >>> found = rate({f"s{i}": {0: int(i < 12)} for i in range(20)})
        >>> f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})"
        '0.60 (0.36 to 0.81)'
    """
    del seed
    clusters = clusters_of(arm, verdicts=True)
    if not clusters.scenarios:
        raise ValueError(NO_TRIAL.format("rate"))
    estimate = float(clusters.means.mean())
    effect, effective, size = sizes_of(clusters, estimate * (1 - estimate), level)
    low, high = rate_limits(np.asarray(estimate), np.asarray(size), level)
    extreme = estimate in (0.0, 1.0)
    method = RATE_METHOD
    if clusters.repeated and clusters.scenarios > 1:
        method += ", one trial a scenario" if extreme else ", effective sample size"
    return Rate(
        estimate,
        float(low),
        float(high),
        level,
        method,
        clusters.trials,
        clusters.scenarios,
        float(clusters.sums.sum()),
        icc_of(clusters),
        effect,
        effective,
        _warnings(clusters, extreme),
    )


def mean(arm: Arm, *, level: float = 0.95, seed: int = 0) -> Mean:
    """Return the mean of numbers measured under a variant.

    Below 40 scenarios a t interval over the means of scenarios, on the scale of the mean's logarithm where no value is
    below 0, so that seconds, tokens and counts have no limit below 0 either; from 40 on the bootstrap-t, which covers
    better where the values are skewed, as tokens, seconds and cost are (Efron and Tibshirani, 1993).

    Args:
        arm: scenario → repeat → finite number.
        level: the confidence level.
        seed: of the bootstrap; the same seed gives the same limits.

    Returns:
        A `Mean`.

    Raises:
        ValueError: there is no trial, a value is not finite, or the level is not between 0 and 1.
        ImportError: scipy is not installed.

    Example:
        >>> found = mean({"a": {0: 10.0}, "b": {0: 14.0}, "c": {0: 12.0}})
        >>> f"{found.estimate:.0f} ({found.low:.1f} to {found.high:.1f})"
        '12 (7.9 to 18.2)'
    """
    clusters = clusters_of(arm, verdicts=False)
    if not clusters.scenarios:
        raise ValueError(NO_TRIAL.format("mean"))
    limits = mean_limits(clusters, level, seed, positive=bool((clusters.means >= 0).all()))
    effect, effective, _ = sizes_of(clusters, variance_of(clusters), level)
    return Mean(
        float(clusters.means.mean()),
        limits.low,
        limits.high,
        level,
        limits.method,
        clusters.trials,
        clusters.scenarios,
        icc_of(clusters),
        effect,
        effective,
        _warnings(clusters, extreme=False) + ((limits.warning,) if limits.warning else ()),
    )


class MeanLimits(NamedTuple):
    """The limits of a mean, None where there are none; how they were found; and a sentence on why there are none."""

    low: float | None
    high: float | None
    method: str
    warning: str = ""


def mean_limits(clusters: Clusters, level: float, seed: int, *, positive: bool = False) -> MeanLimits:
    """Return the limits of a mean of scenarios and how they were found; None with one scenario, where nothing varied,
    and where they would lie further than `WIDEST` times from it.

    Args:
        clusters: sums by scenario.
        level: the confidence level.
        seed: of the bootstrap.
        positive: the values cannot lie below 0, and neither may a limit: t goes over the logarithm of the mean, whose
            standard error is that of the mean over the mean (the delta method).
    """
    quantile = normal_quantile(level)
    means, number = clusters.means, clusters.scenarios
    if number == 1:
        return MeanLimits(None, None, "none: one scenario")  # of which `_warnings` speaks
    estimate = float(means.mean())
    if float(np.ptp(means)) <= 1e-12 * max(1.0, abs(estimate)):
        return MeanLimits(None, None, "none: all scenarios are equal", CONSTANT)
    if number >= FEW_CLUSTERS:
        found = bootstrap_t(means, level, seed)
        if found is not None and not (positive and found[0] < 0):
            low, high = found
            method = f"bootstrap-t, 9,999 resamples (seed {seed})"
            return MeanLimits(min(low, estimate), max(high, estimate), method)
    quantile = t_quantile(level, number - 1)
    half = quantile * math.sqrt(float(means.var(ddof=1)) / number)
    degrees = f"t, {count(number - 1, 'degree')} of freedom"
    if positive:
        if half / estimate > math.log(WIDEST):
            return MeanLimits(None, None, "none: the limits would be too wide", TOO_WIDE)
        factor = math.exp(half / estimate)
        return MeanLimits(estimate / factor, estimate * factor, f"{degrees}, of the mean's logarithm")
    return MeanLimits(estimate - half, estimate + half, degrees)


def clopper_pearson(passed: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of Clopper and Pearson (1934) for independent trials, which `rate` gives to them.

    Args:
        passed: how many passed, from 0 to `trials`; may be a fraction.
        trials: how many there were, more than 0; may be a fraction.
        level: the confidence level.

    Returns:
        Low and high, within 0 and 1.

    Raises:
        ValueError: the counts or the level make no sense.
        ImportError: scipy is not installed.

    Example:
        >>> low, high = clopper_pearson(0, 20)
        >>> f"{low:.2f} to {high:.2f}"
        '0.00 to 0.17'
    """
    _counts(passed, trials)
    low, high = rate_limits(np.asarray(passed / trials), np.asarray(float(trials)), level)
    return float(low), float(high)


def _counts(passed: float, trials: float) -> None:
    if not (math.isfinite(trials) and trials > 0 and 0 <= passed <= trials):
        raise ValueError(
            f"{passed!r} of {trials!r} trials is not a rate: trials must be more than 0, and passes from 0 to trials"
        )


def _warnings(clusters: Clusters, extreme: bool) -> tuple[str, ...]:
    if clusters.scenarios == 1:
        return (ONE_SCENARIO,)
    if not clusters.repeated:
        return ()
    said = []
    if clusters.scenarios < FEW_CLUSTERS:
        said.append(few_clusters(clusters.scenarios))
    if extreme:
        way = "passed" if clusters.sums.any() else "failed"
        said.append(f"Every trial {way}: how alike repeats are is unknown, so each scenario counts once.")
    return tuple(said)
