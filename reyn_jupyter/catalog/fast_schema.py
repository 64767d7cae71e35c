"""Schemas of the ordinary kind, checked without a library.

Most actions take a few texts, numbers, lists and references. For these this says what the full validation
would say, at 1–2 µs a valid call against 60 µs; and it spares such sessions the import of jsonschema, which
costs 60 ms, and a second where JupyterLab's optional format packages are installed. Invariant: a schema
with any keyword that is not handled here is not plain, and `compile_plain` leaves that parameter to the
full validation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.references import HOW_TO_REFER, child, claims_reference
from reyn_jupyter.catalog.text import quoted
from reyn_jupyter.support.encoding import clip_line

Invalid = dict[str, str]  # path (a JSON Pointer, "" for the arguments themselves) and message
Finder = Callable[[Any], bool]

MOST_MESSAGES = 10
NEEDS_REFERENCE = f"takes a reference, not the data itself: {HOW_TO_REFER}"
_REMARKS = frozenset(
    {"description", "title", "default", "examples", "$comment", "$schema", "deprecated", "format"}
)
_AT_THE_TOP = _REMARKS | {"type", "properties", "required", "additionalProperties"}
_IN_A_RULE = _REMARKS | {"type", "enum", "minimum", "maximum", "minLength", "maxLength", "items", "anyOf"}
_QUICK_ITEMS = 256
_TYPE_NAMES: Mapping[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


@dataclass(frozen=True)
class ParameterRule:
    """What one plain parameter takes.

    Attributes:
        fits: whether a value fits; references always do.
        expected: the rule in words, for the message ("an integer, at least 1").
        items: the rule of an array's items or an object's values, to tell which one is wrong.
        fractions: whether a number with a fraction may fit, so that 20.0 need not become 20.
    """

    fits: Finder
    expected: str
    items: ParameterRule | None = None
    fractions: bool = False

    def quickly_fits(self, value: Any) -> bool:
        """Whether a value fits as it is, without a reference in it and without anything to look into."""
        kind = type(value)
        if kind is dict or (kind is float and not self.fractions):
            return False
        if kind is list and not (
            len(value) <= _QUICK_ITEMS and all(type(item) in _SCALARS for item in value)
        ):
            return False
        return self.fits(value)

    def fault(self, value: Any, path: str) -> Invalid | None:
        if self.fits(value):
            return None
        if self.items is not None and type(value) in (list, dict):
            keyed = enumerate(value) if isinstance(value, list) else value.items()
            for key, item in keyed:
                inner = self.items.fault(
                    item, child(path, clip_line(key) if isinstance(key, str) else str(key))
                )
                if inner is not None:
                    return inner
        return {"path": path, "message": f"must be {self.expected}, not {shown(value)}"}


_SCALARS = (str, int, bool, type(None))


@dataclass(frozen=True)
class FastSchema:
    """A schema's plain part.

    Attributes:
        rules: parameter → its rule; None where only the full validation can tell.
        required: the parameters that must be there.
        exact: whether the rules say everything that the schema says.
        closed: whether the schema says nothing beside its parameters: a form that the arguments must have in all, say.
    """

    rules: Mapping[str, ParameterRule | None]
    required: tuple[str, ...]
    exact: bool
    closed: bool

    def accepts(self, args: Mapping[Any, Any]) -> bool:
        """Whether arguments are valid beyond doubt; False only means that a closer look is needed."""
        if not self.closed:
            return False
        for name, value in args.items():
            rule = self.rules.get(name)
            if rule is None or not rule.quickly_fits(value):
                return False
        return all(name in args for name in self.required)

    def faults(self, args: Mapping[str, Any]) -> list[Invalid]:
        """What is wrong with arguments that the schema knows, when it is exact."""
        found = [
            {"path": child("", clip_line(name)), "message": "is required"}
            for name in self.required
            if name not in args
        ]
        for name, value in args.items():
            rule = self.rules.get(name)
            fault = rule.fault(value, child("", clip_line(name))) if rule is not None else None
            if fault is not None:
                found.append(fault)
        return found[:MOST_MESSAGES]


def compile_plain(schema: Mapping[str, Any]) -> FastSchema:
    """The plain part of an action's schema."""
    closed = schema.get("additionalProperties", False) is False
    plain = closed and not schema.keys() - _AT_THE_TOP and schema.get("type", "object") == "object"
    rules = {name: rule_of(part) if plain else None for name, part in schema.get("properties", {}).items()}
    return FastSchema(rules, tuple(schema.get("required", ())), plain and None not in rules.values(), plain)


