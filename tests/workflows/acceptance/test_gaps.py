"""Coverage of steps and the report of gaps, field by field; with any gap nothing runs."""

from __future__ import annotations

from typing import Any

import pytest

from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.workflows.planning.plan import read_plan
from tests.workflows.acceptance.workshop import (
    LOG,
    LOGS,
    NOTHING,
    TEXT,
    Json,
    Workshop,
    closed,
    model_plan,
    model_step,
    needs,
    opened,
    plan_of,
    skill_call,
    step,
    steps_of,
)  # fmt: skip

FIELDS = {
    "missing_capability", "reason", "reason_message", "reason_details", "proposed_tool_name",
    "proposed_input_schema", "proposed_output_schema", "priority",
}  # fmt: skip


@pytest.fixture
def logs(workshop: Workshop) -> Workshop:
    workshop.add("logs", LOGS, capabilities=["logs.run"], output_schema=opened(text=TEXT))
    return workshop


def of_model(capability: str = "logs.run", **more: Any) -> Json:
    return step("a", capability, {"log": "log"}, source="llm", **more)


# The gates


def test_a_covered_step_names_its_utility_and_the_plan_is_complete(logs: Workshop) -> None:
    found = logs.cover(step("a", "logs.run"))
    assert (found["status"], found["gaps"], found["plan"]["status"]) == ("complete", [], "complete")
    assert found["plan"]["steps"][0]["tool"] == "logs@1.0.0"


def test_without_a_candidate_the_tool_is_null_and_there_is_a_gap(logs: Workshop) -> None:
    found = logs.cover(step("a", "no.body"))
    assert found["status"] == found["plan"]["status"] == "partial-complete"
    assert found["plan"]["steps"][0]["tool"] is None
    assert [each["reason"] for each in found["gaps"]] == ["no_capability_match"]


def test_a_tool_that_the_plan_claims_is_looked_up_all_the_same(logs: Workshop) -> None:
    found = logs.cover(step("a", "no.body", tool="logs@1.0.0"), step("b", "logs.run", tool="evil@6.6.6"))
    assert [each["tool"] for each in found["plan"]["steps"]] == [None, "logs@1.0.0"]


def test_gaps_that_the_plan_claims_are_made_anew(logs: Workshop) -> None:

    before = logs.cover(step("a", "no.body"))["plan"]
    before["steps"][0]["capability"] = "logs.run"
    assert logs.skill("gap-detector", plan=before).value["gaps"] == []
    hidden = {**plan_of(step("a", "no.body", tool="logs@1.0.0")), "status": "complete", "gaps": []}
    assert len(logs.skill("gap-detector", plan=hidden).value["gaps"]) == 1


@pytest.mark.parametrize("capability", ["nonsense", "A.b", "a.b.c", "a.", "", "a b.c", "a.b\n", "../a.b"])
def test_what_is_no_capability_is_a_gap_of_its_own_kind(logs: Workshop, capability: str) -> None:
    gap = logs.gap(capability)
    assert (gap["reason"], gap["missing_capability"]) == ("invalid_capability", capability)


def test_a_candidate_whose_contract_does_not_fit_is_a_gap(logs: Workshop) -> None:
    assert logs.gap("logs.run", **needs(NOTHING, opened(sha=TEXT)))["reason"] == "schema_incompatible"


@pytest.mark.parametrize("confidence", [0.7499, 0, 0.0, -1, None, "high", "0.9", True, [], {}])
def test_a_step_of_a_model_needs_confidence_and_what_is_no_number_is_none(
    logs: Workshop, confidence: Any
) -> None:
    assert logs.gap("logs.run", source="llm", coverage_confidence=confidence)["reason"] == "low_confidence"


def test_a_confidence_that_json_does_not_have_is_refused(logs: Workshop) -> None:
    plan = {"plan_id": "p", "steps": [of_model(coverage_confidence=float("nan"))]}
    assert not logs.skill("gap-detector", plan=plan).ok


def test_a_step_of_a_model_that_says_no_confidence_has_none(logs: Workshop) -> None:
    assert logs.gap("logs.run", source="llm")["reason"] == "low_confidence"


@pytest.mark.parametrize("confidence", [0.75, 0.9, 1, 1.0])
def test_from_the_threshold_on_a_step_of_a_model_is_covered(logs: Workshop, confidence: float) -> None:
    assert logs.cover(of_model(coverage_confidence=confidence))["status"] == "complete"


@pytest.mark.parametrize("confidence", [1.01, 75, float("inf")])
def test_a_confidence_above_one_is_none(logs: Workshop, confidence: float) -> None:
    result = logs.skill(
        "gap-detector", plan={"plan_id": "p", "steps": [of_model(coverage_confidence=confidence)]}
    )
    assert not result.ok or [each["reason"] for each in result.value["gaps"]] == ["low_confidence"]


