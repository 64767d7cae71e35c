"""Texts as they read once their escapes are decoded, with the way back to the place that each character came from.

Invariant: what is found in a decoded text is found in the text itself: `DecodedText.source` gives the characters that
spell it. One table says what is decoded: escapes of JSON and of programs, percent signs, HTML's entities, doubled
quotes, colours of a terminal, hidden characters, the line ends of wrapped base64. A text that is escaped twice is
decoded twice.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

_DEEPEST = 4  # times that a text is decoded


class Decoder(NamedTuple):
    """A way to spell characters.

    Attributes:
        begins: the characters that a spelling begins with; no other decoder's begins with one of them.
        pattern: the spelling.
        hint: a regular expression of RE2 that is found wherever `pattern` is.
        decode: from the spelling to what it means.
        needs: what a secret has to hold for this to matter; "" for a spelling that matters always.
    """

    begins: str
    pattern: str
    hint: str
    decode: Callable[[str], str]
    needs: str = ""


_NAMED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_BYTES = re.compile(r"\\x([0-9a-fA-F]{2})|\\([0-7]{3})|%([0-9a-fA-F]{2})")


def _escape(spelling: str) -> str:
    kind = spelling[1]
    if kind in "uU":
        digits = re.findall("[0-9a-fA-F]+", spelling)
        if len(digits) == 2:  # a pair of surrogates
            return (
                "".join(chr(int(each, 16)) for each in digits)
                .encode("utf-16", "surrogatepass")
                .decode("utf-16")
            )
        code = int(digits[0], 16)
        return chr(code) if code < 0x110000 else spelling
    if kind in "x01234567":
        return _from_bytes(spelling)
    return _NAMED.get(kind, "" if kind in "\r\n" else spelling[1:])


def _from_bytes(spelling: str) -> str:
    """Return what a run of bytes spells as UTF-8, or else each byte as a character."""
    raw = bytes(
        int(digit, 8 if octal else 16) & 255
        for first, octal, percent in _BYTES.findall(spelling)
        for digit in (first or octal or percent,)
    )
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


_ESCAPE = (
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}"
    r"|x[0-7][0-9a-fA-F]|[01][0-7]{2}"
    r"|x[89a-fA-F][0-9a-fA-F](?:\\x[89a-fA-F][0-9a-fA-F])*|[23][0-7]{2}(?:\\[23][0-7]{2})*"
    r"|[abeEfnrtv]|\r?\n|[ !-/:-@\[-`{-~])"
)
_PERCENT = r"%(?:[0-7][0-9a-fA-F]|[89a-fA-F][0-9a-fA-F](?:%[89a-fA-F][0-9a-fA-F])*)"
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_COLOUR = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\^_])"
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_LINE = 60  # characters of base64 after which a line end may be a wrap

DECODERS: tuple[Decoder, ...] = (
    Decoder("\\", _ESCAPE, r"\\[uUx0-3abeEfnrtv\r\n -/:-@\[-`{-~]", _escape),
    Decoder("%", _PERCENT, "%[0-9a-fA-F]{2}", _from_bytes),
    Decoder("&", _ENTITY, "&[#A-Za-z][0-9A-Za-z]+;", html.unescape),
    Decoder("\x1b", _COLOUR, r"\x1b", lambda _: ""),
    Decoder(_UNSEEN, f"[{_UNSEEN}]", f"[{_UNSEEN}]", lambda _: ""),
    Decoder('"', '""', '""', lambda _: '"', '"'),  # of CSV
    Decoder("'", r"'(?:'|\\''|\"'\"')", r"'['\\\"]", lambda _: "'", "'"),  # of SQL and shells
    Decoder(
        "\r\n",
        rf"(?:\r\n(?<=[A-Za-z0-9+/]{{{_LINE}}}\r\n)|\n(?<=[A-Za-z0-9+/]{{{_LINE}}}\n))[ \t]*(?=[A-Za-z0-9+/])",
        rf"[A-Za-z0-9+/]{{{_LINE}}}\r?\n[ \t]*[A-Za-z0-9+/]",
        lambda _: "",
    ),
)


class DecodedText:
    """A text in which some parts stand for others.

    Args:
        text: the text itself.
        parts: (start, end, what stands there instead), in order.
    """

    def __init__(self, text: str, parts: Iterable[tuple[int, int, str]]) -> None:
        self._starts: list[int] = []  # of the parts, as they are read
        self._parts: list[tuple[int, int, int]] = []  # (end as it is read, start and end in the text)
        pieces: list[str] = []
        position = length = 0
        for start, end, instead in parts:
            pieces += (text[position:start], instead)
            length += start - position
            self._starts.append(length)
            length += len(instead)
            self._parts.append((length, start, end))
            position = end
        self.text = "".join([*pieces, text[position:]])

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the characters of the text itself that a part of what is read came from; it is not empty."""
        return self._place(start)[0], self._place(end - 1)[1]

    @property
    def seams(self) -> frozenset[int]:
        """The places, as they are read, at which a part ended."""
        return frozenset(end for end, _, _ in self._parts)

    def _place(self, at: int) -> tuple[int, int]:
        part = bisect_right(self._starts, at) - 1
        if part < 0:
            return at, at + 1
        until, start, end = self._parts[part]
        if at < until:
            return start, end
        return end + at - until, end + at - until + 1


class Spellings:
    """Decodes what a set of decoders knows.

    Args:
        decoders: some of `DECODERS`.
    """

    def __init__(self, decoders: Iterable[Decoder]) -> None:
        chosen = tuple(decoders)
        self.hint = "|".join(f"(?:{decoder.hint})" for decoder in chosen)
        self._pattern = re.compile("|".join(f"(?:{decoder.pattern})" for decoder in chosen), re.ASCII)
        by = {character: decoder.decode for decoder in chosen for character in decoder.begins}
        self._decode = lru_cache(4096)(lambda spelling: by[spelling[0]](spelling))

    def layers(self, text: str) -> Iterator[tuple[str, Callable[[], DecodedText]]]:
        """Yield a text decoded once, twice and so on, each with a function that makes its `DecodedText`."""
        for _ in range(_DEEPEST):
            decoded = self._pattern.sub(lambda match: self._decode(match[0]), text)
            if decoded == text:
                return
            yield decoded, lambda text=text: self._reading(text)  # type: ignore[misc]
            text = decoded

    def _reading(self, text: str) -> DecodedText:
        return DecodedText(
            text, ((*match.span(), self._decode(match[0])) for match in self._pattern.finditer(text))
        )
