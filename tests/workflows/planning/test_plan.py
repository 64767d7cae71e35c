"""Plans: read whole or refused with every problem, their order, and how they are drawn."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.workflows.planning.plan import layers, read_plan, to_mermaid, to_text
from reyn_jupyter.workflows.workflow_error import WorkflowError


def step(step_id, capability="video.convert", **fields):
    return {"step_id": step_id, "capability": capability, **fields}


def problems_of(data, **options):
    with pytest.raises(WorkflowError) as caught:
        read_plan(data, **options)
    assert caught.value.code == "plan_invalid"
    return {each["path"]: each["message"] for each in caught.value.details["problems"]}


def test_a_plan_comes_back_from_json_as_it_was():
    plan = read_plan({
        "plan_id": "p1",
        "request_text": "Convert it",
        "request_inputs": {"url": "https://example.org/a"},
        "steps": [
            step("get", inputs={"url": "request.inputs.url"}, coverage_confidence=0.9, source="llm"),
            {"step_id": "read", "action": "file__read", "inputs": {"path": "steps.get.outputs.file"}, "retries": True},
            step("put", depends_on=["read"], capability_contract={"input_schema": {"type": "object"}}),
        ],
        "notes": ["a note"],
        "llm_calls": 1,
    })  # fmt: skip
    assert read_plan(json.loads(json.dumps(plan.as_json()))) == plan


def test_every_problem_is_told_at_once_with_its_place():
    found = problems_of({
        "request_inputs": {"url": "u"},
        "steps": [
            step("a", depends_on=["nobody"]),
            step("a", inputs={"x": "steps.gett.outputs.file"}),
            step("get", inputs={"x": "request.inputs.ulr"}),
            step("near", inputs={"x": "steps.get.output.file"}),
            {"step_id": "both", "capability": "a.b", "action": "file__read"},
            {"step_id": "neither"},
            {"step_id": "odd", "action": "no name"},
            step("slip", on_failur="skip"),
            step("../up"),
        ],
        "extra": 1,
    })  # fmt: skip
    assert "did you mean 'on_failure'" in found["/steps/7/on_failur"]
    assert "did you mean 'get'" in found["/steps/1/inputs/x"]
    assert "did you mean 'url'" in found["/steps/2/inputs/x"]
    assert "$value" in found["/steps/3/inputs/x"]
    assert "more than one step 'a'" in found["/steps/0/step_id"]
    assert "both" in found["/steps/4"] and "neither" in found["/steps/5"]
    assert {"/extra", "/steps/0/depends_on", "/steps/6/action", "/steps/8/step_id"} <= found.keys()


def test_a_cycle_is_told_with_its_way():
    found = problems_of({
        "steps": [
            step("a", inputs={"x": "steps.c.outputs.y"}),
            step("b", depends_on=["a"]),
            step("c", depends_on=["b"]),
            step("self", inputs={"x": "steps.self.outputs.y"}),
        ]
    })  # fmt: skip
    assert "→" in found["/steps"]
    with pytest.raises(WorkflowError) as caught:
        read_plan({"steps": [step("a", depends_on=["b"]), step("b", depends_on=["a"])]})
    message = caught.value.details["problems"][0]["message"]
    assert message in ("steps wait for each other: a → b → a", "steps wait for each other: b → a → b")


def test_two_separate_cycles_are_both_told():
    with pytest.raises(WorkflowError) as caught:
        read_plan(
            {"steps": [step("a", depends_on=["b"]), step("b", depends_on=["a"]), step("c", depends_on=["c"])]}
        )
    assert len(caught.value.details["problems"]) == 2


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "steps",
        {},
        {"steps": []},
        {"steps": "x"},
        {"steps": [None]},
        {"steps": [step("a")] * 1001},
        {"steps": [step("a", inputs=[])]},
    ],
)
def test_what_is_no_plan_is_refused(data):
    problems_of(data)


def test_a_plan_without_steps_is_one_where_it_says_what_is_missing():
    assert read_plan({"steps": [], "status": "unroutable", "notes": ["?"]}).status == "unroutable"


def test_nesting_without_end_is_refused():
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert problems_of({"steps": [step("a", inputs=deep)]})


def test_inputs_may_come_with_the_call_or_be_known_by_name():
    data = {"steps": [step("a", inputs={"x": "request.inputs.url"})]}
    assert "/steps/0/inputs/x" in problems_of(data)
    assert read_plan(data, inputs={"url": "u"}).request_inputs == {"url": "u"}
    assert read_plan(data, input_names=["url"]).request_inputs == {}


@pytest.mark.parametrize("confidence", ["0.9", True, float("nan"), 7, -1, [0.9]])
def test_a_confidence_that_is_no_number_from_0_to_1_counts_as_none(confidence):
    assert read_plan({"steps": [step("a", coverage_confidence=confidence)]}).steps[0].coverage_confidence == 0


@given(st.lists(st.sets(st.integers(0, 11), max_size=4), min_size=1, max_size=12))
def test_layers_hold_every_step_once_after_all_that_it_needs(needs):
    data = {
        "steps": [
            step(f"s{at}", depends_on=[f"s{each}" for each in before if each < at])
            for at, before in enumerate(needs)
        ]
    }
    plan = read_plan(data)
    done = set()
    for layer in layers(plan):
        assert all(set(each.needed_steps) <= done for each in layer)
        done |= {each.step_id for each in layer}
    assert sum(map(len, layers(plan))) == len(done) == len(needs)


def test_a_drawing_holds_no_markup_of_a_request():
    plan = read_plan({
        "steps": [
            step("a", '"]; click a href "javascript:alert(1)"<script>'),
            step("b", depends_on=["a"]),
        ]
    })  # fmt: skip
    drawn = to_mermaid(plan)
    label = drawn.splitlines()[1]
    assert "<script>" not in drawn and label.count('"') == 2 and "s0 --> s1" in drawn
    assert "b  video.convert, after a" in to_text(plan)
