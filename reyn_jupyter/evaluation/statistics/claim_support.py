"""What the sample behind a published claim can carry.

Invariant: a claim is judged by its interval, never by its share alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reyn_jupyter.evaluation.statistics.intervals import rate_limits
from reyn_jupyter.evaluation.statistics.power import least, scenarios_for_width
from reyn_jupyter.evaluation.statistics.rates import interval
from reyn_jupyter.support.text import count

HALF_WIDTH = 0.1


@dataclass(frozen=True)
class ClaimSupport:
    """What a sample says of a rate.

    Attributes:
        estimate: the share that passed.
        low, high: confidence limits for independent trials.
        supported: whether the interval leaves `against` out; None where nothing was to be left out.
        needed: scenarios, one trial each, at which the same share would leave `against` out, or, without one, would
            be known to within 10 points either way; None where the share equals `against`.
        sentence: the same in words.
    """

    estimate: float
    low: float
    high: float
    supported: bool | None
    needed: int | None
    sentence: str


def claim_support(
    passed: int, trials: int, against: float | None = None, *, level: float = 0.95
) -> ClaimSupport:
    """What the sample behind a claim supports, and how many scenarios it would need.

    Args:
        passed: passes that the claim reports.
        trials: trials that it reports, taken as independent, which is the best case.
        against: a rate that the claim means to beat or to stay under; None where it only states a figure.
        level: the confidence level.

    Returns:
        A `ClaimSupport`.

    Raises:
        ValueError: the counts or rates make no sense, or more than 100,000 scenarios would be needed.

    Example:
        >>> claim_support(3, 4, against=0.5).sentence
        '3 of 4 is 75 % (30 to 95), so perhaps 50 %; 16 scenarios of the same share would tell.'
    """
    low, high = interval(passed, trials, level)
    share = passed / trials
    head = f"{passed:,} of {trials:,} is {100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    if against is None:
        needed = scenarios_for_width(share, HALF_WIDTH, level=level)
        tail = f"{count(needed, 'scenario')} would tell it to within {100 * HALF_WIDTH:.0f} points"
        return ClaimSupport(share, low, high, None, needed, f"{head}; {tail}.")
    if not 0 <= against <= 1:
        raise ValueError(f"a rate of {against!r} cannot be held against a claim; it must lie between 0 and 1")
    if share == against:
        sentence = f"{head}: it is the very rate that it is held against, which no sample leaves out."
        return ClaimSupport(share, low, high, False, None, sentence)
    supported = not low <= against <= high
    enough = least(lambda size: not _holds(share, size, against, level), 1)
    side = ("more than" if share > against else "less than") if supported else "perhaps"
    tail = "" if supported else f"; {count(enough, 'scenario')} of the same share would tell"
    sentence = f"{head}, so {side} {100 * against:.0f} %{tail}."
    return ClaimSupport(share, low, high, supported, enough, sentence)


def _holds(share: float, size: int, against: float, level: float) -> bool:
    low, high = rate_limits(np.asarray(share), np.asarray(float(size)), level)
    return bool(low <= against <= high)
