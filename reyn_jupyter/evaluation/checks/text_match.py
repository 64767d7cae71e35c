"""Find the texts that an answer has to hold, and does not.

Invariant: a number is found only as a whole: 12 does not stand in 112, 1.12, 12,000 or −12. How an answer is set does
not matter: 2,294 is 2294, 60.00 is 60, and bold text, code and any kind of hyphen read as plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_SPACE = re.compile(r"\s+")
_MARKUP = re.compile(r"[*`]|\\(?=[^\w\s]|_)")
_HYPHENS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"))
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[,'’\u00a0\u202f]\d{3})+(?!\d)")
_ENDING_ZEROS = re.compile(r"(?<![\d.,])(\d+)(?:\.0+|(\.\d*[1-9])0+)(?!\d|\.\d)")
_ONE_TO_TWELVE = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_WHOLE = frozenset(("yes", "no", *_ONE_TO_TWELVE.split("|")))
# A minus stands before the digit and after no other: 5 does not stand in "is -5", but in "3-5".
_DIGIT_BEFORE = r"(?<!\d)(?<!\d[.,])(?<![\s(=:]-)(?<!\A-)"
_NO_LETTER_BEFORE, _NO_LETTER_AFTER = r"(?<![^\W\d_])", r"(?![^\W\d_])"
_DIGIT_AFTER = r"(?!\d)(?![.,]\d)"


def says(answer: str, text: str) -> bool:
    """Return whether an answer holds one of the alternatives of a text, which "|" parts; case and line breaks do
    not matter.

    >>> says("There are 12 rows.", "12|twelve"), says("There are 112 rows.", "12|twelve")
    (True, False)
    """
    held = _plain(answer)
    return any(_stands_in(_plain(alternative), held) for alternative in text.split("|"))


def missing_words(texts: Sequence[str], answer: str) -> list[str]:
    """Return the texts of which the answer holds no alternative."""
    return [text for text in texts if not says(answer, text)]


def _plain(text: str) -> str:
    """Return the text as it reads: no markup, one kind of hyphen and space, numbers in one form."""
    read = _MARKUP.sub("", unicodedata.normalize("NFKC", text).translate(_HYPHENS))
    read = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), read)
    read = _ENDING_ZEROS.sub(r"\1\2", read)
    return _SPACE.sub(" ", read.casefold()).strip()


def _stands_in(wanted: str, held: str) -> bool:
    if not wanted:
        return False
    whole = wanted in _WHOLE  # "four" does not stand in "fourteen"
    before = _DIGIT_BEFORE if wanted[0].isdigit() else _NO_LETTER_BEFORE if whole else ""
    after = _DIGIT_AFTER if wanted[-1].isdigit() else _NO_LETTER_AFTER if whole else ""
    return re.search(before + re.escape(wanted) + after, held) is not None
