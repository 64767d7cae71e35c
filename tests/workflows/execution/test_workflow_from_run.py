"""What the agent did once can be done again with other inputs: real runs of a session become workflows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.workflows.execution.executor import execute_plan
from reyn_jupyter.workflows.execution.workflow_file import Workflow, read_workflows, write_workflow
from reyn_jupyter.workflows.execution.workflow_from_run import workflow_of_run
from reyn_jupyter.workflows.execution.workflow_run import as_outputs
from reyn_jupyter.workflows.planning.plan import WorkflowStep
from reyn_jupyter.workflows.workflow_error import WorkflowError


def action(name: str, /, **args: Any) -> Any:
    return call("invoke_action", action_name=name, args=args)


def ask(session: reyn.Session, prompt: str) -> Trace:
    return session.ask(prompt, approve="all")


def run_again(session: reyn.Session, workflow: Workflow, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run a workflow with the actions of a session, and return what it gives."""

    async def call_step(step: WorkflowStep, given: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert step.action is not None
        return as_outputs(session.invoke_action(step.action, given).value)

    run = asyncio.run(execute_plan(workflow.plan(inputs), call_step=call_step))
    assert run.status == "executed", run.text
    return workflow.result(run, inputs)


def test_a_run_becomes_a_workflow_that_does_the_same_with_other_inputs(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    (workspace / "list.txt").write_text("orders.csv")
    (workspace / "orders.csv").write_text("a,b\n1,2\n")
    (workspace / "other.txt").write_text("more.csv")
    (workspace / "more.csv").write_text("a,b\n3,4\n")
    session = reyn.Session(
        workspace,
        namespace={},
        model=ScriptedModel(
            action("file__read", path="list.txt"),
            action("file__read", path="nowhere.txt"),
            action("file__read", path="orders.csv"),
            action("file__write", path="copy.csv", content="a,b\n1,2\n"),
            action("file__write", path="key.txt", content="the key is correct-horse-battery"),
            "Done.",
        ),
    )
    trace = ask(session, "read what list.txt names, and copy that to copy.csv")
    made = workflow_of_run(trace, "copy-it")
    assert [(each.action, dict(each.inputs)) for each in made.workflow.steps] == [
        ("file__read", {"path": "request.inputs.path"}),
        ("file__read", {"path": "steps.step-1.outputs.result"}),
        ("file__write", {"path": "request.inputs.path_2", "content": "steps.step-2.outputs.result"}),
        ("file__write", {"path": "key.txt", "content": "request.inputs.content"}),
    ]
    properties = made.workflow.inputs["properties"]
    assert {name: each.get("default") for name, each in properties.items()} == {
        "path": "list.txt",
        "path_2": "copy.csv",
        "content": None,
    }
    assert made.workflow.inputs["required"] == ["content"]
    assert "step-4 was given a secret" in made.notes[0]
    file = write_workflow(workspace, made.workflow)
    assert b"correct-horse" not in file.content
    assert b"redacted" not in file.content
    kept = read_workflows(workspace)[0].workflow
    assert kept == made.workflow
    run_again(session, kept, {"path": "other.txt", "path_2": "second.csv", "content": "none"})
    assert (workspace / "second.csv").read_text() == "a,b\n3,4\n"


def test_values_inside_results_are_found_by_their_place_and_those_of_chance_are_not(workspace: Path) -> None:
    session = reyn.Session(
        workspace,
        namespace={},
        model=ScriptedModel(
            action("function__find_order", number=4711),
            action("function__ship", order=90210, to={"street": "Main St. 1", "city": "Graz"}, copies=2, express=True),
            "Done.",
        ),
    )  # fmt: skip

    @session.action
    def find_order(number: int) -> dict[str, Any]:
        """Find an order."""
        return {
            "orders": [{"id": 90210 + number - 4711, "to": {"street": "Main St. 1", "city": "Graz"}}],
            "copies": 2,
            "express": True,
        }

    @session.action
    def ship(order: int, to: dict[str, str], copies: int, express: bool) -> str:
        """Ship an order."""
        return f"{order} to {to['city']}"

    trace = ask(session, "ship order 4711")
    names = [each.resolved.name for each in trace.calls]
    workflow = workflow_of_run(trace, "ship-order").workflow
    assert [each.action for each in workflow.steps] == names
    assert workflow.steps[0].inputs == {"number": "request.inputs.number"}
    assert workflow.inputs["properties"] == {"number": {"type": "integer", "default": 4711}}
    assert workflow.steps[1].inputs == {
        "order": "steps.step-1.outputs.orders[0].id",
        "to": "steps.step-1.outputs.orders[0].to",
        "copies": 2,
        "express": True,
    }
    assert run_again(session, workflow, {"number": 4712}) == {"result": "90211 to Graz"}


def test_a_stored_result_is_handed_on_by_reference_and_an_id_that_only_the_run_has_is_refused(
    workspace: Path,
) -> None:
    def measure_it(request: Any) -> Any:
        blob = re.findall(r"blob:([0-9a-f-]{36})", str(request.messages))[0]
        return action("function__measure", rows={"$blob": blob, "path": "/rows"})

    session = reyn.Session(
        workspace,
        namespace={},
        model=ScriptedModel(
            action("function__collect", name="everything"),
            measure_it,
            "Measured.",
            measure_it,
            "Measured again.",
        ),
    )

    @session.action
    def collect(name: str) -> dict[str, Any]:
        """Collect rows."""
        return {
            "name": name,
            "rows": [f"row {at} of a long list" for at in range(2_000 if name == "everything" else 7)],
        }

    @session.action
    def measure(rows: list[str]) -> int:
        """Count rows."""
        return len(rows)

    trace = ask(session, "collect everything and measure it")
    workflow = workflow_of_run(trace, "measure-it").workflow
    assert workflow.steps[1].inputs == {"rows": "steps.step-1.outputs.rows"}
    assert run_again(session, workflow, {}) == {"result": 2_000}
    assert run_again(session, workflow, {"name": "little"}) == {"result": 7}
    with pytest.raises(WorkflowError, match="result of another run"):
        workflow_of_run(ask(session, "measure it again"), "measure-it")


def test_a_run_without_a_call_that_worked_is_no_workflow(workspace: Path) -> None:
    session = reyn.Session(workspace, namespace={}, model=ScriptedModel("Hello."))
    with pytest.raises(WorkflowError, match="no action with success"):
        workflow_of_run(ask(session, "hello"), "hello")
