"""What missing trials could change at worst.

Invariant: nothing is assumed of why a trial is missing, so the bounds hold whatever the reason (Manski, 1989). They
bound the estimate, not the rate behind it: they come on top of the interval.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.statistics.arms import Arm, clusters_of


def worst_rate(arm: Arm, missing: int) -> tuple[float, float]:
    """The rate if every missing trial had failed, and if every one had passed.

    Args:
        arm: scenario → repeat → 0 or 1, without the missing trials.
        missing: how many trials are missing, taken to be spread over scenarios like the others.

    Returns:
        Low and high; (0, 1) where there is no trial at all.

    Raises:
        ValueError: `missing` is negative, or a value is not 0 or 1.

    Example:
        >>> worst_rate({"a": {0: 1}, "b": {0: 0}, "c": {0: 1}}, 1)
        (0.5, 0.75)
    """
    if missing < 0:
        raise ValueError(f"{missing!r} trials cannot be missing; the count starts at 0")
    clusters = clusters_of(arm, verdicts=True)
    if not clusters.scenarios:
        return 0.0, 1.0
    gone = missing / (clusters.trials + missing)
    low = float(clusters.means.mean()) * (1 - gone)
    return low, min(1.0, low + gone)


def worst_difference(a: Arm, b: Arm, missing_a: int, missing_b: int) -> tuple[float, float]:
    """The difference b − a if every missing trial had gone against b, and if every one had gone for b.

    All trials count here, those without a partner included, so that the bounds need not hold the estimate of the
    pairs: it may leave out trials that pull the other way.

    Args:
        a: scenario → repeat → 0 or 1 under the first variant.
        b: the same under the second.
        missing_a: trials missing under the first variant.
        missing_b: trials missing under the second.

    Returns:
        Low and high, within −1 and 1.

    Raises:
        ValueError: a count is negative, or a value is not 0 or 1.

    Example:
        >>> worst_difference({"a": {0: 0}, "b": {0: 0}}, {"a": {0: 1}}, 0, 1)
        (0.5, 1.0)
    """
    first, second = worst_rate(a, missing_a), worst_rate(b, missing_b)
    return second[0] - first[1], second[1] - first[0]
