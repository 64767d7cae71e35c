"""Judge whether anything found is an answer: a probability from a few features of the ranking.

Invariant: the decision reads scores and words only, never which record they belong to. A logistic regression, fitted
on the tuning halves of labelled requests over catalogs of many sizes and kinds, against requests whose actions are not
in the catalog; `python -m tests.benchmarks.retrieval --tune --only decisions` prints the constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.search.ranking.dense import LEXICAL_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.ranking.dense import DenseLeg, Floats
    from reyn_jupyter.search.ranking.lexical import LexicalIndex, ParsedQuery

LOOKED_AT = 30  # of the best, for the categories that came nearest
# Of the best, how many are compared: with the request by its words, by their own words, and with one another. By words
# alone the area under the curve was .813 and .832 so, and .806 and .821 with none but the best.
_COVERED, _ECHOED, _COHERENT = 10, 3, 5


@dataclass(frozen=True)
class RankingFeatures:
    """The features that the decision reads.

    Attributes:
        score: of the best record, both legs together.
        coverage: the largest share of what the request's words tell that one of the ten best holds.
        rarity: how rare the request's words are in this catalog, on average.
        coherence, closeness: mean cosine, and mean centred cosine, among the five best; 0 without vectors.
        echo: the largest share of a name and a description, of the three best, that the request holds; 0 with vectors.
        length, size: logarithms of the words of the request and of the records.
    """

    score: float
    coverage: float
    rarity: float
    coherence: float
    closeness: float
    echo: float
    length: float
    size: float

    def row(self) -> tuple[float, ...]:
        """Return what is weighed: features, some of them times the size of the catalog or the request."""
        return (
            self.score,
            self.score * self.size,
            self.coverage,
            self.coverage * self.length,
            self.rarity,
            self.coherence * self.size,
            self.closeness,
            self.echo,
            self.echo * self.size,
            self.size,
        )


@dataclass(frozen=True)
class ConfidenceModel:
    """A logistic regression over `RankingFeatures`, and the probability below which a ranking counts as weak."""

    constant: float
    weights: tuple[float, ...]
    threshold: float

    def confidence(self, features: RankingFeatures) -> float:
        """Return the probability that something found is an answer, in (0, 1)."""
        total = self.constant + sum(w * x for w, x in zip(self.weights, features.row(), strict=True))
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))


# In the order of `RankingFeatures.row`. The thresholds mark at most a tenth of the fresh requests to this package's own
# catalog that have an answer: threshold_of in tests/benchmarks/_retrieval_own.py. The weights of `BOTH_LEGS` are older
# than the parting by action, and stay: fitted anew they were no better on any catalog of actions that they had not seen
# (docs/search.md, "Figures").
BOTH_LEGS = ConfidenceModel(
    -3.499, (10.04, -0.9753, 1.663, 0.8582, 0.5343, 0.5736, -2.077, 0, 0, -0.5723), 0.2075
)
WORDS_ONLY = ConfidenceModel(
    -2.851, (5.522, -0.6477, 1.869, 1.887, 0.4573, 0, 0, 9.581, -1.177, -0.35), 0.2071
)


def features(
    ranked: Sequence[int],
    records: Sequence[Record],
    scores: Floats,
    parsed: ParsedQuery,
    lexical: LexicalIndex,
    dense: DenseLeg | None,
) -> RankingFeatures:
    """Return the features of a ranking.

    Args:
        ranked: positions of the best, best first, at least one.
        records, scores: all records, and their scores, shape (n,).
        dense: the vectors; None where words alone rank.
    """
    coherence = closeness = echo = 0.0
    if dense is None:
        said = (f"{records[position].name} {records[position].description}" for position in ranked[:_ECHOED])
        echo = max(lexical.echo(parsed, text) for text in said)
    else:
        held = [position for position in ranked[:_COHERENT] if dense.held[position]]
        if len(held) > 1:
            coherence, closeness = _mutual(dense.vectors[held]), _mutual(dense.centred(held))
    return RankingFeatures(
        score=float(scores[ranked[0]]),
        coverage=max(lexical.coverage(parsed, position) for position in ranked[:_COVERED]),
        rarity=parsed.mass / parsed.words,
        coherence=coherence,
        closeness=closeness,
        echo=echo,
        length=math.log1p(parsed.words),
        size=math.log1p(len(scores)),
    )


def _mutual(rows: Floats) -> float:
    """Return the mean cosine of different rows of length 1."""
    count = len(rows)
    return float(((rows @ rows.T).sum() - count) / (count * (count - 1)))


def scale(parsed: ParsedQuery) -> float:
    """Return the highest score that a request can reach: what scores are divided by to lie in [0, 1]."""
    return 1 + LEXICAL_WEIGHT * parsed.mass
