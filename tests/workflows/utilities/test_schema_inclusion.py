"""Inclusion of schemas: what is called included has no counter-example, and what plainly is included is called so."""

from __future__ import annotations

import itertools
import random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.workflows.utilities.contract import schema_fault
from reyn_jupyter.workflows.utilities.schema_inclusion import inclusion_faults

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, 1.0, 1.5, -1, "", "x", "xx", "xyz"),
    *([], [1], ["x"], [1, "x"], [1, 1], [[1]], {}, {"a": 1}, {"a": "x", "b": 1}, {"b": None}),
]
NAMES = ["a", "b"]
OBJECTS: list[dict[str, Any]] = [
    {name: value for name, value in zip([*NAMES, "other"], values, strict=True) if value is not ...}
    for values in itertools.product([*VALUES, ...], [*VALUES, ...], [1, "x", None, ...])
]
KINDS = ["null", "boolean", "integer", "number", "string", "array", "object"]


class Drawn:
    """Schemas by chance: few names and small numbers, so that two of them have to do with each other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def schema(self, level: int = 2) -> Any:
        if level == 0 or self._random.random() < 0.1:
            return self._random.choice(
                [{}, True, {"type": "string"}, {"type": "integer"}, {"const": 1}, False]
            )
        parts = [self._keywords(level - 1) for _ in range(self._random.choice([1, 1, 2]))]
        return {key: value for part in parts for key, value in part.items()}

    def document(self) -> dict[str, Any]:
        whole = self.schema() if self._random.random() < 0.3 else self._object(2)
        whole = whole if isinstance(whole, dict) else {}
        return {**whole, "type": "object", "$defs": {"one": self.schema(1)}}

    def pair(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return two schemas: unrelated, or one of them made of the other."""
        first = self.document()
        if self._random.random() < 0.25:
            return first, self.document()
        inner = {key: first[key] for key in first if key not in ("$defs", "type")}
        made = self._near(self._near(inner))
        second = {**(made if isinstance(made, dict) else {}), "$defs": first["$defs"]}
        return (first, second) if self._random.random() < 0.6 else ({**second, "type": "object"}, first)

    def _names(self) -> list[str]:
        return self._random.sample(NAMES, self._random.randint(0, 2))

    def _several(self, level: int) -> list[Any]:
        return [self.schema(level) for _ in range(self._random.randint(1, 3))]

    def _some(self, parts: dict[str, Any]) -> dict[str, Any]:
        return {key: make() for key, make in parts.items() if self._random.random() < 0.5}

    def _object(self, level: int) -> dict[str, Any]:
        others = {
            "required": self._names,
            "additionalProperties": lambda: self._random.choice([False, True, self.schema(level)]),
            "patternProperties": lambda: {self._random.choice(["^a", "o"]): self.schema(level)},
        }
        if self._random.random() < 0.2:
            others["unevaluatedProperties"] = lambda: self.schema(level)
        if self._random.random() < 0.7:
            del others["patternProperties"]
        return {"properties": {name: self.schema(level) for name in self._names()}, **self._some(others)}

    def _array(self, level: int) -> dict[str, Any]:
        parts = {
            "prefixItems": lambda: self._several(level),
            "items": lambda: self.schema(level),
            "maxItems": self._small,
        }
        if self._random.random() < 0.2:
            parts["unevaluatedItems"] = lambda: self.schema(level)
        return self._some(parts)

    def _small(self) -> int:
        return self._random.randint(0, 3)

    def _keywords(self, level: int) -> dict[str, Any]:
        choice, random = self._random.choice, self._random
        drawn: list[Any] = [
            lambda: {"type": choice(KINDS)},
            lambda: {"type": random.sample(KINDS, random.randint(1, 3))},
            lambda: {"enum": random.sample(VALUES, random.randint(1, 4))},
            lambda: {"const": choice(VALUES)},
            lambda: {choice(["minimum", "maximum"]): choice([0, 1, 1.5, 2])},
            lambda: {choice(["exclusiveMinimum", "exclusiveMaximum"]): choice([0, 1, 1.5, 2])},
            lambda: {"multipleOf": choice([1, 2, 0.5])},
            lambda: {choice(["minLength", "maxLength", "minItems", "maxItems"]): self._small()},
            lambda: {choice(["minProperties", "maxProperties"]): self._small()},
            lambda: {"pattern": choice(["x", "^x$"])},
            lambda: {"uniqueItems": choice([True, False])},
            lambda: {"required": self._names()},
            lambda: self._object(level),
            lambda: self._array(level),
            lambda: {"contains": self.schema(level), **self._some({"minContains": self._small})},
            lambda: {"contains": self.schema(level), **self._some({"maxContains": self._small})},
            lambda: {"propertyNames": self.schema(level)},
            lambda: {"dependentRequired": {name: self._names() for name in self._names()}},
            lambda: {"dependentSchemas": {name: self.schema(level) for name in self._names()}},
            lambda: {choice(["allOf", "anyOf", "oneOf"]): self._several(level)},
            lambda: {choice(["allOf", "anyOf", "oneOf"]): self._several(level)},
            lambda: {"not": self.schema(level)},
            lambda: {
                "if": self.schema(level),
                **self._some({"then": lambda: self.schema(level), "else": lambda: self.schema(level)}),
            },
            lambda: {"$ref": choice(["#/$defs/one", "#"])},
        ]
        made: dict[str, Any] = choice(drawn)()
        return made

    def _near(self, schema: Any) -> Any:
        """Return a schema that is made of another one: much of it is wider or narrower than that."""
        if not isinstance(schema, dict) or not schema:
            return self.schema(1)
        key = self._random.choice(sorted(schema))
        named = schema.get("properties", {})
        one = self._random.choice(sorted(named)) if named else ""
        inner = {"properties": {**named, one: self._near(named[one])}} if named else {}
        drawn: list[Any] = [
            lambda: schema,
            lambda: {each: schema[each] for each in schema if each != key},
            lambda: {**schema, **self.schema(1)} if self._random.random() < 0.5 else schema,
            lambda: {"anyOf": self._random.sample([self.schema(1), schema], 2)},
            lambda: {"oneOf": self._random.sample([self.schema(1), schema], 2)},
            lambda: {"allOf": [schema, self.schema(1)]},
            lambda: {"not": {"not": self._near(schema)}},
            lambda: {"if": self.schema(1), "then": schema, "else": self._near(schema)},
            *[lambda: {**schema, **inner}] * 6,
        ]
        made = self._random.choice(drawn)
        try:
            return made()
        except TypeError:  # a schema that is true or false
            return schema


