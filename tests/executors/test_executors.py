"""Every executor: the same answers, errors of one task alone, and no more at a time than there is room for."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.executors.dask import DaskExecutor
from reyn_jupyter.executors.executor import (
    Executor,
    SentSpec,
    TaskOutcome,
    UnsendableError,
    WorkerLostError,
    map_inputs,
    map_tasks,
)
from reyn_jupyter.executors.local import LocalExecutor
from reyn_jupyter.executors.processes import ProcessExecutor
from tests.executors.executor_support import Toolbox, Unopenable, task
from tests.support.dask_clusters import local_client
from tests.support.processes import child, is_gone, started
from tests.support.waiting import awaited, until

KINDS = ("local", "processes", "dask")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with local_client() as made:
        yield made


@pytest.fixture(params=KINDS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made: Any
    if request.param == "dask":
        made = DaskExecutor(request.getfixturevalue("client"))
    else:
        made = LocalExecutor(4) if request.param == "local" else ProcessExecutor(2)
    with made:
        yield made


@pytest.fixture
async def processes() -> AsyncIterator[ProcessExecutor]:
    with ProcessExecutor(2) as made:
        yield made
    until(lambda: not made.pids)


async def collected(outcomes: Any) -> list[TaskOutcome]:
    return [each async for each in outcomes]


async def test_processes_that_start_beside_each_other_leave_the_environment_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for before in (None, "0"):
        if before is None:
            monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
        else:
            monkeypatch.setenv("PYTHONSAFEPATH", before)
        with ProcessExecutor(4) as executor:
            answers = await asyncio.gather(*(executor.submit(task("who", n)) for n in range(4)))
            assert len({pid for pid, _ in answers}) > 1
        assert os.environ.get("PYTHONSAFEPATH") == before


@pytest.mark.parametrize("ordered", [True, False])
async def test_all_tasks_are_answered_once_and_in_order_where_that_is_asked(
    executor: Executor, ordered: bool
) -> None:
    assert isinstance(executor, Executor)
    found = await collected(map_tasks(executor, (task("double", n) for n in range(60)), ordered=ordered))
    assert sorted(each.result for each in found) == [2 * n for n in range(60)]
    assert all(each.result == 2 * each.task.payload[1] and each.error is None for each in found)
    if ordered:
        assert [each.result for each in found] == [2 * n for n in range(60)]


async def test_a_generator_without_an_end_is_taken_only_as_far_as_there_is_room(executor: Executor) -> None:
    taken = done = 0

    def endless() -> Iterator[Any]:
        nonlocal taken
        while True:
            taken += 1
            yield task("double", taken)

    async with aclosing(map_tasks(executor, endless(), ordered=True)) as outcomes:
        async for _ in outcomes:
            done += 1
            assert taken - done < executor.slots + 1
            if done == 50:
                break


async def test_a_cancelled_task_takes_no_other_with_it(executor: Executor) -> None:
    for moment in range(40):
        tasks = [asyncio.ensure_future(executor.submit(task("double", n))) for n in range(12)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)  # others are on their way now
        await asyncio.sleep(moment / 4_000)
        for each in tasks[::2]:
            each.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert answers[1::2] == [2 * n for n in range(1, 12, 2)]


async def test_inputs_are_mapped_over_a_worker_on_any_executor(executor: Executor) -> None:
    found = await collected(map_inputs(executor, Toolbox(), (("double", n) for n in range(12))))
    assert [each.result for each in found] == [2 * n for n in range(12)]
    with pytest.raises(UnsendableError, match="in a module"):
        await collected(map_inputs(executor, lambda: None, range(3)))  # type: ignore[arg-type]


async def test_an_error_is_the_outcome_of_its_task_alone(executor: Executor) -> None:
    tasks = [task("double", 1), task("fail", "no such thing"), task("double", 2)]
    first, failed, last = await collected(map_tasks(executor, tasks, ordered=True))
    assert (first.result, last.result) == (2, 4)
    assert isinstance(failed.error, LookupError) and failed.error.args == ("no such thing",)
    with pytest.raises(LookupError, match="no such tool"):
        await executor.submit(task("double", 1, SentSpec.of(Unopenable(), "executor")))


async def test_a_worker_is_opened_once_for_each_spec(executor: Executor) -> None:
    other = SentSpec.of(Toolbox("another"), "executor")
    assert other.digest != task("double").spec.digest
    assert SentSpec.of(Toolbox("another"), "executor") == other
    assert [await executor.submit(task("double", n, other)) for n in range(3)] == [0, 2, 4]
    assert await executor.submit(task("double", 5)) == 10


async def test_what_does_not_pickle_is_refused_with_what_to_do(processes: ProcessExecutor) -> None:
    with pytest.raises(UnsendableError, match=r"executor='x' needs .*in a module.*without executor='x'"):
        SentSpec.of(lambda: None, "executor='x'")  # type: ignore[arg-type]
    with pytest.raises(UnsendableError, match="task cannot be sent"):
        await processes.submit(task("double", lambda: 1))
    with pytest.raises(Exception, match=r"(?i)pickle"):
        await processes.submit(task("function"))
    with pytest.raises(RuntimeError, match="Local: too odd"):
        await processes.submit(task("fail_with_what_cannot_be_sent", "too odd"))
    assert await processes.submit(task("double", 1)) == 2


async def test_processes_work_side_by_side_and_none_is_this_one(processes: ProcessExecutor) -> None:
    found = await collected(map_tasks(processes, [task("who", n) for n in range(20)]))
    pids = {each.result[0] for each in found}
    assert len(pids) == 2 and os.getpid() not in pids and pids == set(processes.pids)


@pytest.mark.parametrize("verb", ["die", "leave"])
async def test_a_lost_process_is_an_error_of_the_task_that_it_was_at(
    processes: ProcessExecutor, verb: str
) -> None:
    tasks = [task(verb, 9) if n == 7 else task("double", n) for n in range(30)]
    found = await collected(map_tasks(processes, tasks, ordered=True))
    lost = [n for n, each in enumerate(found) if each.error is not None]
    assert lost == [7] and isinstance(found[7].error, WorkerLostError)
    assert ("signal 9" if verb == "die" else "status 9") in str(found[7].error)
    assert [each.result for n, each in enumerate(found) if n != 7] == [2 * n for n in range(30) if n != 7]


async def test_a_task_that_lost_its_process_can_be_run_again(
    processes: ProcessExecutor, tmp_path: Path
) -> None:
    again = task("die_once", str(tmp_path / "marker"))
    with pytest.raises(WorkerLostError):
        await processes.submit(again)
    assert await processes.submit(again) == "alive"


@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from(["double", "die", "fail", "large"]), min_size=1, max_size=12))
def test_whatever_dies_every_other_task_has_its_own_answer(verbs: list[str]) -> None:
    async def play() -> list[TaskOutcome]:
        with ProcessExecutor(2) as made:
            values = {"double": 4, "die": 9, "fail": "no", "large": 100_000}
            return await collected(
                map_tasks(made, [task(verb, values[verb]) for verb in verbs], ordered=True)
            )

    found = asyncio.run(play())
    expected = {"double": 8, "die": WorkerLostError, "fail": LookupError, "large": bytes(100_000)}
    for verb, each in zip(verbs, found, strict=True):
        assert (type(each.error) if each.error is not None else each.result) == expected[verb]


async def test_a_process_that_is_killed_while_it_answers_costs_that_answer_alone(
    processes: ProcessExecutor,
) -> None:
    """The loop stands still, so that the large answer stays half in the channel when its sender is killed."""
    pid, _ = await processes.submit(task("who"))
    calls = [asyncio.create_task(processes.submit(task("large", 20 << 20))) for _ in range(4)]
    await asyncio.sleep(0)
    await awaited(lambda: len(processes.pids) == 2)
    until(lambda: is_sending(pid))
    os.kill(pid, signal.SIGKILL)
    found = await asyncio.gather(*calls, return_exceptions=True)
    lost = [each for each in found if isinstance(each, WorkerLostError)]
    assert len(lost) == 1 and [len(each) for each in found if isinstance(each, bytes)] == [20 << 20] * 3
    assert await processes.submit(task("double", 1)) == 2


def is_sending(pid: int) -> bool:
    """Return whether a process waits in a call that writes to a socket."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/wchan").read_text().startswith(("unix_stream", "sock_alloc"))
    return False


