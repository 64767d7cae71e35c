"""Coverage of steps by utilities, gate by gate, and what a gap says."""

from __future__ import annotations

from pathlib import Path

import pytest

from reyn_jupyter.catalog.schema_check import check_schema
from reyn_jupyter.workflows.planning.coverage import cover, request_gap
from reyn_jupyter.workflows.planning.plan import Gap, WorkflowPlan, WorkflowStep, read_plan
from reyn_jupyter.workflows.utilities.contract import Contract
from reyn_jupyter.workflows.utilities.manifest import Entrypoint, Manifest, Utility
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry

FILE = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
ANY = {"type": "object"}


def utility(name, *capabilities, version="1.0.0", takes=ANY, gives=ANY, trusted=True, **fields):
    manifest = Manifest(
        name,
        version,
        "a utility of a test",
        capabilities,
        Entrypoint("python", "run.py"),
        takes,
        gives,
        **fields,
    )
    return Utility(manifest, Path(name), "workspace", f"digest of {name}", trusted, f"tools/{name}", {})


def registry_of(*utilities):
    return UtilityRegistry(utilities)


def plan_of(*steps):
    return WorkflowPlan("p", steps=steps)


def gap_of(step, *utilities, **options) -> Gap:
    covered = cover(plan_of(step), registry_of(*utilities), **options)
    [gap] = covered.gaps
    assert covered.status == "partial-complete" and covered.steps[0].tool is None
    assert gap.step_id == step.step_id
    assert (
        check_schema(gap.proposed_input_schema) is None and check_schema(gap.proposed_output_schema) is None
    )
    return gap


def test_a_step_that_a_utility_serves_gets_the_best_one():
    step = WorkflowStep("a", "video.convert", tool="somebody@9.9.9")
    covered = cover(
        plan_of(step),
        registry_of(
            utility("new", "video.convert", version="2.0.0"),
            utility("old", "video.convert", version="0.9.0", stability="stable"),
            utility("other", "drive.upload"),
        ),
    )
    assert (covered.status, covered.steps[0].tool, covered.gaps) == ("complete", "old@0.9.0", ())


@pytest.mark.parametrize("capability", ["Video.Convert", "video", "video.convert.fast", "video convert", ""])
def test_what_is_no_capability_is_invalid_whatever_there_is(capability):
    assert gap_of(WorkflowStep("a", capability), utility("x", "video.convert")).reason == "invalid_capability"


def test_a_capability_without_a_utility_proposes_one():
    step = WorkflowStep(
        "a", "tg.scrape", inputs={"channel": "@news", "limit": 5, "since": "request.inputs.since"}
    )
    plan = WorkflowPlan("p", request_inputs={"since": "2024"}, steps=(step,))
    [gap] = cover(plan, registry_of()).gaps
    assert (gap.reason, gap.proposed_tool_name, gap.priority) == ("no_capability_match", "tg-scrape", "high")
    assert gap.proposed_input_schema == {
        "type": "object",
        "properties": {
            "channel": {"type": "string"},
            "limit": {"type": "integer"},
            "since": {"type": "string"},
        },
        "required": ["channel", "limit", "since"],
    }
    proposed = utility(
        "tg-scrape", "tg.scrape", takes=gap.proposed_input_schema, gives=gap.proposed_output_schema
    )
    assert cover(plan, registry_of(proposed)).status == "complete"


def test_what_is_not_trusted_is_listed_and_never_chosen():
    gap = gap_of(WorkflowStep("a", "video.convert"), utility("x", "video.convert", trusted=False))
    assert gap.reason == "no_capability_match"
    assert [each["verdict"] for each in gap.reason_details["candidates"]] == ["not trusted"]


def test_every_violated_place_of_every_candidate_is_told():
    step = WorkflowStep(
        "a", "youtube.download", capability_contract=Contract({"type": "object", "properties": {}}, FILE)
    )
    optional = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    gap = gap_of(
        step,
        utility("one", "youtube.download", gives=optional),
        utility("two", "youtube.download", takes={"type": "object", "required": ["url"]}, gives=ANY),
    )
    assert gap.reason == "schema_incompatible"
    told = {each["tool"]: each["violations"] for each in gap.reason_details["candidates"]}
    assert {each["direction"] for each in told["one@1.0.0"]} == {"output"}
    assert {each["direction"] for each in told["two@1.0.0"]} == {"input", "output"}
    assert gap.proposed_output_schema["required"] == ["file_path"]


