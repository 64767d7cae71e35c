"""The report of a study as blocks: what to decide, rates, statistics, claims, caveats, failures, provenance.

Invariants: a figure that did not come from a real model is marked in the row that shows it; every chart's figures stand
beside it in words; what is missing or does not apply is counted where the rate stands; a claim stands with what its own
sample can carry; a score names its scale; every variant is named with the model that answered, and a hash by its first
digits, which tell it from others, while the whole one stands in `report.evidence.provenance`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reyn_jupyter.evaluation.results.report import Report, format_figure
from reyn_jupyter.evaluation.statistics.glossary import terms_in
from reyn_jupyter.evaluation.statistics.rates import Rate
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Column,
    Facts,
    Fold,
    Grid,
    Notice,
    Paragraph,
    Point,
    Scatter,
    Section,
    Span,
    Tone,
    View,
    missing_cell,
    number_cell,
)
from reyn_jupyter.notebook.render.study.decision_view import (
    advice_section,
    bullets,
    costs_section,
    statistics_fold,
)
from reyn_jupyter.notebook.render.study.failures import did_instead, failures, harness_help
from reyn_jupyter.notebook.render.study.marks import source_column
from reyn_jupyter.notebook.render.study.rate_charts import (
    PERCENT,
    beside,
    gap,
    measured,
    percent,
    rates,
)
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.results.findings import ClaimFinding
    from reyn_jupyter.evaluation.results.reliability import Predictability
    from reyn_jupyter.evaluation.results.report import Figure
    from reyn_jupyter.evaluation.results.trial_set import TrialSet
    from reyn_jupyter.evaluation.statistics.rates import Mean
    from reyn_jupyter.notebook.render.value_text import Look


_FIT: dict[bool | None, tuple[str, Tone]] = {
    True: ("fits", "good"),
    False: ("does not fit", "bad"),
    None: ("", "muted"),
}


def claims_section(claims: Sequence[ClaimFinding], look: Look) -> Section:
    """Return the claims that something was tried for as a table; the others are folded away."""
    tried = [each for each in claims if each.found is not None]
    others = [each for each in claims if each.found is None]
    told = (
        Column("claim", header=True, wide=True), Column("published"), Column("its sample supports", wide=True)
    )  # fmt: skip
    blocks: list[Block] = []
    if tried:
        marked, sources = source_column(tried)
        columns = (*told, *marked, Column("found here", wide=True), Column("does it fit?"))
        rows = tuple((*_told(each, look), *sources(each.source), *_found(each, look)) for each in tried)
        blocks.append(Grid("", columns, rows))
    if others:
        title = f"{count(len(others), 'published claim')} that nothing here was tried for"
        inner = Grid("", told, tuple(_told(each, look) for each in others))
        blocks.append(Fold((Span(title),), blocks=(inner,)))
    return Section("What was claimed, and what was found", tuple(blocks))


def _told(found: ClaimFinding, look: Look) -> tuple[Cell, ...]:
    claim = found.claim
    published = "no figure"
    if claim.passed is not None:
        published = f"{claim.passed}/{claim.trials}"
    elif claim.low is not None and claim.high is not None:
        low, high = f"{100 * claim.low:.0f}", f"{100 * claim.high:.0f}"
        published = f"about {low} %" if low == high else f"{low} to {high} %"
    return Cell(look.text(claim.sentence, 200)), Cell(published), Cell(found.support)


def _found(found: ClaimFinding, look: Look) -> tuple[Cell, ...]:
    """Return the figure, the difference from the variant that the claim compares with, and whether the claim can be
    true."""
    assert found.found is not None
    text, compared = measured(found.found), found.comparison
    if compared is not None:
        shares = not compared.check.numeric
        more = gap(compared.difference, shares).replace(" (", " points (" if shares else " (")
        text += f"; {more} from {look.line(compared.a, 60)}" + ("" if compared.clear else ", not told apart")
    word, tone = _FIT[found.agrees]
    word = "too few to tell" if found.agrees is None and found.too_few else word
    return Cell(text), Cell(word, tone, "badge" if word else "text")


_HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")


def provenance(evidence: TrialSet, look: Look) -> Fold:
    """Return the last part of a report."""
    known = evidence.provenance.items()
    pairs = [(look.line(name, 60), look.line(_said(value), 800)) for name, value in known if name != "notes"]
    for name in evidence.tried:
        trials = evidence.by_variant[name]
        answered = ", ".join(dict.fromkeys(trial.model for trial in trials if trial.model)) or "unknown"
        marks = ", ".join(evidence.fingerprints(name)[:4]) or "none given"
        text = f"{_settings(evidence.variants[name])}; answered by {answered}; fingerprint: {marks}"
        pairs.append((look.line(name, 60), look.line(text, 400)))
    return Fold((Span("Provenance"),), (), "models, settings, versions, hashes", (Facts(tuple(pairs)),))


def _settings(variant: Any) -> str:
    changed = variant.model_dump(exclude={"name"}, exclude_defaults=True).items()
    return ", ".join(f"{name}={value}" for name, value in changed) or "defaults"


def _said(value: object) -> str:
    """Return a value in words: what is not there is "none", and what is the same for all is said once.

    >>> _said({"a": "simulated", "b": "simulated", "c": "simulated"}), _said({"usd": None})
    ('simulated', 'none')
    """
    if isinstance(value, Mapping):
        inner = {str(name): _said(each) for name, each in value.items() if each not in (None, "", (), [], {})}
        if len(inner) > 1 and len(set(inner.values())) == 1:
            return next(iter(inner.values()))
        return ", ".join(f"{name} {text}" for name, text in inner.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value)) or "none"
    return "none" if value is None else _HASH.sub(r"\1", str(value))


_CHARTS = 2  # the two that the sentence of a report compares


def predictability(found: Sequence[Predictability], look: Look) -> list[Block]:
    """Return the section of a report; nothing where no scenario was repeated and nothing was foretold."""
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
    """Return what came true of each probability: as charts of those that the report is about, in figures of all."""
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
    """Return what was foretold against what came true."""
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


# The figures alone are in `.df`; the failures and the provenance only here.
KNOB = 'reyn.export("report.html", study.report())'


def report_view(report: Report, look: Look) -> View:
    """Return the card of a report."""
    evidence = report.evidence
    trials = sum(len(found) for found in evidence.by_variant.values())
    facts = [
        count(trials, "trial"),
        count(len({t.scenario for found in evidence.by_variant.values() for t in found}), "scenario"),
        count(len(evidence.tried), "variant"),
    ]
    plain = [warning for warning in report.warnings if not terms_in(warning)]
    blocks: list[Block] = [Paragraph((Span(look.text(report.finding, 800), ("strong",)),))]
    blocks += [Notice(look.text(warning, 500), "warn") for warning in plain[:1]]
    blocks += [costs_section(report, look), advice_section(report, look)]
    blocks += did_instead(report.did_instead, look)
    blocks += harness_help(report.helped, look)
    blocks += rates(report, look)
    blocks += statistics_fold(report, predictability(report.predictability, look), look)
    blocks.append(_matrix(report, look))
    blocks += _families(report, look)
    blocks += [claims_section(report.claims, look)] if report.claims else []
    if plain[1:]:
        blocks.append(Section("How far to trust it", (bullets(plain[1:], look),)))
    blocks += failures(report.failures, _failed(report), evidence.primary, evidence.scenarios, look)
    blocks.append(provenance(report.evidence, look))
    title = f"Report on {look.line(evidence.suite, 60)}"
    return View("report", title, source_badges(report), tuple(facts), tuple(blocks), KNOB)


def _failed(report: Report) -> int:
    """Return how many trials of the variant whose failures are shown failed the primary check."""
    if not report.failures:
        return 0
    found = report.figures[report.failures[0].trial.variant][report.evidence.primary].found
    return round(found.trials - found.passed) if isinstance(found, Rate) else 0


def source_badges(report: Report) -> tuple[Badge, ...]:
    """Return a badge for every source that is not a real model."""
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
    counted = [figure for found in report.figures.values() for figure in found.values() if figure.found]
    some = any(figure.not_applicable for figure in counted)
    note = "n/a: trials that the check does not apply to." if some else ""
    return Section("Every check", (Grid("", columns, rows, note),))


def _cell(figure: Figure) -> Cell:
    text = format_figure(figure)
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
