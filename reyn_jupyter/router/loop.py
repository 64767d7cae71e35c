"""One turn: system prompt + history + the person's text → model → tool calls → results → … → answer.

Invariants: the history stays valid whatever happens (every tool call has a result); a limit, an error and an
interrupt end the turn with words that say what had already happened; nothing is sent that was not redacted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reyn_jupyter.models.seam import Message, Model, ModelError, Response, ToolCall
from reyn_jupyter.outputs.encoding import clean
from reyn_jupyter.router.asking import Asking, Gathered
from reyn_jupyter.router.behaviour import Behaviour
from reyn_jupyter.router.budget import Budget
from reyn_jupyter.router.conversation import Conversation, Turn
from reyn_jupyter.router.replies import distinct, refuses_choice, sendable
from reyn_jupyter.router.rounds import Rounds
from reyn_jupyter.router.surface import Offer
from reyn_jupyter.runtime.errors import text_of
from reyn_jupyter.runtime.events import ActionFinished, RunEnded
from reyn_jupyter.runtime.invoke import Invoker
from reyn_jupyter.runtime.run import LimitReachedError, Run
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.runtime.usage import Use
from reyn_jupyter.runtime.wrappers import Wrappers

EMPTY_NUDGE = "(Your last reply was empty. Answer the question now, or call a tool.)"
CUT_OFF = "the model's answer was cut off at its output limit (max_tokens, under the model's parameters)"
NOT_FORCED = (
    "the provider cannot be told to list first (router.discovery: forced), so the model was asked alone"
)
CLOSING_NUDGE = (
    "(The limit of {limit} model calls for this turn is reached. Do not call tools. Sum up for the person what was "
    "done, what was found, and what is still open.)"
)


class RouterLoop:
    """Runs turns of one conversation on one model.

    Args:
        services: settings, workspace, redactor, blob store.
        invoker: the one way to a handler.
        model: what stands behind the seam.
        conversation: the turns so far; a finished turn is added to it.
        behaviour: the router's effective keys.
        refresh: rebuilds the slices of the catalog whose revision moved.
        uses: how often actions were invoked, for the hot list.
    """

    def __init__(
        self,
        services: Services,
        invoker: Invoker,
        model: Model,
        conversation: Conversation,
        behaviour: Behaviour,
        *,
        refresh: Callable[[Run], Any],
        uses: dict[str, Use] | None = None,
        parameters: dict[str, Any] | None = None,
        repeat: int = 0,
    ) -> None:
        self._services = services
        self._invoker = invoker
        self._conversation = conversation
        self._behaviour = behaviour
        self._refresh = refresh
        self._given: set[str] = set()  # ids of the tool calls of the turn that goes on
        self._asking = Asking(
            services, model, conversation, behaviour, uses=uses, parameters=parameters, repeat=repeat
        )

    async def turn(
        self,
        text: str,
        run: Run,
        budget: Budget,
        *,
        cell: str | None = None,
        at: int | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Run one turn, which was prepared, to its end; it is recorded in `run.log` and added to the conversation.

        Args:
            text: the person's text, literal.
            budget: what the turn may use up.
            cell: id of the cell that asked, so that running it again replaces the turn.
            at: the place in the conversation (0-based); the end when None.
            notes: what the card should say besides.
        """
        history = self._conversation.messages()
        run.within_budget = budget.check
        message = Message("user", self._services.redactor.text(clean(text)))
        state = Gathered([message], base=1 + len(history), notes=list(notes))
        try:
            await self._steps(state, history, run, budget)
        except asyncio.CancelledError:
            self._interrupted(state, run)
        except LimitReachedError as error:
            hint = f"Raise {error.name}, or ask for less."
            state.status, state.error, state.hint = "limit", str(error), hint
        except ModelError as error:
            state.status, state.error, state.hint = "error", error.message, error.hint
        except Exception as error:  # a fault of ours still ends the run's log and keeps the history valid
            state.status, state.error = "error", f"{type(error).__name__}: {text_of(error)}"
            self._end(state, run, text, budget, cell, at)
            raise
        self._end(state, run, text, budget, cell, at)

    def prepare(self, run: Run) -> Behaviour:
        """Take over what the conversation knows of the catalog, and decide an automatic surface once for all of it.

        Returns:
            The keys in force, the surface that they come to among them.
        """
        conversation = self._conversation
        run.discovery.listed = conversation.listed
        run.discovery.hint_due = conversation.hint_due
        run.discovery.names = conversation.names
        surface = self._asking.offer(run).surface
        if self._behaviour.surface == "auto":
            conversation.surface = surface
        run.discovery.gate = self._behaviour.discovery == "gate" and surface == "universal"
        return replace(self._behaviour, surface=surface)

    async def _steps(self, state: Gathered, history: list[Message], run: Run, budget: Budget) -> None:
        limits = self._services.settings().router.limits
        await self._decide_search(run)
        made = self._asking.offer(run)
        system = self._asking.system(run, made.surface)
        nudged = False
        while state.step < limits.max_steps:
            budget.check()
            state.step += 1
            choice = self._tool_choice(state, run, made)
            messages = [system, *history, *state.messages]
            try:
                response = await self._asking.ask(state, messages, made, choice, run, budget)
            except ModelError as error:
                if choice == "auto" or not refuses_choice(error):
                    raise
                state.notes.append(NOT_FORCED)  # the next call leaves the choice to the model
                continue
            if response.tool_calls:
                await self._call_tools(state, response, made, run, limits.calls_per_completion)
                if self._behaviour.constrain_names:
                    made = self._asking.offer(run)
            elif response.text.strip():
                self._answered(state, response.text)
                if response.finish_reason == "length":
                    state.notes.append(CUT_OFF)
                return
            elif nudged:
                raise ModelError(
                    "stream",
                    "The model returned nothing, twice.",
                    "Ask again, rephrase, or try another model with -m.",
                )
            else:
                nudged = True
                state.messages.append(Message("user", EMPTY_NUDGE))
        await self._close(state, history, system, made, run, budget, limits.max_steps)

    async def _decide_search(self, run: Run) -> None:
        """Whether actions can be searched, decided once for the whole conversation."""
        search = self._services.search
        if self._conversation.search is None:
            self._conversation.search = search is not None and await search.ready(run.snapshot)

    def _tool_choice(self, state: Gathered, run: Run, made: Offer) -> str:
        forced = self._behaviour.discovery == "forced" and made.surface == "universal"
        return "list_actions" if forced and state.step == 1 and not run.discovery.listed else "auto"

    async def _close(
        self,
        state: Gathered,
        history: list[Message],
        system: Message,
        made: Offer,
        run: Run,
        budget: Budget,
        limit: int,
    ) -> None:
        """The step limit: one closing call without tools sums up what was done."""
        budget.check()
        state.step += 1
        nudge = Message("user", CLOSING_NUDGE.format(limit=limit))
        messages = [system, *history, *state.messages, nudge]
        response = await self._asking.ask(state, messages, made, "none", run, budget)
        for call in self._distinct(response.tool_calls):
            self._refuse(call, run, state.step, "not run: this was the closing call, which has no tools", "")
        state.status = "limit"
        state.notes.append(
            f"the limit of {limit} model calls was reached (router.limits.max_steps, or --max-steps)"
        )
        self._answered(
            state, response.text.strip() or f"Stopped after {limit} model calls without an answer."
        )

    def _answered(self, state: Gathered, answer: str) -> None:
        state.answer = answer
        state.messages.append(Message("assistant", self._services.redactor.text(answer)))

    async def _call_tools(
        self, state: Gathered, response: Response, made: Offer, run: Run, most: int
    ) -> None:
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

    def _settle(self, state: Gathered, run: Run, why: str, hint: str) -> None:
        """Give every call that is still open its result, and its events where it has none yet."""
        for call in state.pending:
            text = _finished_output(run, call.id)
            if text is None:
                text = self._refuse(call, run, state.step, why, hint)
            state.messages.append(Message("tool", text, (), call.id))
        state.pending = ()

    def _interrupted(self, state: Gathered, run: Run) -> None:
        self._settle(state, run, "interrupted by the person before it ran", "Ask before you run it again.")
        done = [
            event.name
            for event in run.log.events
            if isinstance(event, ActionFinished) and event.ok and event.name
        ]
        happened = f"Before that it ran {', '.join(done)}." if done else "No action had run yet."
        state.status = "interrupted"
        state.answer = ""
        state.error = f"Interrupted by the person. {happened}"
        state.hint = "The partial run is kept: %reyn trace shows it, %reyn undo restores changed files."

    def _end(
        self, state: Gathered, run: Run, text: str, budget: Budget, cell: str | None, at: int | None
    ) -> None:
        self._settle(state, run, "not run: the turn ended", "")
        redact = self._services.redactor.text
        if state.messages[-1].role != "assistant" or state.messages[-1].tool_calls:
            why = state.error or "the turn ended"
            state.messages.append(Message("assistant", f"[No answer: {redact(why)}]"))
        conversation = self._conversation
        turn = Turn(
            run.id,
            redact(text),
            tuple(state.messages),
            cell,
            run.discovery.listed and not conversation.listed,
            state.status,
            run.discovery.names,
            conversation.hint_due and not run.discovery.hint_due,
        )
        conversation.add(turn, at)
        conversation.reserved -= self._given
        state.notes += budget.notes()
        shrunk = conversation.shrink(self._services.settings().router.limits.history_tokens)
        if shrunk:
            state.notes.append(f"{shrunk} old tool results shrank to stubs (router.limits.history_tokens)")
        run.log.append(
            RunEnded(
                run=run.id,
                at=time.time(),
                status=state.status,
                answer=redact(state.answer),
                error=redact(state.error) if state.error else None,
                hint=redact(state.hint) if state.hint else None,
                notes=(*state.notes, *((run.log.problem,) if run.log.problem else ())),
                seconds=run.seconds,
            )
        )
        run.log.close()


def _finished_output(run: Run, call: str) -> str | None:
    for event in reversed(run.log.events):
        if isinstance(event, ActionFinished) and event.call == call:
            return event.output
    return None
