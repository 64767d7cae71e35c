"""Opened references as JSON, for a tool whose handler sends its arguments elsewhere.

Invariant: what comes out is plain JSON of bounded size, or an error that says what cannot go; none of a value's own
code runs. A frame becomes its records, a date its ISO text, and a number that JSON does not have becomes null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.outputs.content import JsonValue, Structured, Text
from reyn_jupyter.outputs.convert import ValueTooLargeError, to_content, type_name
from reyn_jupyter.support.encoding import compact

LARGEST_ARGUMENTS = 1_000_000  # bytes of all opened references of a call, as JSON
_PLAIN = frozenset({str, int, float, bool, type(None), list, dict})


class NoJsonFormError(ValueError):
    """A value that cannot be sent as JSON; the message goes on after "refers to"."""


def json_form(value: Any) -> Any:
    """Return a value in JSON's own types. Lists and dicts come back as they are, see `without_nonfinite`.

    Raises:
        NoJsonFormError: it has no form in JSON, or is too large.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (bytes, bytearray, memoryview):
        raise NoJsonFormError("bytes, which JSON does not have")
    try:
        content = to_content(value, budget=LARGEST_ARGUMENTS)
    except ValueTooLargeError:
        raise NoJsonFormError(_too_large(f"a {type_name(value)}")) from None
    if isinstance(content, Structured):
        return _without_tags(list(content.value) if content.frame is not None else content.value)
    if isinstance(content, Text) and content.text != type_name(value):
        return content.text
    raise NoJsonFormError(f"a {type_name(value)}, which has no form in JSON")


def _without_tags(value: Any) -> JsonValue:
    """Return converted data with null for each tag of a number that JSON does not have."""
    if isinstance(value, dict):
        if value.keys() == {"$number"}:
            return None
        return {key: _without_tags(item) for key, item in value.items()}
    return [_without_tags(item) for item in value] if isinstance(value, list) else value


def without_nonfinite(value: Any) -> JsonValue:
    """Return JSON data with null for each number that JSON does not have."""
    if isinstance(value, dict):
        return {key: without_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nonfinite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value


def check_size(opened: Mapping[str, Any]) -> None:
    """Raise NoJsonFormError where opened values are together larger than a call may be that leaves the notebook."""
    size = sum(len(compact(without_nonfinite(value)).encode()) for value in opened.values())
    if size > LARGEST_ARGUMENTS:
        raise NoJsonFormError(_too_large(f"data of {size:,} bytes"))


def _too_large(what: str) -> str:
    return f"{what}, too large as JSON: a call that leaves the notebook takes at most {LARGEST_ARGUMENTS:,} bytes"
