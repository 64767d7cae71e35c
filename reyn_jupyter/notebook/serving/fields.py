"""The form of an action: one field an argument, read from its schema.

Invariants: every schema gives a form; what has no plain widget (a union, a nested object, a schema that refers to
itself) is typed as JSON; an argument whose name cannot be shown as it is gets no field of its own, but can be given
among the others. Bounds that a page cannot hold exactly are left to the kernel, which checks everything again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from reyn_jupyter.notebook.render.schemas import followed, type_label
from reyn_jupyter.notebook.render.untrusted import Look
from reyn_jupyter.notebook.serving.operation import Message

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


class FormChoice(Message):
    """One value of several: what is shown, and the JSON that is sent."""

    text: str
    json_text: str


class FormField(Message):
    """One argument.

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


class ActionForm(Message):
    """All fields, the required ones first. `others` offers one more, for arguments without a field, as JSON."""

    fields: tuple[FormField, ...] = ()
    others: bool = False


def form(schema: object, look: Look) -> ActionForm:
    """The form of an input schema, whatever it looks like."""
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
    """The schema that decides, and the widget for it: a choice between one type and null is that type."""
    member = followed(given, root)
    for key in ("anyOf", "oneOf"):
        options = member.get(key)
        if isinstance(options, list | tuple) and len(options) <= 8:
            others = [option for option in options if followed(option, root).get("type") != "null"]
            if len(others) == 1 and len(options) == 2:
                inner = followed(others[0], root)
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
    items = followed(member.get("items"), root)
    special = any(key in items for key in (*_COMBINED, "enum", "const", "x-reference"))
    return "json" if special or _type(items) not in _PLAIN else "list"


def _type(member: Mapping[str, Any]) -> str | None:
    """The one type beside null, None where there are several or none is named."""
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
