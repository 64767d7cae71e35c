"""The trials behind a failure, side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.model import (
    Badge,
    Block,
    Bullets,
    Code,
    Fold,
    Message,
    Pair,
    Paragraph,
    Section,
    Span,
)

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.failures import Failure
    from reyn_jupyter.evaluation.trial import CallFact, Trial
    from reyn_jupyter.notebook.render.untrusted import Look

_CALLS = 8


def failures(shown: Sequence[Failure], look: Look) -> list[Block]:
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
        mine = (Message(look.text(each.reason, 300), "bad"), *transcript(each.trial, look))
        inner: tuple[Block, ...] = mine
        if each.beside is not None:
            other = (
                Message(look.text(each.beside_reason or "not graded", 300), "muted"),
                *transcript(each.beside, look),
            )
            inner = (
                Pair(look.line(each.beside.variant, 60), look.line(each.trial.variant, 60), other, mine),
            )
        aside = look.line(each.family, 40) + (f" · {again} times" if again > 1 else "")
        badges = [Badge("failed", "bad")]
        badges += [Badge(each.trial.source, "warn")] if each.trial.source != "real" else []
        folds.append(Fold(title, tuple(badges), aside, inner))
    return [Section("Failures", tuple(folds))] if folds else []


def transcript(trial: Trial, look: Look) -> tuple[Block, ...]:
    lines = [_call(fact, look) for fact in trial.calls[:_CALLS]]
    if len(trial.calls) > _CALLS:
        lines.append(f"… {len(trial.calls) - _CALLS} more calls")
    if trial.outcome != "ok":
        lines.append(f"{trial.outcome}: {look.line(trial.error or '', 160)}")
    answer = (Code(look.text(trial.answer, 500), "answer"),) if trial.answer else ()
    items = tuple((Paragraph((Span(line),)),) for line in lines or ["no call"])
    return (Bullets(items, start=1), *answer)


def _call(fact: CallFact, look: Look) -> str:
    said_ = {True: "✓", False: "✗", None: "…"}[fact.ok]
    name = fact.wrapper if fact.name is None or fact.name == fact.wrapper else f"{fact.wrapper} → {fact.name}"
    arguments = (
        look.line(json.dumps(fact.args, ensure_ascii=False, default=str), 120)
        if fact.args not in (None, {})
        else ""
    )
    state = f"{said_} {fact.problem}" if fact.problem else said_
    return f"{look.line(name, 100)} {arguments} {state}".replace("  ", " ")
