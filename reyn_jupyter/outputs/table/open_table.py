"""A stored table that is open for looking at: windows from the file until it has to be loaded.

Invariant: opening reads the manifest and the first rows. A window of rows as they are stored is read from the file,
whatever the file's size; only order, matches and figures load the table, once, whoever asks for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.blob import Blob, BlobKindError
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore
from reyn_jupyter.outputs.blobs.reader import BlobView
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.outputs.frames.parquet import read_parquet
from reyn_jupyter.outputs.frames.restore import restore_columns, restore_lists
from reyn_jupyter.outputs.json_index import elements
from reyn_jupyter.outputs.table.column_spec import (
    STICKY,
    ColumnSpec,
    as_record,
    column_values,
    frame_columns,
    keys_of,
    specials_within,
)
from reyn_jupyter.outputs.table.column_values import ABSENT
from reyn_jupyter.outputs.table.frame_table import FrameTable

if TYPE_CHECKING:
    import pandas as pd

HEAD = 20  # the rows that decide how a column is written, those of the static view
WINDOW_BYTES = 4 << 20  # a window with more JSON than this is taken from the loaded table instead
_BLOCK = 10_000  # elements parsed at once while loading
Tell = Callable[[float, float, str], None]


class OpenedTable:
    """Args:
    blob: a blob of kind "json_array".

    Raises:
        BlobKindError: it is of another kind.
    """

    def __init__(self, store: LocalBlobStore, blob: Blob) -> None:
        if blob.kind != "json_array":
            raise BlobKindError(f"blob {blob.id} is {blob.kind}, no table")
        self.blob = blob
        self._store = store
        self.table: FrameTable | None = None
        self.revision = 0
        self._growing = Lock()
        self._framed = blob.info.frame is not None
        self.columns: list[ColumnSpec] = frame_columns(blob.info)
        self._read_head()

    def _read_head(self) -> None:
        with BlobView(self._store, self.blob.info) as view:
            self.rows = view.json.count
        records = self.records(0, HEAD)
        if records is None:
            self.load(lambda done, total, note: None)
        self._head = records

    @property
    def id(self) -> str:
        """What views call it."""
        return self.blob.id

    @property
    def size(self) -> int:
        """Bytes of its JSON."""
        return self.blob.size

    @property
    def frame_info(self) -> dict[str, Any] | None:
        """The description of its columns; None where they are those of the rows that were met."""
        return self.blob.info.frame

    @property
    def expression(self) -> str | None:
        """Python code for the frame."""
        return f"reyn.session().blob({self.blob.id!r}).df"

    @property
    def headers(self) -> int:
        """The number of the first columns that name their row."""
        return min(STICKY, sum(column.level is not None for column in self.columns))

    def label(self, row: int) -> str:
        """The name of a row where no column gives one."""
        span = ((self.blob.info.frame or {}).get("index") or {}).get("range")
        return str(span[0] + span[2] * row if span else row)

    def records(self, start: int, count: int) -> list[dict[str, Any]] | None:
        """Rows as they are stored, read from the file; None when they take too much of it."""
        stop = min(self.rows, start + count)
        if start >= stop:
            return []
        with BlobView(self._store, self.blob.info) as view:
            spans = list(elements(view.source, view.json, start, stop))
            begin, end = spans[0][0], spans[-1][1]
            if end - begin > WINDOW_BYTES:
                return None
            raw = view.source.read(begin, end - begin)
        records = self._parsed(raw)
        self._met(records)
        return records

    def _parsed(self, raw: bytes) -> list[dict[str, Any]]:
        try:
            return [as_record(element) for element in json.loads(b"[%b]" % raw)]
        except (ValueError, RecursionError) as problem:
            raise BlobStoreError(f"blob {self.blob.id} holds no readable JSON: {problem}") from None

    def _met(self, records: list[dict[str, Any]]) -> None:
        """Columns that were not known yet are added at the end."""
        if self._framed:
            return
        with self._growing:
            known = {column.key for column in self.columns}
            fresh = [ColumnSpec(key) for key in keys_of(records) if key not in known]
            if fresh:
                self.columns.extend(fresh)
                self.revision += 1

    def cells(
        self, column: int, start: int, records: list[dict[str, Any]]
    ) -> tuple[list[Any], dict[int, str]]:
        """The JSON values of a column of `records`, and which nulls stand for numbers that JSON lacks."""
        found = self.columns[column]
        values = column_values(records, found.key)
        return values, specials_within(found.spec, start, start + len(records))

    def head(self, column: int) -> tuple[list[Any], dict[int, str]]:
        """The cells of the first rows."""
        if self._head is not None:
            return self.cells(column, 0, self._head)
        assert self.table is not None
        return self.table.cells(column, slice(0, HEAD))

    def load(self, tell: Tell) -> FrameTable:
        """Load the table; takes as long as its size asks for, so it belongs on a thread."""
        if self.table is None:
            tell(0, self.blob.size, "reading the table")
            series = self._frame_series(tell) if self._framed else self._plain_series(tell)
            self.table = FrameTable(self.columns, series, self.rows)
        return self.table

    def _frame_series(self, tell: Tell) -> list[pd.Series]:
        frame = self._frame(tell)
        levels = sum(column.level is not None for column in self.columns)
        index = [
            frame.index.get_level_values(number).to_series(index=frame.index) for number in range(levels)
        ]
        return [
            *(level.reset_index(drop=True) for level in index),
            *(frame.iloc[:, place].reset_index(drop=True) for place in range(frame.shape[1])),
        ]

    def _frame(self, tell: Tell) -> pd.DataFrame:
        info = self.blob.info.frame or {}
        keys = [column.key for column in self.columns]
        sidecar = self._store.sidecar(self.blob.id)
        table = read_parquet(sidecar) if sidecar else None
        if table is not None and set(keys) <= set(table.columns) and len(table) == info["rows"]:
            return restore_columns(table, info)
        return restore_lists(self._lists(tell), info)

    def _lists(self, tell: Tell) -> dict[str, list[Any]]:
        """All cells, column by column, parsed block by block: never all records at once."""
        columns: dict[str, list[Any]] = {column.key: [] for column in self.columns}
        missing = None if self._framed else ABSENT
        with BlobView(self._store, self.blob.info) as view:
            spans: list[tuple[int, int]] = []
            for number, span in enumerate(elements(view.source, view.json, 0, self.rows), 1):
                spans.append(span)
                if len(spans) == _BLOCK or number == self.rows or span[1] - spans[0][0] > WINDOW_BYTES:
                    raw = view.source.read(spans[0][0], span[1] - spans[0][0])
                    self._append(columns, self._parsed(raw), number - len(spans), missing)
                    spans = []
                    tell(span[1], self.blob.size, "reading the table")
        return columns

    def _append(
        self, columns: dict[str, list[Any]], records: list[dict[str, Any]], before: int, missing: Any
    ) -> None:
        self._met(records)
        for column in self.columns:
            if column.key not in columns:
                columns[column.key] = [missing] * before
            key = column.key
            columns[key].extend([record.get(key, missing) for record in records])

    def _plain_series(self, tell: Tell) -> list[pd.Series]:
        import pandas as pd

        lists = self._lists(tell)
        return [pd.Series(lists[column.key], dtype=object) for column in self.columns]
