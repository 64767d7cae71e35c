"""Run tasks in processes of this machine, so that work which computes uses more than one core.

Invariants: each process has a channel of its own and shares no lock with anybody, so one that is killed at any moment,
also while it answers, takes nothing along but the task that it was at; another is started in its place. An interrupt of
the terminal's whole group of processes never reaches a worker, not even while it starts; no worker outlives the
executor or the process that started it. Cancelling a task kills its process: what computes cannot be stopped otherwise.

Why not a library: when one of two processes is killed, `concurrent.futures` and loky lose every task of the pool (19 of
19 that were left, where one is lost here) and the pool with it; pebble shares a lock that a killed worker keeps.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Self

from reyn_jupyter.executors.executor import (
    SentSpec,
    Task,
    TaskWorker,
    UnsendableError,
    WorkerLostError,
    unpickle,
)
from reyn_jupyter.support.files.scratch import Scratch, sweep

MOST = max(16, 4 * (os.cpu_count() or 1))  # processes
_AHEAD = 2  # tasks that a process has: one that runs, one that waits
_LARGE = 32 << 10  # bytes that fit into a channel which nobody reads yet
_PATIENCE = 30.0  # seconds that a killed process may take to be gone
_INTERRUPT = {signal.SIGINT}
_VARIABLE = "PYTHONSAFEPATH"


class ProcessExecutor:
    """Processes that run tasks, each started with its first one.

    Args:
        count: how many; as many as there are processors for this process when None.

    Raises:
        ValueError: none, or more than `MOST`.

    Example:
        >>> with ProcessExecutor(2) as executor:                        # doctest: +SKIP
        ...     result = await executor.submit(Task(spec, payload))
    """

    def __init__(self, count: int | None = None) -> None:
        if count is None:
            count = min(MOST, _processors())
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
            raise ValueError(f"ProcessExecutor({count!r}): give a whole number of processes from 1 to {MOST}")
        _mend_main()
        self.slots = _AHEAD * count
        self._count, self._closed = count, False
        self._scratch = Scratch()
        self._workers: list[WorkerProcess] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(self.slots)
        weakref.finalize(self, _end, self._workers, os.getpid())

    def __repr__(self) -> str:
        return f"ProcessExecutor({self._count})"

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes that live."""
        return tuple(pid for worker in self._workers if (pid := worker.pid) is not None)

    async def submit(self, task: Task) -> Any:
        """See `Executor.submit`. Raises UnsendableError for a payload that does not pickle, too."""
        return result_of(await self.submit_pickled(task.spec, pickle_payload(task)))

    async def submit_pickled(self, spec: SentSpec, payload: bytes) -> bytes:
        """Run a task whose payload is pickled, and return its answer for `result_of`. Raises WorkerLostError."""
        self._follow_loop()
        async with self._free:
            while True:
                if not self._workers:
                    raise WorkerLostError("the executor was closed")
                worker = min(self._workers, key=lambda each: each.load)
                with suppress(_NotBegunError):
                    return await worker.run(spec, payload)

    def _follow_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._closed:
            raise RuntimeError("This executor was closed; make another one.")
        if self._loop is not loop:  # the first task, or the engine before this one was given up
            _end(self._workers, os.getpid())
            self._workers += [WorkerProcess(self._scratch) for _ in range(self._count)]
            self._loop, self._free = loop, asyncio.Semaphore(self.slots)

    def close(self) -> None:
        """See `Executor.close`; from any thread."""
        self._closed = True
        _end(self._workers, os.getpid())
        self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _mend_main() -> None:
    main = sys.modules.get("__main__")
    if main is not None and not hasattr(main, "__spec__"):
        # An embedded shell puts a bare namespace there; a spawned process asks it where it came from.
        main.__spec__ = None


class _NotBegunError(Exception):
    """The process ended before it came to this task, which another one can take."""


@dataclass(eq=False)
class _Request:
    """A task that was sent, and whoever waits for its answer."""

    number: int
    answer: asyncio.Future[bytes]


