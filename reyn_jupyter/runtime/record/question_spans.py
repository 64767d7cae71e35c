"""The stretches of a run in which the person was asked, as its record tells them.

Invariant: a question is open from its `ConsentAsked` until a decision on the same call, the call's end or the run's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reyn_jupyter.runtime.record.events import (
    ActionFinished,
    ConsentAsked,
    Event,
    PermissionDecided,
    RunEnded,
)


@dataclass(frozen=True, slots=True)
class QuestionSpan:
    """A question about one call: from when until when, in seconds since the epoch; `end` is None while it is open."""

    call: str
    name: str
    start: float
    end: float | None


def question_spans(events: Iterable[Event]) -> list[QuestionSpan]:
    """Return the questions of a run in the order in which they were asked."""
    spans: list[QuestionSpan] = []
    at: dict[str, int] = {}  # call → the place of its open question
    for event in events:
        match event:
            case ConsentAsked():
                at[event.call] = len(spans)
                spans.append(QuestionSpan(event.call, event.name, event.at, None))
            case PermissionDecided() | ActionFinished() if event.call in at:
                place = at.pop(event.call)
                spans[place] = _ended(spans[place], event.at)
            case RunEnded():
                for place in at.values():
                    spans[place] = _ended(spans[place], event.at)
                at.clear()
            case _:
                pass
    return spans


def seconds_open(spans: Iterable[QuestionSpan], now: float) -> float:
    """Return the seconds in which at least one question was open, until `now`.

    >>> spans = [QuestionSpan("a", "x", 0.0, 4.0), QuestionSpan("b", "x", 2.0, None)]
    >>> seconds_open(spans, 5.0)
    5.0
    """
    total, until = 0.0, float("-inf")
    for start, end in sorted((each.start, now if each.end is None else min(each.end, now)) for each in spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _ended(span: QuestionSpan, at: float) -> QuestionSpan:
    return QuestionSpan(span.call, span.name, span.start, max(span.start, at))
