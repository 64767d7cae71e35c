"""What a study found, as people read it: the sentence, the rates, the differences, how far to trust them, why.

Invariant: a figure that did not come from a real model is marked in the row that shows it; every chart's figures stand
beside it in words; what is missing or does not apply is counted where the rate stands.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.report import Report, said
from reyn_jupyter.evaluation.statistics.rates import Rate
from reyn_jupyter.notebook.render import figures
from reyn_jupyter.notebook.render.chart_blocks import Point, Scatter
from reyn_jupyter.notebook.render.failed_trials import failures
from reyn_jupyter.notebook.render.foretold import predictability
from reyn_jupyter.notebook.render.model import (
    Badge,
    Block,
    Bullets,
    Cell,
    Column,
    Fold,
    Grid,
    Message,
    Paragraph,
    Section,
    Span,
    View,
    missing_cell,
    number_cell,
)
from reyn_jupyter.notebook.render.study_charts import PERCENT, beside, differences, percent, rates
from reyn_jupyter.notebook.render.study_claims import claims_section
from reyn_jupyter.notebook.render.study_ground import provenance
from reyn_jupyter.notebook.render.study_tables import source_column

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.report import Figure
    from reyn_jupyter.notebook.render.untrusted import Look


# The figures alone are in `.df`; the failures and the provenance only here.
KNOB = 'reyn.export("report.html", study.report())'


def report_view(report: Report, look: Look) -> View:
    """The card of a report."""
    evidence = report.evidence
    trials = sum(len(found) for found in evidence.by_variant.values())
    facts = [
        look.line(evidence.suite, 60),
        figures.count(trials, "trial"),
        figures.count(len({t.scenario for found in evidence.by_variant.values() for t in found}), "scenario"),
        figures.count(len(evidence.tried), "variant"),
    ]
    blocks: list[Block] = [Paragraph((Span(look.text(report.sentence, 600), ("strong",)),))]
    blocks += [Paragraph((Span(look.text(report.others, 600)),))] if report.others else []
    blocks += [Message(look.text(warning, 500), "warn") for warning in report.warnings[:1]]
    blocks += rates(report, look)
    blocks += differences(report.comparisons, look)
    blocks.append(_matrix(report, look))
    blocks += _families(report, look)
    blocks += [claims_section(report.claims, look)] if report.claims else []
    blocks += _costs(report, look)
    blocks += predictability(report.predictability, look)
    if report.warnings[1:]:
        items = tuple((Paragraph((Span(look.text(each, 500)),)),) for each in report.warnings[1:])
        blocks.append(Section("How far to trust it", (Bullets(items),)))
    blocks += failures(report.failures, _failed(report), evidence.primary, evidence.scenarios, look)
    blocks.append(provenance(report.evidence, look))
    return View("report", "Report", source_badges(report), tuple(facts), tuple(blocks), KNOB)


def _failed(report: Report) -> int:
    """How many trials of the variant whose failures are shown failed the primary check."""
    if not report.failures:
        return 0
    found = report.figures[report.failures[0].trial.variant][report.evidence.primary].found
    return round(found.trials - found.passed) if isinstance(found, Rate) else 0


def source_badges(report: Report) -> tuple[Badge, ...]:
    """A badge for every source that is not a real model."""
    sources = {report.evidence.sources[name] for name in report.evidence.tried}
    return tuple(Badge(source, "warn") for source in sorted(sources - {"real"})) or (
        Badge("real model", "good"),
    )


def _matrix(report: Report, look: Look) -> Section:
    """Check × variant: few variants are compared on many checks."""
    evidence = report.evidence
    all_sources = " and ".join(dict.fromkeys(evidence.sources[name] for name in report.figures))
    marked = [] if all_sources == "real" else [Column("source")]
    columns = (
        Column("check", header=True),
        *marked,
        *(
            Column(
                look.line(name, 60),
                beside(look.line(evidence.variants[name].model, 60), evidence.sources[name]),
                right=True,
            )
            for name in report.figures
        ),
    )
    rows = tuple(
        (
            Cell(figure.check.title),
            *(Cell(all_sources, "muted") for _ in marked),
            *(_cell(found[check]) for found in report.figures.values()),
        )
        for check, figure in next(iter(report.figures.values())).items()
    )
    some = any(figure.not_applicable for found in report.figures.values() for figure in found.values())
    note = "n/a: trials that the check does not apply to." if some else ""
    return Section("Every check", (Grid("", columns, rows, note),))


def _cell(figure: Figure) -> Cell:
    text = said(figure)
    if figure.not_applicable and figure.found is not None:
        text += f" · n/a {figure.not_applicable}"
    return missing_cell(text) if figure.found is None else number_cell(text, figure.found.estimate)


def _families(report: Report, look: Look) -> list[Block]:
    if len(report.families) < 2:
        return []
    tried = [
        name for name in report.evidence.tried if any(name in rates for rates in report.families.values())
    ]
    primary = report.evidence.primary
    marked, sources = source_column(report.figures[name][primary] for name in tried)
    columns = (
        Column("variant", header=True),
        *marked,
        *(Column(look.line(family, 40), right=True) for family in report.families),
    )
    rows = []
    for name in tried:
        found = (rates.get(name) for rates in report.families.values())
        cells = (
            number_cell(f"{percent(rate)} of {rate.trials:,}", rate.estimate) if rate else missing_cell()
            for rate in found
        )
        rows.append((Cell(look.line(name, 60)), *sources(report.evidence.sources[name]), *cells))
    title = (Span(f"{report.figures[tried[0]][primary].check.title}, by family"),)
    return [Fold(title, (), "for exploration, not corrected", (Grid("", columns, tuple(rows)),))]


def _costs(report: Report, look: Look) -> list[Block]:
    """Effort beside compliance."""
    evidence = report.evidence
    marked, sources = source_column(report.figures[name][evidence.primary] for name in evidence.tried)
    rows, points = [], []
    for variant in evidence.tried:
        trials = evidence.by_variant[variant]
        tokens = sum(t.prompt_tokens + t.completion_tokens for t in trials) / len(trials)
        known = [t.cost for t in trials if t.cost is not None]
        cost = sum(known) / len(known) if known else None
        calls = sum(t.model_calls for t in trials) / len(trials)
        seconds = sum(t.seconds for t in trials) / len(trials)
        found = report.figures[variant][evidence.primary]
        source = evidence.sources[variant]
        outcome = Cell(said(found), missing=True)
        if found.found is not None:
            outcome = number_cell(said(found), found.found.estimate)
        rows.append((
            Cell(look.line(variant, 60)), *sources(source), outcome, number_cell(f"{tokens:,.0f}", tokens),
            number_cell(figures.money(cost), cost) if cost is not None else Cell("not known", missing=True),
            number_cell(f"{calls:.1f}", calls), number_cell(figures.seconds(seconds), seconds),
        ))  # fmt: skip
        if found.found is not None and not found.check.numeric:
            text = beside(f"{said(found)} at {tokens:,.0f} tokens", source)
            points.append(
                Point(
                    look.line(variant, 40),
                    text,
                    tokens,
                    found.found.estimate,
                    found.found.low,
                    found.found.high,
                )
            )
    title = report.figures[evidence.tried[0]][evidence.primary].check.title
    names = (title, "tokens a trial", "cost a trial", "model calls", "time")
    columns = (Column("variant", header=True), *marked, *(Column(name, right=True) for name in names))
    blocks: list[Block] = []
    if len(points) > 1:
        most = _rounded_up(max(point.x for point in points))
        ticks = tuple((share * most, f"{share * most:,.0f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
        blocks.append(
            Scatter(
                "",
                tuple(points),
                "tokens a trial",
                title,
                (0.0, most),
                (0.0, 1.0),
                ticks,
                PERCENT,
                figures=False,
            )
        )
    return [Section("Cost against compliance", (*blocks, Grid("", columns, tuple(rows))))]


def _rounded_up(value: float) -> float:
    """The next value after a positive one that reads well in quarters.

    >>> _rounded_up(7409.0), _rounded_up(900.0)
    (8000.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(max(value, 1.0)))
    return next(step * power for step in (1.2, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0) if step * power > value)
