"""Whether anything found is an answer: a probability from a few features of the ranking.

Invariant: the decision reads scores and words only, never which record they belong to. A logistic regression, fitted
on the tuning halves of two benchmarks over catalogs of many sizes, against requests whose actions are not in the
catalog; `python -m tests.benchmarks.retrieval --tune` prints the constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from reyn_jupyter.search.ranking import LEXICAL_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reyn_jupyter.search.lexical import LexicalIndex, Parsed
    from reyn_jupyter.search.ranking import DenseLeg, Floats

LOOKED_AT = 30  # of the best
_COMPARED = 10  # of the best that are compared with the request and with one another


@dataclass(frozen=True)
class Features:
    """What the decision reads: of many more that were tried, those that one set's fit carries over to the other.

    Attributes:
        score: of the best record, both legs together.
        coverage: the largest share of the request's rare words that one of the ten best holds.
        lead, rise: how far the best stands above the fifth, and above the tenth.
        company: mean cosine among the ten best: a request that hits a field of the catalog finds what is alike; 0
            without vectors.
        twin: centred cosine of the best and what is most like it among the ten; 0 without vectors.
        size: logarithm of the number of records.
    """

    score: float
    coverage: float
    lead: float
    rise: float
    company: float
    twin: float
    size: float

    def row(self) -> list[float]:
        """The features in order, then how the score changes its meaning with the catalog's size."""
        return [*(float(getattr(self, each.name)) for each in fields(self)), self.score * self.size]


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

# In the order of `Features.row`. The thresholds lose 5 % of the requests that have an answer in a whole catalog.
BOTH_LEGS = Model(-0.7795, (-0.285, 1.615, 3.205, 1.764, 4.767, 0.2694, -0.4916, 0), 0.1985)
WORDS_ONLY = Model(0.1371, (1.666, 3.628, 1.931, 0.7008, 0, 0, -0.3179, 0), 0.2724)


def features(
    ranked: Sequence[int],
    scores: Floats,
    parsed: Parsed,
    lexical: LexicalIndex,
    dense: DenseLeg | None,
) -> Features:
    """The features of a ranking.

    Args:
        ranked: positions of the best, best first, at least one.
        scores: of all records, shape (n,).
    """
    best = ranked[:_COMPARED]
    top = [float(scores[position]) for position in best]
    held = [position for position in best if dense is not None and dense.held[position]]
    company = twin = 0.0
    if dense is not None and len(held) > 1:
        rows, count = dense.vectors[held], len(held)
        company = float(((rows @ rows.T).sum() - count) / (count * (count - 1)))
        first, *others = dense.centred(held)
        twin = max(float(first @ other) for other in others)
    return Features(
        score=top[0],
        coverage=max(lexical.coverage(parsed, position) for position in best),
        lead=top[0] - top[min(4, len(top) - 1)],
        rise=top[0] - top[-1],
        company=company,
        twin=twin,
        size=math.log1p(len(scores)),
    )


def scale(parsed: Parsed) -> float:
    """The highest score that a request can reach: what scores are divided by to lie in [0, 1]."""
    return 1 + LEXICAL_WEIGHT * parsed.mass
