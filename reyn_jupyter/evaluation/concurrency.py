"""How many trials a provider gets at a time: as many as it takes.

Invariant: no provider ever has more trials under way than its limit. The limit doubles with every round of successes
until the provider first refuses, and grows by one a round from then on; a refusal halves it, once for the calls that
were under way together, and nothing new starts before the time that the provider named. Source: additive increase,
multiplicative decrease (Chiu and Jain, 1989), with the slow start of TCP (RFC 5681).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from reyn_jupyter.models.seam import ModelError

_CONGESTION = ("rate_limited", "unavailable")
_BREATH = 0.5  # seconds that nothing starts after a refusal that named no time


@dataclass
class _Lane:
    """One provider."""

    limit: float
    running: int = 0
    free_at: float = 0.0
    refused_at: float = -1.0
    slow_start: bool = True
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


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

    @property
    def limits(self) -> dict[str, int]:
        """Provider → how many trials it gets at a time now."""
        return {provider: int(lane.limit) for provider, lane in self._lanes.items()}

    @asynccontextmanager
    async def slot(self, provider: str, *, local: bool = False) -> AsyncIterator[None]:
        """Wait for room at a provider, first come first served, and hold it for one trial."""
        lane = self._lane(provider, local)
        await self._enter(lane)
        began = self._clock()
        try:
            yield
        except BaseException:
            self._leave(lane)
            raise
        if lane.refused_at < began:
            full = lane.running >= int(lane.limit)  # a limit that is not used says nothing of a larger one
            ceiling = self._most_local if local else self._most
            if full:
                lane.limit = min(ceiling, lane.limit + (1 if lane.slow_start else 1 / lane.limit))
        self._leave(lane)

    def heard(self, provider: str, error: ModelError) -> None:
        """Take note of a model call that failed, whether or not it is made again."""
        lane = self._lanes.get(provider)
        if lane is None or error.kind not in _CONGESTION or not error.retryable:
            return
        now = self._clock()
        if now >= lane.free_at:  # the first refusal of those that were under way together
            lane.limit = max(1.0, lane.limit / 2)
            lane.slow_start = False
        lane.refused_at = now
        lane.free_at = max(lane.free_at, now + (_BREATH if error.retry_after is None else error.retry_after))

    def _lane(self, provider: str, local: bool) -> _Lane:
        lane = self._lanes.get(provider)
        if lane is None:
            lane = self._lanes[provider] = _Lane(min(self._start, self._most_local) if local else self._start)
        return lane

    async def _enter(self, lane: _Lane) -> None:
        if lane.waiting or lane.running >= int(lane.limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            lane.waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(lane)  # the slot was given in the same moment
                else:
                    lane.waiting.remove(turn)
                raise
        else:
            lane.running += 1
        try:
            # Another refusal may move the time meanwhile.
            while (wait := lane.free_at - self._clock()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait)
        except asyncio.CancelledError:
            self._leave(lane)
            raise

    def _leave(self, lane: _Lane) -> None:
        lane.running -= 1
        while lane.waiting and lane.running < int(lane.limit):
            turn = lane.waiting.popleft()
            if not turn.done():
                lane.running += 1
                turn.set_result(None)
