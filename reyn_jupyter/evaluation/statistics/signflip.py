"""The sign-flip permutation test over scenarios.

Invariant: p is never 0. Were the variants alike, each scenario's difference could as well have had the other sign;
p is the share of the sign patterns whose mean is at least as far from 0 as the one seen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.evaluation.statistics.libraries import library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reyn_jupyter.evaluation.statistics.arms import Floats

DRAWS = 10_000
LARGEST_SUM = 200_000  # of whole steps; the exact distribution of sums up to it takes well under a second


def sign_flip(differences: Floats, *, seed: int = 0, draws: int = DRAWS) -> tuple[float, str]:
    """The two-sided sign-flip test for scenarios whose differences are any numbers.

    Twice the smaller tail. Exact where there are fewer sign patterns than `draws`, else over that many, the one seen
    among them (Phipson and Smyth, 2010).

    Args:
        differences: mean difference of each scenario, shape (scenarios,), finite.
        seed: of the draws.
        draws: patterns to look at.

    Returns:
        p, from 2 / draws to 1, and the name of the test.

    Example:
        >>> sign_flip(np.array([1.5, 2.5, 0.5, 1.0]))[0]
        0.125
    """
    moved = differences[differences != 0]
    # Both patterns of one scenario are as far from 0, and every pattern is at least as far as 0 itself.
    if len(moved) < 2 or abs(math.fsum(moved)) <= 1e-12 * np.abs(moved).sum():
        return 1.0, "sign-flip permutation, exact"
    found = library("scipy.stats").permutation_test(
        (moved / np.abs(moved).max(), np.zeros_like(moved)),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws - 1,
        batch=1_000,
        rng=seed,
    )
    exact = 2 ** len(moved) < draws
    return float(
        found.pvalue
    ), f"sign-flip permutation, {'exact' if exact else f'{draws:,} draws (seed {seed})'}"


def sign_flip_counts(sums: Sequence[int], sizes: Sequence[int]) -> float | None:
    """The exact two-sided sign-flip test for scenarios whose differences are fractions.

    The distribution of the signed sum is built scenario by scenario, so that no pattern need be drawn. With one pair
    a scenario this is McNemar's exact test.

    Args:
        sums: passes of b less passes of a, one a scenario.
        sizes: pairs of each scenario.

    Returns:
        p; None where the common step is too fine for an exact answer.

    Example:
        >>> sign_flip_counts([1, 1, 1, 1, 1], [1, 1, 1, 1, 1])
        0.0625
    """
    step = math.lcm(*sizes)
    steps = [abs(total) * (step // size) for total, size in zip(sums, sizes, strict=True)]
    span = sum(steps)
    if span > LARGEST_SUM:
        return None
    chance = np.zeros(2 * span + 1)
    chance[span] = 1.0
    reach = 0
    for size in filter(None, steps):
        lower, upper = span - reach - size, span + reach + size + 1
        window = chance[span - reach : span + reach + 1] / 2
        wider = np.zeros(upper - lower)
        wider[: len(window)] = window
        wider[2 * size :] += window
        chance[lower:upper] = wider
        reach += size
    seen = abs(sum(total * (step // size) for total, size in zip(sums, sizes, strict=True)))
    return min(1.0, float(chance[: span - seen + 1].sum() + chance[span + seen :].sum())) if seen else 1.0
