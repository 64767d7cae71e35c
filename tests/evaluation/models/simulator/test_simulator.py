"""The simulator: its rates are the table's, its draws hang together as stated, and it sees the request alone."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.models.simulator import BehaviourTable, Simulator
from reyn_jupyter.evaluation.models.simulator.features import features
from reyn_jupyter.models.base import Message
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.record.events import ModelReplied
from tests.evaluation.models.simulator.simulator_support import (
    BASE,
    CHANGE,
    DRAWS,
    asking,
    assert_rate,
    invoke,
    lists,
    opening,
    requests_of,
)
from tests.evaluation.trial_support import bench, run

# -- rates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("none", 0.03),
        ("generic", 0.05),
        ("explicit", 0.36),
        ("explicit twice", 0.60),
        ("explicit three times", 0.80),
        ("explicit six times", 0.80),
    ],
)
def test_it_lists_first_exactly_as_often_as_the_table_says(name: str, rate: float) -> None:
    model = Simulator(
        icc=0.3, arm_correlation=0.5, interaction=0.3
    )  # prompts are independent, whatever their repeats share
    request = opening(name)

    hits = sum(lists(model, asking(request, f"Read notes-{n}.md.")) for n in range(DRAWS))

    assert model.lists_first(request) == rate
    assert_rate(hits, DRAWS, rate)


def test_an_obscure_task_is_looked_up_whatever_the_prompt_says() -> None:
    request = requests_of(BASE)[0]
    system = request.messages[0]
    more = system.content.replace(
        "## Action categories\n", "## Action categories\n- routine: Own routines of the shop.\n"
    )
    request = replace(request, messages=(replace(system, content=more), *request.messages[1:]))

    hits = sum(
        lists(Simulator(), asking(request, f"Reconcile the stock of warehouse {n}.")) for n in range(DRAWS)
    )

    assert_rate(hits, DRAWS, BehaviourTable().lists_first_obscure)
    assert Simulator().lists_first(asking(request, "Read notes.md.")) == BehaviourTable().lists_first_unasked


@pytest.mark.parametrize(("rule", "rate"), [("none", 0.0), ("reasoned", 0.0), ("must", 0.75)])
def test_it_edits_in_place_as_often_as_the_table_says(rule: str, rate: float) -> None:
    listed = requests_of(BASE.but(rule, edit_rule=rule), CHANGE, call("list_actions", category=["file"]))[1]
    table = BehaviourTable(arguments_with_schemas=1.0)

    model = Simulator(table=table)
    answers = [model.answer(asking(listed, CHANGE.replace("hello", f"hello {n}"))) for n in range(DRAWS)]
    invoked = [json.loads(answer.tool_calls[0].arguments) for answer in answers]

    assert {each["action_name"] for each in invoked} <= {"file__edit", "file__write"}
    assert_rate(sum(each["action_name"] == "file__edit" for each in invoked), DRAWS, rate)
    edits = [each["args"] for each in invoked if each["action_name"] == "file__edit"]
    assert all(edit["path"] == "notes.md" and edit["new_string"] == "goodbye" for edit in edits)


@pytest.mark.parametrize(("schemas", "described", "right"), [(True, 0.0, 0.60), (False, 0.70, 0.0)])
def test_schemas_in_the_listing_rule_descriptions_and_arguments(
    schemas: bool, described: float, right: float
) -> None:
    variant = BASE.but("schemas", list_schemas=schemas)
    listed = requests_of(variant, "Read notes.md.", call("list_actions", category=["file"]))[1]
    model = Simulator(table=BehaviourTable(picks_best=1.0))

    calls = [model.answer(asking(listed, f"Read notes-{n}.md.")).tool_calls[0] for n in range(DRAWS)]

    assert_rate(sum(each.name == "describe_action" for each in calls), DRAWS, described)
    invoked = [
        (n, json.loads(each.arguments)) for n, each in enumerate(calls) if each.name == "invoke_action"
    ]
    assert {each["action_name"] for _, each in invoked} == {"file__read"}
    assert_rate(sum(each["args"] == {"path": f"notes-{n}.md"} for n, each in invoked), len(invoked), right)


def test_another_entry_of_the_table_is_another_rate() -> None:
    rates = []
    for rate in (0.2, 0.9):
        model = Simulator(table=BehaviourTable(lists_first_explicit=(rate,)))
        hits = sum(lists(model, asking(opening("explicit"), f"Read notes-{n}.md.")) for n in range(DRAWS))
        assert_rate(hits, DRAWS, rate)
        rates.append(hits)
    assert rates[0] < rates[1]


# -- what it sees -----------------------------------------------------------------------------------------------------


def test_equal_requests_have_equal_answers_and_repeats_have_their_own() -> None:
    model, request = Simulator(), opening("explicit")
    answers = [model.answer(replace(request, repeat=repeat)) for repeat in range(40)]

    assert answers == [Simulator().answer(replace(request, repeat=repeat)) for repeat in range(40)]
    assert len({answer.tool_calls for answer in answers}) > 1
    assert answers != [replace(model, seed=1).answer(replace(request, repeat=repeat)) for repeat in range(40)]


def test_a_variant_under_another_name_gets_the_same_answers() -> None:
    on = bench(models={"asked": Simulator()})
    variants = [BASE.but(name, mandate="explicit") for name in ("explicit-1x", "always lists first!")]
    for repeat in range(4):
        said = [
            [(event.text, event.tool_calls) for event in run(on, variant=variant, repeat=repeat)[1]
             if isinstance(event, ModelReplied)]
            for variant in variants
        ]  # fmt: skip
        assert said[0] == said[1] and said[0]
    on.close()


def test_it_is_a_function_of_the_requests_json_in_another_process() -> None:
    program = (
        "import json, sys\n"
        "from reyn_jupyter.evaluation.models.fake_provider.handler import request_of\n"
        "from reyn_jupyter.evaluation.models.simulator import Simulator\n"
        "for line in sys.stdin:\n"
        "    given = json.loads(line)\n"
        "    answer = Simulator(seed=3).answer(request_of(given['body'], given['repeat']))\n"
        "    print(json.dumps([answer.text, [[c.name, c.arguments] for c in answer.tool_calls]]))\n"
    )
    steps = (call("list_actions", category=["file"]), invoke("file__read", path="x"))
    asked = [
        replace(request, repeat=repeat)
        for request in requests_of(BASE, CHANGE, *steps)
        for repeat in range(5)
    ]
    lines = "\n".join(json.dumps({"body": request.wire, "repeat": request.repeat}) for request in asked)

    done = subprocess.run(
        [sys.executable, "-c", program], input=lines, text=True, capture_output=True, check=True
    )

    here = [Simulator(seed=3).answer(request) for request in asked]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [answer.text, [[each.name, each.arguments] for each in answer.tool_calls]] for answer in here
    ]


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (
            {},
            {
                "mandate": "none",
                "times": 0,
                "edit_rule": "none",
                "surface": "universal",
                "schemas_promised": True,
            },
        ),
        ({"mandate": "generic", "reinforcement": 3}, {"mandate": "generic", "times": 3}),
        ({"mandate": "explicit", "reinforcement": 5}, {"mandate": "explicit", "times": 5}),
        ({"mandate": "explicit", "reinforcement": 0}, {"mandate": "none", "times": 0}),
        ({"edit_rule": "reasoned"}, {"edit_rule": "reasoned"}),
        ({"edit_rule": "must"}, {"edit_rule": "must"}),
        ({"edit_rule": "must", "names": "shown"}, {"edit_rule": "must"}),
        ({"edit_rule": "reasoned", "names": "shown"}, {"edit_rule": "reasoned"}),
        ({"list_schemas": False}, {"schemas_promised": False}),
        ({"surface": "flat", "mandate": "explicit"}, {"surface": "flat", "mandate": "none", "times": 0}),
        ({"parameters": {"temperature": 0.5}}, {"parameters": '{"temperature":0.5}'}),
    ],
)
def test_it_reads_what_the_router_says(change: dict[str, Any], seen: dict[str, Any]) -> None:
    found = features(requests_of(BASE.but("changed", **change))[0])

    assert {name: getattr(found, name) for name in seen} == seen


def test_it_reads_names_hot_tools_and_narrowed_names() -> None:
    shown = features(requests_of(BASE.but("shown", names="shown"))[0])
    hot = features(requests_of(BASE.but("hot", hot_list_n=5))[0])
    listed = call("list_actions", category=["file"])
    narrowed = requests_of(BASE.but("narrowed", constrain_names=True), "Read notes.md.", listed)

    assert "file__read" in shown.names and not shown.direct
    assert len(hot.direct) == 5 and not hot.names
    assert not features(narrowed[0]).constrained
    assert "file__read" in features(narrowed[1]).constrained
    assert features(narrowed[0]).arm == features(narrowed[1]).arm


def test_the_day_and_the_folder_change_nothing() -> None:
    request = opening("explicit")
    system = request.messages[0]
    static = system.content.rpartition("\n## Now\n")[0]
    moved = replace(system, content=f"{static}\n## Now\nWorkspace folder: other. Date: 2031-01-01.")

    assert moved != system
    for repeat in range(20):
        other = replace(request, messages=(moved, *request.messages[1:]), repeat=repeat)
        assert (
            Simulator().answer(other).tool_calls
            == Simulator().answer(replace(request, repeat=repeat)).tool_calls
        )


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])


@settings(deadline=None)
@given(st.lists(st.builds(Message, ROLES, st.text(max_size=60)), max_size=6), st.integers(0, 50))
def test_it_answers_any_conversation(messages: list[Message], repeat: int) -> None:
    request = replace(opening("none"), messages=tuple(messages), repeat=repeat)

    answer = Simulator().answer(request)

    assert answer.text or answer.tool_calls
    assert all(isinstance(json.loads(each.arguments), dict) for each in answer.tool_calls)
