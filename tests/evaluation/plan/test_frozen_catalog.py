"""Frozen catalogs: from records in the shapes that people have, the installed one, and one of a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.catalog.arguments.schema_dialects import translate_schema
from reyn_jupyter.catalog.arguments.schema_validation import SchemaValidator
from reyn_jupyter.catalog.names import ActionName, NameEncoder
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.tool_records import ToolRecordError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.namespace.functions import functions
from tests.evaluation.trial_support import Scripts, bench, run, scenario, suite

WEATHER = {
    "name": "weather.get",
    "description": "The weather of a city.",
    "parameters": {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def names(catalog: Catalog) -> list[str]:
    return [str(action.name) for action in catalog.snapshot]


def test_the_shapes_of_openai_mcp_and_plain_records_give_the_same_actions() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    plain = {"id": "w", "name": "weather", "description": "Weather.", "parameters": schema}
    face = {"name": "weather", "description": "Weather."}
    openai = {"id": "w", "type": "function", "function": {**face, "parameters": schema}}
    mcp = {"tools": [{**face, "inputSchema": schema}]}
    answer = {"jsonrpc": "2.0", "id": 1, "result": mcp}
    catalogs = [Catalog.from_records(given) for given in ([plain], [openai], mcp, answer)]
    assert {catalog.hash for catalog in catalogs} == {catalogs[0].hash}
    assert catalogs[0].name_of("w") == "tool__weather"
    assert catalogs[2].name_of("weather") == "tool__weather"


def test_records_are_read_from_json_and_jsonl_files(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps({"tools": [WEATHER]}))
    (tmp_path / "tools.jsonl").write_text(json.dumps(WEATHER) + "\n\n" + json.dumps({"name": "other"}) + "\n")
    assert names(Catalog.from_records(tmp_path / "tools.json")) == ["tool__weather.get"]
    assert names(Catalog.from_records(tmp_path / "tools.jsonl")) == ["tool__other", "tool__weather.get"]


def test_names_that_repeat_get_numbers_in_the_order_given_and_ids_keep_their_names() -> None:
    records = [{"id": str(number), "name": name} for number, name in enumerate(["a", "a-2", "a", "a", "b"])]
    catalog = Catalog.from_records(records)
    assert [catalog.name_of(str(number)) for number in range(5)] == [
        "tool__a",
        "tool__a-2",
        "tool__a-3",
        "tool__a-4",
        "tool__b",
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=600).filter(str.strip), min_size=1, max_size=12))
def test_every_name_becomes_an_entry_of_its_own_that_can_be_addressed(given_names: list[str]) -> None:
    records = [{"id": str(place), "name": name} for place, name in enumerate(given_names)]
    catalog = Catalog.from_records(records)
    found = [ActionName.parse(catalog.name_of(str(place))) for place in range(len(records))]
    assert len(set(found)) == len(records)
    assert all(catalog.snapshot.get(name) is not None for name in found)
    encoder = NameEncoder(found)
    assert [encoder.decode(encoder.encode(name)) for name in found] == found


def test_types_that_json_schema_does_not_know_are_normalised_and_what_they_were_is_kept() -> None:
    odd = {
        "type": "dict",
        "properties": {
            "type": {"type": "float"},
            "pair": {"type": "tuple", "items": {"type": "integer"}},
            "thing": {"type": "any"},
            "nested": {"type": "dict", "properties": {"a/b": {"type": "String"}}},
        },
    }
    catalog = Catalog.from_records([{"name": "odd", "parameters": odd}])
    action = next(iter(catalog.snapshot))
    SchemaValidator(action.input_schema).check()
    assert action.input_schema == {
        "type": "object",
        "properties": {
            "type": {"type": "number"},
            "pair": {"type": "array", "items": {"type": "integer"}},
            "thing": {},
            "nested": {"type": "object", "properties": {"a/b": {"type": "string"}}},
        },
    }
    assert catalog.types["tool__odd"] == {
        "/type": "dict",
        "/properties/type/type": "float",
        "/properties/pair/type": "tuple",
        "/properties/thing/type": "any",
        "/properties/nested/type": "dict",
        "/properties/nested/properties/a~1b/type": "String",
    }
    assert odd["type"] == "dict"


def test_a_sound_schema_is_left_as_it_is() -> None:
    sound = {"type": ["string", "null"], "enum": ["dict"], "anyOf": [{"type": "integer"}]}
    types: dict[str, str] = {}
    assert translate_schema(sound, types) is sound
    assert types == {}


@pytest.mark.parametrize(
    ("schema", "fits", "refused"),
    [
        (  # draft 7, as zod writes it: a tuple
            {"properties": {"t": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}},
            {"t": ["a", 1]},
            {"t": [1, 1]},
        ),
        (
            {"properties": {"t": {"items": [{"type": "string"}], "additionalItems": False}}},
            {"t": ["a"]},
            {"t": ["a", 1]},
        ),
        (  # draft 4: a bound that is a truth value
            {"properties": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}},
            {"n": 1},
            {"n": 0},
        ),
        (
            {"properties": {"n": {"type": "number", "maximum": 9, "exclusiveMaximum": False}}},
            {"n": 9},
            {"n": 9.5},
        ),
        (  # draft 3 and hand-written: each parameter says whether it is needed
            {"properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}},
            {"a": "x"},
            {"b": 1},
        ),
        (  # OpenAPI 3.0
            {"properties": {"n": {"type": "integer", "nullable": True}}},
            {"n": None},
            {"n": "x"},
        ),
        ({"type": ["object", "null"], "properties": {"m": {"type": ["dict", "null"]}}}, {"m": {}}, {"m": 1}),
        ({"type": "object", "properties": None, "required": None}, {}, {"x": 1}),
        (
            {
                "properties": {"k": {"type": "string"}, "v": {}},
                "if": {"properties": {"k": {"const": "x"}}},
                "then": {"properties": {"v": {"type": "float"}}, "required": ["v"]},
            },
            {"k": "x", "v": 1.5},
            {"k": "x"},
        ),
        (
            {"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "int"}}},
            {"n": 3},
            {"n": []},
        ),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}]}, {"a": 1}, {}),
    ],
)
def test_schemas_of_other_drafts_take_and_refuse_what_they_say(
    schema: dict[str, Any], fits: dict[str, Any], refused: dict[str, Any]
) -> None:
    (action,) = Catalog.from_records({"tools": [{"name": "odd", "inputSchema": schema}]}).snapshot
    assert prepare(action.input_schema, fits).invalid == []
    assert prepare(action.input_schema, refused).invalid


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([{"name": "a"}, {"description": "?"}], "record 2 has no name"),
        ([{"id": "x1", "name": " "}], "'x1'"),
        ([7], "record 1 is a int"),
        ([{"name": "a", "parameters": [1]}], "the schema of record 1 is a list"),
        ([{"id": "q", "name": "a", "parameters": {"type": "array"}}], "record 'q'"),
        ([{"name": "a", "parameters": {"properties": 3}}], "record 'a'"),
        ([{"id": "1", "name": "a"}, {"id": "1", "name": "b"}], "two records have the id '1'"),
        (
            [{"id": "r", "name": "a", "parameters": {"properties": {"x": {"$ref": "#/$defs/X"}}}}],
            "'#/$defs/X'",
        ),
        ([{"name": "a", "parameters": {"properties": {"x": {"$ref": "http://127.0.0.1:9/x"}}}}], "127.0.0.1"),
        ([{"name": "a", "parameters": {"properties": {"x": {"items": 3}}}}], "at properties/x/items"),
        ({"no": "tools"}, 'an object with "tools"'),
        ("/nowhere/tools.json", "cannot be read"),
    ],
)
def test_a_record_that_cannot_be_used_is_named(records: Any, said: str) -> None:
    with pytest.raises(ToolRecordError) as error:
        Catalog.from_records(records)
    assert said in str(error.value)


def test_a_recording_handler_answers_with_what_it_received() -> None:
    script = call("invoke_action", action_name="tool__weather.get", args={"city": "Oslo"}), "Sunny."
    made = suite(
        scenario(catalog="tools", workspace={}),
        catalogs={"tools": lambda: Catalog.from_records([WEATHER])},
    )
    with TrialRunner(made, models={"scripted": Scripts(*script)}) as on:
        trial, _ = run(on)
    (made_call,) = trial.calls
    assert (made_call.name, made_call.ok, made_call.args) == ("tool__weather.get", True, {"city": "Oslo"})
    assert trial.files == {}


def test_many_records_with_few_names_fit() -> None:
    catalog = Catalog.from_records(
        {"name": f"tool_{number % 5}", "id": str(number), "description": f"Number {number}."}
        for number in range(10_000)
    )
    assert len(catalog.snapshot) == 10_000
    assert catalog.name_of("9999") == "tool__tool_4-2000"


def test_the_hash_follows_the_faces_and_nothing_else() -> None:
    again = Catalog.from_records([WEATHER])
    assert Catalog.from_records([WEATHER]).hash == again.hash
    assert Catalog.from_records([{**WEATHER, "description": "Other."}]).hash != again.hash
    assert Catalog.standard().hash == Catalog.standard().hash


def test_catalogs_add_up() -> None:
    both = Catalog.standard() + Catalog.from_records([WEATHER], category="project")
    assert {"file", "project"} <= set(both.snapshot.category_names)
    assert both.name_of("weather.get") == "project__weather.get"
    assert both.hash != Catalog.standard().hash


def test_a_session_gives_its_own_actions_with_recording_handlers(tmp_path: Path) -> None:
    session = reyn.Session(root=tmp_path, store=None)
    called: list[int] = []

    def count_rows(limit: int = 1) -> int:
        """Count rows."""
        called.append(limit)
        return limit

    session.action(count_rows, purity="read")
    catalog = Catalog.from_session(session)
    assert "function__count_rows" in names(catalog)
    assert "file__read" in names(catalog)
    script = call("invoke_action", action_name="function__count_rows", args={"limit": 3}), "Three."
    with TrialRunner(
        suite(catalogs={"standard": lambda: catalog}), models={"scripted": Scripts(*script)}
    ) as on:
        trial, _ = run(on)
    assert trial.calls[0].ok and trial.calls[0].name == "function__count_rows"
    assert called == []


def test_a_trial_has_no_functions_or_variables_of_the_notebook() -> None:
    def leaky() -> int:
        """A function of the person's."""
        return 1

    reyn.action(leaky)
    try:
        with bench(models={"scripted": Scripts(call("list_actions", category=["function"]), "None.")}) as on:
            trial, _ = run(on, variant=Variant("plain", model="scripted"))
    finally:
        functions.remove("leaky")
    assert trial.calls[0].listed == ()


def test_a_catalog_without_some_categories_keeps_the_others_as_they_are() -> None:
    both = Catalog.from_records([{"name": "get_time"}]) + Catalog.standard(["file", "table"])
    less = both.without(["tool", "table", "not there"])

    assert set(less.snapshot.slices) == {"file"}
    assert set(both.snapshot.slices) == {"tool", "file", "table"}
    assert less.hash != both.hash


def test_a_catalog_that_was_narrowed_to_nothing_brings_nothing_along() -> None:
    both = Catalog.standard(["file"]).only([]) + Catalog.standard(["memory_entry"])
    assert "file" in both.snapshot.slices
    assert {action.name.category for action in both.snapshot.actions} <= {"memory_entry"}


def test_two_catalogs_together_know_the_distractors_of_both() -> None:
    one, other = Catalog(distractors=frozenset({"tool__a"})), Catalog(distractors=frozenset({"tool__b"}))
    assert (one + other).distractors == {"tool__a", "tool__b"}
