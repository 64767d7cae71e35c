"""The columns that people see beside the model's JSON: arguments at a glance, permission, use, a ready line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.guard.permissions import Policy
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.support.reyn_line import quote_word, reyn_line

PERMISSION = {"allow": "allowed", "ask": "asks", "deny": "denied"}
EXAMPLE = {"string": "…", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


def action_rows(
    parts: Parts, snapshot: CatalogSnapshot, payload: dict[str, Any]
) -> tuple[dict[str, Any], ...]:
    """Return one row an item of a listing or search."""
    return tuple(_rows(parts, snapshot, payload))


def _rows(parts: Parts, snapshot: CatalogSnapshot, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    policy = parts.policy  # once: it reads the approvals of the disk
    for item in payload.get("items", ()):
        try:
            action = find(snapshot, item["qualified_name"])
        except UnknownActionError:
            continue
        row = action_row(parts, action, policy)
        if "score" in item:
            row["score"] = item["score"]
        yield row


def action_row(parts: Parts, action: Action, policy: Policy) -> dict[str, Any]:
    """Return one action as the table shows it, under the rules of `policy`."""
    use = parts.usage.uses.get(str(action.name))
    return {
        "qualified_name": str(action.name),
        "category": action.name.category,
        "description": action.short_description,
        "arguments": arguments_of(action),
        "purity": action.purity.value,
        "permission": permission_under(policy, action),
        "uses": use.count if use else 0,
        "last_ms": round(use.seconds * 1000, 1) if use else None,
    }


def arguments_of(action: Action) -> str:
    """Return the arguments on one line, required ones with a star and first: ``path*, offset, limit``."""
    required = set(action.input_schema.get("required", ()))
    names = sorted(action.input_schema.get("properties", {}), key=lambda name: name not in required)
    return ", ".join(f"{name}*" if name in required else name for name in names)


def permission_of(parts: Parts, action: Action) -> str:
    """Return the permission of the model for an action without a target now: allowed, asks or denied."""
    return permission_under(parts.policy, action)


def permission_under(policy: Policy, action: Action) -> str:
    verdict = policy.decide(str(action.name), action.purity, (), "model", "ask", action.face)
    return PERMISSION[verdict.decision]


def invoke_line(action: Action) -> str:
    """Return a ready ``%reyn invoke`` line with the required arguments to fill in."""
    properties = action.input_schema.get("properties", {})
    required = action.input_schema.get("required", ())
    given = [f"{quote_word(name)}={quote_word(_example(properties.get(name, {})))}" for name in required]
    return " ".join([reyn_line("invoke", str(action.name)), *given])


def _example(schema: dict[str, Any]) -> str:
    if schema.get("x-reference") is True:
        return "@variable"
    for key in ("default", "const"):
        if key in schema:
            return json.dumps(schema[key]) if not isinstance(schema[key], str) else schema[key]
    if schema.get("enum"):
        return str(schema["enum"][0])
    kind = schema.get("type")
    value = EXAMPLE.get(kind[0] if isinstance(kind, list) else str(kind), "…")
    return value if isinstance(value, str) else json.dumps(value)
