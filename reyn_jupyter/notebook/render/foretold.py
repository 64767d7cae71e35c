"""How far a variant can be relied on: pass^k, and how well its success was foretold.

Invariant: a score names its scale, and what did not come from a real model is marked in its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.chart_blocks import Point, Scatter
from reyn_jupyter.notebook.render.model import (
    Block,
    Cell,
    Column,
    Fold,
    Grid,
    Section,
    Span,
    missing_cell,
    number_cell,
)
from reyn_jupyter.notebook.render.study_charts import PERCENT, beside
from reyn_jupyter.notebook.render.study_tables import source_column

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.predictability import Predictability
    from reyn_jupyter.evaluation.statistics.rates import Mean
    from reyn_jupyter.notebook.render.untrusted import Look

_CHARTS = 2  # the two that the sentence of a report compares


def predictability(found: Sequence[Predictability], look: Look) -> list[Block]:
    """The section of a report; nothing where no scenario was repeated and nothing was foretold."""
    if all(each.again is None and each.score is None for each in found):
        return []
    marked, sources = source_column(found)
    columns = (
        Column("variant", header=True), *marked, Column("passes again"), Column("Brier, 0 to 2", right=True),
        Column("mean form", right=True), Column("skill", right=True), Column("forecasts", right=True),
    )  # fmt: skip
    rows = tuple((Cell(look.line(each.variant, 60)), *sources(each.source), *_cells(each)) for each in found)
    note = (
        "Passes again: all of k trials of a scenario pass (pass^k). Brier: of the forecasts that were made before the "
        "run, 0 is best; skill is against always saying what was seen, and below 0 is worse than that."
    )
    return [Section("How surely it passes again", (Grid("", columns, rows, note), *_foretold(found, look)))]


def _foretold(found: Sequence[Predictability], look: Look) -> list[Block]:
    """What came true of each probability: as charts of those that the report is about, in figures of all."""
    scored = [each for each in found if each.bins]
    if not scored:
        return []
    marked, sources = source_column(scored)
    edges = sorted({(each.lower, each.upper) for one in scored for each in one.bins})
    columns = (
        Column("came true of what was foretold at", header=True), *marked,
        *(Column(f"{100 * low:.0f} to {100 * high:.0f} %", right=True) for low, high in edges),
    )  # fmt: skip
    rows = []
    for one in scored:
        there = {(each.lower, each.upper): each for each in one.bins}
        cells = (there.get(edge) for edge in edges)
        rows.append((
            Cell(look.line(one.variant, 60)), *sources(one.source),
            *(number_cell(f"{100 * each.observed:.0f} % of {each.count:,}", each.observed) if each else missing_cell()
              for each in cells),
        ))  # fmt: skip
    charts = tuple(_bins(each, look) for each in scored[:_CHARTS])
    aside = f"the first {_CHARTS} variants drawn, all in figures" if len(scored) > _CHARTS else ""
    inner: tuple[Block, ...] = (*charts, Grid("", columns, tuple(rows)))
    return [Fold((Span("What was foretold, and what came true"),), (), aside, inner)]


def _cells(found: Predictability) -> tuple[Cell, ...]:
    score = found.score
    again = missing_cell("no repeats")
    if found.again is not None:
        again = number_cell(_again(found.again, found.k), found.again.estimate)
    if score is None:
        return (again, *(missing_cell() for _ in range(3)), missing_cell("none"))
    skill = Cell("not defined", missing=True)
    if score.skill is not None:
        skill = number_cell(f"{score.skill:+.2f}".replace("-", "−"), score.skill)
    figures = number_cell(f"{score.sum:.3f}", score.sum), number_cell(f"{score.mean:.3f}", score.mean)
    return again, *figures, skill, number_cell(f"{score.events:,}", score.events)


def _again(found: Mean, k: int) -> str:
    text = f"{100 * found.estimate:.0f} %"
    if found.low is not None and found.high is not None:
        text += f" ({100 * found.low:.0f} to {100 * found.high:.0f})"
    return f"{text}, {k} of {k}"


def _bins(found: Predictability, look: Look) -> Scatter:
    """What was foretold against what came true."""
    points = tuple(
        Point(
            f"{100 * each.forecast:.0f} % foretold",
            beside(f"{100 * each.observed:.0f} % of {each.count:,}", found.source),
            each.forecast,
            each.observed,
            each.low,
            each.high,
        )
        for each in found.bins
    )
    caption = beside(look.line(found.variant, 60), found.source)
    axis = (0.0, 1.0)
    return Scatter(caption, points, "foretold", "came true", axis, axis, PERCENT, PERCENT, figures=False)
