"""How often the sign-flip test finds a difference, by simulation.

Invariant: the same study is drawn again for the same arguments, so that a plan is reproducible, and a larger one
contains the smaller one. The t test promises too much here: of few scenarios with few repeats there are few sign
patterns, and below six of them no p reaches .05.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.statistics.arms import Floats

STUDIES = 2_000  # the chance is known to within a point (one standard error)
MOST_PAIRS = 1_000  # of one study; beyond it the t test is as good, and a simulation slow


def sign_flip_power(
    scenarios: int, repeats: int, shares: tuple[float, float], icc: float, alpha: float = 0.05
) -> float:
    """The chance that the exact two-sided sign-flip test over scenarios has p ≤ alpha.

    Of each scenario's pairs some are won and some lost, with chances that differ by scenario so that the differences of
    two pairs of one scenario correlate by `icc` (Dirichlet-multinomial).

    Args:
        scenarios: how many.
        repeats: pairs of each.
        shares: of pairs that b wins, and that it loses; together at most 1.
        icc: 0 to 1.
        alpha: the level of the test.

    Returns:
        The share of 2,000 simulated studies.

    Example:
        >>> sign_flip_power(5, 3, (0.9, 0.0), 0.4)
        0.0
    """
    gaps = draw_gaps(scenarios, repeats, shares, icc)
    return float((p_values(np.abs(gaps), np.abs(gaps.sum(axis=0)), repeats) <= alpha + 1e-9).mean())


def draw_gaps(scenarios: int, repeats: int, shares: tuple[float, float], icc: float) -> Floats:
    """Pairs that b wins less those that it loses, of shape (scenarios, studies). The arguments are those of
    `sign_flip_power`."""
    return _drawn(1 << (scenarios - 1).bit_length(), repeats, shares, icc)[:scenarios]


@lru_cache(maxsize=4)  # a plan asks for many sizes of the same study
def _drawn(scenarios: int, repeats: int, shares: tuple[float, float], icc: float) -> Floats:
    parts = np.array([*shares, max(0.0, 1 - sum(shares))])
    mixing, drawing = np.random.default_rng(1), np.random.default_rng(2)
    size = (scenarios, STUDIES)
    if icc >= 1:  # every pair of a scenario is alike
        counts = repeats * drawing.multinomial(1, parts, size=size)
    elif icc <= 0:
        counts = drawing.multinomial(repeats, parts, size=size)
    else:
        weights = mixing.standard_gamma(parts * (1 - icc) / icc, size=(*size, 3)) + 1e-300 * (parts > 0)
        counts = drawing.multinomial(repeats, weights / weights.sum(axis=-1, keepdims=True))
    gaps: Floats = (counts[..., 0] - counts[..., 1]).astype(np.float64)
    return gaps


def p_values(moved: Floats, seen: Floats, repeats: int) -> Floats:
    """The exact p of every study: how its signed sum is distributed follows from its characteristic function.

    Args:
        moved: how far the pairs of each scenario are apart, without the sign, shape (scenarios, studies).
        seen: the sum of the signed gaps of each study, without its sign, shape (studies,).
        repeats: pairs of each scenario.

    Returns:
        What `signflip.sign_flip_counts` gives for each study.
    """
    span = len(moved) * repeats
    points = 1 << (2 * span).bit_length()  # more than there are sums, and quick to transform
    angles = 2 * np.pi * np.arange(points // 2 + 1) / points
    sizes = np.arange(1, repeats + 1)
    counts = np.stack([(moved == size).sum(axis=0, dtype=np.float64) for size in sizes], axis=1)
    waves = np.cos(np.outer(sizes, angles))
    size = np.exp(counts @ np.log(np.maximum(np.abs(waves), 1e-300)))
    signs = 1 - 2 * (counts @ (waves < 0) % 2)
    chances = np.fft.irfft(size * signs, axis=1)[:, : span + 1]  # of sums from 0 on
    beyond = chances[:, ::-1].cumsum(axis=1)[:, ::-1]
    tail = beyond[np.arange(len(seen)), seen.astype(int)]
    return np.where(seen == 0, 1.0, 2 * tail)
