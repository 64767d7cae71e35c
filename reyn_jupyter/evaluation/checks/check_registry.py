"""Every check under its name; adding one is writing one function.

Invariants: a check is total, so a stored trial of any shape gets a verdict, and one that a person's function could not
give is "not applicable" with what went wrong; a trial that an error or a timeout ended counts as missing, and no check
makes a pass or a failure of it; a number is finite, or does not apply; a function of other code is another version.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import math
import traceback
import zlib
from collections.abc import Callable, Mapping
from types import CodeType, MappingProxyType
from typing import Any, Literal, overload

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import MISSING, Trial
from reyn_jupyter.runtime.record.verdict import Verdict, failed, not_applicable, number, passed
from reyn_jupyter.support.text import enumerate_words, nearest_names
from reyn_jupyter.support.user_errors import UserError

# What a function may give: a verdict, or a plain answer that stands for one.
Grade = Callable[[Trial, Scenario], Verdict | bool | float]
Graded = Callable[[Trial, Scenario], Verdict]
Better = Literal["more", "less"] | None

BROKEN = "the check could not be asked"  # how the reason of such a verdict begins
_OURS = __name__.partition(".")[0] + "."
_checks: dict[str, Check] = {}
CHECKS: Mapping[str, Check] = MappingProxyType(_checks)


class UnknownCheckError(UserError, LookupError):
    """No check has this name; the message says which one is near."""


def is_missing(trial: Trial) -> bool:
    """Return whether a trial says nothing about the model: its provider failed, or time ran out. A limit is an
    outcome."""
    return trial.outcome in MISSING


def is_broken(verdict: Verdict) -> bool:
    """Return whether a verdict says that the check itself failed, by raising or by giving no verdict."""
    return verdict.kind == "na" and verdict.reason.startswith(BROKEN)


@overload
def check(title: Grade, /) -> Graded: ...
@overload
def check(
    title: str = "",
    sentence: str = "",
    *,
    numeric: bool = False,
    better: Better = "more",
    version: int = 1,
) -> Callable[[Grade], Graded]: ...
def check(
    title: str | Grade = "",
    sentence: str = "",
    *,
    numeric: bool = False,
    better: Better = "more",
    version: int = 1,
) -> Graded | Callable[[Grade], Graded]:
    """Register a function as the check of its name. The arguments are the fields of `Check`.

    A function gives a `Verdict`, or True for a pass and False for a failure, or a number where the check is numeric.
    One that raises does not apply to that trial, and the report says how often. A cell that is run again replaces its
    own check; its stored verdicts are made again where its code changed.

    Args:
        title: what tables say; the function's name with spaces when empty.
        sentence: what it asks; the first line of the function's docstring when empty, else the title.

    Raises:
        ValueError: another module has a check of this name, or the function has none (a lambda).

    Example: ``@check`` over ``def answered(trial, scenario): return bool(trial.answer)``.
    """
    if callable(title):
        return check()(title)
    words = title

    def register(grade: Grade) -> Graded:
        name = grade.__name__
        if not name.isidentifier():
            raise ValueError(f"a check goes by its function's name, and {name} is none; write it with def")

        @functools.wraps(grade)
        def grade_total(trial: Trial, scenario: Scenario) -> Verdict:
            if is_missing(trial):
                return not_applicable(f"the trial is missing: {trial.error or trial.outcome}")
            try:
                verdict = _verdict(grade(trial, scenario), numeric)
            except Exception as error:  # noqa: BLE001 - whatever a person's function raises: the trial is kept
                return not_applicable(f"{BROKEN}: {_describe_error(error)}")
            if verdict.value is not None and not math.isfinite(verdict.value):
                return not_applicable(
                    f"the check gave {verdict.value}, which is no number that can be counted"
                )
            return verdict

        there = _checks.get(name)
        if there is not None and there.grade.__module__ != grade.__module__:
            raise ValueError(
                f"there is a check {name!r} in {there.grade.__module__}; give this one another name"
            )
        question = sentence or (inspect.getdoc(grade) or "").partition("\n")[0]
        label = words or name.replace("_", " ")
        own = not (grade.__module__ or "").startswith(_OURS)
        _checks[name] = Check(
            name, label, question or f"{label}?", grade_total, numeric=numeric, better=better,
            version=_code_version(version, grade) if own else version,
        )  # fmt: skip
        return grade_total

    return register


def _verdict(given: Any, numeric: bool) -> Verdict:
    """Return what a function gave, as a verdict. Raises TypeError where it is none."""
    if isinstance(given, Verdict):
        return given
    if isinstance(given, bool) and not numeric:
        return passed("it gave True") if given else failed("it gave False")
    if isinstance(given, int | float) and numeric:
        return number(given, f"it gave {given:g}")
    wanted = "number(…)" if numeric else "passed(…), failed(…), True, False"
    raise TypeError(f"it gave {given!r:.40}; return {wanted} or not_applicable(…)")


def _describe_error(error: Exception) -> str:
    """Return an error of a person's function with the line that raised it, where that line is theirs."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename != __file__]
    line = linecache.getline(own[0].filename, own[0].lineno or 0).strip() if own else ""
    said = str(error) if isinstance(error, TypeError) and not own else f"{type(error).__name__}: {error}"
    return f"{said:.300}" + (f" (in the line: {line:.100})" if line else "")


def _code_version(version: int, grade: Grade) -> int:
    """Return a version that moves with the code of a function too, since nobody thinks of `version` while trying a
    check."""
    code = getattr(inspect.unwrap(grade), "__code__", None)
    return (version << 32) | (zlib.crc32(_code_text(code).encode("utf-8", "replace")) if code else 0)


def _code_text(code: CodeType) -> str:
    """Return the text of what code does, without the place where it stands."""
    constants = [
        _code_text(each) if isinstance(each, CodeType) else _stable_constant(each) for each in code.co_consts
    ]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


def _stable_constant(constant: Any) -> str:
    """Return the text of a constant, sets sorted, since their order differs between processes."""
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def forget(name: str) -> None:
    """Take a check of one's own out again. Raises UnknownCheckError where there is none of that name."""
    del _checks[find_check(name).name]


def find_check(name: str) -> Check:
    """Return the check of a name.

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
    # Tables show titles, so one may be what was written: "lists first" is first_call_is.
    titles = {each.title: each.name for each in CHECKS.values()}
    said = str(name).replace("_", " ")
    if said in titles:
        hint = f"{titles[said]} is the one that tables call {said!r}"
    else:
        near = nearest_names(name, CHECKS, 2) or [titles[each] for each in nearest_names(said, titles, 1)]
        hint = (
            f"did you mean {enumerate_words(near, 'or')}?"
            if near
            else f"there are {', '.join(sorted(CHECKS))}"
        )
    raise UnknownCheckError(f"there is no check {name!r}; {hint}")
