"""A JSON Schema taken apart into cases: of one type each, and of one value each where it lists them.

Invariant: every value that fits the schema is of one of its cases. Whatever is not understood is left out, which only
makes a case wider. The work of one question is bounded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from reyn_jupyter.catalog.arguments.schema_document import pattern_options

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MOST_LOOKS = 20_000  # cases and keywords of one question
MOST_CASES = 1_000  # of one schema; a list of values that is longer is not looked into
DEEPEST = 60  # levels of values
_KINDS = ("null", "boolean", "number", "string", "array", "object")
_NO_VALUE = object()
SIMPLE = frozenset(  # what can be checked of a value without a look at other schemas
    {"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"}
    | {"required", "minProperties", "maxProperties", "dependentRequired"}
)
_REFERS = ("$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor")


@dataclass(frozen=True)
class SchemaPart:
    """A schema, and the document that it refers into."""

    schema: Any
    root: Any


SchemaParts = tuple[SchemaPart, ...]  # values that fit each of them


@dataclass(frozen=True, eq=False)
class SchemaCase:
    """Values of one kind that fit all parts; or one value."""

    kind: str
    parts: SchemaParts
    value: Any = _NO_VALUE

    @property
    def has_value(self) -> bool:
        return self.value is not _NO_VALUE

    def all_of(self, key: str) -> list[Any]:
        """Return what the parts say under a keyword."""
        return [part.schema[key] for part in self.parts if key in part.schema]


class TooInvolvedError(Exception):
    """More work than a question may be."""


class SchemaCases:
    """The cases of the schemas of one question, with what the question has spent."""

    def __init__(self) -> None:
        self._left = MOST_LOOKS
        self._kept: list[Any] = []  # schemas made on the way, so that no other one gets their identity
        self._has_ids: dict[int, bool] = {}
        self._engines: dict[tuple[int, str], Draft202012Validator | None] = {}
        self._texts: dict[int, str | None] = {}

    def spend(self) -> None:
        """Count one look. Raises TooInvolvedError when there were too many."""
        self._left -= 1
        if self._left < 0:
            raise TooInvolvedError

    def cases(self, parts: SchemaParts) -> list[SchemaCase]:
        """Return the cases of values that fit all parts."""
        found: list[SchemaCase] = []
        for alternative in self._alternatives(parts, ()):
            found += self._cases_of(alternative)
            if len(found) > MOST_CASES:
                raise TooInvolvedError
        return found

    def _alternatives(self, parts: Iterable[SchemaPart], seen: tuple[int, ...]) -> list[SchemaParts]:
        """Return lists of parts without a choice in them; a value fits all of `parts` only if it fits one list."""
        found: list[SchemaParts] = [()]
        for part in parts:
            found = _product(found, self._alternatives_of(part, seen))
        return found

    def _alternatives_of(self, part: SchemaPart, seen: tuple[int, ...]) -> list[SchemaParts]:
        self.spend()
        schema = part.schema
        if schema is False:
            return []
        if not isinstance(schema, Mapping):
            return [()]
        if len(seen) > DEEPEST:
            raise TooInvolvedError
        found: list[SchemaParts] = [(part,)]
        inner = (*seen, id(schema))
        if "$ref" in schema:
            target = self.target(part)
            if target is not None and id(target[0].schema) not in inner:
                found = _product(found, self._alternatives_of(target[0], inner))
        for each in schema.get("allOf", ()):
            found = _product(found, self._alternatives_of(SchemaPart(each, part.root), inner))
        for key in ("anyOf", "oneOf"):
            if key in schema:
                choices = [
                    one
                    for each in schema[key]
                    for one in self._alternatives_of(SchemaPart(each, part.root), inner)
                ]
                found = _product(found, choices)
        return found

    def _cases_of(self, parts: SchemaParts) -> list[SchemaCase]:
        """Return the cases of a list of parts, one for each kind or value."""
        lists = [listed_values(part.schema) for part in parts]
        shortest = min((each for each in lists if each is not None), key=len, default=None)
        if shortest is not None and len(shortest) <= MOST_CASES:
            fitting = [
                value
                for value in shortest
                if not any(self.misses_simply(value, part.schema) for part in parts)
            ]
            return [SchemaCase(kind_of(value), parts, value) for value in fitting]
        kinds: Sequence[str] = _KINDS
        for part in parts:
            if "type" in part.schema:
                named = part.schema["type"]
                kinds = common_kinds(kinds, [named] if isinstance(named, str) else named)
        found = []
        for kind in kinds:
            if kind == "null":
                found.append(SchemaCase(kind, parts, None))
            elif kind == "boolean":
                found += [SchemaCase(kind, parts, False), SchemaCase(kind, parts, True)]
            else:
                found.append(SchemaCase(kind, parts))
        return found

    def constant(self, value: Any) -> SchemaParts:
        """Return what only one value fits."""
        schema = {"const": value}
        self._kept.append(schema)
        return (SchemaPart(schema, None),)

    def property_of(self, case: SchemaCase, name: str) -> SchemaParts | None:
        """Return what a property's value fits; None where there is none of this name."""
        if case.has_value:
            return self.constant(case.value[name]) if name in case.value else None
        found = []
        for part in case.parts:
            named = part.schema.get("properties", {})
            if name in named:
                found.append(SchemaPart(named[name], part.root))
            elif "additionalProperties" in part.schema and not part.schema.get("patternProperties"):
                found.append(SchemaPart(part.schema["additionalProperties"], part.root))
        return tuple(found)

    def other_property(self, case: SchemaCase) -> SchemaParts | None:
        """Return what the value of a property fits that no part names; None where there is none."""
        if case.has_value:
            return None
        return tuple(
            SchemaPart(part.schema["additionalProperties"], part.root)
            for part in case.parts
            if "additionalProperties" in part.schema and not part.schema.get("patternProperties")
        )

    def elements(self, case: SchemaCase) -> tuple[list[SchemaParts], SchemaParts | None]:
        """Return what the first elements of an array fit, and what those behind them do; None where there are none."""
        if case.has_value:
            return [self.constant(each) for each in case.value], None
        length = max((len(each) for each in case.all_of("prefixItems")), default=0)
        most = least(case.all_of("maxItems"))
        first = [self._element(case, index) for index in range(min(length, most))]
        return first, None if length >= most else self._element(case, length)

    def _element(self, case: SchemaCase, index: int) -> SchemaParts:
        found = []
        for part in case.parts:
            before = part.schema.get("prefixItems", ())
            if index < len(before):
                found.append(SchemaPart(before[index], part.root))
            elif "items" in part.schema:
                found.append(SchemaPart(part.schema["items"], part.root))
        return tuple(found)

    def target(self, part: SchemaPart) -> tuple[SchemaPart, str] | None:
        """Return what a part refers to, and its place in the document; None for other than plain pointers."""
        ref, root = part.schema["$ref"], part.root
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")) or self._has_inner_ids(root):
            return None
        found: Any = root
        for step in unquote(ref[2:]).split("/") if ref != "#" else ():
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and step in found:
                found = found[step]
            elif isinstance(found, list | tuple) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return (SchemaPart(found, root), unquote(ref[1:])) if isinstance(found, Mapping | bool) else None

    def _has_inner_ids(self, root: Any) -> bool:
        """Return whether a part of a document has an identity of its own, against which pointers would be read."""
        if id(root) not in self._has_ids:
            pending = list(root.values()) if isinstance(root, Mapping) else []
            found = False
            while pending and not found:
                part = pending.pop()
                if isinstance(part, Mapping):
                    found = "$id" in part
                    pending += part.values()
                elif isinstance(part, list | tuple):
                    pending += part
            self._has_ids[id(root)] = found
        return self._has_ids[id(root)]

    def is_never(self, case: SchemaCase, name: str) -> bool:
        """Return whether an object of a case never has a property."""
        fitting = self.property_of(case, name)
        return fitting is None or not self.cases(fitting)

    def possible_names(self, case: SchemaCase) -> frozenset[str] | None:
        """Return the names that an object of a case may have; None where it may have others."""
        if case.has_value:
            return frozenset(case.value)
        others = self.other_property(case)
        if others is not None and self.cases(others):
            return None
        return frozenset(name for name in named_properties(case) if not self.is_never(case, name))

    # Values and schemas that need no other ones.

    def alone(self, schema: Any) -> str | None:
        """Return a schema as text if it refers to nothing and nothing of it can be referred to; else None."""
        if id(schema) not in self._texts:
            self._texts[id(schema)] = schema_text(schema) if stands_alone(schema) else None
        return self._texts[id(schema)]

    def misses_simply(self, value: Any, schema: Mapping[str, Any]) -> bool:
        """Return whether it is certain that a value misses a keyword that says nothing of other schemas."""
        return self.check(value, schema, "simple") is False

    def check(self, value: Any, schema: Mapping[str, Any], of: str) -> bool | None:
        """Return whether a value fits a schema, or a part of it; None where the engine cannot tell.

        Args:
            of: "all" keywords of a schema that stands alone, those that are "simple", or one simple keyword.
        """
        import jsonschema_rs

        self.spend()
        key = (id(schema), of)
        try:
            if key not in self._engines:
                self._engines[key] = None
                part = {each: schema[each] for each in schema if of == "all" or each == of}
                if of == "simple":
                    part = {each: schema[each] for each in schema if each in SIMPLE}
                self._engines[key] = jsonschema_rs.Draft202012Validator(
                    part, validate_formats=False, pattern_options=pattern_options(), offline=True
                )
            engine = self._engines[key]
            return None if engine is None else engine.is_valid(value)
        except (ValueError, jsonschema_rs.ValidationError):
            return None  # a pattern that it does not know, half a character