def test_an_output_that_a_later_step_takes_must_be_possible_without_any_contract():
    plan = read_plan({
        "steps": [
            {"step_id": "get", "capability": "youtube.download"},
            {
                "step_id": "put",
                "capability": "drive.upload",
                "inputs": {"file": "steps.get.outputs.file_path"},
                "on_failure": "skip",
            },
        ]
    })  # fmt: skip
    putting = utility("put", "drive.upload", takes={"type": "object", "required": ["file"]})
    other = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
    covered = cover(plan, registry_of(utility("get", "youtube.download", gives=other), putting))
    [gap] = covered.gaps
    assert (gap.step_id, gap.reason, gap.priority) == ("get", "schema_incompatible", "high")
    assert "file_path" in gap.reason_message and gap.proposed_output_schema["required"] == ["file_path"]
    assert (
        cover(plan, registry_of(utility("get", "youtube.download", gives=FILE), putting)).status == "complete"
    )
    low = cover(plan, registry_of(utility("get", "youtube.download", gives=FILE))).gaps
    assert [each.priority for each in low] == ["low"]


def test_inputs_that_a_step_does_not_send_or_that_nobody_takes_do_not_fit():
    strict = {
        "type": "object",
        "properties": {"url": {"type": "string"}},
        "required": ["url"],
        "additionalProperties": False,
    }
    gap = gap_of(WorkflowStep("a", "x.y", inputs={"link": "u"}), utility("x", "x.y", takes=strict))
    messages = [each["message"] for each in gap.reason_details["candidates"][0]["violations"]]
    assert gap.reason == "schema_incompatible"
    assert any("'url'" in each for each in messages) and any("'link'" in each for each in messages)


@pytest.mark.parametrize("confidence", [None, 0.74, float("nan"), True, "0.9", [1]])
def test_a_step_of_a_model_without_enough_confidence_is_a_gap(confidence):
    step = WorkflowStep("a", "x.y", source="llm", coverage_confidence=confidence)
    gap = gap_of(step, utility("x", "x.y"))
    assert gap.reason == "low_confidence" and gap.reason_details["threshold"] == 0.75


def test_confidence_counts_for_steps_of_a_model_alone():
    for source, confidence in (("llm", 0.75), ("rule", None), ("person", 0.1)):
        step = WorkflowStep("a", "x.y", source=source, coverage_confidence=confidence)
        assert cover(plan_of(step), registry_of(utility("x", "x.y"))).status == "complete"


def test_gates_are_tried_in_their_order():
    unsure = {"source": "llm", "coverage_confidence": 0.1, "capability_contract": Contract(ANY, FILE)}
    assert gap_of(WorkflowStep("a", "NO", **unsure)).reason == "invalid_capability"
    assert gap_of(WorkflowStep("a", "x.y", **unsure)).reason == "no_capability_match"
    assert gap_of(WorkflowStep("a", "x.y", **unsure), utility("x", "x.y")).reason == "schema_incompatible"
    assert (
        gap_of(WorkflowStep("a", "x.y", **unsure), utility("x", "x.y", gives=FILE)).reason == "low_confidence"
    )


def test_an_action_needs_no_utility_but_must_exist():
    step = WorkflowStep("a", action="file__read")
    assert cover(plan_of(step), registry_of()).status == "complete"
    gap = gap_of(step, known_actions=lambda name: name != "file__read")
    assert (gap.missing_capability, gap.reason) == ("file__read", "no_capability_match")


def test_gaps_of_the_request_stay_and_those_of_steps_are_found_anew():
    gap = request_gap("bake a cake", "No rule knows it.")
    plan = WorkflowPlan("p", steps=(WorkflowStep("a", "x.y"),), gaps=(gap,))
    twice = cover(cover(plan, registry_of()), registry_of())
    assert [each.step_id for each in twice.gaps] == ["a", None]
    covered = cover(twice, registry_of(utility("x", "x.y")))
    assert covered.gaps == (gap,) and covered.status == "partial-complete"
    assert cover(WorkflowPlan("p", gaps=(gap,), status="unroutable"), registry_of()).status == "unroutable"
    assert cover(WorkflowPlan("p"), registry_of()).status == "unroutable"
