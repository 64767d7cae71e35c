"""The formulas of the confidence limits, over arrays.

Invariant: every limit lies within the range of what is estimated, and no input that the callers let through makes
numpy warn. The samples may have a fractional size, because a design effect shrinks them. One implementation serves a
single study and the simulation that measures coverage.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reyn_jupyter.evaluation.statistics.scipy_import import library

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.statistics.arms import Floats

_HALVINGS = 60  # of an interval of length 2: beyond the precision of a float


class Spread(NamedTuple):
    """The design effect and effective size of a sample of scenarios with repeats; arrays of shape (...).

    Attributes:
        design_effect: variance of the mean of scenarios over that of as many independent trials; NaN where the
            latter is 0.
        effective: trials that independence would need for the same variance, from scenarios to trials.
        adjusted: the same with the correction for the degrees of freedom, as the intervals use it.
    """

    design_effect: Floats
    effective: Floats
    adjusted: Floats


def normal_quantile(level: float) -> float:
    """Return the two-sided quantile of the normal distribution: 1.96 for a level of .95.

    Raises:
        ValueError: the level does not lie between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"the confidence level is {level!r}; it must lie between 0 and 1, such as 0.95")
    return NormalDist().inv_cdf((1 + level) / 2)


def t_quantile(level: float, degrees: int) -> float:
    """Return the two-sided quantile of Student's t distribution with some degrees of freedom (at least 1)."""
    normal_quantile(level)
    return float(library("scipy.special").stdtrit(degrees, (1 + level) / 2))


def spread(means: Floats, sizes: Floats, simple: Floats, level: float) -> Spread:
    """Design effect and effective sample size of a mean of scenarios.

    The adjusted size is that of Korn and Graubard (1998): the effective size times (z / t)² with as many degrees of
    freedom as there are scenarios, less one, and never more than the trials. Independent trials, and those of one
    scenario, keep their number. Where the trials do not vary, nothing is known of how alike repeats are, and each
    scenario counts once.

    Args:
        means: the mean of each scenario, shape (..., scenarios).
        sizes: trials of each scenario, shape (scenarios,).
        simple: variance of one trial, were all independent, shape (...).
        level: the confidence level.

    Returns:
        A `Spread` of arrays of shape (...).
    """
    scenarios, trials = len(sizes), float(sizes.sum())
    if scenarios < 2 or not (sizes > 1).any():
        whole = np.full(simple.shape, trials)
        return Spread(np.ones(simple.shape), whole, whole)
    variance = means.var(axis=-1, ddof=1) / scenarios
    constant = simple <= 1e-12
    effect = np.where(constant, np.nan, variance * trials / np.where(constant, 1.0, simple))
    size = np.where(constant, scenarios, trials / np.maximum(np.where(constant, 1.0, effect), 1e-12))
    size = np.clip(size, scenarios, trials)
    correction = (normal_quantile(level) / t_quantile(level, scenarios - 1)) ** 2
    adjusted = np.where(constant, scenarios, np.minimum(size * correction, trials))
    return Spread(effect, size, adjusted)


RATE_METHOD = "Clopper-Pearson"


def rate_limits(share: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the interval of every rate of a report, the exact one of Clopper and Pearson (1934).

    Korn and Graubard (1998) take it over an effective sample size, which `spread` gives. Another interval is put here,
    and its name into `RATE_METHOD`.

    Args:
        share: of each sample that passed, shape (...).
        size: of each sample, possibly a fraction, more than 0, shape (...).
        level: the confidence level.

    Returns:
        Low and high limits, within 0 and 1, shape (...).
    """
    normal_quantile(level)
    quantile, tail = library("scipy.special").betaincinv, (1 - level) / 2
    passed, failed = share * size, (1 - share) * size
    none, every = passed <= 1e-9, failed <= 1e-9
    low = np.where(none, 0.0, quantile(np.where(none, 1.0, passed), failed + 1, tail))
    high = np.where(every, 1.0, quantile(passed + 1, np.where(every, 1.0, failed), 1 - tail))
    return low, high


def tango_limits(a_only: Floats, b_only: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the score interval of Tango (1998) for a difference of paired shares.

    Args:
        a_only: share of the pairs that only the first arm passed, shape (...).
        b_only: share that only the second arm passed.
        size: pairs, possibly a fraction.
        level: the confidence level.

    Returns:
        Low and high limits of b − a, within −1 and 1.
    """
    estimate = b_only - a_only
    critical = normal_quantile(level) / np.sqrt(size)
    low = _bisect(np.full_like(estimate, -1.0), estimate, a_only, b_only, critical)
    high = _bisect(-np.full_like(estimate, 1.0), -estimate, b_only, a_only, critical)
    return low, -high


def _bisect(outer: Floats, inner: Floats, a_only: Floats, b_only: Floats, critical: Floats) -> Floats:
    """Return the difference below the estimate at which the score statistic is critical."""
    for _ in range(_HALVINGS):
        middle = (outer + inner) / 2
        outside = _score(middle, a_only, b_only) > critical
        outer, inner = np.where(outside, middle, outer), np.where(outside, inner, middle)
    return inner


def _score(difference: Floats, a_only: Floats, b_only: Floats) -> Floats:
    """Tango's statistic per root of the pairs, at a difference below the estimate."""
    linear = 2 * difference + (a_only + b_only) * -1 - difference * (b_only - a_only)
    product = a_only * difference * (1 - difference)
    nuisance = (np.sqrt(np.maximum(linear**2 + 8 * product, 0)) - linear) / 4
    variance = np.maximum(2 * nuisance + difference * (1 - difference), 1e-300)
    statistic: Floats = (b_only - a_only - difference) / np.sqrt(variance)
    return statistic


def bootstrap_t(values: Floats, level: float, seed: int, draws: int = 9_999) -> tuple[float, float] | None:
    """Return the bootstrap-t interval for the mean of scenarios (Efron and Tibshirani, 1993, section 12.5).

    Args:
        values: the mean of each scenario, shape (scenarios,), not all the same.
        level: the confidence level.
        seed: of the resampling; the same seed gives the same limits.
        draws: resamples.

    Returns:
        Low and high, or None where a resample has no variance, so that the statistic has no distribution.
    """
    count, tail = len(values), (1 - level) / 2
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=draws)
    centred = values - values.mean()
    shift = weights @ centred / count
    variance = weights @ centred**2 / count - shift**2
    if (variance <= 1e-9 * centred.var()).any():
        return None
    low, high = np.quantile(shift / np.sqrt(variance / (count - 1)), [1 - tail, tail])
    error = math.sqrt(values.var(ddof=1) / count)
    return float(values.mean() - low * error), float(values.mean() - high * error)
