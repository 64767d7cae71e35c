"""Patterns with ``*``, ``**`` and ``?``, matched in time that is linear in the text whatever the pattern is.

They may come from a cloned repository, so RE2 matches them, which never backtracks.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


def glob_matches(glob: str, text: str, *, crossing: bool = False) -> bool:
    """Return whether the whole text is one of those that the glob stands for.

    Args:
        glob: ``*`` stands for any run of characters and ``?`` for one, but for no slash; ``**`` for slashes too, and
            ``**/`` for any folders or none.
        crossing: ``*`` and ``?`` stand for slashes too.

    >>> glob_matches("data/**/*.csv", "data/2024/05/out.csv"), glob_matches("data/*", "data/2024/out.csv")
    (True, False)
    """
    return _compiled(glob, crossing).fullmatch(_readable(text)) is not None


def may_match_below(glob: str, folder: str) -> bool:
    """Return whether a glob may stand for a path below a folder ("." for the root), by what precedes its wildcards.

    >>> [may_match_below("data/*/x.csv", folder) for folder in (".", "data", "data/old", "dat", "src")]
    [True, True, True, False, False]
    """
    below = "" if folder == "." else f"{folder}/"
    start = re.split(r"[*?]", glob, maxsplit=1)[0]
    return start.startswith(below) or (start != glob and below.startswith(start))


def is_literal(text: str) -> bool:
    """Return whether a text stands for itself alone when it is read as a glob."""
    return "*" not in text and "?" not in text


def _readable(text: str) -> str:
    """Return text that RE2 can read, which is UTF-8: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


@lru_cache(maxsize=1024)
def _compiled(glob: str, crossing: bool) -> Any:
    import re2

    pieces: list[str] = []
    for piece in re.findall(r"\*\*+/|\*+|\?|[^*?]+", glob):
        if piece.endswith("*/"):
            pieces.append(".*" if crossing else "(?:[^/]+/)*")
            pieces.append("/" if crossing else "")
        elif piece[0] == "*":
            pieces.append(".*" if crossing or len(piece) > 1 else "[^/]*")
        elif piece == "?":
            pieces.append("." if crossing else "[^/]")
        else:
            pieces.append(re2.escape(_readable(piece)))
    return re2.compile("(?s)" + "".join(pieces))
