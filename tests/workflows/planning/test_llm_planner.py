"""The part of a language model: what it is asked, what it may say, and what becomes of an answer that is no plan."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.workflows.planning.llm_planner import model_asker
from reyn_jupyter.workflows.planning.router import plan_request
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.runtime.call.test_inner_calls import flow
from tests.workflows.planning.test_coverage import utility

VIDEO = "https://youtu.be/dQw4w9WgXcQ"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TRANSLATE = UtilityRegistry((utility("translate", "text.translate", takes=TEXT, gives=TEXT),))


class Scripted:
    """A language model that gives its answers in turn; what it was asked stays in `prompts`."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.prompts = []

    async def __call__(self, prompt, *, system, schema):
        self.prompts.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps({"steps": answer})


def step(capability="text.translate", confidence=0.9, **fields):
    said = {"coverage_rationale": "It was asked for.", "coverage_confidence": confidence}
    return {"capability": capability, "inputs": {"text": "hello"}, "covers": [1], **said, **fields}


def planned(text, model, registry=TRANSLATE, **options):
    return asyncio.run(plan_request(text, registry=registry, ask_model=model, **options))


def failure(text, model, **options):
    with pytest.raises(WorkflowError) as caught:
        planned(text, model, **options)
    assert caught.value.code == "llm_error"
    return caught.value.details["kind"]


def test_a_model_plans_what_no_rule_takes_and_hears_of_the_rest():
    model = Scripted([step(inputs={"text": "steps.step-1.outputs.file_path"}, step_id="step-2")])
    plan = planned(f"Download {VIDEO} and translate its title", model)
    assert [(each.step_id, each.capability, each.source) for each in plan.steps] == [
        ("step-1", "youtube.download", "rule"),
        ("step-2", "text.translate", "llm"),
    ]
    assert plan.steps[1].tool == "translate@1.0.0" and plan.steps[1].needed_steps == ("step-1",)
    assert plan.llm_calls == 1 and [each.step_id for each in plan.gaps] == ["step-1"]
    asked = json.loads(model.prompts[0])
    assert [each["text"] for each in asked["open_parts"]] == ["translate its title"]
    assert [each["capability"] for each in asked["planned_already"]] == ["youtube.download"]
    assert [each["capability"] for each in asked["capabilities"]] == ["text.translate"]


def test_no_model_is_asked_where_rules_take_all_or_the_policy_allows_no_call():
    model = Scripted()
    assert planned(f"Download {VIDEO}", model).llm_calls == 0
    plan = planned("Say hello in Latin", model, max_llm_calls=0)
    assert plan.status == "unroutable" and "max_llm_calls" in plan.notes[0] and model.prompts == []


def test_a_capability_that_is_invented_is_a_gap_and_an_unsure_one_too():
    for capability, confidence, reason in (
        ("sea.symphony", 0.99, "no_capability_match"),
        ("Sea Symphony", 0.99, "invalid_capability"),
        ("text.translate", 0.2, "low_confidence"),
        ("text.translate", "high", "low_confidence"),
        ("text.translate", None, "low_confidence"),
    ):
        plan = planned("Compose a symphony", Scripted([step(capability, confidence)]))
        assert [each.reason for each in plan.gaps] == [reason], capability
        assert plan.status == "partial-complete"
    answer = json.dumps({"steps": [step(confidence=0.123)]}).replace("0.123", "NaN")
    assert planned("Compose", Scripted(answer)).gaps[0].reason == "low_confidence"


def test_a_model_names_no_utility_no_action_and_no_source():
    sly = step("sea.symphony", tool="translate@1.0.0", source="person", action="file__delete", retries=True)
    [got] = planned("Compose a symphony", Scripted([sly])).steps
    assert (got.tool, got.source, got.action, got.retries) == (None, "llm", None, False)


def test_what_a_model_does_not_cover_is_a_gap():
    text = "Compose a symphony. Translate it into Latin"
    plan = planned(text, Scripted([step(covers=[2])]))
    assert [each.missing_capability for each in plan.gaps] == ["Compose a symphony"]
    unsaid = step()
    del unsaid["covers"]
    plan = planned(text, Scripted([unsaid]))
    assert [each.missing_capability for each in plan.gaps] == [
        "Compose a symphony",
        "Translate it into Latin",
    ]
    assert planned("Translate it", Scripted([unsaid])).gaps == ()
    assert planned("Translate it", Scripted([])).status != "complete"


