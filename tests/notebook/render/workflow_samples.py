"""A plan with a gap and a run that failed, with a text wherever a text can stand."""

from __future__ import annotations

from reyn_jupyter.sessions.workflows.plan_run import PlanRun
from reyn_jupyter.workflows.execution.workflow_run import StepArtifact, StepAttempt, StepRun, WorkflowRun
from reyn_jupyter.workflows.planning.plan import Gap, WorkflowPlan, WorkflowStep


def workflow_objects(text: str) -> dict[str, object]:
    """One object of each kind."""
    first = WorkflowStep("step-1", text, tool=text, inputs={text: text})
    second = WorkflowStep(
        "step-2", action=text, inputs={"a": "steps.step-1.outputs.a"}, depends_on=("step-1",)
    )
    gap = Gap(text, "no_capability_match", text, {text: text}, text, {}, {}, "high", "step-2")
    plan = WorkflowPlan(text, text, {text: text}, (first, second), (gap,), "partial-complete", (text,))
    done = StepRun(
        "step-1", text, text, "done", {text: text}, {text: text}, (StepAttempt(0.0, 1.5, text),),
        artifacts=(StepArtifact(text, "", 0),),
    )  # fmt: skip
    failed = StepRun("step-2", text, status="failed", error={"message": text}, reason=text)
    run = WorkflowRun("run-1", "execution_failed", (done, failed), {}, text, (text,), 2.0, text)
    return {"plan": plan, "plan_run": PlanRun(plan, run, (text,))}
