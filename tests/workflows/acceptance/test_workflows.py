"""Workflows that are kept: YAML in `skills/`, and runs of the agent that become one."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest
import yaml

from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.call_facts import call_facts
from reyn_jupyter.sessions import current
from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    ECHO,
    FAILS,
    SAVE,
    SHOUT,
    TEXT,
    WORKFLOW_INPUT_SCHEMA,
    Json,
    Notebook,
    Workshop,
    closed,
    gives,
    problems_of,
    skill_call,
    step,
    utility_call,
    workflow_file,
)

TWICE = workflow_file(
    "twice",
    step("up", "shout.run", {"text": "request.inputs.text"}),
    step("again", "echo.run", {"text": "steps.up.outputs.text"}),
    outputs={"result": "steps.again.outputs.echo.text"},
    takes={"text": TEXT},
)


@pytest.fixture
def bench(workshop: Workshop) -> Workshop:
    workshop.write("shout", SHOUT, input_schema=closed(text=TEXT), output_schema=closed(text=TEXT))
    workshop.write("echo", ECHO)
    workshop.text("skills/twice.yaml", TWICE)
    trust(workshop.session)
    return workshop


def names(workshop: Workshop) -> set[str]:
    return {each["qualified_name"] for each in workshop.session.list_actions("skill").payload["items"]}


def test_the_five_roles_of_the_architecture_are_skills(workshop: Workshop) -> None:
    assert names(workshop) >= {
        f"skill__{each}"
        for each in (
            "request-router",
            "gap-detector",
            "policy-engine",
            "workflow-executor",
            "tool-scaffolder",
        )
    }


def test_a_workflow_is_a_skill_of_its_own_with_its_inputs_as_schema(bench: Workshop) -> None:
    (listed,) = (
        each
        for each in bench.session.list_actions("skill").payload["items"]
        if each["qualified_name"] == "skill__twice"
    )
    assert set(listed["input_schema"]["properties"]) == {"text"}


def test_invoking_it_runs_it_with_its_inputs_and_gives_its_outputs(bench: Workshop) -> None:
    assert bench.skill("twice", text="hey").value == {"result": "HEY"}
    assert bench.run_file()["status"] == "executed"


def test_inputs_that_do_not_fit_are_refused_before_anything_runs(bench: Workshop) -> None:
    assert not bench.skill("twice", txt="hey").ok and not bench.skill("twice", text=5).ok
    assert bench.run_files() == []


def test_a_model_invokes_it(bench: Workshop) -> None:
    _, read = bench.turn(skill_call("twice", text="hey"))
    assert '"HEY"' in read


def test_a_workflow_that_fails_is_a_failed_call_that_names_the_step(bench: Workshop) -> None:
    (bench.root / "tools" / "shout" / "main.py").write_text(FAILS)
    trust(bench.session)
    result = bench.skill("twice", text="hey")
    assert result.code == "tool_failed" and "up" in problems_of(result)


def test_a_workflow_with_a_gap_does_not_start(bench: Workshop) -> None:
    (bench.root / "tools" / "echo" / "tool.yaml").unlink()
    result = bench.skill("twice", text="hey")
    assert not result.ok and "echo.run" in problems_of(result)
    assert [each for each in bench.run_files() if json.loads(each.read_text())["status"] == "executed"] == []


def test_a_workflow_calls_a_workflow_and_a_circle_ends(bench: Workshop) -> None:
    outer = workflow_file(
        "outer", step("a", action="skill__twice", inputs={"text": "request.inputs.text"}),
        outputs={"result": "steps.a.outputs.result"}, takes={"text": TEXT},
    )  # fmt: skip
    bench.text("skills/outer.yaml", outer)
    circle = workflow_file("circle", step("a", action="skill__circle", inputs={}), outputs={}, takes={})
    bench.text("skills/circle.yaml", circle)
    trust(bench.session)
    done = bench.skill("outer", text="hey")
    assert done.value == {"result": "HEY"}
    assert done.trace is not None
    (fact,) = call_facts(done.trace)
    assert [each.name for each in fact.inner] == ["skill__twice", "utility__shout", "utility__echo"]
    assert not bench.skill("circle").ok


BROKEN: dict[str, Any] = {
    "no YAML": "steps: [",
    "a list": "- a",
    "no steps": {**TWICE, "steps": []},
    "a key that there is not": {**TWICE, "step": []},
    "a reference to nowhere": {**TWICE, "outputs": {"x": "steps.nobody.outputs.y"}},
    "an input that is not declared": {**TWICE, WORKFLOW_INPUT_SCHEMA: closed()},
    "a circle": {**TWICE, "steps": [step("a", "echo.run", depends_on=["a"])], "outputs": {}},
    "a name that is none": {**TWICE, "name": "../twice"},
    "a Python object": "!!python/object/apply:os.system ['touch pwn']",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_workflow_is_a_problem_and_hides_no_other(bench: Workshop, what: str) -> None:
    bench.text("skills/broken.yaml", BROKEN[what])
    trust(bench.session)
    assert bench.skill("twice", text="hey").value == {"result": "HEY"}
    assert "skills/broken.yaml" in "\n".join(bench.session.problems)
    assert [*bench.root.rglob("pwn")] == []


# A run of the agent becomes a workflow


def saved(notebook: Notebook, name: str) -> Json:
    """Keep the last run as a workflow, and return its file."""
    notebook.say(SAVE.format(name=name))
    read: Json = yaml.safe_load((notebook.workshop.root / "skills" / f"{name}.yaml").read_text())
    return read


@pytest.fixture
def made(notebook: Notebook) -> Notebook:
    workshop = notebook.workshop
    workshop.write("makes", gives('{"rows": [{"id": "unusual-4711"}], "text": inputs["text"][::-1]}'))
    workshop.write("echo", ECHO)
    trust(workshop.session)
    return notebook


def test_calls_become_steps_and_values_of_earlier_results_become_references(made: Notebook) -> None:
    last = utility_call("echo", id="unusual-4711", fixed="always")
    made.workshop.turn(utility_call("makes", text="a text to turn"), last)
    workflow = saved(made, "chain")
    first, second = workflow["steps"]
    assert [each["action"] for each in (first, second)] == ["utility__makes", "utility__echo"]
    assert second["inputs"] == {"id": f"steps.{first['step_id']}.outputs.rows[0].id", "fixed": "always"}


def test_the_saved_run_is_a_skill_that_runs(made: Notebook) -> None:
    made.workshop.turn(utility_call("makes", text="a text to turn"), utility_call("echo", id="unusual-4711"))
    saved(made, "chain")
    assert "skill__chain" in names(made.workshop)
    assert made.workshop.skill("chain").ok
    assert made.workshop.run_file()["status"] == "executed"


def test_what_stood_in_the_request_becomes_an_input(made: Notebook) -> None:
    model = ScriptedModel(utility_call("makes", text="violet giraffe"), "done")
    made.workshop.session.ask("Turn around: violet giraffe", model=model, new=True, surface="universal")
    workflow = saved(made, "turns")
    (only,) = workflow["steps"]
    key = only["inputs"]["text"].removeprefix("request.inputs.")
    assert key in workflow[WORKFLOW_INPUT_SCHEMA]["properties"]
    assert made.workshop.skill("turns", **{key: "abc"}).ok


def test_calls_that_failed_and_catalog_lookups_are_no_steps(made: Notebook) -> None:
    made.workshop.write("fails", FAILS)
    trust(made.workshop.session)
    made.workshop.turn(call("list_actions"), utility_call("fails"), utility_call("echo", n=1))
    assert [each["action"] for each in saved(made, "works")["steps"]] == ["utility__echo"]


def test_a_secret_is_never_kept(made: Notebook) -> None:
    secret = f"hush-{secrets.token_hex(12)}"
    session = made.workshop.session
    other = Workshop(made.workshop.root, secrets={"MY_TOKEN": secret})
    other.turn(utility_call("echo", token=secret))
    made.workshop.session = other.session
    current._current[:] = [other.session]
    made.say(SAVE.format(name="secret"))
    for file in (made.workshop.root / "skills").glob("*"):
        assert secret not in file.read_text()
    made.workshop.session = session
    other.close()


def test_a_saved_workflow_overwrites_nothing(made: Notebook) -> None:
    made.workshop.text("skills/chain.yaml", "mine")
    made.workshop.turn(utility_call("echo", n=1))
    made.say(SAVE.format(name="chain"))
    assert (made.workshop.root / "skills" / "chain.yaml").read_text() == "mine"


@pytest.mark.parametrize("name", ["../out", "a/b", "", "request-router"])
def test_a_name_that_leads_elsewhere_or_is_taken_is_refused(made: Notebook, name: str) -> None:
    made.workshop.turn(utility_call("echo", n=1))
    made.say(SAVE.format(name=name))
    assert [*made.workshop.root.parent.rglob("out.yaml")] == []
    assert not (made.workshop.root / "skills" / "request-router.yaml").exists()
