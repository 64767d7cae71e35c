"""Read descriptions of tools, in the shapes that people have them in, into entries with JSON Schemas (draft 2020-12).

Invariants: every record becomes exactly one entry, whatever its name: repeated names get ``-2``, ``-3`` … in the order
given, so that equal records give equal entries in every process; a record that cannot be used is named in the error,
one whose schema no arguments can be held to among them: every call would fail, and count against the model. A sound
schema comes out as it went in; what an older draft, OpenAPI or a Python type's name said is translated by
`catalog.arguments.schema_dialects`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reyn_jupyter.catalog.arguments.schema_dialects import SchemaError
from reyn_jupyter.catalog.schema_check import check_schema, read_schema
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
        try:
            normal = read_schema(schema, types=types)
            fault = check_schema(normal)
        except SchemaError as error:
            fault = error.message
        if fault:
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
