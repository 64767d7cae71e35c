"""A run once more: from its record, or on another model, or live from a step on.

Invariant: what changed the world is never done again unasked. Action results come from the record where call and
arguments are equal; with a model or after a step, pure and read actions run again; anything else asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from reyn_jupyter.config.settings import Weak
from reyn_jupyter.config.trust_limits import TASTE
from reyn_jupyter.models.base import (
    TEXT_ALONE,
    Model,
    ModelError,
    Reasoning,
    Request,
    Response,
    Tier,
    ToolCall,
    Usage,
    canonical,
    media_taken,
)
from reyn_jupyter.models.providers.wire import watch
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.router.request.forced_choice import Known
from reyn_jupyter.runtime.record.events import ActionFinished, ActionResolved, Event, ModelReplied
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import Outcome, new_run_id
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.runs import run_lifecycle
from reyn_jupyter.sessions.runs.turn_options import TurnOptions
from reyn_jupyter.support.text import count

HOT = "action_retrieval.hot_list_n"
# What a record may set of a replay: wording and layout, never a limit, since a clone may bring the record.
RECORDED_KEYS = frozenset({*TASTE, "repair", "forgive", "hot_list_n"})
WEAK_KEYS = frozenset(Weak.model_fields)


class ReplayedModel:
    """Gives a run's replies again, in order; from step `live_from` on, a live model answers."""

    real = False

    def __init__(self, trace: Trace, live_from: int | None, live: Model | None) -> None:
        self._replies = [step.replied for step in trace.steps if step.replied is not None]
        self._live_from = live_from
        self._live = live
        self._step = 0
        self.label = live.label if live is not None else f"replay of {trace.model or 'a run'}"
        self.host = live.host if live is not None else None
        self.media = media_taken(live) if live is not None else TEXT_ALONE
        self.choice_form = _choice_form(trace) if live is None else None
        self.tier: Tier = live.tier if live is not None else _tier(trace)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        self._step += 1
        if self._live is not None and self._live_from is not None and self._step >= self._live_from:
            return await self._live.complete(request, on_text)
        watch()  # what the record answers goes nowhere
        if self._step > len(self._replies):
            raise ModelError(
                "miss",
                f"the replayed run has no reply for step {self._step}: it ended after {len(self._replies)}",
                "Replay it with a model: %reyn replay RUN -m MODEL",
            )
        return _response(self._replies[self._step - 1], on_text)


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
                self._left.setdefault(_call_key(event.name, arguments), []).append(event)

    def runs_again(self, step: int, repeatable: bool) -> bool:
        return repeatable and self._live_from is not None and step >= self._live_from

    def take(self, name: str, arguments: Any) -> Outcome | None:
        """Return the outcome of an equal call, or None when there was none."""
        left = self._left.get(_call_key(name, arguments))
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
            event.code,
            sources=event.sources,
            frame=event.frame,
            note=event.note,
            origins=event.origins,
            advice=event.advice,
        )


def _call_key(name: str, arguments: Any) -> bytes:
    return canonical([name, arguments])


