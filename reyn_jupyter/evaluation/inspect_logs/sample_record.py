"""A trial as a sample of inspect_ai's log format, and back.

Invariants: what is written holds no lone surrogate and no number that JSON does not have, which inspect's models
refuse; a trial that was written is read again as it was, whatever a model put into it.
Source: UKGovernmentBEIS/inspect_ai, log._log (EvalSample), model._chat_message, scorer._metric,
event._model, event._tool.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.store.event_codec import facts_of, facts_text
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.events import (
    ActionFinished,
    ActionResolved,
    Event,
    ModelReplied,
    ModelRequested,
    PermissionDecided,
)
from reyn_jupyter.runtime.record.verdict import Verdict

TRIAL = "reyn_trial"  # the key of a sample's metadata that holds the trial's facts, as a text
CORRECT, INCORRECT = "C", "I"
_STOPS = {
    "stop": "stop",
    "nearest": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}
_ROLES = ("system", "user", "assistant", "tool")
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_FAULTS = {
    "malformed": "parsing",
    "invalid": "parsing",
    "call_timeout": "timeout",
}  # inspect's words for errors of tools


def sample_of(
    trial: Trial, scenario: Scenario, verdicts: Mapping[str, Verdict], events: Sequence[Event]
) -> dict[str, Any]:
    """Return a trial as a sample.

    Args:
        verdicts: check → what it says; a check that does not apply gives no score.
        events: the trial's, for its messages and its transcript.
    """
    replies = [event for event in events if isinstance(event, ModelReplied)]
    stop = _stop_of(replies[-1]) if replies else "unknown"
    usage = usage_of([trial])
    uuid = f"{trial.key[:32]}-{trial.source}"
    messages, transcript = _Conversation(events, trial.model, uuid).read()
    answer = {"role": "assistant", "content": trial.answer, "source": "generate", "model": trial.model}
    if messages and messages[-1]["role"] == "assistant" and messages[-1]["content"] == trial.answer:
        answer["id"] = messages[-1]["id"]
    made: dict[str, Any] = plain({
        "id": trial.scenario,
        "epoch": trial.repeat + 1,
        "input": scenario.prompts.get(trial.phrasing) or scenario.prompt(trial.repeat)[1],
        "target": _targets(scenario),
        "messages": messages,
        "events": transcript,
        "output": {
            "model": trial.model,
            "choices": [{"message": answer, "stop_reason": stop}],
            "completion": trial.answer,
            "usage": usage,
            "time": trial.seconds,
        },
        "scores": {name: score for name, verdict in verdicts.items() if (score := _score(verdict, trial))},
        "metadata": {
            "family": scenario.family,
            "phrasing": trial.phrasing,
            "source": trial.source,
            "outcome": trial.outcome,
            TRIAL: json.dumps(json.loads(facts_text(trial))),  # as ASCII, so that it stays what it is
        },
        "model_usage": {trial.model or "unknown": usage},
        "started_at": moment(trial.started),
        "completed_at": moment(trial.started + trial.seconds),
        "total_time": trial.seconds,
        "working_time": trial.seconds,
        "uuid": uuid,
        "error": _error(trial),
        "limit": {"type": "custom", "limit": 0, "reason": trial.error} if trial.outcome == "limit" else None,
    })  # fmt: skip
    return made


def summary_of(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a list of samples shows of one."""
    kept = ("id", "epoch", "input", "target", "scores", "model_usage", "started_at", "completed_at", "total_time",
            "working_time", "uuid")  # fmt: skip
    metadata = {key: value for key, value in sample["metadata"].items() if key != TRIAL}
    error, limit = sample["error"], sample["limit"]
    return {
        **{key: sample[key] for key in kept},
        "metadata": metadata,
        "error": error["message"] if error else None,
        "limit": limit["type"] if limit else None,
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def trial_of(sample: Mapping[str, Any]) -> Trial | None:
    """Return the trial that a sample was written of; None for a sample of another program.

    Raises:
        ValueError: it holds a trial that is none.
    """
    metadata = sample.get("metadata")
    facts = metadata.get(TRIAL) if isinstance(metadata, Mapping) else None
    return facts_of(facts) if isinstance(facts, str) else None


def usage_of(trials: Iterable[Trial]) -> dict[str, Any]:
    """Return what some trials used, as inspect counts it; no cost where one is not known."""
    listed = list(trials)
    read, written = sum(t.prompt_tokens for t in listed), sum(t.completion_tokens for t in listed)
    costs = [t.cost for t in listed]
    total = None if None in costs else sum(cost for cost in costs if cost is not None)
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "total_cost": total,
    }


