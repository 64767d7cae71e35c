"""Runs a plan of three steps, and kills itself with SIGKILL at a named moment.

    python -m tests.workflows.execution.kill_program WORKSPACE RUN_ID MOMENT

`run_plan` is what the program and the tests run: each call of a step leaves a line in `journal` when it begins and
when it ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reyn_jupyter.workflows.execution.executor import ExecutionEvent, execute_plan
from reyn_jupyter.workflows.execution.run_file import RunFile
from reyn_jupyter.workflows.execution.workflow_run import WorkflowRun
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep

MOMENTS = (
    "before the first write",
    "run_started",
    "step_started a",
    "call a",
    "given a",
    "step_ended a",
    "call b",
    "write 6",
    "replace 6",
    "given c",
    "step_ended c",
)
PLAN = WorkflowPlan(
    "killed",
    request_inputs={"text": "one"},
    steps=(
        WorkflowStep("a", "test.unsafe", tool="t@1.0.0", inputs={"text": "request.inputs.text"}),
        WorkflowStep("b", "test.safe", tool="t@1.0.0", inputs={"text": "steps.a.outputs.text"}),
        WorkflowStep("c", "test.unsafe", tool="t@1.0.0", inputs={"text": "steps.b.outputs.text"}),
    ),
)


def run_plan(
    workspace: Path, run_id: str, reach: Callable[[str], None] = lambda moment: None, **options: Any
) -> WorkflowRun:
    """Run the plan; `reach` is called at each of its moments."""

    def note(line: str) -> None:
        with (workspace / "journal").open("a") as journal:
            journal.write(line + "\n")

    async def call(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        note(f"begin {step.step_id}")
        reach(f"call {step.step_id}")
        (workspace / f"{step.step_id}.txt").write_text(inputs["text"] + step.step_id)
        note(f"end {step.step_id}")
        return {"text": inputs["text"] + step.step_id, "file": f"{step.step_id}.txt"}

    def listen(event: ExecutionEvent) -> None:
        reach(f"{event.kind} {event.step.step_id}" if event.step else event.kind)

    def artifact_paths(step: WorkflowStep, outputs: Mapping[str, Any]) -> list[str]:
        reach(f"given {step.step_id}")  # the step has ended, and the file does not say so yet
        return [outputs["file"]]

    return asyncio.run(
        execute_plan(
            options.pop("plan", PLAN),
            call_step=call,
            run_file=RunFile(workspace, run_id),
            on_event=listen,
            is_safe=lambda step: step.capability == "test.safe",
            artifact_paths=artifact_paths,
            **options,
        )
    )


def main() -> None:
    workspace, run_id, moment = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    kind, _, number = moment.partition(" ")
    counts = {"write": 0, "replace": 0}
    replace = os.replace

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def replacing(*arguments: Any, **named: Any) -> None:
        """Die before the new file takes the place of the old one, or at once after."""
        counts["write"] += 1
        if kind == "write" and counts["write"] == int(number):
            kill()
        replace(*arguments, **named)
        counts["replace"] += 1
        if kind == "replace" and counts["replace"] == int(number):
            kill()

    os.replace = replacing  # type: ignore[assignment]
    if moment == MOMENTS[0]:
        os.replace = lambda *arguments, **named: kill()  # type: ignore[assignment]
    run_plan(workspace, run_id, lambda reached: kill() if reached == moment else None)


if __name__ == "__main__":
    main()
