"""The lines of a run: its model calls and tool calls in the order of the record.

Invariant: a line holds nothing but short texts that are ready to be shown; a record that stops draws as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import Tone
from reyn_jupyter.notebook.render.trace.calls import call_badges, call_title, inner_arguments
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.events import ModelReplied
    from reyn_jupyter.runtime.record.run_steps import Call, Step
    from reyn_jupyter.runtime.record.trace import Trace

ROWS = 2000


@dataclass(frozen=True, slots=True)
class StepRow:
    """One line of the list.

    Attributes:
        id: "m" and the number of the step for a model call, "c" and the place in `trace.calls` for a tool call; for a
            line of an inner run after the id of its call and a dot.
        title: marked with an arrow for each inner run that the line lies in.
        about: the end of the line: the error, the arguments, the text.
        size: tokens of a model call, bytes of what a call gave back.
        start, share: where in the run's time it lies and how much of it it took, of 1.
        depth: 1 for a call that a model asked for.
    """

    id: str
    kind: Literal["model", "call"]
    title: str
    about: str
    state: str
    tone: Tone
    seconds: str
    size: str
    cost: str
    start: float
    share: float
    depth: int


def step_rows(trace: Trace, look: Look, now: float | None = None) -> tuple[StepRow, ...]:
    """Return the lines of a run, at most `ROWS`.

    Args:
        now: seconds since the epoch while the run goes on; what is under way lasts until then.
    """
    end = max(now or 0.0, trace.events[-1].at, trace.started.at + trace.seconds)
    clock = _Clock(trace.started.at, end)
    return tuple(islice(_rows(trace, look, clock, now is not None), ROWS))


def count_rows(trace: Trace) -> int:
    """Return the number of lines that a run has, those of its inner runs among them."""
    return sum(
        bool(step.requested or step.replied) + len(step.calls)
        for run in (trace, *trace.all_inner)
        for step in run.steps
    )


def _rows(trace: Trace, look: Look, clock: _Clock, running: bool) -> Iterator[StepRow]:
    place = 0
    for step in trace.steps:
        if step.requested is not None or step.replied is not None:
            yield _model_row(step, trace, look, clock, running)
        for call in step.calls:
            row = _call_row(call, place, trace, look, clock)
            yield row
            place += 1
            if call.id in trace.inner:
                for inner in _rows(trace.inner[call.id], look, clock, running):
                    yield replace(inner, id=f"{row.id}.{inner.id}", title=f"↳ {inner.title}", depth=1)


class _Clock:
    """Places moments of a run on a line from 0 to 1. Clocks may jump, so what falls outside is moved in."""

    def __init__(self, begin: float, end: float) -> None:
        self._begin = begin
        self.end = end
        self._length = max(end - begin, 1e-6)

    def bar(self, at: float, seconds: float) -> tuple[float, float]:
        start = min(1.0, max(0.0, (at - self._begin) / self._length))
        return round(start, 4), round(min(1.0 - start, max(0.0, seconds) / self._length), 4)


def _model_row(step: Step, trace: Trace, look: Look, clock: _Clock, running: bool) -> StepRow:
    replied, requested = step.replied, step.requested
    seconds = replied.seconds if replied else clock.end - requested.at if requested else 0.0
    began = requested.at if requested else (replied.at - seconds if replied else clock.end)
    last = running and step is trace.steps[-1]
    state, tone = reply_state(replied, last)
    start, share = clock.bar(began, seconds)
    return StepRow(
        f"m{step.number}",
        "model",
        f"Step {step.number}",
        _said(replied, look),
        state,
        tone,
        formatting.seconds(seconds) if replied else "",
        _tokens(replied) if replied and not replied.error else "",
        formatting.money(replied.cost) if replied and replied.cost is not None else "",
        start,
        share,
        0,
    )


def reply_state(replied: ModelReplied | None, running: bool) -> tuple[str, Tone]:
    if replied is None:
        return ("… waiting", "info") if running else ("– no reply", "warn")
    return ("✗ failed", "bad") if replied.error else ("✓ replied", "good")


def _said(replied: ModelReplied | None, look: Look) -> str:
    if replied is None:
        return ""
    if replied.error:
        return look.line(replied.error, 110)
    if replied.text.strip():
        return look.line(replied.text.strip(), 110)
    return f"asks for {count(len(replied.tool_calls), 'call')}" if replied.tool_calls else "says nothing"


def _tokens(replied: ModelReplied) -> str:
    tokens = replied.prompt_tokens + replied.completion_tokens
    return f"{'≈ ' if replied.estimated else ''}{count(tokens, 'token')}" if tokens else ""


def _call_row(call: Call, place: int, trace: Trace, look: Look, clock: _Clock) -> StepRow:
    finished = call.finished
    *title, about = call_title(call, inner_arguments(call), (), look)
    state = call_badges(call, trace)[0]
    seconds = finished.seconds if finished else clock.end - call.resolved.at
    start, share = clock.bar(call.resolved.at + (finished.waited if finished else 0.0), seconds)
    return StepRow(
        f"c{place}",
        "call",
        "".join(span.text for span in title).strip() or look.line(call.label, 100),
        about.text,
        state.text,
        state.tone,
        formatting.seconds(seconds) if finished else "",
        formatting.size(finished.size) if finished and finished.ok else "",
        "",
        start,
        share,
        1 if trace.model is not None else 0,
    )
