"""Mistakes that models really make, put right where exactly one reading is valid.

Invariants: a string parameter is never touched; what has two readings (JSON that names a key twice, a
number out of range) has none; every function gives the flags of what it did.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.arguments.references import is_reference
from reyn_jupyter.catalog.arguments.schema_validation import is_closed

if TYPE_CHECKING:
    from reyn_jupyter.catalog.action import Schema

# Names that models use for another one, though the schema says otherwise.
ALIASES: Mapping[str, str] = {"text": "content", "source_id": "source", "message": "request"}
NOTHING = object()  # no reading
_MOST_ENCODINGS = 3  # times that arguments may be encoded
_MOST_OBJECTS = 20  # that stand behind each other
_LONGEST_PARSED = 10_000_000  # characters of a string that is read as JSON


def put_aliases_right(schema: Schema, args: dict[str, Any]) -> list[str]:
    """Rename a known alias where the schema has its target, lacks the alias, and the target is absent.

    Where a schema takes other arguments than it names, the alias may be one of them: there the target must be needed.
    """
    known = schema.get("properties", {})
    wanted = known if is_closed(schema) else [name for name in schema.get("required", ()) if name in known]
    flags: list[str] = []
    for alias, target in ALIASES.items():
        if alias in args and alias not in known and target in wanted and target not in args:
            args[target] = args.pop(alias)
            flags = ["aliased"]
    return flags


def coerce(schema: Schema, args: dict[str, Any], fits: Callable[[str, Any], bool]) -> list[str]:
    """Read a string given for another type where its one reading fits that parameter (`fits(name, value)`)."""
    properties = schema.get("properties", {})
    flags: list[str] = []
    for name, value in list(args.items()):
        if not isinstance(value, str) or not isinstance(properties.get(name), Mapping):
            continue
        kinds = _kinds(properties[name], schema)
        if kinds is None or "string" in kinds:
            continue
        reading = _reading(value)
        if reading is NOTHING or isinstance(reading, str):
            continue
        if is_reference(reading) or fits(name, reading):
            args[name] = reading
            flags = ["coerced"]
        elif not isinstance(reading, dict | list) and _kind_of(reading) & kinds:
            args[name] = reading  # out of bounds, say: the message is to be about what was meant
    return flags


def _kind_of(reading: Any) -> set[str]:
    """Return the JSON types of a simple value."""
    if reading is None or isinstance(reading, bool):
        return {"null" if reading is None else "boolean"}
    return {"number", "integer"} if isinstance(reading, int) or reading.is_integer() else {"number"}


def _kinds(rule: Mapping[str, Any], root: Schema, depth: int = 4) -> set[str] | None:
    """Return the JSON types of a parameter; None when its schema does not say. A reference counts as an object."""
    if rule.get("x-reference") is True:
        return {"object"}
    kinds = rule.get("type")
    if isinstance(kinds, str):
        return {kinds}
    if isinstance(kinds, (list, tuple)):
        return {str(kind) for kind in kinds}
    options = rule.get("anyOf") or rule.get("oneOf")
    target = rule.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        options = [root.get("$defs", {}).get(target.removeprefix("#/$defs/"))]
    if not isinstance(options, (list, tuple)) or depth == 0:
        return None
    found = [_kinds(option, root, depth - 1) if isinstance(option, Mapping) else None for option in options]
    return None if not found or None in found else set().union(*(kind for kind in found if kind))


def leave_out_nulls(schema: Schema, args: dict[str, Any], fits: Callable[[str, Any], bool]) -> list[str]:
    """Remove null for an optional parameter that takes none, as models with strict schemas send it."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    names = [
        name
        for name, value in args.items()
        if value is None and name in properties and name not in required and not fits(name, None)
    ]
    for name in names:
        del args[name]
    return ["coerced"] if names else []


def read_object(text: str) -> dict[str, Any] | None:
    """Return the one JSON object that the text of a model's arguments holds, or None.

    An object may be encoded twice, repeated, or follow an empty one, as streams of several servers have it.

    Example:
        >>> read_object('{}{"a": 1}'), read_object('{"a": 1}{"a": 1}'), read_object('"{\\\\"a\\\\": 1}"')
        ({'a': 1}, {'a': 1}, {'a': 1})
        >>> read_object('{"a": 1}{"a": 2}'), read_object("[1]")
        (None, None)
    """
    value: Any = text
    for _ in range(_MOST_ENCODINGS):
        if not isinstance(value, str):
            break
        value = read_json(value) if (whole := _one_of(value)) is None else whole
    return value if isinstance(value, dict) else None


def _one_of(text: str) -> dict[str, Any] | None:
    """Return the object that several JSON objects behind each other come to; None for anything else."""
    found: list[dict[str, Any]] = []
    rest = text.strip() if len(text) <= _LONGEST_PARSED else ""
    while rest:
        try:
            value, end = _DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or len(found) == _MOST_OBJECTS:
            return None
        found.append(value)
        rest = rest[end:].lstrip()
    told = [value for value in found if value]
    if len(found) < 2 or any(value != told[0] for value in told):
        return None
    return told[0] if told else {}


_PYTHON_WORDS = {"True": True, "False": False, "None": None}


def _reading(text: str) -> Any:
    """Return the one JSON value that a string spells, or `NOTHING`; Python's words for true, false, null count."""
    trimmed = text.strip()
    return _PYTHON_WORDS[trimmed] if trimmed in _PYTHON_WORDS else read_json(trimmed)


def read_json(text: str) -> Any:
    if len(text) > _LONGEST_PARSED:
        return NOTHING
    try:
        value = json.loads(
            text, object_pairs_hook=_without_twice, parse_constant=_no_number, parse_float=_finite
        )
    except (ValueError, RecursionError):
        return NOTHING
    return value


def _without_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is there twice")
    return value


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_without_twice, parse_constant=_no_number, parse_float=_finite)


def whole_numbers(schema: Schema, args: dict[str, Any]) -> None:
    """Make 20.0 the int 20 where an integer is wanted; in JSON they are one number."""
    properties = schema.get("properties", {})
    for name, value in args.items():
        if isinstance(value, float) and value.is_integer() and isinstance(properties.get(name), Mapping):
            kinds = _kinds(properties[name], schema) or set()
            if "integer" in kinds and "number" not in kinds:
                args[name] = int(value)
