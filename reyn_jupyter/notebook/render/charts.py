"""Charts: where their parts lie, whichever host draws them, and their drawing as inline SVG.

Invariants: a place is always within its axis, whatever the value; what lies beyond is told by a mark and in words. The
TypeScript computes the same places with the same rounding, so that both hosts draw the same chart. No number reaches an
attribute of the SVG but through `figure`, and all that a drawing shows stands in words beside it, so that nothing is
lost where a host takes the SVG out. A drawing of rates stretches with its column: its places along the axis are shares,
only its heights are lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
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
    """Return where a value lies on an axis, from 0.0 to 1.0; what lies beyond an end lies at that end.

    >>> share(5.0, (0.0, 20.0)), share(-3.0, (0.0, 20.0))
    (0.25, 0.0)
    """
    first, last = axis
    within = min(max(value, first), last)
    # In halves where the whole length is more than a float holds.
    by = 1 if math.isfinite(last - first) else 2
    return (within / by - first / by) / (last / by - first / by)


def figure(value: float) -> str:
    """Return a coordinate with two decimals at most, rounded as JavaScript rounds.

    >>> figure(33.333), figure(50.0)
    ('33.33', '50')
    """
    return f"{math.floor(value * 100 + 0.5) / 100:g}"


def beyond(row: Interval, axis: Axis) -> tuple[bool, bool]:
    """Return whether something of a row lies before the axis' beginning, and after its end."""
    values = [value for value in (row.estimate, row.low, row.high, row.reference) if value is not None]
    return any(value < axis[0] for value in values), any(value > axis[1] for value in values)


def interval_words(row: Interval, axis: Axis) -> str:
    """Return what is drawn in words, and that it goes beyond the axis where it does."""
    return f"{row.text}, beyond the axis" if any(beyond(row, axis)) else row.text


def tick_anchor(at: float) -> Anchor:
    """Return how the text of a tick stands to its line, so that those at the ends stay within the chart."""
    return "start" if at < 0.05 else "end" if at > 0.95 else "middle"


@dataclass(frozen=True, slots=True)
class PlacedPoint:
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


def place_points(chart: Scatter) -> tuple[PlacedPoint, ...]:
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
    found: list[PlacedPoint] = []
    for (x, y, low, high), point in zip(points, chart.points, strict=True):
        label = _label(x, y, visible(point.label), taken) if len(found) < _LABELS else None
        found.append(PlacedPoint(x, y, low, high, label))
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
    """Return the figures of a scatter chart."""
    columns = (Column("", header=True), Column(f"{chart.y_name}, {chart.x_name}", wide=True))
    return Grid("", columns, tuple((Cell(point.label), Cell(point.text)) for point in chart.points))


def scatter_fold(chart: Scatter) -> Fold:
    """Return the figures of a scatter chart, to open below it."""
    return Fold((Span("In figures"),), blocks=(scatter_table(chart),))


def _title_of(block: Block) -> str:
    """Return what a block is called, where it is called anything."""
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
    """Return what each block is called, short enough to be listed; "" where it is called nothing."""
    return [visible(_title_of(block))[:60] for block in blocks]


def has_charts(blocks: Sequence[Block]) -> bool:
    """Return whether something among these blocks needs the style of charts."""
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


def escape_text(text: str) -> str:
    """Return a text as it stands between tags: hidden characters shown, then escaped."""
    return escape(visible(text), quote=False)


def intervals_opening(chart: Intervals) -> str:
    legend = f'<br><span class="r-quiet">{escape_text(chart.legend)}</span>' if chart.legend else ""
    caption = f"<caption>{escape_text(chart.caption)}{legend}</caption>" if chart.caption or legend else ""
    label = escape(visible(chart.caption or "chart"))
    return f'<div class="r-scroll r-chart" tabindex="0" role="region" aria-label="{label}"><table>{caption}<tbody>'


def intervals_closing(chart: Intervals) -> str:
    if not chart.ticks:
        return "</tbody></table></div>"
    marks = "".join(_tick(share(value, chart.axis), text) for value, text in chart.ticks)
    axis = f'<svg class="r-axis" aria-hidden="true">{marks}</svg>'
    return f'</tbody><tfoot><tr><td></td><td class="r-plot">{axis}</td><td></td></tr></tfoot></table></div>'


def _tick(at: float, text: str) -> str:
    place = f"{figure(100 * at)}%"
    return _line("r-frame", place, 0, place, 4) + _text(place, 16, tick_anchor(at), text)


