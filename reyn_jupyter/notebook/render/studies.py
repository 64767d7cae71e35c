"""What a study found, as people read it: the sentence, the rates, the differences, how far to trust them, why.

Invariant: a figure that did not come from a real model is marked in the row that shows it; every chart's figures stand
beside it in words; what is missing or does not apply is counted where the rate stands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reyn_jupyter.evaluation.report import Report, said
from reyn_jupyter.notebook.render import figures
from reyn_jupyter.notebook.render.failed_trials import failures
from reyn_jupyter.notebook.render.foretold import predictability
from reyn_jupyter.notebook.render.model import (
    Badge,
    Block,
    Bullets,
    Cell,
    Column,
    Facts,
    Fold,
    Grid,
    Interval,
    Intervals,
    Message,
    Paragraph,
    Point,
    Scatter,
    Section,
    Span,
    View,
)
from reyn_jupyter.notebook.render.study_charts import PERCENT, beside, differences, measured, percent, rates

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.claims import ClaimFinding
    from reyn_jupyter.evaluation.report import Figure
    from reyn_jupyter.notebook.render.untrusted import Look


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
    blocks += [Message(look.text(warning, 500), "warn") for warning in report.warnings[:1]]
    blocks += rates(report, look)
    blocks += differences(report.comparisons, look)
    blocks.append(_matrix(report, look))
    blocks += _families(report, look)
    blocks += [_claims(report.claims, look)] if report.claims else []
    blocks += _costs(report, look)
    blocks += predictability(report.predictability, look)
    if report.warnings[1:]:
        items = tuple((Paragraph((Span(look.text(each, 500)),)),) for each in report.warnings[1:])
        blocks.append(Section("How far to trust it", (Bullets(items),)))
    blocks += failures(report.failures, look)
    blocks.append(_provenance(report, look))
    return View("report", "Report", source_badges(report), tuple(facts), tuple(blocks), ".df")


def source_badges(report: Report) -> tuple[Badge, ...]:
    """A badge for every source that is not a real model."""
    sources = {report.evidence.sources[name] for name in report.evidence.tried}
    return tuple(Badge(source, "warn") for source in sorted(sources - {"real"})) or (
        Badge("real model", "good"),
    )


def _matrix(report: Report, look: Look) -> Section:
    """Variant × check."""
    checks = [figure.check for figure in next(iter(report.figures.values())).values()]
    columns = (
        Column("variant", header=True),
        Column("model"),
        *(Column(check.title, right=True) for check in checks),
    )
    rows = []
    for variant, found in report.figures.items():
        source = report.evidence.sources[variant]
        model = look.line(report.evidence.variants[variant].model, 60)
        cells = [Cell(look.line(variant, 60)), Cell(model if source == "real" else f"{model} ({source})")]
        rows.append((*cells, *(_cell(found[check.name]) for check in checks)))
    note = "n/a: trials that a check does not apply to, out of all."
    return Section("Every check", (Grid("", columns, tuple(rows), note),))


def _cell(figure: Figure) -> Cell:
    text = said(figure)
    if figure.not_applicable and figure.found is not None:
        text += f" · n/a {figure.not_applicable}"
    return Cell(text, "muted" if figure.found is None else "plain")


def _families(report: Report, look: Look) -> list[Block]:
    if len(report.families) < 2:
        return []
    rows = tuple(
        Interval(
            f"{look.line(family, 40)} · {look.line(variant, 60)}",
            percent(rate),
            rate.estimate,
            rate.low,
            rate.high,
            beside(f"{rate.trials:,} trials", report.evidence.sources[variant]),
        )
        for family, rates in report.families.items()
        for variant, rate in rates.items()
    )
    return [
        Fold(
            (Span("By family"),),
            (),
            "for exploration, not corrected",
            (Intervals("", rows, (0.0, 1.0), PERCENT, bars=True),),
        )
    ]


def _claims(claims: Sequence[ClaimFinding], look: Look) -> Section:
    columns = (Column("claim", header=True, wide=True), Column("published"),
               Column("what its sample supports", wide=True),
               Column("found here"), Column("does it fit?", wide=True))  # fmt: skip
    tried = tuple(_claim_row(each, look) for each in claims if each.found is not None)
    others = tuple(_claim_row(each, look)[:3] for each in claims if each.found is None)
    blocks: list[Block] = [Grid("", columns, tried)] if tried else []
    if others:
        title = f"{figures.count(len(others), 'published claim')} that nothing here was tried for"
        blocks.append(Fold((Span(title),), blocks=(Grid("", columns[:3], others),)))
    return Section("What was claimed, and what was found", tuple(blocks))


def _claim_row(found: ClaimFinding, look: Look) -> tuple[Cell, ...]:
    claim = found.claim
    if claim.passed is not None:
        published = f"{claim.passed}/{claim.trials}"
    elif claim.low is not None and claim.high is not None:
        published = f"{100 * claim.low:.0f} to {100 * claim.high:.0f} %"
    else:
        published = "no figure"
    here, word, tone = "", "", "muted"
    if found.found is not None:
        here = measured(found.found)
        here += "" if found.source == "real" else f" ({found.source})"
        word, tone = {True: ("fits", "good"), False: ("does not fit", "bad"), None: ("", "muted")}[
            found.agrees
        ]
        if found.comparison is not None:
            word = f"{word}; {look.text(found.comparison.sentence, 240)}".removeprefix("; ")
    return (
        Cell(look.text(claim.sentence, 200)), Cell(published), Cell(found.support), Cell(here), Cell(word, tone),  # type: ignore[arg-type]
    )  # fmt: skip


def _costs(report: Report, look: Look) -> list[Block]:
    """Effort beside compliance."""
    evidence = report.evidence
    rows, points = [], []
    for variant in evidence.tried:
        trials = evidence.by_variant[variant]
        tokens = sum(t.prompt_tokens + t.completion_tokens for t in trials) / len(trials)
        known = [t.cost for t in trials if t.cost is not None]
        found = report.figures[variant][evidence.primary]
        source = evidence.sources[variant]
        rows.append((
            Cell(beside(look.line(variant, 60), source)), Cell(said(found)), Cell(f"{tokens:,.0f}"),
            Cell(figures.money(sum(known) / len(known)) if known else "not known"),
            Cell(f"{sum(t.model_calls for t in trials) / len(trials):.1f}"),
            Cell(figures.seconds(sum(t.seconds for t in trials) / len(trials))),
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
    names = (
        "variant",
        report.figures[evidence.tried[0]][evidence.primary].check.title,
        "tokens a trial",
        "cost a trial",
        "model calls",
        "time",
    )
    columns = tuple(Column(name, header=place == 0, right=place > 0) for place, name in enumerate(names))
    blocks: list[Block] = []
    if len(points) > 1:
        most = _rounded_up(max(point.x for point in points))
        ticks = tuple((share * most, f"{share * most:,.0f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
        blocks.append(
            Scatter("", tuple(points), "tokens a trial", names[1], (0.0, most), (0.0, 1.0), ticks, PERCENT)
        )
    return [Section("Cost against compliance", (*blocks, Grid("", columns, tuple(rows))))]


def _rounded_up(value: float) -> float:
    """The next value after a positive one that reads well in quarters.

    >>> _rounded_up(7409.0), _rounded_up(900.0)
    (8000.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(max(value, 1.0)))
    return next(step * power for step in (1.2, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0) if step * power > value)


def _provenance(report: Report, look: Look) -> Fold:
    evidence = report.evidence
    pairs = [(name, look.line(value if isinstance(value, str) else json.dumps(value, default=str), 300))
             for name, value in evidence.provenance.items() if name != "notes"]  # fmt: skip
    for name in evidence.tried:
        trials = evidence.by_variant[name]
        answered = ", ".join(dict.fromkeys(trial.model for trial in trials if trial.model)) or "unknown"
        marks = ", ".join(evidence.fingerprints(name)[:4]) or "none given"
        said = f"{_settings(evidence.variants[name])}; answered by {answered}; fingerprint: {marks}"
        pairs.append((look.line(name, 60), look.line(said, 400)))
    return Fold((Span("Provenance"),), (), "models, settings, versions, hashes", (Facts(tuple(pairs)),))


def _settings(variant: Any) -> str:
    return (
        ", ".join(
            f"{name}={value}"
            for name, value in variant.model_dump(exclude={"name"}, exclude_defaults=True).items()
        )
        or "defaults"
    )