async def replay(
    parts: Parts, wanted: str | int | None, model: Any, from_step: int | None, approve: str
) -> Trace:
    """Replay a run; a fresh run of kind "replay" is recorded.

    Args:
        wanted: the run, as `RunStore.find` takes it.
        model: another model for every step; None keeps the recorded replies.
        from_step: from this step on (1-based) the model is asked again.
        approve: as for `ask`.

    Raises:
        RunNotFoundError, RunLogError: there is no such run, or it cannot be read.
        ValueError: a run by hand, of an MCP client, or an inner one has no model to replay.
    """
    trace = parts.runs.load(wanted)
    if trace.started.parent is not None:
        around = trace.started.parent.run[-12:]
        raise ValueError(
            f"this is an inner run, made by a call; replay the run around it: %reyn replay {around}"
        )
    if trace.started.run_kind == "manual":
        raise ValueError("this run is a call by hand; run it again with %reyn invoke, or see %reyn script")
    if trace.started.run_kind == "client":
        raise ValueError("this run is a call of an MCP client, without a model; see %reyn script")
    steps = len(trace.steps)
    if from_step is not None and not 1 <= from_step <= steps:
        raise ValueError(f"the run has {count(steps, 'step')}, so --from takes 1 to {steps}")
    live_from = from_step if from_step is not None else 1 if model is not None else None
    live = None
    if live_from is not None:
        live = parts.find_model(model) if model is not None else _own_model(parts, trace)
    stand_in = live if live_from == 1 and live is not None else ReplayedModel(trace, live_from, live)
    recorded = ReplayedCalls(trace.events, live_from)
    settings = trace.started.settings
    options = TurnOptions(
        model=stand_in,
        approve=approve,  # type: ignore[arg-type]
        kind="replay",
        keys=_keys(settings) if model is None else {"router.surface": settings.get("surface")},
    )
    return await run_lifecycle.turn(
        parts,
        trace.prompt,
        options,
        conversation=Conversation(new_run_id(), search=_searched(trace), opened=_opened(trace)),
        recorded=recorded,
        replay_of=trace.run,
    )


def _keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the router's keys as the run had them; others, which no run of ours records, are left out."""
    return {
        HOT if key == "hot_list_n" else f"router.weak.{key}" if key in WEAK_KEYS else f"router.{key}": value
        for key, value in settings.items()
        if key in RECORDED_KEYS | WEAK_KEYS
    }


def _own_model(parts: Parts, trace: Trace) -> Model:
    """Return the run's model, where it ran: a configured one, never another host's under the same name.

    Raises:
        ModelError: it is not configured any more.
    """
    for name in (None, "light", "standard", "strong", trace.model):
        with suppress(ModelError):
            model = parts.find_model(name)
            if (model.label, model.host) == (trace.model, trace.started.host):
                return model
    where = f" at {trace.started.host}" if trace.started.host else ""
    raise ModelError(
        "configuration",
        f"The run's model, {trace.model}{where}, is not configured any more.",
        "Name one: %reyn replay RUN -m MODEL",
    )


def _opened(trace: Trace) -> bool:
    """Return whether the run named an action before any listing: its conversation had seen the catalog before it."""
    for call in trace.calls:
        if call.resolved.problem == "gated" or call.resolved.wrapper in ("list_actions", "search_actions"):
            return False
        if call.resolved.name is not None:
            return True
    return False


def _searched(trace: Trace) -> bool:
    """Return whether the model of the run was offered search."""
    return any(
        step.requested is not None and "search_actions" in step.requested.tools for step in trace.steps
    )


def _choice_form(trace: Trace) -> Known:
    """Return how the run's first forced choice was forced, so that its replies are asked for as often as they were."""
    for step in trace.steps:
        if step.requested is not None and step.requested.choice_form is not None:
            return step.requested.choice_form
        if step.requested is not None and step.requested.not_forced is not None:
            return "free"
    return "named"


def _tier(trace: Trace) -> Tier:
    tier = trace.started.tier
    return tier if tier in ("light", "standard", "strong") else "standard"  # type: ignore[return-value]


def _response(event: ModelReplied, on_text: Callable[[str], None] | None) -> Response:
    if event.error is not None:
        if event.error_kind in ("tool_choice", "context_too_long"):  # the loop goes on, as it did then
            raise ModelError(event.error_kind, event.error)  # type: ignore[arg-type]
        raise ModelError(
            "miss", f"the recorded call failed: {event.error}", "Replay it with a model: -m MODEL"
        )
    if on_text is not None and event.text:
        on_text(event.text)
    calls = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in event.tool_calls)
    usage = Usage(
        event.prompt_tokens,
        event.completion_tokens,
        event.cached_tokens,
        event.estimated,
        event.reasoning_tokens,
        event.cache_write_tokens,
    )
    thoughts = Reasoning(event.reasoning)
    finish, mark = event.finish_reason, event.fingerprint
    return Response(event.text, calls, finish, usage, 0.0, "", mark, reasoning=thoughts)
