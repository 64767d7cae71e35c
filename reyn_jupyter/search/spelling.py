"""Known words that an unknown one may stand for: longer ones that it begins, and ones that it nearly is.

Invariant: what is near follows from the set of known words, not from their order. Likeness is the share of common
letter trigrams (Jaccard), as in Angell, Freund and Willett, "Automatic spelling correction using a trigram
similarity measure" (1983).
"""

from __future__ import annotations

import functools
from bisect import bisect_left
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


def one_letter_off(word: str) -> set[str]:
    """What a word becomes by one letter more, less or another, or by two that change places.

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
    """Looks for words near an unknown one among `known`."""

    def __init__(self, known: Iterable[str]) -> None:
        self._sorted = sorted(word for word in known if len(word) > 1)
        self._trigrams: _Trigrams | None = None
        self.near = functools.lru_cache(maxsize=4_096)(self._near)

    def _near(self, word: str) -> tuple[tuple[str, float], ...]:
        """At most three known words with their worth in (0, 1), best first.

        >>> Spelling(["weather", "leather", "forecasting"]).near("weathr")[0][0]
        'weather'
        """
        if len(word) < 2 or not word.isalpha():
            return ()
        first = bisect_left(self._sorted, word)
        longer = [each for each in self._sorted[first : first + MOST] if each.startswith(word)]
        found = dict.fromkeys(longer, BEGINNING) if len(word) > 2 or not word.isascii() else {}
        if not found and len(word) >= SHORTEST:
            found = self._alike(word)
        return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST])

    def _alike(self, word: str) -> dict[str, float]:
        if self._trigrams is None:
            self._trigrams = _Trigrams(self._sorted)
        return self._trigrams.alike(word)


class _Trigrams:
    """Which words hold which three letters."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        lengths = np.array([len(word) for word in words], np.int64)
        codes = _codes("".join(f" {word} " for word in words))
        owner = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
        codes = codes[
            np.arange(len(owner)) + 2 * owner
        ]  # those that reach from one word into the next left out
        order = np.lexsort((owner, codes))
        codes, owner = codes[order], owner[order]
        new = (np.diff(codes, prepend=-1) != 0) | (np.diff(owner, prepend=-1) != 0)
        self._codes, self._owner = codes[new], owner[new]
        self._sizes = np.bincount(self._owner, minlength=len(words)).astype(np.float32)

    def alike(self, word: str) -> dict[str, float]:
        mine = list(set(_codes(f" {word} ").tolist()))
        first, last = (self._codes.searchsorted(mine, side) for side in ("left", "right"))
        held = [self._owner[start:end] for start, end in zip(first, last, strict=True) if start < end]
        if not held:
            return {}
        common = np.bincount(np.concatenate(held), minlength=len(self._words))
        near = np.flatnonzero(common >= ALIKE * len(mine))  # no other can share enough
        shares = common[near] / (len(mine) + self._sizes[near] - common[near])
        return {
            self._words[place]: float(share)
            for place, share in zip(near, shares, strict=True)
            if share >= ALIKE
        }


def _codes(text: str) -> NDArray[np.int64]:
    """Every three letters of a text that stand together, as one number."""
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    return np.asarray(letters[:-2] << 42 | letters[1:-1] << 21 | letters[2:])