async def test_to_cancel_a_task_stops_it_and_who_waited_behind_it_is_answered(tmp_path: Path) -> None:
    with ProcessExecutor(1) as made:
        busy = asyncio.create_task(made.submit(task("compute", str(tmp_path / "busy"))))
        await awaited((tmp_path / "busy").exists)
        before = made.pids
        behind = asyncio.create_task(made.submit(task("note", str(tmp_path / "noted"))))
        await asyncio.sleep(0)
        busy.cancel()
        assert await behind == str(tmp_path / "noted")
        with pytest.raises(asyncio.CancelledError):
            await busy
        assert made.pids != before and (tmp_path / "noted").read_text() == "x"


async def test_a_cancelled_task_that_waits_is_never_begun_and_its_process_goes_on(tmp_path: Path) -> None:
    with ProcessExecutor(1) as made:
        held = asyncio.create_task(made.submit(task("hold", str(tmp_path / "go on"))))
        await awaited((tmp_path / "go on.held").exists)
        before = made.pids
        behind = asyncio.create_task(made.submit(task("note", str(tmp_path / "noted"))))
        await awaited(lambda: sum(worker.load for worker in made._workers) == 2)
        await asyncio.sleep(0)
        behind.cancel()
        with pytest.raises(asyncio.CancelledError):
            await behind
        (tmp_path / "go on").touch()
        assert await held == "held" and await made.submit(task("double", 2)) == 4
        assert made.pids == before and not (tmp_path / "noted").exists()


