"""Judge the conduct of a run from its calls: first call, discovery, and recovery after an error.

Invariants: on the flat surface there is nothing to list, so discovery does not apply there; a look counts only for
calls that the model wrote after it had the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from reyn_jupyter.catalog.names import CHOOSE
from reyn_jupyter.runtime.record.call_facts import CallFact, Surface
from reyn_jupyter.runtime.record.call_predicates import (
    DESCRIBE,
    LIST,
    call_evidence,
    is_accepted,
    is_attempt,
    is_gated,
    is_look,
    name_of,
    seen_before,
)
from reyn_jupyter.runtime.record.verdict import Verdict, failed, not_applicable, passed


class ConductRule(NamedTuple):
    """A rule of conduct: its title in tables, and its question."""

    title: str
    question: str


LISTS_FIRST = ConductRule(
    "lists first",
    "Is list_actions the first thing that the model calls? A search is not; a call that the gate "
    "answered is what it is. It does not apply where the harness listed for the model (discovery: two_steps).",
)
DISCOVERS = ConductRule(
    "discovers before it acts",
    "Was the answer of a listing, a search or the gate there before the model first "
    "invoked or described an action? A short list that the harness made counts (discovery: two_steps).",
)
RECOVERS = ConductRule(
    "recovers after an error",
    "After an action answered with an error: is a later call to it, or to an accepted "
    "action, successful, and is every needed step done?",
)
EDIT, WRITE = "file__edit", "file__write"
_FLAT = "every action was its own tool; there was nothing to list"


def judge_first_call(calls: Sequence[CallFact], surface: Surface) -> Verdict:
    """Return whether the first of a run's calls lists the catalog."""
    if surface == "flat":
        return not_applicable(_FLAT)
    if not calls:
        return failed("no call was made")
    first = calls[0]
    if first.wrapper == CHOOSE:
        return not_applicable("the harness listed, and the model chose")
    if first.wrapper == LIST:
        return passed("the first call lists the catalog", *call_evidence([first]))
    return failed(f"the first call is {first.wrapper}", *call_evidence([first]))


def judge_discovery(calls: Sequence[CallFact], surface: Surface) -> Verdict:
    """Return whether a look at the catalog was answered before the first call that needs one."""
    if surface == "flat":
        return not_applicable(_FLAT)
    first = next((call for call in calls if _acts(call)), None)
    if first is None:
        return not_applicable("nothing was invoked or described")
    look = next((call for call in calls if is_look(call) and seen_before(call, first)), None)
    if look is None:
        return failed(
            "an action was invoked or described before anything was listed", *call_evidence([first])
        )
    how = "the gate's answer" if is_gated(look) else f"{look.wrapper}'s answer"
    return passed(f"{how} came before the first invoke or describe", *call_evidence([look, first]))


def _acts(call: CallFact) -> bool:
    return not is_gated(call) and (is_attempt(call) or call.wrapper == DESCRIBE)


def judge_recovery(calls: Sequence[CallFact], accepted: Collection[str] = ()) -> Verdict:
    """Return whether an action succeeded after the first error of a run.

    Args:
        calls: the calls of the run.
        accepted: names of actions whose later success counts, beside the action that failed.
    """
    calls = [call for call in calls if is_accepted(call)]
    error = next((call for call in calls if call.ok is False), None)
    if error is None:
        return not_applicable("no action answered with an error")
    good = {error.name, *accepted}
    later = [call for call in calls if call.ok and seen_before(error, call) and call.name in good]
    if not later:
        return failed(
            f"no success after the error of {name_of(error)}: {error.error or ''}", *call_evidence([error])
        )
    return passed(f"went on after the error of {name_of(error)}", *call_evidence([error, *later]))
