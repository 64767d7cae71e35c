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
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from reyn_jupyter.runtime.pump import DONE, SERVING, Interrupted, Job, MainThreadCall, patiently, pump
from reyn_jupyter.support.import_path import package_imports

T = TypeVar("T")


class WouldDeadlockError(RuntimeError):
    """A synchronous call from where only an awaited one can work."""


# Puts a call before the thread that serves the current run; False when none does any more.
Deliver = Callable[[MainThreadCall[Any]], bool]
_deliver: ContextVar[Deliver | None] = ContextVar("deliver", default=None)
_NOBODY = (
    "nothing serves the notebook's thread for this call: it is answered while a call of reyn waits there, or while the "
    "notebook's own loop runs"
)


class _Desk:
    """The queue of a thread that serves main-thread calls, as long as it does."""

    def __init__(self, queue: SimpleQueue[Any]) -> None:
        self._queue = queue
        self._lock = threading.Lock()
        self._open = True

    def deliver(self, call: MainThreadCall[Any]) -> bool:
        with self._lock:
            if self._open:
                self._queue.put(call)
            return self._open

    def close(self) -> list[MainThreadCall[Any]]:
        """Take no more calls; return those that nobody served."""
        with self._lock:
            self._open = False
        left = []
        with suppress(Empty):
            while True:
                left.append(self._queue.get_nowait())
        return [item for item in left if isinstance(item, MainThreadCall)]


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
        self._desks: list[_Desk] = []  # of the threads that serve calls now, the innermost last
        self._homes: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
        self._at_home: set[MainThreadCall[Any]] = set()  # calls that wait for a loop of the notebook's thread

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
        while True:
            try:
                loop.run_forever()
                return
            except BaseException:  # noqa: BLE001, S112 - a task raised SystemExit; it has it, the loop goes on
                continue

    def run(self, coroutine: Coroutine[Any, Any, T], on_event: Callable[[Any], None] | None = None) -> T:
        """Run a coroutine on the engine and serve this thread's part of it until it is done.

        Args:
            coroutine: what to run. It may report through `publish`.
            on_event: gets what was published, here, in order, and None when nothing more will come for a while
                (100 ms without an event, or this thread is about to be busy), so that a view can show what it
                held back; then again each second in which nothing comes. An error in it ends the run.

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
        desk = self._open_desk(queue)
        job: Job[T] = Job(loop)
        try:
            job.future.add_done_callback(lambda _: queue.put(DONE))
            # An interrupt may strike while this wakes the engine, which may be at work on the job by then.
            self._start(job, coroutine, desk.deliver, queue.put if on_event else None)
            return pump(queue, job, on_event)
        except Interrupted as interrupted:
            if interrupted.why:
                self._leave(loop)
            raise
        except KeyboardInterrupt:
            # One may strike before the first wait, and a second while the first is being taken up: the run ends all the
            # same, before this does.
            job.cancel()
            if patiently(lambda seconds: bool(concurrent.futures.wait([job.future], seconds).done)):
                raise Interrupted(None if job.future.exception() else job.future.result()) from None
            raise
        finally:
            self._close_desk(desk)
            if job.future.done() and not job.begun:
                coroutine.close()

    def _open_desk(self, queue: SimpleQueue[Any]) -> _Desk:
        """Let this thread serve the calls of long-lived tasks too, also those that its own loop has no time for now."""
        desk = _Desk(queue)
        home = running_loop()
        with self._lock:
            if home is not None:
                self._homes.add(home)
            self._desks.append(desk)
            for call in self._at_home:
                desk.deliver(call)
        return desk

    def _close_desk(self, desk: _Desk) -> None:
        with self._lock:
            self._desks.remove(desk)
        for call in desk.close():
            if not self._deliver_anywhere(call):
                call.refuse(RuntimeError(_NOBODY))

    def _deliver_anywhere(self, call: MainThreadCall[Any]) -> bool:
        """Put a call of no run, or of one that is over, before whoever serves the notebook's thread now."""
        call = replace(call, alone=True)
        with self._lock:
            if any(desk.deliver(call) for desk in reversed(self._desks)):
                return True
            homes = [home for home in self._homes if home.is_running()]
            if not homes:
                return False
            self._at_home.add(call)

        def serve() -> None:
            with self._lock:
                self._at_home.discard(call)
            call.serve_alone()

        homes[-1].call_soon_threadsafe(serve)
        return True

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let a blocked loop be; what is called next starts another."""
        with self._lock:
            if self._loop is loop:
                self._loop = self._thread = None

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

        def deliver(call: MainThreadCall[Any]) -> bool:
            if home is None:
                call.refuse(RuntimeError(_NOBODY))
            elif home.is_closed():
                return False
            else:
                home.call_soon_threadsafe(call.serve_alone)
            return True

        if home is not None:
            with self._lock:
                self._homes.add(home)

        def publish(event: Any) -> None:
            if on_event is not None and home is not None and not home.is_closed():
                with suppress(RuntimeError):  # closed just now: nobody looks any more
                    home.call_soon_threadsafe(on_event, event)

        job: Job[T] = Job(self.loop)
        self._start(job, coroutine, deliver, publish if on_event else None)
        return job

    async def awaited(
        self, coroutine: Coroutine[Any, Any, T], on_event: Callable[[Any], None] | None = None
    ) -> T:
        """Run a coroutine on the engine from another loop, and await it there; cancelling cancels it."""
        home = asyncio.get_running_loop()
        if home is self._loop:
            return await _apart(home, coroutine)
        job = self.start(coroutine, on_event=on_event, home=home)
        waiting = asyncio.wrap_future(job.future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            job.cancel()
            await asyncio.wait([waiting])
            with suppress(asyncio.CancelledError):
                waiting.exception()  # looked at, so that asyncio does not write to stderr that nobody did
            raise

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine for one of its worker threads, which waits for it.

        Raises:
            WouldDeadlockError: called from the engine's own thread.
        """
        try:
            self._refuse_waiting_for_itself()
            return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()
        except BaseException:
            coroutine.close()
            raise

    async def main_thread(self, function: Callable[[], T], /) -> T:
        """Run `function` where the notebook lives, and wait for it without blocking the engine.

        Raises:
            RuntimeError: nobody serves the notebook's thread: the call of reyn that the task was begun in is over, no
                other waits there, and no loop runs there.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        call = MainThreadCall(function, future, loop)
        deliver = _deliver.get()
        if not (deliver is not None and deliver(call)) and not self._deliver_anywhere(call):
            raise RuntimeError(_NOBODY)
        return await future

    def _refuse_waiting_for_itself(self) -> None:
        if threading.current_thread() is self._thread or getattr(SERVING, "depth", 0) > 0:
            raise WouldDeadlockError(
                "a synchronous call here would wait for itself (this code already runs inside a reyn run). "
                "Use the awaited face instead: await session.aio.ask(…), session.aio.invoke_action(…)."
            )

    @staticmethod
    def _start(
        job: Job[T],
        coroutine: Coroutine[Any, Any, T],
        deliver: Deliver,
        publish: Callable[[Any], None] | None,
    ) -> None:
        async def within() -> T:
            _deliver.set(deliver)
            _publish.set(publish)
            package_imports()
            try:
                return await coroutine
            except (SystemExit, KeyboardInterrupt) as error:
                raise RuntimeError(f"{type(error).__name__} was raised inside the engine: {error}") from error

        job.loop.call_soon_threadsafe(lambda: job.begin(within()))


_publish: ContextVar[Callable[[Any], None] | None] = ContextVar("publish", default=None)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, a kernel's own in a notebook; None where there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def publisher() -> Callable[[Any], None] | None:
    """Return the function that takes the current run's events on their way to the person; None when nobody looks."""
    return _publish.get()


def also_tell(listener: Callable[[Any], None]) -> None:
    """Let a listener hear, on the engine, what the current task publishes from now on, beside whoever looks already."""
    before = _publish.get()

    def publish(event: Any) -> None:
        listener(event)
        if before is not None:
            before(event)

    _publish.set(publish)


async def _apart(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a task and a context of its own, so that what it sets stays there; cancelling cancels it."""
    context = copy_context()
    context.run(package_imports)
    task = loop.create_task(coroutine, context=context)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
