"""Whether every value that one JSON Schema admits is admitted by another one, as far as that can be proved.

Invariant: where no fault is found, no JSON value that fits the first schema misses the second. The converse does not
hold: what is true and not proved is a fault too, which says so. The work is bounded. Schemas are those that
`contract.schema_fault` has nothing against; `format` asserts nothing, as JSON Schema 2020-12 has it by default.

How: the first schema is taken apart into cases of one type each (and of one value each, where it lists them); each
keyword of the second is then a demand that every case has to meet. Whatever of the first is not understood is left out,
which only makes it wider; whatever of the second is not understood is a fault. A question that comes up again deeper
inside a value is taken as answered: values are finite, so that is an induction over their size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from reyn_jupyter.catalog.arguments.schema_document import pattern_options
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import enumerate_words

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MOST_LOOKS = 20_000  # cases and keywords of one question
MOST_CASES = 1_000  # of one schema; a list of values that is longer is not looked into
DEEPEST = 60  # levels of values
Faults = dict[str, str]  # a JSON Pointer into the second schema, and a message
_KINDS = ("null", "boolean", "number", "string", "array", "object")
_NO_VALUE = object()
_SIMPLE = frozenset(  # what can be checked of a value without a look at other schemas
    {"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"}
    | {"required", "minProperties", "maxProperties", "dependentRequired"}
)
_REFERS = ("$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor")
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
            (_Part(first, first), _Part({"type": "object"}, None)), second
        )
    except (_TooInvolvedError, RecursionError):
        return {"": "the schemas are too involved for a proof that one fits the other"}


@dataclass(frozen=True)
class _Part:
    """A schema, and the document that it refers into."""

    schema: Any
    root: Any


_All = tuple[_Part, ...]  # values that fit each of them


@dataclass(frozen=True, eq=False)
class _Case:
    """Values of one kind that fit all parts; or one value."""

    kind: str
    parts: _All
    value: Any = _NO_VALUE

    @property
    def has_value(self) -> bool:
        return self.value is not _NO_VALUE

    def all_of(self, key: str) -> list[Any]:
        """Return what the parts say under a keyword."""
        return [part.schema[key] for part in self.parts if key in part.schema]


class _TooInvolvedError(Exception):
    """More work than a question may be."""


class _Inclusion:
    """One question, with what it has spent."""

    def __init__(self, words: InclusionWords) -> None:
        self._words = words
        self._left = MOST_LOOKS
        self._depth = 0
        self._asked: set[tuple[frozenset[tuple[int, int]], int, int]] = set()
        self._kept: list[Any] = []  # schemas made on the way, so that no other one gets their identity
        self._has_ids: dict[int, bool] = {}
        self._engines: dict[tuple[int, str], Draft202012Validator | None] = {}
        self._texts: dict[int, str | None] = {}

    def faults(self, first: _All, second: Mapping[str, Any]) -> Faults:
        return self._included(first, _Part(second, second), "")

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooInvolvedError

    # The first schema, taken apart.

    def _cases(self, parts: _All) -> list[_Case]:
        """Return the cases of values that fit all parts."""
        found: list[_Case] = []
        for alternative in self._alternatives(parts, ()):
            found += self._cases_of(alternative)
            if len(found) > MOST_CASES:
                raise _TooInvolvedError
        return found

    def _alternatives(self, parts: Iterable[_Part], seen: tuple[int, ...]) -> list[_All]:
        """Return lists of parts without a choice in them; a value fits all of `parts` only if it fits one list."""
        found: list[_All] = [()]
        for part in parts:
            found = _product(found, self._alternatives_of(part, seen))
        return found

    def _alternatives_of(self, part: _Part, seen: tuple[int, ...]) -> list[_All]:
        self._spend()
        schema = part.schema
        if schema is False:
            return []
        if not isinstance(schema, Mapping):
            return [()]
        if len(seen) > DEEPEST:
            raise _TooInvolvedError
        found: list[_All] = [(part,)]
        inner = (*seen, id(schema))
        if "$ref" in schema:
            target = self._target(part)
            if target is not None and id(target[0].schema) not in inner:
                found = _product(found, self._alternatives_of(target[0], inner))
        for each in schema.get("allOf", ()):
            found = _product(found, self._alternatives_of(_Part(each, part.root), inner))
        for key in ("anyOf", "oneOf"):
            if key in schema:
                choices = [
                    one
                    for each in schema[key]
                    for one in self._alternatives_of(_Part(each, part.root), inner)
                ]
                found = _product(found, choices)
        return found

    def _cases_of(self, parts: _All) -> list[_Case]:
        """Return the cases of a list of parts, one for each kind or value."""
        lists = [_values(part.schema) for part in parts]
        shortest = min((each for each in lists if each is not None), key=len, default=None)
        if shortest is not None and len(shortest) <= MOST_CASES:
            fitting = [
                value
                for value in shortest
                if not any(self._misses_simply(value, part.schema) for part in parts)
            ]
            return [_Case(_kind_of(value), parts, value) for value in fitting]
        kinds: Sequence[str] = _KINDS
        for part in parts:
            if "type" in part.schema:
                named = part.schema["type"]
                kinds = _common(kinds, [named] if isinstance(named, str) else named)
        found = []
        for kind in kinds:
            if kind == "null":
                found.append(_Case(kind, parts, None))
            elif kind == "boolean":
                found += [_Case(kind, parts, False), _Case(kind, parts, True)]
            else:
                found.append(_Case(kind, parts))
        return found

    def _constant(self, value: Any) -> _All:
        schema = {"const": value}
        self._kept.append(schema)
        return (_Part(schema, None),)

    def _property(self, case: _Case, name: str) -> _All | None:
        """Return what a property's value fits; None where there is none of this name."""
        if case.has_value:
            return self._constant(case.value[name]) if name in case.value else None
        found = []
        for part in case.parts:
            named = part.schema.get("properties", {})
            if name in named:
                found.append(_Part(named[name], part.root))
            elif "additionalProperties" in part.schema and not part.schema.get("patternProperties"):
                found.append(_Part(part.schema["additionalProperties"], part.root))
        return tuple(found)

    def _other(self, case: _Case) -> _All | None:
        """Return what the value of a property fits that no part names; None where there is none."""
        if case.has_value:
            return None
        return tuple(
            _Part(part.schema["additionalProperties"], part.root)
            for part in case.parts
            if "additionalProperties" in part.schema and not part.schema.get("patternProperties")
        )

    def _elements(self, case: _Case) -> tuple[list[_All], _All | None]:
        """Return what the first elements of an array fit, and what those behind them do; None where there are none."""
        if case.has_value:
            return [self._constant(each) for each in case.value], None
        length = max((len(each) for each in case.all_of("prefixItems")), default=0)
        most = _least(case.all_of("maxItems"))
        first = [self._element(case, index) for index in range(min(length, most))]
        return first, None if length >= most else self._element(case, length)

    def _element(self, case: _Case, index: int) -> _All:
        found = []
        for part in case.parts:
            before = part.schema.get("prefixItems", ())
            if index < len(before):
                found.append(_Part(before[index], part.root))
            elif "items" in part.schema:
                found.append(_Part(part.schema["items"], part.root))
        return tuple(found)

    def _target(self, part: _Part) -> tuple[_Part, str] | None:
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
        return (_Part(found, root), unquote(ref[1:])) if isinstance(found, Mapping | bool) else None

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

    # The second schema: a demand for each keyword.

    def _included(self, first: _All, second: _Part, path: str) -> Faults:
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
            raise _TooInvolvedError
        self._asked.add(key)
        self._depth += 1
        try:
            found: Faults = {}
            for case in self._cases(first):
                for place, message in self._missed(case, second, path, ()).items():
                    found.setdefault(place, message)
            return found
        finally:
            self._depth -= 1
            self._asked.discard(key)

    def _missed(self, case: _Case, second: _Part, path: str, seen: tuple[int, ...]) -> Faults:
        """Return where values of a case may miss a schema."""
        self._spend()
        schema = second.schema
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            return {path: f"{self._words.may} something here, and nothing is admitted"}
        if id(schema) in seen or len(seen) > DEEPEST:
            return {path: "the schema refers to itself, so nothing can be proved"}
        text = self._alone(schema)
        if text is not None and case.has_value and self._checked(case.value, schema, "all") is True:
            return {}
        if text is not None and any(self._alone(part.schema) == text for part in case.parts):
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
        self, key: str, case: _Case, second: _Part, place: str, path: str, seen: tuple[int, ...]
    ) -> Faults:
        """Return where values of a case may miss one keyword of a schema."""
        schema = second.schema
        if key in _SIMPLE:
            met = (
                self._checked(case.value, schema, key) is True
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
        self, key: str, case: _Case, second: _Part, place: str, path: str, seen: tuple[int, ...]
    ) -> Faults:
        """Return where values of a case may miss a keyword that holds other schemas against the same values."""
        schema, root = second.schema, second.root
        match key:
            case "$ref":
                target = self._target(second)
                if target is None:
                    return {place: "what is referred to is not understood, so nothing can be proved"}
                return self._missed(case, target[0], target[1], seen)
            case "allOf":
                found: Faults = {}
                for index, each in enumerate(schema[key]):
                    found.update(self._missed(case, _Part(each, root), f"{place}/{index}", seen))
                return found
            case "anyOf" | "oneOf":
                return self._one_of(key, case, second, place, seen)
            case "not":
                if self._apart(case, _Part(schema[key], root), seen):
                    return {}
                return {place: f"{self._words.may} what is excluded here"}
            case _:
                return self._conditional(case, second, path, seen)

    def _is_met(self, key: str, bound: Any, case: _Case) -> bool:
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
                first, rest = self._elements(case)
                closed = rest is None or not self._cases(rest)
                return any(each <= bound for each in case.all_of(key)) or (closed and len(first) <= bound)
            case "uniqueItems":
                return bound is False or _least(case.all_of("maxItems")) <= 1
            case "required":
                return set(bound) <= _required(case)
            case "minProperties":
                return bound <= len(_required(case)) or any(each >= bound for each in case.all_of(key))
            case "maxProperties":
                names = self._possible_names(case)
                few = names is not None and len(names) <= bound
                return few or any(each <= bound for each in case.all_of(key))
            case "dependentRequired":
                certain = _required(case)
                return all(
                    set(needed) <= certain or self._is_never(case, name) for name, needed in bound.items()
                )
            case _:  # enum, const and pattern: nothing but a list of values, or the same pattern, meets them
                return False

    def _number_is_met(self, key: str, bound: Any, case: _Case) -> bool:
        """Return whether all numbers of a case meet a keyword."""
        match key:
            case "minimum":
                return any(lower >= bound for lower, _ in _lower_bounds(case))
            case "exclusiveMinimum":
                return any(
                    lower > bound or (strict and lower >= bound) for lower, strict in _lower_bounds(case)
                )
            case "maximum":
                return any(upper <= bound for upper, _ in _upper_bounds(case))
            case "exclusiveMaximum":
                return any(
                    upper < bound or (strict and upper <= bound) for upper, strict in _upper_bounds(case)
                )
            case "multipleOf":
                own = case.all_of(key)
                whole = isinstance(bound, int)
                return (bound == 1 and case.kind == "integer") or (
                    whole and any(isinstance(each, int) and each % bound == 0 for each in own)
                )
            case _:
                return False

    def _simple_fault(self, key: str, case: _Case, schema: Mapping[str, Any], place: str) -> Faults:
        words, bound = self._words, schema[key]
        if key == "required":
            certain = set(case.value) if case.has_value else _required(case)
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

    def _one_of(self, key: str, case: _Case, second: _Part, place: str, seen: tuple[int, ...]) -> Faults:
        forms = [_Part(each, second.root) for each in second.schema[key]]
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

    def _conditional(self, case: _Case, second: _Part, path: str, seen: tuple[int, ...]) -> Faults:
        schema, root = second.schema, second.root
        condition = _Part(schema["if"], root)
        found: Faults = {}
        if "then" in schema:
            missed = self._missed(case, _Part(schema["then"], root), f"{path}/then", seen)
            if missed and not self._apart(case, condition, seen):
                found.update(missed)
        if "else" in schema:
            missed = self._missed(case, _Part(schema["else"], root), f"{path}/else", seen)
            if missed and self._missed(case, condition, f"{path}/if", seen):
                found.update(missed)
        return found

    def _properties(self, key: str, case: _Case, second: _Part, place: str) -> Faults:
        schema, root = second.schema, second.root
        named = schema.get("properties", {})
        found: Faults = {}
        if key == "properties":
            for name, part in named.items():
                fitting = self._property(case, name)
                if fitting is not None:
                    found.update(self._included(fitting, _Part(part, root), f"{place}/{_escaped(name)}"))
            return found
        if key == "patternProperties":
            for pattern, part in schema[key].items():  # whichever names it matches
                inner = f"{place}/{_escaped(pattern)}"
                found.update(self._all_values(case, frozenset(), _Part(part, root), inner))
            return found
        if key == "unevaluatedProperties" and schema.keys() & _OTHER_APPLICATORS:
            if schema[key] is True or schema[key] == {}:
                return {}
            return {place: f"{key} is not understood here, so nothing can be proved"}
        return self._all_values(case, frozenset(named), _Part(schema[key], root), place)

    def _all_values(self, case: _Case, but: frozenset[str], second: _Part, place: str) -> Faults:
        """Return where the value of any property but some may miss a schema."""
        found: Faults = {}
        for name in sorted(_names(case) - but):
            fitting = self._property(case, name)
            if fitting is None:
                continue
            if second.schema is False:
                if self._cases(fitting):
                    found.setdefault(place, f"{self._words.may} {_shown(name)}, which is not known there")
            else:
                for inner, message in self._included(fitting, second, place).items():
                    found.setdefault(inner, message)
        others = self._other(case)
        if others is not None:
            if second.schema is False:
                if self._cases(others):
                    message = f"{self._words.may} properties that it does not name, which are not known there"
                    found.setdefault(place, message)
            else:
                for inner, message in self._included(others, second, place).items():
                    found.setdefault(inner, message)
        return found

    def _items(self, key: str, case: _Case, second: _Part, place: str) -> Faults:
        schema, root = second.schema, second.root
        before = schema.get("prefixItems", ())
        if key == "unevaluatedItems":
            if schema[key] is True or schema[key] == {}:
                return {}
            return {place: f"{key} is not understood, so nothing can be proved"}
        first, rest = self._elements(case)
        most = _least(case.all_of("maxItems"))
        found: Faults = {}
        if key == "prefixItems":
            for index, part in enumerate(before):
                fitting = first[index] if index < len(first) else rest
                if fitting is not None and index < most:
                    found.update(self._included(fitting, _Part(part, root), f"{place}/{index}"))
            return found
        elements = [*first[len(before) :], *([rest] if rest is not None and most > len(before) else [])]
        for fitting in elements:
            for inner, message in self._included(fitting, _Part(schema[key], root), place).items():
                found.setdefault(inner, message)
        return found

    def _property_names(self, case: _Case, second: _Part, place: str) -> Faults:
        names = self._possible_names(case)
        if names is None:
            return {place: f"{self._words.may} properties of any name"}
        found: Faults = {}
        for name in sorted(names):
            part = _Part(second.schema["propertyNames"], second.root)
            inner = self._included(self._constant(name), part, place)
            for path, message in inner.items():
                found.setdefault(path, message)
        return found

    def _dependent_schemas(self, case: _Case, second: _Part, place: str, seen: tuple[int, ...]) -> Faults:
        found: Faults = {}
        for name, part in second.schema["dependentSchemas"].items():
            if not self._is_never(case, name):
                inner = f"{place}/{_escaped(name)}"
                found.update(self._missed(case, _Part(part, second.root), inner, seen))
        return found

    def _is_never(self, case: _Case, name: str) -> bool:
        """Return whether an object of a case never has a property."""
        fitting = self._property(case, name)
        return fitting is None or not self._cases(fitting)

    def _possible_names(self, case: _Case) -> frozenset[str] | None:
        """Return the names that an object of a case may have; None where it may have others."""
        if case.has_value:
            return frozenset(case.value)
        others = self._other(case)
        if others is not None and self._cases(others):
            return None
        return frozenset(name for name in _names(case) if not self._is_never(case, name))

    # Whether no value of a case fits a schema.

    def _apart(self, case: _Case, other: _Part, seen: tuple[int, ...]) -> bool:
        """Return whether it is certain that no value of a case fits a schema."""
        self._spend()
        schema = other.schema
        if schema is False:
            return True
        if not isinstance(schema, Mapping) or id(schema) in seen or len(seen) > DEEPEST:
            return False
        if case.has_value and self._alone(schema) is not None:
            return self._checked(case.value, schema, "all") is False
        if "type" in schema:
            named = schema["type"]
            if not _common([case.kind], [named] if isinstance(named, str) else named):
                return True
        values = _values(schema)
        if values is not None and all(self._excludes(case, value) for value in values):
            return True
        if case.has_value and self._misses_simply(case.value, schema):
            return True
        if case.kind == "object" and self._objects_apart(case, other):
            return True
        return self._combined_apart(case, other, (*seen, id(schema)))

    def _combined_apart(self, case: _Case, other: _Part, seen: tuple[int, ...]) -> bool:
        """Return whether a schema admits no value of a case because of the schemas that it holds against the same."""
        schema, root = other.schema, other.root
        target = self._target(other) if "$ref" in schema else None
        if target is not None and self._apart(case, target[0], seen):
            return True
        if any(self._apart(case, _Part(each, root), seen) for each in schema.get("allOf", ())):
            return True
        for key in ("anyOf", "oneOf"):
            if key in schema and all(self._apart(case, _Part(each, root), seen) for each in schema[key]):
                return True
        return "not" in schema and not self._missed(case, _Part(schema["not"], root), "", seen)

    def _objects_apart(self, case: _Case, other: _Part) -> bool:
        """Return whether a schema asks for a property that no object of a case has, or has other values of."""
        if any(self._is_never(case, name) for name in other.schema.get("required", ())):
            return True
        certain = _required(case)
        for name, part in other.schema.get("properties", {}).items():
            fitting = self._property(case, name) if name in certain else None
            if fitting is not None and all(
                self._apart(each, _Part(part, other.root), ()) for each in self._cases(fitting)
            ):
                return True
        return False

    def _excludes(self, case: _Case, value: Any) -> bool:
        """Return whether a value is none of a case, by what can be seen of it at once."""
        if case.has_value:
            return self._checked(value, self._constant(case.value)[0].schema, "all") is False
        if not _common([case.kind], [_kind_of(value)]):
            return True
        return any(self._misses_simply(value, part.schema) for part in case.parts)

    # Values and schemas that need no other ones.

    def _alone(self, schema: Any) -> str | None:
        """Return a schema as text if it refers to nothing and nothing of it can be referred to; else None."""
        if id(schema) not in self._texts:
            self._texts[id(schema)] = _text(schema) if _stands_alone(schema) else None
        return self._texts[id(schema)]

    def _misses_simply(self, value: Any, schema: Mapping[str, Any]) -> bool:
        """Return whether it is certain that a value misses a keyword that says nothing of other schemas."""
        return self._checked(value, schema, "simple") is False

    def _checked(self, value: Any, schema: Mapping[str, Any], of: str) -> bool | None:
        """Return whether a value fits a schema, or a part of it; None where the engine cannot tell.

        Args:
            of: "all" keywords of a schema that stands alone, those that are "simple", or one simple keyword.
        """
        import jsonschema_rs

        self._spend()
        key = (id(schema), of)
        try:
            if key not in self._engines:
                self._engines[key] = None
                part = {each: schema[each] for each in schema if of == "all" or each == of}
                if of == "simple":
                    part = {each: schema[each] for each in schema if each in _SIMPLE}
                self._engines[key] = jsonschema_rs.Draft202012Validator(
                    part, validate_formats=False, pattern_options=pattern_options(), offline=True
                )
            engine = self._engines[key]
            return None if engine is None else engine.is_valid(value)
        except (
            ValueError,
            jsonschema_rs.ValidationError,
        ):  # a pattern that it does not know, half a character
            return None


