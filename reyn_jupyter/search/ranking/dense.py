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

from reyn_jupyter.search.ranking.tokens import squash_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record

    Floats = NDArray[np.float32]

LEXICAL_WEIGHT = 0.045  # of one unit of BM25F against a cosine of 1
CENTRED_FROM = 10  # records at which half of the mean is taken away: the mean of a few says little
COPY = 0.8  # similarity from which on two records of one name are copies
COPY_PENALTY = 0.1
GUESSED, MOST_GUESSED = 2.0, 0.8  # similarity of a record without a vector, for the share of words it holds
CHUNK = 16_384  # rows that are read at a time
TURNED = 20_000  # rows up to which a transposed copy is kept: its product is two to three times as fast


class DenseLeg:
    """Vectors of records, centred as they are read: the centre goes into one factor for each row.

    Args:
        vectors: shape (n, d), float32, rows of length 1; a memory map is fine. Rows with a NaN have no vector yet.
    """

    def __init__(self, vectors: Floats) -> None:
        self.vectors = vectors
        self.held = np.empty(len(vectors), np.bool_)
        for first in range(0, len(vectors), CHUNK):
            self.held[first : first + CHUNK] = np.isfinite(vectors[first : first + CHUNK]).all(1)
        self.count = count = int(self.held.sum())
        self.whole = count == len(vectors)
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
        self._factor[~self.held] = np.nan

    def similarities(self, query: Floats) -> Floats:
        """Return the centred cosine of every record with a request's vector, shape (n,); NaN without a vector."""
        with np.errstate(invalid="ignore"):  # rows that hold no numbers stay so
            found = np.asarray(self.vectors @ query if self._turned is None else query @ self._turned)
            found -= self.centre @ query
            found *= self._factor
        return found

    def centred(self, positions: Sequence[int]) -> Floats:
        """Return the centred vectors of some records, of length 1, shape (len(positions), d)."""
        rows = np.asarray(self.vectors[positions]) - self.centre
        return np.asarray(rows * self._factor[positions][:, None], np.float32)


def fuse_scores(lexical: Floats, mass: float, centred: Floats | None, *, whole: bool = False) -> Floats:
    """Return one score a record, shape (n,). One without a vector is given the similarity that its words suggest.

    Args:
        lexical: BM25F, shape (n,).
        mass: the most that a request's words can be worth, to tell which share of them a record holds.
        centred: similarities, shape (n,), NaN without a vector; None where words alone rank.
        whole: whether every record has a vector.
    """
    scores = np.asarray(LEXICAL_WEIGHT * lexical, np.float32)
    if centred is None:
        return scores
    if not whole:
        suggested = np.minimum(GUESSED * lexical / max(mass, 1e-9), MOST_GUESSED)
        centred = np.where(np.isnan(centred), suggested, centred)
    scores += centred
    return scores


def best(scores: Floats, count: int, order: NDArray[np.int32]) -> list[int]:
    """Return the positions of the highest finite scores, best first; equal ones by `order`, the rank of each id."""
    count = min(count, len(scores))
    if count <= 0:
        return []
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    found = np.flatnonzero(scores >= least if np.isfinite(least) else np.isfinite(scores))
    ranked: list[int] = found[np.lexsort((order[found], -scores[found]))][:count].tolist()
    return ranked


def without_copies(
    ranked: Sequence[int],
    shown: Callable[[float], float],
    scores: Floats,
    records: Sequence[Record],
    dense: DenseLeg | None,
    limit: int,
) -> dict[int, float]:
    """Return the scores to show, by position, less a penalty for each that repeats a better one.

    Who needs one action seldom needs its copy, and the copies of a wrong one hide the right one. A copy has the
    same name and nearly the same vector; without vectors the same description. It ends where nothing that comes
    could be among the best `limit`.
    """
    found: dict[int, float] = {}
    leaders: dict[str, list[int]] = {}
    for position, score in zip(ranked, scores[ranked].tolist(), strict=True):
        if len(found) >= limit and sorted(found.values())[-limit] > shown(score):
            break
        name = records[position].name
        same = leaders.setdefault(squash_name(name) or name, [])
        if any(_copies(position, other, records, dense) for other in same):
            score -= COPY_PENALTY
        else:
            same.append(position)
        found[position] = shown(score)
    return found


def _copies(one: int, other: int, records: Sequence[Record], dense: DenseLeg | None) -> bool:
    if dense is not None and dense.held[one] and dense.held[other]:
        return float(dense.vectors[one] @ dense.vectors[other]) >= COPY
    return records[one].description == records[other].description
