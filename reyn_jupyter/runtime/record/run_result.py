"""The result of a run: the data of its last call that gave any, as a table or text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from reyn_jupyter.outputs.blob import Blob, open_blob
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.runtime.record.run_steps import Call

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
_ROWS_LOOKED_AT = 20


class NoTableError(TypeError):
    """A table was asked for where there is none; the message says what there is."""


@dataclass(frozen=True, repr=False)
class RunResult:
    """The data that the answer of a run rests on: what its last call that gave any came to.

    Attributes:
        call: the call, with the action and its arguments.
        store: the store that holds its blob.

    Example:
        >>> trace.result.df.groupby("region").amount.mean(), trace.result.sql      # doctest: +SKIP
    """

    call: Call
    finished: ActionFinished
    store: Any = field(default=None, compare=False)

    def __repr__(self) -> str:
        kind = str(self.finished.content_kind)
        return (
            f"RunResult({self.action!r}, {kind!r}, {self.finished.size:,} bytes, blob={self.finished.blob!r})"
        )

    @property
    def action(self) -> str:
        """The qualified name of the action."""
        return self.call.label

    @property
    def sql(self) -> str | None:
        """The query's text, None where the action takes none."""
        return self._argument("sql", str)

    @property
    def tables(self) -> dict[str, str]:
        """What each table of the query is: its name there → a variable, a workspace file or a blob."""
        given = self._argument("sources", dict) if self.sql is not None else None
        return {str(name): str(source) for name, source in (given or {}).items()}

    @property
    def sources(self) -> tuple[dict[str, str | int], ...]:
        """The variables, files and blobs that the action read: {kind, name}, with rows where they are known."""
        return self.finished.sources

    @property
    def note(self) -> str:
        """One sentence for whoever reads the table, "" where there is none: that it was cut, and the knob."""
        return self.finished.note

    @property
    def blob(self) -> Blob | None:
        """The stored result; None where it was so short that the record itself holds it.

        Raises:
            BlobNotFoundError, BlobStoreError: it is gone or damaged.
            TypeError: the store cannot be read by ordinary calls.
        """
        return None if self.finished.blob is None else open_blob(self.store, self.finished.blob)

    @property
    def text(self) -> str:
        """The whole result as text."""
        return (
            self.finished.output
            if self.finished.blob is None
            else open_blob(self.store, self.finished.blob).text
        )

    @property
    def is_table(self) -> bool:
        """Return whether it is a table: a frame, or an array of objects. Reads a few rows of a stored one.

        Raises:
            BlobStoreError: the stored one is gone or damaged.
        """
        if self.finished.content_kind != "json_array":
            return False
        blob = self.blob
        if self.finished.frame is not None or (blob is not None and blob.info.frame is not None):
            return True
        rows = self._records() if blob is None else blob.head_rows(_ROWS_LOOKED_AT)
        return bool(rows) and all(isinstance(row, dict) for row in rows)

    def first_rows(self, most: int) -> tuple[list[Any], int]:
        """Return the first rows of a table as JSON, and how many it has in all.

        Raises:
            BlobStoreError: the stored one is gone or damaged.
        """
        blob = self.blob
        if blob is not None:
            return list(blob.head_rows(most)), blob.entries or 0
        rows = self._records()
        return rows[:most], len(rows)

    @property
    def df(self) -> pd.DataFrame:
        """The whole result as a new DataFrame, with its dtypes and index where the action gave a table.

        Raises:
            NoTableError: it is no table.
            BlobNotFoundError, BlobStoreError: the stored one is gone or damaged.
        """
        if not self.is_table:
            kind = str(self.finished.content_kind).replace("_", " ")
            raise NoTableError(
                f"{self.action} gave no table but {'an' if kind[0] in 'aeiou' else 'a'} {kind}; use .result.text"
            )
        blob = self.blob
        if blob is not None:
            return blob.df
        from reyn_jupyter.outputs.frames import restore
        from reyn_jupyter.outputs.frames.frame_info import is_frame_info

        frame, records = self.finished.frame, self._records()
        if frame is not None and not is_frame_info(frame, len(self.finished.output)):
            frame = None
        try:
            return restore.from_plain(records) if frame is None else restore.restore(records, frame)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NoTableError(
                f"the record of {self.action} does not restore its table: {error}; use .result.text"
            ) from error

    def _records(self) -> list[Any]:
        """Return the rows that the record holds: what comes after them is the note."""
        try:
            found, _ = json.JSONDecoder().raw_decode(self.finished.output)
        except (ValueError, RecursionError):
            return []
        return found if isinstance(found, list) else []

    def _argument(self, name: str, kind: type[T]) -> T | None:
        given = self.call.resolved.inner
        value = given.get(name) if isinstance(given, Mapping) else None
        return value if isinstance(value, kind) else None
