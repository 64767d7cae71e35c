"""A person's handle on a stored blob: `.text`, `.json`, `.df` hand the content to ordinary code.

Invariant: making one, printing one and asking for its head reads a bounded part. Only `.text`, `.json`, `.df` and
`.data` load the whole content, and nothing is kept afterwards.

Example::

    blob = open_blob(store, trace.steps[0].blob)
    blob.df.groupby("region").amount.mean()
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.blobs.ids import canonical_id
from reyn_jupyter.outputs.blobs.in_memory_store import as_local_store
from reyn_jupyter.outputs.blobs.manifest import BlobInfo
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore, is_local, parse_json
from reyn_jupyter.outputs.blobs.reader import BlobView
from reyn_jupyter.outputs.content import BlobStore, BlobStoreError
from reyn_jupyter.outputs.frames.parquet import read_parquet
from reyn_jupyter.outputs.inspect import inspect_now
from reyn_jupyter.outputs.json_index import elements, label_at, members, parse_at
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.outputs.parts.stored_parts import PartEntry, read_entries, read_parts
from reyn_jupyter.support.encoding import clip

if TYPE_CHECKING:
    import pandas as pd

VALUE_BYTES = 1 << 16  # a single row, value or line of a head that is longer is replaced or clipped


class BlobKindError(TypeError):
    """The blob is of another kind than the one asked for; the message names what it offers."""


@dataclass(frozen=True)
class KeyLine:
    """One key of an object: its type label, and its value unless that is large (then None, with `cut` set)."""

    key: str
    label: str
    value: Any
    cut: bool


@dataclass(frozen=True)
class Blob:
    """A stored blob.

    Attributes:
        info: its manifest; the properties below read it.
    """

    info: BlobInfo
    _store: LocalBlobStore = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def kind(self) -> str:
        """ "text", "json_array", "json_object", "json_value", "bytes" or "parts"."""
        return self.info.kind

    @property
    def size(self) -> int:
        """Bytes."""
        return self.info.size

    @property
    def entries(self) -> int | None:
        """Lines, elements or keys, where they were counted."""
        return self.info.entries

    @property
    def action(self) -> str | None:
        return self.info.action

    @property
    def run(self) -> str | None:
        return self.info.run

    @property
    def sha256(self) -> str:
        return self.info.sha256

    @property
    def created(self) -> datetime:
        return datetime.fromtimestamp(self.info.created, UTC)

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and columns of a frame."""
        return self.info.shape

    @property
    def dtypes(self) -> dict[str, str]:
        """The dtypes of a frame by record key, index levels first; empty for anything else."""
        frame = self.info.frame or {}
        columns = [*(frame.get("index") or {}).get("levels", []), *frame.get("columns", [])]
        return {column["key"]: column["dtype"] for column in columns}

    @property
    def path(self) -> Path | None:
        """The file that holds it; None in a store without files."""
        return self._store.path(self.id)

    @property
    def store(self) -> LocalBlobStore:
        """The store that holds it."""
        return self._store

    @property
    def data(self) -> bytes:
        """The exact bytes."""
        source = self._store.open(self.id)
        try:
            return source.read(0, source.size)
        finally:
            source.close()

    @property
    def text(self) -> str:
        """The whole content as text; bytes that are no UTF-8 become U+FFFD."""
        return self.data.decode(errors="replace")

    @property
    def json(self) -> Any:
        """The whole content, parsed. Raises BlobKindError for a text, BlobStoreError when it is damaged."""
        if not self.info.is_json:
            raise BlobKindError(f"blob {self.id} is {self.kind}, no JSON; use .text")
        return parse_json(self.data, self.info)

    @property
    def parts(self) -> ContentParts:
        """The parts of a result, whole: ``IPython.display.Image(blob.parts[1].data)`` draws an image.

        Raises:
            BlobKindError: it is no result of parts.
            BlobStoreError: it, or what a part lies in, is gone or damaged.
        """
        if self.kind != "parts":
            raise BlobKindError(f"blob {self.id} is {self.kind}, no result of parts; use .text")
        return read_parts(self._store, self.id)

    @property
    def part_entries(self) -> tuple[PartEntry, ...]:
        """What is known of each part, without its content; empty for anything else. Raises BlobStoreError."""
        return read_entries(self._store, self.id) if self.kind == "parts" else ()

    @property
    def df(self) -> pd.DataFrame:
        """A DataFrame: a stored frame with its dtypes and index, or one row an element of an array.

        Raises:
            BlobKindError: it is no array.
        """
        from reyn_jupyter.outputs.frames import restore

        if self.kind != "json_array":
            raise BlobKindError(
                f"blob {self.id} is {self.kind}, no table; use .{'json' if self.info.is_json else 'text'}"
            )
        frame = self.info.frame
        if frame is None:
            return restore.from_plain(self.json)
        sidecar = self._store.sidecar(self.id)
        table = read_parquet(sidecar) if sidecar else None
        if table is not None and set(self.dtypes) <= set(table.columns) and len(table) == frame["rows"]:
            return restore.restore_columns(table, frame)
        return restore.restore(self.json, frame)

    def inspect(self, selector: str | None = None) -> str:
        """A part of it, as the model reads it. Raises SelectorError."""
        return inspect_now(self._store, self.id, selector)

    def head_lines(self, number: int, line_bytes: int = 500) -> list[str]:
        """The first lines, each clipped to `line_bytes`. Only these are read."""
        lines: list[str] = []
        with BlobView(self._store, self.info) as view:
            count = view.lines.count
            while len(lines) < min(number, count):
                text, read, _ = view.read_lines(len(lines), number, VALUE_BYTES)
                found = text.split("\n")[: max(1, read)]
                lines.extend(clip(line, line_bytes) for line in found)
        return lines

    def head_rows(self, number: int) -> list[Any]:
        """The first elements of an array, parsed; one larger than 64 KiB is replaced by its type label.

        Raises BlobKindError when it is no array.
        """
        if self.kind != "json_array":
            raise BlobKindError(f"blob {self.id} is {self.kind}, no array; use head_keys or head_lines")
        with BlobView(self._store, self.info) as view:
            return [
                self._bounded(view, start, end)[0]
                for start, end in elements(view.source, view.json, 0, number)
            ]

    def head_keys(self, number: int) -> list[KeyLine]:
        """The first keys of an object with their types and small values. Raises BlobKindError when it is none."""
        if self.kind != "json_object":
            raise BlobKindError(f"blob {self.id} is {self.kind}, no object; use head_rows or head_lines")
        lines = []
        with BlobView(self._store, self.info) as view:
            for member in islice(members(view.source, view.json), number):
                label = label_at(view.source, member.start, member.end, member.inner)
                value, cut = self._bounded(view, member.start, member.end)
                lines.append(KeyLine(member.key, label, None if cut else value, cut))
        return lines

    def _bounded(self, view: BlobView, start: int, end: int) -> tuple[Any, bool]:
        if end - start > VALUE_BYTES:
            return label_at(view.source, start, end), True
        try:
            return parse_at(view.source, start, end), False
        except (ValueError, RecursionError) as problem:
            raise BlobStoreError(f"blob {self.id} holds no readable JSON: {problem}") from None


def open_blob(store: BlobStore, blob_id: str) -> Blob:
    """A handle on a blob of a store of this machine (`FsBlobStore`, `MemoryBlobStore`, or one with their face).

    Raises:
        InvalidBlobIdError, BlobNotFoundError: no such blob.
        TypeError: the store cannot be read by ordinary calls; await `fetch_blob` instead.
    """
    if not is_local(store):
        raise TypeError(
            f"{type(store).__name__} has no describe, open and index; await fetch_blob(store, blob_id)"
        )
    return Blob(store.describe(canonical_id(blob_id)), store)


async def fetch_blob(store: BlobStore, blob_id: str) -> Blob:
    """`open_blob` for any store; one that cannot be read in parts gives the whole content once."""
    local, wanted = await as_local_store(store, blob_id)
    return Blob(local.describe(wanted), local)
