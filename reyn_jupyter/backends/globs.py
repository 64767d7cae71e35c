"""Path patterns: ``*`` and ``?`` within one name, ``**`` over folders, ``[abc]``, ``{csv,json}``.

Invariant: a pattern is matched in linear time (RE2), against the whole path relative to where it starts. A
pattern without ``/`` is matched against the file's name alone, in every folder.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

from reyn_jupyter.backends.grep import PatternError

_PIECE = re.compile(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|\{[^{}/]*,[^{}/]*\})")
_STARS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_MAGIC = frozenset("*?[{")


class Glob:
    """A compiled pattern.

    >>> glob = Glob("data/**/*.{csv,json}")
    >>> glob.base, glob.matches("2024/orders.csv"), glob.matches("2024/orders.txt")
    ('data', True, False)
    >>> Glob("*.py").matches("deep/down/setup.py")
    True

    Attributes:
        base: the folder that all matches lie in ("" for where the pattern starts); `matches` takes paths
            relative to it.

    Raises:
        PatternError: a character class that cannot be.
    """

    def __init__(self, pattern: str) -> None:
        pattern = pattern.removeprefix("./")
        parts = pattern.split("/")
        plain = 0
        while plain < len(parts) - 1 and not _MAGIC & set(parts[plain]):
            plain += 1
        self.base = "/".join(parts[:plain])
        self._names = "/" not in pattern
        self._expression = _compile("/".join(parts[plain:]))

    def matches(self, path: str) -> bool:
        """Whether a path relative to `base`, with ``/``, matches."""
        text = path.rpartition("/")[2] if self._names else path
        return self._expression.fullmatch(os.fsencode(text)) is not None


@lru_cache(64)
def _compile(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        return re2.compile(_translated(pattern).encode(), options)
    except (re2.error, UnicodeEncodeError):
        raise PatternError(f"{pattern!r} is no path pattern") from None


def _translated(pattern: str) -> str:
    return "".join(map(_piece, _PIECE.split(pattern)))


def _piece(piece: str) -> str:
    if piece in _STARS:
        return _STARS[piece]
    if _PIECE.fullmatch(piece) is None:
        return re.escape(piece)
    if piece[0] == "{":
        return "(?:" + "|".join(map(_translated, piece[1:-1].split(","))) + ")"
    inside = re.sub(r"([\\^\[\]])", r"\\\1", piece[1:-1].removeprefix("!"))
    return f"[^/{inside}]" if piece[1] == "!" else f"[{inside}]"
