"""Many comparisons at once.

Invariant: an adjusted p is never smaller than the p it came from, nor larger than 1, an adjusted e-value never larger
than it was, and each keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's (1979) correction: the chance of one false finding or more stays below α. For claims.

    Args:
        p_values: p of each comparison, 0 to 1.

    Returns:
        Adjusted p in the same order; empty for none.

    Raises:
        ValueError: a value is not between 0 and 1.

    Example:
        >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    _check(p_values)
    order, count = _ascending(p_values), len(p_values)
    # The smallest p stands against all comparisons, the next one against one less; none may fall below a smaller one.
    raised = accumulate((p_values[place] * (count - rank) for rank, place in enumerate(order)), max)
    return _restore_order(order, raised)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Benjamini and Hochberg's (1995) correction: the share of false findings stays below α. For exploration.

    Args, returns and errors are those of `holm`.

    Example:
        >>> [round(p, 3) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
        [0.03, 0.04, 0.04]
    """
    _check(p_values)
    order, count = _ascending(p_values)[::-1], len(p_values)
    lowered = accumulate(
        (p_values[place] * (count / (count - rank)) for rank, place in enumerate(order)), min
    )
    return _restore_order(order, lowered)


def closed_e(e_values: Sequence[float]) -> tuple[float, ...]:
    """Return the correction for e-values: the chance of one false finding or more stays below α where those of 1 /
    α or more are taken for findings, however the comparisons hang together. A mean of e-values is an e-value of
    "none of these differs", so a comparison stands where the mean of every set that it belongs to stands, the worst
    of which holds the smallest of the others. Source: Vovk and Wang (2021), "E-values: calibration, combination and
    applications", algorithm 1.

    Args:
        e_values: of each comparison, 0 or more, each where its own looking ended.

    Returns:
        Adjusted e-values in the same order, none larger than it was; empty for none.

    Raises:
        ValueError: a value is below 0, or no number.

    Example:
        >>> closed_e([20.0, 25.0, 30.0]), closed_e([20.0, 1.0, 1.0])
        ((20.0, 22.5, 25.0), (7.333333333333333, 1.0, 1.0))
    """
    for e in e_values:
        if not e >= 0:
            raise ValueError(f"{e!r} is no e-value; leave out comparisons that nobody looked at")
    adjusted = []
    for place, own in enumerate(e_values):
        others = sorted([*e_values[:place], *e_values[place + 1 :]])
        sums = accumulate(others, initial=own)
        adjusted.append(min(total / count for count, total in enumerate(sums, start=1)))
    return tuple(adjusted)


def _ascending(p_values: Sequence[float]) -> list[int]:
    return sorted(range(len(p_values)), key=p_values.__getitem__)


def _restore_order(order: Sequence[int], adjusted: Iterable[float]) -> tuple[float, ...]:
    """Return the adjusted values, each at the place that its p came from."""
    found = dict(zip(order, adjusted, strict=True))
    return tuple(min(1.0, float(found[place])) for place in range(len(found)))


def _check(p_values: Sequence[float]) -> None:
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"{p!r} is not a p-value; leave out comparisons that have none")
