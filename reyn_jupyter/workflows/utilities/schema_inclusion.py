"""Whether every value that one JSON Schema admits is admitted by another one, as far as that can be proved.

Invariant: where no fault is found, no JSON value that fits the first schema misses the second. The converse does not
hold: what is true and not proved is a fault too, which says so. The work is bounded. Schemas are those that
`contract.schema_fault` has nothing against; `format` asserts nothing, as JSON Schema 2020-12 has it by default.

How: the first schema is taken apart into cases, see `schema_cases`; each keyword of the second is then a demand that
every case has to meet. Whatever of the second is not understood is a fault. A question that comes up again deeper
inside a value is taken as answered: values are finite, so that is an induction over their size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import enumerate_words
from reyn_jupyter.workflows.utilities.schema_cases import (
    DEEPEST,
    SIMPLE,
    SchemaCase,
    SchemaCases,
    SchemaPart,
    SchemaParts,
    TooInvolvedError,
    common_kinds,
    kind_of,
    least,
    listed_values,
    lower_bounds,
    named_properties,
    required_names,
    schema_text,
    stands_alone,
    upper_bounds,
)

Faults = dict[str, str]  # a JSON Pointer into the second schema, and a message
# Keywords that mean something by themselves, so that the same one on both sides is met.
_ALONE = (
    ("pattern",),
    ("not",),
    ("propertyNames",),
    ("patternProperties",),
    ("dependentSchemas",),
    ("dependentRequired",),
    ("uniqueItems",),
    ("multipleOf",),
    ("contains", "minContains", "maxContains"),
    ("if", "then", "else"),
)
_OF_KIND = {
    "array": frozenset(
        {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"}
    ),
    "object": frozenset(
        {"properties", "patternProperties", "additionalProperties", "required", "minProperties"}
        | {"maxProperties", "dependentRequired", "dependentSchemas", "propertyNames", "unevaluatedProperties"}
    ),
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}
_OF_ANY = frozenset({"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if"})
_UNKNOWN = frozenset({"$dynamicRef", "$recursiveRef", "dependencies"})
_OTHER_APPLICATORS = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "patternProperties", "$dynamicRef"}
    | {"additionalProperties", "prefixItems", "items", "contains"}
)


@dataclass(frozen=True)
class InclusionWords:
    """How a fault names the two sides.

    Attributes:
        may: "the step may send", what begins a sentence about a value of the first schema.
        takes: "the utility takes", what begins one about the second.
        lacks: "the step does not always send it", of a property that is required and not certain.
    """

    may: str = "it may be"
    takes: str = "what is needed is"
    lacks: str = "it may be missing"


def inclusion_faults(
    first: Mapping[str, Any], second: Mapping[str, Any], words: InclusionWords | None = None
) -> Faults:
    """Return where an object that fits the first schema may miss the second.

    Args:
        first: of the objects that there may be.
        second: what they have to fit.
        words: for messages.

    Returns:
        a message for each place, by the JSON Pointer of the second schema; none where every object fits.

    Example:
        >>> inclusion_faults({"properties": {"n": {"type": "number"}}}, {"properties": {"n": {"type": "integer"}}})
        {'/properties/n/type': 'it may be a number, what is needed is an integer'}
    """
    try:
        return _Inclusion(words or InclusionWords()).faults(
            (SchemaPart(first, first), SchemaPart({"type": "object"}, None)), second
        )
    except (TooInvolvedError, RecursionError):
        return {"": "the schemas are too involved for a proof that one fits the other"}


class _Inclusion:
    """One question, with what was asked on the way to its answer."""

    def __init__(self, words: InclusionWords) -> None:
        self._words = words
        self._schemas = SchemaCases()
        self._depth = 0
        self._asked: set[tuple[frozenset[tuple[int, int]], int, int]] = set()

    def faults(self, first: SchemaParts, second: Mapping[str, Any]) -> Faults:
        return self._included(first, SchemaPart(second, second), "")

    # The second schema: a demand for each keyword.

    def _included(self, first: SchemaParts, second: SchemaPart, path: str) -> Faults:
        """Return where values that fit all of `first` may miss `second`. Only asked of values within another one."""
        if second.schema is True or second.schema == {}:
            return {}
        key = (
            frozenset((id(part.schema), id(part.root)) for part in first),
            id(second.schema),
            id(second.root),
        )
        if key in self._asked:
            return {}
        if self._depth >= DEEPEST:
            raise TooInvolvedError
        self._asked.add(key)
        self._depth += 1
        try:
            found: Faults = {}
            for case in self._schemas.cases(first):
                for place, message in self._missed(case, second, path, ()).items():
                    found.setdefault(place, message)
            return found
        finally:
            self._depth -= 1
            self._asked.discard(key)

    def _missed(self, case: SchemaCase, second: SchemaPart, path: str, seen: tuple[int, ...]) -> Faults:
        """Return where values of a case may miss a schema."""
        self._schemas.spend()
        schema = second.schema
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            return {path: f"{self._words.may} something here, and nothing is admitted"}
        if id(schema) in seen or len(seen) > DEEPEST:
            return {path: "the schema refers to itself, so nothing can be proved"}
        text = self._schemas.alone(schema)
        if text is not None and case.has_value and self._schemas.check(case.value, schema, "all") is True:
            return {}
        if text is not None and any(self._schemas.alone(part.schema) == text for part in case.parts):
            return {}
        found: Faults = {}
        kind = "number" if case.kind == "integer" else case.kind
        for key in schema:
            place = f"{path}/{key}"
            if key in _UNKNOWN:
                found[place] = f"{key} is not understood, so nothing can be proved"
            elif key in _OF_ANY or key in _OF_KIND.get(kind, ()):
                found.update(self._demanded(key, case, second, place, path, (*seen, id(schema))))
        if not found and case.has_value and text is not None:
            found[path] = f"{self._words.may} {_shown(case.value)}, which is not admitted"
        return found

    def _demanded(
        self, key: str, case: SchemaCase, second: SchemaPart, place: str, path: str, seen: tuple[int, ...]
    ) -> Faults:
        """Return where values of a case may miss one keyword of a schema."""
        schema = second.schema
        if key in SIMPLE:
            met = (
                self._schemas.check(case.value, schema, key) is True
                if case.has_value
                else self._is_met(key, schema[key], case)
            )
            return (
                {}
                if met or _same_keyword(key, case, schema)
                else self._simple_fault(key, case, schema, place)
            )
        if _same_keyword(key, case, schema):
            return {}
        match key:
            case "properties" | "patternProperties" | "additionalProperties" | "unevaluatedProperties":
                return self._properties(key, case, second, place)
            case "items" | "prefixItems" | "unevaluatedItems":
                return self._items(key, case, second, place)
            case "propertyNames":
                return self._property_names(case, second, place)
            case "dependentSchemas":
                return self._dependent_schemas(case, second, place, seen)
            case "contains":
                return {place: f"{self._words.may} arrays of which {key} cannot be proved"}
            case _:
                return self._combined(key, case, second, place, path, seen)

    def _combined(
        self, key: str, case: SchemaCase, second: SchemaPart, place: str, path: str, seen: tuple[int, ...]
    ) -> Faults:
        """Return where values of a case may miss a keyword that holds other schemas against the same values."""
        schema, root = second.schema, second.root
        match key:
            case "$ref":
                target = self._schemas.target(second)
                if target is None:
                    return {place: "what is referred to is not understood, so nothing can be proved"}
                return self._missed(case, target[0], target[1], seen)
            case "allOf":
                found: Faults = {}
                for index, each in enumerate(schema[key]):
                    found.update(self._missed(case, SchemaPart(each, root), f"{place}/{index}", seen))
                return found
            case "anyOf" | "oneOf":
                return self._one_of(key, case, second, place, seen)
            case "not":
                if self._apart(case, SchemaPart(schema[key], root), seen):
                    return {}
                return {place: f"{self._words.may} what is excluded here"}
            case _:
                return self._conditional(case, second, path, seen)

    def _is_met(self, key: str, bound: Any, case: SchemaCase) -> bool:
        """Return whether all values of a case meet a keyword that says nothing of other schemas."""
        if case.kind in ("number", "integer") and key != "type":
            return self._number_is_met(key, bound, case)
        match key:
            case "type":
                kinds = [bound] if isinstance(bound, str) else bound
                return case.kind in kinds or (case.kind == "integer" and "number" in kinds)
            case "minLength" | "minItems":
                return bound <= 0 or any(each >= bound for each in case.all_of(key))
            case "maxLength":
                return any(each <= bound for each in case.all_of(key))
            case "maxItems":
                first, rest = self._schemas.elements(case)
                closed = rest is None or not self._schemas.cases(rest)
                return any(each <= bound for each in case.all_of(key)) or (closed and len(first) <= bound)
            case "uniqueItems":
                return bound is False or least(case.all_of("maxItems")) <= 1
            case "required":
                return set(bound) <= required_names(case)
            case "minProperties":
                return bound <= len(required_names(case)) or any(each >= bound for each in case.all_of(key))
            case "maxProperties":
                names = self._schemas.possible_names(case)
                few = names is not None and len(names) <= bound
                return few or any(each <= bound for each in case.all_of(key))
            case "dependentRequired":
                certain = required_names(case)
                return all(
                    set(needed) <= certain or self._schemas.is_never(case, name)
                    for name, needed in bound.items()
                )
            case _:  # enum, const and pattern: nothing but a list of values, or the same pattern, meets them
                return False

    def _number_is_met(self, key: str, bound: Any, case: SchemaCase) -> bool:
        """Return whether all numbers of a case meet a keyword."""
        match key:
            case "minimum":
                return any(lower >= bound for lower, _ in lower_bounds(case))
            case "exclusiveMinimum":
                return any(
                    lower > bound or (strict and lower >= bound) for lower, strict in lower_bounds(case)
                )
            case "maximum":
                return any(upper <= bound for upper, _ in upper_bounds(case))
            case "exclusiveMaximum":
                return any(
                    upper < bound or (strict and upper <= bound) for upper, strict in upper_bounds(case)
                )
            case "multipleOf":
                own = case.all_of(key)
                whole = isinstance(bound, int)
                return (bound == 1 and case.kind == "integer") or (
                    whole and any(isinstance(each, int) and each % bound == 0 for each in own)
                )
            case _:
                return False

    def _simple_fault(self, key: str, case: SchemaCase, schema: Mapping[str, Any], place: str) -> Faults:
        words, bound = self._words, schema[key]
        if key == "required":
            certain = set(case.value) if case.has_value else required_names(case)
            missing = [name for name in bound if name not in certain]
            return {
                f"{place}": f"{enumerate_words(list(map(_shown, missing)), 'and')} required, {words.lacks}"
            }
        if key == "type":
            wanted = enumerate_words(
                [_NOUNS[each] for each in ([bound] if isinstance(bound, str) else bound)], "or"
            )
            given = _shown(case.value) if case.has_value else _NOUNS[case.kind]
            return {place: f"{words.may} {given}, {words.takes} {wanted}"}
        if case.has_value:
            return {place: f"{words.may} {_shown(case.value)}, {words.takes} {key} {_shown(bound)}"}
        return {place: f"{words.may} {_NOUNS[case.kind]} of which {key} {_shown(bound)} is not certain"}

    def _one_of(
        self, key: str, case: SchemaCase, second: SchemaPart, place: str, seen: tuple[int, ...]
    ) -> Faults:
        forms = [SchemaPart(each, second.root) for each in second.schema[key]]
        for index, form in enumerate(forms):
            if self._missed(case, form, f"{place}/{index}", seen):
                continue
            if key == "anyOf":
                return {}
            if all(self._apart(case, other, seen) for other in forms if other is not form):
                return {}
            return {place: f"{self._words.may} what may fit more than one of the forms here"}
        given = _shown(case.value) if case.has_value else _NOUNS[case.kind]
        return {place: f"{self._words.may} {given} that fits none of the forms here"}

    def _conditional(self, case: SchemaCase, second: SchemaPart, path: str, seen: tuple[int, ...]) -> Faults:
        schema, root = second.schema, second.root
        condition = SchemaPart(schema["if"], root)
        found: Faults = {}
        if "then" in schema:
            missed = self._missed(case, SchemaPart(schema["then"], root), f"{path}/then", seen)
            if missed and not self._apart(case, condition, seen):
                found.update(missed)
        if "else" in schema:
            missed = self._missed(case, SchemaPart(schema["else"], root), f"{path}/else", seen)
            if missed and self._missed(case, condition, f"{path}/if", seen):
                found.update(missed)
        return found

    def _properties(self, key: str, case: SchemaCase, second: SchemaPart, place: str) -> Faults:
        schema, root = second.schema, second.root
        named = schema.get("properties", {})
        found: Faults = {}
        if key == "properties":
            for name, part in named.items():
                fitting = self._schemas.property_of(case, name)
                if fitting is not None:
                    found.update(self._included(fitting, SchemaPart(part, root), f"{place}/{_escaped(name)}"))
            return found
        if key == "patternProperties":
            for pattern, part in schema[key].items():  # whichever names it matches
                inner = f"{place}/{_escaped(pattern)}"
                found.update(self._all_values(case, frozenset(), SchemaPart(part, root), inner))
            return found
        if key == "unevaluatedProperties" and schema.keys() & _OTHER_APPLICATORS:
            if schema[key] is True or schema[key] == {}:
                return {}
            return {place: f"{key} is not understood here, so nothing can be proved"}
        return self._all_values(case, frozenset(named), SchemaPart(schema[key], root), place)

    def _all_values(self, case: SchemaCase, but: frozenset[str], second: SchemaPart, place: str) -> Faults:
        """Return where the value of any property but some may miss a schema."""
        found: Faults = {}
        for name in sorted(named_properties(case) - but):
            fitting = self._schemas.property_of(case, name)
            if fitting is None:
                continue
            if second.schema is False:
                if self._schemas.cases(fitting):
                    found.setdefault(place, f"{self._words.may} {_shown(name)}, which is not known there")
            else:
                for inner, message in self._included(fitting, second, place).items():
                    found.setdefault(inner, message)
        others = self._schemas.other_property(case)
        if others is not None:
            if second.schema is False:
                if self._schemas.cases(others):
                    message = f"{self._words.may} properties that it does not name, which are not known there"
                    found.setdefault(place, message)
            else:
                for inner, message in self._included(others, second, place).items():
                    found.setdefault(inner, message)
        return found

    def _items(self, key: str, case: SchemaCase, second: SchemaPart, place: str) -> Faults:
        schema, root = second.schema, second.root
        before = schema.get("prefixItems", ())
        if key == "unevaluatedItems":
            if schema[key] is True or schema[key] == {}:
                return {}
            return {place: f"{key} is not understood, so nothing can be proved"}
        first, rest = self._schemas.elements(case)
        most = least(case.all_of("maxItems"))
        found: Faults = {}
        if key == "prefixItems":
            for index, part in enumerate(before):
                fitting = first[index] if index < len(first) else rest
                if fitting is not None and index < most:
                    found.update(self._included(fitting, SchemaPart(part, root), f"{place}/{index}"))
            return found
        elements = [*first[len(before) :], *([rest] if rest is not None and most > len(before) else [])]
        for fitting in elements:
            for inner, message in self._included(fitting, SchemaPart(schema[key], root), place).items():
                found.setdefault(inner, message)
        return found

    def _property_names(self, case: SchemaCase, second: SchemaPart, place: str) -> Faults:
        names = self._schemas.possible_names(case)
        if names is None:
            return {place: f"{self._words.may} properties of any name"}
        found: Faults = {}
        for name in sorted(names):
            part = SchemaPart(second.schema["propertyNames"], second.root)
            inner = self._included(self._schemas.constant(name), part, place)
            for path, message in inner.items():
                found.setdefault(path, message)
        return found

    def _dependent_schemas(
        self, case: SchemaCase, second: SchemaPart, place: str, seen: tuple[int, ...]
    ) -> Faults:
        found: Faults = {}
        for name, part in second.schema["dependentSchemas"].items():
            if not self._schemas.is_never(case, name):
                inner = f"{place}/{_escaped(name)}"
                found.update(self._missed(case, SchemaPart(part, second.root), inner, seen))
        return found

    # Whether no value of a case fits a schema.

    def _apart(self, case: SchemaCase, other: SchemaPart, seen: tuple[int, ...]) -> bool:
        """Return whether it is certain that no value of a case fits a schema."""
        self._schemas.spend()
        schema = other.schema
        if schema is False:
            return True
        if not isinstance(schema, Mapping) or id(schema) in seen or len(seen) > DEEPEST:
            return False
        if case.has_value and self._schemas.alone(schema) is not None:
            return self._schemas.check(case.value, schema, "all") is False
        if "type" in schema:
            named = schema["type"]
            if not common_kinds([case.kind], [named] if isinstance(named, str) else named):
                return True
        values = listed_values(schema)
        if values is not None and all(self._excludes(case, value) for value in values):
            return True
        if case.has_value and self._schemas.misses_simply(case.value, schema):
            return True
        if case.kind == "object" and self._objects_apart(case, other):
            return True
        return self._combined_apart(case, other, (*seen, id(schema)))

    def _combined_apart(self, case: SchemaCase, other: SchemaPart, seen: tuple[int, ...]) -> bool:
        """Return whether a schema admits no value of a case because of the schemas that it holds against the same."""
        schema, root = other.schema, other.root
        target = self._schemas.target(other) if "$ref" in schema else None
        if target is not None and self._apart(case, target[0], seen):
            return True
        if any(self._apart(case, SchemaPart(each, root), seen) for each in schema.get("allOf", ())):
            return True
        for key in ("anyOf", "oneOf"):
            if key in schema and all(self._apart(case, SchemaPart(each, root), seen) for each in schema[key]):
                return True
        return "not" in schema and not self._missed(case, SchemaPart(schema["not"], root), "", seen)

    def _objects_apart(self, case: SchemaCase, other: SchemaPart) -> bool:
        """Return whether a schema asks for a property that no object of a case has, or has other values of."""
        if any(self._schemas.is_never(case, name) for name in other.schema.get("required", ())):
            return True
        certain = required_names(case)
        for name, part in other.schema.get("properties", {}).items():
            fitting = self._schemas.property_of(case, name) if name in certain else None
            if fitting is not None and all(
                self._apart(each, SchemaPart(part, other.root), ()) for each in self._schemas.cases(fitting)
            ):
                return True
        return False

    def _excludes(self, case: SchemaCase, value: Any) -> bool:
        """Return whether a value is none of a case, by what can be seen of it at once."""
        if case.has_value:
            return self._schemas.check(value, self._schemas.constant(case.value)[0].schema, "all") is False
        if not common_kinds([case.kind], [kind_of(value)]):
            return True
        return any(self._schemas.misses_simply(value, part.schema) for part in case.parts)


_NOUNS = {
    "null": "null",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "array": "an array",
    "object": "an object",
}


def _same_keyword(key: str, case: SchemaCase, schema: Mapping[str, Any]) -> bool:
    """Return whether a part of a case says the very same under a keyword that means something by itself."""
    group = next((each for each in _ALONE if key in each), ())
    wanted = {each: schema[each] for each in group if each in schema}
    if not wanted or case.has_value or not stands_alone(wanted):
        return False
    return any(
        schema_text({each: part.schema[each] for each in group if each in part.schema}) == schema_text(wanted)
        for part in case.parts
    )


def _escaped(name: str) -> str:
    return clip_line(name.replace("~", "~0").replace("/", "~1"))


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > 8:
        value = [*value[:8], "…"]
    return clip_line(json.dumps(value, ensure_ascii=False), 80)
