"""Validation against a second library, references in any place, messages, and patterns of any dialect."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reyn_jupyter.catalog.arguments.preparation import Prepared, prepare
from reyn_jupyter.catalog.arguments.schema_validation import (
    SchemaError,
    SchemaValidator,
    UnresolvedReferenceError,
)
from tests.catalog.samples import schema as schema_of

REMARKS = {"description": "A parameter.", "default": 5, "format": "date"}
NUMBER = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={"minimum": st.integers(-3, 3), "maximum": st.floats(-3, 9)},
)
TEXT = st.fixed_dictionaries(
    {"type": st.just("string")}, optional={"minLength": st.integers(0, 3), "maxLength": st.integers(0, 5)}
)
SIMPLE = st.one_of(
    NUMBER,
    TEXT,
    st.just({"type": "boolean"}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "string", "enum": ["a", "b"]}),
    st.just({"type": ["integer", "boolean"], **REMARKS}),
    st.just({"type": "object"}),
    st.just({"type": "array"}),
)
UNUSUAL = st.sampled_from(
    [{"const": 1}, {"type": "string", "pattern": "^a"}, {"not": {}}, True, {}, {"enum": [1]}]
)
RULES = st.recursive(
    SIMPLE,
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
    ),
    max_leaves=3,
)
SCHEMAS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(st.sampled_from("abc"), RULES | UNUSUAL, max_size=3),
    },
    optional={
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "additionalProperties": st.just(False),
    },
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-4, 10)
    | st.floats(-4, 10)
    | st.sampled_from(["", "a", "b", "abcd"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abxy"), inner, max_size=2),
    max_leaves=4,
)


RESULT = {"$var": "earlier"}


def replaced(value: Any, chosen: st.DataObject) -> Any:
    """The same with references in some places."""
    if chosen.draw(st.integers(0, 3)) == 0:
        return RESULT
    if isinstance(value, dict):
        return {name: replaced(each, chosen) for name, each in value.items()}
    return [replaced(each, chosen) for each in value] if isinstance(value, list) else value


@settings(max_examples=400)
@given(SCHEMAS, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
def test_what_is_valid_is_what_another_library_takes(schema: dict[str, Any], args: dict[str, Any]) -> None:
    args = {name: value for name, value in args.items() if name in schema["properties"]}
    valid = Draft202012Validator(schema).is_valid(args)
    validator = SchemaValidator(schema)
    assert (not validator.faults(args)) == valid
    if validator.accepts(args):
        assert valid
    for name, value in args.items():
        assert validator.fits(name, value) == Draft202012Validator(schema["properties"][name]).is_valid(value)


@settings(max_examples=200)
@given(SCHEMAS, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), st.data())
def test_a_reference_in_any_place_makes_nothing_wrong(
    schema: dict[str, Any], args: dict[str, Any], chosen: st.DataObject
) -> None:
    schema = {
        **schema,
        "properties": {name: part for name, part in schema["properties"].items() if _plain(part)},
    }
    args = {name: value for name, value in args.items() if name in schema["properties"]}
    if Draft202012Validator(schema).is_valid(args):
        validator = SchemaValidator(schema)
        holed = {name: replaced(value, chosen) for name, value in args.items()}
        assert validator.faults(holed) == []
        assert holed == args or not validator.accepts(holed)


def _plain(part: Any) -> bool:
    """Whether nothing in it is turned round, as what stands in `not` is."""
    return part != {"not": {}}


@pytest.mark.parametrize(
    ("ref", "more"),
    [
        ("#/$defs/tree", {}),
        ("#/definitions/tree", {}),
        ("#/components/schemas/tree", {}),
        ("#/%24defs/tree", {}),
        ("#tree", {"$anchor": "tree"}),
        ("https://example.org/s.json#/$defs/tree", {}),
    ],
)
def test_a_part_that_refers_to_itself_is_followed_wherever_it_stands(ref: str, more: dict[str, Any]) -> None:
    tree = {"type": "object", "properties": {"leaf": {"type": "integer"}, "next": {"$ref": ref}}, **more}
    schema = {
        "$id": "https://example.org/s.json",
        "type": "object",
        "properties": {"t": {"$ref": ref}},
        "$defs": {"tree": tree},
        "definitions": {"tree": tree} if "definitions" in ref else {},
        "components": {"schemas": {"tree": tree}},
    }
    (fault,) = SchemaValidator(schema).faults({"t": {"next": {"next": {"leaf": "x"}}}})
    assert fault == {"path": "/t/next/next/leaf", "message": "must be an integer, not the string 'x'"}
    assert SchemaValidator(schema).faults({"t": {"next": {"next": RESULT, "leaf": RESULT}}}) == []
    assert SchemaValidator(schema).fits("t", {"next": {"leaf": 1}})
    assert not SchemaValidator(schema).fits("t", {"next": {"leaf": "x"}})


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ({"type": "integer", "minimum": 1}, 0, "must be at least 1, not the integer 0"),
        ({"type": "string", "minLength": 2}, "x", "must be 2 or more characters, not the string 'x'"),
        ({"type": ["integer", "null"]}, "x", "must be an integer or null, not the string 'x'"),
        ({"properties": {"ab": {}}, "additionalProperties": False}, {"abc": 1}, "did you mean 'ab'"),
        ({"x-reference": True}, 1, "takes a reference, not the data itself"),
        ({"type": "integer", "x-reference": True}, 1, "takes a reference, not the data itself"),
        (
            {"oneOf": [{"type": "integer"}, {"type": "number"}]},
            1,
            "fits none of its forms: more than one fits",
        ),
        ({"const": "a"}, "b", '"a"'),
    ],
)
def test_a_message_says_what_is_wanted(part: Any, value: Any, message: str) -> None:
    (fault,) = SchemaValidator({"properties": {"p": part}}).faults({"p": value})
    assert fault["path"] == "/p" and message in fault["message"]


class Text(str):
    """As a text of a person's library may be."""


