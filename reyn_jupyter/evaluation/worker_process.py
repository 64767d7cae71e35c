"""One worker process: how it is started, asked and ended, and what it does.

Invariants: questions are answered in their order, each once, or with `LostError` when the process is gone; an interrupt
of the terminal's whole group of processes never reaches a worker, not even while it starts; a worker ends with the
process that started it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reyn_jupyter.evaluation.variant import Variant

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.trial_run import Bench

_PATIENCE = 5.0  # seconds that a killed process may take to be gone
_INTERRUPT = {signal.SIGINT}


class Asked(NamedTuple):
    """A trial, as a worker that has the suite is told of it."""

    scenario: str
    variant: Variant
    repeat: int


class LostError(Exception):
    """The process is gone; the message says how it ended."""


class Seat:
    """A place for one worker process; it is started when it is needed, after it died too.

    Args:
        recipe: a pickled `Recipe`.
        scratch: where the worker's temporary folder lies.
    """

    def __init__(self, recipe: bytes, scratch: Path) -> None:
        self._recipe = recipe
        self._scratch = scratch
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._starting: asyncio.Task[None] | None = None
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self.load = 0  # questions that wait for their answer

    async def ask(self, asked: Asked) -> Any:
        """The trial and its events.

        Raises:
            LostError: the process ended before it answered.
            Exception: what went wrong in the process.
        """
        self.load += 1
        try:
            await self._started()
            return await self._sent(asked)
        except asyncio.CancelledError:
            self._stop()
            raise
        finally:
            self.load -= 1

    async def _started(self) -> None:
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
        resource_tracker.ensure_running()  # its own start would let interrupts through again
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)
        try:
            # Forking a process that has threads, as a kernel has, may copy a lock that nobody opens again.
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(there, self._recipe, self._scratch, os.getpid()),
                name="reyn-trials",
                daemon=True,
            )
            process.start()
            there.close()
            self._process, self._pipe = process, here
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    async def _sent(self, asked: Asked) -> Any:
        pipe, loop = self._pipe, asyncio.get_running_loop()
        if pipe is None:
            raise LostError("it was ended")
        answer: asyncio.Future[Any] = loop.create_future()
        try:
            pipe.send(asked)
        except OSError:
            raise self._lost() from None
        if not self._waiting:
            loop.add_reader(pipe.fileno(), self._answered)
        self._waiting.append(answer)
        return await answer

    def _answered(self) -> None:
        """The pipe can be read: take one answer."""
        if self._pipe is None:
            return
        try:
            fault, found = self._pipe.recv()
        except (EOFError, OSError):
            self._lost()
            return
        except Exception as error:  # noqa: BLE001 - what cannot be read is an answer too
            fault, found = error, None
        answer = self._waiting.popleft()
        if not self._waiting:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        if answer.done():
            return
        if fault is not None:
            answer.set_exception(fault)
        else:
            answer.set_result(found)

    def _lost(self) -> LostError:
        """The process is gone: tell whoever waits."""
        process = self._process
        waiting = self._stop()
        code = process.exitcode if process is not None else None
        how = (
            f"it was killed by signal {-code}"
            if code is not None and code < 0
            else f"it ended with status {code}"
        )
        for answer in waiting:
            if not answer.done():
                answer.set_exception(LostError(how))
        return LostError(how)

    def _stop(self) -> list[asyncio.Future[Any]]:
        """End the process, on the loop that asks it; who waits for it."""
        waiting = list(self._waiting)
        if waiting and self._pipe is not None:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        self._waiting.clear()
        if self._pipe is not None:
            self._pipe.close()
        self.end()
        self._process = self._pipe = None
        return waiting

    def end(self) -> None:
        """Kill the process, from any thread. It holds nothing that would have to be put in order."""
        if (process := self._process) is not None:
            process.kill()
            process.join(_PATIENCE)


# In the worker


def _serve(pipe: Connection, recipe: bytes, scratch: Path, parent: int) -> None:
    """Answer questions until the pipe is closed. An interrupt is the parent's business; without the parent it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
    threading.Thread(target=_end_with, args=(parent, scratch), daemon=True).start()
    try:
        bench: Bench = pickle.loads(recipe).bench(scratch)  # noqa: S301 - from the parent, through its own pipe
    except BaseException as error:  # noqa: BLE001 - the parent raises it
        while _next(pipe) is not None:
            pipe.send((_portable(error), None))
        return
    scenarios = {scenario.digest: scenario for scenario in bench.suite.scenarios}
    loop = asyncio.new_event_loop()
    while (asked := _next(pipe)) is not None:
        try:
            # With the key by this process's own code.
            plan = bench.plan(scenarios[asked.scenario], asked.variant, asked.repeat)
            answer = pickle.dumps((None, loop.run_until_complete(bench.run(plan))))
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            answer = pickle.dumps((_portable(error), None))
        pipe.send_bytes(answer)
    bench.close()


def _next(pipe: Connection) -> Asked | None:
    try:
        found: Asked = pipe.recv()
    except (EOFError, OSError):
        return None
    return found


def _portable(error: BaseException) -> Exception:
    """The error itself where it survives the way, else its words."""
    with suppress(Exception):
        found = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
        if isinstance(found, Exception):
            return found
    return RuntimeError(f"{type(error).__name__}: {error}")


def _end_with(parent: int, scratch: Path) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    from reyn_jupyter.evaluation.workspaces import remove

    with suppress(OSError):  # the owner of the folder is gone
        remove(scratch)
    os._exit(1)
