"""Run a function for each of many items, a bounded number at a time.

Invariant: each result is handed over once, also those that were done when the run was cancelled or failed; nothing that
was begun goes on afterwards.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
PATIENCE = 0.7  # seconds that a cancellation waits for what is under way to clean up
_LOOKS = 7  # in how many steps: time in which the process stood still counts as one of them
WINDOW = 64


async def run_bounded(
    items: Iterable[T], run: Callable[[T], Awaitable[R]], *, window: int = WINDOW, ordered: bool = False
) -> AsyncGenerator[R, None]:
    """Yield what `run` returns for each item.

    Args:
        items: taken in their order.
        run: begins in that order. Its first error ends everything, after what was done is yielded; so does a
            cancellation.
        window: how many items at most are begun and not yielded yet, so that a slow reader holds everything up.
        ordered: yield in the order of the items; as they come otherwise.

    Raises:
        ValueError: a window of nothing.

    Example:
        >>> async def double(number: int) -> int:
        ...     return 2 * number
        >>> async def collect() -> list[int]:
        ...     return [each async for each in run_bounded(range(3), double, ordered=True)]
        >>> asyncio.run(collect())
        [0, 2, 4]
    """
    if window < 1:
        raise ValueError(f"window={window}: give a whole number from 1 on")
    under_way = _UnderWay(items, run, window, ordered)
    try:
        while under_way.begin():
            await under_way.moved.wait()
            under_way.moved.clear()
            failed: BaseException | None = None
            while (task := under_way.take_ended()) is not None:
                error = asyncio.CancelledError() if task.cancelled() else task.exception()
                if error is None:
                    yield task.result()
                else:
                    failed = failed or error
            if failed is not None:
                raise failed
    except (asyncio.CancelledError, Exception):
        # What is done by now was paid for, so it is handed over before the end.
        for result in await under_way.stop():
            yield result
        raise
    finally:
        await under_way.stop()


class _UnderWay(Generic[T, R]):
    """The tasks that are begun and not yielded yet."""

    def __init__(
        self, items: Iterable[T], run: Callable[[T], Awaitable[R]], window: int, ordered: bool
    ) -> None:
        self._coming, self._more = iter(items), True
        self._run, self._window, self._ordered = run, window, ordered
        self._begun: deque[asyncio.Task[R]] = deque()  # in the order of the items
        self._ended: deque[asyncio.Task[R]] = deque()  # in the order in which they did
        self.moved = asyncio.Event()

    def begin(self) -> bool:
        """Begin as many as there is room for; False where nothing is left."""
        while self._more and len(self._begun) < self._window:
            try:
                item = next(self._coming)
            except StopIteration:
                self._more = False
            else:
                task = asyncio.ensure_future(_await_one(self._run, item))
                task.add_done_callback(self._note)
                self._begun.append(task)
        return bool(self._begun)

    def _note(self, task: asyncio.Task[R]) -> None:
        if not self._ordered:
            self._ended.append(task)
        self.moved.set()

    def take_ended(self) -> asyncio.Task[R] | None:
        """Take the next task that has ended; None where it has not, or there is none."""
        if self._ordered:
            return self._begun.popleft() if self._begun and self._begun[0].done() else None
        if not self._ended:
            return None
        self._begun.remove(self._ended[0])
        return self._ended.popleft()

    async def stop(self) -> list[R]:
        """Cancel all and wait a little for their cleanup; the results of those that had done their work."""
        tasks = list(self._begun)
        self._begun.clear()
        for task in tasks:
            task.cancel()
        for _ in range(_LOOKS if tasks else 0):
            if not (await asyncio.wait(tasks, timeout=PATIENCE / _LOOKS))[1]:
                break
        return [
            task.result()
            for task in tasks
            if task.done() and not task.cancelled() and task.exception() is None
        ]


async def _await_one(run: Callable[[T], Awaitable[R]], item: T) -> R:
    return await run(item)
