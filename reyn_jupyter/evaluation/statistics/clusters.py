"""Estimate how alike the repeats of one scenario are, and what that costs.

Invariant: a figure that the data cannot give is None, never 0, 1 or NaN.
"""

from __future__ import annotations

import math

import numpy as np

from reyn_jupyter.evaluation.statistics.arms import Clusters
from reyn_jupyter.evaluation.statistics.intervals import spread


def icc_of(clusters: Clusters) -> float | None:
    """Return the intraclass correlation of repeats of one scenario.

    The analysis-of-variance estimator with the mean group size of unequal repeats,
    m0 = (N − Σm²/N) / (C − 1): (MSB − MSW) / (MSB + (m0 − 1) MSW). It may be slightly negative by chance.
    Source: Donner and Koval (1980); Ridout, Demétrio and Firth (1999) for proportions.

    Args:
        clusters: sums by scenario.

    Returns:
        The correlation, at most 1; None without repeats, with one scenario, or where nothing varies.

    Example:
        >>> from reyn_jupyter.evaluation.statistics.arms import clusters_of
        >>> arm = {"a": {0: 1, 1: 1}, "b": {0: 0, 1: 0}, "c": {0: 1, 1: 0}}
        >>> round(icc_of(clusters_of(arm, verdicts=False)), 6)
        0.5
    """
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
    """Return design effect, effective sample size, and the sample size that intervals use.

    The design effect is the variance of the mean of scenarios over that of as many independent trials (Kish, 1965): 2
    says that half as many independent trials would tell as much. The effective size is trials over it.

    Args:
        clusters: sums by scenario.
        simple: variance of one trial, were all independent.
        level: the confidence level.

    Returns:
        The first two are None where nothing varies, and for repeats of one scenario alone.
    """
    if clusters.scenarios == 1 and clusters.repeated:
        return None, None, float(clusters.trials)
    found = spread(clusters.means, clusters.sizes, np.asarray(simple), level)
    adjusted = float(found.adjusted)
    if math.isnan(float(found.design_effect)):
        return None, None, adjusted
    return float(found.design_effect), float(found.effective), adjusted


def variance_of(clusters: Clusters) -> float:
    """Variance of one trial about the mean of scenarios, each scenario weighing the same; p (1 − p) for verdicts."""
    return max(float((clusters.squares / clusters.sizes).mean() - clusters.means.mean() ** 2), 0.0)
