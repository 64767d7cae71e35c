"""How a run ended, in the terms of the person who asked: what its answer rests on, or why there is none.

Invariant: the record alone decides. A model's own word that it looked at data, or is done, counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from reyn_jupyter.models.written_calls import is_call
from reyn_jupyter.runtime.record.events import (
    ActionFinished,
    ActionResolved,
    ModelReplied,
    RunEnded,
    RunStarted,
)

# Any other reason than these may have cut an answer short.
_COMPLETE = frozenset({"stop", "tool_calls", ""})
_SENTENCE_END = re.compile(r"(?<=[.!?:])[\"”’')*_]*\s+")
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+\S")
_LONGEST_QUESTION = 2_000  # characters of an answer that may be a question


class CallRecord(Protocol):
    """What of a call counts here; `runtime.record.run_steps.Call` is one."""

    @property
    def resolved(self) -> ActionResolved: ...
    @property
    def finished(self) -> ActionFinished | None: ...
    @property
    def denied(self) -> bool: ...


class RunOutcome(StrEnum):
    """How a run ended."""

    RUNNING = "running"
    FROM_DATA = "answered from data"
    CHANGED = "made changes"
    FROM_CONVERSATION = "answered from the conversation"
    WITHOUT_DATA = "answered without any data"
    CALL_AS_TEXT = "wrote a call as text"
    RAN_ON = "ran on until the limit of tokens"
    ENDED_EARLY = "ended for a reason of the provider's"
    NO_ANSWER = "gave no answer"
    NEAREST_PASSAGE = "showed the nearest passages"
    ASKED_BACK = "asked back"
    DECLINED = "declined"
    DENIED = "denied"
    LIMIT = "stopped at a limit"
    ERROR = "failed"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    CALLED = "called"
    CALL_FAILED = "call failed"


# A model says in the reason why it stopped that it declines, or that it quotes passages that may be no answer.
_BY_REASON = {
    **dict.fromkeys(("refusal", "content_filter", "declined"), RunOutcome.DECLINED),
    "nearest": RunOutcome.NEAREST_PASSAGE,
}
KNOWN_ENDS = frozenset({*_COMPLETE, *_BY_REASON, "length"})  # of a reply
_BY_STATUS = {
    "error": RunOutcome.ERROR,
    "interrupted": RunOutcome.INTERRUPTED,
    "cancelled": RunOutcome.CANCELLED,
    "limit": RunOutcome.LIMIT,
}


def outcome_of(
    started: RunStarted, ended: RunEnded | None, last: ModelReplied | None, calls: Sequence[CallRecord]
) -> RunOutcome:
    """Return how a run ended; `RUNNING` for one whose record has no end.

    Args:
        last: the model's last reply, None where no model was asked.
    """
    if ended is None:
        return RunOutcome.RUNNING
    if ended.status in _BY_STATUS:
        return _BY_STATUS[ended.status]
    if started.model is None:
        return _outcome_by_hand(calls)
    reason = last.finish_reason if last is not None else ""
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    if is_call(ended.answer):
        return RunOutcome.CALL_AS_TEXT
    if reason not in _COMPLETE:
        return RunOutcome.RAN_ON if reason == "length" else RunOutcome.ENDED_EARLY
    return _outcome_of_answer(started, ended.answer, calls)


def _outcome_of_answer(started: RunStarted, answer: str, calls: Sequence[CallRecord]) -> RunOutcome:
    """Return what an answer that came to its end rests on."""
    if any(has_changed(call) for call in calls):
        return RunOutcome.CHANGED
    if is_question(answer):
        return RunOutcome.ASKED_BACK
    if any(informs_answer(call) for call in calls):
        return RunOutcome.FROM_DATA
    if any(call.denied for call in calls):
        return RunOutcome.DENIED
    if not answer.strip():
        return RunOutcome.NO_ANSWER
    if started.sent:  # the prompt brought its data along
        return RunOutcome.FROM_DATA
    return RunOutcome.FROM_CONVERSATION if started.history_tokens else RunOutcome.WITHOUT_DATA


def is_question(answer: str) -> bool:
    """Return whether an answer only asks something: each of its sentences is a question, apart from a list of choices.

    >>> is_question("Which column do you mean?\\n- a\\n- b"), is_question("It is 4. Shall I plot it?")
    (True, False)
    """
    if len(answer) > _LONGEST_QUESTION or "?" not in answer:
        return False
    lines = [line for line in answer.splitlines() if line.strip() and not _ITEM.match(line)]
    sentences = [each for line in lines for each in _SENTENCE_END.split(line.strip()) if each]
    return bool(sentences) and all(each.rstrip("\"”’')*_ ").endswith("?") for each in sentences)


def _outcome_by_hand(calls: Sequence[CallRecord]) -> RunOutcome:
    if any(call.denied for call in calls):
        return RunOutcome.DENIED
    done = all(call.finished is not None and call.finished.ok for call in calls)
    return RunOutcome.CALLED if done else RunOutcome.CALL_FAILED


_DESCRIBING = frozenset({"variable"})  # categories whose results describe what there is


def informs_answer(call: CallRecord) -> bool:
    """Return whether a call brought something that an answer can rest on: an action's result, or a part of a blob."""
    finished = call.finished
    return finished is not None and finished.ok and bool(call.resolved.name or finished.sources)


def yields_result(call: CallRecord) -> bool:
    """Return whether a call came to data that can be worked on, as `Trace.result` gives it.

    That is less than what informs an answer: not a listing or another word of the catalog's own, not a description of
    a variable, not a change.
    """
    done, resolved = call.finished, call.resolved
    return (
        informs_answer(call)
        and done is not None
        and not done.changes
        and done.content_kind is not None
        and resolved.name is not None
        and resolved.purity not in (None, "write")
        and resolved.name.partition("__")[0] not in _DESCRIBING
    )


def has_changed(call: CallRecord) -> bool:
    """Return whether a call did something that is not undone by forgetting its result."""
    if call.finished is None or not call.finished.ok or call.resolved.name is None:
        return False
    return bool(call.finished.changes) or call.resolved.purity in ("write", "exec")
