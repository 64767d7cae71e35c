"""The conditions under which a JSON Schema from anywhere can be the schema of an action's arguments.

Invariant: a schema that passes `check_schema` can be called with: it is bounded in size and depth, in a dialect that is
known, refers to nothing outside itself, and ends soon for any arguments. Nothing is fetched. `read_schema` does what
needs no validator, for every schema of a snapshot; `check_schema` does all, for schemas that somebody else wrote.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.catalog.arguments.schema_dialects import SchemaError, needs_translation, translate_schema
from reyn_jupyter.catalog.arguments.schema_validation import (
    InvolvedSchemaError,
    SchemaValidator,
    UnresolvedReferenceError,
)
from reyn_jupyter.support.encoding import clip_line

LARGEST_SCHEMA = 1_000_000  # bytes
DEEPEST_SCHEMA = 100  # levels of objects and lists
_CHECKED = 4_096  # schemas of which it is remembered whether they can be used


def read_schema(
    schema: Any, *, open_schema: bool = False, types: dict[str, str] | None = None
) -> Mapping[str, Any]:
    """Return the schema of an action's arguments in JSON Schema 2020-12; the same object where it is that already.

    Args:
        schema: of any draft, see `translate_schema`.
        open_schema: whether other arguments than its properties are welcome where it says nothing of them, as JSON
            Schema has it; the schema that comes back says so.
        types: see `translate_schema`.

    Raises:
        SchemaError: it cannot be one; the message goes on after "the input schema of …".

    >>> read_schema({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {}}, open_schema=True)
    {'properties': {}, 'additionalProperties': True}
    """
    if not isinstance(schema, Mapping):
        raise SchemaError("is no JSON Schema object")
    text = _bounded(schema)
    made = translate_schema(schema, types) if needs_translation(text) else schema
    kinds = made.get("type", "object")
    if isinstance(kinds, list | tuple) and "object" in kinds:  # arguments are never null
        made = {**made, "type": "object"}
    elif kinds != "object":
        raise SchemaError("is not of type 'object'")
    _check_names(made)
    if open_schema and not made.keys() & {"additionalProperties", "unevaluatedProperties"}:
        made = {**made, "additionalProperties": True}
    return made


def check_schema(schema: Any) -> str | None:
    """Return why a value cannot be the schema of an action's arguments, or None where it can.

    The reason goes on after a subject, such as "the input schema of 'x'".

    >>> check_schema({"type": "array"})
    "is not of type 'object'"
    >>> check_schema({"properties": {"a": {"$ref": "#/$defs/b"}}})
    "refers to '#/$defs/b', which it does not hold"
    """
    try:
        made = read_schema(schema)
    except SchemaError as error:
        return error.message
    return _unusable(json.dumps(made, ensure_ascii=False))


@functools.lru_cache(maxsize=_CHECKED)
def _unusable(text: str) -> str | None:
    """Return why no arguments can be held to a schema; None where they can."""
    try:
        SchemaValidator(json.loads(text)).check()
    except SchemaError as error:
        if isinstance(error, UnresolvedReferenceError | InvolvedSchemaError):
            return error.message
        place = "/".join(str(step) for step in error.path)
        return f"is no sound JSON Schema ({clip_line(error.message, 200)}{f', at {place}' if place else ''})"
    except Exception as error:  # noqa: BLE001 - what the validator's library does with somebody else's schema
        return f"cannot be used by the validator ({type(error).__name__}: {clip_line(str(error), 200)})"
    return None


def _bounded(schema: Mapping[str, Any]) -> str:
    """Return a schema as JSON text. Raises SchemaError for what is none, too large or too deep."""
    try:
        text = json.dumps(schema, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"is no JSON ({type(error).__name__})") from None
    if len(text) > LARGEST_SCHEMA or len(text.encode("utf-8", "surrogatepass")) > LARGEST_SCHEMA:
        raise SchemaError(f"is larger than {LARGEST_SCHEMA:,} bytes")
    level: list[Any] = [schema]
    for _ in range(DEEPEST_SCHEMA):
        inner: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                if not all(type(key) is str for key in part):
                    raise SchemaError("has a key that is no text")
                inner += [each for each in part.values() if isinstance(each, dict | list | tuple)]
            else:
                inner += [each for each in part if isinstance(each, dict | list | tuple)]
        if not inner:
            return text
        level = inner
    raise SchemaError(f"is nested deeper than {DEEPEST_SCHEMA} levels")


def _check_names(schema: Mapping[str, Any]) -> None:
    """Raise SchemaError where properties are no schemas by name, or what is required no list of names."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or not all(
        isinstance(rule, Mapping | bool) for rule in properties.values()
    ):
        raise SchemaError("has properties that are no schemas")
    required = schema.get("required", [])
    if not isinstance(required, list | tuple) or not all(isinstance(name, str) for name in required):
        raise SchemaError("has a 'required' that is no list of names")
