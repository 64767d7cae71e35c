"""Every check under its name; adding one is writing one function.

Invariants: a check is total, so a stored trial of any shape gets a verdict; a trial that an error or a timeout ended
counts as missing, and no check makes a pass or a failure of it; a number is finite, or does not apply.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from reyn_jupyter.evaluation.scenario import Scenario
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.evaluation.verdict import Check, Verdict, not_applicable

Grade = Callable[[Trial, Scenario], Verdict]

_checks: dict[str, Check] = {}
CHECKS: Mapping[str, Check] = MappingProxyType(_checks)


class UnknownCheckError(LookupError):
    """No check has this name; the message says which one is near."""


def is_missing(trial: Trial) -> bool:
    """Whether a trial says nothing about the model: its provider failed, or time ran out. A limit is an outcome."""
    return trial.outcome in ("error", "timeout")


def check(
    title: str,
    sentence: str,
    *,
    numeric: bool = False,
    better: Literal["more", "less"] | None = "more",
    version: int = 1,
) -> Callable[[Grade], Grade]:
    """Register a function as the check of its name. The arguments are the fields of `Check`.

    A cell that is run again replaces its own check.

    Raises:
        ValueError: another module has a check of this name.

    Example: ``@check("answers", "Is there an answer?")`` over ``def answered(trial, scenario) -> Verdict``.
    """

    def register(grade: Grade) -> Grade:
        @functools.wraps(grade)
        def graded(trial: Trial, scenario: Scenario) -> Verdict:
            if is_missing(trial):
                return not_applicable(f"the trial is missing: {trial.error or trial.outcome}")
            verdict = grade(trial, scenario)
            if verdict.value is not None and not math.isfinite(verdict.value):
                return not_applicable(
                    f"the check gave {verdict.value}, which is no number that can be counted"
                )
            return verdict

        there = _checks.get(grade.__name__)
        if there is not None and there.grade.__module__ != grade.__module__:
            raise ValueError(
                f"there is a check {grade.__name__!r} in {there.grade.__module__}; give this one another name"
            )
        _checks[grade.__name__] = Check(
            grade.__name__, title, sentence, graded, numeric=numeric, better=better, version=version
        )
        return graded

    return register


def forget(name: str) -> None:
    """Take a check of one's own out again. Raises UnknownCheckError where there is none of that name."""
    del _checks[find_check(name).name]


def find_check(name: str) -> Check:
    """The check of a name.

    Raises:
        UnknownCheckError: there is none; the nearest names are in the message.

    Example:
        >>> from reyn_jupyter.evaluation.checks import find_check
        >>> find_check("task_done").title
        'task done'
    """
    found = CHECKS.get(name) if isinstance(name, str) else None
    if found is not None:
        return found
    near = difflib.get_close_matches(str(name), CHECKS, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(CHECKS))}"
    raise UnknownCheckError(f"there is no check {name!r}; {hint}")