class WorkerProcess:
    """A place for one process, started when it is needed, after it died too.

    Args:
        scratch: where the process gets a temporary folder.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._starting: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self._sent: deque[_Request] = deque()  # in the order of their answers
        self._opened: set[str] = set()
        self._numbers = 0
        self._has_answered = self._closed = False
        self.load = 0  # tasks that wait for their answer

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.is_alive() else None

    async def run(self, spec: SentSpec, payload: bytes) -> bytes:
        """Return the answer to a task, for `result_of`.

        Raises:
            WorkerLostError: the process ended while it was at this task.
            _NotBegunError: it ended before.
        """
        self.load += 1
        try:
            await self._start_process()
            async with self._sending:
                try:
                    request = await self._send(spec, payload)
                except asyncio.CancelledError:
                    self._restart()  # half a message may be on its way
                    raise
            try:
                return await request.answer
            except asyncio.CancelledError:
                self._cancel(request)
                raise
        finally:
            self.load -= 1

    async def _start_process(self) -> None:
        if self._process is None and self._starting is None:
            self._starting = asyncio.ensure_future(asyncio.to_thread(self._start))
            self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        if self._starting is not None:
            try:
                await asyncio.shield(self._starting)  # an interrupt leaves it to whoever comes next
            finally:
                if self._starting is not None and self._starting.done():
                    self._starting = None

    def _start(self) -> None:
        """Start the process, with interrupts held back until it can ignore them."""
        with _safe_path:
            resource_tracker.ensure_running()  # its own start would let interrupts through again
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)
        try:
            # Forking a process that has threads, as a kernel has, may copy a lock that nobody opens again.
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(there, self._scratch.folder(), self._scratch.base, os.getpid()),
                name="reyn-worker",
                daemon=True,
            )
            with _safe_path, _free_to_start:
                process.start()
            there.close()
            self._process, self._pipe = process, here
            if self._closed:  # meanwhile
                self._end()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    async def _send(self, spec: SentSpec, payload: bytes) -> _Request:
        pipe, loop = self._pipe, asyncio.get_running_loop()
        if pipe is None:
            raise _NotBegunError
        self._numbers += 1
        request = _Request(self._numbers, loop.create_future())
        messages = [pickle.dumps(("task", request.number, spec.digest, payload))]
        if spec.digest not in self._opened:
            messages.insert(0, pickle.dumps(("spec", 0, spec.digest, spec.data)))
        try:
            for message in messages:
                if len(message) < _LARGE:
                    pipe.send_bytes(message)
                else:  # it may wait until the process reads
                    await asyncio.to_thread(pipe.send_bytes, message)
        except OSError as error:
            if pipe is not self._pipe or self._has_answered:
                self._lose(pipe)
                raise _NotBegunError from error
            raise WorkerLostError(self._lose(pipe)) from None  # it never came to work
        if pipe is not self._pipe:
            raise _NotBegunError
        self._opened.add(spec.digest)
        if not self._sent:
            loop.add_reader(pipe.fileno(), self._take_answer)
        self._sent.append(request)
        return request

    def _take_answer(self) -> None:
        """Take one answer from the pipe, which can be read."""
        if (pipe := self._pipe) is None:
            return
        try:
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            self._lose(pipe)
            return
        request = self._sent.popleft()
        if not self._sent:
            asyncio.get_running_loop().remove_reader(pipe.fileno())
        self._has_answered = True
        _answer(request, data)

    def _cancel(self, request: _Request) -> None:
        """Stop what nobody waits for any more: by a word where it has not begun, else with the process."""
        if self._pipe is None or request not in self._sent:
            return
        if request is self._sent[0]:
            self._restart()
            return
        with suppress(OSError):
            self._pipe.send_bytes(pickle.dumps(("drop", request.number, "", b"")))

    def _restart(self) -> None:
        """End the process; who waits for it is given to another one."""
        for left in self._stop():
            _refuse(left, _NotBegunError())

    def _lose(self, pipe: Connection) -> str:
        """Tell whoever waits that the process of this pipe is gone; return how it ended."""
        if pipe is not self._pipe:
            return "it was ended"
        process, waiting = self._process, self._stop()
        code = process.exitcode if process is not None else None
        signalled = code is not None and code < 0
        how = f"it was killed by signal {-code}" if signalled and code else f"it ended with status {code}"
        for place, request in enumerate(waiting):
            _refuse(request, WorkerLostError(how) if place == 0 else _NotBegunError())
        return how

    def _stop(self) -> list[_Request]:
        """End the process, on the loop that asks it, take the answers that it gave, and return what it left."""
        pipe = self._pipe
        if pipe is not None and self._sent:
            asyncio.get_running_loop().remove_reader(pipe.fileno())
        self._end()
        if pipe is not None:
            with suppress(EOFError, OSError):
                while self._sent and pipe.poll():
                    data = pipe.recv_bytes()
                    _answer(self._sent.popleft(), data)
            pipe.close()
        left = list(self._sent)
        self._sent.clear()
        self._opened.clear()
        self._process = self._pipe = None
        self._has_answered = False
        return left

    def close(self) -> None:
        """End the process for good, from any thread. It holds nothing that would have to be put in order."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        if (process := self._process) is not None:
            process.kill()
            process.join(_PATIENCE)


