"""What a number of scenarios can find, the other way round than a plan.

Invariant: it assumes what a plan assumes, so that the two agree.
"""

from __future__ import annotations

import math

from reyn_jupyter.evaluation.statistics.power import (
    TYPICAL_ICC,
    independent_arms,
    mcnemar_power,
    t_power,
)
from reyn_jupyter.evaluation.statistics.signflip_power import MOST_PAIRS, sign_flip_power


def smallest_found(
    scenarios: int,
    *,
    power: float = 0.8,
    discordant: float | None = None,
    repeats: int = 1,
    icc: float = TYPICAL_ICC,
    alpha: float = 0.05,
) -> float | None:
    """The smallest difference of two variants that so many scenarios find.

    Args:
        scenarios: how many there are.
        power, discordant, repeats, icc, alpha: as of `plan`; where the discordant share is below a difference, that
            difference takes its place.

    Returns:
        A difference of rates in whole points, 0 to 1; None where not even 99 points are found.

    Example:
        >>> smallest_found(187)
        0.15
    """

    def found(points: int) -> bool:
        gap = points / 100
        differ = (
            independent_arms((1 - gap) / 2, (1 + gap) / 2)[0] if discordant is None else max(gap, discordant)
        )
        if repeats == 1:
            return mcnemar_power(scenarios, differ, (differ + gap) / (2 * differ), alpha) >= power
        if scenarios * repeats > MOST_PAIRS:
            spread = math.sqrt((differ - gap**2) * (1 + (repeats - 1) * icc) / repeats)
            return t_power(scenarios, gap / spread, alpha) >= power
        shares = ((differ + gap) / 2, (differ - gap) / 2)
        return sign_flip_power(scenarios, repeats, shares, icc, alpha) >= power

    below, enough = 0, 100
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if found(middle) else (middle, enough)
    return enough / 100 if enough < 100 else None
