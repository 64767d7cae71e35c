"""Who answers in a trial: the model of a variant, what kind of source that is, and how its faults are told.

Invariant: only a real language model's trials have the source "real"; whatever goes wrong behind the seam comes out as
a `ModelError`, so that a model can end its trial and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast, get_args, runtime_checkable

from reyn_jupyter.evaluation.metering import Meter
from reyn_jupyter.evaluation.scenario import Scenario, Source
from reyn_jupyter.models.seam import Model, ModelError, Request, Response, Tier
from reyn_jupyter.models.stored_ids import in_order, renamed, stored_in
from reyn_jupyter.runtime.events import Event
from reyn_jupyter.runtime.trace import Trace
from reyn_jupyter.sessions.replay import ReplayedModel

Heard = Callable[[str, ModelError], None]
_SOURCES: frozenset[str] = frozenset(get_args(Source))
_MOST = 10**12  # tokens or dollars of one call: beyond it, nobody counted


@runtime_checkable
class Agent(Protocol):
    """A stand-in for a model that may know the scenario (an oracle); what it gives answers in one trial."""

    def for_scenario(self, scenario: Scenario) -> Model: ...


def source_of(model: Model) -> Source:
    """What kind of source a model is: what it says itself (`source`), else real, offline, or scripted.

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


def replayed(events: Iterable[Event]) -> Model:
    """A model that gives the replies of a run again, in their order: of a stored trial, or of any run log.

    Raises:
        ValueError: the events are no run.
    """
    return _Replayed(Trace.from_events(events))


class _Replayed(ReplayedModel):
    """A run's replies; where one names a stored result, it names the one that stands in its place now."""

    source: Source = "replayed"

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace, None, None)
        self._stored: list[tuple[str, ...]] = []
        stored: tuple[str, ...] = ()
        for step in trace.steps:
            if step.requested is not None:
                stored = in_order((*stored, *stored_in(step.requested.messages)))
            if step.replied is not None:
                self._stored.append(stored)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        response = await super().complete(request, on_text)
        now = stored_in(message.wire for message in request.messages)
        return renamed(response, self._stored[self._step - 1], now)


class AbsentModel:
    """In place of a model that cannot be had: every call says why."""

    tier: Tier = "standard"
    host: str | None = None
    real = False

    def __init__(self, label: str, why: ModelError) -> None:
        self.label = label
        self._why = why

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """Raises ModelError."""
        raise self._why


class TrialModel:
    """A model as one trial has it: with the variant's parameters over its own, and with its faults told.

    Args:
        inner: what answers.
        parameters: sent with every request: the model's own, and the variant's over them.
        system: a system prompt of the recording that answers, so that the day is that of the recording.
        provider: whom failures are told of.
        heard: gets the provider and each failed attempt, those that are tried again among them.
        meter: reads what the trial uses.
    """

    def __init__(
        self,
        inner: Model,
        parameters: Mapping[str, Any],
        provider: str,
        heard: Heard | None = None,
        system: str | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._inner = inner
        self._provider = provider
        self._heard = heard
        self._meter = Meter() if meter is None else meter
        self.label: str = inner.label
        self.tier: Tier = inner.tier
        self.host: str | None = inner.host
        self.real: bool = inner.real
        self.system = system
        self.parameters = dict(parameters)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """The inner model's answer. Raises ModelError, and nothing else but a cancellation of the trial."""
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
            if self._heard is not None:
                self._heard(self._provider, error)
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
    """Whether a budget can be kept with what a model says that it used."""
    counts = (response.usage.prompt_tokens, response.usage.completion_tokens)
    cost = 0.0 if response.cost is None else response.cost
    return all(isinstance(each, int) and 0 <= each < _MOST for each in counts) and 0.0 <= cost < _MOST
