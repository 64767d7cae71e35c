"""One comparison, and a recommendation, as cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Column,
    Commands,
    Facts,
    Grid,
    Interval,
    Intervals,
    Notice,
    Paragraph,
    Section,
    Span,
    Tone,
    View,
    number_cell,
)
from reyn_jupyter.notebook.render.study.rate_charts import (
    PERCENT,
    beside,
    differences,
    legend,
    measured,
    percent,
    points,
    tone_of,
)
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.results.comparison import Comparison
    from reyn_jupyter.evaluation.results.recommend import Recommendation
    from reyn_jupyter.notebook.render.value_text import Look


def comparison_view(found: Comparison, look: Look) -> View:
    """Return the card of one comparison: sentence, interval plot, table."""
    difference = found.difference
    facts = [
        f"{count(difference.pairs, 'pair')} in {count(difference.scenarios, 'scenario')}",
        "e-value" if found.stop else difference.test,
    ]
    blocks: list[Block] = [Paragraph((Span(look.text(found.sentence, 600), ("strong",)),))]
    blocks += differences((found,), look)
    blocks.append(_numbers(found, look) if found.check.numeric else _counts(found, look))
    notes = [*found.warnings]
    for name in (found.a, found.b):
        if found.missing[name]:
            lacking = count(found.missing[name], "trial is", "trials are")
            notes.append(f"{name}: {lacking} missing (errors and timeouts).")
        if found.not_applicable[name]:
            untold = count(found.not_applicable[name], "trial")
            notes.append(f"{name}: the check does not apply to {untold}.")
    if found.bounds is not None:
        low, high = found.bounds
        notes.append(
            f"Whatever the missing trials would have shown, the difference is {points(low)} to {points(high)} points."
        )
    blocks += [Notice(look.text(note, 500), "warn") for note in notes]
    if found.changed:
        pairs = tuple(
            (name, f"{look.line(a, 60)} → {look.line(b, 60)}") for name, (a, b) in found.changed.items()
        )
        blocks.append(Section("What differs between them", (Facts(pairs),)))
    badges = tuple(Badge(source, "warn") for source in dict.fromkeys(found.sources) if source != "real")
    title = f"{look.line(found.b, 80)} against {look.line(found.a, 80)}"
    return View("comparison", title, badges, (look.line(found.check.title, 80), *facts), tuple(blocks), ".df")


def _counts(found: Comparison, look: Look) -> Grid:
    """Pairs of trials by who passed."""
    difference = found.difference
    rows = (("passed in both", difference.both), (f"only {look.line(found.b, 60)}", difference.b_only),
            (f"only {look.line(found.a, 60)}", difference.a_only), ("failed in both", difference.neither))  # fmt: skip
    columns = (Column("pairs of trials", header=True), Column("count", right=True))
    return Grid(
        "", columns, tuple((Cell(name), number_cell(f"{count or 0:,}", count or 0)) for name, count in rows)
    )


def _numbers(found: Comparison, look: Look) -> Grid:
    """Return the mean of each variant over the pairs."""
    sides = zip((found.a, found.b), (found.difference.a, found.difference.b), found.sources, strict=True)
    rows = tuple(
        (Cell(look.line(name, 60)), number_cell(beside(measured(each), source), each.estimate))
        for name, each, source in sides
    )
    return Grid("", (Column("over the pairs", header=True), Column(found.check.title, right=True)), rows)


def recommendation_view(found: Recommendation, look: Look) -> View:
    """Return the card of a recommendation: the sentence, the lines for reyn.yaml, the evidence."""
    blocks: list[Block] = [Paragraph((Span(look.text(found.sentence, 700), ("strong",)),))]
    rows = tuple(
        Interval(
            look.line(each.variant.name, 60),
            percent(each.rate),
            each.rate.estimate,
            each.rate.low,
            each.rate.high,
            beside(f"≈ {each.tokens:,.0f} tokens per trial", found.source),
            tone="good" if each is found.chosen else tone_of(found.source),
        )
        for each in found.candidates
    )
    said = legend(found.chosen.rate.level)
    blocks.append(Intervals(found.check, rows, (0.0, 1.0), PERCENT, bars=True, legend=said))
    blocks += differences(found.evidence, look)
    blocks += [Notice(look.text(warning, 500), "warn") for warning in found.warnings]
    blocks.append(Code(found.yaml, "for reyn.yaml"))
    blocks.append(Paragraph((Span(look.text(found.measured_with, 300), ("muted",)),)))
    if found.is_writable:
        blocks.append(Commands(("study.recommend().write()",), "To write it"))
    tones: dict[str, Tone] = {"clear": "good", "leaning": "warn", "too little evidence": "bad"}
    badges = [Badge(found.confidence, tones[found.confidence])]
    badges += [Badge(found.source, "warn")] if found.source != "real" else []
    return View(
        "recommendation",
        f"For {look.line(found.model, 80)}",
        tuple(badges),
        (f"tier {found.tier}",),
        tuple(blocks),
        ".settings",
    )
