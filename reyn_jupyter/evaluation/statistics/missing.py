"""Bound what missing trials could change at worst.

Invariant: nothing is assumed of why a trial is missing, nor in which scenario, so the bounds hold whatever the reason
(Manski, 1989). They bound the estimate, not the rate behind it: they come on top of the interval.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reyn_jupyter.evaluation.statistics.arms import Arm, clusters_of

Missing = Mapping[str, Collection[int]]
"""Scenario → the repeats that are missing."""


def worst_rate(arm: Arm, missing: Missing) -> tuple[float, float]:
    """Return the rate if every missing trial had failed, and if every one had passed.

    Args:
        arm: scenario → repeat → 0 or 1, without the missing trials.
        missing: scenario → the repeats that are missing.

    Returns:
        Low and high; (0, 1) where there is no trial at all.

    Raises:
        ValueError: a value is not 0 or 1.

    Example:
        >>> worst_rate({"a": {0: 1}, "b": {0: 0}}, {"a": [1], "c": [0]})
        (0.16666666666666666, 0.6666666666666666)
    """
    clusters_of(arm, verdicts=True)
    lows, highs = [], []
    for name in sorted(arm.keys() | missing.keys()):
        values = dict(arm.get(name, {}))
        gone = set(missing.get(name, ())) - values.keys()
        if size := len(values) + len(gone):
            lows.append(sum(values.values()) / size)
            highs.append((sum(values.values()) + len(gone)) / size)
    return (sum(lows) / len(lows), sum(highs) / len(highs)) if lows else (0.0, 1.0)


def worst_difference(a: Arm, b: Arm, missing_a: Missing, missing_b: Missing) -> tuple[float, float]:
    """Return the difference b − a if every missing trial had gone against b, and if every one had gone for b.

    The pairs are those that there would be if no trial were missing: scenario and repeat that each variant has, or
    misses. The bounds need not hold the estimate of the pairs that there are, which may leave out trials that pull
    the other way.

    Args:
        a: scenario → repeat → 0 or 1 under the first variant.
        b: the same under the second.
        missing_a: scenario → the repeats that are missing under the first variant.
        missing_b: the same under the second.

    Returns:
        Low and high, within −1 and 1; (−1, 1) where there would be no pair.

    Raises:
        ValueError: a value is not 0 or 1.

    Example:
        >>> worst_difference({"a": {0: 0}, "b": {0: 0}}, {"a": {0: 1}}, {}, {"b": [0]})
        (0.5, 1.0)
    """
    lows, highs = [], []
    names = (a.keys() | missing_a.keys()) & (b.keys() | missing_b.keys())
    for arm in (a, b):
        clusters_of(arm, verdicts=True)
    for name in sorted(names):
        of_a, of_b = _ranges(a, missing_a, name), _ranges(b, missing_b, name)
        pairs = sorted(of_a.keys() & of_b.keys())
        if pairs:
            lows.append(sum(of_b[i][0] - of_a[i][1] for i in pairs) / len(pairs))
            highs.append(sum(of_b[i][1] - of_a[i][0] for i in pairs) / len(pairs))
    return (sum(lows) / len(lows), sum(highs) / len(highs)) if lows else (-1.0, 1.0)


def _ranges(arm: Arm, missing: Missing, name: str) -> dict[int, tuple[float, float]]:
    """Repeat → the least and the most that it shows, or could have shown."""
    unknown = dict.fromkeys(missing.get(name, ()), (0.0, 1.0))
    return unknown | {repeat: (value, value) for repeat, value in arm.get(name, {}).items()}
