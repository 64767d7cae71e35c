"""The words of all records, by word, and how well a request's words fit each record.

Invariant: scores follow from the records alone, so an index that took over known tokens scores as one built afresh.
BM25F over name, description, names and descriptions of parameters: Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond" (2009), section 3.6.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.spelling import Spelling
from reyn_jupyter.search.tokens import STOP_WORDS, runs, stem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reyn_jupyter.search.vocabulary import Tokens, Vocabulary

K1 = 2.0  # how soon more occurrences of a word stop to count
FIELD_WEIGHTS = np.array([3.0, 1.0, 1.0, 1.0])  # name, description, names of parameters, their descriptions
FIELD_LENGTHS = np.array([0.1, 0.3, 0.3, 0.3])  # how much a long text is held against its field
LONGEST_QUERY = 4_000  # characters
MOST_WORDS = 128  # different words of a request that are looked up
_STOPPED = frozenset(map(stem, STOP_WORDS)) | STOP_WORDS


@dataclass(frozen=True)
class Parsed:
    """A request as words.

    Attributes:
        weights: what each known token of the request is worth in a record that is full of it.
        mass: the rarity of all its words, unknown ones included.
        unknown: the share of its words that no record holds, in [0, 1].
        words: how many different words it has.
    """

    weights: dict[int, float]
    mass: float
    unknown: float
    words: int


class LexicalIndex:
    """Postings of every token: which records hold it, and what it is worth there.

    Args:
        tokens: of each record, in order, read by `vocabulary`.
    """

    def __init__(self, tokens: Sequence[Tokens], vocabulary: Vocabulary) -> None:
        self.vocabulary, self.tokens, self.size = vocabulary, tokens, len(tokens)
        self._known = len(vocabulary.numbers)
        flat = array("i")
        for each in tokens:
            flat.extend(each.numbers)
        lengths = np.array([each.lengths for each in tokens], np.int64).reshape(-1, len(FIELD_WEIGHTS))
        average = np.maximum(lengths.sum(0) / max(self.size, 1), 1e-9)
        norms = FIELD_WEIGHTS / (1 - FIELD_LENGTHS + FIELD_LENGTHS * lengths / average)
        heard = np.repeat(norms.ravel(), lengths.ravel())
        holders = np.repeat(np.arange(self.size), lengths.sum(1))
        pair = np.array(flat, np.int64) * max(self.size, 1) + holders
        order = np.argsort(pair, kind="stable")
        pair, heard = pair[order], heard[order]
        first = np.flatnonzero(np.diff(pair, prepend=-1))
        heard = np.add.reduceat(heard, first) if len(first) else heard
        token, self._record = np.divmod(pair[first], max(self.size, 1))
        self._start = np.searchsorted(token, np.arange(self._known + 1))
        self.held = np.diff(self._start)
        self._worth = (heard / (K1 + heard)).astype(np.float32)
        self._spelling: Spelling | None = None

    def rarity(self, held: int) -> float:
        """The inverse document frequency of a token that so many records hold."""
        return math.log1p((self.size - held + 0.5) / (held + 0.5))

    def parse(self, query: str) -> Parsed:
        """A request as known tokens. An unknown word stands for what it begins or nearly is."""
        given = dict.fromkeys(
            token for run in runs(query[:LONGEST_QUERY]) for token in self.vocabulary.tokens_of(run)
        )
        said = [token for token in given if token not in _STOPPED] or list(given)
        weights: dict[int, float] = {}
        mass, unknown = 0.0, 0
        for token in said[:MOST_WORDS]:
            number = self._number(token)
            if number is not None:
                mass += self.rarity(int(self.held[number]))
                weights[number] = max(weights.get(number, 0.0), self.rarity(int(self.held[number])))
            elif not token.isdigit():  # a number that nobody wrote into a description says nothing
                mass += self.rarity(0)
                unknown += 1
                for near, share in self._near(token):
                    worth = share * self.rarity(int(self.held[near]))
                    weights[near] = max(weights.get(near, 0.0), worth)
        words = min(len(said), MOST_WORDS)
        return Parsed(weights, mass, unknown / max(words, 1), words)

    def scores(self, parsed: Parsed) -> NDArray[np.float32]:
        """BM25F of every record, shape (size,); 0 for one that holds no word of the request."""
        found = np.zeros(self.size, np.float32)
        for number, weight in parsed.weights.items():
            part = slice(self._start[number], self._start[number + 1])
            found[self._record[part]] += np.float32(weight) * self._worth[part]
        return found

    def coverage(self, parsed: Parsed, position: int) -> float:
        """The share of a request's mass that one record holds, in [0, 1]."""
        if not parsed.mass:
            return 0.0
        held = set(self.tokens[position].numbers)
        return min(1.0, sum(w for number, w in parsed.weights.items() if number in held) / parsed.mass)

    def _number(self, token: str) -> int | None:
        number = self.vocabulary.numbers.get(token)
        return number if number is not None and number < self._known and self.held[number] else None

    def _near(self, token: str) -> list[tuple[int, float]]:
        if self._spelling is None:
            numbers = self.vocabulary.numbers
            self._spelling = Spelling([each for each in list(numbers) if self._number(each) is not None])
        return [(self.vocabulary.numbers[near], share) for near, share in self._spelling.near(token)]
