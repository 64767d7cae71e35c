"""The tool calls that a model asks for, from its reply to their results in the history.

Invariant: every call gets exactly one result, and one pair of events, whether it ran, was one too many, or was still
open when the turn ended; no two calls of a conversation have the same id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reyn_jupyter.models.seam import Message, Response, ToolCall
from reyn_jupyter.router.asking import Asking, Gathered
from reyn_jupyter.router.conversation import Conversation
from reyn_jupyter.router.replies import distinct, sendable
from reyn_jupyter.router.rounds import Rounds
from reyn_jupyter.router.surface import Offer
from reyn_jupyter.runtime.events import ActionFinished
from reyn_jupyter.runtime.invoke import Invoker
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.runtime.wrappers import Wrappers


class Calls:
    """Runs, or refuses, what a turn's replies call.

    Args:
        services, invoker: what a call is run with.
        conversation: whose ids are taken.
        asking: redacts what is kept of a reply.
        refresh: called after an action that may have changed resources.
    """

    def __init__(
        self,
        services: Services,
        invoker: Invoker,
        conversation: Conversation,
        asking: Asking,
        refresh: Callable[[Run], Any],
    ) -> None:
        self._services = services
        self._invoker = invoker
        self._conversation = conversation
        self._asking = asking
        self._refresh = refresh
        self._given: set[str] = set()  # ids of the tool calls of the turn that goes on

    async def run(self, state: Gathered, response: Response, made: Offer, run: Run, most: int) -> None:
        """Run the calls of a reply, at most so many; the others are answered as not run."""
        calls = self._distinct(response.tool_calls)
        shown = self._asking.redacted(replace(response, tool_calls=calls[: most + 1]))
        sent = tuple(sendable(call) for call in shown.tool_calls)
        state.messages.append(Message("assistant", shown.text, sent))
        state.pending = calls[: most + 1]
        rounds = Rounds(Wrappers(self._services, self._invoker, made.encoder), run, self._refresh)

        def done(call: ToolCall, text: str) -> None:
            state.messages.append(Message("tool", text, (), call.id))
            state.pending = tuple(other for other in state.pending if other is not call)

        await rounds.run(calls[:most], state.step, done)
        if dropped := len(calls) - most if len(calls) > most else 0:
            state.notes.append(f"{dropped:,} of {len(calls):,} tool calls in one completion were not run")
            why = f"{dropped:,} tool calls were not run: at most {most} in one completion"
            texts = [
                self._refuse(call, run, state.step, why, "Send fewer calls at a time.")
                for call in calls[most:]
            ]
            done(calls[most], texts[0])

    def refuse_all(self, calls: Sequence[ToolCall], run: Run, step: int, why: str) -> None:
        """Record calls that have no place in the history as not run."""
        for call in self._distinct(calls):
            self._refuse(call, run, step, why, "")

    def settle(self, state: Gathered, run: Run, why: str, hint: str) -> None:
        """Give every call that is still open its result, and its events where it has none yet."""
        for call in state.pending:
            text = _finished_output(run, call.id)
            if text is None:
                text = self._refuse(call, run, state.step, why, hint)
            state.messages.append(Message("tool", text, (), call.id))
        state.pending = ()

    def release(self) -> None:
        """The turn is in the conversation, which knows its ids from there."""
        self._conversation.reserved -= self._given

    def _distinct(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls with ids that no other call of the conversation has."""
        made = distinct(calls, self._conversation.call_ids)
        own = {call.id for call in made}
        self._given |= own
        self._conversation.reserved |= own
        return made

    def _refuse(self, call: ToolCall, run: Run, step: int, why: str, hint: str) -> str:
        """Answer a call that is not run, and record that."""
        wrappers = Wrappers(self._services, self._invoker)
        return wrappers.refuse(call.id, call.name, call.arguments, run, step, why, hint).text


def _finished_output(run: Run, call: str) -> str | None:
    for event in reversed(run.log.events):
        if isinstance(event, ActionFinished) and event.call == call:
            return event.output
    return None
