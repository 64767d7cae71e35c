"""Run tasks on a Dask cluster, whose workers may be on other machines.

Invariants: a task is begun once, whatever the cluster does: before a worker begins it notes that at the scheduler, and
whoever is given the same task again, since the worker was lost, sees the note and says so. An answer is left at the
scheduler before Dask hears that the task is done: it would lie at the worker alone until it is fetched, and end with
it. What Dask only moves (it was stolen, or waited on a worker that is gone) begins where it came to. Each task runs in
a process of its own beside the Dask worker, so that one that computes can be stopped, and neither holds up the worker's
heartbeat nor takes it along; that process ends with the worker, with the scheduler, or when nobody wants the task any
more. The loop of the client and that of the caller may be two or one; neither is ever blocked.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, Self, cast
from uuid import uuid4

from distributed import Client, KilledWorker, WorkerPlugin, get_worker
from distributed.client import FutureCancelledError

from reyn_jupyter.executors.executor import ExecutorLostError, SentSpec, Task, WorkerLostError
from reyn_jupyter.executors.processes import MOST, ProcessExecutor, pickle_payload, result_of
from reyn_jupyter.support.versions import versions

_AHEAD = 2  # tasks of each thread of the cluster: one that runs, one that waits
_SMALL = 32 << 10  # bytes of a spec that go with every task; a larger one goes when a worker asks for it
_LARGEST_LEFT = (
    4 << 20
)  # bytes of an answer that is left at the scheduler; a larger one is lost with its worker
_LOOK = 1.0  # seconds between two looks at the cluster
_OVERTAKING = 0.2  # seconds; what a client sends is held back for 10 ms at most
_TURN = 15.0  # seconds within which the client's loop has to turn
_KEPT = 8  # specs that a worker keeps
_IDLE = 20.0  # seconds after which a worker ends the processes that have nothing to do
_MOVES = 10  # times that a task which never began may lose the worker that it waited at
_NAME = "reyn-tasks"


class DaskExecutor:
    """The workers of a Dask cluster.

    Args:
        client: the client of the cluster, which stays its owner's and open. It may be an asynchronous one, as long as
            its loop turns while tasks run.
        slots: tasks that the cluster is given at a time; twice the threads that its workers have at the moment when
            None. An adaptive cluster grows by what it is given, so give it twice the threads that it may have.
        wait: seconds that the cluster may be without any worker before tasks end with an error. A job that queues for
            hours needs more.

    Raises:
        ValueError: slots or seconds that are none.
        ExecutorLostError: the client is closed.

    Example:
        >>> from distributed import Client, LocalCluster                       # doctest: +SKIP
        >>> with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
        ...     study = reyn.Study("s.sqlite", executor=client)                # doctest: +SKIP
        ...     with DaskExecutor(client) as executor:                         # the same, for tasks of any kind
        ...         result = await executor.submit(Task(spec, payload))        # doctest: +SKIP
    """

    def __init__(self, client: Client, *, slots: int | None = None, wait: float = 300.0) -> None:
        if slots is not None and (isinstance(slots, bool) or slots < 1):
            raise ValueError(f"slots={slots}: give a whole number from 1 on")
        if not wait > 0:
            raise ValueError(f"wait={wait}: give seconds")
        if client.status in ("closing", "closed"):
            raise ExecutorLostError(f"{_CLOSED} Make another one of the cluster.")
        self._client = cast("Any", client)  # much of it has no types
        self._slots, self._wait = slots, wait
        self._scheduler = str(self._client.scheduler.address)
        self._threads = _threads_of(client)
        self._tasks: set[asyncio.Task[Any]] = set()  # on the client's loop
        self._watching: asyncio.Task[None] | None = None  # there, too
        self._sent: set[str] = set()  # specs that some worker has
        self._closed = self._turns = False

    def __repr__(self) -> str:
        return f"DaskExecutor({self._scheduler!r})"

    @property
    def slots(self) -> int:
        """How many tasks keep the cluster busy; it follows workers that come and go while tasks run."""
        return self._slots or max(1, _AHEAD * self._threads)

    async def submit(self, task: Task) -> Any:
        """See `Executor.submit`. Raises UnsendableError for a payload that does not pickle, too."""
        if self._closed:
            raise RuntimeError("This executor was closed; make another one.")
        payload = pickle_payload(task)
        turned = asyncio.Event()
        running = self._run(task.spec, payload, asyncio.get_running_loop(), turned)
        try:
            future = asyncio.run_coroutine_threadsafe(running, self._client.loop.asyncio_loop)
        except (RuntimeError, AttributeError) as error:  # the loop is closed
            running.close()
            raise ExecutorLostError(f"{_CLOSED} Make another one of the cluster.") from error
        answering = asyncio.wrap_future(future)
        try:
            if not self._turns:
                await self._until_it_turns(turned)
            return result_of(await answering)
        finally:
            answering.cancel()  # by cancelling this, its caller stops the task

    async def _until_it_turns(self, turned: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(_TURN):
                await turned.wait()
        except TimeoutError:
            raise ExecutorLostError(
                f"The loop of this client does not turn (not for {_TURN:g} s). An asynchronous client lives on the "
                "loop that made it, in a notebook the one that a cell without await keeps busy: use await "
                "study.aio.run(…), or a client made by Client(address), without asynchronous=True."
            ) from None
        self._turns = True

    def close(self) -> None:
        """See `Executor.close`; from any thread. The client and its cluster stay."""
        self._closed = True
        with suppress(RuntimeError, AttributeError):  # its loop is closed, and with it everything
            self._client.loop.asyncio_loop.call_soon_threadsafe(self._give_up)

    def _give_up(self) -> None:
        for task in self._tasks:
            task.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # On the client's loop

    async def _run(
        self, spec: SentSpec, payload: bytes, caller: asyncio.AbstractEventLoop, turned: asyncio.Event
    ) -> bytes:
        caller.call_soon_threadsafe(turned.set)
        working = asyncio.ensure_future(self._until_answered(spec, payload))
        self._tasks.add(working)
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        watching = self._watching
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                watching.result()  # an error
            if working.cancelled():
                raise WorkerLostError("the executor was closed")
            return working.result()
        finally:
            working.cancel()
            self._tasks.discard(working)
            if self._watching is watching and (watching.done() or not self._tasks):
                watching.cancel()
                self._watching = None

    async def _watch(self) -> None:
        """Follow the number of workers; end with an error once there was none for too long."""
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while True:
            with suppress(OSError, AttributeError):  # the scheduler is gone: the tasks hear of it
                self._threads = sum((await self._client.scheduler.ncores()).values())
            if self._threads:
                seen = loop.time()
            elif loop.time() - seen >= self._wait:
                raise ExecutorLostError(
                    f"The cluster at {self._scheduler} had no worker for {self._wait:g} s. Start some (dask worker "
                    f"{self._scheduler}, cluster.scale(…)) and run it again, or give more time to wait for them: "
                    "DaskExecutor(client, wait=3600)."
                )
            await asyncio.sleep(_LOOK)

    async def _until_answered(self, spec: SentSpec, payload: bytes) -> bytes:
        with_spec = len(spec.data) <= _SMALL or spec.digest not in self._sent
        moves = 0
        while True:
            key = f"{_NAME}-{uuid4().hex}"
            try:
                answer = await self._result(key, spec, payload, with_spec)
            except KilledWorker as killed:
                if await self._was_begun(key):
                    raise WorkerLostError(f"the worker {_address(killed)} was lost") from killed
                moves += 1
                if moves > _MOVES:
                    raise WorkerLostError("it waited at too many workers that were lost") from killed
            else:
                if answer.kind == "unknown":
                    with_spec = True
                    continue
                self._sent.add(spec.digest)
                if answer.kind == "lost":
                    raise WorkerLostError(answer.words)
                if answer.kind == "other":
                    raise ExecutorLostError(answer.words)
                return answer.data
            finally:
                self._forget(key)

    async def _result(self, key: str, spec: SentSpec, payload: bytes, with_spec: bool) -> _Answer:
        """Return what a worker answers. Raises KilledWorker, ExecutorLostError."""
        client = self._client
        if client.status in ("closing", "closed"):
            raise self._lost("this client is closed")
        arguments = (key, spec.digest, spec.data if with_spec else b"", payload, _installed())
        # By name: a worker that could not unpickle a function of this package would end, without a word to anybody.
        named = {"arguments": arguments}
        future: Any = None
        try:
            future = client.submit(eval, _CALL, named, key=key, pure=False, retries=0)
            return _Answer(*await asyncio.shield(_fetching(future)))
        except KilledWorker:
            if (left := await self._left(key)) is None:
                raise
            return _Answer("done", left)
        except FutureCancelledError as cancelled:
            if client.status != "running":
                raise self._lost(cancelled.msg or cancelled.reason) from cancelled
            raise ExecutorLostError(
                f"Somebody cancelled the tasks on the cluster at {self._scheduler}, or restarted it "
                f"({cancelled.reason}). What was answered is kept; run it again."
            ) from cancelled
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this: a client that loses its scheduler cancels the fetching of answers.
            raise self._lost("the client gave up fetching an answer") from cancelled
        except OSError as error:
            raise self._lost(str(error)) from error
        except Exception as error:
            raise ExecutorLostError(
                f"The cluster at {self._scheduler} cannot run tasks of this process: {type(error).__name__}: {error}. "
                f"All workers need {_words(_installed())}, with the same versions of Dask as here; "
                "client.get_versions(check=True) compares them. Start them from the same environment."
            ) from error
        finally:
            if future is not None:
                future.release()  # of a task that runs the worker then hears that nobody wants it

    async def _left(self, key: str) -> bytes | None:
        """Return the answer that a worker left at the scheduler, which forgets it with its task."""
        try:
            return cast("bytes | None", await self._client.scheduler.get_metadata(keys=[key], default=None))
        except (OSError, AttributeError) as error:
            raise self._lost(str(error)) from error

    async def _was_begun(self, key: str) -> bool:
        try:
            return bool(await self._client.scheduler.event_is_set(name=key))
        except (OSError, AttributeError) as error:
            raise self._lost(str(error)) from error

    def _lost(self, why: str) -> ExecutorLostError:
        return ExecutorLostError(
            f"The scheduler at {self._scheduler} is out of reach: {why.rstrip('.')}. What was answered is kept. When "
            "the cluster is there again, make a client of it, and run it again with that."
        )

    def _forget(self, key: str) -> None:
        """Let the scheduler forget that a task was begun, once it can be given to nobody any more."""
        _in_background(self._clear(key))

    async def _clear(self, key: str) -> None:
        # The release of the task goes another way, and has to be there first.
        await asyncio.sleep(_OVERTAKING)
        with suppress(OSError, AttributeError):  # the scheduler is gone, or the client closed
            await self._client.scheduler.event_clear(name=key)


_CALL = f"__import__({__name__!r}, fromlist=['run_task']).run_task(*arguments)"
_CLOSED = "This client is closed."
_BACKGROUND: set[asyncio.Future[Any]] = set()


def _in_background(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start a task that goes on when nobody waits for it; an error that nobody sees is dropped."""
    task = asyncio.ensure_future(work)
    _BACKGROUND.add(task)
    task.add_done_callback(_BACKGROUND.discard)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


