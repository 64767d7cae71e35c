"""Which texts an answer has to hold, and does not.

Invariant: a number is found only as a whole: 12 does not stand in 112, in 1.12 or in 12,000.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPACE = re.compile(r"\s+")
_DIGIT_BEFORE = r"(?<!\d)(?<!\d[.,])"
_DIGIT_AFTER = r"(?!\d)(?![.,]\d)"


def says(answer: str, text: str) -> bool:
    """Whether an answer holds one of the alternatives of a text, which "|" parts; case and line breaks do not matter.

    >>> says("There are 12 rows.", "12|twelve"), says("There are 112 rows.", "12|twelve")
    (True, False)
    """
    held = _plain(answer)
    return any(_stands_in(_plain(alternative), held) for alternative in text.split("|"))


def missing_words(texts: Sequence[str], answer: str) -> list[str]:
    """The texts of which the answer holds no alternative."""
    return [text for text in texts if not says(answer, text)]


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text.casefold()).strip()


def _stands_in(wanted: str, held: str) -> bool:
    if not wanted or not (wanted[0].isdigit() or wanted[-1].isdigit()):
        return bool(wanted) and wanted in held
    before = _DIGIT_BEFORE if wanted[0].isdigit() else ""
    after = _DIGIT_AFTER if wanted[-1].isdigit() else ""
    return re.search(before + re.escape(wanted) + after, held) is not None
