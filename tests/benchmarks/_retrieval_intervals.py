"""95 % intervals of means, differences and areas, by drawing actions: requests for one action come and go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

DRAWS = 1_000


def _drawn(*clusters: Sequence[str]) -> list[np.ndarray]:
    """How often each request is drawn, shape (DRAWS, requests), for every list of clusters under the same draws."""
    names = sorted(set().union(*clusters))
    times = np.random.default_rng(0).multinomial(len(names), [1 / len(names)] * len(names), DRAWS)
    place = {name: at for at, name in enumerate(names)}
    return [times[:, [place[each] for each in some]].astype(np.float64) for some in clusters]


def mean_interval(values: Sequence[float], clusters: Sequence[str]) -> tuple[float, float, float]:
    """The mean, and the ends of its interval."""
    (weights,) = _drawn(clusters)
    total = weights.sum(1)
    means = (weights @ np.asarray(values, np.float64))[total > 0] / total[total > 0]
    return float(np.mean(values)), *map(float, np.quantile(means, (0.025, 0.975)))


def area_interval(
    above: Sequence[float], below: Sequence[float], clusters: Sequence[str], others: Sequence[str]
) -> tuple[float, float, float]:
    """The area under the ROC curve of two groups of requests, and the ends of its interval."""
    first, second = np.asarray(above)[:, None], np.asarray(below)[None, :]
    wins = (first > second) + 0.5 * (first == second)
    one, other = _drawn(clusters, others)
    pairs = one.sum(1) * other.sum(1)
    areas = np.einsum("dn,dn->d", one @ wins, other)[pairs > 0] / pairs[pairs > 0]
    return float(wins.mean()), *map(float, np.quantile(areas, (0.025, 0.975)))


def shown(found: tuple[float, float, float], sign: str = "") -> str:
    """A value with its interval."""
    return f"{found[0]:{sign}.3f} [{found[1]:{sign}.3f}, {found[2]:{sign}.3f}]"
