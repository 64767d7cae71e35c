"""Errors of an action: their codes reach the model, the record, the trace and the person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.sessions.result_objects import ActionFailedError

# The codes that the designs name: of tools made at run time, of utilities and workflows, and of their gaps.
CODES = (
    *("E101", "E102", "E103", "E104", "E105", "E106", "E107", "E201", "E202", "E203", "E204", "E205"),
    *("E301", "E302", "E303", "E304", "E401", "E403", "manifest_invalid", "plan_invalid", "tool_failed"),
    *(
        "tool_timeout",
        "tool_invalid_output",
        "validation",
        "llm_error",
        "auth",
        "rate_limited",
        "quota_exceeded",
    ),
    *("upstream", "invalid_response", "invalid_json", "no_capability_match", "schema_incompatible"),
    *("low_confidence", "invalid_capability", "blocked_by_policy", "execution_failed", "unroutable"),
)


def failing(error: Exception) -> tuple[Category, ...]:
    async def run(args: Any, context: Any) -> Any:
        raise error

    made = Operation(
        "run", "Run it.", {"type": "object", "properties": {}}, Tool("run_utility", run, Purity.READ)
    )
    return (Category("utility", "Run utilities.", (made,)),)


def session(workspace: Path, error: Exception) -> reyn.Session:
    steps = call("invoke_action", action_name="utility__run", args={}), "It failed."
    return reyn.Session(workspace, model=ScriptedModel(*steps), categories=failing(error))


def test_a_code_reaches_model_record_trace_and_person(workspace: Path) -> None:
    made = session(workspace, ActionError("It took 3 s.", "Ask for less.", code="tool_timeout"))
    trace = made.ask("run it")
    (finished,) = [event for event in trace.events if isinstance(event, ActionFinished)]
    assert finished.code == "tool_timeout" and list(trace.call_log["code"]) == ["tool_timeout"]
    answer = {"error": "It took 3 s.", "hint": "Ask for less.", "blob": None, "code": "tool_timeout"}
    assert json.loads(finished.output) == answer
    assert [event.code for event in trace.load(trace.save(workspace / "run.jsonl")).events
            if isinstance(event, ActionFinished)] == ["tool_timeout"]  # fmt: skip
    result = made.invoke_action("utility__run", {})
    assert result.code == "tool_timeout" and result.payload == answer
    with pytest.raises(ActionFailedError) as caught:
        _ = result.value
    assert caught.value.code == "tool_timeout"


def test_without_a_code_nothing_is_said_of_one(workspace: Path) -> None:
    for error in (ActionError("No."), OSError("no")):
        result = session(workspace, error).invoke_action("utility__run", {})
        assert result.code is None and "code" not in result.payload


def test_a_function_of_the_person_may_give_one(workspace: Path) -> None:
    made = reyn.Session(workspace)

    @made.action
    def convert(path: str) -> str:
        """Convert a file."""
        raise ActionError("Not that format.", code="schema_incompatible")

    assert made.invoke_action("function__convert", {"path": "a"}).code == "schema_incompatible"


@pytest.mark.parametrize("code", CODES)
def test_the_codes_of_the_designs_are_codes(code: str) -> None:
    assert ActionError("No.", code=code).code == code


@pytest.mark.parametrize(
    "code", ["", "Tool Timeout", "toolTimeout", "_x", "x_", "x__y", "E1", "é", "a\n", "a" * 61, 7]
)
def test_another_form_is_refused(code: Any) -> None:
    with pytest.raises(ValueError, match="no code of an error"):
        ActionError("No.", code=code)


def test_a_denial_before_a_call_has_the_code_of_one_in_the_middle_of_it(workspace: Path) -> None:
    categories = failing(ActionError("It never runs."))
    steps = call("invoke_action", action_name="utility__run", args={}), "It was denied."
    rules = {"permissions": {"deny": ["utility__run"]}}
    made = reyn.Session(workspace, model=ScriptedModel(*steps), categories=categories, config=rules)
    result = made.invoke_action("utility__run", {})
    assert (result.code, result.payload["code"]) == ("permission_denied", "permission_denied")
    trace = made.ask("run it")
    (finished,) = [event for event in trace.events if isinstance(event, ActionFinished)]
    assert finished.code == "permission_denied" and '"code":"permission_denied"' in finished.output
