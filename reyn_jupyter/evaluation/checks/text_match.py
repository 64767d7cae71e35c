"""Find the texts that an answer has to hold, and does not.

Invariant: a number is found only as a whole: 12 does not stand in 112, 1.12, 12,000 or −12. How an answer is set does
not matter: 2,294 is 2294, 60.00 is 60, and bold text, code and any kind of hyphen read as plain text. An answer that
holds a whole file, or every number, is told from one that says which part of it is meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_SPACE = re.compile(r"\s+")
_MARKUP = re.compile(r"[*`]|\\(?=[^\w\s]|_)")
_HYPHENS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"))
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[,'’\u00a0\u202f]\d{3})+(?!\d)")
_ENDING_ZEROS = re.compile(r"(?<![\d.,])(\d+)(?:\.0+|(\.\d*[1-9])0+)(?!\d|\.\d)")
_ONE_TO_TWELVE = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_WHOLE = frozenset(("yes", "no", *_ONE_TO_TWELVE.split("|")))
# A minus stands before the digit and after no other: 5 does not stand in "is -5", but in "3-5".
_DIGIT_BEFORE = r"(?<!\d)(?<!\d[.,])(?<![\s(=:]-)(?<!\A-)"
_WORD = re.compile(r"\w+")
_FEWEST_WORDS = 12  # distinct ones of a file; of a shorter one, a sentence that answers may hold nearly all
_RECITED = 0.9  # of a file's distinct words: an answer that holds so many is that file
_MOST_NUMBERS = 20  # distinct ones in an answer; rows of figures that somebody asked for are fewer
_HANDLE = re.compile(r"\[?blob:[0-9a-f-]{36}\]?")  # of a stored result: its digits say nothing
_PLACE = re.compile(r"^\S*?:\d+[:-]")  # what a search puts before a line
_COPIED_LINES = 5  # of files in an answer: fewer are a quotation
_SHORTEST_LINE = 8  # characters; shorter ones are like many others
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


def recites(answer: str, text: str) -> bool:
    """Return whether an answer holds all words of a text, in whatever order: pasted as it is, or word by word.

    >>> recites("a b c d e f g h i j k l m", "a b c d e f g h i j k l"), recites("It is c.", "a b c d e f g h i j k l")
    (True, False)
    """
    wanted = _words(text)
    if len(wanted) < _FEWEST_WORDS:
        return False
    return len(wanted & _words(answer)) >= _RECITED * len(wanted)


def without_copies(answer: str, texts: Iterable[str]) -> str:
    """Return an answer without the lines that are those of files, where it holds `_COPIED_LINES` or more of them.

    Lines that are cut short with "…", and those with something before them (a path and a number, JSON), count.
    """
    there = "\n".join(texts)
    lines = {line.strip() for line in there.splitlines() if len(line.strip()) >= _SHORTEST_LINE}
    own, copied = [], 0
    for line in answer.replace("\\n", "\n").splitlines():
        text = _PLACE.sub("", line.strip()).strip(" …")
        found = len(text) >= _SHORTEST_LINE and (text in there or any(each in text for each in lines))
        copied += found
        if not (found or _PLACE.match(line) or _HANDLE.search(line)):
            own.append(line)
    return "\n".join(own) if copied >= _COPIED_LINES else answer


def enumerates(answer: str) -> bool:
    """Return whether an answer names more distinct numbers than one does that means some of them."""
    return len({word for word in _words(answer) if word.isdigit()}) > _MOST_NUMBERS


def _words(text: str) -> set[str]:
    """Return the distinct words of a text; line breaks may be written out, as JSON does."""
    return set(_WORD.findall(unicodedata.normalize("NFKC", text.replace("\\n", "\n")).casefold()))


def _plain(text: str) -> str:
    """Return the text as it reads: no markup, one kind of hyphen and space, numbers in one form."""
    read = _MARKUP.sub("", unicodedata.normalize("NFKC", _HANDLE.sub(" ", text)).translate(_HYPHENS))
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
