"""How alike the repeats of one scenario are, and what that costs.

Invariant: a figure that the data cannot give is None, never 0, 1 or NaN.
"""

from __future__ import annotations

import math

import numpy as np

from reyn_jupyter.evaluation.statistics.arms import Arm, Clusters, clusters_of
from reyn_jupyter.evaluation.statistics.intervals import spread


def icc(arm: Arm) -> float | None:
    """The intraclass correlation of repeats of one scenario.

    The analysis-of-variance estimator with the mean group size of unequal repeats,
    m0 = (N − Σm²/N) / (C − 1): (MSB − MSW) / (MSB + (m0 − 1) MSW). It may be slightly negative by chance.
    Source: Donner and Koval (1980); Ridout, Demétrio and Firth (1999) for proportions.

    Args:
        arm: scenario → repeat → value.

    Returns:
        The correlation, at most 1; None without repeats, with one scenario, or where nothing varies.

    Raises:
        ValueError: a value is not a finite number.

    Example:
        >>> round(icc({"a": {0: 1, 1: 1}, "b": {0: 0, 1: 0}, "c": {0: 1, 1: 0}}), 6)
        0.5
    """
    return icc_of(clusters_of(arm, verdicts=False))


def design_effect(arm: Arm) -> float | None:
    """Variance of the mean of scenarios over that of as many independent trials (Kish, 1965).

    Args:
        arm: scenario → repeat → value.

    Returns:
        The ratio: 2 says that half as many independent trials would tell as much. It is 1 without repeats; None
        where nothing varies, or with repeats of one scenario only.

    Raises:
        ValueError: a value is not a finite number.

    Example:
        >>> design_effect({"a": {0: 1, 1: 1}, "b": {0: 0, 1: 0}, "c": {0: 1, 1: 1}, "d": {0: 0, 1: 0}})
        2.6666666666666665
    """
    return _sizes(arm)[0]


def effective_n(arm: Arm) -> float | None:
    """How many independent trials would tell as much: trials over the design effect.

    Args:
        arm: scenario → repeat → value.

    Returns:
        A size between the number of scenarios and the number of trials; None where the design effect is.

    Raises:
        ValueError: a value is not a finite number.
    """
    return _sizes(arm)[1]


def icc_of(clusters: Clusters) -> float | None:
    """`icc` of sums by scenario."""
    count, trials = clusters.scenarios, clusters.trials
    if count < 2 or not clusters.repeated:
        return None
    grand = float(clusters.sums.sum()) / trials
    scatter = float(np.maximum(clusters.squares - clusters.sums**2 / clusters.sizes, 0).sum())
    between = float((clusters.sizes * (clusters.means - grand) ** 2).sum()) / (count - 1)
    within = scatter / (trials - count)
    size = (trials - float((clusters.sizes**2).sum()) / trials) / (count - 1)
    total = between + (size - 1) * within
    constant = total <= 1e-12 * float(clusters.squares.sum()) / trials
    return None if constant else (between - within) / total


def sizes_of(
    clusters: Clusters, simple: float, level: float = 0.95
) -> tuple[float | None, float | None, float]:
    """Design effect, effective size and the size that intervals use, for a variance of one independent trial."""
    if clusters.scenarios == 1 and clusters.repeated:
        return None, None, float(clusters.trials)
    found = spread(clusters.means, clusters.sizes, np.asarray(simple), level)
    adjusted = float(found.adjusted)
    if math.isnan(float(found.design_effect)):
        return None, None, adjusted
    return float(found.design_effect), float(found.effective), adjusted


def _sizes(arm: Arm) -> tuple[float | None, float | None]:
    clusters = clusters_of(arm, verdicts=False)
    if not clusters.scenarios:
        return None, None
    return sizes_of(clusters, variance_of(clusters))[:2]


def variance_of(clusters: Clusters) -> float:
    """Variance of one trial about the mean of scenarios, each scenario weighing the same; p (1 − p) for verdicts."""
    return max(float((clusters.squares / clusters.sizes).mean() - clusters.means.mean() ** 2), 0.0)