def _fetching(future: Any) -> asyncio.Task[Any]:
    """Return the task that fetches the result of a Dask future. It must not be cancelled.

    A Dask client fetches the results of many futures in one request. To cancel one fetch cancels that request, and at
    times every later one of the client. The fetch ends by itself once the future is released.
    """

    async def fetch() -> Any:
        return await future

    return _in_background(fetch())


def _threads_of(client: Client) -> int:
    info: Any = client.scheduler_info()
    if "total_threads" in info:
        return int(info["total_threads"])
    return sum(each["nthreads"] for each in info["workers"].values())


def _address(killed: KilledWorker) -> str:
    return str(getattr(killed.last_worker, "address", killed.last_worker))


def _installed() -> tuple[str, str]:
    return versions()["reyn-jupyter"], ".".join(map(str, sys.version_info[:2]))


def _words(installed: tuple[str, str]) -> str:
    return f"reyn-jupyter {installed[0]} on Python {installed[1]}"


def executor_of(given: Any) -> DaskExecutor | None:
    """Return the executor of a Dask client; None of anything else."""
    return DaskExecutor(given) if isinstance(given, Client) else None


# In the Dask worker

_UNWANTED = "nobody waits for it any more"


class _Answer(NamedTuple):
    """What a Dask worker says of a task: its pickled answer, or why there is none."""

    kind: Literal["done", "lost", "unknown", "other"]
    data: bytes = b""
    words: str = ""


