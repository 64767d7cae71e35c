"""The words of all records, by word, and how well a request's words fit each record.

Invariant: scores follow from the records alone, so an index that took over known tokens scores as one built afresh.
BM25F over name, description, names and descriptions of parameters: Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond" (2009), section 3.6.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.ranking import term_weights
from reyn_jupyter.search.ranking.analysis import FIELDS
from reyn_jupyter.search.ranking.spelling import Spelling
from reyn_jupyter.search.ranking.tokens import (
    LONGEST_STEMMED,
    STOP_WORDS,
    cut_query,
    pieces,
    runs,
    stem,
    tokens_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reyn_jupyter.search.ranking.analysis import AnalyzedRecords
    from reyn_jupyter.search.ranking.vocabulary import Vocabulary

K1 = 2.0  # how soon more occurrences of a word stop to count
FIELD_WEIGHTS = np.array([3.0, 1.0, 1.0, 1.0])  # name, description, names of parameters, their descriptions
FIELD_LENGTHS = np.array([0.1, 0.3, 0.3, 0.3])  # how much a long text is held against its field
LONE_WORD = 6  # letters of a name of one word that may be misspelt
SPARE = 20_000  # tokens that no record holds any more, which are kept in case they come back
MOST_WORDS = 128  # different words of a request that are looked up
LONGEST_ECHO = 1_000  # characters of a text that are compared with a request
STOPPED = frozenset(map(stem, STOP_WORDS)) | STOP_WORDS


@dataclass(frozen=True)
class ParsedQuery:
    """A request as words.

    Attributes:
        weights: what each known token of the request is worth in a record that is full of it.
        mass: the rarity of all its words, unknown ones included.
        words: how many different words it has.
        told: what each known token tells in any catalog, see `term_weights.term_weight`.
        telling: what all its words tell together, unknown ones included.
    """

    weights: dict[int, float]
    mass: float
    words: int
    told: dict[int, float]
    telling: float


class LexicalIndex:
    """Postings of every token: which records hold it, and what it is worth there.

    Args:
        read: the records, read with `vocabulary`.
    """

    def __init__(self, read: AnalyzedRecords, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.read, self.size = vocabulary, read, len(read)
        self._known = len(vocabulary)
        self._ends = read.ends
        average = np.maximum(read.lengths.sum(0, dtype=np.int64) / max(self.size, 1), 1e-9)
        norms = FIELD_WEIGHTS / (1 - FIELD_LENGTHS + FIELD_LENGTHS * read.lengths / average)
        # One number for each occurrence: its token, then its record, then its field. Sorted, equal ones are counted.
        places = FIELDS * self.size
        bits = max(places, FIELDS).bit_length()
        occurrence = (read.numbers.astype(np.int64) << bits) | np.repeat(
            np.arange(places), read.lengths.ravel()
        )
        occurrence.sort()
        first = _changes(occurrence)
        times = np.diff(first, append=len(occurrence))
        occurrence = occurrence[first]
        heard = norms.ravel()[occurrence & ((1 << bits) - 1)] * times
        held = occurrence // FIELDS
        first = _changes(held)
        heard = np.add.reduceat(heard, first) if len(first) else heard
        held = held[first]
        bits -= FIELDS.bit_length() - 1
        self._record = (held & ((1 << bits) - 1)).astype(np.int32)
        self._start = np.searchsorted(held >> bits, np.arange(self._known + 1)).tolist()
        self.held = np.diff(self._start)
        self._worth = (heard / (K1 + heard)).astype(np.float32)

    @property
    def crowded(self) -> bool:
        """Return whether most words of the vocabulary are those of texts that are gone: time for a new one."""
        return len(self.vocabulary) > SPARE + 2 * int(np.count_nonzero(self.held))

    def rarity(self, held: int) -> float:
        """Return the inverse document frequency of a token that so many records hold."""
        return math.log1p((self.size - held + 0.5) / (held + 0.5))

    def parse(self, query: str) -> ParsedQuery:
        """Return a request as known tokens. An unknown word stands for what it begins or nearly is."""
        given = dict.fromkeys(
            token for run in runs(cut_query(query)) for token in self.vocabulary.tokens_of(run)
        )
        said = [token for token in given if token not in STOPPED] or list(given)
        weights: dict[int, float] = {}
        told: dict[int, float] = {}
        mass, telling = 0.0, 0.0
        for token in said[:MOST_WORDS]:
            number = self._number(token)
            tells = 0.0 if token.isdigit() else term_weights.term_weight(token)
            telling += tells
            if number is not None:
                told[number] = max(told.get(number, 0.0), tells)
                mass += self.rarity(int(self.held[number]))
                weights[number] = max(weights.get(number, 0.0), self.rarity(int(self.held[number])))
            elif not token.isdigit():  # a number that nobody wrote into a description says nothing
                mass += self.rarity(0)
                for near, share in self._near(token):
                    worth = share * self.rarity(int(self.held[near]))
                    weights[near] = max(weights.get(near, 0.0), worth)
                    told[near] = max(told.get(near, 0.0), share * tells)
        return ParsedQuery(weights, mass, min(len(said), MOST_WORDS), told, telling)

    def known_share(self, query: str) -> float:
        """Return the share of a request's words that some record holds, in [0, 1]."""
        runs_of = runs(cut_query(query))
        given = {token for run in runs_of for token in self.vocabulary.tokens_of(run)} - STOPPED
        return sum(self._number(token) is not None for token in given) / max(len(given), 1)

    def scores(self, parsed: ParsedQuery) -> NDArray[np.float32]:
        """Return BM25F of every record, shape (size,); 0 for one that holds no word of the request."""
        found = np.zeros(self.size, np.float32)
        for number, weight in parsed.weights.items():
            part = slice(self._start[number], self._start[number + 1])
            found[self._record[part]] += np.float32(weight) * self._worth[part]
        return found

    def coverage(self, parsed: ParsedQuery, position: int) -> float:
        """Return the share of what a request tells that one record holds, in [0, 1]."""
        first, last = (self._ends[position - 1] if position else 0), self._ends[position]
        held = set(self.read.numbers[first:last].tolist())
        found = sum(tells for number, tells in parsed.told.items() if number in held)
        return min(1.0, found / parsed.telling) if parsed.telling else 0.0

    def echo(self, parsed: ParsedQuery, text: str) -> float:
        """Return the share of what the beginning of a text tells that a request holds, in [0, 1]."""
        words = {token for run in runs(text[:LONGEST_ECHO]) for token in self.vocabulary.tokens_of(run)}
        tells = {
            self.vocabulary.numbers.get(word): term_weights.term_weight(word) for word in words - STOPPED
        }
        found = sum(min(told, tells.get(number, 0.0)) for number, told in parsed.told.items())
        return found / sum(tells.values()) if tells else 0.0

    def near_forms(self, name: str) -> list[tuple[int, ...]]:
        """Return the sets of tokens that a name of one run may have meant, where just one of its words is unknown."""
        if len(name.split()) != 1:
            return []
        words = dict.fromkeys(word for run in runs(name) for word in pieces(run))
        known = {word: self._numbers(word) for word in words}
        unknown = [word for word, numbers in known.items() if numbers is None]
        if (
            len(unknown) != 1
            or len(unknown[0]) > LONGEST_STEMMED
            or (len(words) == 1 and len(name) < LONE_WORD)
        ):
            return []
        rest = {number for numbers in known.values() for number in numbers or ()}
        meant = filter(None, map(self._numbers, self._spelling.mistyped(unknown[0])))
        return list(dict.fromkeys(tuple(sorted({*rest, *numbers})) for numbers in meant))

    def _numbers(self, word: str) -> list[int] | None:
        """Return the tokens of one word by number; None where one of them is in no record."""
        numbers = [self._number(token) for token in tokens_of(word)]
        known = [number for number in numbers if number is not None]
        return known if len(known) == len(numbers) else None

    def _number(self, token: str) -> int | None:
        number = self.vocabulary.numbers.get(token)
        return number if number is not None and number < self._known and self.held[number] else None

    @functools.cached_property
    def _spelling(self) -> Spelling:
        return Spelling(compress(list(self.vocabulary.numbers), self.held.tolist()))

    def _near(self, token: str) -> list[tuple[int, float]]:
        return [(self.vocabulary.numbers[near], share) for near, share in self._spelling.near(token)]


def _changes(ordered: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the positions at which a row of equal numbers begins."""
    differs = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    return np.flatnonzero(differs)