def counter_example(first: dict[str, Any], second: dict[str, Any]) -> Any:
    """Return an object that fits the first schema and misses the second; None where none was found."""
    fits = jsonschema_rs.Draft202012Validator(first).is_valid
    misses = jsonschema_rs.Draft202012Validator(second).is_valid
    return next((each for each in OBJECTS if fits(each) and not misses(each)), None)


def is_included(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return (
        schema_fault(first) is None and schema_fault(second) is None and not inclusion_faults(first, second)
    )


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**40))
def test_what_is_called_included_has_no_counter_example(seed: int) -> None:
    first, second = Drawn(seed).pair()
    if is_included(first, second):
        assert counter_example(first, second) is None


def test_the_pairs_that_are_drawn_are_no_empty_claim() -> None:
    """Many are included though the second schema refuses something and the first one admits something; many are not."""
    told = missed = 0
    sample = OBJECTS[::7]
    for first, second in (Drawn(seed).pair() for seed in range(300)):
        if is_included(first, second):
            admits = jsonschema_rs.Draft202012Validator(first).is_valid
            asks = jsonschema_rs.Draft202012Validator(second).is_valid
            told += any(map(admits, sample)) and not all(map(asks, sample))
        else:
            missed += counter_example(first, second) is not None if not schema_fault(first) else 0
    assert told >= 30
    assert missed >= 30


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**40))
def test_a_schema_without_references_includes_itself(seed: int) -> None:
    document = Drawn(seed).document()
    if schema_fault(document) is None and "$ref" not in str(document):
        assert not inclusion_faults(document, document)


def one(schema: Any) -> dict[str, Any]:
    """Return the schema of an object whose property ``v`` fits a schema."""
    return {"type": "object", "properties": {"v": schema}, "required": ["v"], "additionalProperties": False}


TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "integer"}},
}
WIDE_TREE: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "properties": {"kids": {"items": {"$ref": "#/$defs/node"}}, "n": {"type": ["number", "string"]}},
        }
    },
}
INCLUDED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (one({"type": "integer"}), one({"type": "number"})),
    (one({"type": "integer"}), one({"type": ["string", "number"]})),
    (one({"const": 2.0}), one({"type": "integer"})),
    (one({"enum": ["a", "b"]}), one({"enum": ["a", "b", "c"]})),
    (one({"enum": ["a", "b"]}), one({"type": "string", "maxLength": 1})),
    (one({"type": "boolean"}), one({"enum": [True, False, 3]})),
    (one({"type": "integer", "minimum": 1, "maximum": 5}), one({"type": "number", "exclusiveMinimum": 0})),
    (one({"type": "integer", "multipleOf": 6}), one({"multipleOf": 3})),
    (one({"type": "string", "minLength": 3, "pattern": "^x"}), one({"pattern": "^x", "minLength": 2})),
    (one({"type": "string", "format": "readable-path"}), one({"type": "string", "format": "artifact-path"})),
    (one({"type": ["string", "null"]}), one({"anyOf": [{"type": "null"}, {"type": "string"}]})),
    (one({"type": ["string", "integer"]}), one({"oneOf": [{"type": "number"}, {"type": "string"}]})),
    (one({"anyOf": [{"const": 1}, {"const": "x"}]}), one({"enum": ["x", 1, 2]})),
    (one({"allOf": [{"type": "number"}, {"minimum": 3}]}), one({"type": "number", "minimum": 2})),
    (one({"type": "array", "items": {"type": "integer"}}), one({"items": {"type": "number"}})),
    (one({"enum": ["a"]}), one({"if": {"const": "b"}, "then": False})),
    (TREE, WIDE_TREE),
]
ONES: dict[str, Any] = {"additionalProperties": {"const": 1}}
EACH = {"items": {"const": 1}}
MISSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (one({"type": "number"}), one({"type": "integer"}), "/properties/v/type"),
    (one({"const": True}), one({"enum": [1]}), "/properties/v/enum"),
    (one({"enum": ["a", "b"]}), one({"enum": ["a"]}), "/properties/v/enum"),
    (one({"type": "string"}), one({"enum": ["a"]}), "/properties/v/enum"),
    (one({}), one({"type": "string"}), "/properties/v/type"),
    (one({"minimum": 1, "type": "number"}), one({"exclusiveMinimum": 1}), "/properties/v/exclusiveMinimum"),
    (one({"type": "string", "pattern": "^x"}), one({"pattern": "^xy"}), "/properties/v/pattern"),
    (one({"type": "array"}), one({"items": {"type": "string"}}), "/properties/v/items/type"),
    (
        one({"type": "array", "items": {"type": "string"}}),
        one({"contains": {"const": "x"}}),
        "/properties/v/contains",
    ),
    (one({"type": "integer"}), one({"oneOf": [{"type": "number"}, {"minimum": 3}]}), "/properties/v/oneOf"),
    (one({"type": ["string", "null"]}), one({"type": "string"}), "/properties/v/type"),
    ({"properties": {"v": {}}}, {"required": ["v"]}, "/required"),
    ({"properties": {"v": {}}}, {"additionalProperties": False}, "/additionalProperties"),
    (one(one({"type": "number"})), one(one({"type": "integer"})), "/properties/v/properties/v/type"),
    (WIDE_TREE, TREE, "/properties/kids/type"),
    ({}, {"$ref": "#/$defs/a", "$defs": {"a": {"required": ["v"]}}}, "/$defs/a/required"),
    ({"patternProperties": {"^v": {"const": 1}}}, {"properties": {"v": {"const": 1}}}, "/properties/v/const"),
    ({"patternProperties": {"v": {}}, **ONES}, ONES, "/additionalProperties/const"),
    (one({"prefixItems": [{}], "items": {"const": 1}}), one(EACH), "/properties/v/items/const"),
    ({}, {"unevaluatedProperties": {"type": "string"}}, "/unevaluatedProperties"),
]


