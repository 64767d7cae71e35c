"""Plans of tests, at random too, and what runs their steps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep
from reyn_jupyter.workflows.workflow_error import WorkflowError


def step(step_id: str, inputs: Mapping[str, Any] | None = None, **more: Any) -> WorkflowStep:
    return WorkflowStep(step_id, f"test.{step_id}", tool="test@1.0.0", inputs=inputs or {}, **more)


def plan(*steps: WorkflowStep, **more: Any) -> WorkflowPlan:
    return WorkflowPlan("a-plan", steps=steps, **more)


def failure(code: Any = "tool_failed", **details: Any) -> WorkflowError:
    return WorkflowError("It broke.", "", code, details)


class Steps:
    """What runs the steps of a test: it notes each call, and fails as often as it is told to."""

    def __init__(self, failures: Mapping[str, int | WorkflowError] | None = None) -> None:
        self.failures = dict(failures or {})
        self.calls: list[str] = []
        self.inputs: dict[str, dict[str, Any]] = {}
        self.under_way: set[str] = set()
        self.most_under_way = 0

    async def __call__(self, step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
        self.calls.append(step.step_id)
        self.inputs[step.step_id] = inputs
        self.under_way.add(step.step_id)
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        await asyncio.sleep(0)
        self.under_way.discard(step.step_id)
        left = self.failures.get(step.step_id, 0)
        if isinstance(left, WorkflowError):
            raise left
        if left > 0:
            self.failures[step.step_id] = left - 1
            raise failure()
        return {"file": f"{step.step_id}.bin"}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[WorkflowPlan, dict[str, int], int]:
    """Return a plan whose steps need earlier ones at random and stand in any order, failures of it, and a width."""
    number = draw(st.integers(1, 9))
    names = [f"s{at}" for at in range(number)]
    made = []
    for at, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:at]), unique=True, max_size=3)) if at else []
        by_input = draw(st.lists(st.sampled_from(needs), unique=True)) if needs else []
        made.append(
            step(
                name,
                {f"from-{each}": f"steps.{each}.outputs.file" for each in by_input},
                depends_on=tuple(each for each in needs if each not in by_input),
                on_failure=draw(st.sampled_from(["skip", "fail", "retry"])),
            )
        )
    failures = {name: draw(st.sampled_from([0, 0, 0, 1, 9])) for name in names}
    return plan(*draw(st.permutations(made))), failures, draw(st.integers(1, 4))
