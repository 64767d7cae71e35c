"""A study on its way and at rest: progress, summary, plan, the table of trials, one trial.

Invariant: an estimate on the way stands with its interval, and what did not come from a real model is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Bullets,
    Cell,
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
from reyn_jupyter.notebook.render.study.rate_charts import PERCENT, beside, estimate_rows, legend, measured
from reyn_jupyter.notebook.render.study.suite_view import what_is_right
from reyn_jupyter.notebook.render.trace.card import trace_view
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.scenario import Source
    from reyn_jupyter.evaluation.results.trials import TrialTable, TrialView
    from reyn_jupyter.evaluation.run.progress import Progress, RunSummary
    from reyn_jupyter.evaluation.run.sample_size import StudyPlan
    from reyn_jupyter.evaluation.study import Study
    from reyn_jupyter.notebook.render.value_text import Look

ROWS = 50
LEVEL = 0.95  # of the intervals that are still to come
_ENDED: dict[str, tuple[str, Tone]] = {
    "complete": ("✓ complete", "good"),
    "evalue": ("✓ decided", "good"),
    "budget": ("◼ budget reached", "warn"),
    "interrupted": ("◼ interrupted", "warn"),
    "disk": ("✗ disk full", "bad"),
    "errors": ("✗ stopped by errors", "bad"),
}
_VERDICTS: dict[str, tuple[str, Tone]] = {
    "pass": ("passed", "good"),
    "fail": ("failed", "bad"),
    "na": ("n/a", "muted"),
    "number": ("", "plain"),
}


def progress_view(progress: Progress, look: Look) -> View:
    """Return how far a run is."""
    facts = [
        f"{progress.done:,} of {count(progress.total, 'trial')}",
        f"{_left(progress.seconds)} so far",
    ]
    if progress.rate:
        slow = progress.rate < 1
        facts.append(f"{60 * progress.rate:,.1f} a minute" if slow else f"{progress.rate:,.1f} a second")
    facts += [f"{_left_range(progress.eta)} left"] if progress.eta is not None else []
    facts += [formatting.money(progress.usd)] if progress.usd else []
    facts += [f"{progress.tokens:,} tokens"] if progress.tokens else []
    share = progress.done / progress.total if progress.total else 1.0
    detail = ", ".join(
        (f"{progress.running} under way", *(look.line(each, 120) for each in progress.loading))
    )
    done = Interval("done", f"{100 * share:.0f} %", share, detail=detail, tone="info")
    blocks: list[Block] = [Intervals("", (done,), (0.0, 1.0), bars=True)]
    # The rows and lines below stand there from the first update on, so that the card keeps its height.
    blocks += _estimates(
        "So far, on the check that decides", progress.estimates, progress.sources, progress.missing, look
    )
    blocks += [
        Notice(f"{look.line(provider, 80)} asked to be left alone for another {_left(wait)}.", "warn")
        for provider, wait in progress.waits.items()
        if wait >= 1
    ]
    if progress.log_e is not None:
        blocks.append(Facts((("evidence (log e-value)", f"{progress.log_e:.2f}"),)))
    blocks.append(
        Notice(
            "Interrupt the cell to stop; what is done is kept, and the next run goes on from there.", "muted"
        )
    )
    lacking = sum(progress.missing.values())
    if lacking:
        blocks.append(Notice(f"{count(lacking, 'trial')} ended in an error or a timeout so far.", "warn"))
    badges = (Badge("… running", "info"), *_source_badges(progress.sources))
    return View("study", "Study", badges, tuple(facts), tuple(blocks))


def summary_view(summary: RunSummary, look: Look) -> View:
    """Return how a run ended."""
    facts = [
        f"{summary.done:,} of {count(summary.planned, 'trial')}",
        formatting.seconds(summary.seconds),
    ]
    facts.append(formatting.money(summary.usd) if summary.usd is not None else "cost not known")
    facts += [f"{summary.tokens:,} tokens"] if summary.tokens else []
    blocks: list[Block] = [Paragraph((Span(look.text(summary.sentence, 600)),))]
    blocks += _estimates(
        find_check(summary.check).title, summary.estimates, summary.sources, summary.missing, look
    )
    blocks += [Notice(look.text(warning, 500), "warn") for warning in summary.warnings]
    lacking = sum(summary.missing.values())
    if lacking:
        said = "study.run(…, retry=True) tries them again."
        blocks.append(Notice(f"{count(lacking, 'trial')} missing.", "warn", said))
    if summary.done:
        ways = ("study.report()", f'study.trials.failed("{summary.check}")', "study.recommend()")
        opening = (f"study = reyn_jupyter.Study.open({summary.file!r})",) if summary.file else ()
        blocks.append(Commands((*(f"import reyn_jupyter; {each}" for each in opening), *ways)))
    badges = (Badge(*_ENDED[summary.ended]), *_source_badges(summary.sources))
    return View("study", "Study", badges, tuple(facts), tuple(blocks), ".estimates")


def plan_view(plan: StudyPlan, look: Look) -> View:
    """Return what a comparison needs."""
    need = plan.plan
    items = tuple((Paragraph((Span(look.text(each, 300)),)),) for each in need.assumptions)
    blocks: list[Block] = [Paragraph((Span(look.text(plan.sentence, 600), ("strong",)),))]
    if not plan.enough:
        hint = "Add scenarios, look for a larger difference (detect=…), or accept less power."
        blocks.append(
            Notice(f"The suite has {plan.available:,} of the {need.scenarios:,} scenarios.", "warn", hint)
        )
    blocks.append(Section("Assumed", (Bullets(items),)))
    facts = (count(need.pairs, "pair"), count(need.trials, "trial"))
    return View("plan", "Plan", (), facts, tuple(blocks), ".plan")


def study_view(study: Study, look: Look) -> View:
    """Return what a study holds and what to do next."""
    evidence = study.evidence
    path = study.parts.store.path
    facts = [
        count(len(evidence.scenarios), "scenario"),
        count(len(evidence.trials), "trial"),
    ]
    pairs = [("suite", look.line(evidence.suite, 80)), ("file", look.line(str(path.name), 80) if path else "in memory"),
             ("primary check", look.line(evidence.primary, 60))]  # fmt: skip
    if evidence.tried:
        pairs.append(("variants", look.line(", ".join(evidence.tried), 200)))
    blocks: list[Block] = [
        Facts(tuple(pairs)),
        *(Notice(look.text(each, 300), "warn") for each in study.moved),
    ]
    next_ = ("study.report()", "study.trials") if evidence.tried else ('study.run(reyn.Variant("base"), …)',)
    badges = _source_badges({name: evidence.sources[name] for name in evidence.tried})
    return View("study", "Study", badges, tuple(facts), (*blocks, Commands(next_)), ".trials.df")


def trials_view(trials: TrialTable, look: Look) -> View:
    """Return the first rows of a table of trials."""
    names = ("#", "variant", "scenario", "repeat", "outcome", "source", "calls", "answer")
    columns = tuple(
        Column(name, header=name == "#", right=name in ("#", "repeat"), wide=name in ("calls", "answer"))
        for name in names
    )
    rows = []
    for place, view in enumerate(trials[:ROWS]):
        trial = view.trial
        calls = ", ".join(fact.name or fact.wrapper for fact in trial.calls[:6]) or "none"
        tone: Tone = "plain" if trial.outcome == "ok" else "warn"
        rows.append((
            number_cell(str(place), place), Cell(look.line(trial.variant, 60)),
            Cell(look.line(trial.scenario, 80), face="code"), number_cell(str(trial.repeat), trial.repeat),
            Cell(trial.outcome, tone, "badge"), Cell(trial.source, "plain" if trial.source == "real" else "muted"),
            Cell(look.line(calls, 160)), Cell(look.line(trial.answer or trial.error or "", 120)),
        ))  # fmt: skip
    more = f"The first {ROWS} of {len(trials):,}; all of them: .df" if len(trials) > ROWS else ""
    grid = Grid("", columns, tuple(rows), more)
    blocks: tuple[Block, ...] = (grid,) if rows else (Notice("No trial.", "muted"),)
    return View("trials", "Trials", (), (count(len(trials), "trial"),), blocks, ".df")


def trial_view(view: TrialView, look: Look) -> View:
    """Return one trial: what was asked and what is right, the verdicts, then the run."""
    trial = view.trial
    rows = []
    for name, verdict in view.verdicts.items():
        word, tone = _VERDICTS[verdict.kind]
        said = figure(verdict.value) if verdict.kind == "number" and verdict.value is not None else word
        rows.append(
            (Cell(name, face="code"), Cell(said, tone, "badge"), Cell(look.text(verdict.reason, 200)))
        )
    columns = (Column("check", header=True), Column(""), Column("why", wide=True))
    run = trace_view(view.transcript, look)
    # That a trial came to its end says nothing of how; "ok" would read as passed.
    badges = [Badge(trial.outcome, "warn")] if trial.outcome != "ok" else []
    badges += [Badge(trial.source, "warn")] if trial.source != "real" else []
    blocks: tuple[Block, ...] = (
        Facts((("asked", look.text(view.scenario.prompt(trial.repeat)[1], 1_000)),)),
        Section("What counts as right", tuple(what_is_right(view.scenario, look))),
        Section("What the checks say", (Grid("", columns, tuple(rows)),)),
        Section(f"The run · {run.title}", run.blocks),
    )
    facts = (
        look.line(trial.variant, 60),
        f"repeat {trial.repeat}",
        look.line(trial.phrasing, 40),
        *run.facts,
    )
    return View(
        "trial",
        look.line(trial.scenario, 80),
        tuple(badges),
        tuple(fact for fact in facts if fact),
        blocks,
        ".transcript",
    )


def _source_badges(sources: Mapping[str, Source]) -> tuple[Badge, ...]:
    """Return a badge for every source that is not a real model."""
    return tuple(Badge(source, "warn") for source in sorted(set(sources.values()) - {"real"}))


def figure(value: float) -> str:
    """Return a figure without an exponent: whole from 100 on.

    >>> figure(10817.0), figure(0.03125), figure(4.0)
    ('10,817', '0.03125', '4')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def _estimates(
    caption: str,
    found: Mapping[str, Rate | Mean],
    sources: Mapping[str, Source],
    missing: Mapping[str, int],
    look: Look,
) -> list[Block]:
    means = tuple(
        (
            look.line(variant, 60),
            beside(f"{measured(each)}, {count(each.trials, 'trial')}", sources.get(variant, "real")),
        )
        for variant, each in found.items()
        if isinstance(each, Mean)
    )
    if means:
        return [Facts(means)]
    rows = estimate_rows(found, sources, missing, look)
    level = next((each.level for each in found.values()), LEVEL)
    return [Intervals(caption, rows, (0.0, 1.0), PERCENT, bars=True, legend=legend(level))] if rows else []


def _left_range(seconds: tuple[float, float]) -> str:
    least, most = map(_left, seconds)
    return least if least == most else f"{least} to {most}"


def _left(seconds: float) -> str:
    """Return how long a run takes, or still takes, no more exactly than that can be known."""
    return formatting.seconds(seconds) if seconds >= 60 else f"{max(1, round(seconds))} s"
