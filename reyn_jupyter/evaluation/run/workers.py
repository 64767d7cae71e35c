"""Run trials in worker processes, so that models in this process use more than one core.

Only models that answer in the process are run so: a hosted model gains nothing, and its calls are paced here.

Invariants: a worker has a trial runner of its own, made from the same plain data, and gives back trials and events; it
never sees the study's file. What it would try differently (another version of the code, another catalog) is refused.
Requests are answered in their order, each once, or with `LostError` when the process is gone, which costs no more than
the trials that it was at: they are tried again. An interrupt of the terminal's whole group of processes never reaches a
worker, not even while it starts; no worker outlives the study or the process that started it.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from reyn_jupyter.config import Settings
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialPlan, TrialRunner
from reyn_jupyter.evaluation.trial.workspaces import Scratch
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.support.import_path import persons_imports

_PATIENCE = 5.0  # seconds that a killed process may take to be gone
_INTERRUPT = {signal.SIGINT}


class TrialRequest(NamedTuple):
    """A trial, as a worker that has the suite is told of it."""

    scenario: str
    variant: Variant
    repeat: int


class LostError(Exception):
    """The process is gone; the message says how it ended."""


class WorkerProcess:
    """A place for one worker process; it is started when it is needed, after it died too.

    Args:
        spec: a pickled `RunnerSpec`.
        scratch: where the worker's temporary folder lies.
    """

    def __init__(self, spec: bytes, scratch: Path) -> None:
        self._spec = spec
        self._scratch = scratch
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._starting: asyncio.Task[None] | None = None
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self.load = 0  # questions that wait for their answer

    async def ask(self, asked: TrialRequest) -> Any:
        """Return the trial and its events.

        Raises:
            LostError: the process ended before it answered.
            Exception: what went wrong in the process.
        """
        self.load += 1
        try:
            await self._start_process()
            return await self._sent(asked)
        except asyncio.CancelledError:
            self._stop()
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
        with _safe_path():
            resource_tracker.ensure_running()  # its own start would let interrupts through again
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)
        try:
            # Forking a process that has threads, as a kernel has, may copy a lock that nobody opens again.
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(there, self._spec, self._scratch, os.getpid()),
                name="reyn-trials",
                daemon=True,
            )
            with _safe_path():
                process.start()
            there.close()
            self._process, self._pipe = process, here
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    async def _sent(self, asked: TrialRequest) -> Any:
        pipe, loop = self._pipe, asyncio.get_running_loop()
        if pipe is None:
            raise LostError("it was ended")
        answer: asyncio.Future[Any] = loop.create_future()
        try:
            pipe.send(asked)
        except OSError:
            raise self._lost() from None
        if not self._waiting:
            loop.add_reader(pipe.fileno(), self._take_answer)
        self._waiting.append(answer)
        return await answer

    def _take_answer(self) -> None:
        """Take one answer from the pipe, which can be read."""
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
        """Tell whoever waits for an answer that the process is gone."""
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
        """End the process, on the loop that asks it, and return the requests that wait for it."""
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


@contextmanager
def _safe_path() -> Iterator[None]:
    """Let a Python that is started in the block not look for its own modules in the working folder.

    It is started with `-c`, for which the working folder comes first, before its path is set to that of this process.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)
        else:
            os.environ["PYTHONSAFEPATH"] = before


# In the worker


