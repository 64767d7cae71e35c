"""The model that answers in a trial: what kind of source it is, how its faults come out, and what it uses.

Invariants: only a real language model's trials have the source "real"; whatever goes wrong behind the seam comes out as
a `ModelError`, so that a model can end its trial and nothing else. Every call that was answered counts with what it
used, and a call that was sent and not answered yet counts with its question, estimated, so that a trial that never
comes
to its end is paid for too; a call that failed counts for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, cast, get_args, runtime_checkable

from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.trial.trial import TrialUsage
from reyn_jupyter.models.base import (
    Model,
    ModelError,
    Request,
    Response,
    Tier,
    context_length_of,
    media_taken,
)
from reyn_jupyter.models.cassettes.stored_ids import replace_stored_ids, stored_ids_in, unique_ids
from reyn_jupyter.models.providers import litellm_loader
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.runs.replay import ReplayedModel

OnModelError = Callable[[str, ModelError], None]
_SOURCES: frozenset[str] = frozenset(get_args(Source))
_MOST = 10**12  # tokens or dollars of one call: beyond it, nobody counted


@runtime_checkable
class Agent(Protocol):
    """A stand-in for a model that may know the scenario (an oracle); what it gives answers in one trial."""

    def for_scenario(self, scenario: Scenario) -> Model: ...


def source_of(model: Model) -> Source:
    """Return what kind of source a model is: what it says itself (`source`), else real, offline, or scripted.

    >>> from reyn_jupyter.models.scripted import ScriptedModel
    >>> source_of(ScriptedModel("Hello."))
    'scripted'
    """
    stated = getattr(model, "source", None)
    if stated in _SOURCES:
        return cast("Source", stated)
    if model.real:
        return "real"
    return "offline" if model.label == "offline" else "scripted"


def replaying_model(events: Iterable[Event]) -> Model:
    """Return a model that gives the replies of a run again, in their order: of a stored trial, or of any run log.

    Raises:
        ValueError: the events are no run.
    """
    return _Replayed(Trace.from_events(events))


class _Replayed(ReplayedModel):
    """A run's replies; where one names a blob, it names the one that stands in its place now."""

    source: Source = "replayed"

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace, None, None)
        self._stored: list[tuple[str, ...]] = []
        stored: tuple[str, ...] = ()
        for step in trace.steps:
            if step.requested is not None:
                stored = unique_ids((*stored, *stored_ids_in(step.requested.messages)))
            if step.replied is not None:
                self._stored.append(stored)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        response = await super().complete(request, on_text)
        now = stored_ids_in(message.wire for message in request.messages)
        return replace_stored_ids(response, self._stored[self._step - 1], now)


class AbsentModel:
    """In place of a model that cannot be had: every call says why."""

    tier: Tier = "standard"
    host: str | None = None
    real = False

    def __init__(self, label: str, why: ModelError) -> None:
        self.label = label
        self._why = why

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """Raise the ModelError that says why there is no model."""
        raise self._why