def moment(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601, in UTC.

    >>> moment(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat()


def plain(value: Any) -> Any:
    """Return a value that every reader of JSON takes: lone surrogates and numbers without end are replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def _targets(scenario: Scenario) -> list[str]:
    """Return what counts as right, in lines for people: what has to be said, and the calls that are needed."""
    if scenario.gold.unanswerable:
        return ["nothing fits, and the answer says so"]
    calls = [" or ".join(dict.fromkeys(call.action for call in step)) for step in scenario.gold.steps]
    return [*scenario.says, *calls]


def _score(verdict: Verdict, trial: Trial) -> dict[str, Any] | None:
    if verdict.value is None:
        return None
    value: Any = verdict.value
    if verdict.kind != "number":
        value = CORRECT if verdict.kind == "pass" else INCORRECT
    return {"value": value, "answer": trial.answer, "explanation": verdict.reason}


def _error(trial: Trial) -> dict[str, str] | None:
    if trial.outcome not in ("error", "timeout"):
        return None
    told = trial.error or trial.outcome
    return {"message": told, "traceback": told, "traceback_ansi": told}


class _Conversation:
    """A trial's messages and transcript, each message with an id: frames of messages are indexed by it."""

    def __init__(self, events: Sequence[Event], model: str, uuid: str) -> None:
        self._events, self._model, self._uuid = events, model, uuid
        self._ids = 0
        self._functions: dict[str, str] = {}  # call → the tool that the model called
        self._ends = {event.call: event for event in events if isinstance(event, ActionFinished)}
        self._denied = {e.call for e in events if isinstance(e, PermissionDecided) and e.decision == "denied"}
        self._problems = {event.call: event.problem for event in events if isinstance(event, ActionResolved)}
        self._start = events[0].at if events else 0.0

    def read(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the messages (what was new in each request, and the last reply) and the events of model and tools."""
        messages: list[dict[str, Any]] = []
        transcript: list[dict[str, Any]] = []
        asked: tuple[ModelRequested, list[dict[str, Any]]] | None = None
        last: dict[str, Any] | None = None
        resolved: dict[str, ActionResolved] = {}
        for event in self._events:
            if isinstance(event, ModelRequested):
                sent = [message for message in event.messages if message.get("role") in _ROLES]
                asked, last = (event, [self._message(message) for message in sent]), None
                messages += asked[1]
            elif isinstance(event, ModelReplied):
                calls = [{"id": c["id"], "function": c} for c in event.tool_calls]
                reply = self._message({"role": "assistant", "content": event.text, "tool_calls": calls})
                last = reply if event.error is None else last
                if asked is not None:
                    transcript.append(self._model_event(*asked, event, reply))
            elif isinstance(event, ActionResolved):
                resolved[event.call] = event
            elif isinstance(event, ActionFinished) and event.call in resolved:
                transcript.append(self._tool_event(resolved[event.call], event))
        if last is not None:
            messages.append(last)
        return messages, transcript

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        if isinstance(content, list):  # a text with attachments, which stay in the study
            content = "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content)
        self._ids += 1
        made: dict[str, Any] = {
            "id": f"{self._uuid}-{self._ids}",
            "role": message["role"],
            "content": content or "",
        }
        if message["role"] == "assistant":
            made |= {"source": "generate", "model": self._model}
            if calls := message.get("tool_calls"):
                made["tool_calls"] = [_call(call) for call in calls]
                self._functions |= {call["id"]: call["function"] for call in made["tool_calls"]}
        elif message["role"] == "tool":
            call = message.get("tool_call_id")
            made |= {"tool_call_id": call, "function": self._functions.get(str(call))}
            made["error"] = self._fault(self._ends.get(str(call)))
        return made

    def _fault(self, end: ActionFinished | None) -> dict[str, str] | None:
        """Return why a call failed, in the words that the model saw: the viewer shows these in place of the content."""
        if end is None or end.ok:
            return None
        problem = end.code or self._problems.get(end.call) or ""
        kind = "approval" if end.call in self._denied else _FAULTS.get(problem, "unknown")
        return {"type": kind, "message": end.output or end.error or "the call failed"}

    def _model_event(
        self,
        asked: ModelRequested,
        sent: list[dict[str, Any]],
        replied: ModelReplied,
        reply: dict[str, Any],
    ) -> dict[str, Any]:
        read, written = replied.prompt_tokens, replied.completion_tokens
        usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        choices = [] if replied.error else [{"message": reply, "stop_reason": _stop_of(replied)}]
        return {
            "event": "model",
            "uuid": f"{self._uuid}-step-{asked.step}-{asked.repeat}",
            "timestamp": moment(asked.at),
            "completed": moment(replied.at),
            "working_start": max(0.0, asked.at - self._start),
            "working_time": replied.seconds,
            "model": self._model,
            "input": sent,
            "tools": [],
            "tool_choice": _CHOICES.get(asked.tool_choice, {"name": asked.tool_choice}),
            "config": {},
            "output": {
                "model": self._model,
                "choices": choices,
                "completion": replied.text,
                "usage": usage,
                "time": replied.seconds,
            },
            "error": replied.error,
            "retries": replied.retries,
        }

    def _tool_event(self, asked: ActionResolved, end: ActionFinished) -> dict[str, Any]:
        fault = self._fault(end)
        return {
            "event": "tool",
            "uuid": f"{self._uuid}-{asked.call}",
            "timestamp": moment(asked.at),
            "completed": moment(end.at),
            "working_start": max(0.0, asked.at - self._start),
            "working_time": end.seconds,
            "id": asked.call,
            "type": "function",
            "function": asked.wrapper,
            "arguments": asked.arguments
            if isinstance(asked.arguments, dict)
            else {"written": asked.arguments},
            "result": end.output,
            "error": fault,
            "failed": fault is not None,
        }


def _stop_of(replied: ModelReplied) -> str:
    return "unknown" if replied.error is not None else _STOPS.get(replied.finish_reason, "unknown")


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    written = function.get("arguments") or "{}"
    made = {"id": str(call["id"]), "function": str(function["name"]), "type": "function"}
    try:
        arguments = json.loads(written)
    except (ValueError, RecursionError) as error:
        return {**made, "arguments": {"written": written}, "parse_error": f"no JSON: {error}"}
    if not isinstance(arguments, dict):
        return {**made, "arguments": {"written": written}, "parse_error": "the arguments are no object"}
    return {**made, "arguments": arguments}
