"""Charts in a fixed-width face.

Invariant: a track is 40 cells wide whatever its values, and its words follow it.
"""

from __future__ import annotations

from reyn_jupyter.notebook.render.chart_blocks import Interval, Intervals
from reyn_jupyter.notebook.render.charts import Axis, beyond, share, words
from reyn_jupyter.notebook.render.columns import LINE, clip_width, padded, text_width
from reyn_jupyter.support.sanitize import visible

TRACK = 40
_LABEL = 28


def intervals_lines(chart: Intervals) -> list[str]:
    """A chart as lines: title, a line a row, the axis with its ticks, what the marks mean."""
    labels = [clip_width(visible(row.label), _LABEL) for row in chart.rows]
    width = max(map(text_width, labels), default=0)
    lines = [visible(chart.caption)] if chart.caption else []
    if not chart.rows:
        lines.append("nothing to draw")
    for label, row in zip(labels, chart.rows, strict=True):
        said = words(row, chart.axis) + (f"; {row.detail}" if row.detail else "")
        line = f"{padded(label, width)}  {_track(row, chart)}  {visible(said)}"
        lines.append(clip_width(line, LINE + 40))
    if chart.ticks and chart.rows:
        lines += [f"{' ' * width}  {line}" for line in _axis(chart)]
    lines += [visible(text) for text in (chart.legend, chart.more) if text]
    return lines


def _cell(value: float, axis: Axis) -> int:
    return int(share(value, axis) * (TRACK - 1) + 0.5)


def _track(row: Interval, chart: Intervals) -> str:
    cells = [" "] * TRACK
    at = None if row.estimate is None else _cell(row.estimate, chart.axis)
    if chart.bars and at is not None:
        cells[:at] = "░" * at
    if chart.zero is not None:
        cells[_cell(chart.zero, chart.axis)] = "┊"
    if row.low is not None and row.high is not None:
        low, high = _cell(row.low, chart.axis), _cell(row.high, chart.axis)
        for place in range(low, high + 1):
            cells[place] = "─"
        cells[low], cells[high] = "├", "┤"
    if row.reference is not None:
        cells[_cell(row.reference, chart.axis)] = "○"
    if at is not None:
        cells[at] = "◉" if cells[at] == "○" else "●"
    before, after = beyond(row, chart.axis)
    if before:
        cells[0] = "◂"
    if after:
        cells[-1] = "▸"
    return "".join(cells)


def _axis(chart: Intervals) -> list[str]:
    line = ["─"] * TRACK
    texts = [" "] * TRACK
    free = 0
    for value, text in sorted(chart.ticks):
        at = _cell(value, chart.axis)
        line[at] = "┴"
        said = clip_width(visible(text), 10)
        start = min(max(at - text_width(said) // 2, 0), TRACK - text_width(said))
        if start >= free and text_width(said) == len(said):
            texts[start : start + len(said)] = said
            free = start + len(said) + 1
    return ["".join(line), "".join(texts).rstrip()]