def _serve(pipe: Connection, spec: bytes, scratch: Path, parent: int) -> None:
    """Answer questions until the pipe is closed. An interrupt is the parent's business; without the parent it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
    threading.Thread(target=_end_with, args=(parent, scratch), daemon=True).start()
    try:
        with persons_imports():  # a model of the person's may be of a module in the working folder
            given = pickle.loads(spec)  # noqa: S301 - from the parent, through its own pipe
        trial_runner: TrialRunner = given.trial_runner(scratch)
    except BaseException as error:  # noqa: BLE001 - the parent raises it
        while _next(pipe) is not None:
            pipe.send((_portable(error), None))
        return
    scenarios = {scenario.digest: scenario for scenario in trial_runner.suite.scenarios}
    loop = asyncio.new_event_loop()
    while (asked := _next(pipe)) is not None:
        try:
            # With the key by this process's own code.
            plan = trial_runner.plan(scenarios[asked.scenario], asked.variant, asked.repeat)
            answer = pickle.dumps((None, loop.run_until_complete(trial_runner.run(plan))))
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            answer = pickle.dumps((_portable(error), None))
        pipe.send_bytes(answer)
    loop.run_until_complete(trial_runner.release())
    trial_runner.close()


def _next(pipe: Connection) -> TrialRequest | None:
    try:
        found: TrialRequest = pipe.recv()
    except (EOFError, OSError):
        return None
    return found


def _portable(error: BaseException) -> Exception:
    """Return the error itself where it survives the way, else its words."""
    with suppress(Exception):
        found = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
        if isinstance(found, Exception):
            return found
    return RuntimeError(f"{type(error).__name__}: {error}")


def _end_with(parent: int, scratch: Path) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    from reyn_jupyter.evaluation.trial.workspaces import remove

    with suppress(OSError):  # the owner of the folder is gone
        remove(scratch)
    os._exit(1)


_ATTEMPTS = 2  # processes that may die of one trial


@dataclass(frozen=True)
class RunnerSpec:
    """The parts that a trial runner is made from, as plain data for another process; see `TrialRunner`."""

    suite: Suite
    models: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    timeout: float = 300.0

    def trial_runner(self, scratch: Path | None = None) -> TrialRunner:
        """Return the trial runner; its temporary folder lies in `scratch`."""
        return TrialRunner(
            self.suite, models=self.models, config=self.config, settings=self.settings, seed=self.seed,
            timeout=self.timeout, scratch=scratch,
        )  # fmt: skip


class Workers:
    """Processes that run trials, each started with its first one.

    Args:
        spec: what each makes its trial runner from.
        count: how many there are.

    Attributes:
        most: how many trials keep all of them busy: one that runs and one that waits for each.

    Raises:
        PlanError: the suite or a model cannot be sent to another process.

    Example:
        >>> workers = Workers(RunnerSpec(suite), 2)                    # doctest: +SKIP
        >>> trial, events = await workers.run(trial_runner.plan(s, v, 0))     # doctest: +SKIP
    """

    def __init__(self, spec: RunnerSpec, count: int) -> None:
        try:
            self._sent = pickle.dumps(spec)
        except Exception as error:
            raise PlanError(
                f"workers={count} needs a suite and models that can be sent to another process ({error}). "
                "Leave workers out, or define them in a module instead of a cell."
            ) from error
        main = sys.modules.get("__main__")
        if main is not None and not hasattr(main, "__spec__"):
            # An embedded shell puts a bare namespace there; a spawned process asks it where it came from.
            main.__spec__ = None
        self.most = 2 * count
        self._count = count
        self._scratch = Scratch()
        self._workers: list[WorkerProcess] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        weakref.finalize(self, _end, self._workers, os.getpid())

    async def run(self, plan: TrialPlan, catalog: str) -> tuple[Trial, tuple[Event, ...]]:
        """Run one trial in a worker. A cancellation ends that worker: what it does cannot be stopped otherwise.

        Args:
            plan: what is tried.
            catalog: the hash of the frozen catalog that it is to be tried on.

        Raises:
            PlanError: the worker has other code or another catalog, or it died of this trial, and another one too.
        """
        how = ""
        for _ in range(_ATTEMPTS):
            worker = min(self._at_hand(), key=lambda each: each.load)
            try:
                trial, events = await worker.ask(
                    TrialRequest(plan.scenario.digest, plan.variant, plan.repeat)
                )
            except LostError as lost:
                how = str(lost)
                continue
            if (trial.key, trial.catalog) != (plan.key, catalog):
                raise PlanError(
                    "A worker process has another catalog or other code than this one, since files changed after "
                    "this one was started. Restart the kernel, or leave workers out."
                )
            return trial, events
        raise PlanError(
            f"A worker process died at a trial of {plan.scenario.id!r}, and so did the one after it ({how}). Was "
            "there too little memory? Take fewer workers, or none. A script must keep its work under "
            'if __name__ == "__main__".'
        )

    def _at_hand(self) -> list[WorkerProcess]:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the first run, or the engine before this one was given up
            _end(self._workers, os.getpid())
            self._workers += [WorkerProcess(self._sent, self._scratch.path) for _ in range(self._count)]
            self._loop = loop
        return self._workers

    def close(self) -> None:
        """End the workers; what they are doing is given up."""
        _end(self._workers, os.getpid())
        self._loop = None
        self._scratch.close()


def _end(workers: list[WorkerProcess], owner: int) -> None:
    if os.getpid() == owner:  # a fork of this process does not own them
        for worker in workers:
            worker.end()
        workers.clear()
