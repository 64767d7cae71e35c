"""Where the parts of a chart lie, whichever host draws them.

Invariant: a place is always within its axis, whatever the value; what lies beyond is told by a mark and in words. The
TypeScript computes the same places with the same rounding, so that both hosts draw the same chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reyn_jupyter.notebook.render.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Fold,
    Grid,
    Interval,
    Intervals,
    Pair,
    Quote,
    Scatter,
    Section,
    Span,
)
from reyn_jupyter.support.sanitize import visible

Anchor = Literal["start", "middle", "end"]
Axis = tuple[float, float]

WIDTH, HEIGHT = 480, 232  # of a scatter chart, in its own units
LEFT, RIGHT, TOP, BOTTOM = 44, 468, 24, 188  # of the area between its axes
_LETTER, _WIDE_LETTER, _LINE = 6.0, 11.0, 12.0
_LONGEST_LABEL = 28
_LABELS = 40
_REACH = 5.0  # how far a point and its interval keep labels away


def share(value: float, axis: Axis) -> float:
    """Where a value lies on an axis, from 0.0 to 1.0; what lies beyond an end lies at that end.

    >>> share(5.0, (0.0, 20.0)), share(-3.0, (0.0, 20.0))
    (0.25, 0.0)
    """
    first, last = axis
    within = min(max(value, first), last)
    # In halves where the whole length is more than a float holds.
    by = 1 if math.isfinite(last - first) else 2
    return (within / by - first / by) / (last / by - first / by)


def figure(value: float) -> str:
    """A coordinate with two decimals at most, rounded as JavaScript rounds.

    >>> figure(33.333), figure(50.0)
    ('33.33', '50')
    """
    return f"{math.floor(value * 100 + 0.5) / 100:g}"


def beyond(row: Interval, axis: Axis) -> tuple[bool, bool]:
    """Whether something of a row lies before the axis' beginning, and after its end."""
    values = [value for value in (row.estimate, row.low, row.high, row.reference) if value is not None]
    return any(value < axis[0] for value in values), any(value > axis[1] for value in values)


def words(row: Interval, axis: Axis) -> str:
    """What is drawn in words, and that it goes beyond the axis where it does."""
    return f"{row.text}, beyond the axis" if any(beyond(row, axis)) else row.text


def tick_anchor(at: float) -> Anchor:
    """How the text of a tick stands to its line, so that those at the ends stay within the chart."""
    return "start" if at < 0.05 else "end" if at > 0.95 else "middle"


@dataclass(frozen=True, slots=True)
class Placed:
    """A point of a scatter chart in the chart's units; `label` is (x, y, anchor, text), None where it has no room."""

    x: float
    y: float
    low: float
    high: float
    label: tuple[float, float, Anchor, str] | None


def scatter_x(value: float, axis: Axis) -> float:
    return LEFT + share(value, axis) * (RIGHT - LEFT)


def scatter_y(value: float, axis: Axis) -> float:
    return BOTTOM - share(value, axis) * (BOTTOM - TOP)


_Box = tuple[float, float, float, float]


def placed(chart: Scatter) -> tuple[Placed, ...]:
    """The points of a chart, each with the first place for its label that no other label and no point takes."""
    points = []
    for point in chart.points:
        y = scatter_y(point.y, chart.y_axis)
        low = y if point.low is None else scatter_y(point.low, chart.y_axis)
        high = y if point.high is None else scatter_y(point.high, chart.y_axis)
        points.append((scatter_x(point.x, chart.x_axis), y, low, high))
    taken: list[_Box] = [
        (x - _REACH, min(y, high) - _REACH, x + _REACH, max(y, low) + _REACH) for x, y, low, high in points
    ]
    found: list[Placed] = []
    for (x, y, low, high), point in zip(points, chart.points, strict=True):
        label = _label(x, y, visible(point.label), taken) if len(found) < _LABELS else None
        found.append(Placed(x, y, low, high, label))
    return tuple(found)


def _label(x: float, y: float, whole: str, taken: list[_Box]) -> tuple[float, float, Anchor, str] | None:
    text = whole if len(whole) <= _LONGEST_LABEL else whole[: _LONGEST_LABEL - 1] + "…"
    wide = sum(_LETTER if ord(letter) < 0x2E80 else _WIDE_LETTER for letter in text)
    for base in (y + 4, y - 9, y + 17, y - 22, y + 30):
        for left, at, anchor in ((x + 8, x + 8, "start"), (x - 8 - wide, x - 8, "end")):
            box = (left, base - _LINE + 2, left + wide, base + 2)
            if left < LEFT or box[2] > WIDTH or box[1] < TOP - _LINE or box[3] > BOTTOM:
                continue
            if all(_apart(box, other) for other in taken):
                taken.append(box)
                return at, base, "start" if anchor == "start" else "end", text
    return None


def _apart(one: _Box, other: _Box) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def scatter_table(chart: Scatter) -> Grid:
    """The figures of a scatter chart."""
    columns = (Column("", header=True), Column(f"{chart.y_name}, {chart.x_name}", wide=True))
    return Grid("", columns, tuple((Cell(point.label), Cell(point.text)) for point in chart.points))


def scatter_fold(chart: Scatter) -> Fold:
    """The figures of a scatter chart, to open below it."""
    return Fold((Span("In figures"),), blocks=(scatter_table(chart),))


def _title_of(block: Block) -> str:
    """What a block is called, where it is called anything."""
    match block:
        case Section():
            return block.title
        case Fold():
            return "".join(span.text for span in block.title).strip()
        case Intervals() | Scatter() | Grid():
            return block.caption
        case _:
            return ""


def titles_of(blocks: Sequence[Block]) -> list[str]:
    """What each block is called, short enough to be listed; "" where it is called nothing."""
    return [visible(_title_of(block))[:60] for block in blocks]


def has_charts(blocks: Sequence[Block]) -> bool:
    """Whether something among these blocks needs the style of charts."""
    for block in blocks:
        match block:
            case Intervals() | Scatter() | Pair():
                return True
            case Section() | Fold() | Quote():
                inner = has_charts(block.blocks)
            case Bullets():
                inner = any(has_charts(item) for item in block.items)
            case _:
                inner = False
        if inner:
            return True
    return False
