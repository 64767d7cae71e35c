"""Charts as inline SVG: drawings beside words that say the same.

Invariant: no number reaches an attribute but through `figure`, and all that a drawing shows stands in words beside it,
so that nothing is lost where a host takes the SVG out. A drawing of rates stretches with its column: its places along
the axis are shares, only its heights are lengths.
"""

from __future__ import annotations

from html import escape

from reyn_jupyter.notebook.render.chart_blocks import Interval, Intervals, Scatter
from reyn_jupyter.notebook.render.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Anchor,
    Axis,
    beyond,
    figure,
    placed,
    scatter_x,
    scatter_y,
    share,
    tick_anchor,
    words,
)
from reyn_jupyter.notebook.render.html_parts import escaped
from reyn_jupyter.support.sanitize import visible


def intervals_opening(chart: Intervals) -> str:
    legend = f'<br><span class="r-quiet">{escaped(chart.legend)}</span>' if chart.legend else ""
    caption = f"<caption>{escaped(chart.caption)}{legend}</caption>" if chart.caption or legend else ""
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
    detail = f'<br><span class="r-quiet">{escaped(row.detail)}</span>' if row.detail else ""
    said = words(row, chart.axis)
    label = escape(visible(f"{row.label}: {said}"))
    return (
        f'<tr><th scope="row">{escaped(row.label)}{detail}</th><td class="r-plot">'
        f'<svg class="r-track r-{row.tone}" role="img" aria-label="{label}">{_track(row, chart)}</svg></td>'
        f"<td>{escaped(said)}</td></tr>"
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
    """The drawing of a scatter chart; its figures are for the caller to put below."""
    caption = f'<p class="r-label"><strong>{escaped(chart.caption)}</strong></p>' if chart.caption else ""
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
    for point, at in zip(chart.points, placed(chart), strict=True):
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
    return f'<text x="{_at(x)}" y="{_at(y)}" text-anchor="{anchor}">{escaped(text)}</text>'


def _at(place: float | str) -> str:
    """A coordinate: a length, or a share of the width in percent, which is a text already."""
    return place if isinstance(place, str) else figure(place)
