"""Read descriptions of tools, in the shapes that people have them in, into entries with JSON Schemas (draft 2020-12).

Invariants: every record becomes exactly one entry, whatever its name: repeated names get ``-2``, ``-3`` … in the order
given, so that equal records give equal entries in every process; a record that cannot be used is named in the error,
one whose schema no arguments can be held to among them: every call would fail, and count against the model. A sound
schema comes out as it went in; what an older draft, OpenAPI or a Python type's name said is said in today's words, and
means the same; what cannot be said so is left as it is, for `unusable` to name.
Source: JSON Schema, release notes of drafts 4 to 2020-12.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reyn_jupyter.catalog.arguments.schema_validation import (
    SchemaError,
    SchemaValidator,
    UnresolvedReferenceError,
)
from reyn_jupyter.catalog.face_checks import schema_fault
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.user_errors import UserError

LONGEST_ENTRY = 480  # characters, so that a number still fits behind it
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class ToolRecordError(UserError, ValueError):
    """A record that cannot become an action; the message names it, says why, and what it needs."""


@dataclass(frozen=True)
class ToolRecord:
    """One tool as an action's face.

    Attributes:
        id: what the source calls it.
        entry: the entry of its qualified name.
        description, schema: its face, the schema in JSON Schema's own types.
        types: JSON Pointer into the schema → the type that stood there, where it was another word.
    """

    id: str
    entry: str
    description: str
    schema: Mapping[str, Any]
    types: Mapping[str, str] = field(default_factory=dict)


def read_records(source: Any) -> tuple[ToolRecord, ...]:
    """Return the records of a list, of an answer to MCP's ``tools/list``, or of a JSON or JSONL file that holds
    them.

    Args:
        source: a path, an object with ``tools``, or records as {id?, name, description?, parameters?}, as MCP's
            {name, description?, inputSchema}, or as {"type": "function", "function": {…}}.

    Raises:
        ToolRecordError: a record is none, has no name, or a schema that no action can have.

    Example:
        >>> read_records({"tools": [{"name": "get_time", "inputSchema": {"type": "object"}}]})[0].entry
        'get_time'
    """
    listed = _list_records(_load(source) if isinstance(source, str | Path) else source)
    faces = [_face(record, number) for number, record in enumerate(listed, 1)]
    entries = _entries([name for _, name, _, _ in faces])
    found = []
    ids: dict[str, int] = {}
    for (given, name, description, schema), entry in zip(faces, entries, strict=True):
        identity = given or entry
        if identity in ids:
            raise ToolRecordError(f"two records have the id {identity!r}; give each an id of its own")
        ids[identity] = 1
        types: dict[str, str] = {}
        normal = of_arguments(schema, types)
        if fault := schema_fault(normal) or unusable(normal):
            raise ToolRecordError(f"the schema of record {identity!r} ({name[:100]!r}) {fault}; correct it")
        found.append(ToolRecord(identity, entry, description, normal, types))
    return tuple(found)


def _load(path: str | Path) -> Any:
    place = Path(path).expanduser()
    try:
        text = place.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolRecordError(f"{place} cannot be read ({error}); give a JSON or JSONL file") from error
    try:
        if place.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return json.loads(text)
    except ValueError as error:
        raise ToolRecordError(
            f"{place} is no JSON ({error}); a .jsonl file holds one record a line"
        ) from error


def _list_records(source: Any) -> list[Any]:
    while isinstance(source, Mapping):
        inner = source.get("result") if "result" in source else source.get("tools")
        if inner is None:
            raise ToolRecordError('records are a list, or an object with "tools"; this object has neither')
        source = inner
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise ToolRecordError(f"records are a list of objects, not a {type(source).__name__}")
    return list(source)


def _face(record: Any, number: int) -> tuple[str, str, str, Any]:
    """(id or "", name, description, schema) of one record."""
    if not isinstance(record, Mapping):
        raise ToolRecordError(f"record {number} is a {type(record).__name__}; give an object with a name")
    inner = record.get("function")
    face = inner if isinstance(inner, Mapping) else record
    name = face.get("name")
    identity = record.get("id", "")
    where = f"record {number}" + (f" ({str(identity)[:100]!r})" if identity else "")
    if not isinstance(name, str) or not name.strip():
        raise ToolRecordError(f"{where} has no name; give it one")
    description = face.get("description") or ""
    if not isinstance(description, str):
        raise ToolRecordError(f"the description of {where} is a {type(description).__name__}; give a text")
    schema: Any = next(
        (face[key] for key in ("parameters", "inputSchema", "input_schema") if face.get(key)), {}
    )
    if not isinstance(schema, Mapping):
        raise ToolRecordError(f"the schema of {where} is a {type(schema).__name__}; give an object")
    if not isinstance(identity, str | int):
        raise ToolRecordError(f"the id of {where} is a {type(identity).__name__}; give a text")
    return str(identity), name, description, schema


def _entries(names: list[str]) -> list[str]:
    """Return an entry for each name, none twice: the first of a name keeps it, the others get the next free number."""
    safe = [_CONTROL.sub("_", name.strip())[:LONGEST_ENTRY].strip() for name in names]
    taken = set(safe)
    seen: set[str] = set()
    numbers: dict[str, int] = {}
    entries = []
    for name in safe:
        entry = name
        if name in seen:
            number = numbers.get(name, 1)
            while entry in taken:
                number += 1
                entry = f"{name}-{number}"
            numbers[name] = number
            taken.add(entry)
        seen.add(name)
        entries.append(entry)
    return entries


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
_CHECKED = 4_096  # schemas of which it is remembered whether they can be used


def of_arguments(schema: Any, types: dict[str, str]) -> Any:
    """Return the schema of a tool's arguments, see `normalise_schema`; arguments are an object and never null."""
    made = normalise_schema(schema, types)
    if isinstance(made, dict) and isinstance(made.get("type"), list) and "object" in made["type"]:
        made["type"] = "object"
    return made


