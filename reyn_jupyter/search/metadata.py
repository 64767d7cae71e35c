"""Facts about records that a search may be narrowed by: equal to, one of, between.

Invariants: a filter says yes or no of each record before anything is ranked, and follows from the record's own facts
alone; a record without the fact never matches; a key that no record has is an error and not an empty answer. Numbers
compare with numbers, texts with texts, truth values with truth values, and never one kind with another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.support.validation_messages import quote_value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEYS_NAMED = 12


class FilterError(UserError, ValueError):
    """A filter that no record could be asked; the message names the key, what is wrong, and what there is."""


@dataclass(frozen=True)
class Between:
    """A range, both ends included; None is open.

    Raises:
        FilterError: no end at all, or ends of two kinds.

    Example:
        >>> Between(2000, 2010).holds(2010), Between(low="b").holds("a")
        (True, False)
    """

    low: float | str | None = None
    high: float | str | None = None

    def __post_init__(self) -> None:
        kinds = {_kind(end) for end in (self.low, self.high) if end is not None}
        if len(kinds) != 1 or not kinds <= {"number", "text"}:
            raise FilterError(f"{self!r}: give a low or a high end, or both, as numbers or as texts.")

    def holds(self, value: Any) -> bool:
        """Return whether a value lies in it; one of another kind does not."""
        ends = [end for end in (self.low, self.high) if end is not None]
        if _kind(value) != _kind(ends[0]):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def _kind(value: Any) -> str:
    """Return the kind of a value; "" for what can be no fact.

    >>> _kind(True), _kind(1), _kind("a"), _kind(None)
    ('truth', 'number', 'text', '')
    """
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number" if value == value else ""
    return "text" if isinstance(value, str) else ""


def is_fact(value: Any) -> bool:
    """Return whether a record may say this of itself: a number, a text, a truth value, several of them, or None."""
    if isinstance(value, list | tuple | set | frozenset):
        return all(_kind(each) for each in value)
    return value is None or bool(_kind(value))


class MetadataTable:
    """The facts of all records, by key.

    Args:
        facts: the metadata of each record, in their order.
    """

    def __init__(self, facts: Sequence[Mapping[str, Any]]) -> None:
        self._size = len(facts)
        # By key and by value, which records have it: a condition is asked once a value, however many have that.
        self._columns: dict[str, dict[tuple[str, Any], list[int]]] = {}
        for position, metadata in enumerate(facts):
            for key, value in metadata.items():
                several = isinstance(value, list | tuple | set | frozenset)
                column = self._columns.setdefault(key, {})
                for each in value if several else () if value is None else (value,):
                    column.setdefault((_kind(each), each), []).append(position)

    def mask(self, where: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which records fit every condition.

        Args:
            where: key → a value, a list or set of which one must be equal, or a `Between`. Where a record says several
                values under a key, one must fit.

        Raises:
            FilterError: no record has the key, or what it is compared with can be no fact.
        """
        import numpy as np

        if not isinstance(where, Mapping):
            raise FilterError(f'where={quote_value(where)}: give a mapping such as {{"language": "en"}}.')
        mask = np.ones(self._size, np.bool_)
        for key, condition in where.items():
            column = self._columns.get(key)
            if column is None:
                raise FilterError(self._unknown(key))
            found = np.zeros(self._size, np.bool_)
            fits = _condition(key, condition)
            for (_, value), positions in column.items():
                if fits(value):
                    found[positions] = True
            mask &= found
        return mask

    def _unknown(self, key: Any) -> str:
        known = sorted(self._columns)
        if not known:
            return f"where: no record has metadata, so none has {quote_value(key)}."
        more = f" and {len(known) - _KEYS_NAMED} more" if len(known) > _KEYS_NAMED else ""
        near = meant_clause(str(key), known) or "."
        there = f"{', '.join(known[:_KEYS_NAMED])}{more}"
        return f"where: no record has the key {quote_value(key)}{near} There are {there}."


def _condition(key: str, condition: Any) -> Any:
    """Return the test of one value. Raises FilterError."""
    if isinstance(condition, Between):
        return condition.holds
    several = isinstance(condition, Collection) and not isinstance(condition, str | bytes | Mapping)
    wanted = tuple(condition) if several else (condition,)
    if any(not _kind(each) for each in wanted):
        raise FilterError(
            f"where: {key}={quote_value(condition)}: give a text, a number, True or False, a list of them, or "
            "Between(low, high)."
        )
    keys = {(_kind(each), each) for each in wanted}
    return lambda value: (_kind(value), value) in keys
