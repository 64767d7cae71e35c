"""pass^k: how often a variant gets a scenario right k times in a row.

Convention: pass^k, every one of k trials passes, as in tau-bench (Yao and others, 2024). It is not pass@k, which asks
for one pass among k, and which rises with k where pass^k falls.
"""

from __future__ import annotations

from math import comb

from reyn_jupyter.evaluation.statistics.arms import Arm, clusters_of
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate, mean, rate
from reyn_jupyter.support.text import count


def reliability(arm: Arm, k: int, *, level: float = 0.95, seed: int = 0) -> Mean:
    """pass^k of a variant with an interval over its scenarios.

    Args:
        arm: scenario → repeat → 0 or 1.
        k: how many trials must pass.
        level: the confidence level.
        seed: of the bootstrap that `mean` uses from 40 scenarios on.

    Returns:
        A `Mean` of the scenarios that have k trials, its limits within 0 and 1; it warns of scenarios left out. Where
        each has just k trials, every one passes all of them or does not, and the limits are those of `rate`.

    Raises:
        ValueError: a value is not 0 or 1, or no scenario has k trials.

    Example:
        >>> round(reliability({"a": {0: 1, 1: 1}, "b": {0: 1, 1: 0}}, 2).estimate, 2)
        0.5
    """
    clusters_of(arm, verdicts=True)
    enough = {name: repeats for name, repeats in arm.items() if len(repeats) >= k}
    if k < 1 or not enough:
        raise ValueError(
            f"no scenario has {k!r} trials, as pass^{k} needs; run more repeats, or ask for a smaller k"
        )
    shares = {name: {0: _all_pass(int(sum(row.values())), len(row), k)} for name, row in enough.items()}
    whole = all(row[0] in (0.0, 1.0) for row in shares.values())
    found: Mean | Rate = rate(shares, level=level) if whole else mean(shares, level=level, seed=seed)
    left = sum(1 for repeats in arm.values() if repeats) - len(enough)
    extra = (f"{count(left, 'scenario')} with fewer than {count(k, 'trial')} left out.",) if left else ()
    return Mean(
        found.estimate,
        None if found.low is None else max(0.0, found.low),
        None if found.high is None else min(1.0, found.high),
        level,
        found.method,
        sum(map(len, enough.values())),
        found.scenarios,
        None,
        None,
        None,
        found.warnings + extra,
    )


def _all_pass(passed: int, trials: int, k: int) -> float:
    if not 0 <= passed <= trials or not 1 <= k <= trials:
        raise ValueError(
            f"pass^{k} of {passed} passes in {trials} trials: passes go from 0 to trials, k from 1 to trials"
        )
    return comb(passed, k) / comb(trials, k)
