"""A check: a pure function from a stored trial to a verdict, under a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.verdict import Verdict


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
