"""One daemon thread with one event loop a process; the pump that the main thread runs meanwhile.

A kernel's own loop is already running in its main thread, so nothing of ours runs there. Invariants:
an interrupt cancels that one task and waits for its cleanup, so that nothing goes on spending; everything that
touches the notebook (functions, variables, `input()`, displays) happens on the thread that called `run`, or,
without a pump, on the loop of the caller; a synchronous call that would wait for itself raises at once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Interrupted(KeyboardInterrupt):
    """The person interrupted a run. `result` is what the run gave after its cleanup, if anything."""

    def __init__(self, result: Any = None) -> None:
        super().__init__("interrupted")
        self.result = result


class WouldDeadlockError(RuntimeError):
    """A synchronous call from where only an awaited one can work."""


@dataclass(frozen=True)
class MainThreadCall(Generic[T]):
    """A function to run on the notebook's thread, and where its result goes."""

    function: Callable[[], T]
    future: asyncio.Future[T]
    loop: asyncio.AbstractEventLoop

    def serve(self) -> None:
        """Run the function here. KeyboardInterrupt goes through, after the waiting side was told."""
        if self.future.cancelled():
            return
        _serving.depth = getattr(_serving, "depth", 0) + 1
        try:
            result = self.function()
        except KeyboardInterrupt:
            self._settle(lambda: self.future.cancel())
            raise
        except BaseException as error:  # noqa: BLE001 - it belongs to the waiting side, whatever it is
            self._settle(lambda error=error: self.future.set_exception(_carried(error)))  # type: ignore[misc]
        else:
            self._settle(lambda: self.future.set_result(result))
        finally:
            _serving.depth -= 1

    def _settle(self, settle: Callable[[], object]) -> None:
        self.loop.call_soon_threadsafe(lambda: None if self.future.done() else settle())


def _carried(error: BaseException) -> BaseException:
    """A future refuses StopIteration; SystemExit would end the loop's thread. Both become ordinary errors."""
    if isinstance(error, StopIteration | SystemExit | GeneratorExit):
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


_serving = threading.local()
_deliver: ContextVar[Callable[[MainThreadCall[Any]], None] | None] = ContextVar("deliver", default=None)
_DONE = object()


class Job(Generic[T]):
    """A coroutine under way on the engine. Done only when its cleanup is done, cancelled or not."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.future.set_running_or_notify_cancel()  # so that nobody can settle it but the task
        self._loop = loop
        self._task: asyncio.Task[T] | None = None

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._settle)

    def cancel(self) -> None:
        """Ask it to stop; `future` is done once it has. It has begun by then, so that its cleanup runs."""
        self._loop.call_soon_threadsafe(self._loop.call_soon, lambda: self._task and self._task.cancel())

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.future.set_exception(concurrent.futures.CancelledError())
        elif (error := task.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(task.result())


class Engine:
    """The engine's thread and loop, started on first use.

    Example:
        >>> engine = Engine()
        >>> async def answer() -> int:
        ...     return await engine.main_thread(lambda: 42)
        >>> engine.run(answer())
        42
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="reyn-engine", daemon=True
                )
                self._thread.start()
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def run(self, coroutine: Coroutine[Any, Any, T], on_event: Callable[[Any], None] | None = None) -> T:
        """Run a coroutine on the engine and serve this thread's part of it until it is done.

        Args:
            coroutine: what to run. It may report through `publish`.
            on_event: gets what was published, here, in order. An error in it ends the run.

        Raises:
            Interrupted: the person interrupted; the coroutine was cancelled and has cleaned up.
            WouldDeadlockError: called from the engine's thread or from inside a main-thread call.
        """
        try:
            self._refuse_waiting_for_itself()
            loop = self.loop
        except BaseException:
            coroutine.close()
            raise
        queue: SimpleQueue[Any] = SimpleQueue()
        job = self._start(loop, coroutine, queue.put, queue.put if on_event else None)
        job.future.add_done_callback(lambda _: queue.put(_DONE))
        return _pump(queue, job, on_event)

    def start(
        self,
        coroutine: Coroutine[Any, Any, T],
        *,
        on_event: Callable[[Any], None] | None = None,
        home: asyncio.AbstractEventLoop | None = None,
    ) -> Job[T]:
        """Run a coroutine without a pump; `.cancel()` on the job cancels it.

        Args:
            on_event: gets what is published, on `home`.
            home: the loop that main-thread calls go to (a kernel's own); None refuses them.
        """

        def deliver(call: MainThreadCall[Any]) -> None:
            if home is None:
                refusal = RuntimeError("nothing serves the notebook's thread for this call")
                call.loop.call_soon_threadsafe(
                    lambda: None if call.future.done() else call.future.set_exception(refusal)
                )
            else:
                home.call_soon_threadsafe(call.serve)

        def publish(event: Any) -> None:
            if on_event is not None and home is not None:
                home.call_soon_threadsafe(on_event, event)

        return self._start(self.loop, coroutine, deliver, publish if on_event else None)

    async def awaited(
        self, coroutine: Coroutine[Any, Any, T], on_event: Callable[[Any], None] | None = None
    ) -> T:
        """Run a coroutine on the engine from another loop, and await it there; cancelling cancels it."""
        home = asyncio.get_running_loop()
        if home is self._loop:
            return await coroutine
        job = self.start(coroutine, on_event=on_event, home=home)
        waiting = asyncio.wrap_future(job.future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            job.cancel()
            await asyncio.wait([waiting])
            raise

    async def main_thread(self, function: Callable[[], T], /) -> T:
        """Run `function` where the notebook lives, and wait for it without blocking the engine."""
        deliver = _deliver.get()
        if deliver is None:
            raise RuntimeError("nothing serves the notebook's thread for this call")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        deliver(MainThreadCall(function, future, loop))
        return await future

    def _refuse_waiting_for_itself(self) -> None:
        if threading.current_thread() is self._thread or getattr(_serving, "depth", 0):
            raise WouldDeadlockError(
                "a synchronous call here would wait for itself (this code already runs inside a reyn run). "
                "Use the awaited face instead: await session.aio.ask(…), session.aio.invoke_action(…)."
            )

    @staticmethod
    def _start(
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T],
        deliver: Callable[[MainThreadCall[Any]], None],
        publish: Callable[[Any], None] | None,
    ) -> Job[T]:
        async def within() -> T:
            _deliver.set(deliver)
            _publish.set(publish)
            return await coroutine

        job: Job[T] = Job(loop)
        loop.call_soon_threadsafe(lambda: job.begin(within()))
        return job


_publish: ContextVar[Callable[[Any], None] | None] = ContextVar("publish", default=None)


def publisher() -> Callable[[Any], None] | None:
    """Where the current run's events go on their way to the person; None when nobody looks."""
    return _publish.get()


def _pump(queue: SimpleQueue[Any], job: Job[T], on_event: Callable[[Any], None] | None) -> T:
    interrupted = False
    failure: BaseException | None = None
    while True:
        try:
            item = queue.get()
            if item is _DONE:
                break
            if isinstance(item, MainThreadCall):
                item.serve()
            elif on_event is not None and failure is None:
                on_event(item)
        except KeyboardInterrupt:
            interrupted = True
            job.cancel()
        except Exception as error:  # noqa: BLE001 - a view that fails ends the run cleanly, then shows
            failure = error
            job.cancel()
    if failure is not None:
        raise failure
    if interrupted:
        raise Interrupted(None if job.future.exception() else job.future.result())
    return job.future.result()
