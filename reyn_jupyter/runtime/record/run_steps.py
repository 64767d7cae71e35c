"""The steps of a run and their tool calls, put together from its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reyn_jupyter.runtime.record.events import (
    ActionFinished,
    ActionProgressed,
    ActionResolved,
    Event,
    ModelReplied,
    ModelRequested,
    PermissionDecided,
    RetryScheduled,
)


@dataclass(frozen=True)
class Call:
    """One tool call: what was asked, what it resolved to, what the gate said, what came back.

    `decision` is the gate's word before the call ran; `further` are those on what its handler asked for while it ran.
    `progress` is its last word on how far it is.
    """

    resolved: ActionResolved
    decision: PermissionDecided | None = None
    finished: ActionFinished | None = None
    further: tuple[PermissionDecided, ...] = ()
    progress: ActionProgressed | None = None

    @property
    def id(self) -> str:
        return self.resolved.call

    @property
    def denied(self) -> bool:
        """Return whether the gate denied the call, or denied what it asked for and it failed."""
        if self.decision is not None and self.decision.decision == "denied":
            return True
        return self.ok is False and any(each.decision == "denied" for each in self.further)

    @property
    def label(self) -> str:
        """The resolved action where there is one, else the wrapper."""
        return self.resolved.name or self.resolved.wrapper

    @property
    def ok(self) -> bool | None:
        """True or False once it finished, None while it runs or when the log stops before."""
        return None if self.finished is None else self.finished.ok


@dataclass(frozen=True)
class Step:
    """One model call and the tool calls it asked for. A call by hand is a step without a model."""

    number: int
    requested: ModelRequested | None = None
    replied: ModelReplied | None = None
    calls: tuple[Call, ...] = ()
    retries: tuple[RetryScheduled, ...] = ()


def attached_bytes(steps: Sequence[Step]) -> dict[str, int]:
    """Return the bytes of images and sounds that went to the model with the result of each call."""
    found: dict[str, int] = {}
    for message in (message for step in steps if step.requested for message in step.requested.messages):
        for each in message.get("attachments") or ():
            call = str(message.get("tool_call_id"))
            found[call] = found.get(call, 0) + int(each.get("bytes") or 0)
    return found


def steps_of(events: Sequence[Event]) -> tuple[Step, ...]:
    """Return the steps of a run, in their order, with the calls of each."""
    requested: dict[int, ModelRequested] = {}
    replied: dict[int, ModelReplied] = {}
    retries: dict[int, list[RetryScheduled]] = {}
    resolved: dict[int, dict[str, ActionResolved]] = {}
    decisions: dict[str, list[PermissionDecided]] = {}
    progress: dict[str, ActionProgressed] = {}
    finished: dict[str, ActionFinished] = {}
    for event in events:
        match event:
            case ModelRequested():
                requested[event.step] = event
            case ModelReplied():
                replied[event.step] = event
            case RetryScheduled():
                retries.setdefault(event.step, []).append(event)
            case ActionResolved():
                resolved.setdefault(event.step, {})[event.call] = event
            case PermissionDecided():
                decisions.setdefault(event.call, []).append(event)
            case ActionProgressed():
                progress[event.call] = event
            case ActionFinished():
                finished[event.call] = event
            case _:
                pass
    return tuple(
        Step(
            number,
            requested.get(number),
            replied.get(number),
            tuple(
                _call(event, decisions.get(call, ()), progress.get(call), finished.get(call))
                for call, event in resolved.get(number, {}).items()
            ),
            tuple(retries.get(number, ())),
        )
        for number in sorted({*requested, *replied, *resolved})
    )


def _call(
    resolved: ActionResolved,
    decisions: Sequence[PermissionDecided],
    progress: ActionProgressed | None,
    finished: ActionFinished | None,
) -> Call:
    return Call(resolved, decisions[0] if decisions else None, finished, tuple(decisions[1:]), progress)
