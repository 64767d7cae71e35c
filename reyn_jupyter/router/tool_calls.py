"""The tool calls of a turn, from the model's reply to their results in the history.

Invariants: every call gets exactly one result, and one pair of events, whether it ran, was one too many, or was still
open when the turn ended; no two calls of a conversation have the same id. Reads of one step run beside each
other, equal ones once; a write is a barrier: what stands before it finishes first, and what stands after it waits, is
planned afterwards, and sees what the write changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from reyn_jupyter.catalog.names import CHOOSE, NameEncoder
from reyn_jupyter.models.base import Attachment, Message, ToolCall
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.router.model_call import LARGE, Reply, TurnState
from reyn_jupyter.router.reply.normalize_reply import distinct, sendable
from reyn_jupyter.runtime.call.invoke import PlannedCall
from reyn_jupyter.runtime.call.wrappers import Wrappers
from reyn_jupyter.runtime.record.events import ActionFinished, Flag
from reyn_jupyter.runtime.run import Outcome, Run
from reyn_jupyter.support.text import count

_REPEATED: Flag = "repeated"
_LEFT_OUT: Flag = "left_out"


class ToolCalls:
    """Runs, or refuses, what the replies of a turn call.

    Args:
        wrappers: plans each call.
        conversation: whose ids are taken.
        refresh: called after an action that may have changed resources.
        attach: gives the images and sounds of a result that the model takes.
    """

    def __init__(
        self,
        wrappers: Wrappers,
        conversation: Conversation,
        refresh: Callable[[Run], Awaitable[Any]],
        attach: Callable[[Outcome], Awaitable[tuple[Attachment, ...]]],
    ) -> None:
        self._attach = attach
        self._wrappers = wrappers
        self._conversation = conversation
        self._refresh = refresh
        self._ids: set[str] = set()  # of the tool calls of the turn that goes on

    async def run(
        self,
        state: TurnState,
        reply: Reply,
        encoder: NameEncoder,
        run: Run,
        most: int,
        most_writes: int,
        flags: tuple[Flag, ...] = (),
    ) -> None:
        """Run the calls of a reply, at most so many; the others are answered as not run.

        Args:
            encoder: decodes the function names of direct tools.
            most: tool calls of one step that are run.
            most_writes: those of them that are run though they may change something.
            flags: what is told of each call in the record besides.
        """
        calls = self._distinct(reply.raw.tool_calls)
        kept = zip(calls[: most + 1], reply.kept.tool_calls, strict=False)
        sent = tuple(sendable(ToolCall(call.id, shown.name, shown.arguments)) for call, shown in kept)
        state.messages.append(Message("assistant", reply.kept.text, sent, reasoning=reply.kept.reasoning))
        state.pending = list(calls[: most + 1])
        await self._run_all(state, calls[:most], encoder, run, most_writes, flags)
        if extra := calls[most:]:
            state.notes.append(f"{len(extra):,} of {len(calls):,} tool calls in one step were not run")
            why = f"{len(extra):,} tool calls were not run: at most {most} in one completion"
            hint = "Send fewer calls at a time."
            texts = [self._refuse(call, run, state.step, why, hint) for call in extra]
            self._settle_one(state, extra[0], Message("tool", texts[0]))

    def refuse_all(self, calls: Sequence[ToolCall], run: Run, step: int, why: str) -> None:
        """Record calls that have no place in the history as not run."""
        for call in self._distinct(calls):
            self._refuse(call, run, step, why, "")

    def settle(self, state: TurnState, run: Run, why: str, hint: str) -> None:
        """Give every call that is still open its result, and its events where it has none yet."""
        for call in list(state.pending):
            text = _finished_output(run, call.id)
            if text is None:
                text = self._refuse(call, run, state.step, why, hint)
            self._settle_one(state, call, Message("tool", text))

    def release(self) -> None:
        """Give the turn's ids back: it is in the conversation, which knows them from there."""
        self._conversation.reserved -= self._ids

    async def _run_all(
        self,
        state: TurnState,
        calls: Sequence[ToolCall],
        encoder: NameEncoder,
        run: Run,
        most_writes: int,
        flags: tuple[Flag, ...],
    ) -> None:
        """Run calls: repeatable ones that stand in one stretch beside each other, all others alone, in order."""

        async def plan(call: ToolCall) -> PlannedCall:
            given = call.id, call.name, call.arguments, run, state.step, encoder, flags
            if len(call.arguments) < LARGE:
                return self._wrappers.plan(*given)
            return await asyncio.to_thread(self._wrappers.plan, *given)

        stretch: list[tuple[ToolCall, PlannedCall]] = []
        writes = 0
        if state.repeats is not None:
            state.repeats.begin_reply()
        for call in calls:
            planned = await plan(call)
            if planned.repeatable:
                stretch.append((call, self._held(state, call, planned, run, flags) or planned))
                continue
            if stretch:
                await self._run_stretch(state, stretch, run)
                stretch = []
                planned = await plan(call)
            held = self._held(state, call, planned, run, flags)
            if held is None and not planned.repeatable and planned.key is not None:
                writes += 1
                held = (
                    self._one_too_many(state, call, run, most_writes, flags) if writes > most_writes else None
                )
            if held is not None:
                self._settle_one(state, call, await self._result(await held.run()))
                continue
            outcome = await planned.run()
            await self._refresh(run)
            self._ran(state, call, planned, outcome, run)
            self._settle_one(state, call, await self._result(outcome))
        if stretch:
            await self._run_stretch(state, stretch, run)
        if writes > most_writes:
            left, key = writes - most_writes, "router.limits.writes_per_completion"
            state.notes.append(
                f"not run, of {writes} calls of one step that may change something: {left} ({key})"
            )

    def _held(
        self, state: TurnState, call: ToolCall, planned: PlannedCall, run: Run, flags: tuple[Flag, ...]
    ) -> PlannedCall | None:
        """Return what points a call to the result that it has already; None where it may run."""
        if state.repeats is None or call.name == CHOOSE:
            return None
        said = state.repeats.hold(call, planned, run)
        if said is None:
            return None
        state.helped["repeats"] += 1
        given, marks = (call.id, call.name, call.arguments, run, state.step), (*flags, _REPEATED)

        async def point() -> Outcome:
            return self._wrappers.point(*given, said, marks)

        return PlannedCall(point, True, stands_in=True)

    def _one_too_many(
        self, state: TurnState, call: ToolCall, run: Run, most: int, flags: tuple[Flag, ...]
    ) -> PlannedCall:
        """Return what answers a call that is not run, as its reply has too many that may change something."""
        state.helped["writes_left_out"] += 1
        why = f"Not run: at most {count(most, 'call')} of one reply may change something."
        hint = "See what the earlier ones did; send this one again by itself if it is still needed."
        given, marks = (call.id, call.name, call.arguments, run, state.step, why, hint), (*flags, _LEFT_OUT)

        async def refuse() -> Outcome:
            return self._wrappers.refuse(*given, marks)

        return PlannedCall(refuse, True, stands_in=True)

    @staticmethod
    def _ran(state: TurnState, call: ToolCall, planned: PlannedCall, outcome: Outcome, run: Run) -> None:
        if state.repeats is not None and not planned.stands_in and call.name != CHOOSE:
            state.repeats.ran(call, planned, outcome, state.step, run)

    async def _run_stretch(
        self, state: TurnState, stretch: Sequence[tuple[ToolCall, PlannedCall]], run: Run
    ) -> None:
        if len(stretch) == 1:
            call, planned = stretch[0]
            outcome = await planned.run()
            self._ran(state, call, planned, outcome, run)
            self._settle_one(state, call, await self._result(outcome))
            return
        first_of: dict[bytes, asyncio.Task[Outcome]] = {}
        tasks: list[asyncio.Task[Outcome]] = []
        for _, planned in stretch:
            key = planned.key() if planned.key is not None else None
            first = first_of.get(key) if key is not None else None
            if first is not None and planned.repeat is not None:
                tasks.append(asyncio.create_task(planned.repeat(first)))
                continue
            tasks.append(asyncio.create_task(planned.run()))
            if key is not None:
                first_of[key] = tasks[-1]
        try:
            # A call answers for whatever goes wrong in it, so nothing but a cancellation comes out here.
            outcomes = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        for (call, planned), outcome in zip(stretch, outcomes, strict=True):
            self._ran(state, call, planned, outcome, run)
            self._settle_one(state, call, await self._result(outcome))

    async def _result(self, outcome: Outcome) -> Message:
        return Message("tool", outcome.text, attachments=await self._attach(outcome))

    @staticmethod
    def _settle_one(state: TurnState, call: ToolCall, result: Message) -> None:
        """Put a call's result into the history."""
        state.messages.append(replace(result, tool_call_id=call.id))
        state.pending.remove(call)

    def _distinct(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls with ids that no other call of the conversation has."""
        own = distinct(calls, self._conversation.call_ids, self._conversation.reserved)
        ids = {call.id for call in own}
        self._ids |= ids
        self._conversation.reserved |= ids
        return own

    def _refuse(self, call: ToolCall, run: Run, step: int, why: str, hint: str) -> str:
        """Answer a call that is not run, and record that."""
        return self._wrappers.refuse(call.id, call.name, call.arguments, run, step, why, hint).text


def _finished_output(run: Run, call: str) -> str | None:
    for event in reversed(run.log.events):
        if isinstance(event, ActionFinished) and event.call == call:
            return event.output
    return None