def normalise_schema(schema: Any, types: dict[str, str], pointer: str = "") -> Any:
    """Return a schema in today's words; `types` gets what stood for a type that JSON Schema does not know.

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
        here = f"{pointer}/{_escape(str(key))}"
        if key in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            made[key] = {
                name: normalise_schema(inner, types, f"{here}/{_escape(str(name))}")
                for name, inner in value.items()
            }
        elif key in _SCHEMAS and isinstance(value, Mapping):
            made[key] = normalise_schema(value, types, here)
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            made[key] = [
                normalise_schema(inner, types, f"{here}/{place}") for place, inner in enumerate(value)
            ]
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
    """Return the type that a word stands for; None for one that stands for any value."""
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
    """Move the "required" of single parameters, as in draft 3, to the list of the schema that holds them."""
    listed = schema.get("required", [])
    for name, part in properties.items():
        if isinstance(part, dict) and isinstance(part.get("required"), bool):
            properties[name] = {key: value for key, value in part.items() if key != "required"}
            if part["required"] and isinstance(listed, list):
                listed = [*listed, *({name} - set(map(str, listed)))]
    if listed:
        schema["required"] = listed


def unusable(schema: Mapping[str, Any]) -> str | None:
    """Return why no arguments can be held to a schema; None where they can.

    >>> unusable({"properties": {"a": {"$ref": "#/$defs/b"}}})
    "refers to '#/$defs/b', which it does not hold"
    """
    return _fault(json.dumps(schema, ensure_ascii=False))


@functools.lru_cache(maxsize=_CHECKED)
def _fault(text: str) -> str | None:
    try:
        SchemaValidator(json.loads(text)).check()
    except UnresolvedReferenceError as error:
        return error.message
    except SchemaError as error:
        place = "/".join(str(step) for step in error.path)
        return f"is no sound JSON Schema ({clip_line(error.message, 200)}{f', at {place}' if place else ''})"
    return None


def _escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
