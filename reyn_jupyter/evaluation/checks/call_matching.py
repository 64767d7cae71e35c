"""Match calls with a gold: which calls are accepted, and which steps they serve.

Invariants: an argument that the gold names and that the call leaves out is wrong unless `""` is among its accepted
values; a truth value is never a number; each call serves one step; nothing here raises, whatever a model sent.

The conventions are those of the Berkeley Function-Calling Leaderboard's checker of labelled calls (BFCL v4,
`ast_checker`): accepted values in lists, texts compared without case, spaces and the characters ``, . / - _ * ^``,
dicts whose values are lists of accepted values again, lists element by element. Dates are compared as texts. Two
things differ: there, the marker `""` accepts every text that is empty once it is stripped (`"."`, `"-"`), and a
truth value in a list equals a number; here neither does. Types are the business of the action's schema.
"""

from __future__ import annotations

import re
import reprlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reyn_jupyter.evaluation.plan.scenario import MAY_BE_LEFT_OUT, AcceptedCall, Gold, Scenario
from reyn_jupyter.runtime.record.call_facts import CallFact
from reyn_jupyter.runtime.record.call_predicates import is_accepted
from reyn_jupyter.support.text import shorten

_SHOWN = 80  # characters of a value that are quoted
_BOUNDED = reprlib.Repr()  # total, however deep a value is
_BOUNDED.maxstring = _BOUNDED.maxother = _SHOWN
_IGNORED = re.compile(r"[ ,./\-_*^]")

FaultKind = Literal["action", "not_an_object", "omitted", "extra", "value"]


@dataclass(frozen=True, slots=True)
class CallFault:
    """The reason why a call is not an accepted one: what kind of reason, the argument it is about, and a sentence."""

    kind: FaultKind
    argument: str
    reason: str


def standard_text(text: str) -> str:
    """Return a text without what does not count: case, spaces, ``, . / - _ * ^``, the kind of quotation mark, and
    whether an accented letter is one sign or two.

    Source: BFCL v4, the standard form of strings; there, signs are compared one by one.

    >>> standard_text("April 1, 2024") == standard_text("april 1 2024")
    True
    """
    return unicodedata.normalize("NFC", _IGNORED.sub("", text).lower()).replace("'", '"')


def value_matches(value: Any, accepted: Any) -> bool:
    """Return whether a value is this accepted one.

    Args:
        value: what the model sent.
        accepted: one accepted value. In a dict, each value that is a list holds the accepted values of that key.

    Example:
        >>> value_matches({"city": "new york"}, {"city": ["New York", "NYC"], "unit": ["", "km"]})
        True
        >>> value_matches(True, 1)
        False
    """
    if isinstance(accepted, bool) or isinstance(value, bool):
        return isinstance(accepted, bool) and isinstance(value, bool) and accepted == value
    if isinstance(accepted, int | float):
        return isinstance(value, int | float) and accepted == value
    if isinstance(accepted, str):
        return isinstance(value, str) and _texts_match(value, accepted)
    if isinstance(accepted, Mapping):
        return isinstance(value, Mapping) and _objects_match(value, accepted)
    if isinstance(accepted, Sequence):
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and len(value) == len(accepted)
            and all(value_matches(mine, theirs) for mine, theirs in zip(value, accepted, strict=True))
        )
    return value is None and accepted is None


def _texts_match(value: str, accepted: str) -> bool:
    wanted = standard_text(accepted)
    if not wanted:  # nothing but ignored characters: "." is a folder, and "" is not
        return value == accepted
    return standard_text(value) == wanted


def _objects_match(value: Mapping[Any, Any], accepted: Mapping[str, Any]) -> bool:
    if any(key not in accepted for key in value):
        return False
    return all(
        any(value_matches(value[key], choice) for choice in _choices(choices))
        if key in value
        else MAY_BE_LEFT_OUT in _choices(choices)
        for key, choices in accepted.items()
    )


def _choices(accepted: Any) -> Sequence[Any]:
    return accepted if isinstance(accepted, list | tuple) else (accepted,)


def fault(call: CallFact, accepted: AcceptedCall) -> CallFault | None:
    """Return the first reason why a call is not an accepted one; None when it is.

    Args:
        call: a call as it was resolved.
        accepted: one way to do a step.

    Example:
        >>> read = AcceptedCall(action="file__read", args={"path": ("notes.md",)})
        >>> fault(CallFact(step=1, wrapper="invoke_action", name="file__read", args={}), read).kind
        'omitted'
    """
    if call.name != accepted.action:
        return CallFault(
            "action", "", f"{(call.name or 'no action')[:_SHOWN]} was called, not {accepted.action}"
        )
    given = {} if call.args is None else call.args
    if not isinstance(given, Mapping):
        return CallFault("not_an_object", "", f"the arguments were {_quote(given)}, not an object")
    for name, values in accepted.args.items():
        if name not in given:
            if MAY_BE_LEFT_OUT not in values:
                return CallFault("omitted", name, f"{name} was left out")
        elif not any(value_matches(given[name], value) for value in values):
            wanted = " or ".join(_quote(value) for value in values[:3])
            return CallFault("value", name, f"{name} was {_quote(given[name])}, not {wanted}")
    if accepted.exact:
        extra = [str(name) for name in given if name not in accepted.args]
        if extra:
            return CallFault("extra", extra[0], f"{extra[0]} was given, which is not asked for")
    return None


