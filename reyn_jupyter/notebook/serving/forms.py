"""The form of an action, one field an argument, and what a person typed into it, as arguments.

Invariants: every schema gives a form; what has no plain widget (a union, a nested object, a schema that refers to
itself) is typed as JSON; an argument whose name cannot be shown as it is gets no field of its own, but can be given
among the others. Bounds that a page cannot hold exactly are left to the kernel, which checks everything again. A text
that is typed is the text that is sent, and a number keeps every digit; what cannot be read as the field's kind is
sent as it stands, so that the action's own schema says what is wrong. Only JSON that is none is held back, with where
it breaks off.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from reyn_jupyter.catalog.arguments.argument_repair import NOTHING, read_json
from reyn_jupyter.catalog.arguments.schema_validation import Invalid
from reyn_jupyter.notebook.magic_line.invoke_line import reference
from reyn_jupyter.notebook.render.catalog_view import follow_reference, type_label
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.operation import WireMessage

Kind = Literal["text", "lines", "integer", "number", "boolean", "choice", "list", "reference", "json"]

FIELDS = 60
CHOICES = 100
_EXACT = 2**53  # integers up to here are exact in a page
_LONG = 200  # a text that may be longer gets several lines
_LINES = frozenset({"content", "body", "text", "sql", "code", "prompt", "script", "markdown", "old", "new"})
_SAYS_LINES = ("multi-line", "multiline", "several lines", "markdown", "source code", "sql")
_PLAIN: Mapping[object, Kind] = {
    "string": "text", "integer": "integer", "number": "number", "boolean": "boolean",
}  # fmt: skip
_COMBINED = ("anyOf", "oneOf", "allOf", "not", "if", "$ref", "$dynamicRef")


class FormChoice(WireMessage):
    """Offer one value of several: the text on the screen, and the JSON that is sent."""

    text: str
    json_text: str


class FormField(WireMessage):
    """Describe the field of one argument.

    Attributes:
        name: its name, exactly as it is sent.
        kind: "lines" is a text over several lines; "list" holds scalars, one a line; "reference" a variable's name.
        items: what a "list" holds.
        type: the type in words, as the schema table has it.
        placeholder: the default, which is not sent.
        least, most: bounds that a number field can hold, "" where there are none.
    """

    name: str
    kind: Kind
    required: bool = False
    type: str = ""
    description: str = ""
    placeholder: str = ""
    items: Kind = "text"
    choices: tuple[FormChoice, ...] = ()
    least: str = ""
    most: str = ""


class ActionForm(WireMessage):
    """List all fields, the required ones first. `others` offers one more, for arguments without a field, as JSON."""

    fields: tuple[FormField, ...] = ()
    others: bool = False


def form(schema: object, look: Look) -> ActionForm:
    """Return the form of an input schema, whatever it looks like."""
    root = schema if isinstance(schema, Mapping) else {}
    properties = root.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = root.get("required")
    required = required if isinstance(required, list | tuple) else ()
    names = sorted(properties, key=lambda name: name not in required)
    shown = [name for name in names if look.line(name, 120) == name and name.isprintable()][:FIELDS]
    fields = tuple(_field(name, properties[name], name in required, root, look) for name in shown)
    others = len(shown) < len(names) or bool(
        root.get("additionalProperties") or root.get("patternProperties")
    )
    return ActionForm(fields=fields, others=others or any(key in root for key in _COMBINED))


def _field(name: str, given: object, required: bool, root: Mapping[str, Any], look: Look) -> FormField:
    member, kind = _simple(given, root)
    about = given if isinstance(given, Mapping) else {}
    description = about.get("description") or member.get("description") or about.get("title") or ""
    least, most = _bounds(member) if kind in ("integer", "number") else ("", "")
    if kind == "text" and _has_lines(name, member, description):
        kind = "lines"
    return FormField(
        name=name,
        kind=kind,
        required=required,
        type=look.line(_label(given, root), 120),
        description=look.text(description, 400),
        placeholder=_placeholder({**member, **about}, look),
        items=_simple(member.get("items"), root)[1] if kind == "list" else "text",
        choices=tuple(_choices(member, look)) if kind == "choice" else (),
        least=least,
        most=most,
    )


def _simple(given: object, root: Mapping[str, Any]) -> tuple[Mapping[str, Any], Kind]:
    """Return the schema that decides, and the widget for it: a choice between one type and null is that type."""
    member = follow_reference(given, root)
    for key in ("anyOf", "oneOf"):
        options = member.get(key)
        if isinstance(options, list | tuple) and len(options) <= 8:
            others = [option for option in options if follow_reference(option, root).get("type") != "null"]
            if len(others) == 1 and len(options) == 2:
                inner = follow_reference(others[0], root)
                return inner, _kind(inner, root)
    return member, _kind(member, root)


def _kind(member: Mapping[str, Any], root: Mapping[str, Any]) -> Kind:
    if member.get("x-reference") is True:
        return "reference"
    if any(key in member for key in _COMBINED):
        return "json"
    if "enum" in member or "const" in member:
        values = _values(member)
        return "choice" if 0 < len(values) <= CHOICES and all(map(_scalar, values)) else "json"
    kind = _type(member)
    if kind != "array":
        return _PLAIN.get(kind, "json")
    items = follow_reference(member.get("items"), root)
    special = any(key in items for key in (*_COMBINED, "enum", "const", "x-reference"))
    return "json" if special or _type(items) not in _PLAIN else "list"


def _type(member: Mapping[str, Any]) -> str | None:
    """Return the one type beside null, None where there are several or none is named."""
    kinds = member.get("type")
    named = [kind for kind in kinds if kind != "null"] if isinstance(kinds, list | tuple) else [kinds]
    return named[0] if len(named) == 1 and isinstance(named[0], str) else None


def _values(member: Mapping[str, Any]) -> Sequence[Any]:
    if "const" in member:
        return (member["const"],)
    values = member["enum"]
    return values if isinstance(values, list | tuple) else ()


def _scalar(value: object) -> bool:
    return (
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and math.isfinite(value))
    )


def _choices(member: Mapping[str, Any], look: Look) -> Iterator[FormChoice]:
    for value in _values(member):
        sent = json.dumps(value)
        shown = look.line(value, 80) if isinstance(value, str) and value else look.compact(value, 80)
        if look.text(sent, len(sent)) == sent:  # else it holds a secret, which is not sent to a page
            yield FormChoice(text=shown, json_text=sent)


def _has_lines(name: str, member: Mapping[str, Any], description: object) -> bool:
    longest = member.get("maxLength")
    if isinstance(longest, int) and longest <= _LONG:
        return False
    said = description.lower() if isinstance(description, str) else ""
    return name.lower() in _LINES or any(word in said for word in _SAYS_LINES) or isinstance(longest, int)


def _placeholder(member: Mapping[str, Any], look: Look) -> str:
    default = member.get("default")
    if default is None:
        return ""
    return look.line(default, 80) if isinstance(default, str) else look.compact(default, 80)


def _bounds(member: Mapping[str, Any]) -> tuple[str, str]:
    return _bound(member.get("minimum")), _bound(member.get("maximum"))


def _bound(value: object) -> str:
    plain = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _EXACT
    return str(value) if plain else ""


def _label(given: object, root: Mapping[str, Any]) -> str:
    if not isinstance(given, Mapping):
        return "any"
    return type_label(given, root)


EMPTY = '""'  # how one types a text that is there, but empty
_WHOLE = re.compile(r"[+-]?\d{1,4000}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")


class _UnreadableError(ValueError):
    """The text is no JSON."""


def arguments_of(form: ActionForm, typed: Mapping[str, str]) -> tuple[dict[str, Any], list[Invalid]]:
    """Return the arguments of a form, and what cannot be read.

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
            return [line if items == "text" else _typed_scalar(line) for line in lines if line]
        case "boolean":
            return _typed_scalar(text)
        case _:
            return _json(text)


def _number(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and abs(number := float(text)) != float("inf"):
        return number
    return text


def _typed_scalar(text: str) -> Any:
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
    """Return a name as a step of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")