class TrialModel:
    """A model as one trial has it: with the variant's parameters over its own, and with its faults told.

    Args:
        inner: what answers.
        parameters: sent with every request: the model's own, and the variant's over them.
        system: a system prompt of the recording that answers, so that the day is that of the recording.
        provider: whom failures are told of.
        on_model_error: gets the provider and each failed attempt, those that are tried again among them.
        meter: reads what the trial uses.
    """

    def __init__(
        self,
        inner: Model,
        parameters: Mapping[str, Any],
        provider: str,
        on_model_error: OnModelError | None = None,
        system: str | None = None,
        meter: UsageMeter | None = None,
    ) -> None:
        self._inner = inner
        self._provider = provider
        self._on_model_error = on_model_error
        self._meter = UsageMeter() if meter is None else meter
        self.label: str = inner.label
        self.tier: Tier = inner.tier
        self.host: str | None = inner.host
        self.real: bool = inner.real
        self.media = media_taken(inner)
        self.system = system
        self.parameters = dict(parameters)

    async def context_length(self) -> int | None:
        """Return what the inner model says of itself."""
        return await context_length_of(self._inner)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """Return the inner model's answer. Raises ModelError, and nothing else but a cancellation of the trial."""
        self._meter.sent(request, real=self.real)
        try:
            response = await self._answer(request, on_text)
        except ModelError:
            self._meter.failed()
            raise
        self._meter.answered(response)
        return response

    async def _answer(self, request: Request, on_text: Callable[[str], None] | None) -> Response:
        try:
            response = await self._inner.complete(request, on_text)
        except ModelError as error:
            if self._on_model_error is not None:
                self._on_model_error(self._provider, error)
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            said = f"{self.label} gave its own call up, and nobody had asked it to."
            raise ModelError("unavailable", said, "Look at the model.") from error
        except Exception as error:
            fault = ModelError(
                "unavailable", f"{self.label} failed: {type(error).__name__}: {error}", "Look at the model."
            )
            raise fault from error
        if not _countable(response):
            said = (
                f"{self.label} told a use that cannot be counted: {response.usage}, cost {response.cost!r}."
            )
            raise ModelError("unavailable", said, "Look at what the model returns.")
        return response


def _countable(response: Response) -> bool:
    """Return whether a budget can be kept with what a model says that it used."""
    counts = (response.usage.prompt_tokens, response.usage.completion_tokens)
    cost = 0.0 if response.cost is None else response.cost
    return all(isinstance(each, int) and 0 <= each < _MOST for each in counts) and 0.0 <= cost < _MOST


class UsageMeter:
    """Reads one trial.

    Example:
        >>> from reyn_jupyter.models.base import Message, Usage
        >>> meter = UsageMeter()
        >>> meter.sent(Request("m", (Message("user", "Hello there"),)), real=False)
        >>> meter.use.calls, meter.use.tokens
        (1, 7)
        >>> meter.answered(Response("Hi", usage=Usage(9, 1), cost=0.5))
        >>> meter.use.tokens, meter.use.usd
        (10, 0.5)
    """

    def __init__(self) -> None:
        self._answered = TrialUsage()
        self._waiting: Request | None = None
        self._real = False

    def sent(self, request: Request, *, real: bool) -> None:
        """Count a call that goes out, to a `real` model or to what stands in for one."""
        self._waiting, self._real = request, real

    def answered(self, response: Response) -> None:
        """Count what an answer says that its call used."""
        before, usage = self._answered, response.usage
        unpriced = self._real and response.cost is None and usage.total > 0
        self._answered = TrialUsage(
            0,
            before.calls + 1,
            before.tokens + usage.total,
            before.usd + (response.cost or 0.0),
            int(unpriced or before.unpriced),
        )
        self._waiting = None

    def failed(self) -> None:
        """Take the open call back: the provider refused it, or could not be reached."""
        self._waiting = None

    @property
    def use(self) -> TrialUsage:
        """The usage so far, as one trial; no usage where no call was sent."""
        found, waiting = self._answered, self._waiting
        if waiting is not None:
            tokens = waiting.tools.tokens + sum(message.tokens for message in waiting.messages)
            price = _price(waiting.model) if self._real else 0.0
            found = TrialUsage(
                0,
                found.calls + 1,
                found.tokens + tokens,
                found.usd + tokens * (price or 0.0),
                int(price is None or found.unpriced),
            )
        return replace(found, trials=int(found.calls > 0))


def _price(model: str) -> float | None:
    """US dollars of a token that is sent, None where nobody lists it. Where LiteLLM is not there, nothing was sent."""
    from reyn_jupyter.models.providers.prices import price_of

    if litellm_loader.loaded_module() is None:
        return 0.0
    price = price_of(model)
    return None if price is None else price.prompt
