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

from reyn_jupyter.config import Limits
from reyn_jupyter.models.base import Message, Model, ModelError, Prefix
from reyn_jupyter.models.wire import metering
from reyn_jupyter.router.conversation import Conversation
from reyn_jupyter.router.history import History, Reader, Turn, condense
from reyn_jupyter.router.model_call import ModelCaller, TurnState, sends_of
from reyn_jupyter.router.prompt import IDENTITY
from reyn_jupyter.router.reflection_offer import reflection_offer
from reyn_jupyter.router.router_options import RouterOptions
from reyn_jupyter.router.seen_parts import attachments_of
from reyn_jupyter.router.surface import Offer
from reyn_jupyter.router.tool_calls import ToolCalls
from reyn_jupyter.router.turn_budget import LoopBudget
from reyn_jupyter.runtime.action_error import text_of
from reyn_jupyter.runtime.call.wrappers import Wrappers
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.record.action_usage import ActionUse
from reyn_jupyter.runtime.record.events import NOT_FORCED, ActionFinished, RequestSent, RunEnded
from reyn_jupyter.runtime.run import LimitReachedError, Run
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.text import count

EMPTY_NUDGE = "(Your last reply was empty. Answer the question now, or call a tool.)"
CUT_OFF = "the model's answer was cut off at its output limit (max_tokens, under the model's parameters)"
CLOSING_NUDGE = (
    "(The limit of {limit} model calls for this turn is reached. Do not call tools. Sum up for the person what was "
    "done, what was found, and what is still open.)"
)


def _never() -> bool:
    return False


