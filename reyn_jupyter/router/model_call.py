"""One call of the model: what it is offered and told, the request, the reply, and the record of both.

Invariants: nothing is sent or recorded that was not redacted; what comes before the new messages is the same, byte for
byte, as long as nothing that it is made of moved.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from reyn_jupyter.config import Limits
from reyn_jupyter.models.base import (
    ErrorKind,
    Medium,
    Message,
    Model,
    ModelError,
    Prefix,
    Reasoning,
    Request,
    Response,
    ToolCall,
    ToolSet,
    media_taken,
)
from reyn_jupyter.models.providers.prices import Price
from reyn_jupyter.models.providers.provider_facts import first_word_patience
from reyn_jupyter.models.providers.wire import metering_call
from reyn_jupyter.models.retry import Retry, RetryingModel, RetryPolicy
from reyn_jupyter.models.thoughts import ThoughtFilter
from reyn_jupyter.models.written_calls import CallFilter
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.router.context.fit_context import ContextFitter, ContextLengths, Fitted, reply_limits
from reyn_jupyter.router.repeats import Repeats
from reyn_jupyter.router.reply.normalize_reply import readable, with_bare_names, without_thoughts
from reyn_jupyter.router.request import prompt as prompts
from reyn_jupyter.router.request.forced_choice import Attempt, Known
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.router.request.surface import Offer, make_offer
from reyn_jupyter.router.turn_budget import LoopBudget
from reyn_jupyter.runtime.record.action_usage import ActionUse
from reyn_jupyter.runtime.record.events import (
    Help,
    ModelReplied,
    ModelRequested,
    RequestSent,
    RetryScheduled,
    RunStatus,
)
from reyn_jupyter.runtime.record.runlog import RunLog
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.support.text import shorten

RETRY_REASON = 200  # characters
LARGE = (
    100_000  # characters of a reply that are redacted and checked off the loop, so that an interrupt is heard
)
_RETRY_REASONS: dict[ErrorKind, str] = {
    "rate_limited": "rate limit of",
    "timeout": "no answer in time from",
    "connection": "no connection to",
    "unavailable": "not available now:",
    "stream": "the answer broke off:",
}


@dataclass(frozen=True)
class Delta:
    """A piece of text on its way; shown, never recorded."""

    step: int
    text: str


@dataclass(frozen=True)
class Reply:
    """A model's reply: as it came, for what runs (so that a file gets the very bytes), and what is kept of it."""

    raw: Response
    kept: Response  # redacted


@dataclass
class TurnState:
    """The state of a turn: its messages, how many of them were logged, how it ends.

    `pending` are its tool calls without a result; `answer` is redacted. `helped` counts how the model was helped;
    `repeats` is what ran, where repeated calls are to be held; `doubted` is an answer that was asked for once more, and
    what is noted of it where it stands.
    """

    messages: list[Message]
    step: int = 0
    pending: list[ToolCall] = field(default_factory=list)
    logged: int = 0
    status: RunStatus = "ok"
    answer: str = ""
    error: str | None = None
    hint: str | None = None
    notes: list[str] = field(default_factory=list)
    notes_if_sent: tuple[str, ...] = ()
    helped: Counter[Help] = field(default_factory=Counter)
    repeats: Repeats | None = None
    doubted: tuple[Reply, str] | None = None

    @property
    def is_stuck(self) -> bool:
        """Return whether the last reply only repeated what was pointed out before."""
        return self.repeats is not None and self.repeats.is_stuck


