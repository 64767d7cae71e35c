"""Schemas of every draft, against a second library that knows them all."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)

from reyn_jupyter.catalog.arguments.schema_dialects import (
    Dialect,
    UnknownDialectError,
    dialect_of,
    needs_translation,
    translate_schema,
)
from reyn_jupyter.catalog.arguments.schema_validation import SchemaValidator

URIS = {
    Dialect.DRAFT_04: "http://json-schema.org/draft-04/schema#",
    Dialect.DRAFT_06: "http://json-schema.org/draft-06/schema#",
    Dialect.DRAFT_07: "http://json-schema.org/draft-07/schema#",
    Dialect.DRAFT_2019_09: "https://json-schema.org/draft/2019-09/schema",
    Dialect.DRAFT_2020_12: "https://json-schema.org/draft/2020-12/schema",
}
PEERS: dict[Dialect, Any] = {
    Dialect.DRAFT_04: Draft4Validator,
    Dialect.DRAFT_06: Draft6Validator,
    Dialect.DRAFT_07: Draft7Validator,
    Dialect.DRAFT_2019_09: Draft201909Validator,
    Dialect.DRAFT_2020_12: Draft202012Validator,
}
OLD = {Dialect.DRAFT_04, Dialect.DRAFT_06, Dialect.DRAFT_07}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 6) | st.sampled_from([0.5, 2.5, "", "a", "bc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcx"), inner, max_size=3),
    max_leaves=5,
)
LEAVES = st.one_of(
    st.sampled_from(
        [{"type": "string"}, {"type": "integer"}, {"type": ["array", "null"]}, {"enum": ["a", 1]}]
    ),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-1, 2)}),
)


@cache  # a strategy is prepared once; made anew for every example, that takes most of the time
def rules(dialect: Dialect) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas in the words of one draft; `$ref` leads to a definition, with something beside it."""

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        lists = st.lists(inner, min_size=1, max_size=2)
        tuples = {"prefixItems": lists} if dialect == Dialect.DRAFT_2020_12 else {"items": lists}
        rest = "items" if dialect == Dialect.DRAFT_2020_12 else "additionalItems"
        parts = [
            st.fixed_dictionaries({"type": st.just("array"), **tuples}, optional={rest: inner}),
            st.fixed_dictionaries({"items": inner, "additionalItems": st.just(False)}),
            st.fixed_dictionaries(
                {"properties": st.fixed_dictionaries({}, optional={"a": inner, "b": inner})}
            ),
            st.fixed_dictionaries({"additionalProperties": inner}),
            st.fixed_dictionaries({"allOf": lists}),
            st.fixed_dictionaries({"anyOf": lists, "not": inner}),
            st.just({"$ref": "#/definitions/d", "maxProperties": 1, "maximum": 3}),
            st.fixed_dictionaries({"const": VALUES}),
            st.fixed_dictionaries({"contains": inner}),
            st.fixed_dictionaries({"propertyNames": st.just({"maxLength": 1, "enum": ["a", "b"]})}),
            st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
            st.fixed_dictionaries({"dependentRequired": st.just({"a": ["b"]})}),
            st.fixed_dictionaries(
                {"properties": st.just({"a": {}}), "unevaluatedProperties": st.just(False)}
            ),
        ]
        if dialect in OLD:
            parts.append(
                st.fixed_dictionaries(
                    {"dependencies": st.fixed_dictionaries({"a": st.just(["b"]), "b": inner})}
                )
            )
        if dialect == Dialect.DRAFT_04:
            parts.append(
                st.fixed_dictionaries(
                    {"minimum": st.integers(-1, 2), "exclusiveMinimum": st.booleans()},
                    optional={"maximum": st.just(3), "exclusiveMaximum": st.booleans()},
                )
            )
        else:
            parts.append(st.fixed_dictionaries({"exclusiveMinimum": st.integers(-1, 2)}))
        return st.one_of(parts)

    return st.recursive(LEAVES, larger, max_leaves=4)


@cache
def definitions(dialect: Dialect) -> st.SearchStrategy[dict[str, Any]]:
    """The same, without a reference to a definition."""
    return rules(dialect).filter(lambda each: "#/definitions" not in str(each))


@pytest.mark.parametrize("dialect", list(Dialect), ids=lambda each: each.name)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_translated_schema_means_what_its_own_draft_says(dialect: Dialect, data: st.DataObject) -> None:
    rule = data.draw(rules(dialect))
    definition = data.draw(definitions(dialect))
    schema = {"$schema": URIS[dialect], "definitions": {"d": definition}, "properties": {"p": rule}}
    value = data.draw(VALUES)
    translated = translate_schema(schema)
    assert "$schema" not in translated
    assert (SchemaValidator(translated).faults({"p": value}) == []) == PEERS[dialect](schema).is_valid(
        {"p": value}
    )


