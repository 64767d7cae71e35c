"""The values that were measured under one variant, and the pairs of two variants.

Invariant: a value that is neither missing nor a finite number of the promised kind never gets past here. A missing
trial is absent from the mapping; it is not a failure, and not a zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Arm = Mapping[str, Mapping[int, float]]
"""Scenario → repeat → value: 0 or 1 for the verdict of a check, or any finite number."""

FEW_CLUSTERS = 40  # below it variances between scenarios rest on too little (Cameron and Miller, 2015)


@dataclass(frozen=True)
class Clusters:
    """Sums by scenario of one arm; scenarios without a trial are left out. Arrays have the shape (scenarios,)."""

    sums: Floats
    squares: Floats
    sizes: Floats

    @property
    def scenarios(self) -> int:
        """The number of scenarios that have a trial."""
        return len(self.sizes)

    @property
    def trials(self) -> int:
        """The number of trials."""
        return int(self.sizes.sum())

    @property
    def means(self) -> Floats:
        """The mean of each scenario."""
        return self.sums / self.sizes

    @property
    def repeated(self) -> bool:
        """True if any scenario has more than one trial."""
        return bool((self.sizes > 1).any())


@dataclass(frozen=True)
class Pairs:
    """The trials of two arms that share scenario and repeat.

    Attributes:
        a: the first arm, cut to the pairs.
        b: the second arm, cut to the pairs.
        dropped: scenario and repeat combinations that only one arm has.
    """

    a: Arm
    b: Arm
    dropped: int


def clusters_of(arm: Arm, *, verdicts: bool) -> Clusters:
    """Sum an arm by scenario.

    Args:
        arm: scenario → repeat → value.
        verdicts: whether the values must be 0 or 1.

    Returns:
        Sums, sums of squares and sizes of the scenarios that have a trial, sorted by name.

    Raises:
        ValueError: a value is not finite, or not 0 or 1 where verdicts are wanted.
    """
    kept = [(name, list(arm[name].values())) for name in sorted(arm) if arm[name]]
    for name, values in kept:
        for value in values:
            _check(name, value, verdicts)
    columns = [(math.fsum(v), math.fsum(x * x for x in v), float(len(v))) for _, v in kept]
    table = np.array(columns, dtype=np.float64).reshape(-1, 3)
    return Clusters(table[:, 0], table[:, 1], table[:, 2])


def pair(a: Arm, b: Arm) -> Pairs:
    """Keep the trials that both arms have.

    Args:
        a: the first arm.
        b: the second arm.

    Returns:
        Both arms over the same scenarios and repeats, and how many combinations had no partner.
    """
    shared = {name: sorted(a[name].keys() & b[name].keys()) for name in a.keys() & b.keys()}
    shared = {name: repeats for name, repeats in shared.items() if repeats}
    pairs = sum(map(len, shared.values()))
    total = sum(map(len, a.values())) + sum(map(len, b.values()))
    return Pairs(
        {name: {i: a[name][i] for i in shared[name]} for name in sorted(shared)},
        {name: {i: b[name][i] for i in shared[name]} for name in sorted(shared)},
        total - 2 * pairs,
    )


def significant(value: float) -> str:
    """Return a number for people: three digits that count, thousands apart, never an exponent of ten for a large
    one.

    >>> significant(12_345.6), significant(2.345), significant(-0.00012), significant(0)
    ('12,346', '2.35', '−0.00012', '0')
    """
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def few_clusters(scenarios: int) -> str:
    """Return the sentence that warns of too few scenarios under repeats."""
    return (
        f"{count(scenarios, 'scenario')}: below about {FEW_CLUSTERS}, add scenarios before repeats, "
        "because repeats of one scenario resemble each other."
    )


def _check(scenario: str, value: float, verdicts: bool) -> None:
    if verdicts and value not in (0, 1):
        raise ValueError(
            f"a rate counts verdicts, and scenario {scenario!r} has the value {value!r}, which is neither 0 nor 1. "
            "Leave a missing trial out of the mapping; use `mean` for numbers."
        )
    if not math.isfinite(value):
        raise ValueError(
            f"scenario {scenario!r} has the value {value!r}, which is not a finite number. "
            "Leave a missing trial out of the mapping."
        )
