"""A chart as blocks: its picture with the words and figures that say the same, and the code that makes it again.

Invariant: the parts of a chart may have been written by somebody else. A picture that is no plain drawing is not shown;
every text is masked and bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from reyn_jupyter.backends.charts.chart_drawing import ChartTable
from reyn_jupyter.backends.charts.chart_result import StoredChart
from reyn_jupyter.notebook.render.blocks import Block, Cell, Chart, Code, Column, Fold, Grid, Notice, Span
from reyn_jupyter.notebook.render.value_text import Look

_CODE = 4000


def chart_blocks(chart: StoredChart, look: Look, take: Callable[[int], bool]) -> tuple[Block, ...]:
    """Return a chart as blocks.

    Args:
        take: returns whether the view still has room for so many bytes; without room words and figures stand alone.
    """
    fits = bool(chart.picture) and take(len(chart.picture))
    blocks: list[Block] = [chart_block(chart, look, picture=fits)]
    if not chart.picture:
        blocks.append(Notice("The picture of this chart is gone, or no plain drawing.", "muted"))
    elif not fits:
        blocks.append(Notice("The picture is left out to keep this view small.", "muted"))
    if chart.code:
        blocks.append(Fold((Span("Altair code"),), blocks=(Code(look.text(chart.code, _CODE)),)))
    return tuple(blocks)


def chart_block(chart: StoredChart, look: Look, *, picture: bool = True) -> Chart:
    """Return the picture of a chart, with its words and figures."""
    drawn = picture and bool(chart.picture)
    return Chart(
        look.line(chart.title, 200),
        look.line(chart.words, 800),
        chart.mime if drawn else "",
        chart.picture if drawn else "",
        _grid(chart.table, look),
    )


def _grid(table: ChartTable, look: Look) -> Grid:
    last = len(table.columns) - 1
    columns = tuple(
        Column(look.line(name, 80), right=place == last) for place, name in enumerate(table.columns)
    )
    rows = tuple(tuple(Cell(look.line(text, 80)) for text in row) for row in table.rows)
    more = f"… and {table.more:,} more: result.value.df" if table.more else ""
    return Grid("", columns, rows, more)
