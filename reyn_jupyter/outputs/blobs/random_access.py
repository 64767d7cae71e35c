"""Stores that can be read in parts, by ordinary calls: what the person's views and `inspect` use.

`BlobStore` asks little, so that anyone can write one. A store that is a `LocalBlobStore` too shows blobs without
loading them. Any other is still readable: `in_memory_store.as_local_store` loads its blob whole and reads the copy.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from reyn_jupyter.outputs.blobs.blob_writer import Index
from reyn_jupyter.outputs.blobs.manifest import BlobInfo, GcResult
from reyn_jupyter.outputs.byte_source import ByteSource
from reyn_jupyter.outputs.content import BlobStore, BlobStoreError, Content, FileContent, Structured, Text
from reyn_jupyter.outputs.json_index import NotJsonError, index_json
from reyn_jupyter.outputs.line_index import file_lines


class LocalBlobStore(BlobStore, Protocol):
    """A store on this machine. Every method raises BlobNotFoundError for an id that it does not have."""

    def put(self, content: Content, *, action: str | None = None, run: str | None = None) -> BlobInfo:
        """`store`, as an ordinary call. Raises BlobStoreError."""
        ...

    def describe(self, blob_id: str) -> BlobInfo:
        """A blob's manifest, without opening the blob."""
        ...

    def list(self) -> tuple[BlobInfo, ...]:
        """Every blob, oldest first."""
        ...

    def open(self, blob_id: str) -> ByteSource:
        """The blob's bytes, to be read in parts and closed."""
        ...

    def index(self, blob_id: str) -> Index:
        """Return where its lines or elements lie; built once for large blobs."""
        ...

    def path(self, blob_id: str) -> Path | None:
        """The file that holds it, when there is one."""
        ...

    def sidecar(self, blob_id: str) -> Path | None:
        """The Parquet file beside a large frame, when there is one."""
        ...

    def gc(
        self,
        max_age: float | timedelta | None = None,
        max_bytes: int | None = None,
        keep: Collection[str] = (),
    ) -> GcResult:
        """Remove what is older than `max_age` seconds, then the oldest until `max_bytes` are left.

        What belongs to a run in `keep` (run ids; single blob ids too) always stays.
        """
        ...


def is_local(store: object) -> TypeGuard[LocalBlobStore]:
    return all(hasattr(store, name) for name in ("describe", "open", "index"))


def build_index(source: ByteSource, info: BlobInfo) -> Index:
    """Index a blob by its kind. Raises BlobStoreError when its JSON is damaged."""
    if not info.is_json:
        return file_lines(source)
    try:
        return index_json(source)
    except NotJsonError as problem:
        raise BlobStoreError(f"blob {info.id} is damaged: {problem}") from None


def content_of(raw: bytes, info: BlobInfo) -> Content:
    """A blob's bytes as content again. Raises BlobStoreError when its JSON is damaged."""
    if info.kind == "text":
        return Text(raw.decode(errors="replace"))
    if info.kind == "bytes":
        return Structured({"bytes": len(raw), "base64": base64.b64encode(raw).decode()})
    value = parse_json(raw, info)
    source = raw.decode(errors="replace") if info.source else None
    return Structured(value, source=source, frame=info.frame, parts=info.kind == "parts")


def parse_json(raw: bytes, info: BlobInfo) -> Any:
    """Return the JSON value of a blob's bytes. Raises BlobStoreError when it is damaged."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise BlobStoreError(f"blob {info.id} holds no readable JSON: {problem}") from None


def read_handed_over(content: FileContent) -> Text | Structured:
    """A handed-over file as content in memory. Raises OSError when it is no plain file."""
    from reyn_jupyter.outputs.byte_source import FileSource

    source = FileSource(content.path)
    try:
        text = source.read(0, source.size).decode(errors="replace")
    finally:
        source.close()
    if content.kind == "json":
        try:
            return Structured(json.loads(text), source=text)
        except (ValueError, RecursionError):
            pass
    return Text(text)
