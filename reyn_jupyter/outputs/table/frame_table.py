"""A loaded table: its columns, their orders and the rows that match, each worked out once.

Invariant: safe from several threads; what is kept is bounded. A row's number is its place in the stored table.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from cachetools import LRUCache

from reyn_jupyter.outputs.frames.column_codec import encode_cells
from reyn_jupyter.outputs.table.column_spec import ColumnSpec
from reyn_jupyter.outputs.table.column_stats import ColumnStats, figures_of
from reyn_jupyter.outputs.table.row_filter import mask_of
from reyn_jupyter.outputs.table.sorting import ColumnOrder, order_of, sort_rows

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_SAMPLE = 1000  # objects looked at to estimate how much memory a column takes


class SortColumn(NamedTuple):
    column: int
    descending: bool


class RowFilter(NamedTuple):
    column: int
    op: str
    value: str


@dataclass(frozen=True)
class RowRequest:
    """The rows that are wanted: first those that match all filters, then in order of the keys."""

    sort: tuple[SortColumn, ...] = ()
    filters: tuple[RowFilter, ...] = ()


class FrameTable:
    """Args:
    columns: their descriptions, by position.
    series: their values, by position.
    """

    def __init__(self, columns: Sequence[ColumnSpec], series: Sequence[pd.Series], rows: int) -> None:
        self.columns = columns
        self.series = series
        self.rows = rows
        self._lock = RLock()
        self._orders = _Results[int, ColumnOrder](8)
        self._masks = _Results[RowFilter, Any](8)
        self._results = _Results[RowRequest, Any](6)

    def matching(self, asked: RowRequest) -> NDArray[np.int32] | None:
        """The numbers of the rows, in order; None stands for all of them as they are. Raises RowFilterError."""
        if not asked.sort and not asked.filters:
            return None
        known = self.find_rows(asked)
        if known is not None:
            return known
        with self._lock:
            made: NDArray[np.int32] = self._results.made(asked, lambda: self._rows(asked))
            return made

    def find_rows(self, asked: RowRequest) -> NDArray[np.int32] | None:
        """Return what was worked out before, None where nothing was."""
        found: NDArray[np.int32] | None = self._results.get(asked)
        return found

    def _rows(self, asked: RowRequest) -> NDArray[np.int32]:
        import numpy as np

        mask: Any = None
        for each in asked.filters:
            found = self._masks.made(
                each, lambda each=each: mask_of(self.series[each.column], each.op, each.value)
            )
            mask = found if mask is None else mask & found
        if not asked.sort:
            return np.flatnonzero(mask).astype(np.int32)
        orders = [(self._orders.made(key.column, lambda key=key: order_of(self.series[key.column])), key.descending)
                  for key in asked.sort]  # fmt: skip
        rows = sort_rows(orders)
        return rows if mask is None else rows[mask[rows]]

    def cells(self, column: int, rows: Any) -> tuple[list[Any], dict[int, str]]:
        """The JSON values of some rows of a column, and which nulls stand for numbers that JSON lacks."""
        spec = self.columns[column].spec
        part = self.series[column].iloc[rows]
        if not spec:
            return part.tolist(), {}
        values, specials, _ = encode_cells(part, spec)
        return values, {place: name for name, places in specials.items() for place in places}

    def ranks(self, column: int, rows: int) -> list[int]:
        """For each of the first rows the number of smaller values among them; -1 where it is missing."""
        ranks: list[int] = order_of(self.series[column].iloc[:rows]).ranks().tolist()
        return ranks

    def figures(self, column: int, filters: tuple[RowFilter, ...]) -> ColumnStats:
        rows = self.matching(RowRequest((), filters))
        series = self.series[column]
        return figures_of(series if rows is None else series.iloc[rows])

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(_size(series) for series in self.series)


def _size(series: pd.Series) -> int:
    from sys import getsizeof

    size = int(series.memory_usage(index=False))
    if series.dtype.kind != "O" or not len(series):
        return size
    sample = series.iloc[:: max(1, len(series) // _SAMPLE)].tolist()
    return size + len(series) * sum(map(getsizeof, sample)) // len(sample)


class _Results(Generic[K, V]):
    """The last few results, by what they are of."""

    def __init__(self, most: int) -> None:
        self._held: LRUCache[K, V] = LRUCache(most)
        self._lock = Lock()  # held for a look, not while something is worked out

    def get(self, key: K) -> V | None:
        with self._lock:
            return self._held.get(key)

    def made(self, key: K, make: Any) -> V:
        """Return the result under a key, made when it is not there."""
        found = self.get(key)
        if found is None:
            found = cast("V", make())
            with self._lock:
                self._held[key] = found
        return found
