"""Limit how many trials a provider gets at a time: as many as it takes.

Invariants: no provider ever has more trials under way than its limit, and those that wait for it enter in their planned
order. A server on this machine begins with one. The limit doubles with every round of successes until the provider
first refuses, and grows by one a round from then on; a refusal halves it, once for the calls that
were under way together, and nothing new starts before the time that the provider named. Source: additive increase,
multiplicative decrease (Chiu and Jain, 1989), with the slow start of TCP (RFC 5681).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.providers.provider_facts import is_local

LONGEST_WAIT = 600.0  # seconds; a provider that asks for a longer wait is closed to the run that heard it
_CONGESTION = ("rate_limited", "unavailable", "timeout")
_BREATH = (
    0.5  # seconds that nothing starts after a refusal that named no time, and that refusals count as one
)


class ProviderClosedError(Exception):
    """A provider asks for a longer wait than anybody sits through; the message says how long."""


@dataclass
class _Lane:
    """One provider."""

    limit: float
    most: int
    loop: asyncio.AbstractEventLoop
    running: int = 0
    free_at: float = 0.0
    refused_at: float = -1.0
    halved_until: float = 0.0
    slow_start: bool = True
    waiting: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)  # a heap
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class Concurrency:
    """Slots for trials, by provider.

    Args:
        start: how many trials a provider gets at first.
        most: how many it gets at most.
        most_local: the same for models in this process, which more trials at a time do not make faster.
        clock: seconds, monotonic.

    Example:
        >>> pace = Concurrency(start=2, most=8)
        >>> async def trial() -> float:
        ...     async with pace.slot("api.example.com"):
        ...         return pace.limits["api.example.com"]
        >>> asyncio.run(trial())
        2
    """

    def __init__(
        self,
        *,
        start: int = 4,
        most: int = 32,
        most_local: int = 4,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 1 <= start <= most or most_local < 1:
            raise ValueError(
                f"start={start}, most={most}, most_local={most_local}: give 1 ≤ start ≤ most, most_local ≥ 1"
            )
        self._start, self._most, self._most_local = start, most, most_local
        self._clock = clock
        self._lanes: dict[str, _Lane] = {}
        self._arrivals = itertools.count()

    @property
    def limits(self) -> dict[str, int]:
        """Provider → how many trials it gets at a time now."""
        return {provider: int(lane.limit) for provider, lane in self._lanes.items()}

    @property
    def waits(self) -> dict[str, float]:
        """Provider → seconds before which nothing new starts there, of those that asked for a wait."""
        now = self._clock()
        return {provider: lane.free_at - now for provider, lane in self._lanes.items() if lane.free_at > now}

    def afresh(self) -> None:
        """Open again what is closed: a person asks for another run, so one call may find out."""
        for lane in self._lanes.values():
            if self._is_closed(lane):
                lane.free_at = self._clock()

    @asynccontextmanager
    async def slot(
        self, provider: str, *, local: bool = False, most: int | None = None, place: int = 0
    ) -> AsyncIterator[None]:
        """Wait for room at a provider and hold it for one trial.

        Args:
            provider: a host, or a label of a model in this process.
            local: whether it is in this process.
            most: how many at most, and at once, in place of the pace's own numbers (workers, a model that says so); the
                last word counts.
            place: of those who wait, the lowest enters first; of the same place, whoever came first.

        Raises:
            ProviderClosedError: it asked for a longer wait than `LONGEST_WAIT`.
        """
        lane = self._lane(provider, local, most)
        await self._enter(lane, provider, place)
        began = self._clock()
        try:
            yield
        except BaseException:
            self._leave(lane)
            raise
        if lane.refused_at < began:
            full = lane.running >= int(lane.limit)  # a limit that is not used says nothing of a larger one
            if full:
                lane.limit = min(lane.most, lane.limit + (1 if lane.slow_start else 1 / lane.limit))
        self._leave(lane)

    def on_model_error(self, provider: str, error: ModelError) -> None:
        """Take note of a model call that failed, whether or not it is made again."""
        lane = self._lanes.get(provider)
        if lane is None or error.kind not in _CONGESTION or not error.retryable:
            return
        now = self._clock()
        wait = _BREATH if error.retry_after is None else max(0.0, error.retry_after)
        if now >= lane.halved_until:  # the first refusal of those that were under way together
            lane.limit = max(1.0, lane.limit / 2)
            lane.slow_start = False
            lane.halved_until = now + _BREATH
        lane.refused_at = now
        lane.free_at = max(lane.free_at, now + wait)
        lane.halved_until = max(lane.halved_until, lane.free_at)
        lane.moved.set()
        lane.moved = asyncio.Event()

    def _lane(self, provider: str, local: bool, most: int | None) -> _Lane:
        lane, loop = self._lanes.get(provider), asyncio.get_running_loop()
        if lane is None:
            ceiling = most or (self._most_local if local else self._most)
            # A server on this machine computes on its processors: one more at a time makes the others slower.
            start = most or (1 if is_local(provider) else min(self._start, ceiling))
            lane = self._lanes[provider] = _Lane(start, ceiling, loop)
        elif lane.loop is not loop:  # what holds slots there belongs to an engine that was given up
            lane = self._lanes[provider] = replace(
                lane, loop=loop, running=0, waiting=[], moved=asyncio.Event()
            )
        if most is not None and most != lane.most:  # workers came or went
            lane.limit = lane.most = most
        return lane

    def _is_closed(self, lane: _Lane) -> bool:
        return lane.free_at - self._clock() > LONGEST_WAIT

    async def _enter(self, lane: _Lane, provider: str, place: int) -> None:
        if lane.waiting or lane.running >= int(lane.limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(lane.waiting, (place, next(self._arrivals), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(lane)  # the slot was given in the same moment
                raise
        else:
            lane.running += 1
        try:
            while (wait := lane.free_at - self._clock()) > 0:
                if self._is_closed(lane):
                    raise ProviderClosedError(
                        f"{provider} asks for no call within the next {_format_wait(wait)}"
                    )
                with suppress(TimeoutError):  # or another refusal moves the time meanwhile
                    async with asyncio.timeout(wait):
                        await lane.moved.wait()
        except BaseException:
            self._leave(lane)
            raise

    def _leave(self, lane: _Lane) -> None:
        lane.running -= 1
        while lane.waiting and lane.running < int(lane.limit):
            _, _, turn = heapq.heappop(lane.waiting)
            if not turn.done():
                lane.running += 1
                turn.set_result(None)


def _format_wait(seconds: float) -> str:
    """Return a long time in words.

    >>> _format_wait(900.0), _format_wait(7200.0), _format_wait(1e9)
    ('15 minutes', '2 hours', '11,574 days')
    """
    for unit, length in (("days", 86_400), ("hours", 3_600)):
        if round(seconds) >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds / 60:,.0f} minutes"
