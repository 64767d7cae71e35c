"""The end of a handler that takes too long or is to stop.

Invariants: a handler that is cancelled is waited for a short while and then let go, so that one that ignores its
cancellation holds neither the run nor the kernel; a cancellation reaches what the handler waits for at once, not a turn
of the loop later, so that nothing of the notebook's begins after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

GRACE = 1.0  # seconds that a cancelled handler is waited for

_LET_GO: set[asyncio.Task[Any]] = (
    set()
)  # handlers that ignore their cancellation; a loop holds its tasks weakly


@dataclass(frozen=True)
class _End:
    """The end of a handler: its value, or what it raised, whatever that is."""

    value: object = None
    error: BaseException | None = None


class DeadlineError(Exception):
    """A handler took longer than it may. `stopped` is whether it has ended since."""

    def __init__(self, stopped: bool) -> None:
        super().__init__("the deadline has passed")
        self.stopped = stopped


class _Ending(asyncio.Future[None]):
    """Done once the handler is; cancelling it cancels the handler at once."""

    task: asyncio.Task[_End]

    def cancel(self, msg: Any | None = None) -> bool:
        self.task.cancel(msg)
        return super().cancel(msg)


class Deadline:
    """Runs one handler, at most so many seconds; the clock stands still while `paused`.

    One that is made while another's handler runs, for a call within a call, pauses that one too.

    Args:
        seconds: None sets no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._around = _current.get()
        self._left = seconds
        self._since = 0.0
        self._pauses = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ending: _Ending | None = None

    @property
    def left(self) -> float | None:
        """The seconds that are left now, None without a limit."""
        if self._left is None or self._timer is None or self._ending is None:
            return self._left
        return max(0.0, self._left - (self._ending.get_loop().time() - self._since))

    async def within(self, begin: Callable[[], Awaitable[object]]) -> object:
        """Return what the work gives that `begin` begins. Raises what it raises.

        Raises:
            DeadlineError: it took too long, and was cancelled.
        """
        loop = asyncio.get_running_loop()
        ending = _Ending(loop=loop)
        task = ending.task = loop.create_task(_ended(begin, ending, self))
        self._ending = ending
        self._go_on()
        try:
            await ending
        except asyncio.CancelledError:
            if not ending.cancelled():  # else the task is: cancelled twice, it could not even clean up
                task.cancel()
            await _stop(task)
            raise
        except BaseException:  # the coroutine is closed, and must not wait
            with suppress(RuntimeError):
                task.cancel()
            raise
        finally:
            self._stand_still()
            self._ending = None
        if not task.done():
            task.cancel()
            raise DeadlineError(await _stop(task))
        end = task.result()
        if end.error is not None:
            raise end.error
        return end.value

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand still; several may at once."""
        self._pauses += 1
        self._stand_still()
        try:
            with nullcontext() if self._around is None else self._around.paused():
                yield
        finally:
            self._pauses -= 1
            self._go_on()

    def _go_on(self) -> None:
        if self._left is None or self._pauses or self._ending is None or self._timer is not None:
            return
        loop = self._ending.get_loop()
        self._since = loop.time()
        self._timer = loop.call_later(self._left, self._pass)

    def _stand_still(self) -> None:
        if self._timer is None or self._left is None or self._ending is None:
            return
        self._left = self.left
        self._timer.cancel()
        self._timer = None

    def _pass(self) -> None:
        self._timer = None
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(None)


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def deadlines_paused() -> AbstractContextManager[None]:
    """Let the clocks of the handlers stand still that wait for the caller; outside a handler there are none."""
    deadline = _current.get()
    return nullcontext() if deadline is None else deadline.paused()


async def _ended(begin: Callable[[], Awaitable[object]], ending: _Ending, deadline: Deadline) -> _End:
    """Return the end of the work; what it raises must not end the loop's thread, nor pass for a cancellation.

    `ending` is done with the last step of the task, which is over before anyone who waits goes on.
    """
    _current.set(deadline)
    try:
        return _End(await begin())
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like are the handler's failure
        return _End(error=error)
    finally:
        if not ending.done():
            ending.set_result(None)


async def _stop(task: asyncio.Task[_End]) -> bool:
    """Wait a short while for a cancelled task, and return whether it has ended."""
    if not task.done():
        _LET_GO.add(task)
        task.add_done_callback(_LET_GO.discard)
        await asyncio.wait({task}, timeout=GRACE)
    return task.done()