class RouterLoop:
    """Runs turns of one conversation on one model.

    Args:
        services: settings, workspace, redactor, blob store.
        wrappers: plan the model's tool calls.
        model: what stands behind the seam.
        conversation: the turns so far; a finished turn is added to it.
        options: the router's effective keys.
        limits: of the settings that the turn runs under.
        refresh: rebuilds the slices of the catalog whose revision moved.
        is_pushed: whether a category said that its entries moved, so that the next request needs a refresh.
        uses: how often actions were invoked, for the hot list.
        unforced: the models of the session whose providers refused a forced choice; added to here.
        history: what the model is sent of the conversation; all of it when None.
        identity: who the model is told to be.
    """

    def __init__(
        self,
        services: Services,
        wrappers: Wrappers,
        model: Model,
        conversation: Conversation,
        options: RouterOptions,
        limits: Limits,
        *,
        refresh: Callable[[Run], Any],
        is_pushed: Callable[[], bool] = _never,
        uses: dict[str, ActionUse] | None = None,
        parameters: dict[str, Any] | None = None,
        repeat: int = 0,
        unforced: set[str] | None = None,
        history: History | None = None,
        identity: str = IDENTITY,
    ) -> None:
        self._services = services
        self._conversation = conversation
        self._options = options
        self._limits = limits
        self._unforced = set() if unforced is None else unforced
        self._history = conversation.history(Reader()) if history is None else history
        self._caller = ModelCaller(
            services,
            model,
            conversation,
            options,
            limits,
            uses=uses,
            parameters=parameters,
            repeat=repeat,
            history_tokens=self._history.tokens,
            identity=identity,
        )
        self._refresh, self._is_pushed = refresh, is_pushed
        caller = self._caller
        self._calls = ToolCalls(
            wrappers,
            conversation,
            refresh,
            lambda outcome: attachments_of(outcome, services.blobs, caller.media, services.redactor.text),
        )

    async def turn(
        self,
        text: str,
        run: Run,
        budget: LoopBudget,
        *,
        cell: str | None = None,
        at: int | None = None,
        notes: Sequence[str] = (),
        notes_if_sent: Sequence[str] = (),
    ) -> None:
        """Run one turn, which was prepared, to its end; it is recorded in `run.log` and added to the conversation.

        Args:
            text: the person's text, literal.
            budget: what the turn may use up.
            cell: id of the cell that asked, so that running it again replaces the turn.
            at: the place in the conversation (0-based); the end when None.
            notes: what the card should say besides.
            notes_if_sent: what it should say besides if a request to the model left in this turn.
        """
        run.budget = budget
        unread = Message("user", f"[{count(len(text), 'character')}: interrupted before they were read]")
        state = TurnState([unread], notes=list(notes), notes_if_sent=tuple(notes_if_sent))
        try:
            asked = await look_through(text, lambda: self._services.redactor.text(clean(text)))
            state.messages[0] = Message("user", asked)
            with metering(sends_of(run.log, lambda: state.step, "search")):
                await self._steps(state, run, budget)
        except asyncio.CancelledError:
            self._interrupted(state, run)
        except LimitReachedError as error:
            hint = f"Raise {error.name}, or ask for less."
            state.status, state.error, state.hint = "limit", str(error), hint
        except ModelError as error:
            state.status, state.error, state.hint = "error", error.message, error.hint
        except Exception as error:  # a fault of ours still ends the run's log and keeps the history valid
            state.status, state.error = "error", f"{type(error).__name__}: {text_of(error)}"
            self._end(state, run, budget, cell, at)
            raise
        self._end(state, run, budget, cell, at)

    def prepare(self, run: Run, at: int | None = None) -> RouterOptions:
        """Take over what the conversation knows of the catalog, and decide an automatic surface once for all of it.

        Args:
            at: the place of the turn in the conversation (0-based); the end when None.

        Returns:
            The keys in force, the surface that they come to among them.
        """
        conversation = self._conversation
        known = conversation.known_before(at)
        run.discovery.listed = known.listed
        run.discovery.hint_due = known.hint_due
        run.discovery.names = known.names
        for turn in conversation.turns[:at]:
            run.note_origins(turn.origins)
        surface = self._caller.offer(run).surface
        if self._options.surface == "auto":
            conversation.surface = surface
        run.discovery.gate = self._options.discovery == "gate" and surface == "universal"
        return self._options if self._options.surface == surface else replace(self._options, surface=surface)

    async def _steps(self, state: TurnState, run: Run, budget: LoopBudget) -> None:
        limits = self._limits
        self._decide_search()
        offer, offered_of = self._caller.offer(run), run.snapshot
        prefix = self._conversation.prefix(self._caller.system(run, offer.surface), self._history)
        nudged, most = False, limits.max_steps
        offered: Message | None = None
        while state.step + budget.inner_steps < most:
            budget.begin_step()
            state.step += 1
            budget.own_steps = state.step
            if self._is_pushed():
                await self._refresh(run)
            if run.snapshot is not offered_of:  # what was made in this turn is on offer in the rest of it
                offer, offered_of = self._caller.offer(run), run.snapshot
            forced = self._forced(state, run, offer)
            refused = forced is not None and self._caller.model in self._unforced
            if refused:
                state.notes.append(NOT_FORCED)
            choice, not_forced = ("auto", forced) if refused else (forced or "auto", None)
            try:
                nudge = reflection_offer(run) if offered is None else None
                reply = await self._caller.ask(
                    state, prefix, offer, choice, run, budget, nudge=nudge, not_forced=not_forced
                )
                offered = offered or nudge  # once a turn
            except ModelError as error:
                if choice == "auto" or error.kind != "tool_choice":
                    raise
                self._unforced.add(self._caller.model)  # the next call leaves the choice to the model
                most += 1  # this one it never got
                continue
            if reply.raw.tool_calls:
                await self._calls.run(state, reply, offer.encoder, run, limits.calls_per_completion)
                if self._options.constrain_names:
                    offer = self._caller.offer(run)
            elif reply.raw.text.strip():
                _set_answer(state, reply.kept.text)
                if reply.raw.finish_reason == "length":
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
        await self._close(state, prefix, offer, run, budget, limits.max_steps)

    def _decide_search(self) -> None:
        """Decide, once for the whole conversation, whether actions can be searched."""
        search = self._services.search
        if self._conversation.search is None:
            self._conversation.search = search is not None and search.offered

    def _forced(self, state: TurnState, run: Run, offer: Offer) -> str | None:
        """Return the tool that the first reply is to call; None where the model is free, as it is after that reply."""
        forced = self._options.discovery == "forced" and offer.surface == "universal"
        unanswered = len(state.messages) == 1
        return "list_actions" if forced and unanswered and not run.discovery.listed else None

    async def _close(
        self,
        state: TurnState,
        prefix: Prefix,
        offer: Offer,
        run: Run,
        budget: LoopBudget,
        limit: int,
    ) -> None:
        """End a turn at the step limit: one more call of the model, without tools, sums up what was done."""
        budget.begin_step()
        state.step += 1
        nudge = Message("user", CLOSING_NUDGE.format(limit=limit))
        reply = await self._caller.ask(state, prefix, offer, "none", run, budget, nudge=nudge)
        why = "not run: this was the closing call, which has no tools"
        self._calls.refuse_all(reply.raw.tool_calls, run, state.step, why)
        state.status = "limit"
        state.notes.append(f"the limit of {limit} steps was reached ({budget.steps_key})")
        _set_answer(state, reply.kept.text.strip() or f"Stopped after {limit} steps without an answer.")

    def _interrupted(self, state: TurnState, run: Run) -> None:
        self._calls.settle(
            state, run, "interrupted by the person before it ran", "Ask before you run it again."
        )
        done = [
            event.name
            for event in run.log.events
            if isinstance(event, ActionFinished) and event.ok and event.name
        ]
        happened = f"Before that it ran {', '.join(done)}." if done else "No action had run yet."
        state.status = "interrupted"
        state.answer = ""
        who = "by the person" if run.caller is None else f"by the end of {run.caller.action}, which asked"
        state.error = f"Interrupted {who}. {happened}"
        state.hint = "The partial run is kept: %reyn trace shows it, %reyn undo restores changed files."

    def _end(self, state: TurnState, run: Run, budget: LoopBudget, cell: str | None, at: int | None) -> None:
        self._calls.settle(state, run, "not run: the turn ended", "")
        redact = self._services.redactor.text
        if state.messages[-1].role != "assistant" or state.messages[-1].tool_calls:
            why = state.error or "the turn ended"
            state.messages.append(Message("assistant", f"[No answer: {redact(why)}]"))
        conversation = self._conversation
        known = conversation.known_before(at)
        turn = Turn(
            run.id,
            state.messages[0].content,
            condense(state.messages),
            cell,
            run.discovery.listed and not known.listed,
            state.status,
            run.discovery.names,
            known.hint_due and not run.discovery.hint_due,
            origins=tuple(run.outermost.origins),
        )
        conversation.add(turn, at)
        self._calls.release()
        if any(isinstance(event, RequestSent) and event.by == "model" for event in run.log.events):
            state.notes += state.notes_if_sent
        state.notes += budget.notes()
        shrunk = conversation.shrink(self._limits.history_tokens)
        if shrunk:
            turns = count(shrunk, "old turn")
            state.notes.append(f"{turns} shrank to question and answer (router.limits.history_tokens)")
        run.log.append(
            RunEnded(
                run=run.id,
                at=time.time(),
                status=state.status,
                answer=state.answer,
                error=redact(state.error) if state.error else None,
                hint=redact(state.hint) if state.hint else None,
                notes=(*state.notes, *((run.log.problem,) if run.log.problem else ())),
                seconds=run.seconds,
                waited=run.waits.seconds(),
            )
        )


def _set_answer(state: TurnState, answer: str) -> None:
    """End a turn with an answer, which is redacted."""
    state.answer = answer
    state.messages.append(Message("assistant", answer))
