"""One turn: system prompt + history + the person's text → model → tool calls → results → … → answer.

Invariants: the history stays valid whatever happens (every tool call has a result); a limit, an error and an
interrupt end the turn with words that say what had already happened; nothing is sent that was not redacted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from reyn_jupyter.config import Limits
from reyn_jupyter.models.base import Message, Model, ModelError, Prefix, Response, estimate_tokens
from reyn_jupyter.models.providers.wire import metering
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.router.context.fit_context import ContextLengths
from reyn_jupyter.router.context.history import History, Reader, Turn, condense
from reyn_jupyter.router.model_call import ModelCaller, Reply, TurnState, sends_of
from reyn_jupyter.router.repeats import CLOSED, CLOSING, NO_ANSWER, Repeats
from reyn_jupyter.router.reply.answer_support import doubt_of
from reyn_jupyter.router.reply.text_calls import QUOTED, text_calls
from reyn_jupyter.router.request.forced_choice import Attempt, ForcedChoice, Known
from reyn_jupyter.router.request.prompt import IDENTITY
from reyn_jupyter.router.request.reflection_offer import reflection_offer
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.router.request.surface import Offer
from reyn_jupyter.router.seen_parts import attachments_of
from reyn_jupyter.router.short_errors import in_short
from reyn_jupyter.router.tool_calls import ToolCalls
from reyn_jupyter.router.turn_budget import LoopBudget
from reyn_jupyter.router.two_steps import SAID_AGAIN, Stage, TwoSteps, forget_choice
from reyn_jupyter.runtime.action_error import text_of
from reyn_jupyter.runtime.call.wrappers import Wrappers
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.record.action_usage import ActionUse
from reyn_jupyter.runtime.record.events import (
    FORCED_CALL_CUT_OFF,
    NOT_FORCED,
    ActionFinished,
    Flag,
    RequestSent,
    RunEnded,
)
from reyn_jupyter.runtime.record.run_outcome import KNOWN_ENDS
from reyn_jupyter.runtime.run import LimitReachedError, Outcome, Run
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.support.encoding import clean, clip
from reyn_jupyter.support.text import count

EMPTY_NUDGE = "(Your last reply was empty. Answer the question now, or call a tool.)"
CUT_OFF = "the model's answer was cut off at its output limit (max_tokens, under the model's parameters)"
READS_LISTINGS = (
    "the model {model} works from listings alone, so it was not asked to choose (router.discovery: two_steps); "
    "the gate held it instead"
)
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
        choice_forms: how a choice of a tool is forced on the models of the session; added to here.
        history: what the model is sent of the conversation; all of it when None.
        identity: who the model is told to be.
        contexts: what the session knows of how much its models take; added to here.
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
        choice_forms: dict[str, Known] | None = None,
        history: History | None = None,
        identity: str = IDENTITY,
        contexts: ContextLengths | None = None,
    ) -> None:
        self._services = services
        self._conversation = conversation
        self._notes: tuple[str, ...] = ()
        if options.discovery == "two_steps" and getattr(model, "reads_listings", False):
            options = replace(options, discovery="gate")
            self._notes = (READS_LISTINGS.format(model=model.label),)
        self._options = options
        self._limits = limits
        self._choice_forms = {} if choice_forms is None else choice_forms
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
            contexts=contexts,
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
        state = TurnState([unread], notes=[*notes, *self._notes], notes_if_sent=tuple(notes_if_sent))
        run.reword = partial(_in_short, state) if self._options.short_errors else None
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
            self._failed(state, error)
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
        run.discovery.reads_first = self._options.listing_order == "reads_first"
        run.discovery.most = self._options.listing_limit
        run.discovery.gate = self._options.discovery == "gate" and surface == "universal"
        return self._options if self._options.surface == surface else replace(self._options, surface=surface)

    async def _steps(self, state: TurnState, run: Run, budget: LoopBudget) -> None:
        limits = self._limits
        self._decide_search()
        ask_again: Message | None = None
        offer, offered_of = self._caller.offer(run), run.snapshot
        prefix = self._conversation.prefix(self._caller.system(run, offer.surface), self._history)
        nudged, most = False, limits.max_steps
        offered: Message | None = None
        two_steps = self._two_steps(offer)
        state.repeats = self._repeats(two_steps)
        choice: ForcedChoice | None = None
        while state.step + budget.inner_steps < most:
            budget.begin_step()
            state.step += 1
            budget.own_steps = state.step
            if self._is_pushed():
                await self._refresh(run)
            if run.snapshot is not offered_of:  # what was made in this turn is on offer in the rest of it
                offer, offered_of = self._caller.offer(run), run.snapshot
            stage = await self._stage(two_steps, state, run, offer)
            if two_steps is not None:
                offer = stage.offer  # also of the closing call, which then begins as the call before it did
            choice = self._choice(stage.forced, choice)
            nudge = reflection_offer(run) if offered is None and ask_again is None else None
            made = await self._reply(state, prefix, stage, choice, run, budget, nudge or ask_again)
            if made is None:
                most += 1  # the model never got this one, or answered something else than what was forced
                continue
            reply, flags = made
            offered, ask_again = offered or nudge, None  # once a turn
            if reply.raw.tool_calls:
                writes = self._options.writes_per_completion
                await self._calls.run(
                    state, reply, stage.offer.encoder, run, limits.calls_per_completion, writes, flags
                )
                forget_choice(state, run)
                if self._options.constrain_names and two_steps is None:
                    offer = self._caller.offer(run)
                if state.is_stuck:
                    await self._close_repeats(state, prefix, offer, run, budget)
                    return
            elif reply.raw.text.strip():
                may_ask = state.step + budget.inner_steps < most
                ask_again = self._doubts(state, reply, prefix, run, may_ask=may_ask)
                if ask_again is None:
                    self._answered(state, reply)
                    return
            else:
                _refuse_nothing(reply.raw, nudged)
                nudged = True
                state.messages.append(Message("user", EMPTY_NUDGE))
        await self._close(state, prefix, offer, run, budget, limits.max_steps)

    @staticmethod
    def _answered(state: TurnState, reply: Reply) -> None:
        _set_answer(state, reply.kept.text)
        finish = reply.raw.finish_reason
        if finish == "length":
            state.notes.append(CUT_OFF)
        elif finish not in KNOWN_ENDS:
            state.notes.append(
                f"the provider ended the reply for the reason {finish!r:.80}; it may be incomplete"
            )

    def _failed(self, state: TurnState, error: ModelError) -> None:
        """End a turn whose model failed: with its error, or with the answer that it was asked for again."""
        if state.doubted is None:
            state.status, state.error, state.hint = "error", error.message, error.hint
            return
        reply, note = state.doubted
        state.helped["unsupported"] += 1
        why = self._services.redactor.text(error.message)
        state.notes += [note, f"it was asked for once more, and that failed: {why}"]
        self._answered(state, reply)

    def _doubts(
        self, state: TurnState, reply: Reply, prefix: Prefix, run: Run, *, may_ask: bool
    ) -> Message | None:
        """Return what asks once more for an answer that nothing supports; None where it stands, marked or not."""
        if not self._options.check_support:
            return None
        doubt = doubt_of(reply.kept.text, prefix.messages[1:], state.messages, run)
        if doubt is None:
            return None
        if state.helped["asked_again"] or not may_ask:
            state.helped["unsupported"] += 1
            state.notes.append(doubt.note)
            return None
        state.helped["asked_again"] += 1
        state.doubted = reply, doubt.note
        return Message("user", doubt.question)

    def _decide_search(self) -> None:
        """Decide, once for the whole conversation, whether actions can be searched."""
        search = self._services.search
        if self._conversation.search is None:
            self._conversation.search = search is not None and search.offered

    def _two_steps(self, offer: Offer) -> TwoSteps | None:
        """Return what offers a short list and then one action; None where the wrappers or all actions are offered."""
        if self._options.discovery != "two_steps" or offer.surface != "universal":
            return None
        inspect = next((each for each in offer.tools.specs if each["function"]["name"] == "inspect"), None)
        services = self._services
        return TwoSteps(services.search, inspect, services.redactor.value, self._options.required_first)

    def _repeats(self, two_steps: TwoSteps | None) -> Repeats | None:
        """Return what holds repeated calls; in two steps an action was chosen once more before it is called so."""
        return Repeats(patience=1 if two_steps is None else 0) if self._options.stop_repeats else None

    async def _stage(self, two_steps: TwoSteps | None, state: TurnState, run: Run, offer: Offer) -> Stage:
        """Return what the next request offers and forces."""
        if two_steps is not None:
            return await two_steps.stage(state, run)
        return Stage(offer, self._forced(state, run, offer))

    async def _reply(
        self,
        state: TurnState,
        prefix: Prefix,
        stage: Stage,
        choice: ForcedChoice | None,
        run: Run,
        budget: LoopBudget,
        nudge: Message | None,
    ) -> tuple[Reply, tuple[Flag, ...]] | None:
        """Call the model once; return its reply and how its calls are marked.

        None where it is to be asked again: shorter, or in the next form of a choice.
        """
        attempt, not_forced = Attempt(stage.offer, "none" if stage.closing else "auto"), None
        nudge = nudge or stage.nudge
        if choice is not None:
            attempt = choice.attempt(stage.offer)
            if choice.form == "free" and self._options.discovery == "forced":
                not_forced = None if choice.is_held else choice.tool
                state.notes.append(FORCED_CALL_CUT_OFF if choice.is_held else NOT_FORCED)
        try:
            reply = await self._caller.ask(
                state, prefix, attempt, run, budget, nudge=nudge, not_forced=not_forced
            )
        except ModelError as error:
            if choice is not None and attempt.is_refusal(error):
                choice.missed(None)
            elif not self._caller.shrink_after(error):
                raise
            return None
        reply, flags = await self._with_text_calls(state, reply, prefix, stage.offer, run)
        if choice is not None and not choice.kept(reply.raw):
            return None
        if flags:
            state.helped["text_calls"] += len(reply.raw.tool_calls)
        return reply, flags

    def _choice(self, forced: str | None, before: ForcedChoice | None) -> ForcedChoice | None:
        """Return the choice of a forced tool, the one before where that is being made still; None without one."""
        if forced is None:
            return None
        if before is not None and before.tool == forced:
            return before
        caller = self._caller
        return ForcedChoice(forced, self._choice_forms, caller.model, caller.choice_form)

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
        said = await self._closing_words(state, prefix, offer, run, budget, CLOSING_NUDGE.format(limit=limit))
        state.status = "limit"
        state.notes.append(f"the limit of {limit} steps was reached ({budget.steps_key})")
        _set_answer(state, said or f"Stopped after {limit} steps without an answer.")

    async def _close_repeats(
        self, state: TurnState, prefix: Prefix, offer: Offer, run: Run, budget: LoopBudget
    ) -> None:
        """End a turn in which the model goes on making a call that it has the result of."""
        asked = CLOSING.format(request=clip(state.messages[0].content, SAID_AGAIN))
        said = await self._closing_words(state, prefix, offer, run, budget, asked)
        state.helped["closed"] += 1
        state.notes.append(CLOSED)
        if not said:
            state.status = "limit"
        _set_answer(state, said or NO_ANSWER)

    async def _closing_words(
        self, state: TurnState, prefix: Prefix, offer: Offer, run: Run, budget: LoopBudget, nudge: str
    ) -> str:
        """Return what the model says to a turn's last call, which has no tools."""
        asked, reply = Message("user", nudge), None
        while reply is None:
            budget.begin_step()
            state.step += 1
            try:
                reply = await self._caller.ask(
                    state, prefix, Attempt(offer, "none"), run, budget, nudge=asked
                )
            except ModelError as error:
                if not self._caller.shrink_after(error):
                    raise
        why = "not run: this was the closing call, which has no tools"
        self._calls.refuse_all(reply.raw.tool_calls, run, state.step, why)
        said = reply.kept.text.strip()
        if said and reply.raw.finish_reason == "length":
            state.notes.append(CUT_OFF)
        return said

    async def _with_text_calls(
        self, state: TurnState, reply: Reply, prefix: Prefix, offer: Offer, run: Run
    ) -> tuple[Reply, tuple[Flag, ...]]:
        """Return a reply with the calls that it wrote as text, and how they are marked; others as they are."""
        if not self._options.text_calls or reply.raw.tool_calls or not reply.raw.text.strip():
            return reply, ()
        read = (*prefix.messages, *state.messages)
        found = text_calls(reply.raw.text, offer, run.snapshot, read)
        if found.quoted:
            state.notes.append(QUOTED)
        if not found.calls:
            return reply, ()
        return await self._caller.kept(replace(reply.raw, text="", tool_calls=found.calls)), ("from_text",)

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
        state.notes += [*self._caller.notes, *budget.notes()]
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
                helped=dict(state.helped.items()),
            )
        )


def _refuse_nothing(response: Response, again: bool) -> None:
    """Raise ModelError for a reply with neither text nor calls if asking once more would not help, or did not."""
    if response.finish_reason == "length":
        thought = response.usage.reasoning_tokens or estimate_tokens(response.reasoning.text)
        spent = f" after {thought:,} tokens of thought" if thought else ""
        raise ModelError(
            "stream",
            f"The reply reached its limit of tokens{spent}, before it had an answer.",
            "Raise max_tokens under the model's parameters in reyn.yaml, or lower the model's reasoning effort.",
        )
    if again:
        raise ModelError(
            "stream",
            "The model returned nothing, twice.",
            "Ask again, rephrase, or try another model with -m.",
        )


def _in_short(state: TurnState, outcome: Outcome) -> Outcome:
    """Return an outcome with its error in one line, and count that."""
    short = in_short(outcome)
    if short is not outcome:
        state.helped["short_errors"] += 1
    return short


def _set_answer(state: TurnState, answer: str) -> None:
    """End a turn with an answer, which is redacted."""
    state.answer = answer
    state.messages.append(Message("assistant", answer))
