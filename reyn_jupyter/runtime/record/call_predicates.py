"""Classify the calls of a run: looks at the catalog, attempts at an action, calls that reached one.

Invariant: an answer counts as seen only by calls of a later model call; tool calls of one step were written together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reyn_jupyter.catalog.names import CHOOSE
from reyn_jupyter.runtime.record.call_facts import CallFact
from reyn_jupyter.support.text import shorten

MOST_EVIDENCE = 10  # pieces of evidence
_LONGEST_NAME = 120  # characters
_SHOWN = 80  # characters of arguments that are quoted
LIST, SEARCH, DESCRIBE, INSPECT = "list_actions", "search_actions", "describe_action", "inspect"
_NOT_AN_ATTEMPT = frozenset({LIST, SEARCH, DESCRIBE, INSPECT, CHOOSE})


def is_attempt(call: CallFact) -> bool:
    """Return whether the model asked to run an action, also under a name that does not exist."""
    return call.wrapper not in _NOT_AN_ATTEMPT


def is_gated(call: CallFact) -> bool:
    """Return whether the call was answered with a listing instead of being run; such a call is not judged."""
    return call.problem == "gated"


def is_look(call: CallFact) -> bool:
    """Return whether the answer showed actions: a listing, a search, or the choice of `discovery: two_steps`."""
    looked = call.wrapper in (LIST, SEARCH, CHOOSE) and call.problem is None and call.ok is True
    return is_gated(call) or looked


def is_accepted(call: CallFact) -> bool:
    """Return whether an attempt was accepted: an action was resolved, and its schema took the arguments."""
    return is_attempt(call) and call.problem is None and call.name is not None


def names_an_action(call: CallFact) -> bool:
    """Return whether an attempt names an existing action, whether its arguments are valid or not."""
    return is_attempt(call) and call.name is not None and call.problem in (None, "invalid")


def accepted_calls(calls: Iterable[CallFact]) -> list[CallFact]:
    return [call for call in calls if is_accepted(call)]


def worked_calls(calls: Iterable[CallFact]) -> list[CallFact]:
    """Return the accepted calls that finished without an error."""
    return [call for call in accepted_calls(calls) if call.ok]


def seen_before(look: CallFact, call: CallFact) -> bool:
    """Return whether the model had the answer of `look` when it wrote `call`."""
    return look.step < call.step


def call_evidence(calls: Sequence[CallFact]) -> tuple[str, ...]:
    """Return the step and the name of each call, at most ten."""
    return tuple(f"step {call.step}: {name_of(call)}" for call in calls[:MOST_EVIDENCE])


def name_of(call: CallFact) -> str:
    """Return the name of the action of a call, or of its tool; shortened, since the model may have invented it."""
    return (call.name or call.wrapper)[:_LONGEST_NAME]


def call_sentence(call: CallFact) -> str:
    """Return a sentence about a call that was not needed."""
    return f"{name_of(call)} was called too, with {shorten(repr(call.args), _SHOWN)}"


def join_reasons(reasons: Iterable[str]) -> str:
    """Join reasons into one sentence; only the first three are quoted."""
    distinct = list(dict.fromkeys(reasons))
    more = f"; and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return "; ".join(distinct[:3]) + more
