"""Trials a second on each executor: in this process, in one and two processes beside it, and on Dask.

Two models that answer in the process: the simulator, which costs little, and one that computes as long per call as a
small embedded model. The first trials, which start the processes, are not counted.

The last table is 2,000 trials of the simulator: what one takes beside one in this process, and what an executor
costs without any work, a task that returns what it was given, beside the same.

    python -m tests.benchmarks executors
    python -m tests.benchmarks executors --trials 300     # the last table alone, with as many trials
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, LocalCluster

from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.executors.dask import DaskExecutor
from reyn_jupyter.executors.executor import Executor, map_inputs
from reyn_jupyter.executors.local import LocalExecutor
from reyn_jupyter.executors.processes import ProcessExecutor
from reyn_jupyter.models.base import Response, Usage
from tests.executors.executor_support import Toolbox

SUITE = "mandates"
CALL_MS = 20.0


class ComputingModel:
    """Computes for `CALL_MS` of CPU time, and answers."""

    label, tier, host, real = "computing", "standard", None, False

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        end = time.process_time() + CALL_MS / 1000
        while time.process_time() < end:
            pass
        return Response("Done.", usage=Usage(1, 1))


def trials_a_second(model: str, repeats: int, executor: Any) -> float:
    """Return the rate of one study, its first repeat of each scenario left out."""
    variant = Variant(model, model=model, mandate="explicit")
    with Study(None, suite=SUITE, models={"computing": ComputingModel()}, executor=executor) as study:
        warm = study.run(variant, repeats=1).done
        began = time.perf_counter()
        done = study.run(variant, repeats=repeats).done - warm
        return done / (time.perf_counter() - began)


@contextmanager
def dask_client(workers: int = 2) -> Iterator[Client]:
    """A cluster of processes of one thread each, on this machine."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def seconds_a_task(executor: Executor, count: int = 500) -> float:
    """Return the seconds of one task that does nothing, with all workers busy, the first ones left out."""

    async def run() -> float:
        for _ in range(2):
            began = time.perf_counter()
            outcomes = [each async for each in map_inputs(executor, Toolbox(), [("double", 1)] * count)]
            assert not any(each.error for each in outcomes)
        return (time.perf_counter() - began) / count

    return asyncio.run(run())


def compare_overheads(trials: int = 2_000) -> None:
    """Print what a trial and an empty task cost on each executor, in this order, so that drift shows."""
    with (
        ProcessExecutor(1) as one,
        ProcessExecutor(2) as two,
        dask_client() as client,
        DaskExecutor(client) as dask,
    ):
        kinds: tuple[tuple[str, Any], ...] = (
            ("asyncio", "asyncio"), ("ProcessExecutor(1)", one), ("ProcessExecutor(2)", two), ("DaskExecutor, 2", dask),
            ("asyncio again", "asyncio"),
        )  # fmt: skip
        print(
            f"{f'{trials:,} trials':<22}{'ms a trial':>12}{'to asyncio':>12}{'ms a task':>12}{'to a trial':>12}"
        )
        first = 0.0
        for name, executor in kinds:
            with Study(None, suite=SUITE) as sized:
                assert sized.suite is not None
                repeats = 1 + -(-trials // len(sized.suite.scenarios))
            cost = 1000 / trials_a_second("simulator", repeats, executor)
            first = first or cost
            empty = 1000 * seconds_a_task(executor) if executor != "asyncio" else 0.0
            task = f"{empty:>12.2f}{empty / first:>12.2f}" if empty else ""
            print(f"{name:<22}{cost:>12.1f}{cost / first:>12.2f}{task}", flush=True)


def main(trials: int | None = None) -> None:
    if trials is not None:
        compare_overheads(trials)
        return
    kinds: tuple[tuple[str, Any], ...] = (
        ("asyncio", lambda: "asyncio"),
        ("LocalExecutor()", LocalExecutor),
        ("ProcessExecutor(1)", lambda: ProcessExecutor(1)),
        ("ProcessExecutor(2)", lambda: ProcessExecutor(2)),
    )
    print(f"{'trials/s':<22}{'simulator':>12}{f'{CALL_MS:g} ms a call':>16}")
    for name, make in kinds:
        rates = []
        for model, repeats in (("simulator", 8), ("computing", 3)):
            executor = make()
            rates.append(trials_a_second(model, repeats, executor))
            if isinstance(executor, Executor):
                executor.close()
        print(f"{name:<22}{rates[0]:>12.0f}{rates[1]:>16.1f}", flush=True)
    print()
    compare_overheads()


if __name__ == "__main__":
    main()
