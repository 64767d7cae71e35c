"""Search by words, for people: no model, no index on disk.

Ranking is BM25 over the words of name, parameters and description; a word of the name counts three times.
Invariant: an action whose qualified name, entry or words are exactly the query stands first. Each
category's index is built on the first search and lives with its slice, so a change of one category leaves
the others' indexes as they are. Source of the formula: Robertson and Zaragoza, "The Probabilistic Relevance
Framework: BM25 and Beyond" (2009).
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.catalog.text import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reyn_jupyter.catalog.action import Action
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot, Slice

K1 = 1.2  # how soon more occurrences of a word stop to count
B = 0.75  # how much a long text is held against it
BEGINNING_WEIGHT = 0.5  # of a word that only begins with the query's
LONGEST_QUERY = 500  # characters
_LOOKED_AT = 50  # of the best beyond the limit, among which a name of the very words is looked for


def search_lexical(
    snapshot: CatalogSnapshot, query: str, category: Sequence[str] | None = None, limit: int = 10
) -> list[tuple[Action, float]]:
    """The actions that fit a query best, with their scores, best first.

    Args:
        query: words in any script, or a name.
        category: names to stay within; None or empty for all on offer. Unknown ones hold nothing.
        limit: actions at most.
    """
    wanted = set(words(query[:LONGEST_QUERY]))
    parts = [part for part in snapshot.visible if not category or part.category.name in category]
    parts = [part for part in parts if part.actions]
    scored = [hit for part in parts for hit in _scores(part, wanted, parts)]
    best = heapq.nsmallest(max(0, limit) + _LOOKED_AT, scored, key=_order)
    named = [hit for part in parts for hit in _named(part, query.strip())]
    top = best[0][1] if best else 0.0
    exact = {action.name: (action, 2 * top + level) for level, action in named}
    exact |= {
        action.name: (action, score + top)
        for action, score in best
        if action.name not in exact and wanted == set(words(action.name.text))
    }
    merged = [*exact.values(), *(hit for hit in best if hit[0].name not in exact)]
    return sorted(merged, key=_order)[: max(0, limit)]


def _order(hit: tuple[Action, float]) -> tuple[float, str]:
    return -hit[1], hit[0].name.text


def _named(part: Slice, query: str) -> Iterator[tuple[int, Action]]:
    """The action of exactly this qualified name, and that of this entry."""
    category, _, entry = query.partition(SEPARATOR)
    if category == part.category.name and entry in part.by_entry:
        yield 2, part.by_entry[entry]
    elif query in part.by_entry:
        yield 1, part.by_entry[query]


def _scores(part: Slice, wanted: set[str], parts: Sequence[Slice]) -> Iterable[tuple[Action, float]]:
    index = part.lexical
    indexes = [other.lexical for other in parts]
    total = sum(len(other.lengths) for other in indexes)
    average = sum(other.total_length for other in indexes) / total
    scores: defaultdict[int, float] = defaultdict(float)
    for word in sorted(wanted):
        known = (
            {word: 1.0}
            if word in index.postings
            else dict.fromkeys(index.beginning_with(word), BEGINNING_WEIGHT)
        )
        for token, share in known.items():
            holders = sum(len(other.postings.get(token, ())) for other in indexes)
            rarity = math.log(1 + (total - holders + 0.5) / (holders + 0.5))
            for position, weight in index.postings[token]:
                norm = K1 * (1 - B + B * index.lengths[position] / average)
                scores[position] += share * rarity * weight * (K1 + 1) / (weight + norm)
    return [(part.actions[position], score) for position, score in scores.items()]
