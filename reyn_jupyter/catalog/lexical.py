"""The words of one category's actions, by word: what search by words looks into.

Invariant: an index follows from its actions alone, so it lives and dies with their slice of the snapshot.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.text import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reyn_jupyter.catalog.action import Action

NAME_WEIGHT = 3  # occurrences that a word of the name counts as
_LONGEST_DESCRIPTION = 4_000  # characters that are indexed


class SliceIndex:
    """The inverted index of one category: word → (position, weight) of the actions that hold it."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self.postings: dict[str, list[tuple[int, int]]] = {}
        self.lengths: list[int] = []
        for position, action in enumerate(actions):
            weights = Counter(_text_words(action))
            for word in words(action.name.text):
                weights[word] += NAME_WEIGHT
            self.lengths.append(sum(weights.values()))
            for word, weight in weights.items():
                self.postings.setdefault(word, []).append((position, weight))
        self.total_length = sum(self.lengths)

    def beginning_with(self, word: str) -> list[str]:
        return [known for known in self.postings if known.startswith(word)] if len(word) > 1 else []


def _text_words(action: Action) -> Iterable[str]:
    parameters = action.input_schema.get("properties", {})
    return chain(
        words(action.description[:_LONGEST_DESCRIPTION]), chain.from_iterable(map(words, parameters))
    )
