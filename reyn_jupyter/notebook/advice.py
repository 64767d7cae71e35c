"""An error payload as one sentence for a person, and what the person can do next.

A payload speaks to a model (it names wrappers); at a keyboard the way on is a verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SUGGESTED = 3
_INVALID = 4
_CATEGORIES = 20


def sentence(payload: Mapping[str, Any]) -> str:
    """What happened and why.

    Example:
        >>> sentence({"error": "Invalid arguments for 'f'", "invalid": [{"path": "/n", "message": "is required"}]})
        "Invalid arguments for 'f': n is required."
    """
    said = str(payload.get("error") or "It failed")
    wrong = [_argument(item) for item in _list(payload, "invalid") if isinstance(item, Mapping)]
    if wrong and "reason" not in payload:
        more = f"; and {len(wrong) - _INVALID} more" if len(wrong) > _INVALID else ""
        said = f"{said.rstrip('.')}: {'; '.join(wrong[:_INVALID])}{more}"
    elif payload.get("reason") and not _list(payload, "suggestions"):
        said = f"{_ended(said)} {payload['reason']}"
    return _ended(said)


def way_on(payload: Mapping[str, Any]) -> str:
    """What to try instead, in a person's terms; "" when there is nothing to say."""
    suggestions = [str(name) for name in _list(payload, "suggestions")[:_SUGGESTED]]
    redirects = payload.get("redirects")
    if isinstance(redirects, Mapping) and redirects:
        return "Renamed: " + ", ".join(f"{old} → {new}" for old, new in redirects.items()) + "."
    if suggestions:
        return f"Did you mean {_either(suggestions)}?"
    if "valid_categories" in payload:
        return f"Categories: {', '.join(map(str, _list(payload, 'valid_categories')[:_CATEGORIES]))}."
    if "suggestions" in payload:
        return "%reyn list shows what there is."
    if "invalid" in payload:
        return "%reyn describe shows its arguments." if "input_schema" in payload else ""
    if str(payload.get("error", "")).startswith("Denied"):
        return "%reyn approvals shows the rules."
    return str(payload.get("hint") or "")


def _argument(item: Mapping[str, Any]) -> str:
    name = str(item.get("path", "")).lstrip("/").replace("/", ".")
    message = str(item.get("message", "is wrong"))
    joint = " " if message.startswith(("is ", "must ", "has ")) else ": "
    return f"{name}{joint}{message}" if name else message


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _list(payload: Mapping[str, Any], key: str) -> list[Any]:
    value = payload.get(key)
    return list(value) if isinstance(value, list | tuple) else []


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."