def run_task(
    key: str, digest: str, spec: bytes, payload: bytes, installed: tuple[str, str]
) -> tuple[Any, ...]:
    """Run one task beside the Dask worker in a thread of which this is called, unless it was begun before.

    Args:
        key: the task's own, by which the scheduler notes that it was begun.
        digest, spec: what runs it; the spec is empty where a worker should have it.
        payload: what it is run on, pickled.
        installed: the versions of this package and of Python where it comes from.

    Returns:
        An `_Answer`, as a plain tuple.
    """
    worker: Any = get_worker()
    if installed != _installed():
        words = (
            f"The worker at {worker.address} has {_words(_installed())}, and this process has {_words(installed)}. "
            "Start the workers from the same environment."
        )
        return "other", b"", words
    running = _run_beside(worker, key, digest, spec, payload)
    return tuple(asyncio.run_coroutine_threadsafe(running, worker.loop.asyncio_loop).result())


async def _run_beside(worker: Any, key: str, digest: str, spec: bytes, payload: bytes) -> _Answer:
    """Run one task on the loop of a Dask worker."""
    processes = worker.plugins.get(_NAME)
    if not isinstance(processes, _WorkerProcesses):
        processes = _WorkerProcesses()
        await worker.plugin_add(processes, name=_NAME, catch_errors=False)
    if spec:
        processes.keep(SentSpec(spec, digest))
    elif digest not in processes.specs:
        return _Answer("unknown")
    state = worker.state.tasks.get(key)
    if state is None or state.state not in ("executing", "long-running"):
        return _Answer("lost", b"", _UNWANTED)  # since it came
    with processes.stoppable(key):
        try:
            if await worker.scheduler.event_is_set(name=key):
                left = await worker.scheduler.get_metadata(keys=[key], default=None)
                if left is None:
                    return _Answer("lost", b"", "the worker that was at it was lost")
                return _Answer("done", left)
            await worker.scheduler.event_set(name=key)
            answer = await processes.run(digest, payload)
            if len(answer) <= _LARGEST_LEFT:
                await worker.scheduler.set_metadata(keys=[key], value=answer)
            return _Answer("done", answer)
        except WorkerLostError as lost:
            return _Answer("lost", b"", f"on {worker.address}: {lost}")
        except asyncio.CancelledError:
            return _Answer("lost", b"", _UNWANTED)


