"""A run of a plan as people see it: while it is planned, checked and run, and once it is over.

Invariant: who listens hears of a beginning, and of an end, whatever is raised between: nothing stays shown as running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError
from reyn_jupyter.workflows.execution.workflow_run import StepRun, WorkflowRun, WorkflowRunStatus
from reyn_jupyter.workflows.planning.plan import WorkflowPlan

DispatchPhase = Literal["planning", "gap check", "policy check", "running", "ended"]


@dataclass(frozen=True)
class PlanRun:
    """A run of a plan as it stands, beside the plan.

    Attributes:
        plan: what was to be done.
        run: what came of it; of a dry run the status "preview".
        log: what its steps and their programs said meanwhile, the last lines of it.
        phase: what is being done of the way from a request to its run; "ended" once it is over.
    """

    plan: WorkflowPlan
    run: WorkflowRun
    log: tuple[str, ...] = ()
    phase: DispatchPhase = "ended"

    @property
    def status(self) -> str:
        """How it ended."""
        return self.run.status

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        """What each step that is done gave, by its id."""
        return self.run.outputs


OnChange = Callable[[PlanRun], None]


def begun_run(plan: WorkflowPlan, phase: DispatchPhase) -> PlanRun:
    """Return the run of a plan of which no step has begun."""
    return PlanRun(plan, WorkflowRun("", "running", tuple(map(StepRun.of, plan.steps))), (), phase)


@contextmanager
def report_end(
    begun: PlanRun, on_change: OnChange | None, latest: Callable[[], PlanRun | None] = lambda: None
) -> Iterator[None]:
    """Tell of a block as it begins, and, where it raises, how that left the run: nothing stays shown as running."""
    if on_change is None:
        yield
        return
    try:
        on_change(begun)  # who sees it may interrupt at once
        yield
    except BaseException as error:
        left = latest() or begun
        is_word = isinstance(error, WorkflowActionError)
        status: WorkflowRunStatus = "execution_failed" if is_word else "interrupted"
        run = left.run if left.run.status != "running" else replace(left.run, status=status)
        on_change(replace(left, run=run, phase="ended"))
        raise
