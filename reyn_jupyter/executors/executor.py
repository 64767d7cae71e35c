"""What every executor is: tasks of plain data in, results out, and the loss of a worker an error of one task alone.

Invariants: what goes to a worker is data, a pickled spec known by its digest and a payload, never a live object; the
worker makes its own objects from the spec, once. A task is answered once, by its result, its own error, or a
`WorkerLostError`; that one concerns the task which the worker was at, and those that waited behind it are given to
another worker. A task whose caller was cancelled is stopped. No worker outlives its executor, nor the process of that.

    class Squares:                                   # in a module: the worker imports it
        def open(self, folder):                      # `folder` is a temporary one of the worker's own
            return self
        async def run(self, payload):
            return payload * payload
        async def release(self):
            pass
        def close(self):
            pass

    spec = SentSpec.of(Squares(), "executor='processes'")
    with ProcessExecutor(2) as executor:
        async for outcome in map_tasks(executor, (Task(spec, n) for n in range(10)), ordered=True):
            print(outcome.result)
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from reyn_jupyter.executors.bounded import run_bounded
from reyn_jupyter.support.import_path import call_as_person
from reyn_jupyter.support.user_errors import UserError


class UnsendableError(UserError, ValueError):
    """An object cannot be sent to another process; the message says which, why, and what to do."""


class WorkerLostError(Exception):
    """The worker ended while it was at this task; the message says how it ended."""


class ExecutorLostError(UserError, RuntimeError):
    """No task can run on this executor any more, or none can yet; the message says why and what to do. Whatever was
    answered stays."""


class TaskWorker(Protocol):
    """What runs tasks; lives in one worker, on one loop."""

    async def run(self, payload: Any) -> Any:
        """Run one task. What it returns or raises goes back to the caller, pickled."""
        ...

    async def release(self) -> None:
        """End what works for it on its loop; a later task starts that again."""
        ...

    def close(self) -> None:
        """Remove what it leaves, after `release`."""
        ...


class WorkerSpec(Protocol):
    """What a `TaskWorker` is made from; plain data that pickles."""

    def open(self, folder: Path) -> TaskWorker:
        """Return the worker. `folder` is temporary, and its own."""
        ...


@dataclass(frozen=True)
class SentSpec:
    """A `WorkerSpec` as it is sent.

    Attributes:
        data: the pickle.
        digest: its SHA-256, by which a worker knows what it has opened.
    """

    data: bytes = field(repr=False)
    digest: str

    @classmethod
    def of(cls, spec: WorkerSpec, option: str) -> SentSpec:
        """Pickle a spec.

        Args:
            spec: the spec.
            option: what the person asked for, for the message.

        Raises:
            UnsendableError: it does not pickle.
        """
        try:
            data = pickle.dumps(spec)
        except Exception as error:
            raise UnsendableError(
                f"{option} needs what can be sent to another process, and this cannot: {error}. Define functions and "
                "classes in a module and import them (not in a cell, and no lambda), or run it here, without "
                f"{option}."
            ) from error
        return cls(data, hashlib.sha256(data).hexdigest())

    def open(self, folder: Path) -> TaskWorker:
        """Return a worker made from the spec, in the process that calls this."""
        spec: WorkerSpec = unpickle(self.data)
        return spec.open(folder)


class _Unpickler(pickle.Unpickler):
    """Finds a person's classes where their own code would, also in the working folder; this package's never there."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name.partition(".")[0] == __name__.partition(".")[0]:
            return super().find_class(module_name, global_name)
        return call_as_person(super().find_class, module_name, global_name)


def unpickle(data: bytes) -> Any:
    """Return what a process of the same executor pickled. Never for bytes from anywhere else: they run code."""
    return call_as_person(_Unpickler(io.BytesIO(data)).load)


@dataclass(frozen=True)
class Task:
    """One piece of work: the spec of who does it, and a payload that pickles."""

    spec: SentSpec
    payload: Any


@dataclass(frozen=True)
class TaskOutcome:
    """What came of a task: its result, or the error that it or the loss of its worker raised."""

    task: Task
    result: Any = None
    error: Exception | None = None


@runtime_checkable
class Executor(Protocol):
    """Runs tasks."""

    @property
    def slots(self) -> int:
        """How many tasks keep all of it busy; of more, `submit` lets the rest wait."""
        ...

    async def submit(self, task: Task) -> Any:
        """Run a task and return its result. To cancel the caller stops the task.

        Raises:
            WorkerLostError: the worker ended while it was at this task.
            ExecutorLostError: there is nothing that could run it.
            Exception: what the task raised.
        """
        ...

    def close(self) -> None:
        """End all workers; what they are doing is given up, and its callers get a `WorkerLostError`."""
        ...


async def map_tasks(
    executor: Executor, tasks: Iterable[Task], *, ordered: bool = False, ahead: int | None = None
) -> AsyncGenerator[TaskOutcome, None]:
    """Yield the outcome of each task; an error is one of them, and ends nothing.

    Args:
        executor: what runs them.
        tasks: taken in their order, as there is room, so that they may be a generator without an end.
        ordered: yield in the order of the tasks; as they come otherwise.
        ahead: tasks at most that are begun and not yielded yet; the slots of the executor when None.
    """

    async def outcome_of(task: Task) -> TaskOutcome:
        try:
            return TaskOutcome(task, await executor.submit(task))
        except Exception as error:  # noqa: BLE001 - whatever a task raises is its outcome
            return TaskOutcome(task, error=error)

    window = executor.slots if ahead is None else ahead
    async with aclosing(run_bounded(tasks, outcome_of, window=window, ordered=ordered)) as outcomes:
        async for outcome in outcomes:
            yield outcome


async def map_inputs(
    executor: Executor, worker: WorkerSpec, inputs: Iterable[Any], *, ordered: bool = True
) -> AsyncGenerator[TaskOutcome, None]:
    """Yield what comes of each input, given to a worker; see `map_tasks`.

    Args:
        executor: what runs them.
        worker: what a worker is made from, in each place where one is needed.
        inputs: data that pickles, taken in their order as there is room.
        ordered: yield in the order of the inputs; as they come otherwise.

    Raises:
        UnsendableError: the worker does not pickle.

    Example:
        >>> async with aclosing(map_inputs(executor, Squares(), range(10))) as outcomes:    # doctest: +SKIP
        ...     print([each.result async for each in outcomes])
    """
    spec = SentSpec.of(worker, f"executor={executor!r}")
    async with aclosing(
        map_tasks(executor, (Task(spec, each) for each in inputs), ordered=ordered)
    ) as outcomes:
        async for outcome in outcomes:
            yield outcome
