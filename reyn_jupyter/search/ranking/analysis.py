"""The knowledge of each record that an index ranks with: the tokens of its fields, and what it may be called.

Invariant: what stands here of a record follows from that record alone, so it may be taken over from one index to the
next, and an index over taken-over records ranks as one built afresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from reyn_jupyter.search.ranking.tokens import squash_name
from reyn_jupyter.search.ranking.vocabulary import LONGEST_TEXT, names_of, parameter_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.ranking.vocabulary import Vocabulary

FIELDS = 4  # name, description, names of parameters, their descriptions
AT_ONCE = 2_000  # records that are read together: a few hundred kilobytes of text
_MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
_SHIFTS = np.array([30, 27, 31], np.uint64)


@dataclass(frozen=True)
class AnalyzedRecords:
    """Records as numbers, one after the other.

    Attributes:
        numbers: the tokens of all fields of all records.
        lengths: how many tokens each field has, shape (records, FIELDS).
        forms: how many names each record has.
        called, plain, worded: of each name a number that stands for it, for it without case and separators, and for
            the set of its tokens; 0 where it has none.
    """

    numbers: NDArray[np.int32]
    lengths: NDArray[np.int32]
    forms: NDArray[np.int32]
    called: NDArray[np.int64]
    plain: NDArray[np.int64]
    worded: NDArray[np.int64]

    @classmethod
    def of(cls, records: Sequence[Record], vocabulary: Vocabulary) -> AnalyzedRecords:
        """Read records."""
        parts = [
            cls._read(records[first : first + AT_ONCE], vocabulary)
            for first in range(0, len(records) or 1, AT_ONCE)
        ]
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    @classmethod
    def _read(cls, records: Sequence[Record], vocabulary: Vocabulary) -> AnalyzedRecords:
        schemas = {id(record.parameters): record.parameters for record in records}
        texts = {place: parameter_texts(schema) for place, schema in schemas.items()}
        fields = [(r.name, r.description, *texts[id(r.parameters)]) for r in records]
        numbers, lengths = vocabulary.read(list(chain.from_iterable(fields)))
        named = [names_of(record) for record in records]
        names = [name[:LONGEST_TEXT] for name in chain.from_iterable(named)]
        called = [hash(name) for name in chain.from_iterable(named)]
        plain = [hash(form) if form else 0 for form in map(squash_name, names)]
        worded = _sets(*vocabulary.read(names, names=True))
        forms = [len(each) for each in named]
        made = [np.array(each, np.int64) for each in (called, plain, worded)]
        return cls(numbers, lengths.reshape(-1, FIELDS), np.array(forms, np.int32), *made)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Return the position at which the tokens of each record end."""
        return np.cumsum(self.lengths.sum(1), dtype=np.int64)

    def again(
        self,
        records: Sequence[Record],
        vocabulary: Vocabulary,
        before: Sequence[Record],
        places: Mapping[str, int],
    ) -> AnalyzedRecords:
        """Return other records, read only as far as they are not among those that were read here.

        Args:
            before: the records that were read here; a record is one of them, or stands for the one with its id where
                both have the same names and texts.
            places: the position of each of them by its id.
        """
        known = {id(record): position for position, record in enumerate(before)}
        positions: list[int] = []
        fresh: list[Record] = []
        for record in records:
            position = known.get(id(record), places.get(record.id))
            if position is None or not _reads_alike(before[position], record):
                position = len(before) + len(fresh)
                fresh.append(record)
            positions.append(position)
        return self._taken(np.array(positions, np.intp), AnalyzedRecords.of(fresh, vocabulary))

    def _taken(self, positions: NDArray[np.intp], more: AnalyzedRecords) -> AnalyzedRecords:
        """Return the records at some positions, those beyond the last one from `more`."""
        both: dict[str, NDArray[Any]] = {
            name: np.concatenate((mine, theirs))
            for (name, mine), theirs in zip(vars(self).items(), vars(more).values(), strict=True)
        }
        lengths, forms = both["lengths"], both["forms"]
        tokens, names = _spans(lengths.sum(1), positions), _spans(forms, positions)
        return AnalyzedRecords(
            both["numbers"][tokens],
            lengths[positions],
            forms[positions],
            *(both[each][names] for each in ("called", "plain", "worded")),
        )


def _spans(lengths: NDArray[Any], positions: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the positions of the elements of some rows, when rows of these lengths lie one after the other."""
    first = np.cumsum(lengths, dtype=np.int64) - lengths
    wanted = lengths[positions]
    before = np.cumsum(wanted, dtype=np.int64) - wanted
    return np.asarray(np.repeat(first[positions] - before, wanted) + np.arange(wanted.sum()))


def _sets(numbers: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return for each row of tokens the number of their set; 0 for none."""
    row = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    once = np.sort((row << 32) | numbers)  # `unique` takes ten times as long
    once = once[np.diff(once, prepend=-1) != 0]
    found = np.zeros(len(lengths), np.int64)
    np.add.at(found, once >> 32, _mixed(once & 0xFFFFFFFF))
    return found


def _reads_alike(one: Record, other: Record) -> bool:
    return one is other or (
        (one.name, one.category, one.description) == (other.name, other.category, other.description)
        and (one.parameters is other.parameters or one.digest == other.digest)
    )


def worded(numbers: Sequence[int]) -> int:
    """Return the number of a set of tokens, as in `AnalyzedRecords.worded`: a sum of one pseudo-random number each."""
    return int(_mixed(np.array(numbers, np.int64)).sum())


def _mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return Splitmix64 (Steele, Lea and Flood, 2014) of each number, modulo 2^64."""
    mixed = numbers.astype(np.uint64) * _MIX[0] + _MIX[0]
    for shift, factor in zip(_SHIFTS, _MIX[1:], strict=False):
        mixed = (mixed ^ (mixed >> shift)) * factor
    return np.asarray((mixed ^ (mixed >> _SHIFTS[2])).view(np.int64))
