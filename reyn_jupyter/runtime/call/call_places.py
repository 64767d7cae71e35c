"""Places for calls that may not all run at once.

Invariants: who waits goes on in the order in which it came; a place that nobody takes over is free again, whatever
happens to those who wait, on whichever loop they do. A call waits for no place whose holders wait for the call itself,
by way of calls within them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, suppress

from reyn_jupyter.runtime.action_error import ActionError

# A call by a mark of its own, after those of the calls around it, the outermost first.
Lineage = tuple[object, ...]


class CallDeadlockError(ActionError):
    """A call would wait for a place that only its own end could set free."""

    def __init__(self) -> None:
        super().__init__(
            "The call was not made: it would wait for calls that wait for it in their turn.",
            "Make one call after the other, or raise calls.at_once of the category.",
            code="call_deadlock",
        )


class _Waiting:
    """A call in the queue, and how many of its kind may run."""

    def __init__(self, most: int, lineage: Lineage) -> None:
        self.most = most
        self.lineage = lineage
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
        self._under_way: dict[Hashable, list[Lineage]] = {}
        self._queues: dict[Hashable, deque[_Waiting]] = {}

    @asynccontextmanager
    async def taken(
        self,
        key: Hashable,
        most: int,
        waits: Callable[[int], object] = lambda count: None,
        lineage: Lineage = (),
    ) -> AsyncIterator[None]:
        """Take a place under a key, and give it back at the end.

        Args:
            most: how many calls may run under the key.
            waits: hears of a wait, with how many calls run or wait before this one.
            lineage: the call's own mark after those of the calls that it is within.

        Raises:
            CallDeadlockError: the place would never be free.
        """
        await self._take(key, most, waits, lineage)
        try:
            yield
        finally:
            self._give_back(key, lineage)

    async def _take(self, key: Hashable, most: int, waits: Callable[[int], object], lineage: Lineage) -> None:
        with self._lock:
            queue = self._queues.get(key)
            running = self._under_way.get(key, [])
            before = len(running)
            if before < most and not queue:
                self._under_way[key] = [*running, lineage]
                return
            if self._is_stuck(key, lineage, frozenset()):
                raise CallDeadlockError
            waiting = _Waiting(most, lineage)
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
                self._give_back(key, lineage)
            raise

    def _is_stuck(self, key: Hashable, lineage: Lineage, seen: frozenset[Hashable]) -> bool:
        """Return whether every holder of a key waits, by way of calls within it, for one of the lineage's calls."""
        waiting = [(place, each.lineage) for place, queue in self._queues.items() for each in queue]
        seen |= {key}
        return all(
            (holder[-1:] and holder[-1] in lineage)
            or any(
                holder[-1:]
                and holder[-1] in within[:-1]
                and place not in seen
                and self._is_stuck(place, lineage, seen)
                for place, within in waiting
            )
            for holder in self._under_way.get(key, ())
        )

    def _give_back(self, key: Hashable, lineage: Lineage) -> None:
        with self._lock:
            running = self._under_way[key]
            running.remove(lineage)
            queue = self._queues.get(key, deque())
            while queue and len(running) < queue[0].most:
                waiting = queue.popleft()
                with suppress(RuntimeError):  # its loop is closed, and with it the call
                    waiting.loop.call_soon_threadsafe(_grant, waiting.granted)
                    running.append(waiting.lineage)
            if not queue:
                self._queues.pop(key, None)
            if not running:
                del self._under_way[key]


def _grant(place: asyncio.Future[None]) -> None:
    if not place.done():  # else it was cancelled, and gives the place back itself
        place.set_result(None)