async def test_to_close_ends_what_runs_with_an_error_that_says_so(tmp_path: Path) -> None:
    made = ProcessExecutor(1)
    busy = asyncio.create_task(made.submit(task("compute", str(tmp_path / "busy"))))
    await awaited((tmp_path / "busy").exists)
    (pid,) = made.pids
    made.close()
    with pytest.raises(WorkerLostError):
        await busy
    until(lambda: is_gone(pid))
    with pytest.raises(RuntimeError, match="was closed"):
        await made.submit(task("double", 1))


ENDS = """
    import asyncio, os, signal, sys
    from pathlib import Path
    from reyn_jupyter.executors.processes import ProcessExecutor
    from tests.executors.executor_support import task
    from tests.support.waiting import awaited

    async def main(folder: Path, how: str) -> None:
        executor = ProcessExecutor(2)
        markers = [folder / str(n) for n in range(2)]
        busy = [asyncio.create_task(executor.submit(task("compute", str(each)))) for each in markers]
        await awaited(lambda: all(each.exists() for each in markers))
        print(*executor.pids, flush=True)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "interrupt":
            os.killpg(0, signal.SIGINT)
            await asyncio.sleep(60)

    if __name__ == "__main__":
        os.setpgrp()
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.parametrize("how", ["kill", "interrupt", "end"])
def test_however_the_parent_ends_no_worker_is_left(how: str, tmp_path: Path) -> None:
    process = started(ENDS, str(tmp_path), how)
    assert process.stdout is not None
    workers = [int(each) for each in process.stdout.readline().split()]
    assert len(workers) == 2
    process.wait(600)
    until(lambda: all(map(is_gone, workers)))
    process.communicate()


def test_a_script_without_a_guard_is_told_that_its_worker_is_lost() -> None:
    code = """
        import asyncio
        from reyn_jupyter.executors.processes import ProcessExecutor
        from tests.executors.executor_support import task
        print(asyncio.run(ProcessExecutor(1).submit(task("double", 2))))
    """
    done = child(code)
    assert done.stdout.strip() == "4" or "WorkerLostError" in done.stderr


@pytest.mark.parametrize("count", [0, -1, 10_000, True, 1.5])
def test_a_number_of_processes_that_makes_no_sense_is_refused(count: Any) -> None:
    with pytest.raises(ValueError, match="whole number of processes from 1"):
        ProcessExecutor(count)
