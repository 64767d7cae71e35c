"""From two legs to one order: meaning and words are added, copies step back, names come first.

Invariant: an order follows from records, vectors and request alone; equal scores stand in the order of their ids.

A score is centred cosine similarity plus a share of BM25F. BM25F is left on its own scale: a request with rare words
that a record holds then weighs more than one of common words, which no normalisation within a request can tell.
Centring: Mu and Viswanath, "All-but-the-Top" (2018), its first step. Constants: chosen on the tuning halves of two
benchmarks (`python -m tests.benchmarks.retrieval --tune`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.tokens import squashed
from reyn_jupyter.search.vocabulary import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reyn_jupyter.search.lexical import LexicalIndex
    from reyn_jupyter.search.records import Record

    Floats = NDArray[np.float32]

LEXICAL_WEIGHT = 0.045  # of one unit of BM25F against a cosine of 1
CENTRED_FROM = 10  # records at which half of the mean is taken away: the mean of a few says little
COPY = 0.8  # similarity from which on two records of one name are copies
COPY_PENALTY = 0.1
GUESSED, MOST_GUESSED = 1.5, 0.8  # similarity of a record without a vector, for the share of words it holds
LONGEST_NAME = 200  # characters of a request that may be a name
CHUNK = 16_384  # rows that are read at a time
TURNED = 20_000  # rows up to which a transposed copy is kept: its product is two to three times as fast


class DenseLeg:
    """Vectors of records, centred as they are read: the centre goes into one factor for each row.

    Args:
        vectors: shape (n, d), float32, rows of length 1; a memory map is fine. Rows of NaN have no vector yet.
    """

    def __init__(self, vectors: Floats) -> None:
        self.vectors = vectors
        self.held = ~np.isnan(vectors[:, 0])
        count = int(self.held.sum())
        dimension = vectors.shape[1]
        total = np.zeros(dimension, np.float64)
        for first in range(0, len(vectors), CHUNK):
            part = vectors[first : first + CHUNK][self.held[first : first + CHUNK]]
            total += part.sum(0, dtype=np.float64)
        self.centre = (total / max(count, 1) * count / (count + CENTRED_FROM)).astype(np.float32)
        self._turned = np.ascontiguousarray(vectors.T) if len(vectors) <= TURNED else None
        self._factor = np.empty(len(vectors), np.float32)
        for first in range(0, len(vectors), CHUNK):
            part = vectors[first : first + CHUNK] - self.centre
            self._factor[first : first + CHUNK] = 1 / np.maximum(
                np.sqrt(np.einsum("nd,nd->n", part, part)), 1e-6
            )

    def similarities(self, query: Floats) -> Floats:
        """The centred cosine of every record with a request's vector, shape (n,); NaN without a vector."""
        found = np.asarray(self.vectors @ query if self._turned is None else query @ self._turned)
        found -= self.centre @ query
        found *= self._factor
        return found

    def centred(self, positions: Sequence[int]) -> Floats:
        """The centred vectors of some records, of length 1, shape (len(positions), d)."""
        rows = np.asarray(self.vectors[positions]) - self.centre
        return np.asarray(rows * self._factor[positions][:, None], np.float32)


class Names:
    """Which records are called exactly, or nearly, what was asked for."""

    def __init__(self, records: Sequence[Record], lexical: LexicalIndex) -> None:
        self._lexical = lexical
        self._called: dict[str, list[int]] = {}
        self._squashed: dict[str, list[int]] = {}
        self._forms: dict[tuple[int, ...], list[int]] = {}
        self.squashed = [squashed(record.name) or record.name for record in records]
        for position, record in enumerate(records):
            names = names_of(record)
            for name in dict.fromkeys((record.id, *names)):
                self._called.setdefault(name, []).append(position)
            for form in dict.fromkeys(map(squashed, names)):
                self._squashed.setdefault(form, []).append(position)
            for words in lexical.tokens[position].forms:
                self._forms.setdefault(words, []).append(position)

    def tiers(self, query: str) -> dict[int, int]:
        """Position → 3 for the very name, 2 for it but for case and separators, 1 for the same words."""
        query = query.strip()
        if not query or len(query) > LONGEST_NAME:
            return {}
        words = self._lexical.vocabulary.form_of(query)
        levels = (
            self._forms.get(words, ()) if words else (),
            self._squashed.get(squashed(query), ()) if squashed(query) else (),
            self._called.get(query, ()),
        )
        return {position: level for level, held in enumerate(levels, 1) for position in held}


def fused(lexical: Floats, mass: float, centred: Floats | None) -> Floats:
    """One score a record, shape (n,). A record without a vector is given the similarity that its words suggest.

    Args:
        lexical: BM25F, shape (n,).
        mass: the most that a request's words can be worth, to tell which share of them a record holds.
        centred: similarities, shape (n,), NaN without a vector; None where words alone rank.
    """
    scores = np.asarray(LEXICAL_WEIGHT * lexical, np.float32)
    if centred is None:
        return scores
    missing = np.isnan(centred)
    if missing.any():
        suggested = np.minimum(GUESSED * lexical / max(mass, 1e-9), MOST_GUESSED)
        centred = np.where(missing, suggested, centred)
    return np.asarray(scores + centred, np.float32)


def best(scores: Floats, count: int, order: NDArray[np.intp]) -> list[int]:
    """The positions of the highest finite scores, best first; equal ones by `order`, the rank of each id."""
    count = min(count, len(scores))
    if count <= 0:
        return []
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    found = np.flatnonzero(scores > least)
    if np.isfinite(least):
        equal = np.flatnonzero(scores == least)
        equal = equal[np.argsort(order[equal])[: count - len(found)]]
        found = np.concatenate((found, equal))
    ranked: list[int] = found[np.lexsort((order[found], -scores[found]))].tolist()
    return ranked


def without_copies(
    ranked: Sequence[int],
    scores: Floats,
    records: Sequence[Record],
    names: Sequence[str],
    dense: DenseLeg | None,
) -> dict[int, float]:
    """Scores of the ranked ones, less a penalty for each that says once more what a better one said.

    Who needs one action seldom needs its copy, and the copies of a wrong one hide the right one. A copy has the
    same name (`names`, by position), and nearly the same vector; without vectors the same description.
    """
    found = dict(zip(ranked, scores[ranked].tolist(), strict=True))
    leaders: dict[str, list[int]] = {}
    for position in ranked:
        same = leaders.setdefault(names[position], [])
        if any(_copies(position, other, records, dense) for other in same):
            found[position] -= COPY_PENALTY
        else:
            same.append(position)
    return found


def _copies(one: int, other: int, records: Sequence[Record], dense: DenseLeg | None) -> bool:
    if dense is not None and dense.held[one] and dense.held[other]:
        return float(dense.vectors[one] @ dense.vectors[other]) >= COPY
    return records[one].description == records[other].description
