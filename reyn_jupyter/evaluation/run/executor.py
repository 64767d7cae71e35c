"""The place where trials run. A small seam: the kernel's own loop by default, other machines for those who have them.

Invariant: an executor runs plans and yields what came of them, as it comes; it writes nothing and decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.trial.trial_runner import TrialPlan

R = TypeVar("R")
PATIENCE = 0.7  # seconds that an interrupt waits for the trials under way to clean up


class Executor(Protocol):
    """Runs plans; yields each result once, in any order."""

    def run(self, plans: Iterable[TrialPlan], one: Callable[[TrialPlan], Awaitable[R]]) -> AsyncIterator[R]:
        """Take plans in their order, a bounded number ahead of what is done, and run `one` for each.

        An error of `one` is a fault of ours: it ends the run, after what was done is yielded. So does a cancellation.
        """
        ...


class AsyncioExecutor:
    """Runs trials as tasks of the current loop.

    Args:
        window: how many are taken ahead; those that wait for a provider count, so that memory stays flat.

    Example:
        >>> async def collect() -> list[int]:
        ...     async def double(plan):
        ...         return 2 * plan
        ...     return sorted([each async for each in AsyncioExecutor().run(range(3), double)])
        >>> asyncio.run(collect())
        [0, 2, 4]
    """

    def __init__(self, window: int = 64) -> None:
        if window < 1:
            raise ValueError(f"window={window}: give a whole number from 1 on")
        self._window = window

    async def run(
        self, plans: Iterable[TrialPlan], one: Callable[[TrialPlan], Awaitable[R]]
    ) -> AsyncIterator[R]:
        """See `Executor.run`."""
        coming = iter(plans)
        running: set[asyncio.Task[R]] = set()
        ended: deque[asyncio.Task[R]] = deque()  # in the order in which they did
        moved = asyncio.Event()

        def note(task: asyncio.Task[R]) -> None:
            ended.append(task)
            moved.set()

        more = True
        try:
            while True:
                while more and len(running) < self._window:
                    plan = next(coming, None)
                    if plan is None:
                        more = False
                    else:
                        task = asyncio.ensure_future(_await_one(one, plan))
                        task.add_done_callback(note)
                        running.add(task)
                if not running:
                    return
                await moved.wait()
                moved.clear()
                failed: BaseException | None = None
                while ended:
                    task = ended.popleft()
                    running.discard(task)
                    error = asyncio.CancelledError() if task.cancelled() else task.exception()
                    if error is not None:
                        failed = failed or error
                    else:
                        yield task.result()
                if failed is not None:
                    raise failed
        except (asyncio.CancelledError, Exception):
            # What is done by now was paid for, so it is handed over before the run ends.
            for task in await _stop_all(running):
                yield task.result()
            running = set()
            raise
        finally:
            await _stop_all(running)


@asynccontextmanager
async def closing(results: AsyncIterator[R]) -> AsyncIterator[AsyncIterator[R]]:
    """Close results in the end, where they are a generator; an executor may give any iterator."""
    try:
        yield results
    finally:
        if (close := getattr(results, "aclose", None)) is not None:
            await close()


async def _await_one(one: Callable[[TrialPlan], Awaitable[R]], plan: TrialPlan) -> R:
    return await one(plan)


async def _stop_all(running: set[asyncio.Task[R]]) -> list[asyncio.Task[R]]:
    """Cancel tasks and wait a little for their cleanup; those that had done their work."""
    if not running:
        return []
    for task in running:
        task.cancel()
    done, _ = await asyncio.wait(running, timeout=PATIENCE)
    return [task for task in done if not task.cancelled() and task.exception() is None]
