"""The index: records in, ranked ids out, with a word on whether anything fits.

Invariants: an index never changes, so any number of threads may search it; a category filter is applied before
ranking; records that are called what was asked for come first; without vectors it ranks by words alone.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reyn_jupyter.catalog.text import encodable
from reyn_jupyter.search import decision, ranking
from reyn_jupyter.search.lexical import LONGEST_QUERY, LexicalIndex, Parsed
from reyn_jupyter.search.records import Record, RecordError, records_of
from reyn_jupyter.search.vocabulary import Tokens, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from reyn_jupyter.search.embedders.protocol import Embedder

    Floats = NDArray[np.float32]

REMEMBERED = 256  # requests whose vectors are kept
_BEYOND = decision.LOOKED_AT  # of the best beyond the limit, that may move up when copies step back
_NAMED_FROM = 0.97  # scores from here on are those of records that are called what was asked for
_CATEGORIES = 3


@dataclass(frozen=True)
class Answer:
    """What a search found.

    Attributes:
        hits: ids with their scores in [0, 1], best first. Scores of different requests do not compare; for that
            there is `confidence`.
        weak: nothing found is likely to be an answer.
        confidence: the probability that something found is one, in [0, 1].
        nearest_categories: the categories of what came nearest, best first; empty unless weak.
    """

    hits: tuple[tuple[str, float], ...]
    weak: bool
    confidence: float
    nearest_categories: tuple[str, ...] = ()


class _Scored(NamedTuple):
    parsed: Parsed
    scores: Floats  # -inf for what must not be found
    asked: Floats | None  # the request's vector
    dense: ranking.DenseLeg | None
    allowed: NDArray[np.bool_]
    worded: bool  # an allowed record holds a word of the request


class Index:
    """Search over records.

    Args:
        records: records or mappings; their ids are unique.
        vectors: one row a record, shape (n, d), float32, as `views.joined` makes them; rows of NaN have none yet.
        embedder: gives the request's vector; without it, or without vectors, words alone rank.

    Raises:
        RecordError: bad records, or vectors of another shape.

    >>> index = Index([{"id": "a", "name": "read_file"}, {"id": "b", "name": "send_mail"}])
    >>> [id for id, score in index.search("send a mail")]
    ['b']
    """

    def __init__(
        self,
        records: Iterable[Record | Mapping[str, object]],
        vectors: Floats | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.query_vector = functools.lru_cache(maxsize=REMEMBERED)(functools.partial(_embedded, embedder))
        self._fill(records_of(records), vectors, embedder, Vocabulary(), {})

    def _fill(
        self,
        records: tuple[Record, ...],
        vectors: Floats | None,
        embedder: Embedder | None,
        vocabulary: Vocabulary,
        known: dict[str, Tokens],
    ) -> None:
        self.records, self.embedder = records, embedder
        if vectors is not None and (vectors.ndim != 2 or len(vectors) != len(records)):
            raise RecordError(
                f"Vectors of shape {vectors.shape} do not fit {len(records)} records; give one row each, "
                "NaN where a record has none yet."
            )
        read = [known.get(each.digest) if known else None for each in records]
        tokens = [old or vocabulary.read(each) for old, each in zip(read, records, strict=True)]
        self._lexical = LexicalIndex(tokens, vocabulary)
        self._names = ranking.Names(records, self._lexical)
        self._dense = ranking.DenseLeg(vectors) if vectors is not None and len(records) else None
        by_id = sorted(range(len(records)), key=lambda position: records[position].id)
        self._order = np.empty(len(records), np.intp)
        self._order[by_id] = np.arange(len(records))
        self._categories: dict[str, list[int]] = defaultdict(list)
        for position, record in enumerate(records):
            self._categories[record.category].append(position)

    @property
    def size(self) -> int:
        """How many records it holds."""
        return len(self.records)

    @property
    def vectors_held(self) -> int:
        """How many of them have a vector."""
        return int(self._dense.held.sum()) if self._dense is not None else 0

    @property
    def lexical_only(self) -> bool:
        """Whether words alone rank."""
        return self.embedder is None or not self.vectors_held

    def updated(
        self, records: Iterable[Record | Mapping[str, object]], vectors: Floats | None = None
    ) -> Index:
        """An index over other records that takes over what it knows of those it had; this one stays as it is."""
        known = {
            record.digest: tokens for record, tokens in zip(self.records, self._lexical.tokens, strict=True)
        }
        other = Index.__new__(Index)
        other.query_vector = self.query_vector
        other._fill(records_of(records), vectors, self.embedder, self._lexical.vocabulary, known)
        return other

    def search(
        self, query: str, limit: int = 10, *, categories: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The records that fit best: ids and scores in [0, 1], best first.

        Args:
            query: words in any script, or a name.
            limit: records at most.
            categories: names to stay within; None for all.
        """
        scored = self._scores(query, categories)
        if scored is None or limit <= 0:
            return []
        return self._hits(query, scored, limit, ranking.best(scored.scores, limit + _BEYOND, self._order))

    def answer(self, query: str, limit: int = 10, *, categories: Collection[str] | None = None) -> Answer:
        """A search that also says whether anything found is likely to be an answer.

        Of a weak ranking the hits are kept as long as some word was found, so that a reader can judge.
        """
        scored = self._scores(query, categories)
        if scored is None:
            return Answer((), True, 0.0)
        pool = ranking.best(scored.scores, max(0, limit) + _BEYOND, self._order)
        hits = tuple(self._hits(query, scored, limit, pool)) if limit > 0 else ()
        if hits and hits[0][1] >= _NAMED_FROM:
            return Answer(hits, False, 1.0)
        ranked = pool[: decision.LOOKED_AT]
        if not ranked:
            return Answer((), True, 0.0)
        model = decision.WORDS_ONLY if scored.dense is None else decision.BOTH_LEGS
        confidence = model.confidence(self._features(scored, ranked))
        weak = confidence < (model.threshold if scored.worded else decision.UNHEARD)
        nearest = self._nearest(ranked, scored.scores) if weak else ()
        return Answer(hits if scored.worded or not weak else (), weak, confidence, nearest)

    def features(self, query: str, *, categories: Collection[str] | None = None) -> decision.Features | None:
        """What the decision reads about a request; None where nothing is found. For fitting its constants."""
        scored = self._scores(query, categories)
        ranked = [] if scored is None else ranking.best(scored.scores, decision.LOOKED_AT, self._order)
        return self._features(scored, ranked) if scored is not None and ranked else None

    def _features(self, scored: _Scored, ranked: Sequence[int]) -> decision.Features:
        return decision.features(
            ranked, scored.scores, scored.parsed, self._lexical, scored.dense, scored.asked
        )

    def _scores(self, query: str, categories: Collection[str] | None) -> _Scored | None:
        """The scores of all records; None where nothing was asked or nothing may be found."""
        parsed = self._lexical.parse(query)
        allowed = np.full(self.size, categories is None)
        for category in dict.fromkeys(categories or ()):
            allowed[self._categories.get(category, [])] = True
        if not parsed.words or not allowed.any():
            return None
        lexical = self._lexical.scores(parsed)
        dense = None if self.lexical_only else self._dense
        asked = None if dense is None else self.query_vector(query)
        centred = None if dense is None or asked is None else dense.similarities(asked)
        scores = ranking.fused(lexical, parsed.mass, centred)
        found = allowed if dense is not None else allowed & (lexical > 0)
        scores[~found] = -np.inf
        return _Scored(parsed, scores, asked, dense, allowed, bool((lexical[allowed] > 0).any()))

    def _hits(self, query: str, scored: _Scored, limit: int, pool: Sequence[int]) -> list[tuple[str, float]]:
        found = ranking.without_copies(pool, scored.scores, self.records, self._names.squashed, scored.dense)
        highest = decision.scale(scored.parsed)
        shown = {position: 0.969 * _unit(score / highest) for position, score in found.items()}
        for position, level in self._names.tiers(query).items():
            if scored.allowed[position]:
                score = float(scored.scores[position])
                shown[position] = _NAMED_FROM + 0.01 * (level - 1) + 0.009 * _unit(score / highest)
        ordered = sorted(shown.items(), key=lambda pair: (-pair[1], self.records[pair[0]].id))
        return [(self.records[position].id, score) for position, score in ordered[:limit]]

    def _nearest(self, ranked: Sequence[int], scores: Floats) -> tuple[str, ...]:
        weight: dict[str, float] = defaultdict(float)
        for position in ranked:
            weight[self.records[position].category] += max(0.0, float(scores[position]))
        ordered = sorted((each for each in weight if each), key=lambda each: (-weight[each], each))
        return tuple(ordered[:_CATEGORIES])


def _unit(score: float) -> float:
    return min(1.0, max(0.0, score))


def _embedded(embedder: Embedder | None, query: str) -> Floats:
    assert embedder is not None, "words alone rank without an embedder"
    return np.asarray(embedder.embed([encodable(query[:LONGEST_QUERY])])[0], np.float32)
