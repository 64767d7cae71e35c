"""What the executor of plans costs a step, beside the same calls awaited by hand, and beside a bare subprocess.

A chain, and a plan of independent steps, of 100 steps that do nothing; with and without the file of the run. Then a dry
run, and a resume of a run that is done. The bare subprocess is what a utility cannot cost less than.

    python -m tests.benchmarks workflow_execution
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from reyn_jupyter.workflows.execution.dry_run import dry_run
from reyn_jupyter.workflows.execution.executor import RunLimits, execute_plan
from reyn_jupyter.workflows.execution.run_file import RunFile
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep

STEPS = 100
REPEATS = 7


def chain() -> WorkflowPlan:
    """Return a plan whose every step needs the output of the one before."""
    return WorkflowPlan(
        "chain",
        request_inputs={"text": "x" * 200},
        steps=tuple(
            WorkflowStep(
                f"step-{at}",
                "test.echo",
                tool="echo@1.0.0",
                inputs={"text": f"steps.step-{at - 1}.outputs.text" if at else "request.inputs.text"},
            )
            for at in range(STEPS)
        ),
    )


def fan() -> WorkflowPlan:
    """Return a plan of steps that need nothing."""
    return WorkflowPlan(
        "fan",
        request_inputs={"text": "x" * 200},
        steps=tuple(
            WorkflowStep(f"step-{at}", "test.echo", tool="echo@1.0.0", inputs={"text": "request.inputs.text"})
            for at in range(STEPS)
        ),
    )


async def echo(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
    await asyncio.sleep(0)
    return {"text": inputs["text"]}


async def by_hand(plan: WorkflowPlan) -> None:
    for step in plan.steps:
        await echo(step, {"text": "x" * 200}, 600)


async def bare_subprocess(plan: WorkflowPlan) -> None:
    for _ in plan.steps[:20]:
        process = await asyncio.create_subprocess_exec("/bin/true")
        await process.wait()


async def seconds_of(work: Callable[[], Awaitable[Any]]) -> float:
    """Return the median time of some runs."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        await work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


async def measure(folder: Path) -> None:
    limits = RunLimits(max_parallel=8)
    workspaces = iter(range(10_000))

    def new_file() -> RunFile:
        workspace = folder / str(next(workspaces))
        workspace.mkdir()
        return RunFile(workspace)

    done = new_file()
    await execute_plan(chain(), call_step=echo, run_file=done)

    async def resume() -> None:
        again = RunFile(done.workspace, done.run_id)
        run = await execute_plan(chain(), call_step=echo, run_file=again, resume=True)
        assert all(each.carried for each in run.steps)

    async def previews() -> None:
        dry_run(chain())

    def run(plan: WorkflowPlan, *, written: bool) -> Callable[[], Awaitable[Any]]:
        return lambda: execute_plan(
            plan, call_step=echo, limits=limits, run_file=new_file() if written else None
        )

    measured: list[tuple[str, Callable[[], Awaitable[Any]], int]] = [
        ("awaited by hand", lambda: by_hand(chain()), STEPS),
        ("chain", run(chain(), written=False), STEPS),
        ("chain, with its file", run(chain(), written=True), STEPS),
        ("side by side", run(fan(), written=False), STEPS),
        ("side by side, with its file", run(fan(), written=True), STEPS),
        ("resume of what is done", resume, STEPS),
        ("dry run", previews, STEPS),
        ("a bare subprocess", lambda: bare_subprocess(chain()), 20),
    ]
    rows = [(name, await seconds_of(work), steps) for name, work, steps in measured]
    subprocess_cost = rows[-1][1] / rows[-1][2]
    print(f"{STEPS} steps{'':<24}{'µs a step':>12}{'of a bare subprocess':>24}")
    for name, seconds, steps in rows:
        cost = seconds / steps
        print(f"{name:<32}{cost * 1e6:>12,.0f}{cost / subprocess_cost:>24.2f}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
