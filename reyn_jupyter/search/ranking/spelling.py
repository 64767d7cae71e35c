"""Known words that an unknown one may stand for: longer ones that it begins, and ones that it nearly is.

Invariant: what is near follows from the set of known words, not from their order. Likeness is the share of common
letter trigrams (Jaccard), as in Angell, Freund and Willett, "Automatic spelling correction using a trigram
similarity measure" (1983). Nothing is sorted or grouped beforehand: the words stand in one text, which is looked
through in less time than a table of them takes to make.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LATIN, _CYRILLIC = "abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщъыьэюяё"
BEGINNING = 0.5  # what a word that only begins with the unknown one is worth
ALIKE = 0.4  # share of trigrams from which on two words count as one mistyped
SHORTEST = 4  # letters of a word that may be mistyped
MOST = 3
ENDING = re.compile(
    ".?(?:[aie]?bil|at|is|iz|al|iv|ic|ful|less|ous|ion|e|i)*"
    "(?:s|i[sz]e[drs]?|ed|ings?|e[rd]s?|ors?|ions?|it(?:y|ies)|ness|ments?|ly|[ae]n[ct]e?s?|ies|y|[ai]ble|ative|ful|less"
    "|als?|is[mt]s?|ics?|ous|ives?)"
)
TURNED = ("e", "i")  # what an English stem may end with that its word has not: hope of hoping, happi of happy


def one_letter_off(word: str) -> set[str]:
    """Return the words at one letter more, less or another, or with two that change places.

    Source: Damerau, "A technique for computer detection and correction of spelling errors" (1964).

    >>> {"read", "ride", "bread"} & one_letter_off("raed")
    {'read'}
    """
    letters = _LATIN if word.isascii() else _CYRILLIC if set(word) & set(_CYRILLIC) else ""
    halves = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    found = {before + after[1:] for before, after in halves if after}
    found |= {before + after[1] + after[0] + after[2:] for before, after in halves if len(after) > 1}
    found |= {
        before + letter + after[cut:] for before, after in halves for letter in letters for cut in (0, 1)
    }
    return found - {word, ""}


class Spelling:
    """Looks for words near an unknown one among `known`, which hold no blanks."""

    def __init__(self, known: Iterable[str]) -> None:
        self._words = [word for word in known if len(word) > 1]
        self._text = f" {'  '.join(self._words)} "  # no three letters of two words hold just one blank
        self.near = functools.lru_cache(maxsize=4_096)(self._near)

    def mistyped(self, word: str) -> list[str]:
        """Return what `word` may be, one letter off, in order: words that a known stem may belong to.

        To stem a word takes some 30 µs, and a word has hundreds of neighbours. So only those are left that go on
        from a known stem by no more than they share with it, or by what English words end with.

        >>> Spelling(["translat", "read"]).mistyped("tranzlate")
        ['translate']
        """
        near = one_letter_off(word)
        return sorted(filter(self._stemmed, near) if word.isalpha() else near)

    def _stemmed(self, word: str) -> bool:
        stems, length = self._stems, len(word)
        word = word.replace("ё", "е")  # as the stemmer does
        for end in range(length, min(length, 3) - 1, -1):
            if word[:end] in stems and (2 * end >= length or ENDING.fullmatch(word, end)):
                return True
        return False

    @functools.cached_property
    def _stems(self) -> set[str]:
        """Return all known words, and what of them a word that they stem from begins with."""
        return {*self._words, *(word[:-1] for word in self._words if word.endswith(TURNED))}

    def _near(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return at most three known words with their worth in (0, 1), best first.

        >>> Spelling(["weather", "leather", "forecasting"]).near("weathr")[0][0]
        'weather'
        """
        if len(word) < 2 or not word.isalpha():
            return ()
        found = dict.fromkeys(self._longer(word), BEGINNING) if len(word) > 2 or not word.isascii() else {}
        if not found and len(word) >= SHORTEST:
            found = self._alike(word)
        return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST])

    def _longer(self, word: str) -> list[str]:
        """Return the first known words, in order, that begin with this one."""
        found = []
        place = self._text.find(f" {word}")
        while place >= 0:
            found.append(self._text[place + 1 : self._text.index(" ", place + 1)])
            place = self._text.find(f" {word}", place + 1)
        return sorted(found)[:MOST]

    def _alike(self, word: str) -> dict[str, float]:
        mine = _trigrams(word)
        codes, first = self._coded
        places = np.flatnonzero(np.isin(codes, _codes(f" {word} ")))
        common = np.bincount(first.searchsorted(places, "right") - 1, minlength=1)
        found = {}
        for place in np.flatnonzero(common >= ALIKE * len(mine)).tolist():  # no other can share enough
            theirs = _trigrams(self._words[place])
            share = len(mine & theirs) / len(mine | theirs)
            if share >= ALIKE:
                found[self._words[place]] = share
        return found

    @functools.cached_property
    def _coded(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return every three letters of all words as a number, and where each word begins."""
        lengths = np.array([len(word) + 2 for word in self._words], np.int64)
        return _codes(self._text), np.cumsum(lengths) - lengths


def _trigrams(word: str) -> set[str]:
    return {f" {word} "[place : place + 3] for place in range(len(word))}


def _codes(text: str) -> NDArray[np.uint32]:
    """Return every three letters that stand together as one number; some others may have the same."""
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    return np.asarray(letters[:-2] << 20 ^ letters[1:-1] << 10 ^ letters[2:], np.uint32)
