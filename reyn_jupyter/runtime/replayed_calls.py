"""The finished calls of an earlier run, whose outcomes a replay gives again instead of running the actions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reyn_jupyter.models.base import canonical
from reyn_jupyter.runtime.events import ActionFinished, ActionResolved, Event
from reyn_jupyter.runtime.run import Outcome


class ReplayedCalls:
    """Outcomes of finished calls, by action and arguments; an equal call takes the first that is left.

    Args:
        events: the earlier run's events.
        live_from: from this step on, pure and read actions run again; None takes every call from the record.
    """

    def __init__(self, events: Iterable[Event], live_from: int | None) -> None:
        self._live_from = live_from
        self._left: dict[bytes, list[ActionFinished]] = {}
        resolved: dict[str, ActionResolved] = {}
        for event in events:
            if isinstance(event, ActionResolved):
                resolved[event.call] = event
            elif isinstance(event, ActionFinished) and event.name is not None and event.call in resolved:
                arguments = resolved[event.call].inner
                self._left.setdefault(_key(event.name, arguments), []).append(event)

    def runs_again(self, step: int, repeatable: bool) -> bool:
        return repeatable and self._live_from is not None and step >= self._live_from

    def take(self, name: str, arguments: Any) -> Outcome | None:
        """Return the outcome of an equal call, or None when there was none."""
        left = self._left.get(_key(name, arguments))
        if not left:
            return None
        event = left.pop(0) if len(left) > 1 else left[0]
        payload: Any = {"error": event.error} if event.error else event.output
        return Outcome(
            event.output,
            event.ok,
            payload,
            None,
            event.blob,
            event.content_kind or "text",
            event.size,
            name,
            event.error,
        )


def _key(name: str, arguments: Any) -> bytes:
    return canonical([name, arguments])