@pytest.mark.parametrize("source", ["rule", "person"])
def test_a_step_of_a_rule_or_a_person_needs_no_confidence(logs: Workshop, source: str) -> None:
    assert logs.cover(step("a", "logs.run", source=source))["status"] == "complete"


def test_the_first_gate_that_is_not_passed_is_the_reason(logs: Workshop) -> None:
    contract = needs(NOTHING, opened(sha=TEXT))
    doubtful = {"source": "llm", "coverage_confidence": 0.1, **contract}
    reasons = [logs.gap(each, **doubtful)["reason"] for each in ("no capability", "no.body", "logs.run")]
    assert reasons == ["invalid_capability", "no_capability_match", "schema_incompatible"]


# The report


def test_a_gap_has_every_field(logs: Workshop) -> None:
    gap = logs.gap("no.body")
    assert set(gap) >= FIELDS and gap["step_id"] == "a"


def test_the_message_says_in_a_sentence_what_is_missing(logs: Workshop) -> None:
    assert "no.body" in logs.gap("no.body")["reason_message"]
    assert "logs" in logs.gap("logs.run", **needs(NOTHING, opened(sha=TEXT)))["reason_message"]


def test_the_details_are_an_object_and_say_the_confidence(logs: Workshop) -> None:
    details = logs.gap("logs.run", source="llm", coverage_confidence=0.5)["reason_details"]
    assert isinstance(details, dict) and "0.5" in str(details) and "0.75" in str(details)


@pytest.mark.parametrize(
    ("capability", "name"), [("tg.scrape", "tg-scrape"), ("video.to-gif", "video-to-gif")]
)
def test_the_proposed_name_comes_from_the_capability(logs: Workshop, capability: str, name: str) -> None:
    assert logs.gap(capability)["proposed_tool_name"] == name


def test_a_proposed_name_is_always_a_name_of_a_manifest(logs: Workshop) -> None:
    import re

    for capability in ("", "Ü", "../x", "a b.c", "x" * 500):
        assert re.fullmatch(r"[a-z0-9-]+", logs.gap(capability)["proposed_tool_name"]), capability


def test_the_proposed_schemas_are_those_of_the_step(logs: Workshop) -> None:
    takes, returns = closed(url=TEXT), opened(file_path=TEXT)
    gap = logs.gap("no.body", **needs(takes, returns))
    assert (gap["proposed_input_schema"], gap["proposed_output_schema"]) == (takes, returns)


def test_without_a_contract_the_proposed_schemas_come_from_what_the_step_sends_and_others_need(
    logs: Workshop,
) -> None:
    found = logs.cover(
        step("a", "no.body", {"url": "https://example.org"}),
        step("b", "logs.run", {"x": "steps.a.outputs.file"}),
    )
    (gap,) = found["gaps"]
    assert "url" in gap["proposed_input_schema"]["properties"]
    assert "file" in gap["proposed_output_schema"]["properties"]


def test_what_others_wait_for_is_high_and_what_may_be_skipped_is_low(logs: Workshop) -> None:
    found = logs.cover(
        step("a", "no.body"),
        step("b", "logs.run", {"x": "steps.a.outputs.y"}),
        step("c", "no.body-else", on_failure="skip"),
    )
    priority = {each["step_id"]: each["priority"] for each in found["gaps"]}
    assert priority == {"a": "high", "c": "low"}


def test_two_steps_that_nothing_serves_are_two_gaps(logs: Workshop) -> None:
    found = logs.cover(step("a", "no.body"), step("b", "nor.she"))
    assert [each["missing_capability"] for each in found["gaps"]] == ["no.body", "nor.she"]


# Execution does not start


def test_with_a_gap_nothing_runs_also_none_of_the_covered_steps(logs: Workshop) -> None:
    run = logs.execute(step("a", "logs.run", {"log": "log"}), step("b", "no.body"))
    assert (run["status"], run["exit_code"]) == ("partial-complete", 2)
    assert logs.log() == 0 and "no.body" in str(run["missing"])
    assert "no.body" in run["text"]


def test_a_dry_run_of_a_plan_with_a_gap_is_no_preview(logs: Workshop) -> None:
    assert logs.execute(step("a", "no.body"), dry_run=True)["status"] == "partial-complete"


def test_the_executor_looks_for_gaps_itself_whatever_the_plan_says(logs: Workshop) -> None:
    plan = {"plan_id": "p", "status": "complete", "gaps": [],
            "steps": [step("a", "logs.run", {"log": "log"}), step("b", "no.body", tool="logs@1.0.0")]}  # fmt: skip
    assert logs.skill("workflow-executor", plan=plan).value["status"] == "partial-complete"
    assert logs.log() == 0


