"""Tasks on a Dask cluster of commands: each begun once, whatever dies, and nothing left running."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from reyn_jupyter.executors import dask
from reyn_jupyter.executors.dask import DaskExecutor
from reyn_jupyter.executors.executor import (
    ExecutorLostError,
    SentSpec,
    UnsendableError,
    WorkerLostError,
    map_inputs,
    map_tasks,
)
from tests.executors.executor_support import Toolbox, task
from tests.support.dask_clusters import Cluster, workers_of
from tests.support.processes import is_gone, started
from tests.support.waiting import awaited, until


@pytest.fixture
def executor(client: Client) -> Iterator[DaskExecutor]:
    with DaskExecutor(client) as made:
        yield made


def left_at_scheduler(client: Client) -> tuple[int, int, int]:
    """How many tasks, notes of those that began, and answers the scheduler still has."""
    tasks, notes, answers = client.run_on_scheduler(_left)
    return tasks, notes, answers


def _left(dask_scheduler: Any) -> tuple[int, int, int]:
    notes = dask_scheduler.extensions["events"]._events
    return len(dask_scheduler.tasks), len(notes), len(dask_scheduler.task_metadata)


async def test_inputs_are_mapped_over_a_worker_in_both_processes_and_nothing_is_left_behind(
    executor: DaskExecutor, client: Client, cluster: Cluster
) -> None:
    assert executor.slots == 4 and cluster.address in repr(executor)
    inputs = [("fail", "no") if n == 7 else ("who", n) for n in range(40)]
    found = [each async for each in map_inputs(executor, Toolbox(), inputs)]
    assert isinstance(found.pop(7).error, LookupError)
    assert [each.result[1] for each in found] == [n for n in range(40) if n != 7]
    pids = {each.result[0] for each in found}
    assert len(pids) == 2 and pids == set(cluster.busy())
    await awaited(lambda: left_at_scheduler(client) == (0, 0, 0))


async def test_a_large_spec_is_sent_to_each_worker_that_lacks_it_and_what_does_not_pickle_is_refused(
    executor: DaskExecutor,
) -> None:
    large = SentSpec.of(Toolbox("x" * 100_000), "executor")
    found = [each async for each in map_tasks(executor, (task("who", n, large) for n in range(20)))]
    assert len({each.result[0] for each in found}) == 2
    with pytest.raises(UnsendableError, match="task cannot be sent"):
        await executor.submit(task("double", lambda: 1))


async def test_a_client_that_gives_up_fetching_an_answer_has_lost_its_scheduler_and_nobody_interrupted(
    executor: DaskExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def given_up(*given: Any, **more: Any) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(Client, "_gather", given_up)
        with pytest.raises(ExecutorLostError, match="out of reach: the client gave up"):
            await executor.submit(task("double", 2))
    assert await executor.submit(task("double", 2)) == 4


async def test_a_task_that_kills_its_process_is_lost_and_the_dask_worker_lives(
    executor: DaskExecutor, cluster: Cluster
) -> None:
    with pytest.raises(WorkerLostError, match="signal 9"):
        await executor.submit(task("die", 9))
    assert await executor.submit(task("double", 2)) == 4
    assert all(each.poll() is None for each in cluster.workers[-2:])


async def test_a_dask_worker_that_dies_costs_the_task_that_it_was_at_and_that_is_begun_once(
    executor: DaskExecutor, tmp_path: Path
) -> None:
    tasks = [task("die_with_parent" if n == 5 else "note", str(tmp_path / str(n))) for n in range(30)]
    found = [each async for each in map_tasks(executor, tasks, ordered=True, ahead=30)]
    assert [n for n, each in enumerate(found) if each.error is not None] == [5], found
    assert isinstance(found[5].error, WorkerLostError)
    assert {(tmp_path / str(n)).read_text() for n in range(30)} == {"x"}
    assert await executor.submit(tasks[0]) == str(tmp_path / "0")


async def test_a_cluster_that_gives_up_a_lost_task_at_once_is_told_apart(
    executor: DaskExecutor, client: Client, tmp_path: Path
) -> None:
    def allow(count: int, dask_scheduler: Any = None) -> None:
        dask_scheduler.allowed_failures = count

    client.run_on_scheduler(allow, count=0)
    try:
        behind = [task("note", str(tmp_path / str(n))) for n in range(8)]
        tasks = [task("die_with_parent", str(tmp_path / "died")), *behind]
        found = [each async for each in map_tasks(executor, tasks, ordered=True, ahead=9)]
    finally:
        client.run_on_scheduler(allow, count=3)
    assert isinstance(found[0].error, WorkerLostError)
    assert [each.error for each in found[1:]] == [None] * 8
    assert {(tmp_path / str(n)).read_text() for n in range(8)} == {"x"}


async def test_an_answer_that_nobody_has_fetched_yet_outlasts_its_worker(
    executor: DaskExecutor, client: Client, cluster: Cluster, tmp_path: Path
) -> None:
    fetching, most = client._gather_semaphore, client._gather_semaphore._value

    async def hold() -> None:
        for _ in range(most):
            await fetching.acquire()

    async def go_on() -> None:
        for _ in range(most):
            fetching.release()

    client.sync(hold)
    try:
        markers = [str(tmp_path / str(n)) for n in range(4)]
        running = [asyncio.create_task(executor.submit(task("note", each))) for each in markers]
        await awaited(lambda: client.run_on_scheduler(_in_memory) == 4)
        for each in cluster.workers:
            each.kill()
        cluster.add_worker()
    finally:
        client.sync(go_on)
    assert await asyncio.gather(*running) == markers
    assert {Path(each).read_text() for each in markers} == {"x"}
    await awaited(lambda: left_at_scheduler(client)[::2] == (0, 0))


def _in_memory(dask_scheduler: Any) -> int:
    return sum(each.state == "memory" for each in dask_scheduler.tasks.values())


async def test_to_cancel_a_task_stops_what_computes_and_what_waits_never_begins(
    executor: DaskExecutor, cluster: Cluster, client: Client, tmp_path: Path
) -> None:
    markers = [tmp_path / str(n) for n in range(2)]
    running = [asyncio.create_task(executor.submit(task("compute", str(each)))) for each in markers]
    await awaited(lambda: all(each.exists() for each in markers))
    before = cluster.busy()
    behind = asyncio.create_task(executor.submit(task("note", str(tmp_path / "noted"))))
    for each in (behind, *running):
        each.cancel()
    found = await asyncio.gather(behind, *running, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in found)
    await awaited(lambda: all(is_gone(pid) for pid in before))
    await awaited(lambda: left_at_scheduler(client)[0] == 0)
    assert await executor.submit(task("double", 1)) == 2 and not (tmp_path / "noted").exists()


async def test_to_close_gives_up_what_runs_and_leaves_the_client_open(
    executor: DaskExecutor, cluster: Cluster, client: Client, tmp_path: Path
) -> None:
    running = asyncio.create_task(executor.submit(task("compute", str(tmp_path / "busy"))))
    await awaited((tmp_path / "busy").exists)
    executor.close()
    with pytest.raises(WorkerLostError, match="closed"):
        await running
    with pytest.raises(RuntimeError, match="was closed"):
        await executor.submit(task("double", 1))
    assert client.submit(sum, [1, 2]).result() == 3


async def test_an_asynchronous_client_serves_on_its_own_loop_and_from_another(cluster: Cluster) -> None:
    async with Client(cluster.address, asynchronous=True) as client:
        with DaskExecutor(client) as executor:
            assert await executor.submit(task("double", 1)) == 2
            assert await asyncio.to_thread(asyncio.run, executor.submit(task("double", 2))) == 4


async def test_a_client_whose_loop_is_held_up_is_told_what_to_do(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "_TURN", 0.2)
    async with Client(cluster.address, asynchronous=True) as client:
        executor = DaskExecutor(client)
        with pytest.raises(ExecutorLostError, match=r"does not turn.*await study\.aio\.run"):
            asyncio.run_coroutine_threadsafe(executor.submit(task("double", 1)), _other_loop()).result(60)


def _other_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


COORDINATOR = """
    import asyncio, os, signal, sys
    from pathlib import Path
    from distributed import Client
    from reyn_jupyter.executors.dask import DaskExecutor
    from tests.executors.executor_support import task
    from tests.support.waiting import awaited

    async def main(address, folder):
        with Client(address) as client, DaskExecutor(client) as executor:
            markers = [folder / str(n) for n in range(2)]
            running = [asyncio.create_task(executor.submit(task("compute", str(each)))) for each in markers]
            running += [asyncio.create_task(executor.submit(task("note", str(folder / "noted"))))]
            await awaited(lambda: all(each.exists() for each in markers))
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
"""


def test_nothing_goes_on_of_a_coordinator_that_was_killed(
    client: Client, cluster: Cluster, tmp_path: Path
) -> None:
    process = started(COORDINATOR, cluster.address, str(tmp_path))
    _, errors = process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL, errors
    until(lambda: sum(len(keys) for keys in client.processing().values()) == 0)
    computing = [int((tmp_path / str(n)).read_text()) for n in range(2)]
    until(lambda: all(is_gone(pid) for pid in computing))
    assert not (tmp_path / "noted").exists()


OTHER_VERSION = """
import importlib.metadata as metadata
real = metadata.version
metadata.version = lambda name: "9.9" if name == "reyn-jupyter" else real(name)
"""


async def test_a_cluster_that_cannot_serve_says_why(tmp_path: Path) -> None:
    lacking, other = tmp_path / "lacking" / "reyn_jupyter", tmp_path / "other"
    lacking.mkdir(parents=True)
    other.mkdir()
    (lacking / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'reyn_jupyter'\")")
    (other / "sitecustomize.py").write_text(OTHER_VERSION)
    with Cluster(tmp_path / "cluster", workers=0) as cluster, Client(cluster.address) as client:
        with pytest.raises(ExecutorLostError, match=r"had no worker for 0\.1 s.*dask worker tcp://127"):
            await DaskExecutor(client, wait=0.1).submit(task("double", 1))
        for path, words in (
            (lacking.parent, r"No module named 'reyn_jupyter'.*need reyn-jupyter .* on Python 3"),
            (other, r"worker at tcp://127.* has reyn-jupyter 9\.9 on Python 3.*, and this process has"),
        ):
            worker = cluster.add_worker(str(path))
            with pytest.raises(ExecutorLostError, match=words):
                await DaskExecutor(client).submit(task("double", 1))
            worker.kill()
            until(lambda: not workers_of(client))
        waiting = asyncio.create_task(DaskExecutor(client).submit(task("double", 1)))
        await awaited(lambda: left_at_scheduler(client)[0] == 1)
        cluster.add_worker()  # in time
        assert await waiting == 2
        executor = DaskExecutor(client)
        running = [asyncio.create_task(executor.submit(task("compute", str(tmp_path / "busy"))))]
        await awaited((tmp_path / "busy").exists)
        running.append(asyncio.create_task(executor.submit(task("note", str(tmp_path / "behind")))))
        await awaited(lambda: left_at_scheduler(client)[0] == 2)
        cluster.scheduler.kill()
        for each in running:
            with pytest.raises(ExecutorLostError, match=r"tcp://127.* is out of reach: .*run it again"):
                await each
        await awaited(lambda: is_gone(int((tmp_path / "busy").read_text())))
        assert not (tmp_path / "behind").exists()
    with pytest.raises(ExecutorLostError, match="client is closed"):
        DaskExecutor(client)
    with pytest.raises(ExecutorLostError):
        await executor.submit(task("double", 1))