def interval_row(row: Interval, chart: Intervals) -> str:
    detail = f'<br><span class="r-quiet">{escape_text(row.detail)}</span>' if row.detail else ""
    said = interval_words(row, chart.axis)
    label = escape(visible(f"{row.label}: {said}"))
    return (
        f'<tr><th scope="row">{escape_text(row.label)}{detail}</th><td class="r-plot">'
        f'<svg class="r-track r-{row.tone}" role="img" aria-label="{label}">{_track(row, chart)}</svg></td>'
        f"<td>{escape_text(said)}</td></tr>"
    )


def _track(row: Interval, chart: Intervals) -> str:
    def place(value: float) -> str:
        return f"{figure(100 * share(value, chart.axis))}%"

    def within(value: float) -> bool:
        return chart.axis[0] <= value <= chart.axis[1]

    parts = []
    if chart.bars and row.estimate is not None:
        parts.append(f'<rect class="r-fill" y="4" width="{place(row.estimate)}" height="14"/>')
    if chart.zero is not None:
        zero = place(chart.zero)
        parts.append(_line("r-zero", zero, 0, zero, 22))
    if row.low is not None and row.high is not None:
        low, high = place(row.low), place(row.high)
        parts.append(_line("r-range", low, 11, high, 11))
        parts += [
            _line("r-range", place(end), 7, place(end), 15) for end in (row.low, row.high) if within(end)
        ]
    if row.estimate is not None and within(row.estimate):
        at = place(row.estimate)
        parts.append(_line("r-estimate", at, 4, at, 18))
    if row.reference is not None and within(row.reference):
        parts.append(f'<circle class="r-reference" cx="{place(row.reference)}" cy="11" r="4"/>')
    before, after = beyond(row, chart.axis)
    if before:
        parts.append(_text("0%", 15, "start", "◂"))
    if after:
        parts.append(_text("100%", 15, "end", "▸"))
    return "".join(parts)


def scatter_figure(chart: Scatter) -> str:
    """Return the drawing of a scatter chart; its figures are for the caller to put below."""
    caption = f'<p class="r-label"><strong>{escape_text(chart.caption)}</strong></p>' if chart.caption else ""
    name = f"{chart.y_name} against {chart.x_name}, {len(chart.points):,} points"
    name += "" if chart.figures else "; the table below has the figures"
    label = escape(visible(f"{chart.caption}: {name}" if chart.caption else name))
    parts = [
        _line("r-frame", LEFT, BOTTOM, RIGHT, BOTTOM),
        _line("r-frame", LEFT, TOP, LEFT, BOTTOM),
        *(_x_tick(value, text, chart.x_axis) for value, text in chart.x_ticks),
        *(_y_tick(value, text, chart.y_axis) for value, text in chart.y_ticks),
        _text(LEFT, 12, "start", chart.y_name),
        _text((LEFT + RIGHT) / 2, HEIGHT - 8, "middle", chart.x_name),
    ]
    for point, at in zip(chart.points, place_points(chart), strict=True):
        drawn = []
        if at.low != at.high:
            drawn += [
                _line("r-range", at.x, at.low, at.x, at.high),
                _line("r-range", at.x - 3, at.low, at.x + 3, at.low),
                _line("r-range", at.x - 3, at.high, at.x + 3, at.high),
            ]
        drawn.append(f'<circle class="r-point" cx="{figure(at.x)}" cy="{figure(at.y)}" r="4"/>')
        if at.label is not None:
            drawn.append(_text(*at.label))
        parts.append(f'<g class="r-{point.tone}">{"".join(drawn)}</g>')
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    return f'<div class="r-scatter" tabindex="0" role="region" aria-label="chart">{caption}{svg}</div>'


def _x_tick(value: float, text: str, axis: Axis) -> str:
    at = scatter_x(value, axis)
    return _line("r-frame", at, BOTTOM, at, BOTTOM + 4) + _text(
        at, BOTTOM + 16, tick_anchor(share(value, axis)), text
    )


def _y_tick(value: float, text: str, axis: Axis) -> str:
    at = scatter_y(value, axis)
    return _line("r-rule", LEFT, at, RIGHT, at) + _text(LEFT - 5, at + 4, "end", text)


def _line(name: str, x1: float | str, y1: float, x2: float | str, y2: float) -> str:
    return f'<line class="{name}" x1="{_at(x1)}" y1="{_at(y1)}" x2="{_at(x2)}" y2="{_at(y2)}"/>'


def _text(x: float | str, y: float, anchor: Anchor, text: str) -> str:
    return f'<text x="{_at(x)}" y="{_at(y)}" text-anchor="{anchor}">{escape_text(text)}</text>'


def _at(place: float | str) -> str:
    """Return a coordinate: a length, or a share of the width in percent, which is a text already."""
    return place if isinstance(place, str) else figure(place)
