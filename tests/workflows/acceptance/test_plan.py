"""Plans: what one has to say, what refuses it before anything runs, and what its references become."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workflows.acceptance.workshop import (
    ECHO,
    LOG,
    LOGS,
    TEXT,
    Workshop,
    gives,
    opened,
    plan_of,
    problems_of,
    step,
    steps_of,
)  # fmt: skip


@pytest.fixture
def logs(workshop: Workshop) -> Workshop:
    """A workshop with a utility that leaves a trace of each run."""
    workshop.add("logs", LOGS, input_schema=opened(log=LOG), output_schema=opened(text=TEXT))
    return workshop


def logging(step_id: str, **more: Any) -> dict[str, Any]:
    return step(step_id, "logs.run", {"log": "log", **more.pop("inputs", {})}, **more)


# Fields of a step


def test_a_step_may_have_every_field_of_the_contract_and_the_plan_gives_all_back(logs: Workshop) -> None:
    full = logging(
        "one",
        tool=None,
        on_failure="skip",
        coverage_confidence=0.8,
        coverage_rationale="The request says so.",
        depends_on=[],
        capability_contract={"input_schema": opened(log=LOG), "output_schema": opened(text=TEXT)},
    )
    (got,) = logs.cover(full)["plan"]["steps"]
    assert got["tool"] == "logs@1.0.0"
    assert {key: got[key] for key in full if key != "tool"} == {k: v for k, v in full.items() if k != "tool"}


@pytest.mark.parametrize("on_failure", ["retry", "skip", "fail"])
def test_on_failure_is_one_of_three(logs: Workshop, on_failure: str) -> None:
    assert logs.execute(logging("a", on_failure=on_failure))["status"] == "executed"


BROKEN: dict[str, tuple[list[dict[str, Any]], tuple[str, ...]]] = {
    "the same id twice": ([logging("a"), logging("a")], ("a",)),
    "a step that waits for itself": ([logging("a", depends_on=["a"])], ("a",)),
    "two that wait for each other": ([logging("a", depends_on=["b"]), logging("b", depends_on=["a"])], ("a", "b")),
    "a circle by references": (
        [
            logging("a", inputs={"x": "steps.c.outputs.text"}),
            logging("b", inputs={"x": "steps.a.outputs.text"}),
            logging("c", inputs={"x": "steps.b.outputs.text"}),
        ],
        ("a", "b", "c"),
    ),
    "a step that waits for nobody": ([logging("a", depends_on=["nobody"])], ("nobody",)),
    "a reference to no step": ([logging("a", inputs={"x": "steps.nobody.outputs.text"})], ("nobody",)),
    "a reference to no input": ([logging("a", inputs={"x": "request.inputs.nothing"})], ("nothing",)),
    "a reference in the depth": (
        [logging("a", inputs={"x": {"y": ["steps.nobody.outputs.text"]}})],
        ("nobody",),
    ),
    "no id": ([{"capability": "logs.run", "inputs": {}}], ("step_id",)),
    "an empty id": ([logging("")], ("step_id",)),
    "an id that leads elsewhere": ([logging("../../out")], ("step_id",)),
    "neither capability nor action": ([step("a")], ("capability", "action")),
    "both capability and action": ([logging("a", action="file__list")], ("capability", "action")),
    "another word for a failure": ([logging("a", on_failure="ignore")], ("on_failure", "retry", "skip", "fail")),
    "a field that there is not": ([logging("a", on_failur="skip")], ("on_failur",)),
    "inputs that are no object": ([{**logging("a"), "inputs": ["x"]}], ("inputs",)),
    "no steps at all": ([], ("steps",)),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_plan_is_refused_before_anything_runs(logs: Workshop, what: str) -> None:
    steps, named = BROKEN[what]
    result = logs.refused(logging("first"), *steps) if steps else logs.refused()
    assert result.code == "plan_invalid"
    said = problems_of(result)
    assert [each for each in named if each not in said] == []
    assert logs.log() == 0 and logs.run_files() == []


def test_every_problem_of_a_plan_is_said_at_once(logs: Workshop) -> None:
    said = problems_of(
        logs.refused(logging("a", depends_on=["b"]), logging("b", depends_on=["a"]), logging("c"), logging("c"),
                     logging("d", inputs={"x": "steps.nobody.outputs.y"}))
    )  # fmt: skip
    assert "nobody" in said and "c" in said and "a" in said and "b" in said


@pytest.mark.parametrize("skill", ["gap-detector", "policy-engine", "workflow-executor"])
@pytest.mark.parametrize("plan", [{}, {"steps": "x"}, {"plan_id": 7, "steps": []}, {"steps": [None]}])
def test_what_is_no_plan_is_an_error_everywhere(workshop: Workshop, skill: str, plan: dict[str, Any]) -> None:
    assert workshop.skill(skill, plan=plan).code == "plan_invalid"


# References


def test_values_references_and_texts_that_only_contain_one(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    workshop.add("makes", gives('{"n": 7, "files": [{"path": "x.txt"}], "text": "made"}'))
    found = workshop.execute(
        step("one", "makes.run"),
        step(
            "two",
            "echo.run",
            {
                "n": "steps.one.outputs.n",
                "deep": {"list": ["steps.one.outputs.text", 1]},
                "path": "steps.one.outputs.files[0].path",
                "asked": "request.inputs.who",
                "within": "see steps.one.outputs.n there",
                "number": 1.5,
                "nothing": None,
            },
        ),
        inputs={"who": {"name": "Ada"}},
    )
    assert steps_of(found)["two"]["outputs"]["echo"] == {
        "n": 7,
        "deep": {"list": ["made", 1]},
        "path": "x.txt",
        "asked": {"name": "Ada"},
        "within": "see steps.one.outputs.n there",
        "number": 1.5,
        "nothing": None,
    }


def test_a_reference_makes_a_step_wait_though_it_stands_first(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    workshop.add("makes", gives('{"n": 7}'))
    found = workshop.execute(
        step("second", "echo.run", {"n": "steps.first.outputs.n"}), step("first", "makes.run")
    )
    assert steps_of(found)["second"]["outputs"] == {"echo": {"n": 7}}


def test_a_value_that_looks_like_a_reference_can_be_given_as_it_stands(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    found = workshop.execute(step("a", "echo.run", {"text": {"$value": "steps.x.outputs.y"}}))
    assert steps_of(found)["a"]["outputs"] == {"echo": {"text": "steps.x.outputs.y"}}


def test_what_a_step_gives_is_never_read_as_a_reference(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    workshop.add(
        "sly", gives('{"text": "steps.sly.outputs.secret", "secret": "hidden", "value": {"$value": 1}}')
    )
    found = workshop.execute(
        step("sly", "sly.run"),
        step("a", "echo.run", {"text": "steps.sly.outputs.text", "value": "steps.sly.outputs.value"}),
    )
    assert steps_of(found)["a"]["outputs"] == {
        "echo": {"text": "steps.sly.outputs.secret", "value": {"$value": 1}}
    }


def test_inputs_of_the_request_are_never_read_as_references(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    workshop.add("makes", gives('{"secret": "hidden"}'))
    found = workshop.execute(
        step("one", "makes.run"),
        step("two", "echo.run", {"text": "request.inputs.text"}, depends_on=["one"]),
        inputs={"text": "steps.one.outputs.secret"},
    )
    assert steps_of(found)["two"]["outputs"] == {"echo": {"text": "steps.one.outputs.secret"}}


def test_an_output_that_is_not_there_fails_the_step_that_needs_it(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    workshop.add("makes", gives('{"n": 7}'))
    found = workshop.execute(step("one", "makes.run"), step("two", "echo.run", {"n": "steps.one.outputs.m"}))
    assert found["status"] == "execution_failed" and "m" in str(steps_of(found)["two"]["error"])


def test_an_action_of_the_catalog_may_be_a_step(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    found = workshop.execute(
        step("one", action="file__read", inputs={"path": "notes.txt"}),
        step("two", "echo.run", depends_on=["one"]),
    )
    assert found["status"] == "executed"


def test_an_action_that_there_is_not_is_a_gap(workshop: Workshop) -> None:
    found = workshop.cover(step("one", action="file__raed", inputs={}))
    assert found["status"] == "partial-complete" and found["gaps"][0]["missing_capability"] == "file__raed"


def test_a_thousand_steps_in_a_row_are_read(workshop: Workshop) -> None:
    chain = [step(f"s{n}", "no.body", depends_on=[f"s{n - 1}"] if n else []) for n in range(1_000)]
    assert len(workshop.skill("gap-detector", plan=plan_of(*chain)).value["gaps"]) >= 1
