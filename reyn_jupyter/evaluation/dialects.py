"""Schemas as tools have them, in the words of the one JSON Schema that the loop reads (draft 2020-12).

Invariants: a sound schema comes out as it went in; what an older draft, OpenAPI or a Python type's name said is said in
today's words, and means the same. What cannot be said so is left as it is, for `unusable` to name.
Source: JSON Schema, release notes of drafts 4 to 2020-12.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from reyn_jupyter.catalog.plain import compile_plain
from reyn_jupyter.catalog.text import clip
from reyn_jupyter.catalog.validation import build_validator

_KNOWN = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MEANT = {
    "dict": "object", "hashmap": "object", "map": "object", "struct": "object", "json": "object",
    "list": "array", "tuple": "array", "arraylist": "array", "set": "array",
    "str": "string", "char": "string", "text": "string", "date": "string",
    "float": "number", "double": "number", "decimal": "number",
    "int": "integer", "long": "integer", "short": "integer", "byte": "integer", "bigint": "integer",
    "bool": "boolean", "none": "null", "undefined": "null",
}  # fmt: skip
_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_DATA = frozenset(("const", "default", "enum", "example", "examples"))  # hold values, no schemas
_CHECKED = 4_096  # schemas of which it is remembered whether they can be used


def of_arguments(schema: Any, types: dict[str, str]) -> Any:
    """The schema of a tool's arguments, see `normalised`; arguments are an object and never null."""
    made = normalised(schema, types)
    if isinstance(made, dict) and isinstance(made.get("type"), list) and "object" in made["type"]:
        made["type"] = "object"
    return made


def normalised(schema: Any, types: dict[str, str], pointer: str = "") -> Any:
    """A schema in today's words; `types` gets what stood for a type that JSON Schema does not know.

    Args:
        schema: of any draft, with BFCL's types ("dict", "float", "tuple", "any") or a language's.
        types: gets JSON Pointer (RFC 6901) → word; of several types, the words as JSON.
        pointer: where the schema stands.

    >>> types = {}
    >>> normalised({"type": "dict", "properties": {"x": {"type": "float"}}}, types)["type"], types
    ('object', {'/type': 'dict', '/properties/x/type': 'float'})
    >>> normalised({"items": [{"type": "string"}], "minimum": 0, "exclusiveMinimum": True}, {})
    {'prefixItems': [{'type': 'string'}], 'exclusiveMinimum': 0}
    """
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        here = f"{pointer}/{_escaped(str(key))}"
        if key in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            made[key] = {
                name: normalised(inner, types, f"{here}/{_escaped(str(name))}")
                for name, inner in value.items()
            }
        elif key in _SCHEMAS and isinstance(value, Mapping):
            made[key] = normalised(value, types, here)
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            made[key] = [normalised(inner, types, f"{here}/{place}") for place, inner in enumerate(value)]
        elif key == "type" and isinstance(value, str) and value not in _KNOWN:
            types[here] = value
            if meant := _meant(value):
                made[key] = meant
        elif key == "type" and isinstance(value, list) and not _KNOWN.issuperset(map(str, value)):
            types[here] = json.dumps(value, default=str)
            found = [_meant(each) for each in value]
            if None not in found:
                made[key] = list(dict.fromkeys(found))
        else:
            made[key] = value
    return _of_today(made)


def _meant(word: object) -> str | None:
    """The type that a word stands for; None for one that stands for any value."""
    plain = word.lower() if isinstance(word, str) else ""
    return _MEANT.get(plain, plain if plain in _KNOWN else None)


def _of_today(schema: dict[str, Any]) -> dict[str, Any]:
    """Drafts 3 to 2019-09 and OpenAPI 3.0: tuples in `items`, bounds and `required` as truth values, `nullable`."""
    if isinstance(schema.get("items"), list):
        after = schema.pop("additionalItems", None)
        schema["prefixItems"] = schema.pop("items")
        if after is not None:
            schema["items"] = after
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(bound), bool) and schema.pop(bound) and limit in schema:
            schema[bound] = schema.pop(limit)
    if schema.get("nullable") is True and isinstance(schema.get("type"), str) and "enum" not in schema:
        schema["type"] = [schema["type"], "null"]
        del schema["nullable"]
    for key in ("properties", "required"):
        if schema.get(key, ()) is None:
            del schema[key]
    if isinstance(schema.get("properties"), dict):
        _lift_required(schema, schema["properties"])
    return schema


def _lift_required(schema: dict[str, Any], properties: dict[str, Any]) -> None:
    """Where parameters say themselves whether they are needed, as in draft 3, their schema says it for them."""
    listed = schema.get("required", [])
    for name, part in properties.items():
        if isinstance(part, dict) and isinstance(part.get("required"), bool):
            properties[name] = {key: value for key, value in part.items() if key != "required"}
            if part["required"] and isinstance(listed, list):
                listed = [*listed, *({name} - set(map(str, listed)))]
    if listed:
        schema["required"] = listed


def unusable(schema: Mapping[str, Any]) -> str | None:
    """Why no arguments can be held to a schema; None where they can.

    >>> unusable({"properties": {"a": {"$ref": "#/$defs/b"}}})
    "refers to '#/$defs/b', which it does not hold"
    """
    if compile_plain(schema).exact:
        return None
    return _fault(json.dumps(schema, ensure_ascii=False))


@functools.lru_cache(maxsize=_CHECKED)
def _fault(text: str) -> str | None:
    schema = json.loads(text)
    try:
        build_validator(schema)
    except Exception as error:
        if type(error).__name__ != "SchemaError":  # of a library that is imported on first use
            raise
        place = "/".join(str(step) for step in getattr(error, "absolute_path", ()))
        reason = clip(getattr(error, "message", ""), 200)
        return f"is no sound JSON Schema ({reason}{f', at {place}' if place else ''})"
    lost = next((each for each in _references(schema) if not _leads_somewhere(schema, each)), None)
    return None if lost is None else f"refers to {clip(lost)!r}, which it does not hold"


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for key, inner in part.items():
            if key not in _DATA:
                yield from _references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _references(inner)


def _leads_somewhere(schema: Any, reference: str) -> bool:
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    known: Registry[Any] = Registry().with_resource("", DRAFT202012.create_resource(schema))
    try:
        known.resolver().lookup(reference)
    except Unresolvable:
        return False
    return True


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
