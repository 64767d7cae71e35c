"""Errors of calls in one line, with the nearest right value, for models that copy what they see.

Invariant: nothing is said that the whole error does not say, but for the action's own schema; where a text of others is
marked as such, the mark stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reyn_jupyter.runtime.call.outcomes import written
from reyn_jupyter.runtime.run import Outcome
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import did_you_mean, enumerate_words

LINE = 400  # characters
_MOST = 3  # of what is listed
_ARGUMENTS = 12
_KEPT = ("blob", "note")


def in_short(outcome: Outcome) -> Outcome:
    """Return the outcome of a call with its error in one line; one that worked, or that lists actions, as it is."""
    payload = outcome.payload
    if outcome.ok or not isinstance(payload, dict) or "items" in payload or outcome.partial:
        return outcome
    whole = written(payload)
    if not outcome.text.startswith(whole):
        return outcome
    short: dict[str, Any] = {"error": short_error(payload)}
    if suggestions := _texts(payload.get("suggestions")):
        short["suggestions"] = suggestions[:_MOST]
    short |= {key: payload[key] for key in _KEPT if payload.get(key) is not None}
    return replace(outcome, text=written(short) + outcome.text[len(whole) :])


def short_error(payload: Mapping[str, Any]) -> str:
    """Return an error as one line: what is wrong, and the nearest right value or what to do.

    >>> short_error({"error": "Unknown action 'file__red'", "suggestions": ["file__read"]})
    "Unknown action 'file__red'. Did you mean file__read?"
    >>> schema = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    >>> faults = [{"path": "/pth", "message": "unknown"}]
    >>> short_error({"error": "Invalid arguments", "invalid": faults, "input_schema": schema})
    'Invalid arguments: pth: unknown. It takes path (string, needed).'
    """
    said = str(payload.get("error", "")).strip().rstrip(".")
    invalid = payload.get("invalid")
    faults = [
        f"{str(each.get('path', '')).lstrip('/') or 'args'}: {each.get('message', '')}"
        for each in (invalid if isinstance(invalid, list) else ())
        if isinstance(each, dict)
    ]
    if faults:
        said = f"{said}: {'; '.join(faults[:_MOST])}"
    way = _way_on(payload, bool(faults))
    return clip_line(f"{said}{'' if said.endswith(('?', '!')) else '.'} {way}".strip(), LINE)


def _way_on(payload: Mapping[str, Any], has_faults: bool) -> str:
    suggestions = _texts(payload.get("suggestions"))
    if suggestions:
        return did_you_mean(suggestions[:1])
    if has_faults and (takes := _signature(payload.get("input_schema"))):
        return takes
    if "the nearest is" in str(payload.get("error")):
        return ""
    if categories := _texts(payload.get("valid_categories")):
        return f"Categories: {', '.join(categories)}."
    return f"{payload.get('reason') or ''} {payload.get('hint') or ''}".strip()


def _signature(schema: object) -> str:
    """Return what an action takes, as a sentence; "" where its schema does not say."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict) or not properties:
        return ""
    needed = schema.get("required")
    needed = needed if isinstance(needed, list) else []
    names = sorted(properties, key=lambda name: name not in needed)[:_ARGUMENTS]
    return (
        f"It takes {enumerate_words([_argument(name, properties[name], name in needed) for name in names])}."
    )


def _argument(name: str, schema: object, needed: bool) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    facts = [kind if isinstance(kind, str) else "", "needed" if needed else ""]
    said = ", ".join(filter(None, facts))
    return f"{name} ({said})" if said else name


def _texts(value: object) -> Sequence[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []
