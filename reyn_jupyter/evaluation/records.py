"""Plain descriptions of tools, in the shapes that people have them in, as faces of actions.

Invariant: every record becomes exactly one entry, whatever its name: repeated names get ``-2``, ``-3`` … in the order
given, so that equal records give equal entries in every process; a record that cannot be used is named in the error.
Types that JSON Schema does not know (BFCL's "dict", "float", "tuple", "any") become those that it knows, and what they
were is kept beside the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reyn_jupyter.catalog.checks import schema_fault

LONGEST_ENTRY = 480  # characters, so that a number still fits behind it
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_KNOWN = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MEANT = {
    "dict": "object", "hashmap": "object", "map": "object", "struct": "object", "json": "object",
    "list": "array", "tuple": "array", "arraylist": "array", "set": "array",
    "str": "string", "char": "string", "text": "string", "date": "string",
    "float": "number", "double": "number", "decimal": "number",
    "int": "integer", "long": "integer", "short": "integer", "byte": "integer", "bigint": "integer",
    "bool": "boolean", "none": "null", "undefined": "null",
}  # fmt: skip


class RecordError(ValueError):
    """A record that cannot become an action; the message names it, says why, and what it needs."""


@dataclass(frozen=True)
class Record:
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


def read_records(source: Any) -> tuple[Record, ...]:
    """The records of a list, of an answer to MCP's ``tools/list``, or of a JSON or JSONL file that holds them.

    Args:
        source: a path, an object with ``tools``, or records as {id?, name, description?, parameters?}, as MCP's
            {name, description?, inputSchema}, or as {"type": "function", "function": {…}}.

    Raises:
        RecordError: a record is none, has no name, or a schema that no action can have.

    Example:
        >>> read_records({"tools": [{"name": "get_time", "inputSchema": {"type": "object"}}]})[0].entry
        'get_time'
    """
    listed = _listed(_loaded(source) if isinstance(source, str | Path) else source)
    faces = [_face(record, number) for number, record in enumerate(listed, 1)]
    entries = _entries([name for _, name, _, _ in faces])
    found = []
    ids: dict[str, int] = {}
    for (given, name, description, schema), entry in zip(faces, entries, strict=True):
        identity = given or entry
        if identity in ids:
            raise RecordError(f"two records have the id {identity!r}; give each an id of its own")
        ids[identity] = 1
        types: dict[str, str] = {}
        normal = normalised(schema, types)
        if fault := schema_fault(normal):
            raise RecordError(f"the schema of record {identity!r} ({name[:100]!r}) {fault}; correct it")
        found.append(Record(identity, entry, description, normal, types))
    return tuple(found)


def _loaded(path: str | Path) -> Any:
    place = Path(path).expanduser()
    try:
        text = place.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{place} cannot be read ({error}); give a JSON or JSONL file") from error
    try:
        if place.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return json.loads(text)
    except ValueError as error:
        raise RecordError(f"{place} is no JSON ({error}); a .jsonl file holds one record a line") from error


def _listed(source: Any) -> list[Any]:
    while isinstance(source, Mapping):
        inner = source.get("result") if "result" in source else source.get("tools")
        if inner is None:
            raise RecordError('records are a list, or an object with "tools"; this object has neither')
        source = inner
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise RecordError(f"records are a list of objects, not a {type(source).__name__}")
    return list(source)


def _face(record: Any, number: int) -> tuple[str, str, str, Any]:
    """(id or "", name, description, schema) of one record."""
    if not isinstance(record, Mapping):
        raise RecordError(f"record {number} is a {type(record).__name__}; give an object with a name")
    inner = record.get("function")
    face = inner if isinstance(inner, Mapping) else record
    name = face.get("name")
    identity = record.get("id", "")
    where = f"record {number}" + (f" ({str(identity)[:100]!r})" if identity else "")
    if not isinstance(name, str) or not name.strip():
        raise RecordError(f"{where} has no name; give it one")
    description = face.get("description") or ""
    if not isinstance(description, str):
        raise RecordError(f"the description of {where} is a {type(description).__name__}; give a text")
    schema: Any = next(
        (face[key] for key in ("parameters", "inputSchema", "input_schema") if face.get(key)), {}
    )
    if not isinstance(schema, Mapping):
        raise RecordError(f"the schema of {where} is a {type(schema).__name__}; give an object")
    if not isinstance(identity, str | int):
        raise RecordError(f"the id of {where} is a {type(identity).__name__}; give a text")
    return str(identity), name, description, schema


def _entries(names: list[str]) -> list[str]:
    """An entry for each name, none twice: the first of a name keeps it, the others get the next free number."""
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


def normalised(schema: Any, types: dict[str, str], pointer: str = "") -> Any:
    """A schema in JSON Schema's own types; `types` gets what stood where, by JSON Pointer (RFC 6901).

    >>> types = {}
    >>> normalised({"type": "dict", "properties": {"x": {"type": "float"}}}, types)["type"], types
    ('object', {'/properties/x/type': 'float', '/type': 'dict'})
    """
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        here = f"{pointer}/{_escaped(str(key))}"
        if key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, Mapping):
            made[key] = {
                name: normalised(inner, types, f"{here}/{_escaped(str(name))}")
                for name, inner in value.items()
            }
        elif key in ("items", "additionalProperties", "not") and isinstance(value, Mapping):
            made[key] = normalised(value, types, here)
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems", "items") and isinstance(value, list):
            made[key] = [normalised(inner, types, f"{here}/{place}") for place, inner in enumerate(value)]
        elif key == "type" and isinstance(value, str) and value not in _KNOWN:
            types[here] = value
            if meant := _MEANT.get(value.lower(), value.lower() if value.lower() in _KNOWN else None):
                made[key] = meant
        else:
            made[key] = value
    return made


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
