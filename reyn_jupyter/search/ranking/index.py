"""The index: records in, ranked ids out, with a word on whether anything fits.

Invariants: an index never changes, so any number of threads may search it; filters are applied before ranking; records
that are called what was asked for come first; without vectors it ranks by words alone.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reyn_jupyter.search.action_records import Record, RecordError, records_of
from reyn_jupyter.search.metadata import MetadataTable
from reyn_jupyter.search.ranking import confidence as decision
from reyn_jupyter.search.ranking.analysis import AnalyzedRecords
from reyn_jupyter.search.ranking.dense import DenseLeg, best, fuse_scores, without_copies
from reyn_jupyter.search.ranking.exact_names import NameIndex
from reyn_jupyter.search.ranking.lexical import LexicalIndex, ParsedQuery
from reyn_jupyter.search.ranking.tokens import cut_note, cut_query
from reyn_jupyter.search.ranking.vocabulary import LONGEST_EMBEDDED, LONGEST_TEXT, Vocabulary
from reyn_jupyter.support.encoding import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from reyn_jupyter.search.embedders.embedder import Embedder

    Floats = NDArray[np.float32]

REMEMBERED = 256  # requests whose vectors are kept
_BEYOND = decision.LOOKED_AT  # of the best beyond the limit, that may move up when copies step back
_NAMED_FROM = 0.97  # scores from here on are those of records that are called what was asked for
_MISSPELT = 0.96  # and from here on, those that are called nearly so
_TIER = 0.006  # between two ways to be called so
_CATEGORIES = 3


@dataclass(frozen=True)
class SearchAnswer:
    """The result of a search.

    Attributes:
        hits: ids with their scores in [0, 1], best first. Scores of different requests do not compare; for that
            there is `confidence`.
        weak: nothing found is likely to be an answer.
        confidence: the probability that something found is one, in [0, 1].
        nearest_categories: the categories of what came nearest, best first; empty unless weak.
        note: that only the beginning of the request was looked up, in a sentence; "" where it was all of it.
    """

    hits: tuple[tuple[str, float], ...]
    weak: bool
    confidence: float
    nearest_categories: tuple[str, ...] = ()
    note: str = ""

    @property
    def df(self) -> pd.DataFrame:
        """Return one row a hit, best first: id, score."""
        import pandas as pd

        return pd.DataFrame(list(self.hits), columns=["id", "score"])


class _Scored(NamedTuple):
    parsed: ParsedQuery
    scores: Floats  # -inf for what must not be found
    asked: Floats | None  # the request's vector
    dense: DenseLeg | None
    allowed: NDArray[np.bool_] | None  # None for all
    worded: bool  # an allowed record holds a word of the request


class Index:
    """Search over records.

    Args:
        records: records or mappings; their ids are unique.
        vectors: one row a record, shape (n, d), float32, as `embedding_texts.join_vectors` makes them; rows of
            NaN have none yet.
        embedder: gives the request's vector; without it, or without vectors, words alone rank.

    Raises:
        RecordError: bad records, or vectors of another shape.

    >>> index = Index([{"id": "a", "name": "read_file"}, {"id": "b", "name": "send_mail"}])
    >>> [id for id, score in index.search("send a mail")]
    ['b']
    """

    _lexical: LexicalIndex
    _names: NameIndex
    _places: dict[str, int]  # of records, by id
    _order: NDArray[np.int32]  # the rank of each record's id
    _categories: dict[str, NDArray[np.int32]]
    _metadata: MetadataTable

    def __init__(
        self,
        records: Iterable[Record | Mapping[str, object]],
        vectors: Floats | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._remembered = functools.lru_cache(maxsize=REMEMBERED)(functools.partial(_embedded, embedder))
        self._fill(records_of(records), vectors, embedder, None)

    def _fill(
        self,
        records: tuple[Record, ...],
        vectors: Floats | None,
        embedder: Embedder | None,
        before: Index | None,
    ) -> None:
        if vectors is not None and (vectors.ndim != 2 or len(vectors) != len(records)):
            raise RecordError(
                f"Vectors of shape {vectors.shape} do not fit {len(records)} records; give one row each, "
                "NaN where a record has none yet."
            )
        self.records, self.embedder = records, embedder
        self._dense = DenseLeg(vectors) if vectors is not None and len(records) else None
        if before is not None and _are_the_same(records, before.records):
            self._lexical, self._names, self._places = before._lexical, before._names, before._places
            self._order, self._categories = before._order, before._categories
            self._metadata = before._metadata
            return
        if before is not None and before._lexical.crowded:
            before = None
        vocabulary = Vocabulary() if before is None else before._lexical.vocabulary
        if before is None:
            read = AnalyzedRecords.of(records, vocabulary)
        else:
            read = before._lexical.read.again(records, vocabulary, before.records, before._places)
        self._places = {record.id: position for position, record in enumerate(records)}
        self._lexical = LexicalIndex(read, vocabulary)
        self._names = NameIndex(records, self._places, self._lexical)
        self._order = np.empty(len(records), np.int32)
        self._order[[self._places[each] for each in sorted(self._places)]] = np.arange(len(records))
        self._metadata = MetadataTable([record.metadata for record in records])
        categories: dict[str, list[int]] = defaultdict(list)
        for position, record in enumerate(records):
            categories[record.category].append(position)
        self._categories = {name: np.array(held, np.int32) for name, held in categories.items()}

    @property
    def size(self) -> int:
        """Return the number of records."""
        return len(self.records)

    @property
    def vectors_held(self) -> int:
        """Return the number of records that have a vector."""
        return self._dense.count if self._dense is not None else 0

    @property
    def dimension(self) -> int | None:
        """Return how many numbers a vector has; None where there is none."""
        return None if self._dense is None else int(self._dense.vectors.shape[1])

    @property
    def lexical_only(self) -> bool:
        """Return whether words alone rank."""
        return self.embedder is None or not self.vectors_held

    @property
    def shortened(self) -> tuple[str, ...]:
        """Return the ids of records of which only the beginning of a name or a description is searched."""
        most = LONGEST_TEXT if self.lexical_only else min(LONGEST_EMBEDDED, LONGEST_TEXT)
        return tuple(each.id for each in self.records if max(len(each.name), len(each.description)) > most)

    def __repr__(self) -> str:
        how = "words alone" if self.lexical_only else "words and meaning"
        return f"Index({self.size:,} {'record' if self.size == 1 else 'records'}, by {how})"

    def query_vector(self, query: str) -> Floats:
        """Return the vector of a request, shape (d,); the last few hundred are remembered.

        Raises:
            ValueError: it is not one of finite numbers, as many as those of the records.
            Exception: whatever the embedder raises.
        """
        found = self._remembered(clean(cut_query(query)))
        if self._dense is not None and len(found) != self._dense.vectors.shape[1]:
            raise ValueError(
                f"the model gave {len(found)} numbers, and the actions' vectors have "
                f"{self._dense.vectors.shape[1]}; if it changed behind its name: %reyn embeddings clear, then build"
            )
        return found

    def known_share(self, query: str) -> float:
        """Return the share of a request's words that some record holds, in [0, 1]."""
        return self._lexical.known_share(query)

    def updated(
        self, records: Iterable[Record | Mapping[str, object]], vectors: Floats | None = None
    ) -> Index:
        """Return an index over other records that takes over what this one knows; this one stays as it is."""
        other = Index.__new__(Index)
        other._remembered = self._remembered
        other._fill(records_of(records), vectors, self.embedder, self)
        return other

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        categories: Collection[str] | None = None,
        where: Mapping[str, Any] | None = None,
        vector: Floats | None = None,
    ) -> list[tuple[str, float]]:
        """Return the records that fit best: ids and scores in [0, 1], best first.

        Args:
            query: words in any script, or a name.
            limit: records at most.
            categories: names to stay within; None for all.
            where: conditions on metadata, all of which must hold: key → a value, a list of which one must be equal, or
                a `Between`.
            vector: the request's vector, shape (d,), where the caller has it; otherwise the index's embedder makes it.

        Warns:
            UserWarning: only the beginning of a long request was looked up; `answer` says so in its `note`.

        Raises:
            TypeError: the request is no text.
            FilterError: no record has a key of `where`, or its condition makes no sense.
        """
        scored = self._scores(query, categories, where, vector)
        if note := cut_note(query):
            warnings.warn(note, UserWarning, stacklevel=2)
        if scored is None or limit <= 0:
            return []
        return self._hits(query, scored, limit, best(scored.scores, limit + _BEYOND, self._order))

    def answer(
        self,
        query: str,
        limit: int = 10,
        *,
        categories: Collection[str] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> SearchAnswer:
        """Search, and say whether anything found is likely to be an answer.

        Of a weak ranking the hits are kept as long as some word was found, so that a reader can judge. Arguments and
        errors are those of `search`.
        """
        scored, note = self._scores(query, categories, where), cut_note(query)
        if scored is None:
            return SearchAnswer((), True, 0.0, note=note)
        pool = best(scored.scores, max(0, limit) + _BEYOND, self._order)
        hits = tuple(self._hits(query, scored, limit, pool)) if limit > 0 else ()
        if hits and hits[0][1] >= _NAMED_FROM:
            return SearchAnswer(hits, False, 1.0, note=note)
        ranked = pool[: decision.LOOKED_AT]
        if not ranked:
            return SearchAnswer((), True, 0.0, note=note)
        model = decision.WORDS_ONLY if scored.dense is None else decision.BOTH_LEGS
        confidence = model.confidence(self._features(scored, ranked))
        weak = confidence < model.threshold
        nearest = self._nearest(ranked, scored.scores) if weak else ()
        return SearchAnswer(hits if scored.worded or not weak else (), weak, confidence, nearest, note)

    def features(
        self, query: str, *, categories: Collection[str] | None = None
    ) -> decision.RankingFeatures | None:
        """Return the features that the decision reads; None where nothing is found. For fitting its constants."""
        scored = self._scores(query, categories, None)
        ranked = [] if scored is None else best(scored.scores, decision.LOOKED_AT, self._order)
        return self._features(scored, ranked) if scored is not None and ranked else None

    def _features(self, scored: _Scored, ranked: Sequence[int]) -> decision.RankingFeatures:
        return decision.features(
            ranked, self.records, scored.scores, scored.parsed, self._lexical, scored.dense
        )

    def _scores(
        self,
        query: str,
        categories: Collection[str] | None,
        where: Mapping[str, Any] | None,
        vector: Floats | None = None,
    ) -> _Scored | None:
        """Return the scores of all records; None where nothing was asked or nothing may be found."""
        if not isinstance(query, str):
            raise TypeError(f"a query is a text, such as 'read a file', and not {query!r:.40}")
        parsed = self._lexical.parse(query)
        allowed = None if categories is None else self._within(categories)
        if where is not None:
            fitting = self._metadata.mask(where)
            allowed = fitting if allowed is None else allowed & fitting
        if not parsed.words or not self.size or (allowed is not None and not allowed.any()):
            return None
        lexical = self._lexical.scores(parsed)
        dense = None if self.lexical_only and vector is None else self._dense
        asked = vector if dense is None or vector is not None else self.query_vector(query)
        centred = None if dense is None or asked is None else dense.similarities(asked)
        scores = fuse_scores(lexical, parsed.mass, centred, whole=dense is None or dense.whole)
        if allowed is not None:
            lexical[~allowed] = 0
            scores[~allowed] = -np.inf
        if dense is None:
            scores[lexical <= 0] = -np.inf
        return _Scored(parsed, scores, asked, dense, allowed, bool(lexical.any()))

    def _within(self, categories: Collection[str]) -> NDArray[np.bool_]:
        allowed = np.zeros(self.size, np.bool_)
        for category in dict.fromkeys(categories):
            if category in self._categories:
                allowed[self._categories[category]] = True
        return allowed

    def _hits(self, query: str, scored: _Scored, limit: int, pool: Sequence[int]) -> list[tuple[str, float]]:
        highest = decision.scale(scored.parsed)
        shown = without_copies(
            pool,
            lambda score: 0.959 * _unit(score / highest),
            scored.scores,
            self.records,
            scored.dense,
            limit,
        )
        for position, level in self._names.tiers(query).items():
            if scored.allowed is None or scored.allowed[position]:
                least = _NAMED_FROM + _TIER * (level - 1) if level else _MISSPELT
                shown[position] = least + 0.005 * _unit(float(scored.scores[position]) / highest)
        ordered = sorted(shown.items(), key=lambda pair: (-pair[1], self.records[pair[0]].id))
        return [(self.records[position].id, score) for position, score in ordered[:limit]]

    def _nearest(self, ranked: Sequence[int], scores: Floats) -> tuple[str, ...]:
        weight: dict[str, float] = defaultdict(float)
        for position in ranked:
            weight[self.records[position].category] += max(0.0, float(scores[position]))
        ordered = sorted((each for each in weight if each), key=lambda each: (-weight[each], each))
        return tuple(ordered[:_CATEGORIES])


def _are_the_same(some: Sequence[Record], others: Sequence[Record]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _unit(score: float) -> float:
    return min(1.0, max(0.0, score))


def _embedded(embedder: Embedder | None, query: str) -> Floats:
    assert embedder is not None, "words alone rank without an embedder"
    found = np.asarray(embedder.embed([query])[0], np.float32)
    if not np.isfinite(found).all():
        raise ValueError("the model gave no finite numbers for this request")
    return found
