"""The first screen of a report: cost against success, what to use, and the statistics one press deeper.

Invariants: no statistics' term stands outside the fold, and each that stands in it has its sentence there; what is
drawn stands beside it in one table of words and figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.evaluation.results.decision import more_scenarios
from reyn_jupyter.evaluation.results.report import format_figure
from reyn_jupyter.evaluation.results.settings_file import RecommendationError
from reyn_jupyter.evaluation.statistics.glossary import GLOSSARY, terms_in
from reyn_jupyter.evaluation.statistics.rates import Rate
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Commands,
    Facts,
    Fold,
    Grid,
    Paragraph,
    Point,
    Scatter,
    Section,
    Span,
    missing_cell,
    number_cell,
)
from reyn_jupyter.notebook.render.study.marks import source_column
from reyn_jupyter.notebook.render.study.rate_charts import PERCENT, beside, differences

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.results.report import Report
    from reyn_jupyter.notebook.render.value_text import Look

SETTLING = (
    "How many more scenarios would settle it takes the difference and the share of discordant pairs that were seen for "
    "the true ones, which they need not be: the exact power of McNemar's test (Duffy, 1984), 80 % at a level of 5 %. "
    "To add scenarios because the first look was not clear, and to test all of them again, is a second look, and errs "
    "in up to 8 % of studies in place of 5 % (Armitage, McPherson and Rowe, 1969): run them as a study of their own, "
    'or with stop="evalue".'
)


def advice_section(report: Report, look: Look) -> Section:
    """Return what to use, and why it is not the variant that wins the headline; or why nothing is recommended."""
    blocks: list[Block] = [Paragraph((Span(look.text(report.advice, 1_200)),))]
    if not isinstance(report.recommendation, RecommendationError):
        blocks.append(Commands(("study.recommend()",), "Its evidence, and the settings"))
    return Section("What to use", tuple(blocks))


def bullets(texts: Sequence[str], look: Look) -> Bullets:
    return Bullets(tuple((Paragraph((Span(look.text(each, 500)),)),) for each in texts))


def statistics_fold(report: Report, reliability: Sequence[Block], look: Look) -> list[Block]:
    """Return the findings in the terms of statistics, with the sentence of each term; nothing where there are none.

    Args:
        report: the report.
        reliability: what is told of repeats and forecasts.
        look: how values are shown.
    """
    decision, primary = report.decision, report.evidence.primary
    blocks: list[Block] = []
    told = [report.sentence, report.others]
    leading = () if decision is None or decision.check.name == primary else decision.comparisons
    if leading:
        blocks += _paragraphs([leading[0].sentence], look)
        blocks += differences(leading, look)
    blocks += _paragraphs(told, look)
    blocks += differences(report.comparisons, look)
    compared = () if decision is None else decision.comparisons
    if any(more_scenarios(each, len(compared)) is not None for each in compared):
        blocks += _paragraphs([SETTLING], look)
    said = [
        f"{each.b} against {each.a} on {each.check.title}: {warning}"
        for each in leading
        for warning in each.warnings
    ]
    said += [warning for warning in report.warnings if terms_in(warning)]
    blocks += [bullets(said, look)] if said else []
    blocks += reliability
    used = terms_in("\n".join(_texts(tuple(blocks))))
    if used:
        blocks.append(Section("The words", (Facts(tuple((term, GLOSSARY[term]) for term in used)),)))
    title = (Span("The statistics"),)
    return [
        Fold(title, (), "tests, intervals, corrections, and what the words mean", tuple(blocks), printed=True)
    ]


def _paragraphs(texts: Sequence[str], look: Look) -> list[Block]:
    return [Paragraph((Span(look.text(text, 600)),)) for text in texts if text]


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in blocks."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _texts(getattr(value, each.name))


def costs_section(report: Report, look: Look) -> Section:
    """Return what each variant costs beside how often it does what leads the report: drawn, and as a table."""
    evidence, check = report.evidence, report.leading_check
    marked, sources = source_column(report.figures[name][check] for name in evidence.tried)
    rows = []
    for variant in evidence.tried:
        effort, found = report.efforts[variant], report.figures[variant][check]
        outcome = missing_cell(format_figure(found))
        if found.found is not None:
            outcome = number_cell(format_figure(found), found.found.estimate)
        rows.append((
            Cell(look.line(variant, 60)), *sources(evidence.sources[variant]), outcome,
            number_cell(f"{effort.tokens:,.0f}", effort.tokens),
            _money_cell(effort.cost, "not known"),
            _money_cell(found.cost_per_success, "not known" if effort.cost is None else "–"),
            number_cell(f"{effort.model_calls:.1f}", effort.model_calls),
            number_cell(formatting.seconds(effort.seconds), effort.seconds),
        ))  # fmt: skip
    title = report.figures[evidence.tried[0]][check].check.title
    names = (title, "tokens per trial", "cost per trial", "cost per success", "model calls", "time")
    columns = (Column("variant", header=True), *marked, *(Column(name, right=True) for name in names))
    return Section("Cost against success", (*_scatter(report, title, look), Grid("", columns, tuple(rows))))


def _scatter(report: Report, title: str, look: Look) -> list[Block]:
    """Return the chart of cost and rate; nothing where fewer than two variants have a rate."""
    evidence = report.evidence
    figures = {name: report.figures[name][report.leading_check] for name in evidence.tried}
    rates = {name: each.found for name, each in figures.items() if isinstance(each.found, Rate)}
    if len(rates) < 2:
        return []
    prices = {name: report.efforts[name].cost for name in rates}
    costs = {name: price for name, price in prices.items() if price is not None}
    priced = len(costs) == len(rates) and max(costs.values()) > 0
    if not priced:  # what no provider charges for costs tokens, and so time
        costs = {name: report.efforts[name].tokens for name in rates}

    def words(cost: float) -> str:
        return formatting.money(cost) if priced else f"{cost:,.0f}"

    unit = "" if priced else " tokens"
    points = tuple(
        Point(
            look.line(name, 40),
            beside(f"{format_figure(figures[name])} at {words(costs[name])}{unit}", evidence.sources[name]),
            costs[name], found.estimate, found.low, found.high,
        )
        for name, found in rates.items()
    )  # fmt: skip
    most = _rounded_up(max(costs.values()))
    ticks = tuple((share * most, words(share * most)) for share in (0.0, 0.25, 0.5, 0.75, 1.0))
    cost = "cost per trial" if priced else "tokens per trial"
    level = 100 * next(iter(rates.values())).level
    caption = f"{title} against {cost}; lines: {level:.0f} % intervals"
    axes = (0.0, most), (0.0, 1.0)
    return [Scatter(caption, points, cost, title, *axes, ticks, PERCENT, figures=False)]


def _money_cell(dollars: float | None, absent: str) -> Cell:
    """Return a cell of US dollars, or what stands where there is no figure."""
    return Cell(absent, missing=True) if dollars is None else number_cell(formatting.money(dollars), dollars)


def _rounded_up(value: float) -> float:
    """Return the next value after one that is not negative that reads well in quarters; 1.2 after 0.

    >>> _rounded_up(7409.0), _rounded_up(900.0)
    (8000.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(value)) if value > 1e-9 else 1.0
    return next(step * power for step in (1.2, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0) if step * power > value)