def rule_of(part: Any) -> ParameterRule | None:
    """The rule of one parameter's schema, or None when it is not plain."""
    if not isinstance(part, Mapping):
        return None
    if part.get("x-reference") is True and not part.keys() - _REMARKS - {"x-reference"}:
        return ParameterRule(claims_reference, f"a reference: {HOW_TO_REFER}")
    if part.get("type") == "object" and not part.keys() - _REMARKS - {"type", "additionalProperties"}:
        return _object(part.get("additionalProperties", True))
    if part.keys() - _IN_A_RULE:
        return None
    if "anyOf" in part:
        options = part["anyOf"] if not part.keys() & {"type", "enum", "items"} else None
        return (
            _any([rule_of(option) for option in options]) if isinstance(options, list) and options else None
        )
    kinds = part.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(names, list) or not names:
        return None
    rule = _any([_of_type(name, part) for name in names])
    return rule if rule is None or "enum" not in part else _enum(part["enum"], rule)


def _any(rules: list[ParameterRule | None]) -> ParameterRule | None:
    known = [rule for rule in rules if rule is not None]
    if len(known) < len(rules):
        return None
    if len(known) == 1:
        return known[0]
    return ParameterRule(
        lambda value: any(rule.fits(value) for rule in known),
        " or ".join(rule.expected for rule in known),
        fractions=any(rule.fractions for rule in known),
    )


def _enum(values: Any, rule: ParameterRule) -> ParameterRule | None:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return None
    listed = clip_line(", ".join(json.dumps(value, ensure_ascii=False) for value in values))
    return ParameterRule(
        lambda value: (
            claims_reference(value) or (type(value) is str and value in values and rule.fits(value))
        ),
        f"one of {listed}",
    )


def _of_type(name: object, part: Mapping[str, Any]) -> ParameterRule | None:
    match name:
        case "string":
            return _string(part.get("minLength", 0), part.get("maxLength", math.inf))
        case "integer" | "number":
            return _number(
                part.get("minimum", -math.inf), part.get("maximum", math.inf), whole=name == "integer"
            )
        case "boolean":
            return ParameterRule(lambda value: type(value) is bool or claims_reference(value), "a boolean")
        case "null":
            return ParameterRule(lambda value: value is None or claims_reference(value), "null")
        case "array":
            return _array(part.get("items", {}))
        case _:
            return None


def _string(shortest: Any, longest: Any) -> ParameterRule | None:
    if not isinstance(shortest, (int, float)) or not isinstance(longest, (int, float)):
        return None
    bounds = f", {shortest} or more characters" if shortest else ""
    bounds += f", at most {longest} characters" if longest < math.inf else ""

    def fits(value: Any) -> bool:
        return shortest <= len(value) <= longest if type(value) is str else claims_reference(value)

    return ParameterRule(fits, "a string" + bounds)


def _number(smallest: Any, largest: Any, *, whole: bool) -> ParameterRule | None:
    if not isinstance(smallest, (int, float)) or not isinstance(largest, (int, float)):
        return None
    bounds = f", at least {smallest}" if smallest > -math.inf else ""
    bounds += f", at most {largest}" if largest < math.inf else ""

    def fits(value: Any) -> bool:
        if type(value) is int or (
            type(value) is float and ((math.isfinite(value) and not whole) or value.is_integer())
        ):
            return smallest <= value <= largest
        return claims_reference(value)

    return ParameterRule(fits, ("an integer" if whole else "a number") + bounds, fractions=not whole)


def _array(items: Any) -> ParameterRule | None:
    if items == {}:
        return ParameterRule(lambda value: type(value) is list or claims_reference(value), "an array")
    rule = rule_of(items)
    if rule is None:
        return None
    return ParameterRule(
        lambda value: all(map(rule.fits, value)) if type(value) is list else claims_reference(value),
        f"an array, each item {rule.expected}",
        rule,
    )


def _object(values: Any) -> ParameterRule | None:
    rule = None if values is True else rule_of(values)
    if values is not True and rule is None:
        return None

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        return rule is None or claims_reference(value) or all(map(rule.fits, value.values()))

    return ParameterRule(fits, "an object" + (f", each value {rule.expected}" if rule else ""), rule)


def shown(value: object) -> str:
    """A wrong value in a message: its type, and its content where that is short and plain."""
    name = _TYPE_NAMES.get(type(value), type(value).__name__)
    if isinstance(value, str):
        return f"the string {quoted(value[:60])}"
    if isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**20):
        return f"the {name} {json.dumps(value)}"
    return name
