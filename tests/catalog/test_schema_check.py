"""Schemas that somebody else wrote: real ones by the thousand, and hostile ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.catalog.arguments.schema_dialects import SchemaError
from reyn_jupyter.catalog.arguments.schema_validation import SchemaValidator
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.schema_check import check_schema, read_schema
from reyn_jupyter.catalog.snapshot import CatalogError, CatalogSnapshot, CategorySlice
from tests.catalog.samples import TEXT, WHOLE, echo, no_entries

RECORDS = Path(__file__).parents[1] / "data" / "retrieval" / "bfcl_actions.jsonl"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def records() -> Iterator[dict[str, Any]]:
    for line in RECORDS.read_text("utf-8").splitlines():
        yield json.loads(line)["parameters"]


def test_every_schema_of_the_leaderboard_can_be_called_with() -> None:
    reasons = [check_schema(schema) for schema in records()]
    assert len(reasons) == 2_724
    assert [reason for reason in reasons if reason] == []


def sample(schema: Any, chosen: st.DataObject, depth: int = 3) -> Any:
    """A value that a schema of the leaderboard asks for."""
    if not isinstance(schema, dict):
        return "x"

    def fits(value: Any) -> bool:
        return not SchemaValidator({"properties": {"p": schema}}).faults({"p": value})

    for key in ("const", "default"):
        if key in schema and fits(schema[key]):
            return schema[key]
    if schema.get("enum"):
        fitting = [value for value in schema["enum"] if fits(value)]
        if not fitting:
            reject()  # its type contradicts all that it lists (an integer, of texts): nothing can be asked for
        return chosen.draw(st.sampled_from(fitting))
    match schema.get("type"):
        case "object":
            known = schema.get("properties", {})
            needed = set(schema.get("required", ()))
            names = [name for name in known if name in needed or (depth and chosen.draw(st.booleans()))]
            names += sorted(needed - known.keys())  # some ask for what they do not describe
            return {name: sample(known.get(name), chosen, depth - 1) for name in names}
        case "array":
            size = chosen.draw(st.integers(schema.get("minItems", 0), schema.get("minItems", 0) + 2))
            return [sample(schema.get("items", {}), chosen, depth - 1) for _ in range(size)]
        case "integer":
            return chosen.draw(st.integers(schema.get("minimum", -5), schema.get("maximum", 10_000)))
        case "number":
            return chosen.draw(st.sampled_from([schema.get("minimum", 0), schema.get("maximum", 2.5)]))
        case "boolean":
            return chosen.draw(st.booleans())
        case "null":
            return None
    return chosen.draw(st.sampled_from(["x", "5", "true", "[]", "a b"]))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(records())), st.data())
def test_what_a_real_schema_asks_for_is_taken_as_it_is(schema: dict[str, Any], chosen: st.DataObject) -> None:
    for open_schema in (False, True):
        read = read_schema(schema, open_schema=open_schema)
        args = sample(read, chosen)
        prepared = prepare(read, args)
        assert (prepared.args, prepared.flags, prepared.invalid) == (args, (), [])


PARTS = st.sampled_from(
    [TEXT, WHOLE, {"type": ["integer", "string"]}, {"anyOf": [WHOLE, {"type": "null"}]}, {}, {"enum": ["5", 5]},
     {"type": "array"}, {"$ref": "#/$defs/d"}, {"not": TEXT}, {"const": 5.0}]
)  # fmt: skip
ARGUMENTS = st.dictionaries(
    st.sampled_from(["content", "text", "source", "source_id", "a"]),
    st.sampled_from(["5", "x", 5, 5.0, None, "null", [], "[]", True]),
    max_size=3,
)


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["content", "source", "a"]), PARTS, max_size=3),
    st.lists(st.sampled_from(["content", "source", "a"]), unique=True),
    st.sampled_from(
        [{}, {"dependentRequired": {"content": ["a"]}}, {"maxProperties": 1}, {"$ref": "#/$defs/e"}]
    ),
    st.booleans(),
    ARGUMENTS,
)
def test_repair_leaves_valid_arguments_alone(
    properties: Any, required: Any, whole: Any, open_schema: bool, args: dict[str, Any]
) -> None:
    schema = read_schema(
        {
            "properties": properties,
            "required": required,
            **whole,
            "$defs": {"d": WHOLE, "e": {"minProperties": 0}},
        },
        open_schema=open_schema,
    )
    if prepare(schema, args, forgive=False).invalid == []:
        prepared = prepare(schema, args)
        assert (prepared.args, prepared.flags, prepared.invalid) == (args, (), [])


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"x": schema}}
    return schema


def doubling(parts: int) -> dict[str, Any]:
    """A schema of a few hundred bytes, and of two to the power of its parts."""
    chain = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(parts)}
    return {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**chain, f"a{parts}": {"type": "string"}}}


def in_a_circle() -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {}}
    schema["properties"]["x"] = schema
    return schema


HOSTILE: list[tuple[Any, str]] = [
    ([], "is no JSON Schema object"),
    ({"properties": {"x": {"$ref": "#/properties/x"}}}, "refers to itself"),
    ({"allOf": [{"$ref": "#"}]}, "refers to itself"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}, "itself"),
    ({"properties": {"x": {"$ref": "https://127.0.0.1:9/s.json"}}}, "'https://127.0.0.1:9/s.json', which it does not"),
    ({"properties": {"x": {"$ref": "file:///etc/passwd"}}}, "which it does not hold"),
    ({"$schema": "https://example.org/mine", "properties": {}}, "names the dialect 'https://example.org/mine'"),
    ({"$schema": {"a": 1}}, "names the dialect"),
    (nested(100), "deeper than 100 levels"),
    (in_a_circle(), "is no JSON"),
    (doubling(30), "too involved"),
    ({"properties": {"x": {"enum": ["x" * 100] * 20_000}}}, "is larger than 1,000,000 bytes"),
    ({"properties": {"x": {1: 2}}}, "has a key that is no text"),
    ({"properties": {1: {}}}, "has a key that is no text"),
    ({"properties": {"x": {"default": float("nan")}}}, "is no JSON"),
    ({"properties": {"x": 5}}, "has properties that are no schemas"),
    ({"properties": {"x": {"type": "strnig"}, "y": {"minimum": "many"}}}, "is no sound JSON Schema"),
    ({"required": "x"}, "has a 'required'"),
    ({"required": [1]}, "has a 'required'"),
    ({"type": ["array"]}, "is not of type 'object'"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "reason"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_schema_that_cannot_be_called_with_is_named_with_its_reason(schema: Any, reason: str) -> None:
    assert reason in (check_schema(schema) or "")


@pytest.mark.parametrize("schema", [case for case, _ in HOSTILE], ids=range(len(HOSTILE)))
def test_a_call_with_a_hostile_schema_ends(schema: Any) -> None:
    for args in ({"x": "a"}, {"x": 5}, {}):
        assert isinstance(prepare(schema, args).invalid, list)


@pytest.mark.parametrize(
    "rule",
    [
        {"default": "x", "type": "integer"},
        {"default": {"a": [None]}, "type": "string", "examples": 5},
        {"type": "string", "pattern": "(a{1000}){1000}"},
        {"type": "string", "pattern": "^(a+)+$"},
        {"type": "string", "pattern": "("},
        {"enum": list(range(100_000))},
        {"title": 5, "x-anything": {"deep": [1]}},
    ],
)
def test_what_is_only_odd_can_be_called_with(rule: dict[str, Any]) -> None:
    assert check_schema({"properties": {"x": rule}}) is None


def test_patterns_past_what_fits_in_memory_are_left_to_the_handler() -> None:
    many = {f"p{i}": {"type": "string", "pattern": f"^{i}$"} for i in range(3_000)}
    assert check_schema({"properties": many}) is None
    assert prepare({"properties": many}, {"p0": "x"}).invalid
    assert prepare({"properties": many}, {"p2999": "x"}).invalid == []


ANY_TREE = {
    "type": "object",
    "properties": {"t": {"$ref": "#/$defs/T"}},
    "$defs": {
        "T": {
            "anyOf": [
                {"type": "object", "properties": {"x": {"$ref": "#/$defs/T"}}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/T"}},
            ]
        }
    },
}


def tree(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"x": leaf}
    return leaf


def test_alternatives_that_lead_back_to_themselves_do_not_run_away() -> None:
    """The old code took half a minute for 16 levels, twice as long for each one more."""
    assert check_schema(ANY_TREE) is None
    assert prepare(ANY_TREE, {"t": tree(3, {})}).invalid == []
    (near,) = prepare(ANY_TREE, {"t": tree(2, 5)}).invalid
    assert near["path"] == "/t" and "fits none of its forms" in near["message"]
    assert prepare(ANY_TREE, {"t": tree(10, {})}).invalid == []
    (far,) = prepare(ANY_TREE, {"t": tree(10, 5)}).invalid
    assert far == {"path": "/t", "message": "does not fit the schema, which has too many forms to say where"}
    for leaf in ({}, 5):
        (deep,) = prepare(ANY_TREE, {"t": tree(40, leaf)}).invalid
        assert "nested too deeply to be checked" in deep["message"]


def with_entry(entry: Entry) -> CatalogSnapshot:
    rule = Resources(
        Tool("run_theirs", echo, Purity.NETWORK), lambda e, a: {"tool": e, **a}, "call it", no_entries
    )
    return CatalogSnapshot.build([Category("theirs", "Call tools of others.", (), rule)], {"theirs": [entry]})


ZOD = {
    "$schema": DRAFT_07,
    "type": "object",
    "properties": {"path": {"type": "string"}, "at": {"type": "array", "items": [WHOLE, WHOLE]}},
    "required": ["path"],
}


def test_an_action_has_its_schema_in_todays_draft() -> None:
    action = with_entry(Entry("move", "Move.", ZOD)).get(ActionName("theirs", "move"))
    assert action is not None and "$schema" not in action.input_schema
    assert action.input_schema["properties"]["at"] == {"type": "array", "prefixItems": [WHOLE, WHOLE]}
    assert prepare(action.input_schema, {"path": "a", "at": [1, 2]}).invalid == []
    assert prepare(action.input_schema, {"path": "a", "at": ["x", 2]}).invalid[0]["path"] == "/at/0"


def test_an_open_schema_takes_other_arguments_and_ours_names_the_one_that_was_meant() -> None:
    theirs = with_entry(Entry("move", "Move.", ZOD, open_schema=True)).get(ActionName("theirs", "move"))
    ours = with_entry(Entry("move", "Move.", ZOD)).get(ActionName("theirs", "move"))
    assert theirs is not None and ours is not None
    args = {"path": "a", "text": "more", "att": [1]}
    assert prepare(theirs.input_schema, args).args == args
    assert prepare(theirs.input_schema, args).invalid == []
    told = {fault["path"]: fault["message"] for fault in prepare(ours.input_schema, args).invalid}
    assert told["/att"] == "unknown argument; did you mean 'at'?"
    (missing,) = prepare(theirs.input_schema, {"paht": "a"}).invalid
    assert missing == {"path": "/path", "message": "is required; is 'paht' meant for it?"}


@pytest.mark.parametrize("closing", [{"additionalProperties": False}, {"unevaluatedProperties": False}])
def test_an_open_schema_that_closes_itself_stays_closed(closing: dict[str, Any]) -> None:
    schema = read_schema({"properties": {"path": TEXT}, **closing}, open_schema=True)
    (fault,) = prepare(schema, {"path": "a", "pth": "b"}).invalid
    assert "did you mean 'path'" in fault["message"]


def test_an_operation_says_so_too() -> None:
    operation = Operation("go", "Go.", {"properties": {}}, Tool("go", echo, Purity.READ), open_schema=True)
    (action,) = CategorySlice.build(Category("theirs", "Go.", (operation,)), ()).actions
    assert action.input_schema == {"properties": {}, "additionalProperties": True}


def test_a_schema_of_an_unknown_dialect_is_the_fault_of_its_entry() -> None:
    with pytest.raises(CatalogError, match="the input schema of 'odd' names the dialect 'x:y'"):
        with_entry(Entry("odd", "Odd.", {"$schema": "x:y"}))
    with pytest.raises(SchemaError):
        read_schema({"$schema": "x:y"})
