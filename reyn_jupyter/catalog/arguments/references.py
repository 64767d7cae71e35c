"""References inside arguments: a blob or a notebook variable in place of any value.

``{"$blob": id, "path": "/rows"}`` names a blob or a part of it (a JSON Pointer, RFC 6901),
``{"$var": "orders"}`` a variable. Invariant: an object with one of these keys is a reference or an error,
never data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.catalog.text_normalization import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

ReferenceKind = Literal["blob", "var"]
HOW_TO_REFER = '{"$var": "<name>"} for a notebook variable, {"$blob": "<id>"} for a stored result'
DEEPEST = 64  # levels of nesting in arguments
MOST_VALUES = 1_000_000
_KEYS = ("$blob", "$var")


@dataclass(frozen=True)
class Reference:
    """One reference.

    Attributes:
        path: where it stands in the arguments, as a JSON Pointer.
        kind: "blob" or "var".
        name: the blob's id or the variable's name.
        pointer: the part of a blob that is meant, as a JSON Pointer; None for all of it.
    """

    path: str
    kind: ReferenceKind
    name: str
    pointer: str | None = None


def claims_reference(value: object) -> bool:
    """Return whether a value is a reference, well made or not: it has a key of one."""
    return isinstance(value, dict) and ("$blob" in value or "$var" in value)


def reference_fault(value: dict[Any, Any]) -> str | None:
    """Return the fault of a value that claims to be a reference, or None."""
    if len(value.keys() & set(_KEYS)) != 1:
        return f"a reference names one thing: {HOW_TO_REFER}"
    key = "$blob" if "$blob" in value else "$var"
    if not isinstance(value[key], str) or not value[key]:
        return f"{key} takes a text: {HOW_TO_REFER}"
    extra = value.keys() - ({"$blob", "path"} if key == "$blob" else {"$var"})
    if extra:
        return f"a reference has no {quoted(min(extra, key=repr))}: {HOW_TO_REFER}"
    pointer = value.get("path", "")
    if not isinstance(pointer, str) or not (pointer == "" or pointer.startswith("/")):
        return 'the path of a reference is a JSON Pointer such as "/rows"'
    return None


def is_reference(value: object) -> bool:
    """Return whether a value is a well-made reference."""
    return claims_reference(value) and reference_fault(value) is None  # type: ignore[arg-type]


def find_references(args: object) -> list[Reference]:
    """Return every well-made reference in arguments, in the order of the text."""
    return [
        Reference(
            path,
            "blob" if "$blob" in value else "var",
            value["$blob"] if "$blob" in value else value["$var"],
            value.get("path") or None,
        )
        for path, value in walk(args)
        if is_reference(value)
    ]


class TooMuchError(ValueError):
    """Arguments nested too deeply, or of too many values."""


def walk(value: object) -> Iterator[tuple[str, Any]]:
    """Yield every value in arguments with its JSON Pointer, outermost first; references are not entered.

    Raises:
        TooMuchError: nested deeper than 64 levels (so a cycle too), or more than a million values.
    """
    stack: list[tuple[str, Any, int]] = [("", value, 0)]
    seen = 0
    while stack:
        path, node, depth = stack.pop()
        seen += 1
        if depth > DEEPEST or seen > MOST_VALUES:
            raise TooMuchError(
                f"nested deeper than {DEEPEST} levels"
                if depth > DEEPEST
                else f"more than {MOST_VALUES:,} values"
            )
        yield path, node
        if isinstance(node, dict) and not claims_reference(node):
            stack += [(child(path, key), node[key], depth + 1) for key in reversed(node)]
        elif isinstance(node, (list, tuple)):
            stack += [(f"{path}/{i}", node[i], depth + 1) for i in range(len(node) - 1, -1, -1)]


def child(path: str, key: object) -> str:
    """Return the JSON Pointer of a key below another pointer."""
    text = key if isinstance(key, str) else f"<{type(key).__name__}>"
    return f"{path}/{text.replace('~', '~0').replace('/', '~1')}"