@pytest.mark.parametrize("name", ["0", "007", "+5", "9" * 30])
def test_a_parameter_whose_name_is_a_number_is_checked_like_any_other(name: str) -> None:
    """The validator tells of such a name as of an index."""
    inner = {"type": "object", "properties": {name: {"type": "string"}}, "required": ["other"]}
    validator = SchemaValidator({"type": "object", "properties": {name: inner}})
    assert validator.faults({name: {name: "text", "other": 1}}) == []
    messages = [each["message"] for each in validator.faults({name: {name: 5}})]
    assert len(messages) == 2 and any("required" in each for each in messages)
    assert any("string" in each for each in messages)


def test_kinds_of_texts_that_json_does_not_know_are_read_as_texts() -> None:
    validator = SchemaValidator(
        {"properties": {"p": {"type": "array", "items": {"type": "string", "pattern": "^x"}}}}
    )
    assert validator.faults({"p": [Text("x"), "x\udcff"]}) == []
    assert [fault["path"] for fault in validator.faults({"p": [Text("y"), "\udcff"]})] == ["/p/0", "/p/1"]


def test_a_fault_of_the_schema_is_told_with_its_place() -> None:
    with pytest.raises(SchemaError) as caught:
        SchemaValidator({"properties": {"x": {"items": {"type": "strnig"}}}}).check()
    assert caught.value.path == ("properties", "x", "items", "type") and "strnig" in caught.value.message


def test_checking_loads_nothing_else_that_is_heavy() -> None:
    code = """
import sys
from reyn_jupyter.catalog import resolve, snapshot, suggest, wrapper_specs
from reyn_jupyter.catalog.arguments import preparation
from reyn_jupyter.catalog.discovery import listing, search_results
texts = {"type": "array", "items": {"type": "string"}}
schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": texts}}
assert "jsonschema_rs" not in sys.modules
assert not preparation.prepare(schema, {"a": "5", "b": '["x"]'}).invalid
assert preparation.prepare(schema, {"a": "five", "c": 1}).invalid
heavy = {"jsonschema", "referencing", "re2", "yaml", "numpy", "pandas", "pydantic", "asyncio"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "ref", ["#/$defs/missing", "#missing", "other.json", "https://example.org/a.json#/b"]
)
def test_what_refers_to_nothing_is_told(ref: str) -> None:
    with pytest.raises(UnresolvedReferenceError) as caught:
        SchemaValidator({"properties": {"x": {"$ref": ref}}}).check()
    assert ref in caught.value.message


def test_a_part_that_refers_to_nothing_matters_to_who_fills_it() -> None:
    validator = SchemaValidator({"properties": {"x": {"$ref": "other.json"}, "y": {"type": "integer"}}})
    assert validator.faults({"y": 1, "x": RESULT}) == []
    assert [fault["path"] for fault in validator.faults({"x": 1, "y": "z"})] == ["/x", "/y"]


def taken(prepared: Prepared) -> bool:
    return prepared.invalid == []


def test_a_pattern_that_could_run_away_does_not() -> None:
    runaway = schema_of(x={"type": "string", "pattern": "^(a+)+$"})
    assert prepare(runaway, {"x": "a" * 50_000 + "b"}).invalid[0]["path"] == "/x"
    assert taken(prepare(runaway, {"x": "aaa"}))


@pytest.mark.parametrize(
    "whole",
    [
        {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
        {"allOf": [{"required": ["x"]}]},
        {"minProperties": 1},
        {"$ref": "#/$defs/needed", "$defs": {"needed": {"required": ["x"]}}},
        {"if": {"not": {"required": ["y"]}}, "then": {"required": ["x"]}},
    ],
)
def test_no_arguments_at_all_are_held_to_what_a_schema_says_of_the_whole(whole: dict[str, Any]) -> None:
    described = {**schema_of(x={"type": "string"}, y={"type": "string"}), **whole}
    assert prepare(described, {}).invalid and prepare(described, None).invalid
    assert taken(prepare(described, {"x": "a"}))


def test_a_pattern_that_python_does_not_know_makes_no_wrong_schema_of() -> None:
    letters = schema_of(x={"type": "string", "pattern": "^\\p{L}+$"})
    assert taken(prepare(letters, {"x": "été"}))
    assert prepare(letters, {"x": "7"}).invalid[0]["path"] == "/x"
    for pattern, smile in (("^(?<year>\\d+)$", False), ("^\\u{1F600}$", True)):
        written = schema_of(x={"type": "string", "pattern": pattern})
        assert taken(prepare(written, {"x": "7"})) is not smile
        assert taken(prepare(written, {"x": "\U0001f600"})) is smile
    assert taken(prepare(schema_of(x={"type": "string", "pattern": "(?P<x"}), {"x": "7"}))


def test_a_pattern_beyond_linear_time_is_left_to_the_handler() -> None:
    assert taken(prepare(schema_of(x={"type": "string", "pattern": "^(?=b)a$"}), {"x": "zzz"}))
