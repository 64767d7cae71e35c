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
    """Return whether the model asked for an action to be run, by the wrapper, by a direct tool or by a made-up
    name."""
    return call.wrapper not in _NOT_AN_ATTEMPT


def is_gated(call: CallFact) -> bool:
    """Return whether the gate answered it with the listing that had been skipped; it was not run, and is not
    judged."""
    return call.problem == "gated"


def is_look(call: CallFact) -> bool:
    """Return whether its answer showed the model what there is: a listing, a search, the gate's answer, or the short
    list from which it chose (`discovery: two_steps`)."""
    looked = call.wrapper in (LIST, SEARCH, CHOOSE) and call.problem is None and call.ok is True
    return is_gated(call) or looked


def is_accepted(call: CallFact) -> bool:
    """Return whether an attempt was accepted: an action was resolved, and its schema took the arguments."""
    return is_attempt(call) and call.problem is None and call.name is not None


def names_an_action(call: CallFact) -> bool:
    """Return whether an attempt names an action that there is, with arguments that its schema takes or not."""
    return is_attempt(call) and call.name is not None and call.problem in (None, "invalid")


def accepted_calls(calls: Iterable[CallFact]) -> list[CallFact]:
    return [call for call in calls if is_accepted(call)]


def worked_calls(calls: Iterable[CallFact]) -> list[CallFact]:
    """Return the accepted calls that answered without an error; one that never finished did not."""
    return [call for call in accepted_calls(calls) if call.ok]


def seen_before(look: CallFact, call: CallFact) -> bool:
    """Return whether the answer to one was there when the model wrote the other."""
    return look.step < call.step


def call_evidence(calls: Sequence[CallFact]) -> tuple[str, ...]:
    """Evidence: the step and the name of each call, ten at most."""
    return tuple(f"step {call.step}: {name_of(call)}" for call in calls[:MOST_EVIDENCE])


def name_of(call: CallFact) -> str:
    """Return the name that people know a call by: the action, or else the tool; cut, since a model may have made it
    up."""
    return (call.name or call.wrapper)[:_LONGEST_NAME]


def call_sentence(call: CallFact) -> str:
    """Return what is said of a call that was made beside the needed ones."""
    return f"{name_of(call)} was called too, with {shorten(repr(call.args), _SHOWN)}"


def join_reasons(reasons: Iterable[str]) -> str:
    """Return several reasons as one sentence, three of them in full."""
    distinct = list(dict.fromkeys(reasons))
    more = f"; and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return "; ".join(distinct[:3]) + more
