"""The type of a check of a stored trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Check:
    """A named pure function that judges a stored trial.

    Attributes:
        name: e.g. ``first_call_is``.
        title: the heading in tables ("lists first").
        sentence: the question that the check answers.
        numeric: whether the result is a number (calls, tokens) instead of a verdict.
        better: whether "more" or "less" is better; None if neither is.
        grade: the function. A trial whose outcome is error or timeout is never graded: it counts as missing.
        version: raised when the meaning changes, so that verdicts of an older version are computed again.
    """

    name: str
    title: str
    sentence: str
    grade: Callable[[Trial, Scenario], Verdict]
    numeric: bool = False
    better: Literal["more", "less"] | None = "more"
    version: int = 1
