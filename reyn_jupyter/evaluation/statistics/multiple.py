"""Many comparisons at once.

Invariant: an adjusted p is never smaller than the p it came from, nor larger than 1, and keeps its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from reyn_jupyter.evaluation.statistics.libraries import library


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's (1979) correction: the chance of one false finding or more stays below α. For claims.

    Args:
        p_values: p of each comparison, 0 to 1.

    Returns:
        Adjusted p in the same order; empty for none.

    Raises:
        ValueError: a value is not between 0 and 1.
        ImportError: statsmodels is not installed.

    Example:
        >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    _check(p_values)
    if not p_values:
        return ()
    adjusted = library("statsmodels.stats.multitest").multipletests(list(p_values), method="holm")[1]
    return tuple(map(float, adjusted))


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Benjamini and Hochberg's (1995) correction: the share of false findings stays below α. For exploration.

    Args, returns and errors are those of `holm`; it needs scipy.

    Example:
        >>> [round(p, 3) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
        [0.03, 0.04, 0.04]
    """
    _check(p_values)
    if not p_values:
        return ()
    return tuple(map(float, library("scipy.stats").false_discovery_control(list(p_values), method="bh")))


def _check(p_values: Sequence[float]) -> None:
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"{p!r} is not a p-value; leave out comparisons that have none")
