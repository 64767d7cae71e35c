"""Text as the catalog compares and quotes it.

Invariant: whatever is quoted in an answer is short, printable and encodable, however long or hostile the
original.
"""

from __future__ import annotations

import re
import unicodedata

QUOTED_BYTES = 200  # of a name that somebody else chose, in an answer
_SEPARATORS = str.maketrans("-_", "  ")
_RUN = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SYLLABIC = "぀-ヿ㐀-䶿一-鿿豈-﫿ｦ-ﾟ가-힯"  # scripts that write without spaces, and Hangul
_OTHER_WORD = re.compile(rf"(?P<syllabic>[{_SYLLABIC}]+)|\d+|[^\W\d{_SYLLABIC}]+")


def clip(text: str, limit: int = QUOTED_BYTES) -> str:
    """Text in at most `limit` bytes of UTF-8, on one line, without control characters or lone surrogates.

    >>> clip("a" * 300, 10)
    'aaaaaaa…'
    """
    head = text[: limit + 1]
    shown = "".join(char if char.isprintable() else _escaped(char) for char in head)
    encoded = shown.encode("utf-8")
    if len(encoded) <= limit and len(head) == len(text):
        return shown
    return encoded[: max(0, limit - len("…".encode()))].decode("utf-8", "ignore") + "…"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def encodable(text: str) -> str:
    """Text that UTF-8 can carry: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def quoted(value: object) -> str:
    """A value that somebody else chose, clipped and in quotes; anything but text by its type name alone."""
    return f"'{clip(value)}'" if isinstance(value, str) else f"<{type(value).__name__}>"


def fold(text: str) -> str:
    """How the listing's filter compares: without case, and a run of `-`, `_` and space as one space.

    >>> fold("File__Read-all")
    'file read all'
    """
    folded = text.casefold().translate(_SEPARATORS)
    while "  " in folded:
        folded = folded.replace("  ", " ")
    return folded


def words(text: str) -> list[str]:
    """The words of an identifier or a sentence, without case: split at `_`, `-`, camelCase and digits.

    Scripts without spaces (Japanese, Chinese, Korean) give overlapping pairs, so that a part of a compound is found.

    >>> words("mcp__listTools2")
    ['mcp', 'list', 'tools', '2']
    >>> words("売上高")
    ['売上', '上高']
    """
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        pattern = _ASCII_WORD if run.isascii() else _OTHER_WORD
        for piece in pattern.finditer(run):
            part = piece.group().casefold()
            if piece.lastgroup == "syllabic" and len(part) > 1:
                found += [part[i : i + 2] for i in range(len(part) - 1)]
            else:
                found.append(part)
    return found
