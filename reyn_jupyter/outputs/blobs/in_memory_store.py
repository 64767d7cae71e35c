"""A blob store in memory: for kernels without a disk, and for a copy of what a remote store holds.

It has the same methods as the one on disk.
"""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from reyn_jupyter.outputs.blobs.blob_writer import Index, entries_of, kind_of, pieces, survey
from reyn_jupyter.outputs.blobs.ids import canonical_id, new_blob_id
from reyn_jupyter.outputs.blobs.manifest import BlobInfo, GcResult, collectable
from reyn_jupyter.outputs.blobs.random_access import (
    LocalBlobStore,
    build_index,
    content_of,
    is_local,
    read_handed_over,
)
from reyn_jupyter.outputs.byte_source import MemorySource
from reyn_jupyter.outputs.content import (
    BlobId,
    BlobNotFoundError,
    BlobStore,
    BlobStoreError,
    Content,
    FileContent,
)


@dataclass
class _Kept:
    info: BlobInfo
    data: bytes
    index: Index | None = None


class MemoryBlobStore:
    """Blobs in a dictionary.

    >>> import asyncio
    >>> from reyn_jupyter.outputs.content import Text
    >>> store = MemoryBlobStore()
    >>> asyncio.run(store.load(asyncio.run(store.store(Text("hello")))))
    Text(text='hello')
    """

    def __init__(self) -> None:
        self._blobs: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    async def store(self, content: Content, *, action: str | None = None, run: str | None = None) -> BlobId:
        return self.put(content, action=action, run=run).id

    async def load(self, blob_id: BlobId) -> Content:
        kept = self._get(blob_id)
        return content_of(kept.data, kept.info)

    async def exists(self, blob_id: BlobId) -> bool:
        return canonical_id(blob_id) in self._blobs

    async def store_bytes(self, data: bytes, *, action: str | None = None, run: str | None = None) -> BlobId:
        info = BlobInfo(
            new_blob_id(),
            "bytes",
            len(data),
            None,
            hashlib.sha256(data).hexdigest(),
            time.time(),
            action,
            run,
        )
        return self._keep(info, bytes(data)).id

    async def load_bytes(self, blob_id: BlobId) -> bytes:
        return self._get(blob_id).data

    def put(
        self,
        content: Content,
        *,
        action: str | None = None,
        run: str | None = None,
        blob_id: str | None = None,
    ) -> BlobInfo:
        handed_over = content.path if isinstance(content, FileContent) else None
        try:
            held = read_handed_over(content) if isinstance(content, FileContent) else content
            if handed_over:
                handed_over.unlink()
        except OSError as problem:
            raise BlobStoreError(f"could not take the file over: {problem.strerror or problem}") from problem
        kind = kind_of(held)
        buffer = io.BytesIO()
        passed = survey(pieces(held), buffer.write, count_lines=kind == "text")
        info = BlobInfo(
            id=blob_id or new_blob_id(), kind=kind, size=passed.size,
            entries=passed.lines.count if passed.lines else entries_of(held),
            sha256=passed.sha256, created=time.time(), action=action, run=run,
            frame=getattr(held, "frame", None), source=getattr(held, "source", None) is not None,
        )  # fmt: skip
        return self._keep(info, buffer.getvalue(), passed.lines)

    def describe(self, blob_id: str) -> BlobInfo:
        return self._get(blob_id).info

    def list(self) -> tuple[BlobInfo, ...]:
        with self._lock:
            return tuple(self._blobs[blob_id].info for blob_id in sorted(self._blobs))

    def open(self, blob_id: str) -> MemorySource:
        return MemorySource(self._get(blob_id).data)

    def index(self, blob_id: str) -> Index:
        kept = self._get(blob_id)
        if kept.index is None:
            kept.index = build_index(MemorySource(kept.data), kept.info)
        return kept.index

    def path(self, blob_id: str) -> Path | None:
        self._get(blob_id)
        return None

    def sidecar(self, blob_id: str) -> Path | None:
        return self.path(blob_id)

    def gc(
        self,
        max_age: float | timedelta | None = None,
        max_bytes: int | None = None,
        keep: Collection[str] = (),
    ) -> GcResult:
        kept = frozenset(keep)
        goners = collectable(
            self.list(), max_age=max_age, max_bytes=max_bytes,
            keep=lambda info: info.run in kept or info.id in kept,
        )  # fmt: skip
        with self._lock:
            for info in goners:
                self._blobs.pop(info.id, None)
        return GcResult.of(goners)

    def _get(self, blob_id: str) -> _Kept:
        wanted = canonical_id(blob_id)
        with self._lock:
            kept = self._blobs.get(wanted)
        if kept is None:
            raise BlobNotFoundError(wanted)
        return kept

    def _keep(self, info: BlobInfo, data: bytes, index: Index | None = None) -> BlobInfo:
        info = replace(info, id=canonical_id(info.id))
        with self._lock:
            self._blobs[info.id] = _Kept(info, data, index)
        return info


async def as_local_store(store: BlobStore, blob_id: str) -> tuple[LocalBlobStore, str]:
    """Return the store and the blob's canonical id; in place of a remote store, one in memory with a copy of the blob.

    Raises:
        InvalidBlobIdError, BlobNotFoundError, BlobStoreError.
    """
    wanted = canonical_id(blob_id)
    if is_local(store):
        return store, wanted
    copy = MemoryBlobStore()
    copy.put(await store.load(wanted), blob_id=wanted)
    return copy, wanted
