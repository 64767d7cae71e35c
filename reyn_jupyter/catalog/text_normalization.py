"""Text as the catalog compares and quotes it.

Invariant: whatever is quoted in an answer is short, printable and encodable, however long or hostile the
original.
"""

from __future__ import annotations

import re
import unicodedata

from reyn_jupyter.support.encoding import clip_line

_SEPARATORS = str.maketrans("-_", "  ")
_RUN = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SYLLABIC = "぀-ヿ㐀-䶿一-鿿豈-﫿ｦ-ﾟ가-힯"  # scripts that write without spaces, and Hangul
_OTHER_WORD = re.compile(rf"(?P<syllabic>[{_SYLLABIC}]+)|\d+|[^\W\d{_SYLLABIC}]+")


def quoted(value: object) -> str:
    """Return a value that somebody else chose, clipped and in quotes; anything but text by its type name alone."""
    return f"'{clip_line(value)}'" if isinstance(value, str) else f"<{type(value).__name__}>"


def fold(text: str) -> str:
    """Return text as the listing's filter compares it: without case, a run of `-`, `_` and space as one space.

    >>> fold("File__Read-all")
    'file read all'
    """
    folded = text.casefold().translate(_SEPARATORS)
    while "  " in folded:
        folded = folded.replace("  ", " ")
    return folded


def words(text: str) -> list[str]:
    """Return the words of an identifier or a sentence, without case: split at `_`, `-`, camelCase and digits.

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