@pytest.mark.parametrize(
    ("named", "dialect"),
    [
        *((uri, dialect) for dialect, uri in URIS.items()),
        ("https://json-schema.org/draft-07/schema", Dialect.DRAFT_07),
        ("http://json-schema.org/schema#", Dialect.DRAFT_2020_12),
        (None, Dialect.DRAFT_2020_12),
    ],
)
def test_the_draft_is_read_from_its_name(named: str | None, dialect: Dialect) -> None:
    assert dialect_of({"$schema": named} if named else {}) == dialect


@pytest.mark.parametrize(
    "named", ["http://json-schema.org/draft-03/schema#", "https://example.org/own", 7, ""]
)
def test_a_dialect_that_is_not_known_is_named(named: object) -> None:
    with pytest.raises(UnknownDialectError, match="none of the JSON Schema drafts"):
        translate_schema({"$schema": named})


@pytest.mark.parametrize(
    ("part", "fits", "refused"),
    [
        ({"items": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [1, 1]),
        ({"items": [{"type": "string"}], "additionalItems": False}, ["a"], ["a", 1]),
        ({"items": [], "additionalItems": {"type": "integer"}}, [1], ["a"]),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 1, 0),
        ({"type": "number", "maximum": 9, "exclusiveMaximum": False}, 9, 10),
        ({"dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"type": "integer", "nullable": True}, None, "x"),
        ({"type": "float"}, 1.5, "x"),
    ],
)
def test_without_a_name_the_forms_of_older_drafts_are_understood(part: Any, fits: Any, refused: Any) -> None:
    validator = SchemaValidator(translate_schema({"properties": {"p": part}}))
    assert validator.faults({"p": fits}) == []
    assert validator.faults({"p": refused})


@pytest.mark.parametrize(
    ("ref", "holder"),
    [
        ("#/properties/t/items/1", {"t": {"items": [{}, {"type": "integer"}]}}),
        ("#/properties/t/additionalItems", {"t": {"items": [{}], "additionalItems": {"type": "integer"}}}),
        ("#/properties/t/dependencies/a", {"t": {"dependencies": {"a": {"type": "integer"}}}}),
        ("#/properties/items/items/0", {"items": {"items": [{"type": "integer"}]}}),
    ],
)
def test_a_reference_finds_the_part_that_translation_moved(ref: str, holder: dict[str, Any]) -> None:
    validator = SchemaValidator(translate_schema({"properties": {**holder, "p": {"$ref": ref}}}))
    validator.check()
    assert validator.faults({"p": 1}) == []
    assert validator.faults({"p": "x"})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/A", "definitions": {"A": {"properties": {"n": {"type": "integer"}}}}},
        {"id": "http://example.org/a", "properties": {"n": {"$ref": "http://example.org/n"}},
         "definitions": {"n": {"id": "n", "type": "integer"}}},
        {"properties": {"n": {"$ref": "#whole"}}, "definitions": {"n": {"id": "#whole", "type": "integer"}}},
        {"properties": {"n": {"id": "/properties/n", "allOf": [{"$ref": "#/definitions/n"}]}},
         "definitions": {"n": {"type": "integer"}}},
    ],
)  # fmt: skip
def test_identifiers_of_parts_are_followed_as_generators_write_them(schema: dict[str, Any]) -> None:
    validator = SchemaValidator(translate_schema({"$schema": URIS[Dialect.DRAFT_04], **schema}))
    validator.check()
    assert validator.faults({"n": 1}) == []
    assert [fault["path"] for fault in validator.faults({"n": "x"})] == ["/n"]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(Dialect)).flatmap(rules), st.data())
def test_nothing_that_needs_translation_is_overlooked(rule: dict[str, Any], data: st.DataObject) -> None:
    odd = data.draw(
        st.sampled_from(
            [{}, {"type": "dict"}, {"type": ["str", "null"]}, {"nullable": True, "type": "string"}, {"required": None},
             {"properties": None}, {"properties": {"a": {"required": True}}}, {"$id": "#a"}, {"$recursiveRef": "#"},
             {"$schema": URIS[Dialect.DRAFT_07]}, {"type": ["string"]}]
        )
    )  # fmt: skip
    schema = {"definitions": {"d": {}}, "properties": {"p": rule}, **odd}
    assert needs_translation(json.dumps(schema)) or translate_schema(schema) is schema


def test_what_is_in_todays_draft_is_the_very_object() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"prefixItems": [{"type": "string"}]}, "b": {"exclusiveMinimum": 0}},
    }
    assert translate_schema(schema) is schema
