"""Read the arguments that a prompt writes as pairs, such as `rate=0.3`, or as a JSON object.

Invariant: Each pair becomes an argument with exactly its value, or the call is declined. No pair is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from reyn_jupyter.models.offline.answers import code
from reyn_jupyter.models.offline.context import Declined
from reyn_jupyter.models.offline.transcript import KnownAction

_QUOTED = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\]|(?<=\w)'(?=\w))*'|“[^”]*”|‘[^’]*’|«[^»]*»|`[^`]*`"""
_NUMBER = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.])"
_PAIR = re.compile(
    rf"(?<![\w.=<>!\"'])(?P<key>[^\W\d]\w{{0,100}})\s*(?P<sign>=(?!=)|:)\s*"
    rf"(?P<value>{_QUOTED}|\[[^\[\]]*\]|\{{[^{{}}]*\}}|{_NUMBER}|[^\s,;()\[\]{{}}]+)",
    re.DOTALL,
)
_OBJECT = re.compile(r"(?:with|:|\(|arguments?|args)\s*(\{.*\})", re.DOTALL | re.IGNORECASE)
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def given_arguments(
    action: KnownAction, text: str, kind_of: Callable[[str], str]
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return the arguments that a prompt writes as pairs or as an object, and where they are in it.

    Args:
        action: With its schema.
        text: The prompt.
        kind_of: Returns the type of a parameter, "reference" for one that takes a variable.

    Raises:
        Declined: If a name is not a parameter, is given twice, or its value does not fit.
    """
    if (whole := _OBJECT.search(text)) is not None:
        try:
            values = json.loads(whole.group(1))
        except ValueError:
            values = None
        if isinstance(values, dict):
            return {_parameter(action, key): value for key, value in values.items()}, [whole.span()]
    found: dict[str, Any] = {}
    spans = []
    for match in _PAIR.finditer(text):
        key, raw = match["key"], match["value"]
        if match["sign"] == ":" and not _is_parameter(action, key):
            continue  # "call greet: …"
        name = _parameter(action, key)
        if name in found:
            raise Declined(f"{code(name)} is given twice for {code(action.entry)}.")
        raw = raw if raw[0] in "\"'“‘«`[{" else raw.rstrip(".!?") or raw
        found[name] = _value(name, raw, kind_of(name), action)
        spans.append(match.span())
    return found, spans


def _is_parameter(action: KnownAction, key: str) -> bool:
    return any(key.lower() == name.lower() for name in action.parameters)


def _parameter(action: KnownAction, key: str) -> str:
    """Return the parameter of a name, whatever its case. Raises Declined."""
    if key in action.parameters:
        return key
    same = [name for name in action.parameters if name.lower() == key.lower()]
    if len(same) != 1:
        takes = ", ".join(map(code, action.parameters)) or "no arguments"
        raise Declined(f"{code(action.entry)} takes no {code(key)}. It takes {takes}.")
    return same[0]


def _value(name: str, raw: str, kind: str, action: KnownAction) -> Any:
    """Return a value as its parameter takes it. Raises Declined."""
    is_quoted = raw[0] in "\"'“‘«`"
    plain = re.sub(r"\\([\"'\\])", r"\1", raw[1:-1]) if is_quoted else raw
    if not is_quoted and plain.lower() in ("null", "none") and _takes_null(action.parameters[name]):
        return None
    if kind == "string" or (kind == "reference" and is_quoted):
        return plain
    if (
        kind != "boolean"
        and not is_quoted
        and plain.removeprefix("@").isidentifier()
        and _is_reference(action, name)
    ):
        return {"$var": plain.removeprefix("@")}
    if kind == "reference":
        try:
            return json.loads(plain)
        except ValueError:
            return plain
    if kind == "boolean":
        if plain.lower() in _BOOLEANS:
            return _BOOLEANS[plain.lower()]
    elif kind in ("number", "integer"):
        number = _number(plain)
        if number is not None and (kind == "number" or number == int(number)):
            return number if kind == "number" else int(number)
    else:
        return _structure(name, plain, kind, action)
    article = "an" if kind == "integer" else "a"
    raise Declined(f"{code(f'{name}={raw}')} is not {article} {kind}, which {code(action.entry)} takes.")


def _number(text: str) -> int | float | None:
    """Return a number as it is written, with commas between thousands, or None."""
    plain = text.replace(",", "") if re.fullmatch(_NUMBER, text) else text
    try:
        return int(plain)
    except ValueError:
        pass
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _takes_null(schema: Mapping[str, Any]) -> bool:
    kinds = [schema.get("type"), *(each.get("type") for each in _shapes(schema))]
    return "null" in kinds or any(isinstance(each, list) and "null" in each for each in kinds)


def _is_reference(action: KnownAction, name: str) -> bool:
    """Return whether a parameter takes the value of a variable by its name."""
    schema = action.parameters[name]
    return any(each.get("x-reference") for each in (schema, *_shapes(schema)))


def _shapes(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    options = schema.get("anyOf")
    return [each for each in options if isinstance(each, Mapping)] if isinstance(options, list) else []


def _structure(name: str, plain: str, kind: str, action: KnownAction) -> Any:
    try:
        value = json.loads(plain)
    except ValueError:
        value = None
        if kind == "array" and plain[:1] == "[" and plain[-1:] == "]":
            value = [_item(each.strip()) for each in plain[1:-1].split(",") if each.strip()]
    if isinstance(value, list if kind == "array" else dict):
        return value
    raise Declined(f"{code(f'{name}={plain}')} is not an {kind}, which {code(action.entry)} takes.")


def _item(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip("\"'")