@dataclass(frozen=True, slots=True)
class Served:
    """The steps of a gold that the calls serve.

    Attributes:
        by: for each step the position of the call that serves it, or None.
        faults: for each step that is not served, why the nearest call does not serve it.
    """

    by: tuple[int | None, ...]
    faults: Mapping[int, str]

    @property
    def count(self) -> int:
        return sum(position is not None for position in self.by)

    @property
    def complete(self) -> bool:
        return self.count == len(self.by)


def serve(gold: Gold, calls: Sequence[CallFact], *, arguments: bool = True) -> Served:
    """Give each step of a gold a call of its own, as many steps as possible.

    Args:
        gold: the needed steps.
        calls: the calls that may count.
        arguments: whether the arguments have to be accepted too; False looks at the action's name alone.

    Returns:
        A maximum matching of steps and calls (Kuhn's augmenting paths).
    """
    edges = [
        [position for position, call in enumerate(calls) if _serves(call, step, arguments=arguments)]
        for step in gold.steps
    ]
    by = maximum_matching(edges)
    faults = {
        number: _nearest_fault(step, calls) for number, step in enumerate(gold.steps) if by[number] is None
    }
    return Served(tuple(by), faults)


def _serves(call: CallFact, step: Sequence[AcceptedCall], *, arguments: bool) -> bool:
    named = (accepted for accepted in step if accepted.action == call.name)
    return any(not arguments or fault(call, accepted) is None for accepted in named)


def _nearest_fault(step: Sequence[AcceptedCall], calls: Sequence[CallFact]) -> str:
    names = " or ".join(dict.fromkeys(accepted.action for accepted in step))
    for call in calls:
        for accepted in step:
            found = fault(call, accepted)
            if found is not None and found.kind != "action":
                return f"{accepted.action}: {found.reason}"
    if any(call.name == accepted.action for accepted in step for call in calls):
        return f"{names} was not called often enough"
    return f"{names} was not called"


def other_calls(scenario: Scenario, calls: Sequence[CallFact]) -> list[CallFact]:
    """Return the calls that worked and that a scenario forbids beside the accepted ones, see `Scenario.no_other`. Where
    it forbids any, no distractor may be called either. What a call that is not accepted did within counts too; what an
    accepted one did is how it works.
    """
    found: list[CallFact] = []
    for call in calls:
        if _is_called_for(call, scenario):
            continue
        if is_accepted(call) and call.ok and _is_forbidden(call, scenario):
            found.append(call)
        else:
            found += [
                each
                for each in call.inner
                if _is_forbidden(each, scenario) and not _is_called_for(each, scenario)
            ]
    return found


def unread_calls(scenario: Scenario, calls: Sequence[CallFact]) -> list[CallFact]:
    """Return the calls of which nobody can tell whether they did within what a scenario forbids, see `other_calls`."""
    if not scenario.no_other:
        return []
    return [call for call in calls if call.unread is not None and not _is_called_for(call, scenario)]


def unread_sentence(call: CallFact) -> str:
    """Return that it is not known what a call did within, and why."""
    return f"it is not known what {call.name} called in its turn: {call.unread}"


def _is_called_for(call: CallFact, scenario: Scenario) -> bool:
    return any(_serves(call, step, arguments=True) for step in scenario.gold.steps)


def _is_forbidden(call: CallFact, scenario: Scenario) -> bool:
    return call.name is not None and (
        scenario.forbids_other(call.name) or bool(scenario.no_other and call.distractor)
    )


def maximum_matching(edges: Sequence[Sequence[int]]) -> list[int | None]:
    """Return a maximum matching of a bipartite graph: for each left vertex its right one, or None.

    Args:
        edges: for each left vertex the right ones that it may have.

    Source: Kuhn's algorithm, with the augmenting path found breadth first, so that nothing recurses.

    >>> maximum_matching([[0, 1], [0]])
    [1, 0]
    """
    right_of: list[int | None] = [None] * len(edges)
    left_of: dict[int, int] = {}
    for start in range(len(edges)):
        came_from: dict[int, int] = {}  # right vertex → the left one that it was reached from
        queue, free = [start], None
        for left in queue:
            for right in edges[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in left_of:
                    free = right
                    break
                queue.append(left_of[right])
            if free is not None:
                break
        while free is not None:
            left = came_from[free]
            left_of[free] = left
            right_of[left], free = free, right_of[left]
    return right_of


def _quote(value: Any) -> str:
    try:
        text = _BOUNDED.repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a very long number"
    return shorten(text, _SHOWN)
