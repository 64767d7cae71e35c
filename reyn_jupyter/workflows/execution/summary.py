"""The end of a run in words: done with its operations, or not done with what was and what was not.

Source: the architecture of utilities and skills, 4 "workflow-executor", the output of the agent.
"""

from __future__ import annotations

from collections.abc import Sequence

from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import count, enumerate_words, shorten
from reyn_jupyter.workflows.execution.workflow_run import StepRun, WorkflowRunStatus

_HEADS: dict[WorkflowRunStatus, str] = {
    "executed": "The task is done.",
    "preview": "A preview: nothing ran.",
    "partial-complete": "The task is not done: the plan has gaps, so nothing ran.",
    "unroutable": "The task is not done: no steps were found for it.",
    "blocked_by_policy": "The task is not done: the policy forbids it, so nothing ran.",
    "interrupted": "The task is not done: it was interrupted.",
    "running": "The task is under way.",
}
_PARTLY: tuple[WorkflowRunStatus, ...] = ("partly_done", "completed_with_skips")
_LONGEST = 300  # characters of a reason


def missing_operations(steps: Sequence[StepRun]) -> tuple[str, ...]:
    """Return the operations that were not done, ``<step_id> <capability>``."""
    return tuple(_operation(step) for step in steps if step.status != "done")


def summary_text(status: WorkflowRunStatus, steps: Sequence[StepRun], problem: str = "") -> str:
    """Return how a run ended, for people.

    >>> print(summary_text("executed", [StepRun("step-1", "youtube.download", status="done")]))
    The task is done.
    Done:
      step-1 youtube.download
    """
    lines = [_partly(steps) if status in _PARTLY else _HEADS.get(status, "The task is not done.")]
    if problem:
        lines.append(shorten(visible(problem), _LONGEST))
    done = [step for step in steps if step.status == "done"]
    rest = [step for step in steps if step.status != "done"]
    if done:
        lines += ["Done:", *(f"  {_operation(step)}{_how(step)}" for step in done)]
    if rest:
        lines.append({"preview": "Would run:", "completed_with_skips": "Skipped:"}.get(status, "Not done:"))
        lines += [f"  {_operation(step)}{_why(step)}" for step in rest]
    return "\n".join(lines)


def _partly(steps: Sequence[StepRun]) -> str:
    """Return the first line for a task of which a part is not done."""
    failed = [f"{step.undone} in {_operation(step)}" for step in steps if step.undone]
    skipped = sum(step.status == "skipped" for step in steps)
    said = [f"{enumerate_words(failed)} failed"] if failed else []
    if skipped:
        said.append(f"{skipped} of {count(len(steps), 'step')} {'was' if skipped == 1 else 'were'} skipped")
    return f"The task is partly done: {enumerate_words(said)}."


def _how(step: StepRun) -> str:
    """Return what is to be known of a step that is done."""
    said = []
    if step.undone:
        said.append(f"{step.undone} failed")
    if step.again:
        said.append(f"run again, because {step.again}")
    if step.carried and step.unchecked:
        said.append(f"not run again; whether {step.unchecked} changed is not known")
    return "".join(f": {shorten(visible(each), _LONGEST)}" for each in said)


def _operation(step: StepRun) -> str:
    return visible(f"{step.step_id} {step.operation}")


def _why(step: StepRun) -> str:
    said = str(step.error.get("message", "")) if step.error is not None else step.reason
    return f": {shorten(visible(said), _LONGEST)}" if said else ""
