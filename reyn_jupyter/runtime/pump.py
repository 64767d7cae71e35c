"""The jobs that run on the engine for a thread, and the pump, by which that thread serves the notebook meanwhile.

Invariant: a job is done only when its cleanup is, cancelled or not; an interrupt reaches the job before anything of the
notebook's begins anew, and a thread waits for an engine that no longer answers only so long.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")
QUIET = 0.1  # seconds without an event, after which a view may catch up
TICK = 1.0  # seconds between two words to a view while nothing comes, so that its clock goes on
PATIENCE = 2.0  # seconds that an interrupt waits for an engine that a handler keeps from doing anything else
LOOKS = 20  # times that it looks at least: a process that stood still, as with a lid that was closed, is not blocked
BLOCKED = (
    "Interrupted, but an action keeps the engine busy without ever giving way (it blocks instead of awaiting), so "
    "its run could not be told. The next call gets a fresh engine; the run ends when the action gives way."
)
SERVING = threading.local()  # its `depth`: how many main-thread calls this thread is within
DONE = object()
_INTERRUPTED = "interrupted by the person"


class Interrupted(KeyboardInterrupt):
    """The person interrupted a run. `result` is what the run gave after its cleanup, if anything; `why` says what
    kept it from cleaning up, if anything did."""

    def __init__(self, result: Any = None, why: str = "") -> None:
        super().__init__(why or "interrupted")
        self.result = result
        self.why = why


@dataclass(frozen=True, eq=False)
class MainThreadCall(Generic[T]):
    """A function to run on the notebook's thread, and where its result goes."""

    function: Callable[[], T]
    future: asyncio.Future[T]
    loop: asyncio.AbstractEventLoop
    alone: bool = False  # the task that waits for it is not of the run whose thread serves it
    _claim: threading.Lock = field(default_factory=threading.Lock)  # held by whoever serves it, for good

    def serve(self) -> None:
        """Run the function here, unless it ran elsewhere. KeyboardInterrupt goes through: whoever serves the call
        cancels the whole task, and with it the waiting side, so that no half of it goes on."""
        if self.future.cancelled() or not self._claim.acquire(blocking=False):
            return
        SERVING.depth = getattr(SERVING, "depth", 0) + 1
        try:
            result = self.function()
        except KeyboardInterrupt:
            if self.alone:
                self._settle(lambda: self.future.set_exception(RuntimeError(_INTERRUPTED)))
            raise
        except BaseException as error:  # noqa: BLE001 - it belongs to the waiting side, whatever it is
            self._settle(lambda error=error: self.future.set_exception(_carried(error)))  # type: ignore[misc]
        else:
            self._settle(lambda: self.future.set_result(result))
        finally:
            SERVING.depth -= 1

    def serve_alone(self) -> None:
        """Serve on a loop of the caller's, where nobody else could tell the waiting side of an interrupt."""
        try:
            self.serve()
        except KeyboardInterrupt:
            self._settle(lambda: self.future.set_exception(RuntimeError(_INTERRUPTED)))

    def refuse(self, error: Exception) -> None:
        """Answer with an error, unless it is served already."""
        if self._claim.acquire(blocking=False):
            self._settle(lambda: self.future.set_exception(error))

    def _settle(self, settle: Callable[[], object]) -> None:
        self.loop.call_soon_threadsafe(lambda: None if self.future.done() else settle())


def _carried(error: BaseException) -> BaseException:
    """Return the error, or a RuntimeError for one that a future refuses or that would end the loop's thread."""
    if isinstance(error, StopIteration | SystemExit | GeneratorExit):
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class Job(Generic[T]):
    """A coroutine under way on the engine. Done only when its cleanup is done, cancelled or not."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.future.set_running_or_notify_cancel()  # so that nobody can settle it but the task
        self.told = threading.Event()  # set once a cancellation reached the task and all that it waits for
        self.loop = loop
        self._task: asyncio.Task[T] | None = None

    @property
    def begun(self) -> bool:
        return self._task is not None

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._task = self.loop.create_task(coroutine)
        self._task.add_done_callback(self._settle)

    def cancel(self) -> None:
        """Ask the job to stop; `future` is done once it has. It has begun by then, so that its cleanup runs; one that
        was never handed to the loop is over at once."""
        self.loop.call_soon_threadsafe(self.loop.call_soon, self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif not self.future.done():
            self.future.set_exception(concurrent.futures.CancelledError())
        self.told.set()

    def ask_again(self) -> None:
        """Clear `told` until the engine answers: a handler may have begun to block it since."""
        self.told.clear()
        self.loop.call_soon_threadsafe(self.told.set)

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.future.set_exception(concurrent.futures.CancelledError())
        elif (error := task.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(task.result())


class _Patience:
    """The patience with a job that is to stop, since the interrupt or since the engine answered last."""

    def __init__(self, job: Job[Any]) -> None:
        self._job, self._since, self._looks = job, time.monotonic(), 0

    def look(self) -> None:
        """Ask the engine again once the patience is over.

        Raises:
            Interrupted: the engine did not answer.
        """
        self._looks += 1
        if self._looks < LOOKS or time.monotonic() - self._since <= PATIENCE:
            return
        if not self._job.told.is_set():
            raise Interrupted(None, BLOCKED)
        self._job.ask_again()
        self._since, self._looks = time.monotonic(), 0


def pump(queue: SimpleQueue[Any], job: Job[T], on_event: Callable[[Any], None] | None) -> T:
    """Serve this thread's part of a job, and show its events, until it is done.

    Args:
        queue: what the job sends here: `MainThreadCall`s and events, `DONE` at its end.
        on_event: as for `Engine.run`.

    Raises:
        Interrupted: as for `Engine.run`.
    """
    interrupted: _Patience | None = None
    failure: BaseException | None = None
    view = on_event or _nobody_looks
    waiting = False  # whether an event came since the view last heard that it is quiet
    while True:
        try:
            item = _next(queue, QUIET if waiting or interrupted else TICK)
            # An interrupt may strike between taking the last item and looking at it.
            if item is DONE or (item is None and interrupted and job.future.done()):
                break
            if interrupted:
                interrupted.look()
            if isinstance(item, MainThreadCall):
                if waiting:  # the call may take long: what was held back comes first
                    waiting = False
                    view(None)
                _serve(item, job, stopping=bool(interrupted or failure))
            elif failure is None:
                waiting = item is not None
                view(item)
        except Interrupted:
            raise
        except KeyboardInterrupt:
            interrupted = interrupted or _Patience(job)
            job.cancel()
        except Exception as error:  # noqa: BLE001 - a view that fails ends the run cleanly, then shows
            failure = error
            waiting = False
            job.cancel()
    if failure is not None:
        raise failure
    if interrupted:
        raise Interrupted(None if job.future.exception() else job.future.result())
    return job.future.result()


def patiently(wait: Callable[[float], bool]) -> bool:
    """Wait for `PATIENCE` seconds in small steps, so that time in which the process stood still counts as one."""
    return any(wait(PATIENCE / LOOKS) for _ in range(LOOKS))


def _nobody_looks(event: Any) -> None:
    return None


def _serve(call: MainThreadCall[Any], job: Job[Any], *, stopping: bool) -> None:
    if stopping:  # a call that was on its way must not begin after all
        patiently(job.told.wait)
    call.serve()


def _next(queue: SimpleQueue[Any], seconds: float) -> Any:
    """Return the next item of the queue; None when none came within so many seconds."""
    try:
        return queue.get(timeout=seconds)
    except Empty:
        return None
