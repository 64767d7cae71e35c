"""The trials behind a failure, side by side under what both were asked.

Invariant: whose failures these are is said, and a trial that no real model made is marked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.checks.harness_help import HELP_WORDS
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Commands,
    Fold,
    Grid,
    Notice,
    Pair,
    Paragraph,
    Section,
    Span,
)
from reyn_jupyter.notebook.render.study.suite_view import what_is_right
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.scenario import Scenario
    from reyn_jupyter.evaluation.results.failure_examples import Failure
    from reyn_jupyter.evaluation.results.failure_kinds import FailureCount
    from reyn_jupyter.evaluation.results.help_counts import HelpCount
    from reyn_jupyter.evaluation.trial.trial import Trial
    from reyn_jupyter.notebook.render.value_text import Look
    from reyn_jupyter.runtime.record.call_facts import CallFact

_CALLS = 8


def failures(
    shown: Sequence[Failure], failed: int, check: str, scenarios: Mapping[str, Scenario], look: Look
) -> list[Block]:
    """Return the section of a report.

    Args:
        shown: those to look at first.
        failed: how many there are.
        check: the name of the check that they failed.
        scenarios: by id, for what was right.
    """
    folds: list[Block] = []
    times = Counter((each.scenario, each.reason) for each in shown)
    for each in shown:
        again = times.pop((each.scenario, each.reason), 0)
        if not again:  # a repeat that failed alike stands with the first
            continue
        title = (
            Span(look.line(each.scenario, 80), ("strong",)),
            Span(f" {look.line(each.reason, 160)}", ("muted",)),
        )
        asked = Paragraph((Span("asked: ", ("muted",)), Span(look.text(each.asked, 600))))
        right = tuple(what_is_right(scenarios[each.scenario], look))
        mine = (Notice(look.text(each.reason, 300), "bad"), *transcript(each.trial, look))
        inner: tuple[Block, ...] = (asked, *right, *mine)
        if each.beside is not None:
            other = (
                Notice(look.text(each.beside_reason or "not graded", 300), "muted"),
                *transcript(each.beside, look),
            )
            inner = (
                asked,
                *right,
                Pair(look.line(each.beside.variant, 60), look.line(each.trial.variant, 60), other, mine),
            )
        aside = look.line(each.family, 40) + (f" · {again} times" if again > 1 else "")
        badges = [Badge("failed", "bad")]
        badges += [Badge(each.trial.source, "warn")] if each.trial.source != "real" else []
        folds.append(Fold(title, tuple(badges), aside, inner))
    if not folds:
        return []
    first = shown[0]
    whose = f"Failures of {look.line(first.trial.variant, 60)}"
    whose += f", beside {look.line(first.beside.variant, 60)}" if first.beside is not None else ""
    if failed > len(shown):
        knob = f'study.trials.of("{look.line(first.trial.variant, 60)}").failed("{check}")'
        folds.append(Notice(f"{len(shown)} of {failed:,} failed trials; all of them: {knob}", "muted"))
    return [Section(whose, tuple(folds))]


def harness_help(counts: Sequence[HelpCount], look: Look) -> list[Block]:
    """Return the section that says what the harness did for the model, a row a variant and kind of help."""
    if not counts:
        return []
    rows = [
        (
            Cell(look.line(each.variant, 60)),
            Cell(HELP_WORDS[each.kind]),
            Cell(f"{each.times:,}"),
            Cell(f"{each.trials:,} of {each.of:,}"),
        )
        for each in counts
    ]
    columns = (
        Column("variant", header=True),
        Column("help"),
        Column("times", right=True),
        Column("trials", right=True),
    )
    return [Section("What the harness did", (Grid("", columns, tuple(rows)),))]


def did_instead(counts: Sequence[FailureCount], look: Look) -> list[Block]:
    """Return the section that says what failing trials did in place of what was asked, an example of each."""
    folds = []
    for each in counts:
        title = (
            Span(f"{each.times:,} of {each.of:,}", ("strong",)),
            Span(f" {each.kind}"),
            Span(f" · {look.line(each.variant, 60)}", ("muted",)),
        )
        badges = (Badge(each.example.source, "warn"),) if each.example.source != "real" else ()
        inner = (*transcript(each.example, look), Commands((each.link,)))
        folds.append(Fold(title, badges, look.line(each.example.scenario, 60), inner))
    return [Section("What failing trials did instead", tuple(folds))] if folds else []


def transcript(trial: Trial, look: Look) -> tuple[Block, ...]:
    """Return what a trial did, call by call, and what it said."""
    lines = [_call(fact, look) for fact in trial.calls[:_CALLS]]
    if (left := len(trial.calls) - _CALLS) > 0:
        lines.append((Span(f"… {count(left, 'more call')}"),))
    if trial.outcome != "ok":
        lines.append((Span(f"{trial.outcome}: {look.line(trial.error or '', 160)}"),))
    said = trial.answer.strip() if trial.answer else ""
    answer = (Code(look.text(said, 500), "answer"),) if said else ()
    items = tuple((Paragraph(line),) for line in lines)
    return (Bullets(items, start=1) if items else Notice("no call", "muted"), *answer)


def _call(fact: CallFact, look: Look) -> tuple[Span, ...]:
    said_ = {True: "✓", False: "✗", None: "…"}[fact.ok]
    name = fact.wrapper if fact.name is None or fact.name == fact.wrapper else f"{fact.wrapper} → {fact.name}"
    arguments = (
        look.line(json.dumps(fact.args, ensure_ascii=False, default=str), 120) + " "
        if fact.args not in (None, {})
        else ""
    )
    state = f"{said_} {fact.problem}" if fact.problem else said_
    return Span(look.line(name, 100), ("code",)), Span(f" {arguments}", ("muted",)), Span(state)