class ModelCaller:
    """Calls one model in one conversation.

    Args:
        services: redactor, blob store, workspace.
        model: what stands behind the seam.
        conversation: the turns so far, and the prompt and tools that were made for them.
        options: the router's effective keys.
        limits: of the settings that the turn runs under.
        uses: how often actions were invoked, for the hot list.
        parameters: the model's own, sent with every request.
        repeat: the index of a repeated trial.
        history_tokens: of what goes with every request before the turn's own messages.
        identity: who the model is told to be.
        contexts: what the session knows of how much its models take.
    """

    def __init__(
        self,
        services: Services,
        model: Model,
        conversation: Conversation,
        options: RouterOptions,
        limits: Limits,
        *,
        uses: dict[str, ActionUse] | None = None,
        parameters: dict[str, Any] | None = None,
        repeat: int = 0,
        history_tokens: int = 0,
        identity: str = prompts.IDENTITY,
        contexts: ContextLengths | None = None,
    ) -> None:
        self._services = services
        self._identity = identity
        self._history_tokens = history_tokens
        self._model = model
        self._conversation = conversation
        self._options = options
        self._uses = uses or {}
        self._parameters = dict(parameters or {})
        if options.reasoning_effort is not None:
            self._parameters["reasoning_effort"] = options.reasoning_effort
        self._repeat = repeat
        self._limits = limits
        self._retries: list[Retry] = []
        self._scheduled: Callable[[Retry], None] = lambda retry: None
        self._fitter: ContextFitter | None = None
        if options.fit_context:
            known = ContextLengths() if contexts is None else contexts
            self._fitter = ContextFitter(model, self.model, known, reply_limits(self._parameters))
        policy = RetryPolicy(retries=self._limits.retries)
        self._patient = RetryingModel(model, policy, on_retry=self._on_retry, log=services.call_log)

    def offer(self, run: Run) -> Offer:
        """Return the tools that the model is offered now."""
        names = run.discovery.names if self._options.constrain_names else ()
        surface, searching = self._conversation.surface, bool(self._conversation.search)

        # Under the universal surface the tools depend on the categories alone, however the actions move.
        universal = self._options.surface == "universal" or (
            self._options.surface == "auto" and surface == "universal"
        )
        simple = universal and not self._options.hot_list_n

        def make() -> Offer:
            offer = make_offer(
                run.snapshot,
                self._options,
                inspect=self._services.blobs is not None,
                search=searching,
                flat_tokens=self._limits.flat_tokens,
                uses=self._uses,
                decided=surface,
                constrain=names or None,
            )
            if simple:
                return offer
            # An action's description is its author's, or a docstring of the person's.
            return replace(offer, tools=ToolSet(tuple(self._services.redactor.value(offer.tools.specs))))

        seen = run.snapshot.category_names if simple else run.snapshot.slices
        offer: Offer = self._kept(f"offer {surface}", (seen, self._options, surface, searching, names), make)
        return offer

    def system(self, run: Run, surface: str) -> Message:
        """Return the system message for a surface, "universal" or "flat"."""
        # A recorded model lives on the day of its recording: its requests would not be found on another.
        recorded = prompts.date_in(getattr(self._model, "system", None) or "")
        date = recorded or time.strftime("%Y-%m-%d", time.localtime(run.started))

        searching = bool(self._conversation.search)

        def make() -> Message:
            options = replace(self._options, surface="flat" if surface == "flat" else "universal")
            static = prompts.static_prompt(
                run.snapshot,
                options,
                inspect=self._services.blobs is not None,
                search=searching,
                identity=self._identity,
            )
            dynamic = prompts.dynamic_prompt(workspace=Path(self._services.root).name, date=date)
            return Message("system", self._services.redactor.text(f"{static}\n\n{dynamic}"))

        seen = run.snapshot.slices if self._options.names == "shown" else run.snapshot.category_names
        message: Message = self._kept("system", (seen, self._options, surface, searching, date), make)
        return message

    def _kept(self, what: str, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return what the conversation keeps under `what` while its key is the same, else make it anew."""
        kept = self._conversation.kept.get(what)
        if kept is None or kept[0] != key:
            kept = self._conversation.kept[what] = (key, make())
        return kept[1]

    @property
    def model(self) -> str:
        """Return the model and its host: what one provider refuses, another may take."""
        return f"{self._model.label} at {self._model.host}"

    @property
    def notes(self) -> list[str]:
        """Return what the person should know of the turn's requests."""
        note = self._fitter.note if self._fitter is not None else None
        return [note] if note else []

    def shrink_after(self, error: ModelError) -> bool:
        """Return whether a request that failed is worth another one: its length was refused, and it can be shorter.

        Raises:
            ModelError: its length was refused, and nothing in it can shrink any more.
        """
        if self._fitter is None or error.kind != "context_too_long":
            return False
        if not self._fitter.shrink_after(error):
            raise self._fitter.failure(error) from None
        return True

    @property
    def choice_form(self) -> Known | None:
        """Return the form of a forced choice that the model begins with, where it says so itself."""
        form: Known | None = getattr(self._model, "choice_form", None)
        return form

    @property
    def media(self) -> frozenset[Medium]:
        """Return what the model takes beside text."""
        return media_taken(self._model)

    async def ask(
        self,
        state: TurnState,
        prefix: Prefix,
        attempt: Attempt,
        run: Run,
        budget: LoopBudget,
        *,
        nudge: Message | None = None,
        not_forced: str | None = None,
    ) -> Reply:
        """Call the model, with retries, and record the request before it goes out and the reply as it came back.

        Args:
            prefix: the system message and the history, which the turn's messages follow.
            attempt: what is offered, and what is forced.
            nudge: a last message, for this request alone.
            not_forced: the tool that the provider could not be told to force.

        Raises:
            ModelError: it failed for good.
        """
        nudges = tuple(each for each in (nudge, attempt.nudge) if each is not None)
        messages = (*prefix.messages, *state.messages, *nudges)
        attached = prefix.has_attachments or any(message.attachments for message in state.messages)
        if attached and not self.media:
            messages = tuple([message.text_alone for message in messages])
        fitted, lowered = None, dict[str, int]()
        if self._fitter is not None:
            before, own = len(prefix.messages), len(state.messages)
            fitted = await self._fitter.fit(messages, before, own, attempt.offer.tools)
            messages, lowered = fitted.messages, self._fitter.lowered_limits
        request = Request(
            self._model.label,
            messages,
            attempt.offer.tools,
            attempt.choice,
            {**self._parameters, **attempt.parameters, **lowered},
            self._limits.model_timeout,
            self._repeat,
            first_word_patience(self._model.host, self._limits.model_timeout),
            self._fitter.length if self._fitter is not None else None,
            prefix,
        )
        price = await self._price()
        self._log_request(state, request, len(prefix.messages), attempt, run, not_forced, price, fitted)
        # What is written by a schema is a call, and no answer to be shown.
        publish, step = run.log.listener if attempt.form != "schema" else None, state.step
        on_text = (lambda piece: publish(Delta(step, piece))) if publish is not None else None
        if on_text is not None:
            on_text = ThoughtFilter(CallFilter(on_text) if self._options.text_calls else on_text)
        began = time.perf_counter()
        self._retries.clear()
        self._scheduled = lambda retry: run.log.append(self._retry_event(step, retry))
        try:
            with metering_call(self._model, request, sends_of(run.log, lambda: step)):
                came = await self._patient.complete(request, on_text)
            response = attempt.read(without_thoughts(readable(came)))
        except ModelError as error:
            run.log.append(
                ModelReplied(
                    step=step,
                    at=time.time(),
                    key=request.key,
                    seconds=time.perf_counter() - began,
                    retries=len(self._retries),
                    error=self._services.redactor.text(error.message),
                    error_kind=error.kind,
                )
            )
            raise
        seconds = time.perf_counter() - began
        budget.spend(response)
        if self._fitter is not None and not response.usage.estimated:
            self._fitter.learn(response.usage.prompt_tokens)
        reply = await self.kept(response)
        run.log.append(_replied(step, request, reply.kept, seconds, len(self._retries)))
        names = attempt.offer.tools.names
        return Reply(with_bare_names(reply.raw, names), with_bare_names(reply.kept, names))

    async def kept(self, response: Response) -> Reply:
        """Return a response beside what is kept of it."""
        size = (
            len(response.text)
            + len(response.reasoning.text)
            + sum(len(call.arguments) for call in response.tool_calls)
        )
        kept = self._redacted(response) if size < LARGE else await asyncio.to_thread(self._redacted, response)
        return Reply(response, kept)

    def _on_retry(self, retry: Retry) -> None:
        self._retries.append(retry)
        self._scheduled(retry)

    def _retry_event(self, step: int, retry: Retry) -> RetryScheduled:
        where = self._model.host or self._model.label
        what = _RETRY_REASONS.get(retry.error.kind)
        said = f"{what} {where}" if what else " ".join(retry.error.message.split())
        return RetryScheduled(
            step=step,
            at=time.time(),
            attempt=retry.attempt,
            most=self._limits.retries,
            wait=retry.wait,
            reason=self._services.redactor.text(shorten(said, RETRY_REASON)),
        )

    async def _price(self) -> Price | None:
        """Return what a token costs, None where the model or its list of prices does not say."""
        ask_price = getattr(self._model, "price", None)
        try:
            return None if ask_price is None else await ask_price()
        except ModelError:  # the call itself says it
            return None

    def _redacted(self, response: Response) -> Response:
        calls, thoughts = response.tool_calls, response.reasoning
        texts = (text for call in calls for text in (call.name, call.arguments))
        held = (response.text, thoughts.text, thoughts.blocks, *texts)
        text, thought, blocks, *texts = redacted = self._services.redactor.value(held)
        if redacted is held:
            return response
        pairs = zip(calls, texts[::2], texts[1::2], strict=True)
        # A provider takes back no block that was changed.
        reasoning = Reasoning(thought, thoughts.blocks if blocks == thoughts.blocks else ())
        kept = tuple(ToolCall(c.id, n, a) for c, n, a in pairs)
        return replace(response, text=text, tool_calls=kept, reasoning=reasoning)

    def _log_request(
        self,
        state: TurnState,
        request: Request,
        turn: int,
        attempt: Attempt,
        run: Run,
        not_forced: str | None,
        price: Price | None,
        fitted: Fitted | None,
    ) -> None:
        conversation, system = self._conversation, request.messages[0].content
        facts = request.facts(turn, turn + state.logged, system=conversation.system != system)
        state.logged = len(state.messages)  # a nudge is of this request alone
        tokens = self._history_tokens + facts.tokens
        if fitted is not None:
            tokens = fitted.tokens + request.tools.tokens
        conversation.system = system
        specs = None
        if conversation.tools is None or conversation.tools.digest != request.tools.digest:
            specs = request.tools.specs
            conversation.tools = request.tools
        run.log.append(
            ModelRequested(
                step=state.step,
                at=time.time(),
                key=facts.key,
                components=facts.components,
                model=request.model,
                messages=facts.messages,
                total_messages=len(request.messages),
                tools=request.tools.names
                if attempt.offer.surface == "universal"
                else (f"{len(request.tools.specs)} tools",),
                tool_specs=specs,
                tool_choice=request.tool_choice,
                not_forced=not_forced,
                forced=attempt.tool if attempt.form is not None else None,
                choice_form=attempt.form,
                parameters=self._services.redactor.value(dict(request.parameters))
                if request.parameters
                else {},
                estimated_tokens=tokens,
                estimated_cost=None if price is None else tokens * price.prompt,
                repeat=request.repeat,
                context=request.context,
                shrunk=() if fitted is None else fitted.record,
            )
        )


def sends_of(
    log: RunLog, step: Callable[[], int], by: Literal["model", "search"] = "model"
) -> Callable[[str, int, bool], None]:
    """Return what records in a run's log each request that leaves in a step."""

    def record(host: str, size: int, counted: bool) -> None:
        log.append(RequestSent(step=step(), at=time.time(), host=host, size=size, counted=counted, by=by))

    return record


def _replied(step: int, request: Request, response: Response, seconds: float, retries: int) -> ModelReplied:
    return ModelReplied(
        step=step,
        at=time.time(),
        key=request.key,
        text=response.text,
        tool_calls=tuple({"id": c.id, "name": c.name, "arguments": c.arguments} for c in response.tool_calls),
        finish_reason=response.finish_reason,
        prompt_tokens=response.usage.prompt_tokens,
        completion_tokens=response.usage.completion_tokens,
        cached_tokens=response.usage.cached_tokens,
        estimated=response.usage.estimated,
        cost=response.cost,
        seconds=seconds,
        retries=retries,
        fingerprint=response.fingerprint,
        reasoning=response.reasoning.text,
        reasoning_tokens=response.usage.reasoning_tokens,
        cache_write_tokens=response.usage.cache_write_tokens,
    )