_NOUNS = {
    "null": "null",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "array": "an array",
    "object": "an object",
}


def _product(left: list[_All], right: list[_All]) -> list[_All]:
    """Return every list of one side with every one of the other. Raises _TooInvolvedError for too many."""
    if len(left) * len(right) > MOST_CASES:
        raise _TooInvolvedError
    return [(*one, *other) for one in left for other in right]


def _common(kinds: Sequence[str], named: Sequence[str]) -> list[str]:
    """Return the kinds that are of both lists."""
    found = []
    for kind in kinds:
        if kind in named or (kind == "integer" and "number" in named):
            found.append(kind)
        elif kind == "number" and "integer" in named:
            found.append("integer")
    return found


def _values(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return the values that a schema lists; None where it lists none."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list | tuple) else None


def _kind_of(value: Any) -> str:
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


def _required(case: _Case) -> set[str]:
    """Return the names of the properties that an object of a case has for certain."""
    return (
        set(case.value) if case.has_value else {name for names in case.all_of("required") for name in names}
    )


def _names(case: _Case) -> frozenset[str]:
    """Return the names of properties that a case says something of."""
    if case.has_value:
        return frozenset(case.value)
    return frozenset(name for named in case.all_of("properties") for name in named) | _required(case)


def _lower_bounds(case: _Case) -> list[tuple[float, bool]]:
    """Return the least numbers of a case, and whether they themselves are left out."""
    found = [(each, False) for each in case.all_of("minimum")]
    found += [(each, True) for each in case.all_of("exclusiveMinimum")]
    if case.kind == "integer":
        found += [(math.floor(bound) + 1 if strict else math.ceil(bound), False) for bound, strict in found]
    return found


def _upper_bounds(case: _Case) -> list[tuple[float, bool]]:
    found = [(each, False) for each in case.all_of("maximum")]
    found += [(each, True) for each in case.all_of("exclusiveMaximum")]
    if case.kind == "integer":
        found += [(math.ceil(bound) - 1 if strict else math.floor(bound), False) for bound, strict in found]
    return found


def _least(bounds: Iterable[float]) -> int:
    return int(min(bounds, default=1 << 62))


def _stands_alone(schema: Any) -> bool:
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


def _same_keyword(key: str, case: _Case, schema: Mapping[str, Any]) -> bool:
    """Return whether a part of a case says the very same under a keyword that means something by itself."""
    group = next((each for each in _ALONE if key in each), ())
    wanted = {each: schema[each] for each in group if each in schema}
    if not wanted or case.has_value or not _stands_alone(wanted):
        return False
    return any(
        _text({each: part.schema[each] for each in group if each in part.schema}) == _text(wanted)
        for part in case.parts
    )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _escaped(name: str) -> str:
    return clip_line(name.replace("~", "~0").replace("/", "~1"))


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > 8:
        value = [*value[:8], "…"]
    return clip_line(json.dumps(value, ensure_ascii=False), 80)
