"""The size of one answer from the catalog, and what is left out to keep it.

Invariant: whatever a listing or a description shows, its compact UTF-8 JSON stays within the answer's
bytes, and what was left out is said. A category of somebody else may bring a schema of a megabyte. Source
of 8 KiB: tool-output design, answers that help the model find its way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.support.encoding import clip_line

ANSWER_BYTES = 8192
_DESCRIPTION = 1200  # bytes of a long description that stay when an action does not fit
_REMARK = 120  # bytes of a parameter's description that stay
_DEEPEST = 4  # levels of a schema that stay
_NOISE = frozenset({"title", "examples", "$comment", "$schema", "$id"})


def encoded_size(value: object) -> int:
    """Return the bytes of a value as compact UTF-8 JSON."""
    return len(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode(
            "utf-8", "surrogatepass"
        )
    )


def shortened(face: dict[str, Any], room: int) -> dict[str, Any]:
    """Shorten an action's face to `room` bytes: description, then the schema's remarks, then optional parameters go.

    Args:
        face: with ``description`` and ``input_schema``.
        room: bytes.
    """
    if encoded_size(face) <= room:
        return face
    short = {**face, "description": clip_words(face["description"], _DESCRIPTION), "note": "shortened to fit"}
    spare = room - (encoded_size(short) - encoded_size(short["input_schema"]))
    return {**short, "input_schema": fitting_schema(face["input_schema"], spare)}


def clip_words(text: str, limit: int) -> str:
    """Text of several lines within `limit` bytes, cut on a code point."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else encoded[: limit - 3].decode("utf-8", "ignore") + "…"


def fitting_schema(schema: Mapping[str, Any], room: int) -> dict[str, Any]:
    """Return a schema within `room` bytes that still tells names, types and what is required.

    >>> fitting_schema({"type": "object", "properties": {"path": {"type": "string"}}}, 500)
    {'type': 'object', 'properties': {'path': {'type': 'string'}}}
    """
    if encoded_size(schema) <= room:
        return dict(schema)
    pruned = _pruned(schema, _DEEPEST)
    if encoded_size(pruned) <= room:
        return dict(pruned)
    required = [name for name in schema.get("required", ()) if isinstance(name, str)]
    properties: Mapping[str, Any] = schema.get("properties", {})
    ordered = [
        *(name for name in required if name in properties),
        *(n for n in properties if n not in set(required)),
    ]
    kept: dict[str, Any] = {}
    spare = room - 120
    for name in ordered:
        rule = {"type": properties[name].get("type")} if isinstance(properties[name], Mapping) else {}
        rule = rule if isinstance(rule.get("type"), str) else {}
        spare -= encoded_size({name: rule}) + len(name.encode("utf-8", "surrogatepass")) + 4
        if spare < 0:
            break
        kept[name] = rule
    left_out = len(ordered) - len(kept)
    return {
        "type": "object",
        "properties": kept,
        "required": [name for name in required if name in kept],
        **({"$comment": f"{left_out} more parameters are left out here"} if left_out else {}),
    }


def _pruned(node: Any, depth: int) -> Any:
    if isinstance(node, Mapping):
        if depth == 0:
            return {"type": node["type"]} if isinstance(node.get("type"), str) else {}
        return {
            key: clip_line(value, _REMARK)
            if key == "description" and isinstance(value, str)
            else _pruned(value, depth - 1)
            for key, value in node.items()
            if key not in _NOISE or isinstance(value, Mapping)
        }
    if isinstance(node, (list, tuple)):
        return [_pruned(item, max(0, depth - 1)) for item in node[:50]]
    return node
