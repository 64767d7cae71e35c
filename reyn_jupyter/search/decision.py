"""Whether anything found is an answer: a probability from a few features of the ranking.

Invariant: the decision reads scores and words only, never which record they belong to. A logistic regression, fitted
on the tuning halves of two benchmarks over catalogs of many sizes, against requests whose actions are not in the
catalog; `python -m tests.benchmarks.retrieval --tune` prints the constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.ranking import LEXICAL_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reyn_jupyter.search.lexical import LexicalIndex, Parsed
    from reyn_jupyter.search.ranking import DenseLeg, Floats

LOOKED_AT = 30  # of the best
_COVERED = 10  # of the best whose words are compared
_COHERENT = 5  # of the best that are compared with one another


@dataclass(frozen=True)
class Features:
    """What the decision reads.

    Attributes:
        score: of the best record, both legs together.
        similarity: cosine of request and best record; 0 without vectors.
        coherence, closeness: mean cosine, and mean centred cosine, among the five best; 0 without vectors.
        coverage: the largest share of the request's rare words that one of the ten best holds.
        unknown: share of the request's words that no record holds.
        lead, rise: how far the best stands above the fifth, and above the thirtieth.
        length, size: logarithms of the words of the request and of the records.
    """

    score: float
    similarity: float
    coherence: float
    closeness: float
    coverage: float
    unknown: float
    lead: float
    rise: float
    length: float
    size: float

    def row(self) -> list[float]:
        """The features in order, then how score and similarity change their meaning with the catalog's size."""
        plain = [float(getattr(self, each.name)) for each in fields(self)]
        return [*plain, self.score * self.size, self.similarity * self.size]


@dataclass(frozen=True)
class Model:
    """A logistic regression over `Features`, and the probability below which a ranking counts as weak."""

    constant: float
    weights: tuple[float, ...]
    threshold: float

    def confidence(self, features: Features) -> float:
        """The probability that something found is an answer, in (0, 1)."""
        total = self.constant + sum(w * x for w, x in zip(self.weights, features.row(), strict=True))
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))


UNHEARD = 0.5  # the least confidence where no word of the request is known, and meaning speaks alone

# In the order of `Features.row`. The thresholds lose 5 % of the requests that have an answer.
BOTH_LEGS = Model(
    -6.738,
    (3.865, 6.222, 8.254, -5.311, 3.935, 2.482, 2.298, -1.153, 0.2264, -0.0279, -0.2658, -0.5918),
    0.2161,
)
WORDS_ONLY = Model(-1.624, (8.946, 0, 0, 0, 4.234, 1.735, -1.186, 4.07, -0.2296, -0.1145, -1.024, 0), 0.2756)


def features(
    ranked: Sequence[int],
    scores: Floats,
    parsed: Parsed,
    lexical: LexicalIndex,
    dense: DenseLeg | None,
    asked: Floats | None,
) -> Features:
    """The features of a ranking.

    Args:
        ranked: positions of the best, best first, at least one.
        scores: of all records, shape (n,).
        asked: the request's vector, shape (d,); None where words alone rank, as is `dense` then.
    """
    top = [float(scores[position]) for position in ranked[:LOOKED_AT]]
    similarity = coherence = closeness = 0.0
    if dense is not None and asked is not None:
        similarity = float(np.nan_to_num(dense.vectors[ranked[0]] @ asked))
        held = [position for position in ranked[:_COHERENT] if dense.held[position]]
        if len(held) > 1:
            coherence, closeness = _mutual(dense.vectors[held]), _mutual(dense.centred(held))
    return Features(
        score=top[0],
        similarity=similarity,
        coherence=coherence,
        closeness=closeness,
        coverage=max(lexical.coverage(parsed, position) for position in ranked[:_COVERED]),
        unknown=parsed.unknown,
        lead=top[0] - top[min(4, len(top) - 1)],
        rise=top[0] - top[-1],
        length=math.log1p(parsed.words),
        size=math.log1p(len(scores)),
    )


def _mutual(rows: Floats) -> float:
    """The mean cosine of different rows of length 1."""
    count = len(rows)
    return float(((rows @ rows.T).sum() - count) / (count * (count - 1)))


def scale(parsed: Parsed) -> float:
    """The highest score that a request can reach: what scores are divided by to lie in [0, 1]."""
    return 1 + LEXICAL_WEIGHT * parsed.mass
