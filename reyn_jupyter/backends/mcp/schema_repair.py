"""Repair of the schemas that servers give for their tools, as far as they have one reading.

Invariants: what a sound schema says is not changed, apart from one thing: a property with a default is not required,
because servers fill it in and other clients send the call without it. A schema without one reading is refused with the
reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.catalog.arguments.schema_dialects import translate_schema
from reyn_jupyter.catalog.schema_check import DEEPEST_SCHEMA
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_ONE = frozenset(
    {"items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains"}
    | {"propertyNames", "unevaluatedItems", "unevaluatedProperties"}
)
_SEVERAL = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_VALUES = frozenset({"const", "default", "example", "examples"})  # null means something here
_TEXTS = frozenset({"description", "title", "$comment"})
_DROPPED: Any = object()


class UnusableSchemaError(Exception):
    """A schema has no reading as the arguments of a tool; the message goes on after "it cannot be used: "."""


def repaired_schema(schema: Any) -> dict[str, Any]:
    """Return the schema of a tool's arguments, repaired where it has one reading.

    Raises:
        UnusableSchemaError: it has none.

    >>> repaired_schema(None)
    {'type': 'object'}
    >>> repaired_schema({"type": "OBJECT", "properties": [], "required": {}})
    {'type': 'object', 'properties': {}}
    >>> repaired_schema({"properties": {"n": {"default": 5}, "q": "string"}, "required": ["q", "n"]})
    {'properties': {'n': {'default': 5}, 'q': {'type': 'string'}}, 'required': ['q'], 'type': 'object'}
    """
    if schema is None or schema is True or schema == []:
        schema = {}
    if not isinstance(schema, Mapping):
        raise UnusableSchemaError("its input schema is not an object")
    made: dict[str, Any] = _part(schema, 0, "")
    kinds = made.get("type")
    meant = translate_schema({"type": kinds}).get("type") if "type" in made else None  # "dict" is an object
    if meant is not None and "object" not in _list(meant):
        raise UnusableSchemaError(f"its arguments are of type {_shown(kinds)!r}, not an object")
    if isinstance(made.get("required"), bool):
        del made["required"]
    return made | {"type": "object"}


def _part(schema: Any, depth: int, place: str) -> Any:
    if depth > DEEPEST_SCHEMA:
        raise UnusableSchemaError("its schema is too deep")
    if schema is None or schema == []:  # PHP writes an empty object so
        return {}
    if isinstance(schema, str):
        return {"type": schema}
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise UnusableSchemaError(f"its schema has a part that is not a schema: {place}")
    made: dict[str, Any] = {}
    listed: list[str] = []
    for key, value in schema.items():
        if key == "required" and not isinstance(value, bool):
            listed += [each for each in _list(value) if isinstance(each, str)]
        elif (read := _keyword(key, value, depth, f"{place}/{_shown(key)}", listed)) is not _DROPPED:
            made[key] = read
    properties = made.get("properties", {})
    needed = [name for name in dict.fromkeys(listed) if not _has_default(properties.get(name))]
    return made | {"required": needed} if needed else made


def _keyword(key: str, value: Any, depth: int, place: str, listed: list[str]) -> Any:
    """Return the value of one keyword, repaired; `_DROPPED` if it says nothing."""
    if key in _BY_NAME and value is not None:
        return _by_name(value, depth, place, listed if key == "properties" else None)
    if key == "type":
        return _type(value)
    if key in _SEVERAL and value is not None:
        parts = _list(value)
        return [_part(each, depth + 1, place) for each in parts] or _DROPPED  # an empty list is not allowed
    if key in _ONE and value is not None:
        if key == "items" and isinstance(value, list) and value:
            return [_part(each, depth + 1, place) for each in value]
        return _part(value, depth + 1, place)
    if key == "enum":
        return _list(value) or _DROPPED if value is not None else _DROPPED
    is_said = key in _VALUES if value is None else key not in _TEXTS or isinstance(value, str)
    return value if is_said else _DROPPED


def _by_name(value: Any, depth: int, place: str, listed: list[str] | None) -> dict[str, Any]:
    """Return schemas by name.

    Args:
        listed: gets the names that are required, of a list that is among the properties by mistake.
    """
    if value == []:
        return {}
    if isinstance(value, list) and all(isinstance(each, Mapping) and "name" in each for each in value):
        value = {str(each["name"]): {k: v for k, v in each.items() if k != "name"} for each in value}
    if not isinstance(value, Mapping):
        raise UnusableSchemaError(f"its schema has a part that is not an object: {place}")
    made = {}
    for name, part in value.items():
        if listed is not None and name == "required" and isinstance(part, list):
            listed += [each for each in part if isinstance(each, str)]
            continue
        made[name] = _part(part, depth + 1, f"{place}/{_shown(name)}")
        required = made[name].get("required") if isinstance(made[name], dict) else None
        if isinstance(required, bool):
            del made[name]["required"]
            if required and listed is not None:
                listed.append(name)
    return made


def _type(value: Any) -> Any:
    """Return the type or types, in the letters of JSON Schema; `_DROPPED` if the value does not name one."""
    if isinstance(value, str):
        return value.strip().lower() or _DROPPED
    if isinstance(value, list):
        return list(dict.fromkeys(str(each).strip().lower() for each in value)) or _DROPPED
    return _DROPPED


def _list(value: Any) -> list[Any]:
    if isinstance(value, Mapping):  # PHP writes a list with gaps as an object
        return list(value.values())
    return value if isinstance(value, list) else [] if value is None else [value]


def _has_default(part: Any) -> bool:
    return isinstance(part, Mapping) and "default" in part


def _shown(value: Any) -> str:
    return shorten(visible(str(value)), 60)
