"""What a person typed into the fields of a form, as arguments.

Invariant: a text that is typed is the text that is sent, and a number keeps every digit; what cannot be read as the
field's kind is sent as it stands, so that the action's own schema says what is wrong. Only JSON that is none is held
back, with where it breaks off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.catalog.forgiveness import NOTHING, read_json
from reyn_jupyter.catalog.plain import Invalid
from reyn_jupyter.notebook.serving.fields import ActionForm, Kind
from reyn_jupyter.notebook.verbs.invoke import reference

EMPTY = '""'  # how one types a text that is there, but empty
_WHOLE = re.compile(r"[+-]?\d{1,4000}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")


class _UnreadableError(ValueError):
    """The text is no JSON."""


def arguments_of(form: ActionForm, typed: Mapping[str, str]) -> tuple[dict[str, Any], list[Invalid]]:
    """The arguments of a form, and what cannot be read.

    Args:
        typed: field name → text; a field that is left empty is not sent. "" holds the arguments without a field.
    """
    arguments: dict[str, Any] = {}
    faults: list[Invalid] = []
    for field in form.fields:
        text = typed.get(field.name, "")
        if not text or (field.kind not in ("text", "lines") and not text.strip()):
            continue
        try:
            arguments[field.name] = _value(text, field.kind, field.items)
        except _UnreadableError as error:
            faults.append({"path": f"/{_escaped(field.name)}", "message": str(error)})
    try:
        others = _others(typed.get("", ""), form)
    except _UnreadableError as error:
        faults.append({"path": "", "message": str(error)})
    else:
        arguments |= others
    return arguments, faults


def _value(text: str, kind: Kind, items: Kind) -> Any:
    if kind in ("text", "lines"):
        return "" if text == EMPTY else text
    text = text.strip()
    match kind:
        case "integer" | "number":
            return _number(text)
        case "reference":
            return _json(text) if text.startswith("{") else reference(text.removeprefix("@"))
        case "list":
            if text.startswith("["):
                return _json(text)
            lines = [line.strip() for line in text.split("\n")]
            return [line if items == "text" else _scalar(line) for line in lines if line]
        case "boolean":
            return _scalar(text)
        case _:
            return _json(text)


def _number(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and abs(number := float(text)) != float("inf"):
        return number
    return text


def _scalar(text: str) -> Any:
    return {"true": True, "false": False}[text] if text in ("true", "false") else _number(text)


def _json(text: str) -> Any:
    value = read_json(text)
    if value is not NOTHING:
        return value
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, character {error.colno}"
        raise _UnreadableError(
            f"is no JSON: {error.msg} at {where}; a text stands in double quotes"
        ) from None
    except (ValueError, RecursionError):
        pass
    raise _UnreadableError(
        "is no JSON with one meaning: a key stands there twice, or a number is NaN or too large"
    )


def _others(text: str, form: ActionForm) -> dict[str, Any]:
    if not text.strip():
        return {}
    value = _json(text.strip())
    if not isinstance(value, dict):
        raise _UnreadableError('must be an object: {"name": 1}')
    twice = next((field.name for field in form.fields if field.name in value), None)
    if twice is not None:
        raise _UnreadableError(f"{twice} has a field of its own")
    return value


def _escaped(name: str) -> str:
    """A name as a step of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")