def _product(left: list[SchemaParts], right: list[SchemaParts]) -> list[SchemaParts]:
    """Return every list of one side with every one of the other. Raises TooInvolvedError for too many."""
    if len(left) * len(right) > MOST_CASES:
        raise TooInvolvedError
    return [(*one, *other) for one in left for other in right]


def common_kinds(kinds: Sequence[str], named: Sequence[str]) -> list[str]:
    """Return the kinds that are of both lists."""
    found = []
    for kind in kinds:
        if kind in named or (kind == "integer" and "number" in named):
            found.append(kind)
        elif kind == "number" and "integer" in named:
            found.append("integer")
    return found


def listed_values(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return the values that a schema lists; None where it lists none."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list | tuple) else None


def kind_of(value: Any) -> str:
    """Return the type of a JSON value; 2.0 is an integer, as JSON Schema has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def required_names(case: SchemaCase) -> set[str]:
    """Return the names of the properties that an object of a case has for certain."""
    return (
        set(case.value) if case.has_value else {name for names in case.all_of("required") for name in names}
    )


def named_properties(case: SchemaCase) -> frozenset[str]:
    """Return the names of properties that a case says something of."""
    if case.has_value:
        return frozenset(case.value)
    return frozenset(name for named in case.all_of("properties") for name in named) | required_names(case)


def lower_bounds(case: SchemaCase) -> list[tuple[float, bool]]:
    """Return the least numbers of a case, and whether they themselves are left out."""
    found = [(each, False) for each in case.all_of("minimum")]
    found += [(each, True) for each in case.all_of("exclusiveMinimum")]
    if case.kind == "integer":
        found += [(math.floor(bound) + 1 if strict else math.ceil(bound), False) for bound, strict in found]
    return found


def upper_bounds(case: SchemaCase) -> list[tuple[float, bool]]:
    """Return the greatest numbers of a case, and whether they themselves are left out."""
    found = [(each, False) for each in case.all_of("maximum")]
    found += [(each, True) for each in case.all_of("exclusiveMaximum")]
    if case.kind == "integer":
        found += [(math.ceil(bound) - 1 if strict else math.floor(bound), False) for bound, strict in found]
    return found


def least(bounds: Iterable[float]) -> int:
    """Return the least of some bounds; without one, more than any length."""
    return int(min(bounds, default=1 << 62))


def stands_alone(schema: Any) -> bool:
    """Return whether a schema refers to nothing, and nothing of it can be referred to: it can be checked with alone."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if any(key in part for key in _REFERS):
                return False
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part
    return True


def schema_text(value: Any) -> str:
    """Return a schema as JSON that is the same for equal schemas."""
    return json.dumps(value, sort_keys=True)
