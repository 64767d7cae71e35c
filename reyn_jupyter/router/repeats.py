"""Calls that a model makes again though it has their result: they are pointed to it, and then the turn is closed.

Invariant: a call is held only where nothing that ran since can have changed what it gives. What reads is held until a
call that may change something has run; what may change something is held only right behind itself. A call that failed
for a while runs again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.models.base import ToolCall, canonical
from reyn_jupyter.runtime.action_error import DENIED, CallTimeoutError, ModelFailedError
from reyn_jupyter.runtime.call.invoke import PlannedCall
from reyn_jupyter.runtime.run import LimitReachedError, Outcome, Run

SHORT = 400  # bytes of a result that is said again
CLOSING = "(Answer now, from the results above and without another call: {request})"
CLOSED = (
    "the model repeated a call whose result it had, so it was asked for its answer (router.weak.stop_repeats)"
)
NO_ANSWER = "Stopped: the model repeated one call and gave no answer."
_TEMPORARY = frozenset({"busy", "server_unavailable"})


@dataclass
class _First:
    """A call that ran: what it gave, when, and how often it was made again since."""

    step: int
    text: str
    ok: bool
    changes: int
    catalog: object
    again: int = 0


class Repeats:
    """What ran in one turn, and which calls of the last reply were held.

    Args:
        patience: how often a call is pointed to its result before the turn is closed.
    """

    def __init__(self, patience: int = 1) -> None:
        self._patience = patience
        self._first: dict[bytes, _First] = {}
        self._changes = 0  # calls so far that may have changed something
        self._last: bytes | None = None
        self._calls = self._held = 0  # of the last reply
        self._again = False

    def begin_reply(self) -> None:
        """Count the calls of a new reply."""
        self._calls = self._held = 0
        self._again = False

    @property
    def is_stuck(self) -> bool:
        """Return whether the last reply was nothing but held calls, and one of them was pointed out often enough."""
        return self._again and self._held == self._calls

    def hold(self, call: ToolCall, planned: PlannedCall, run: Run) -> str | None:
        """Return the sentence that answers a call that is not run again; None for one that may run."""
        self._calls += 1
        key = _key(call, planned)
        first = self._first.get(key)
        if first is None:
            return None
        if planned.repeatable:
            if first.changes != self._changes or (planned.key is None and first.catalog is not run.snapshot):
                return None
        elif key != self._last:
            return None
        first.again += 1
        self._held += 1
        self._again |= first.again > self._patience
        came = "its result stands there" if first.ok else "it failed, as it would again"
        short = len(first.text.encode()) <= SHORT
        said = f":\n{first.text}" if short else "."
        return (
            f"Not run again: step {first.step} of this turn made the same call, and {came}. Answer the person from "
            f"that, or call something else{said}"
        )

    def ran(self, call: ToolCall, planned: PlannedCall, outcome: Outcome, step: int, run: Run) -> None:
        """Keep what a call gave."""
        key = _key(call, planned)
        if not planned.repeatable and outcome.code != DENIED:
            self._changes += 1
        self._last = key
        self._first.pop(key, None)
        if not _is_temporary(outcome):
            self._first[key] = _First(step, outcome.text, outcome.ok, self._changes, run.snapshot)


def _is_temporary(outcome: Outcome) -> bool:
    """Return whether a call may come to something else when it is made again at once."""
    if outcome.ok:
        return False
    passing = isinstance(
        outcome.value,
        CallTimeoutError | ModelFailedError | LimitReachedError | TimeoutError | ConnectionError,
    )
    listing = (
        isinstance(outcome.payload, dict) and "items" in outcome.payload
    )  # the gate, which opens by itself
    return passing or listing or outcome.partial or outcome.code in _TEMPORARY


def _key(call: ToolCall, planned: PlannedCall) -> bytes:
    """Return what tells a call: its action and arguments, in a canonical form; as they came, before it has one."""
    if planned.key is not None:
        return planned.key()
    try:
        given: Any = json.loads(call.arguments) if call.arguments.strip() else {}
        return b"as it came: " + canonical([call.name, given])
    except (ValueError, RecursionError):
        return b"unread: " + f"{call.name} {call.arguments}".encode("utf-8", "surrogatepass")
