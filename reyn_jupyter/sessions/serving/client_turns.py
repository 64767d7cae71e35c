"""The turns of A2A clients: each message begins one, in the history of its client and context.

Invariants: a client is no person: its turn has no more rights than a model has, and what asks for consent asks the
person in the notebook. Of all clients together there are never more turns and calls under way than `ConnectedClients`
takes. A task ends with its turn, and a turn with its task: one that is cancelled leaves a whole record. What leaves is
the answer alone, redacted and bounded.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from a2a.helpers import get_data_parts, get_text_parts, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Message, TaskState
from cachetools import LRUCache

from reyn_jupyter.backends.a2a.remote_peer import DEPTH_KEY
from reyn_jupyter.backends.serving.connected_clients import (
    MOST_CALLS,
    MOST_WAITING,
    ConnectedClients,
    TooManyCallsError,
)
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.runtime.engine import also_tell
from reyn_jupyter.runtime.record.events import ActionResolved, InnerEvent
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.run import new_run_id
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.runs import background_run
from reyn_jupyter.sessions.runs.turn_options import TurnOptions
from reyn_jupyter.sessions.serving.client_consent import ask_person
from reyn_jupyter.sessions.serving.client_progress import ClientProgress
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import for_models, shorten

LONGEST_REQUEST = 100_000  # characters
LONGEST_ANSWER = 1_000_000  # characters
MOST_CONTEXTS = 100  # histories that are kept
_DEEPEST = 1_000.0  # that is believed
_LONGEST_STEP = 120  # characters of a word on the progress


class _History:
    """The history of one client in one context."""

    def __init__(self) -> None:
        self.conversation = Conversation(new_run_id())
        self.lock = asyncio.Lock()  # one turn at a time: the next one goes on where it ended


class ClientTurns(AgentExecutor):
    """Runs turns for clients. All of it belongs on the engine's loop.

    Args:
        parts: the session's.
        clients: counts them, and bounds how many run.
        wait: seconds that a question stays open.
    """

    def __init__(self, parts: Parts, clients: ConnectedClients, wait: float) -> None:
        self._parts = parts
        self._clients = clients
        self._wait = wait
        self._histories: LRUCache[tuple[str, str], _History] = LRUCache(MOST_CONTEXTS)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run the turn that a message asks for, and say how it ended."""
        assert context.message is not None and context.task_id is not None and context.context_id is not None
        key, label = context.call_context.state["client"]
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        request, problem = _request(context.message)
        if problem:
            await _say(updater, TaskState.TASK_STATE_REJECTED, problem)
            return
        history = self._histories.setdefault((key, context.context_id), _History())
        try:
            with self._clients.call(key) as end:
                trace = await self._turn(request, label, _depth(context.message), history, updater)
                end(trace.status == "ok")
        except TooManyCallsError:
            busy = f"Not begun: {MOST_CALLS} turns and calls run at once here, and {MOST_WAITING} more wait."
            await _say(updater, TaskState.TASK_STATE_REJECTED, f"{busy} Ask fewer at a time.")
            return
        answer = shorten(self._parts.redactor.text(trace.answer), LONGEST_ANSWER)
        if trace.status == "ok":
            await updater.add_artifact([new_text_part(answer)], name="answer", last_chunk=True)
            await updater.complete()
        else:
            hint = trace.ended.hint if trace.ended is not None else None
            words = (
                for_models(" ".join(filter(None, (trace.error, hint)))) or f"The turn ended: {trace.status}."
            )
            await _say(updater, TaskState.TASK_STATE_FAILED, self._parts.redactor.text(words))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Say that a task is cancelled; its turn is cancelled with it."""
        assert context.task_id is not None and context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def _turn(
        self, request: str, label: str, depth: int, history: _History, updater: TaskUpdater
    ) -> Trace:
        progress = _TurnProgress(updater)
        options = TurnOptions(
            attended=False,
            ask=ask_person(self._parts.questions, self._wait, progress),
            client=label,
            depth=depth,
            run=new_run_id(),
        )
        async with history.lock, self._clients.places:
            await updater.start_work()
            also_tell(progress.hear)
            sender = asyncio.create_task(progress.run())
            try:
                return await background_run.watched_turn(
                    self._parts, request, options, conversation=history.conversation
                )
            finally:
                sender.cancel()
                await asyncio.wait([sender])


class _TurnProgress(ClientProgress):
    """Says as status messages which actions a turn calls, and how far they are."""

    def __init__(self, updater: TaskUpdater) -> None:
        async def send(number: float, total: float | None, message: str | None) -> None:
            of = "" if total is None else f" ({number:g} of {total:g})"
            if message or of:
                await _say(updater, TaskState.TASK_STATE_WORKING, f"{message or ''}{of}".strip())

        super().__init__(send)

    def hear(self, event: Any) -> None:
        """Take an event of the turn's run, or of a run within it."""
        plain = event.event if isinstance(event, InnerEvent) else event
        if isinstance(plain, ActionResolved):
            self.says(plain.name or plain.wrapper)
        else:
            super().hear(event)


def _request(message: Message) -> tuple[str, str]:
    """Return the request of a message, or why it cannot be taken."""
    texts = [*get_text_parts(message.parts), *(json.dumps(each) for each in get_data_parts(message.parts))]
    if any(part.WhichOneof("content") in ("raw", "url") for part in message.parts):
        return "", "Files and links are not taken here: put what is asked into text."
    request = visible("\n\n".join(texts))
    if not request.strip():
        return "", "Nothing was asked: the message has no text."
    if len(request) > LONGEST_REQUEST:
        return "", f"A request has at most {LONGEST_REQUEST:,} characters."
    return request, ""


def _depth(message: Message) -> int:
    """Return how many peers ask one another already, as the client says; 0 where it says nothing of that."""
    said = dict(message.metadata).get(DEPTH_KEY)
    return int(min(said, _DEEPEST)) if isinstance(said, float) and said >= 0 else 0


async def _say(updater: TaskUpdater, state: Any, words: str) -> None:
    most = _LONGEST_STEP if state == TaskState.TASK_STATE_WORKING else LONGEST_ANSWER
    message = updater.new_agent_message([new_text_part(shorten(words, most))])
    await updater.update_status(state, message=message)
