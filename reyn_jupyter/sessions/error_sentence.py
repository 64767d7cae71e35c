"""The error payload of a call as a sentence for people: what happened, and which arguments were wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.support.text import argument_name, end_sentence

_INVALID = 4  # arguments that are named as wrong


def error_sentence(payload: Mapping[str, Any]) -> str:
    """Return what happened and why, of an error payload.

    Example:
        >>> wrong = [{"path": "/n", "message": "is required"}]
        >>> error_sentence({"error": "Invalid arguments for 'f'", "invalid": wrong})
        "Invalid arguments for 'f': n is required."
    """
    said = str(payload.get("error") or "It failed")
    wrong = [_argument(item) for item in payload_list(payload, "invalid") if isinstance(item, Mapping)]
    if wrong and "reason" not in payload:
        more = f"; and {len(wrong) - _INVALID} more" if len(wrong) > _INVALID else ""
        said = f"{said.rstrip('.')}: {'; '.join(wrong[:_INVALID])}{more}"
    elif payload.get("reason") and not payload_list(payload, "suggestions"):
        said = f"{end_sentence(said)} {payload['reason']}"
    return end_sentence(said)


def payload_list(payload: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list that a payload has under a key; an empty one where it has none."""
    value = payload.get(key)
    return list(value) if isinstance(value, list | tuple) else []


def _argument(item: Mapping[str, Any]) -> str:
    name = argument_name(str(item.get("path", "")))
    message = str(item.get("message", "is wrong"))
    joint = " " if message.startswith(("is ", "must ", "has ")) else ": "
    return f"{name}{joint}{message}" if name else message