@pytest.mark.parametrize(("first", "second"), INCLUDED)
def test_what_is_plainly_included_is_called_so(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert inclusion_faults(first, second) == {}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (one({"type": "string"}), one({"not": {"type": "number"}})),
        (one({}), one({"properties": {"a": {"type": "string"}}, "unevaluatedProperties": False})),
    ],
)
def test_what_is_true_and_not_proved_is_a_fault_that_says_so(first: Any, second: Any) -> None:
    assert any("cannot be proved" in message for message in inclusion_faults(first, second).values())


def test_names_that_are_alike_when_clipped_are_not_mixed_up() -> None:
    """A place is shown clipped; the schema at it is found by its whole name."""
    long, other = "n" * 300, "n" * 299 + "m"
    names = {long: {"enum": [1, "x"]}, other: {"enum": [1]}, "a\nb": {"const": 2}, "a/b~c": {"const": 3}}
    wanted = {"properties": {long: {"enum": [1]}, other: {"enum": [1]}, "a\nb": {"const": 2}, "a/b~c": {}}}
    faults = inclusion_faults({"properties": names}, wanted)
    assert len(faults) == 1
    assert inclusion_faults({"properties": names}, {"properties": names}) == {}
    assert all(len(place) < 300 and "\n" not in place for place in faults)


@pytest.mark.parametrize(("first", "second", "path"), MISSED)
def test_a_fault_is_named_at_its_place(first: dict[str, Any], second: dict[str, Any], path: str) -> None:
    assert path in inclusion_faults(first, second)


def test_every_fault_is_listed() -> None:
    first = {"properties": {"a": {"type": "number"}, "b": {"type": "string"}}, "additionalProperties": False}
    second = {"properties": {"a": {"type": "integer"}, "b": {"minLength": 1}}, "required": ["a", "b"]}
    assert inclusion_faults(first, second).keys() == {
        "/properties/a/type", "/properties/b/minLength", "/required",
    }  # fmt: skip


def test_a_hostile_schema_costs_little_and_proves_nothing() -> None:
    """Choices within choices, references that grow, ten thousand properties: an end in bounded work, never a pass."""
    choices = {"anyOf": [{"required": [str(number)]} for number in range(40)]}
    growing: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(18)
    }
    growing = {"$ref": "#/$defs/d0", "$defs": {**growing, "d18": {"type": "object"}}}
    wide = {"properties": {str(number): {"type": "string"} for number in range(30_000)}}
    deep: dict[str, Any] = {}
    for _ in range(95):
        deep = {"properties": {"v": deep}}
    deeper = {**deep, "additionalProperties": False}
    for first, second in (
        ({"allOf": [choices, choices, choices]}, {"required": ["x"]}),
        (growing, {"required": ["x"]}),
        (wide, {"properties": {str(number): {"type": "integer"} for number in range(30_000)}}),
        (deep, deeper),
        ({"type": "object"}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a", "required": ["x"]}}}),
    ):
        assert inclusion_faults(first, second)


def test_a_reference_that_is_not_understood_proves_nothing() -> None:
    anchored = {"$ref": "#here", "$defs": {"a": {"$anchor": "here"}}}
    inner = {"properties": {"v": {"$id": "urn:x", "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}}}
    for second in (anchored, inner, {"$dynamicRef": "#"}, {"properties": {"v": {"$ref": "urn:elsewhere"}}}):
        assert inclusion_faults({"type": "object"}, second)
