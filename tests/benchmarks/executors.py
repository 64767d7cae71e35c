"""Trials a second on each executor: in this process, and in one and two processes beside it.

Two models that answer in the process: the simulator, which costs little, and one that computes as long per call as a
small embedded model. The first trials, which start the processes, are not counted.

    python -m tests.benchmarks executors
"""

from __future__ import annotations

import time
from typing import Any

from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.executors.executor import Executor
from reyn_jupyter.executors.local import LocalExecutor
from reyn_jupyter.executors.processes import ProcessExecutor
from reyn_jupyter.models.base import Response, Usage

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


def main() -> None:
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


if __name__ == "__main__":
    main()
