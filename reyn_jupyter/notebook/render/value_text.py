"""Untrusted values as short texts.

Invariant: values of the person's own classes are named by their type; their methods are never called. Hidden
characters are marked where a view is drawn, see `support.sanitize.visible`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_REDACT_MARGIN = 1024  # characters looked at past a cut, so that no half of a secret is left over


def type_name(value: object) -> str:
    """Return the name of a value's type, read past any metaclass of the person's."""
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name


def is_a(value: object, kind: type[T]) -> TypeGuard[T]:
    """isinstance by the real type: a `__class__` property of the person's is never asked."""
    return any(base is kind for base in type.__dict__["__mro__"].__get__(type(value)))


class Look:
    """The treatment of texts of one view: cut to size, on one line or several, secrets taken out first.

    Args:
        now: seconds since the epoch, for relative times.
        redact: takes secrets out of a text; it sees the text before it is cut.
    """

    def __init__(self, now: float = 0.0, redact: Callable[[str], str] | None = None) -> None:
        self.now = now
        self._redact = redact

    def text(self, value: object, limit: int = 200) -> str:
        """Return at most `limit` characters, newlines kept; a cut ends with "…"."""
        text = str.__str__(value) if is_a(value, str) else _plain(value)
        if self._redact is not None:
            text = self._redact(text[: limit + _REDACT_MARGIN])
        return shorten(text, limit)

    def line(self, value: object, limit: int = 200) -> str:
        """Return the same on one line: newlines become ⏎."""
        return self.text(value, limit).replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " ")

    def lines(self, lines: Sequence[str], limit: int) -> tuple[str, ...]:
        """Several lines, each cut to size; a secret that spans lines (a private key) is seen as a whole."""
        if self._redact is not None:
            joined = "\n".join(line[: limit + _REDACT_MARGIN] for line in lines)
            lines = self._redact(joined).split("\n")
        return tuple(shorten(line, limit) for line in lines)

    def compact(self, value: object, limit: int = 120) -> str:
        """Return a value on one line like JSON, bounded in work as in length."""
        parts: list[str] = []
        size = 0
        for piece in _pieces(value, 6, limit + _REDACT_MARGIN):
            parts.append(piece)
            size += len(piece)
            if size > limit + _REDACT_MARGIN:
                break
        return self.line("".join(parts), limit)


def _plain(value: object) -> str:
    """Return the text of a scalar; anything else by its type name."""
    if value is None or is_a(value, bool):
        return str(value)
    if is_a(value, int):
        return integer(value)
    if is_a(value, float):
        return _NUMBERS.get(float.__repr__(value)) or float.__repr__(value)
    return f"<{type_name(value)}>"


def integer(value: int) -> str:
    """All digits of an integer; past 300 of them only how many there are (Python refuses to print 4,300 and more)."""
    bits = int.bit_length(value)
    return int.__repr__(value) if bits < 1000 else f"<int of about {bits * 30103 // 100000 + 1} digits>"


def _pieces(value: object, depth: int, limit: int) -> Iterator[str]:
    if is_a(value, str):
        yield quote_json(str.__str__(value)[:limit])
    elif is_a(value, dict):
        yield from _members(value, depth, limit) if depth else ("{…}",)
    elif is_a(value, list):
        yield from _items(list.__iter__(value), depth, limit) if depth else ("[…]",)
    elif is_a(value, tuple):
        yield from _items(tuple.__iter__(value), depth, limit) if depth else ("[…]",)
    elif value is None or is_a(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    else:
        yield _plain(value)


def _members(value: dict[Any, Any], depth: int, limit: int) -> Iterator[str]:
    yield "{"
    for place, (key, item) in enumerate(dict.items(value)):
        yield ", " if place else ""
        yield (quote_json(str.__str__(key)[:limit]) if is_a(key, str) else _plain(key)) + ": "
        yield from _pieces(item, depth - 1, limit)
    yield "}"


def _items(items: Iterator[Any], depth: int, limit: int) -> Iterator[str]:
    yield "["
    for place, item in enumerate(items):
        yield ", " if place else ""
        yield from _pieces(item, depth - 1, limit)
    yield "]"


def quote_json(text: str) -> str:
    """Return a string in double quotes, as JSON writes it, but with every letter of every script readable."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