def test_ids_of_a_model_are_made_ours_with_what_refers_to_them():
    plan = planned(
        f"Download {VIDEO}, say hello in Latin. Say it in Greek",
        Scripted([
            step(step_id="step-1", covers=[1]),
            step(step_id="b", covers=[2], inputs={"text": "steps.a.outputs.text"}),
            step(step_id="a", depends_on=["step-1", "nobody"], inputs={"text": {"$value": "steps.b.outputs.x"}}),
        ]),
    )  # fmt: skip
    assert [each.step_id for each in plan.steps] == ["step-1", "step-2", "step-3", "step-4"]
    assert plan.steps[2].inputs == {"text": "steps.step-4.outputs.text"}
    assert plan.steps[3].inputs == {"text": {"$value": "steps.b.outputs.x"}}
    assert plan.steps[3].depends_on == ("step-1",)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Sure! Here is your plan:", "invalid_json"),
        ('{"steps": "none"}', "invalid_response"),
        ("[]", "invalid_response"),
        ('{"steps": [{"inputs": {}}]}', "invalid_response"),
        ('{"steps": [{"capability": "a.b", "inputs": []}]}', "invalid_response"),
        ('{"steps": [{"capability": "a.b", "inputs": {"x": "steps.nobody.outputs.y"}}]}', "invalid_response"),
        ('{"steps": [{"capability": "a.b", "inputs": {"x": "steps.step-1.outputs.y"}}]}', "invalid_response"),
        ("[" * 100_000, "invalid_json"),
    ],
)
def test_an_answer_that_is_no_plan_is_an_error_of_its_kind_and_asked_for_again_where_that_is_allowed(
    answer, kind
):
    model = Scripted(answer)
    assert failure("Say hello in Latin", model) == kind
    assert len(model.prompts) == 1
    model = Scripted(answer, [step()])
    plan = planned("Say hello in Latin", model, max_llm_calls=2)
    assert (plan.status, plan.llm_calls) == ("complete", 2)
    assert "could not be used" in model.prompts[1]


@pytest.mark.parametrize("frame", ["```json\n{}\n```", "Here it is:\n{}\nAnything else?", "{}"])
def test_an_answer_may_stand_between_words(frame):
    answer = frame.replace("{}", json.dumps({"steps": [step()]}))
    assert planned("Say hello in Latin", Scripted(answer)).status == "complete"


def test_utilities_that_are_not_trusted_bring_no_words_into_the_prompt():
    sly = utility("sly", "sly.run", trusted=False)
    model = Scripted([step()])
    planned("Say hello in Latin", model, UtilityRegistry((*TRANSLATE.utilities, sly)))
    assert "sly" not in model.prompts[0]


def test_a_prompt_is_bounded_and_names_first_what_the_request_speaks_of():
    many = [utility(f"tool-{at}", f"thing.do-{at}") for at in range(2_000)]
    model = Scripted([step()])
    planned("Translate text", model, UtilityRegistry((*many, *TRANSLATE.utilities)))
    listed = json.loads(model.prompts[0])["capabilities"]
    assert listed[0]["capability"] == "text.translate" and len(listed) <= 80
    assert len(model.prompts[0]) < 100_000


# Through a session's own model


def in_a_session(workspace: Path, *answers: Any) -> tuple[Any, ScriptedModel]:
    """What planning in a call of a session gives: capabilities, or the kind of its error."""

    async def plan(args: Any, context: ToolContext) -> Any:
        asker = model_asker(context.services.models)
        try:
            made = await plan_request("Say hello in Latin", registry=TRANSLATE, ask_model=asker)
        except WorkflowError as error:
            return error.details["kind"]
        return [each.capability for each in made.steps]

    model = ScriptedModel(*answers)
    made = reyn.Session(workspace, categories=[flow("planner", plan)], model=model, store="memory")
    made.configure("router.limits.retries", 0)
    return made.invoke_action("planner__run").value, model


def test_the_model_of_the_session_is_asked_for_json_of_the_schema(workspace: Path) -> None:
    value, model = in_a_session(workspace, json.dumps({"steps": [step()]}))
    assert value == ["text.translate"]
    asked = model.requests[0].parameters["response_format"]
    assert asked["type"] == "json_schema"
    assert "coverage_confidence" in json.dumps(asked["json_schema"]["schema"])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelError("auth", "The key is wrong."), "auth"),
        (ModelError("quota", "Nothing is left."), "quota_exceeded"),
        (ModelError("rate_limited", "Later.", retryable=True), "rate_limited"),
        (ModelError("connection", "Nobody answers.", retryable=True), "upstream"),
        (ModelError("bad_request", "What?"), "upstream"),
    ],
)
def test_a_model_that_fails_is_an_error_of_its_kind(workspace: Path, error: ModelError, kind: str) -> None:
    assert in_a_session(workspace, error)[0] == kind


def test_model_that_plans_another_file_leaves_a_gap():
    cases = {
        ("translate 'my talk.txt'", "talk.txt"): False,
        ("translate talk.txt", "my talk.txt"): False,
        ("translate talk.txt", "a folder"): False,
        ("translate talk.txt", "texts/talk.txt"): True,
        ("translate talk.txt", "talk.txt"): True,
        ("translate talk.txt", "Read talk.txt first"): True,
        ("translate https://example.org/talk", "https://example.org/other"): False,
        ("translate https://example.org/talk", "https://example.org/talk"): True,
    }
    for (text, given), covered in cases.items():
        plan = planned(text, Scripted([step(inputs={"text": given})]))
        left = [each.reason_message for each in plan.gaps if each.step_id is None]
        assert (left == []) == covered and all(
            "No step of the language model takes" in each for each in left
        ), text


def test_model_is_not_asked_which_file_is_meant():
    model = Scripted()
    plan = planned("translate the file my talk.txt", model)
    assert model.prompts == [] and "quotation marks" in plan.gaps[0].reason_message
