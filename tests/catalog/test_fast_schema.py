"""The quick check against the library that it spares: they must agree wherever the quick one decides."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reyn_jupyter.catalog.fast_schema import compile_plain

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


@settings(max_examples=400)
@given(SCHEMAS, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
def test_the_quick_check_and_the_library_agree(schema: dict[str, Any], args: dict[str, Any]) -> None:
    plain = compile_plain(schema)
    args = {name: value for name, value in args.items() if name in schema["properties"]}
    valid = Draft202012Validator(schema).is_valid(args)
    if plain.accepts(args):
        assert valid
    if plain.exact:
        assert (not plain.faults(args)) == valid


def test_what_is_unusual_is_left_to_the_library() -> None:
    assert not compile_plain({"type": "object", "properties": {"a": {"const": 1}}}).exact
    assert not compile_plain({"type": "object", "properties": {}, "minProperties": 1}).exact
    assert not compile_plain({"type": "object", "additionalProperties": True}).accepts({"a": 1})


def test_ordinary_calls_never_load_the_library() -> None:
    code = """
import sys
from reyn_jupyter.catalog import arguments, listing, resolve, search_results, snapshot, suggest, wrapper_specs
texts = {"type": "array", "items": {"type": "string"}}
schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": texts}}
assert not arguments.prepare(schema, {"a": "5", "b": '["x"]'}).invalid
assert arguments.prepare(schema, {"a": "five", "c": 1}).invalid
heavy = {"jsonschema", "referencing", "re2", "yaml", "numpy", "pandas", "pydantic", "asyncio"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
