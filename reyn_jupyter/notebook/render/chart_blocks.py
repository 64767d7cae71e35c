"""The blocks of a view that are drawn: intervals on one axis, and points on two.

Invariant: every number of a chart is finite, and an axis has a length; whatever is drawn is also said in words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from reyn_jupyter.notebook.render.tone import Tone


def _finite(label: str, *numbers: float | None) -> None:
    """JSON has no NaN and no infinity, so a view has none either."""
    for number in numbers:
        if number is not None and not math.isfinite(number):
            raise ValueError(
                f"{label or 'a chart'}: {number} cannot be drawn; give None for what is not known"
            )


def _axis(name: str, axis: tuple[float, float], ticks: tuple[tuple[float, str], ...]) -> None:
    _finite(name, *axis, *(value for value, _ in ticks))
    if not axis[0] < axis[1]:
        raise ValueError(f"{name or 'a chart'}: an axis goes from a smaller to a larger value, not {axis}")


@dataclass(frozen=True, slots=True)
class Interval:
    """A row of an interval chart. `text` says in words what is drawn; `reference` is a value to compare it with.

    Without an estimate nothing is drawn, and the words say why.

    Raises:
        ValueError: a number is NaN or infinite.
    """

    label: str
    text: str
    estimate: float | None
    low: float | None = None
    high: float | None = None
    detail: str = ""
    reference: float | None = None
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        _finite(self.label, self.estimate, self.low, self.high, self.reference)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Estimates with their intervals on one axis.

    Rates are `bars` from the axis' beginning, differences have a line at `zero`. `axis` is (from, to); `ticks` are
    (value, text); `legend` says what a row's reference is.
    """

    caption: str
    rows: tuple[Interval, ...]
    axis: tuple[float, float]
    ticks: tuple[tuple[float, str], ...] = ()
    zero: float | None = None
    bars: bool = False
    legend: str = ""
    more: str = ""
    type: Literal["intervals"] = "intervals"

    def __post_init__(self) -> None:
        _axis(self.caption, self.axis, self.ticks)
        _finite(self.caption, self.zero)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a scatter chart, with the bounds of its y value; `text` says in words what is drawn."""

    label: str
    text: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        _finite(self.label, self.x, self.y, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points on two axes, each with a name, (from, to) and ticks.

    Its `figures` are listed with it, unless a table beside it has them.
    """

    caption: str
    points: tuple[Point, ...]
    x_name: str
    y_name: str
    x_axis: tuple[float, float]
    y_axis: tuple[float, float]
    x_ticks: tuple[tuple[float, str], ...] = ()
    y_ticks: tuple[tuple[float, str], ...] = ()
    figures: bool = True
    type: Literal["scatter"] = "scatter"

    def __post_init__(self) -> None:
        _axis(self.x_name, self.x_axis, self.x_ticks)
        _axis(self.y_name, self.y_axis, self.y_ticks)