def pickle_payload(task: Task) -> bytes:
    """Return the payload of a task as it is sent. Raises UnsendableError."""
    try:
        return pickle.dumps(task.payload)
    except Exception as error:
        raise UnsendableError(
            f"A task cannot be sent to another process: {error}. Give data, or objects of classes of a module."
        ) from error


def result_of(answer: bytes) -> Any:
    """Return what a task gave, or raise what it raised, from its answer."""
    fault, result = unpickle(answer)
    if fault is not None:
        raise fault
    return result


def _answer(request: _Request, data: bytes) -> None:
    if not request.answer.done():
        request.answer.set_result(data)


def _refuse(request: _Request, error: Exception) -> None:
    if not request.answer.done():
        request.answer.set_exception(error)


def _end(workers: list[WorkerProcess], owner: int) -> None:
    if os.getpid() == owner:  # a fork of this process does not own them
        for worker in workers:
            worker.close()
        workers.clear()


class _SafePath:
    """Let a Python that is started in the block not look for its own modules in the working folder.

    It is started with `-c`, for which the working folder comes first, before its path is set to that of this process.
    The variable is the whole process's, and workers start beside each other: the first to enter keeps what was there,
    the last to leave puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._before: str | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._within == 0:
                self._before = os.environ.get(_VARIABLE)
                os.environ[_VARIABLE] = "1"
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if self._within:
                return
            if self._before is None:
                os.environ.pop(_VARIABLE, None)
            else:
                os.environ[_VARIABLE] = self._before


_safe_path = _SafePath()


class _FreeToStart:
    """Let a daemonic process, as Dask's workers are, start others in the block: these end with it by themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._was_daemonic = False

    def __enter__(self) -> None:
        self._lock.acquire()
        current = multiprocessing.current_process()
        self._was_daemonic = current.daemon
        if self._was_daemonic:
            current.daemon = False

    def __exit__(self, *_: object) -> None:
        if self._was_daemonic:
            multiprocessing.current_process().daemon = True
        self._lock.release()


_free_to_start = _FreeToStart()


# In the worker


def _serve(pipe: Connection, folder: Path, base: Path, parent: int) -> None:
    """Run tasks until the pipe is closed. An interrupt is the parent's business; without the parent it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
    threading.Thread(target=_end_with, args=(parent, base), daemon=True).start()
    loop = asyncio.new_event_loop()
    workers = _OpenedWorkers(folder)
    for digest, payload in _coming_tasks(pipe, workers):
        try:
            result = loop.run_until_complete(workers.get(digest).run(unpickle(payload)))
            answer = pickle.dumps((None, result))
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            answer = pickle.dumps((_portable(error), None))
        try:
            pipe.send_bytes(answer)
        except OSError:
            break
    for worker in workers.opened:
        loop.run_until_complete(worker.release())
        worker.close()


class _OpenedWorkers:
    """The workers of one process, opened with their first task."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.specs: dict[str, SentSpec] = {}
        self._found: dict[str, TaskWorker] = {}

    @property
    def opened(self) -> list[TaskWorker]:
        return list(self._found.values())

    def get(self, digest: str) -> TaskWorker:
        if digest not in self._found:
            own = self._folder / digest[:16]
            own.mkdir(exist_ok=True)
            self._found[digest] = self.specs[digest].open(own)
        return self._found[digest]


def _coming_tasks(pipe: Connection, workers: _OpenedWorkers) -> Iterator[tuple[str, bytes]]:
    """Yield tasks as they come; what was dropped meanwhile is answered by nothing."""
    waiting: deque[tuple[int, str, bytes]] = deque()
    dropped: set[int] = set()
    while True:
        try:
            while not waiting or pipe.poll():
                kind, number, digest, data = pickle.loads(pipe.recv_bytes())  # noqa: S301 - from the parent
                if kind == "spec":
                    workers.specs[digest] = SentSpec(data, digest)
                elif kind == "drop":
                    dropped.add(number)
                else:
                    waiting.append((number, digest, data))
            number, digest, data = waiting.popleft()
            if number in dropped:
                dropped.discard(number)
                pipe.send_bytes(pickle.dumps((None, None)))
                continue
        except (EOFError, OSError):
            return
        yield digest, data


def _portable(error: BaseException) -> Exception:
    """Return the error itself where it survives the way, else its words."""
    with suppress(Exception):
        found = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
        if isinstance(found, Exception):
            return found
    return RuntimeError(f"{type(error).__name__}: {error}")


def _end_with(parent: int, base: Path) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    with suppress(OSError):  # the owner of the folder is gone
        sweep(base)
    os._exit(1)
