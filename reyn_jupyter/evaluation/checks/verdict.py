"""The verdict of a check on a trial: passed, failed, not applicable, or a number; never one silently for another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial

VerdictKind = Literal["pass", "fail", "na", "number"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word of a check.

    Attributes:
        kind: "na" says that the check does not apply, which is neither a pass nor a failure.
        reason: one sentence for people.
        value: 1.0 for a pass, 0.0 for a failure, the figure for a number, None where it does not apply.
        evidence: what it rests on: steps of the trace, names, values.
    """

    kind: VerdictKind
    reason: str
    value: float | None = None
    evidence: tuple[str, ...] = ()


def passed(reason: str, *evidence: str) -> Verdict:
    return Verdict("pass", reason, 1.0, evidence)


def failed(reason: str, *evidence: str) -> Verdict:
    return Verdict("fail", reason, 0.0, evidence)


def not_applicable(reason: str, *evidence: str) -> Verdict:
    return Verdict("na", reason, None, evidence)


def number(value: float, reason: str, *evidence: str) -> Verdict:
    return Verdict("number", reason, float(value), evidence)


@dataclass(frozen=True, slots=True)
class Check:
    """A pure function from a stored trial to a verdict, under a name.

    Attributes:
        name: e.g. ``first_call_is``.
        title: what tables say ("lists first").
        sentence: what it asks, for people.
        numeric: whether it gives numbers (calls, tokens) instead of verdicts.
        better: whether "more" or "less" of it is better; None where neither is.
        grade: the function. A trial whose outcome is error or timeout is never graded: it counts as missing.
        version: moved when the meaning changes, so that stored verdicts of an older one are made again.
    """

    name: str
    title: str
    sentence: str
    grade: Callable[[Trial, Scenario], Verdict]
    numeric: bool = False
    better: Literal["more", "less"] | None = "more"
    version: int = 1
