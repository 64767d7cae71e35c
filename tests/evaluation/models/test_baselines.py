"""The oracle solves what can be solved, the null agent solves nothing, and both act through the real loop."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from reyn_jupyter.catalog.names import ActionName, NameEncoder
from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.evaluation.models.baselines import Manner, NullAgent, Oracle, function_name
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Expected, Gold, Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.base import Message, Model, ModelError, Request, ToolCall, ToolSet
from reyn_jupyter.router.request.surface import flat_tools
from tests.evaluation.checks.check_support import accepts, grade, needs, unanswerable
from tests.evaluation.trial_support import ENGINE, run, scenario, suite, writing

MANNERS: tuple[Manner, ...] = get_args(Manner)

BASE = Variant("universal", model="oracle")
VARIANTS = (
    BASE,
    BASE.but("flat", surface="flat"),
    BASE.but("auto", surface="auto"),
    BASE.but("gate", discovery="gate"),
    BASE.but("forced", discovery="forced"),
    BASE.but("without-schemas", list_schemas=False),
    BASE.but("shown", names="shown", mandate="explicit", reinforcement=3, edit_rule="must"),
    BASE.but("constrained", constrain_names=True, forgive=False),
    BASE.but("hot", hot_list_n=10),
)
RECORDS = [
    {
        "id": f"r-{number}",
        "name": name,
        "description": f"Does {name}.",
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "unit": {"enum": ["km", "mi"]}},
            "required": ["n", "unit"],
        },
    }
    for number, name in enumerate(["math.sum", "math_sum", "area of a circle", "math.sum", "x" * 80])
]


def records() -> Catalog:
    return Catalog.from_records(RECORDS)


def edit_task() -> Scenario:
    """An edit of which the gold names the path alone; a planned error stands in its way once."""
    path = ("conf/app.ini",)
    return scenario(
        "edit-1",
        workspace={"conf/app.ini": "port = 80\nhost = a\n", "other.txt": "as it was\n"},
        gold=Gold(steps=((accepts(path=path),), (accepts("file__edit", path=path),))),
        expected=(
            Expected(path="conf/app.ini", contains=("port = 8080",), lacks=("port = 80\n",)),
            Expected(path="other.txt", unchanged=True),
        ),
        setup_error={"file__edit": "The file is busy; try again."},
        says=("8080|the new port",),
    )


TASKS = {
    "reading": scenario(),
    "writing": writing(),
    "editing after an error": edit_task(),
    "several steps": scenario(
        gold=Gold(
            steps=(
                (accepts("file__glob", pattern=("*.md",)),),
                (accepts("file__read", path=("notes.md",), limit=("", 5)),),
                (accepts("file__write", path=("new.txt",), content=("hello",)),),
                (accepts("file__read", path=("new.txt",)),),
            )
        ),
        expected=(Expected(path="new.txt", text="hello"),),
    ),
    "nothing fits": scenario(gold=Gold(unanswerable=True), says=("no action",)),
}


@pytest.fixture(scope="module")
def bench() -> Any:
    models = {"oracle": Oracle(), **{manner: NullAgent(manner) for manner in MANNERS}}
    named = [task.model_copy(update={"id": f"task-{number}"}) for number, task in enumerate(TASKS.values())]
    made = TrialRunner(suite(*named), models=models)
    yield made
    made.close()


def verdicts(tried: Trial, task: Scenario) -> dict[str, str]:
    return {name: found.grade(tried, task).kind for name, found in CHECKS.items() if not found.numeric}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_passes_every_check_that_applies(bench: TrialRunner, task: str, variant: Variant) -> None:
    tried, _ = run(bench, TASKS[task], variant)
    found = verdicts(tried, TASKS[task])
    assert tried.source == "scripted"
    assert found["task_done"] == "pass"
    assert "fail" not in found.values(), (found, tried.calls)


def test_the_oracle_recovers_from_the_planned_error(bench: TrialRunner) -> None:
    task = TASKS["editing after an error"]
    tried, _ = run(bench, task, BASE)
    assert [call.ok for call in tried.calls if call.name == "file__edit"] == [False, True]
    assert grade("recovered_after_error", tried, task).kind == "pass"
    assert grade("used_edit_not_write", tried, task).kind == "pass"


@pytest.mark.parametrize("surface", ["universal", "flat"])
def test_the_oracle_finds_names_that_are_no_function_names(surface: str) -> None:
    catalog = records()
    names = [catalog.name_of(record["id"]) for record in RECORDS]
    tasks = [
        needs(accepts(str(name), exact=True, n=(3,), unit=("mi",)), id=f"s-{number}", catalog="records")
        for number, name in enumerate(names)
    ]
    made = TrialRunner(suite(*tasks, catalogs={"records": records}), models={"oracle": Oracle()})
    for task in tasks:
        tried, _ = run(made, task, BASE.but("surface", surface=surface))
        assert grade("chain", tried, task).kind == "pass", tried.calls
        assert grade("task_done", tried, task).kind == "pass"
    made.close()


def test_every_name_of_a_flat_surface_is_found_in_its_tools() -> None:
    names = [
        ActionName("a.b", "c"),
        ActionName("a_b", "c"),
        ActionName("agent.peer", "ann"),
        ActionName("x", "ö y"),
    ]
    encoder = NameEncoder(names)
    offered = {encoder.encode(name): {} for name in names}
    assert {function_name(str(name), offered) for name in names} == set(offered)


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("surface", ["universal", "flat"])
@pytest.mark.parametrize("discovery", ["prompt", "gate", "forced"])
def test_the_null_agent_does_no_task(
    bench: TrialRunner, manner: Manner, surface: str, discovery: str
) -> None:
    variant = Variant("null", model=manner, surface=surface, discovery=discovery)
    for name, task in TASKS.items():
        tried, _ = run(bench, task, variant)
        found = verdicts(tried, task)
        if (discovery, surface) == ("forced", "universal") and manner in ("silent", "refuses"):
            assert tried.outcome == "error" and "not in force" in str(tried.error)
            assert found["task_done"] != "pass"
            continue
        assert tried.outcome == ("limit" if manner in ("lists", "repeats") else "ok")
        if name == "nothing fits":
            continue
        if name == "reading" and manner in ("pastes", "enumerates"):
            continue  # its file is one word, and to paste that is to answer
        acted = manner in ("repeats", "pastes", "enumerates", "sweeps")
        for needed in ("task_done",) if acted else ("chain", "task_done", "right_action", "decided_rightly"):
            assert found[needed] == "fail", (needed, tried.calls)
        assert found["used_edit_not_write"] in ("fail", "na")


def test_a_null_agent_may_list_first_or_refuse_and_that_is_all() -> None:
    """What a null agent that never acts passes by its manner; everything else it fails, or it does not apply."""
    may: dict[Manner, set[str]] = {
        # where nothing fits
        "refuses": {
            "abstained_when_unanswerable",
            "decided_rightly",
            "task_done",
            "state_reached",
            "came_to_end",
        },
        "silent": {"came_to_end"},
        "lists": {"first_call_is"},
        "guesses": {"malformed_name", "hidden_name", "stale_name", "came_to_end"},
    }
    tasks = [scenario(), unanswerable(id="none", workspace={"a": "b"})]
    made = TrialRunner(suite(*tasks), models={manner: NullAgent(manner) for manner in may})
    for manner in may:
        passes = set()
        for task in tasks:
            tried, _ = run(made, task, Variant("null", model=manner))
            passes |= {name for name, kind in verdicts(tried, task).items() if kind == "pass"}
        assert passes == may[manner]
    made.close()


def test_an_oracle_without_a_scenario_says_what_is_missing() -> None:
    model: Model = Oracle()
    with pytest.raises(ModelError, match="given none"):
        ENGINE.run(model.complete(Request("oracle", (Message("user", "Hi"),))))


def test_the_oracle_goes_by_the_request_alone() -> None:
    """Two oracles that never saw the conversation before answer the same request alike."""
    tools = flat_tools(records().snapshot, inspect=False)
    task = needs(accepts("tool__math_sum", n=(3,)))
    request = Request("oracle", (Message("system", "S"), Message("user", "Hi")), tools)
    first = ENGINE.run(Oracle(task).complete(request))
    assert first == ENGINE.run(Oracle().for_scenario(task).complete(request))
    assert json.loads(first.tool_calls[0].arguments) == {
        "n": 3,
        "unit": "km",
    }  # what is left open fits the schema


def test_the_oracle_gives_a_step_up_after_three_calls() -> None:
    task = needs(accepts(path=("gone.md",)))
    tools = ToolSet(({"type": "function", "function": {"name": "file__read", "parameters": {}}},))
    messages: list[Message] = [Message("user", "Hi")]
    for _ in range(3):
        response = ENGINE.run(Oracle(task).complete(Request("oracle", tuple(messages), tools)))
        call: ToolCall = response.tool_calls[0]
        assert json.loads(call.arguments) == {"path": "gone.md"}
        messages += [
            Message("assistant", "", (call,)),
            Message("tool", '{"error": "no such file"}', (), call.id),
        ]
    last = ENGINE.run(Oracle(task).complete(Request("oracle", tuple(messages), tools)))
    assert last.text and not last.tool_calls
