"""What a plan would run, step by step. Nothing runs, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.workflows.execution.executor import unstarted_run
from reyn_jupyter.workflows.execution.summary import missing_operations, summary_text
from reyn_jupyter.workflows.execution.workflow_run import StepRun, WorkflowRun, unrunnable_status
from reyn_jupyter.workflows.planning.plan import MissingInput, WorkflowPlan, WorkflowStep, layers
from reyn_jupyter.workflows.planning.references import resolve_inputs


@dataclass(frozen=True)
class StepPreview:
    """What one step would run.

    Attributes:
        step: of the plan.
        argv: the command, None for an action.
        inputs: with what is known filled in; references to outputs stay as they are written.
        layer: steps of one number could run side by side, from 0.
    """

    step: WorkflowStep
    argv: tuple[str, ...] | None
    inputs: dict[str, Any]
    layer: int

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it, for models and programs."""
        return {
            "step_id": self.step.step_id,
            "operation": self.step.operation,
            "tool": self.step.tool,
            "argv": None if self.argv is None else list(self.argv),
            "inputs": self.inputs,
            "layer": self.layer,
        }


@dataclass(frozen=True)
class DryRun:
    """What a plan would run.

    Attributes:
        steps: in the order in which they could begin.
        run: of status "preview", or of the status that keeps the plan from running.
        missing_inputs: see `WorkflowPlan`.
    """

    steps: tuple[StepPreview, ...]
    run: WorkflowRun
    missing_inputs: tuple[MissingInput, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it; what a run has too is named the same."""
        return {
            **self.run.as_json(),
            "steps": [each.as_json() for each in self.steps],
            "missing_inputs": [each.as_json() for each in self.missing_inputs],
        }


def dry_run(
    plan: WorkflowPlan,
    command_of: Callable[[WorkflowStep], Sequence[str] | None] = lambda step: None,
    forbidden: str = "",
) -> DryRun:
    """Return what a plan would run.

    Args:
        plan: one with gaps is looked at as well, and its status says that it would not run.
        command_of: the command of a step; None for one that starts none.
        forbidden: why the policy does not let it run; "" where it does.

    Raises:
        WorkflowError: "plan_invalid": its steps wait for each other.

    >>> from reyn_jupyter.workflows.planning.plan import read_plan
    >>> plan = read_plan({"steps": [{"step_id": "a", "action": "file__read", "inputs": {"path": "x.csv"}}]})
    >>> preview = dry_run(plan)
    >>> preview.run.status, preview.steps[0].inputs
    ('preview', {'path': 'x.csv'})
    """
    previews = tuple(
        StepPreview(step, _command(step, command_of), _inputs(step, plan), layer)
        for layer, together in enumerate(layers(plan))
        for step in together
    )
    if (status := unrunnable_status(plan)) is not None:
        return DryRun(previews, unstarted_run(plan, status), plan.missing_inputs)
    if forbidden:
        run = unstarted_run(plan, "blocked_by_policy", problem=forbidden)
        return DryRun(previews, run, plan.missing_inputs)
    steps = tuple(StepRun.of(each.step, "preview") for each in previews)
    missing = " ".join(f"{each.step_id}: {each.message}." for each in plan.missing_inputs)
    text = summary_text("preview", steps, f"It would fail: {missing}" if missing else "")
    run = WorkflowRun("", "preview", steps, {}, text, missing_operations(steps))
    return DryRun(previews, run, plan.missing_inputs)


def _inputs(step: WorkflowStep, plan: WorkflowPlan) -> dict[str, Any]:
    return resolve_inputs(step.inputs, plan.request_inputs, {}, keep_unknown=True)


def _command(
    step: WorkflowStep, command_of: Callable[[WorkflowStep], Sequence[str] | None]
) -> tuple[str, ...] | None:
    command = command_of(step)
    return None if command is None else tuple(command)
