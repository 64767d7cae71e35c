"""Find the records that are called exactly, or nearly, what was asked for.

Invariant: what is found follows from the names, ids and categories of the records, and from which words they hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.ranking.analysis import worded
from reyn_jupyter.search.ranking.tokens import squash_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.ranking.lexical import LexicalIndex

LONGEST_NAME = 200  # characters of a request that may be a name


class NameIndex:
    """Records by what they may be called.

    Args:
        places: the position of each record by its id.
        lexical: the same records by their words.
    """

    def __init__(self, records: Sequence[Record], places: Mapping[str, int], lexical: LexicalIndex) -> None:
        self._records, self._places, self._lexical = records, places, lexical
        read = lexical.read
        owners = np.repeat(np.arange(len(records), dtype=np.int32), read.forms)
        self._called, self._plain, self._worded = (
            _Table(each, owners) for each in (read.called, read.plain, read.worded)
        )

    def tiers(self, query: str) -> dict[int, int]:
        """Return how near each record's name is, by position, higher for nearer ones.

        5 for the very name and 4 for it without what qualifies it; 3 and 2 for the same but for case and separators;
        1 for the same words. Where there is none of these, 0 for the same words but for one that is misspelt.
        """
        query = query.strip()
        if not query or len(query) > LONGEST_NAME:
            return {}
        records = self._records
        words, plain = self._lexical.vocabulary.form_of(query), squash_name(query)
        found = dict.fromkeys(self._worded.holders(worded(words)) if words else (), 1)
        for each in self._plain.holders(hash(plain)) if plain else ():
            found[each] = 3 if squash_name(records[each].name) == plain else 2
        for each in self._called.holders(hash(query)):
            found[each] = 5 if records[each].name.strip() == query else 4
        if query in self._places:
            found[self._places[query]] = 5
        if found or words:
            return found
        near = self._lexical.near_forms(query)
        return {position: 0 for form in near for position in self._worded.holders(worded(form))}


class _Table:
    """The holders of each number: the numbers in order, beside each its holder."""

    def __init__(self, numbers: NDArray[np.int64], holders: NDArray[np.int32]) -> None:
        order = np.argsort(numbers, kind="stable")
        self._numbers, self._holders = numbers[order], holders[order]

    def holders(self, number: int) -> list[int]:
        first = int(self._numbers.searchsorted(number))
        if first == len(self._numbers) or self._numbers[first] != number:
            return []
        found: list[int] = self._holders[first : self._numbers.searchsorted(number, "right")].tolist()
        return found
