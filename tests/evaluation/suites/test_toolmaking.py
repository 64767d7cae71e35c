"""The suite `toolmaking`: who makes a tool for each task does it in the real sandbox; without tools nobody can."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.suites import load_suite
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.base import Request, Response, Tier, ToolCall
from tests.evaluation.trial_support import run

REFERENCE: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "toolmaking.json").read_text()
)
SUITE = load_suite("toolmaking")


@dataclass(frozen=True)
class ToolMaker:
    """A model that makes the reference's tool, runs it for every item, and answers with what came back."""

    scenario: Scenario | None = None
    permissions: tuple[str, ...] = ()
    label: str = "tool-maker"
    tier: Tier = "standard"
    host: str | None = None
    real: bool = False

    def for_scenario(self, scenario: Scenario) -> ToolMaker:
        return ToolMaker(scenario, self.permissions)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        assert self.scenario is not None
        task = REFERENCE[self.scenario.id]
        results = [message.content for message in request.messages if message.role == "tool"]
        if not results:
            definition = {task["parameter"]: {"type": task["type"], "required": True}}
            made = {
                "name": task["tool"], "description": "Do it once.", "code": task["code"],
                "parameters": definition, "permissions": list(self.permissions),
            }  # fmt: skip
            return _calls([("dynamic_tool_operation__create", made)])
        if (
            len(results) == 1
            and '"created"' not in results[0].lower()
            and "Created the tool" not in results[0]
        ):
            return Response(f"It could not be made: {results[0]}")
        if len(results) == 1:
            name = f"dynamic_tool__{task['tool']}"
            return _calls([(name, {task["parameter"]: each}) for each in task["items"]])
        return Response("They are " + ", ".join(results[1:]))


def _calls(wanted: list[tuple[str, dict[str, Any]]]) -> Response:
    return Response(
        tool_calls=tuple(
            ToolCall(
                f"call-{number}-{name}", "invoke_action", json.dumps({"action_name": name, "args": args})
            )
            for number, (name, args) in enumerate(wanted)
        )
    )


@pytest.fixture(scope="module")
def bench() -> Iterator[TrialRunner]:
    with TrialRunner(
        SUITE, models={"maker": ToolMaker(), "reaching": ToolMaker(None, ("network:example.org",))}
    ) as made:
        yield made


def tried(bench: TrialRunner, scenario: str, variant: str, model: str = "maker") -> tuple[Trial, str]:
    task = next(each for each in SUITE.scenarios if each.id == scenario)
    trial, _ = run(bench, task, SUITE.variants[variant].but(variant, model=model))
    return trial, find_check("task_done").grade(trial, task).kind


@pytest.mark.parametrize("scenario", ["shift-cipher", "crc", "durations"])
def test_a_tool_made_once_does_the_whole_task_in_the_sandbox(bench: TrialRunner, scenario: str) -> None:
    trial, done = tried(bench, scenario, "with-tools")

    assert done == "pass", (trial.answer, trial.denied)
    made, *runs = trial.calls
    assert made.name == "dynamic_tool_operation__create"
    assert [call.ok for call in runs] == [True] * len(REFERENCE[scenario]["items"])


def test_what_each_answer_must_say_is_what_the_code_gives() -> None:
    assert set(REFERENCE) == {each.id for each in SUITE.scenarios}
    for each in SUITE.scenarios:
        task, names = REFERENCE[each.id], dict[str, Any]()
        exec(task["code"], names)
        assert each.says == tuple(str(names["execute"]({task["parameter"]: item})) for item in task["items"])
        assert all(str(item) in prompt for item in task["items"] for prompt in each.prompts.values())


def test_without_tools_there_are_none_to_make(bench: TrialRunner) -> None:
    trial, done = tried(bench, "crc", "without-tools")

    assert done == "fail"
    assert not any(call.ok for call in trial.calls)


def test_a_tool_of_a_trial_is_not_there_in_the_next_one(bench: TrialRunner) -> None:
    first, second = (tried(bench, "roman", "with-tools")[1] for _ in range(2))

    assert (first, second) == ("pass", "pass")  # the name would be taken


def test_a_tool_that_wants_a_host_is_not_made_unattended(bench: TrialRunner) -> None:
    trial, done = tried(bench, "crc", "with-tools", "reaching")

    assert done == "fail"
    assert trial.denied == ("dynamic_tool_operation__create",)


def test_a_variant_that_leaves_out_what_is_not_there_is_refused(bench: TrialRunner) -> None:
    with pytest.raises(SuiteError, match="no catalog of the suite holds the category 'dynamic_tools'"):
        bench.check(Variant("typo", model="maker", without=("dynamic_tools",)))