# A gap leads somewhere


def test_a_gap_is_closed_by_the_scaffolder(logs: Workshop) -> None:
    gap = logs.gap("no.body", **needs(closed(url=TEXT), opened(file_path=TEXT)))
    logs.scaffold(
        "no.body", input_schema=gap["proposed_input_schema"], output_schema=gap["proposed_output_schema"]
    )
    assert logs.cover(step("a", "no.body", **needs(closed(url=TEXT), opened(file_path=TEXT))))["gaps"] == []


def test_a_low_confidence_of_a_real_model_stops_the_run_too(workshop: Workshop) -> None:
    workshop.add("logs", LOGS, input_schema=opened(log=LOG))
    workshop.session.parts.model = ScriptedModel(
        model_plan(model_step("logs.run", 0.4, inputs={"log": "log"}))
    )
    plan = workshop.route("Write something down, please")
    assert plan["status"] == "partial-complete" and plan["gaps"][0]["reason"] == "low_confidence"
    assert workshop.skill("workflow-executor", plan=plan).value["status"] == "partial-complete"
    assert workshop.log() == 0


def test_a_gap_is_closed_by_a_tool_that_is_made(logs: Workshop) -> None:
    gap = logs.gap("no.body", **needs(closed(text=TEXT), opened(upper=TEXT)))
    properties = gap["proposed_input_schema"]["properties"]
    made = logs.session.invoke_action(
        "dynamic_tool_operation__create",
        {
            "name": "upper",
            "description": "Write in capitals.",
            "code": "def execute(params):\n    return {'upper': params['text'].upper()}\n",
            "parameters": {
                name: {"type": each["type"], "description": name, "required": True}
                for name, each in properties.items()
            },
            "output_schema": gap["proposed_output_schema"],
            "capability": gap["missing_capability"],
        },
    )
    assert made.ok, made.payload
    contract = needs(closed(text=TEXT), opened(upper=TEXT))
    run = logs.execute(step("a", "no.body", {"text": "hey"}, **contract))
    assert run["status"] == "executed" and steps_of(run)["a"]["outputs"] == {"upper": "HEY"}


def test_a_tool_whose_result_is_not_what_it_declares_has_failed(logs: Workshop) -> None:
    made = logs.session.invoke_action(
        "dynamic_tool_operation__create",
        {
            "name": "lies",
            "description": "Promise a number.",
            "code": "def execute(params):\n    return {'n': 'none'}\n",
            "output_schema": closed(n={"type": "number"}),
            "capability": "no.body",
        },
    )
    assert made.ok, made.payload
    run = logs.execute(step("a", "no.body", {}))
    assert run["status"] == "execution_failed" and "output schema" in str(steps_of(run)["a"]["error"])


@pytest.mark.parametrize("rule", ["deny", "ask"])
def test_no_plan_says_whether_a_file_is_there_that_the_model_may_not_read(
    workshop: Workshop, rule: str
) -> None:
    made = Workshop(workshop.root, {"permissions": {rule: ["file__read(private/**)"]}})
    takes = closed(file={"type": "string", "format": "readable-path"})
    made.add("convert", capabilities=["video.convert"], input_schema=takes)
    made.text("private/there.txt", "a secret")
    kinds = [("path", {"action": "file__read"}), ("file", {"capability": "video.convert"})]
    steps = [
        step(f"{name}-{key}", inputs={key: f"private/{name}.txt"}, **operation)
        for name in ("there", "gone")
        for key, operation in kinds
    ]
    plan = plan_of(*steps, step("public", action="file__read", inputs={"path": "gone.txt"}))
    for asked in (
        skill_call("gap-detector", plan=plan),
        skill_call("workflow-executor", plan=plan, dry_run=True),
    ):
        _, told = made.turn(asked)
        assert "there is no file or folder 'gone.txt'" in told, told
        assert "folder 'private/" not in told
    made.close()


def test_a_plan_of_very_many_missing_files_can_be_read_back(workshop: Workshop) -> None:
    path = {"type": "string", "format": "readable-path"}
    workshop.add(
        "join", capabilities=["text.join"], input_schema=closed(files={"type": "array", "items": path})
    )
    found = workshop.cover(step("a", "text.join", {"files": [f"{at}.txt" for at in range(10_001)]}))
    assert found["status"] == "complete"
    missing = read_plan(found["plan"]).missing_inputs
    assert [each.path for each in missing[:2]] == ["/files/0", "/files/1"]
