"""Whether every value that one JSON Schema admits is admitted by another one, as far as that can be proved.

Invariant: where no fault is found, no JSON value that fits the first schema misses the second. The converse does not
hold: what cannot be proved is a fault, which says so. The work is bounded. Schemas are those that
`contract.schema_fault` accepts; `format` asserts nothing, as JSON Schema 2020-12 has it by default.

How: the first schema becomes cases, of one type each, or of one value where it lists values. What it says beyond the
keywords read here is left out, which only makes a case wider. Each keyword of the second schema is a demand that every
case has to meet. The engine of JSON Schema judges single values. A question that comes up again deeper inside a value
counts as answered: values are finite, so that is an induction over their size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from reyn_jupyter.catalog.arguments.schema_document import pattern_options
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import enumerate_words

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, Registry

Faults = dict[str, str]  # a JSON Pointer into the second schema, and a message
MOST_LOOKS = 20_000  # schemas and keywords of one question
MOST_CASES = 1_000  # choices of one schema, and values of one list; a longer list is not read
DEEPEST = 60  # levels of values and of references
_NO_VALUE = object()
_FEW: dict[str, list[Any]] = {"null": [None], "boolean": [False, True]}  # their values are listed
_NOUNS = {
    "null": "null", "boolean": "a boolean", "number": "a number", "integer": "an integer", "string": "a text",
    "array": "an array", "object": "an object",
}  # fmt: skip
_GROUPS = (  # keywords that mean something together; the others mean something alone
    *(("if", "then", "else"), ("contains", "minContains", "maxContains"), ("prefixItems", "items")),
    ("properties", "patternProperties", "additionalProperties"),
)
_ANY_KIND = {"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if"}
_ANY_KIND |= {"$dynamicRef", "$recursiveRef", "dependencies"}
_KEYWORDS = {
    "string": {"minLength", "maxLength", "pattern"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"},
    "object": {"properties", "patternProperties", "additionalProperties", "required", "minProperties"}
    | {"maxProperties", "dependentRequired", "dependentSchemas", "propertyNames", "unevaluatedProperties"},
}
_OF_NEIGHBOURS = {"unevaluatedItems", "unevaluatedProperties"}
_REFERS = {"$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor"}


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


@dataclass(frozen=True)
class _Part:
    """A schema, the document that it refers into, and its JSON Pointer there."""

    schema: Any
    root: Any
    path: str

    def inner(self, step: str | int) -> _Part:
        """Return the schema at a place within this one."""
        return _Part(self.schema[step], self.root, f"{self.path}/{_escaped(step)}")


@dataclass(frozen=True, eq=False)
class _Case:
    """Values of one kind that fit all parts; or one value."""

    kind: str
    parts: tuple[_Part, ...]
    value: Any = _NO_VALUE

    def all_of(self, key: str) -> list[Any]:
        """Return what the parts say under a keyword."""
        return [part.schema[key] for part in self.parts if key in part.schema]

    def required(self) -> set[str]:
        """Return the names that an object of this case has for certain."""
        return {name for names in self.all_of("required") for name in names}

    def named(self) -> set[str]:
        """Return the names of properties that this case says something of."""
        return self.required() | {name for named in self.all_of("properties") for name in named}

    def property_of(self, name: str | None) -> tuple[_Part, ...]:
        """Return what the value of a property fits; None stands for a name that no part names."""
        found = []
        for part in self.parts:
            if name is not None and name in part.schema.get("properties", ()):
                found.append(part.inner("properties").inner(name))
            elif "additionalProperties" in part.schema and not part.schema.get("patternProperties"):
                found.append(part.inner("additionalProperties"))
        return tuple(found)


class _TooInvolvedError(Exception):
    """More work than a question may be."""


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
    objects = {"type": "object"}
    try:
        question = _Inclusion(words or InclusionWords(), (first, second, objects))
        parts = (_Part(first, first, ""), _Part(objects, objects, ""))
        faults = question.included(parts, _Part(second, second, ""))
        return {"/".join(map(clip_line, place.split("/"))): message for place, message in faults.items()}
    except (_TooInvolvedError, RecursionError):
        return {"": "the schemas are too involved for a proof that one fits the other"}


class _Inclusion:
    """One question, with what was asked on the way to its answer."""

    def __init__(self, words: InclusionWords, roots: Sequence[Any]) -> None:
        self._words, self._roots, self._left = words, roots, MOST_LOOKS
        self._asked: set[tuple[frozenset[int], int]] = set()
        self._registry: Registry | None = None
        self._engines: dict[tuple[int, str], Draft202012Validator | None] = {}
        self._texts: dict[tuple[int, tuple[str, ...] | None], str | None] = {}
        self._with_identities = {  # a part with an identity of its own reads pointers against itself
            id(root) for root in roots if any("$id" in each for each in _mappings(root) if each is not root)
        }

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooInvolvedError

    def included(self, first: tuple[_Part, ...], second: _Part) -> Faults:
        """Return where values that fit all of `first` may miss `second`. Only asked of values within another one."""
        if second.schema is True or second.schema == {}:
            return {}
        key = (frozenset(id(part.schema) for part in first), id(second.schema))  # each side has one document
        if key in self._asked:
            return {}
        if len(self._asked) >= DEEPEST:
            raise _TooInvolvedError
        self._asked.add(key)
        try:
            return _merged(self._missed(case, second, ()) for case in self._cases(first))
        finally:
            self._asked.discard(key)

    # The first schema: its cases.

    def _cases(self, parts: Iterable[_Part]) -> list[_Case]:
        """Return the cases of values that fit all parts."""
        lists = self._product([self._alternatives(part, ()) for part in parts])
        return [case for one in lists for case in self._cases_of(one)]

    def _alternatives(self, part: _Part, seen: tuple[int, ...]) -> list[tuple[_Part, ...]]:
        """Return lists of parts without `anyOf` or `oneOf`. A value that fits `part` fits all parts of some list."""
        self._spend()
        schema = part.schema
        if schema is False:
            return []
        if not isinstance(schema, Mapping):
            return [()]
        if len(seen) > DEEPEST:
            raise _TooInvolvedError
        inner = (*seen, id(schema))
        factors: list[list[tuple[_Part, ...]]] = [[(part,)]]
        target = self._target(part)
        if target is not None and id(target.schema) not in inner:
            factors.append(self._alternatives(target, inner))
        for key in ("allOf", "anyOf", "oneOf"):
            forms = [part.inner(key).inner(index) for index in range(len(schema.get(key, ())))]
            lists = [self._alternatives(form, inner) for form in forms]
            if key == "allOf":
                factors += lists
            elif lists:
                factors.append([each for one in lists for each in one])
        return self._product(factors)

    def _product(self, factors: Iterable[list[tuple[_Part, ...]]]) -> list[tuple[_Part, ...]]:
        """Return every choice of one list of each factor, joined."""
        found: list[tuple[_Part, ...]] = [()]
        for factor in factors:
            if len(found) * len(factor) > MOST_CASES:
                raise _TooInvolvedError
            found = [(*one, *other) for one in found for other in factor]
        return found

    def _cases_of(self, parts: tuple[_Part, ...]) -> list[_Case]:
        kinds: Sequence[str] = [kind for kind in _NOUNS if kind != "integer"]
        lists: list[Sequence[Any]] = []
        for part in parts:
            kinds = _common_kinds(kinds, part.schema.get("type", kinds))
            lists += [[part.schema["const"]]] if "const" in part.schema else []
            lists += [part.schema["enum"]] if "enum" in part.schema else []
        values = min(lists, key=len, default=range(MOST_CASES + 1))
        wide: list[_Case] = []
        if len(values) > MOST_CASES:
            wide = [_Case(kind, parts) for kind in kinds if kind not in _FEW]
            values = [value for kind in kinds for value in _FEW.get(kind, ())]
        fitting = [value for value in values if not any(self._misses(value, part) for part in parts)]
        return [*wide, *(_Case("", parts, value) for value in fitting)]

    # The second schema: a demand for each keyword.

    def _missed(self, case: _Case, second: _Part, seen: tuple[int, ...]) -> Faults:
        """Return where values of a case may miss a schema."""
        self._spend()
        schema, words = second.schema, self._words
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            return {second.path: f"{words.may} something here, and nothing is admitted"}
        if case.value is not _NO_VALUE:
            return self._value_fault(case.value, second)
        if id(schema) in seen or len(seen) > DEEPEST:
            return {second.path: "the schema refers to itself, so nothing can be proved"}
        if self._says(case, schema):
            return {}
        keys = _ANY_KIND | _KEYWORDS.get("number" if case.kind == "integer" else case.kind, set())
        demands = [key for key in schema if key in keys and not self._says(case, schema, key)]
        return _merged(self._demanded(key, case, second, (*seen, id(schema))) for key in demands)

    def _demanded(self, key: str, case: _Case, second: _Part, seen: tuple[int, ...]) -> Faults:
        """Return where values of a case may miss one keyword of a schema."""
        schema, words, place = second.schema, self._words, f"{second.path}/{key}"
        match key:
            case "type":
                if case.kind in _common_kinds([case.kind], schema[key]):
                    return {}
                wanted = enumerate_words([_NOUNS[each] for each in _listed(schema[key])], "or")
                return {place: f"{words.may} {_NOUNS[case.kind]}, {words.takes} {wanted}"}
            case "required":
                missing = [_shown(name) for name in schema[key] if name not in case.required()]
                text = f"{enumerate_words(missing, 'and')} required, {words.lacks}"
                return {place: text} if missing else {}
            case "$ref":
                target = self._target(second)
                if target is not None:
                    return self._missed(case, target, seen)
            case "allOf":
                forms = [second.inner(key).inner(index) for index in range(len(schema[key]))]
                return _merged(self._missed(case, form, seen) for form in forms)
            case "anyOf" | "oneOf":
                return self._form_fault(key, case, second, seen)
            case "properties":
                named = second.inner(key)
                return _merged(
                    self.included(case.property_of(name), named.inner(name)) for name in schema[key]
                )
            case "additionalProperties":
                return self._others(case, second)
            case "items" if "prefixItems" not in schema:
                lists = [
                    each for each in case.parts if key in each.schema and "prefixItems" not in each.schema
                ]
                return self.included(tuple(part.inner(key) for part in lists), second.inner(key))
            case _ if self._is_met(key, schema[key], case):
                return {}
        bound = _shown(schema[key])
        return {place: f"{words.may} {_NOUNS[case.kind]} of which {key} {bound} cannot be proved"}

    def _is_met(self, key: str, bound: Any, case: _Case) -> bool:
        """Return whether all values of a case meet a bound."""
        lower = [(each, 0) for each in case.all_of("minimum")]
        lower += [(each, 1) for each in case.all_of("exclusiveMinimum")]
        upper = [(-each, 0) for each in case.all_of("maximum")]
        upper += [(-each, 1) for each in case.all_of("exclusiveMaximum")]
        match key:
            case "minimum" | "exclusiveMinimum":
                return any(each >= (bound, int(key != "minimum")) for each in lower)
            case "maximum" | "exclusiveMaximum":
                return any(each >= (-bound, int(key != "maximum")) for each in upper)
            case "multipleOf":
                whole = [each for each in case.all_of(key) if isinstance(each, int)]
                steps = [*whole, *([1] if case.kind == "integer" else [])]
                return isinstance(bound, int) and any(each % bound == 0 for each in steps)
            case "minLength" | "minItems" | "minProperties":
                certain = len(case.required()) if key == "minProperties" else 0
                return bool(bound <= max([certain, *case.all_of(key)]))
            case "maxLength" | "maxItems" | "maxProperties":
                return any(each <= bound for each in case.all_of(key))
        return key == "uniqueItems" and bound is False

    def _others(self, case: _Case, second: _Part) -> Faults:
        """Return where properties that the second schema does not name may miss what it says of them."""
        inner, place = second.inner("additionalProperties"), f"{second.path}/additionalProperties"
        names = [*sorted(case.named() - set(second.schema.get("properties", ()))), None]
        if inner.schema is not False:
            return _merged(self.included(case.property_of(name), inner) for name in names)
        for name in names:
            if self._cases(case.property_of(name)):
                what = (
                    f"{_shown(name)}, which is"
                    if name is not None
                    else "properties that it does not name, which are"
                )
                return {place: f"{self._words.may} {what} not known there"}
        return {}

    def _form_fault(self, key: str, case: _Case, second: _Part, seen: tuple[int, ...]) -> Faults:
        """Return where values of a case may fit none of some forms, or, of `oneOf`, more than one."""
        place = f"{second.path}/{key}"
        forms = [second.inner(key).inner(index) for index in range(len(second.schema[key]))]
        fitting = next((form for form in forms if not self._missed(case, form, seen)), None)
        if fitting is None:
            return {place: f"{self._words.may} {_NOUNS[case.kind]} that fits none of the forms here"}
        others = [form.schema for form in forms if form is not fitting and isinstance(form.schema, Mapping)]
        apart = [each for each in others if not _common_kinds([case.kind], each.get("type", [case.kind]))]
        if key == "anyOf" or len(apart) == len(forms) - 1:
            return {}
        return {place: f"{self._words.may} what may fit more than one of the forms here"}

    # Single values, and references.

    def _value_fault(self, value: Any, second: _Part) -> Faults:
        try:
            engine = self._engine(second)
            error = next(iter(engine.iter_errors(value)), None) if engine is not None else None
        except ValueError:  # half a character, say
            engine = None
        if engine is None:
            return {second.path: f"{self._words.may} {_shown(value)}, of which nothing can be proved here"}
        if error is None:
            return {}
        place = "".join(f"/{_escaped(step)}" for step in error.schema_path)
        return {place: f"{self._words.may} {_shown(value)}, which is not admitted here"}

    def _misses(self, value: Any, part: _Part) -> bool:
        """Return whether it is certain that a value misses a schema."""
        try:
            engine = self._engine(part)
            fits: bool = engine is None or engine.is_valid(value)
        except ValueError:
            return False
        return not fits

    def _engine(self, part: _Part) -> Draft202012Validator | None:
        """Return what checks values against a schema; None where the engine does not take it."""
        import jsonschema_rs

        self._spend()
        key = (id(part.root), part.path)
        if key not in self._engines:
            self._engines[key] = None
            try:
                if self._registry is None:
                    self._registry = jsonschema_rs.Registry(
                        [(f"urn:{id(root)}", root) for root in self._roots]
                    )
                self._engines[key] = jsonschema_rs.Draft202012Validator(
                    {"$ref": f"urn:{id(part.root)}#{quote(part.path)}"},
                    registry=self._registry,
                    validate_formats=False,
                    pattern_options=pattern_options(),
                    offline=True,
                )
            except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
                return None
        return self._engines[key]

    def _target(self, part: _Part) -> _Part | None:
        """Return what a part refers to; None where it refers to nothing, or not by a plain pointer."""
        ref = part.schema.get("$ref")
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            return None
        if id(part.root) in self._with_identities:
            return None
        found = _Part(part.root, part.root, "")
        for step in unquote(ref[2:]).split("/") if ref != "#" else ():
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found.schema, Mapping) and name in found.schema:
                found = found.inner(name)
            elif isinstance(found.schema, list) and name.isdecimal() and int(name) < len(found.schema):
                found = found.inner(int(name))
            else:
                return None
        return found if isinstance(found.schema, Mapping | bool) else None

    def _says(self, case: _Case, schema: Mapping[str, Any], key: str | None = None) -> bool:
        """Return whether a part of a case says the very same as a schema, or under a keyword and its group."""
        group = None if key is None else next((each for each in _GROUPS if key in each), (key,))
        text = None if key in _OF_NEIGHBOURS else self._text(schema, group)
        return text is not None and any(self._text(part.schema, group) == text for part in case.parts)

    def _text(self, schema: Mapping[str, Any], group: tuple[str, ...] | None) -> str | None:
        """Return a schema as text if it refers to nothing and nothing of it can be referred to; else None."""
        place = (id(schema), group)
        if place not in self._texts:
            part = schema if group is None else {each: schema[each] for each in group if each in schema}
            refers = any(_REFERS & each.keys() for each in _mappings(part))
            self._texts[place] = None if refers else json.dumps(part, sort_keys=True)
        return self._texts[place]


def _listed(kinds: Any) -> list[str]:
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _common_kinds(kinds: Iterable[str], named: Any) -> list[str]:
    """Return the kinds that are of both; of a number and an integer that is the integer."""
    wanted = _listed(named)
    found = []
    for kind in kinds:
        if kind in wanted or (kind == "integer" and "number" in wanted):
            found.append(kind)
        elif kind == "number" and "integer" in wanted:
            found.append("integer")
    return found


def _mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    """Yield every object within a JSON value, itself included."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            yield part
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part


def _merged(faults: Iterable[Faults]) -> Faults:
    """Return all faults, the first message of each place."""
    found: Faults = {}
    for each in faults:
        for place, message in each.items():
            found.setdefault(place, message)
    return found


def _escaped(step: str | int) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > 8:
        value = [*value[:8], "…"]
    return clip_line(json.dumps(value, ensure_ascii=False), 80)