class _WorkerProcesses(WorkerPlugin):
    """The processes beside one Dask worker, as many as it has threads, started when tasks come."""

    name = _NAME

    def __init__(self) -> None:
        self.specs: dict[str, SentSpec] = {}
        self._executor: ProcessExecutor | None = None
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._ending: asyncio.TimerHandle | None = None

    def setup(self, worker: Any) -> None:
        """See `WorkerPlugin`."""
        self._most = max(1, min(MOST, worker.state.nthreads))

    def teardown(self, worker: Any) -> None:
        """See `WorkerPlugin`: the Dask worker ends."""
        for task in self._running.values():
            task.cancel()
        self._end()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """See `WorkerPlugin`: what is released while it runs is wanted by nobody any more."""
        if finish in ("released", "forgotten") and (task := self._running.get(key)) is not None:
            task.cancel()

    def keep(self, spec: SentSpec) -> None:
        """Keep a spec for later tasks."""
        self.specs.pop(spec.digest, None)
        self.specs[spec.digest] = spec
        while len(self.specs) > _KEPT:
            del self.specs[next(iter(self.specs))]

    @contextmanager
    def stoppable(self, key: str) -> Iterator[None]:
        """Let the current task, which is at the Dask task of this key, be cancelled with that one."""
        current = asyncio.current_task()
        assert current is not None
        self._running[key] = current
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        try:
            yield
        finally:
            del self._running[key]
            if not self._running:
                self._ending = asyncio.get_running_loop().call_later(_IDLE, self._end)

    async def run(self, digest: str, payload: bytes) -> bytes:
        """Return the answer to a task. Raises WorkerLostError."""
        if self._executor is None:
            self._executor = ProcessExecutor(self._most)
        return await self._executor.submit_pickled(self.specs[digest], payload)

    def _end(self) -> None:
        if (executor := self._executor) is not None:
            self._executor = None
            executor.close()
