"""Ranks candidates by how likely they are the name that somebody meant.

Invariant: with plain typing mistakes the order is that of `difflib` (n=3, cutoff 0.4). Before it come names
made of the very words that were given, since models know the concept and miss the form: ``read_file``,
``file.read``, ``file__read_file`` and ``FileRead`` all mean the words *file* and *read*. Beside a name that is
surely meant, names that only share letters are left out. Source of n and cutoff: Universal Action Catalog (FP-0034),
error response.
"""

from __future__ import annotations

import heapq
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.catalog.text_normalization import words

if TYPE_CHECKING:
    from collections.abc import Iterable

SUGGESTIONS = 3
CUTOFF = 0.4
LONGEST_QUERY = 100  # characters that are compared; difflib's cost grows with the product of the lengths

SURE = 0.8  # the score of a name that one or two letters are wrong in: what is far behind it was not meant
_BEHIND = 0.3
_SAME_WORDS = 2.0
_SAME_ENTRY = 1.0
_ALL_WORDS_GIVEN = 0.3


def stems(text: str) -> frozenset[str]:
    """Return the words of a name, without case and plural."""
    return _stems(text[:LONGEST_QUERY])


@lru_cache(4096)
def _stems(name: str) -> frozenset[str]:
    """Return the stems of a name, cached: the names on offer are compared with every mistake."""
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words(name))


def rank(text: str, names: Iterable[str], limit: int = SUGGESTIONS) -> list[str]:
    """Return the nearest names, best first; names further away than difflib's cutoff are left out.

    >>> rank("skil__foo", ["skill__foo", "skill__form", "web__search"])
    ['skill__foo', 'skill__form']
    """
    query = text.strip()[:LONGEST_QUERY].casefold()
    wanted = stems(text.strip())
    matcher: SequenceMatcher[str] = SequenceMatcher()
    matcher.set_seq2(query)
    found: list[tuple[float, str]] = []
    top: list[
        float
    ] = []  # the best scores so far: what cannot reach the last of them is not looked at closely
    for name in names:
        bonus = _bonus(wanted, name)
        floor = max(CUTOFF, top[0] if len(top) == limit else 0.0) - bonus
        matcher.set_seq1(name.casefold())
        if matcher.real_quick_ratio() < floor or matcher.quick_ratio() < floor:
            continue
        score = matcher.ratio() + bonus
        if score >= CUTOFF:
            found.append((-score, name))
            (heapq.heappush if len(top) < limit else heapq.heappushpop)(top, score)
    nearest = heapq.nsmallest(limit, found)
    if nearest and -nearest[0][0] >= SURE:
        nearest = [each for each in nearest if each[0] <= nearest[0][0] + _BEHIND]
    return [name for _, name in nearest]


def best_score(text: str, names: Iterable[str]) -> float:
    """Return the highest score of these names, or 0 without names."""
    query, wanted = text.strip()[:LONGEST_QUERY].casefold(), stems(text.strip())
    return max(
        (SequenceMatcher(None, name.casefold(), query).ratio() + _bonus(wanted, name) for name in names),
        default=0.0,
    )


def _bonus(wanted: frozenset[str], name: str) -> float:
    have = stems(name)
    if have == wanted:
        return _SAME_WORDS
    if wanted == stems(name.partition(SEPARATOR)[2]):
        return _SAME_ENTRY
    return _ALL_WORDS_GIVEN if have < wanted else 0.0
