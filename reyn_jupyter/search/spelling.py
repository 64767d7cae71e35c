"""Known words that an unknown one may stand for: longer ones that it begins, and ones that it nearly is.

Invariant: what is near follows from the set of known words, not from their order. Likeness is the share of common
letter trigrams (Jaccard), as in Angell, Freund and Willett, "Automatic spelling correction using a trigram
similarity measure" (1983).
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

BEGINNING = 0.5  # what a word that only begins with the unknown one is worth
ALIKE = 0.4  # share of trigrams from which on two words count as one mistyped
SHORTEST = 4  # letters of a word that may be mistyped
MOST = 3


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
        found: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            for trigram in _trigrams(word):
                found.setdefault(trigram, []).append(place)
        self._held = {trigram: np.array(places, np.int32) for trigram, places in found.items()}
        self._sizes = np.array([len(_trigrams(word)) for word in words], np.float32)

    def alike(self, word: str) -> dict[str, float]:
        mine = _trigrams(word)
        held = [self._held[trigram] for trigram in mine if trigram in self._held]
        if not held:
            return {}
        common = np.bincount(np.concatenate(held), minlength=len(self._words))
        shares = common / (len(mine) + self._sizes - common)
        near = np.flatnonzero(shares >= ALIKE)
        return {self._words[place]: float(shares[place]) for place in near}


def _trigrams(word: str) -> set[str]:
    padded = f" {word} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}
