"""A verdict: passed, failed, not applicable, or a number.

Invariant: a verdict that does not apply is neither a pass nor a failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
