"""Places for calls that may not all run at once.

Invariant: who waits goes on in the order in which it came; a place that nobody takes over is free again, whatever
happens to those who wait, on whichever loop they do.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, suppress


class _Waiting:
    """A call in the queue, and how many of its kind may run."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.loop = asyncio.get_running_loop()
        self.granted: asyncio.Future[None] = self.loop.create_future()


class CallPlaces:
    """Counts the calls under way by a key, and lets so many run at once.

    Example:
        >>> places = CallPlaces()
        >>> async def one_at_a_time() -> str:
        ...     async with places.taken("server", 1):
        ...         return "ran"
        >>> asyncio.run(one_at_a_time())
        'ran'
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # an engine that a handler blocked is replaced: there may be two loops
        self._under_way: dict[Hashable, int] = {}
        self._queues: dict[Hashable, deque[_Waiting]] = {}

    @asynccontextmanager
    async def taken(
        self, key: Hashable, most: int, waits: Callable[[int], object] = lambda count: None
    ) -> AsyncIterator[None]:
        """Take a place under a key, and give it back at the end.

        Args:
            most: how many calls may run under the key.
            waits: hears of a wait, with how many calls run or wait before this one.
        """
        await self._take(key, most, waits)
        try:
            yield
        finally:
            self._give_back(key)

    async def _take(self, key: Hashable, most: int, waits: Callable[[int], object]) -> None:
        with self._lock:
            queue = self._queues.get(key)
            before = self._under_way.get(key, 0)
            if before < most and not queue:
                self._under_way[key] = before + 1
                return
            waiting = _Waiting(most)
            queue = self._queues.setdefault(key, deque())
            before += len(queue)
            queue.append(waiting)
        try:
            waits(before)
            await waiting.granted
        except BaseException:
            with self._lock:
                in_queue = waiting in queue
                if in_queue:
                    queue.remove(waiting)
            if not in_queue:  # the place was given to it meanwhile
                self._give_back(key)
            raise

    def _give_back(self, key: Hashable) -> None:
        with self._lock:
            self._under_way[key] -= 1
            queue = self._queues.get(key, deque())
            while queue and self._under_way[key] < queue[0].most:
                waiting = queue.popleft()
                with suppress(RuntimeError):  # its loop is closed, and with it the call
                    waiting.loop.call_soon_threadsafe(_grant, waiting.granted)
                    self._under_way[key] += 1
            if not queue:
                self._queues.pop(key, None)
            if not self._under_way[key]:
                del self._under_way[key]


def _grant(place: asyncio.Future[None]) -> None:
    if not place.done():  # else it was cancelled, and gives the place back itself
        place.set_result(None)
