"""Blobs as files in one flat folder.

Invariant: a blob's content appears under its name all at once and last. Whoever is killed, at any moment, leaves
whole blobs and, at worst, temporary or companion files that nobody refers to; `gc` takes those away. Nothing is
shared between writers, so several kernels use one folder without a lock. A file that is written is new, of mode 0600,
and whole when the call returns; names are made of parsed ids alone, and only plain files are opened, never links.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from reyn_jupyter.outputs.blobs.blob_writer import (
    INDEX_FROM,
    ContentSurvey,
    Index,
    dump_index,
    entries_of,
    kind_of,
    load_index,
    pieces,
    survey,
)
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError, canonical_id, new_blob_id
from reyn_jupyter.outputs.blobs.manifest import SUFFIXES, BlobInfo, BlobKind, GcResult, collectable
from reyn_jupyter.outputs.blobs.random_access import build_index, content_of
from reyn_jupyter.outputs.byte_source import FileSource, blocks
from reyn_jupyter.outputs.content import (
    BlobId,
    BlobNotFoundError,
    BlobStoreError,
    Content,
    FileContent,
    Structured,
    Text,
)
from reyn_jupyter.outputs.frames.parquet import PARQUET_FROM, write_parquet
from reyn_jupyter.outputs.json_index import JsonIndex, NotJsonError, index_json
from reyn_jupyter.outputs.line_index import LineIndex
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, PlainFolder

STALE_SECONDS = 3600.0  # a temporary file of this age has no writer any more
MANIFEST, INDEX, PARQUET = ".meta.json", ".idx", ".parquet"
_CONTENT = (".txt", ".json", ".bin")
_COMPANIONS = (MANIFEST, INDEX, PARQUET)


class FsBlobStore:
    """Blobs under one folder, which is made at the first store.

    Layout: ``{id}.txt`` text, ``{id}.json`` structures, ``{id}.bin`` raw bytes; beside them ``{id}.meta.json`` (the
    manifest), ``{id}.idx`` (offsets, from 1 MiB on) and ``{id}.parquet`` (frames over 50 MB). Everything is mode 0600.

    Args:
        folder: where the blobs lie.
        inside: a folder above that is trusted, as a workspace's root is: with a link on the way down from there nothing
            is read, written or removed. None trusts the folder itself.

    >>> import asyncio, tempfile
    >>> from reyn_jupyter.outputs.content import Text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FsBlobStore(folder)
    ...     asyncio.run(store.load(asyncio.run(store.store(Text("hello")))))
    Text(text='hello')
    """

    def __init__(self, folder: str | Path, *, inside: Path | None = None) -> None:
        self.folder = Path(folder)
        parts = self.folder.relative_to(inside).parts if inside is not None else ()
        self._plain = PlainFolder(inside or self.folder, *parts)

    async def store(self, content: Content, *, action: str | None = None, run: str | None = None) -> BlobId:
        return (await asyncio.to_thread(self.put, content, action=action, run=run)).id

    async def load(self, blob_id: BlobId) -> Content:
        return await asyncio.to_thread(self.get, blob_id)

    async def exists(self, blob_id: BlobId) -> bool:
        return self._find(canonical_id(blob_id)) is not None

    async def store_bytes(self, data: bytes, *, action: str | None = None, run: str | None = None) -> BlobId:
        return (await asyncio.to_thread(self.put_bytes, data, action=action, run=run)).id

    async def load_bytes(self, blob_id: BlobId) -> bytes:
        return await asyncio.to_thread(self.get_bytes, blob_id)

    def put(self, content: Content, *, action: str | None = None, run: str | None = None) -> BlobInfo:
        started = BlobInfo(new_blob_id(), "text", 0, created=time.time(), action=action, run=run)
        with self._writing(started.id):
            if isinstance(content, FileContent):
                return self._take_over(content, started)
            return self._write(content, replace(started, kind=kind_of(content)))

    def put_bytes(self, data: bytes, *, action: str | None = None, run: str | None = None) -> BlobInfo:
        started = BlobInfo(new_blob_id(), "bytes", 0, created=time.time(), action=action, run=run)
        with self._writing(started.id):
            temporary = self._temporary(started.id)
            passed = write_file(temporary, [data], count_lines=False)
            return self._commit(temporary, replace(started, size=passed.size, sha256=passed.sha256), None)

    def get(self, blob_id: str) -> Content:
        """`load`, as an ordinary call."""
        info = self.describe(blob_id)
        return content_of(self.get_bytes(info.id), info)

    def get_bytes(self, blob_id: str) -> bytes:
        source = self.open(blob_id)
        try:
            return source.read(0, source.size)
        except OSError as problem:
            raise BlobStoreError(f"could not read blob {blob_id}: {problem.strerror or problem}") from problem
        finally:
            source.close()

    def describe(self, blob_id: str) -> BlobInfo:
        wanted = canonical_id(blob_id)
        path = self._find(wanted)
        if path is None:
            raise BlobNotFoundError(wanted)
        return self._describe(wanted, path)

    def list(self) -> tuple[BlobInfo, ...]:
        found = []
        for path, blob_id, suffix in self._entries():
            if suffix in _CONTENT and is_plain(path):
                with suppress(OSError, BlobStoreError):
                    found.append(self._describe(blob_id, path))
        return tuple(sorted(found, key=lambda info: info.id))

    def open(self, blob_id: str) -> FileSource:
        path = self.path(blob_id)
        try:
            return FileSource(path)
        except OSError as problem:
            raise BlobStoreError(f"could not open blob {blob_id}: {problem.strerror or problem}") from problem

    def index(self, blob_id: str) -> Index:
        info = self.describe(blob_id)
        saved = self.folder / f"{info.id}{INDEX}"
        if info.size >= INDEX_FROM:
            with suppress(OSError, ValueError):
                return load_index(read_small(saved), info.size)
        source = self.open(info.id)
        try:
            built = build_index(source, info)
        finally:
            source.close()
        if info.size >= INDEX_FROM:
            with suppress(OSError):
                temporary = self.folder / f".{info.id}.{os.getpid()}-{time.monotonic_ns()}.idx.tmp"
                write_file(temporary, [dump_index(built, info.size)], count_lines=False, durable=False)
                temporary.replace(saved)
        return built

    def path(self, blob_id: str) -> Path:
        wanted = canonical_id(blob_id)
        path = self._find(wanted)
        if path is None:
            raise BlobNotFoundError(wanted)
        return path

    def sidecar(self, blob_id: str) -> Path | None:
        path = self.folder / f"{canonical_id(blob_id)}{PARQUET}"
        return path if self._is_reachable() and is_plain(path) else None

    def gc(
        self,
        max_age: float | timedelta | None = None,
        max_bytes: int | None = None,
        keep: Collection[str] = (),
    ) -> GcResult:
        """See `LocalBlobStore.gc`. Without a readable manifest nobody knows a blob's run, so `keep` keeps it too."""
        kept = frozenset(keep)
        goners = collectable(
            self.list(), max_age=max_age, max_bytes=max_bytes,
            keep=lambda info: info.run in kept or info.id in kept or bool(kept and not info.sha256),
        )  # fmt: skip
        for info in goners:
            for suffix in (*_CONTENT, *_COMPANIONS):
                with suppress(OSError):
                    (self.folder / f"{info.id}{suffix}").unlink()
        self._sweep()
        return GcResult.of(goners)

    def _sweep(self) -> None:
        """Take away what writers that were killed left behind."""
        before = time.time() - STALE_SECONDS
        whole = {blob_id for _, blob_id, suffix in self._entries() if suffix in _CONTENT}
        leftovers = [
            path
            for path, blob_id, suffix in self._entries()
            if suffix in _COMPANIONS and blob_id not in whole
        ]
        with suppress(OSError):
            self._plain.check()
            leftovers += [
                path for path in self.folder.iterdir() if path.name[:1] == "." and path.suffix == ".tmp"
            ]
        for path in leftovers:
            with suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.unlink()

    def _entries(self) -> Iterator[tuple[Path, str, str]]:
        """Every file that belongs to a blob: its path, the blob's id, and the suffix."""
        try:
            self._plain.check()
            paths = sorted(self.folder.iterdir())
        except OSError:
            return
        for path in paths:
            stem, dot, rest = path.name.partition(".")
            suffix = dot + rest
            with suppress(InvalidBlobIdError):
                if suffix in (*_CONTENT, *_COMPANIONS) and canonical_id(stem) == stem:
                    yield path, stem, suffix

    def _is_reachable(self) -> bool:
        """Return whether no link lies on the way to the folder."""
        try:
            self._plain.check()
        except OSError:
            return False
        return True

    def _find(self, blob_id: str) -> Path | None:
        if not self._is_reachable():
            return None
        candidates = (self.folder / f"{blob_id}{suffix}" for suffix in _CONTENT)
        return next((path for path in candidates if is_plain(path)), None)

    def _describe(self, blob_id: str, path: Path) -> BlobInfo:
        size = path.lstat().st_size
        try:
            info = BlobInfo.from_manifest(read_small(self.folder / f"{blob_id}{MANIFEST}"), blob_id)
        except (OSError, ValueError):
            return BlobInfo(blob_id, kind_by_sight(path), size, created=(UUID(blob_id).int >> 80) / 1000)
        return info if info.size == size else replace(info, size=size, entries=None, frame=None)

    @contextmanager
    def _writing(self, blob_id: str) -> Iterator[None]:
        """Make the folder; on any failure take back every file of this blob."""
        try:
            self._plain.make()
        except OSError as problem:
            raise self._failed(problem) from problem
        try:
            yield
        except BaseException as problem:
            names = [f"{blob_id}{suffix}" for suffix in (*_COMPANIONS, *_CONTENT)]
            for path in (self._temporary(blob_id), *(self.folder / name for name in names)):
                with suppress(OSError):
                    path.unlink()
            if isinstance(problem, OSError):
                raise self._failed(problem) from problem
            raise

    def _failed(self, problem: OSError) -> BlobStoreError:
        reason = problem.strerror or str(problem)
        return BlobStoreError(f"could not store a blob in {self.folder.name}/: {reason}")

    def _temporary(self, blob_id: str) -> Path:
        return self.folder / f".{blob_id}.{os.getpid()}.tmp"

    def _write(self, content: Text | Structured, info: BlobInfo) -> BlobInfo:
        temporary = self._temporary(info.id)
        passed = write_file(temporary, pieces(content), count_lines=info.kind == "text")
        structured = content if isinstance(content, Structured) else None
        info = replace(
            info, size=passed.size, sha256=passed.sha256,
            entries=passed.lines.count if passed.lines else entries_of(content),
            frame=structured.frame if structured else None,
            source=structured is not None and structured.source is not None,
        )  # fmt: skip
        index: Index | None = passed.lines
        if info.is_json and info.size >= INDEX_FROM:
            index = json_index(temporary)
        if structured and info.size > PARQUET_FROM and hasattr(structured.value, "parquet_frame"):
            write_parquet(structured.value.parquet_frame(), self.folder / f"{info.id}{PARQUET}")
        return self._commit(temporary, info, index)

    def _take_over(self, content: FileContent, info: BlobInfo) -> BlobInfo:
        """Move a file in by its name; over a border of file systems by copying it."""
        status = content.path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise BlobStoreError(f"could not take {content.path.name} over: it is no plain file")
        origin = content.path
        if status.st_dev == self.folder.stat().st_dev and status.st_nlink == 1:
            passed = pass_over(origin, None)
            ready = origin
        else:
            ready = self._temporary(info.id)
            passed = pass_over(origin, ready)
        kind, index = kind_and_index(content, ready, passed.lines)
        entries = index.count if index else None
        source = kind.startswith("json")
        info = replace(
            info, kind=kind, size=passed.size, sha256=passed.sha256, entries=entries, source=source
        )
        info = self._commit(ready, info, index)
        if ready is not origin:
            with suppress(OSError):
                origin.unlink()
        return info

    def _commit(self, ready: Path, info: BlobInfo, index: Index | None) -> BlobInfo:
        """Put the companions beside, then give the content its name: from here on the blob exists."""
        if index is not None and info.size >= INDEX_FROM:
            write_file(
                self.folder / f"{info.id}{INDEX}", [dump_index(index, info.size)], False, durable=False
            )
        write_file(self.folder / f"{info.id}{MANIFEST}", [info.manifest()], False, durable=False)
        ready.replace(self.folder / f"{info.id}{SUFFIXES.get(info.kind, '.json')}")
        sync_folder(self.folder)
        return info


_COMPANION_LIMIT = 64 << 20


def write_file(
    path: Path, parts: Iterable[bytes], count_lines: bool, *, durable: bool = True
) -> ContentSurvey:
    """Write a new file of mode 0600; a durable one has reached the disk when this returns."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as file:
        passed = survey(parts, _writer(file.write), count_lines=count_lines)
        if durable:
            os.fsync(file.fileno())
    return passed


def _writer(write: Callable[[Any], int | None]) -> Callable[[bytes], None]:
    """Write all of a piece: a nearly full disk takes a part of it first."""

    def write_all(part: bytes) -> None:
        rest = memoryview(part)
        while rest:
            rest = rest[write(rest) or 0 :]

    return write_all


def pass_over(origin: Path, copy: Path | None) -> ContentSurvey:
    """Survey a file where it lies, or while copying it."""
    source = FileSource(origin)
    try:
        if copy is not None:
            return write_file(copy, blocks(source), count_lines=True)
        origin.chmod(0o600)
        passed = survey(blocks(source), len, count_lines=True)
        descriptor = os.open(origin, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return passed
    finally:
        source.close()


def kind_and_index(
    content: FileContent, path: Path, lines: LineIndex | None
) -> tuple[BlobKind, Index | None]:
    """Return what a handed-over file holds: JSON when it says so and is complete, else text."""
    if content.kind == "json":
        with suppress(NotJsonError):
            index = json_index(path)
            if index.kind != "json_value":
                return index.kind, index
    return "text", lines


def json_index(path: Path) -> JsonIndex:
    """The index of a JSON file. Raises NotJsonError."""
    source = FileSource(path)
    try:
        return index_json(source)
    finally:
        source.close()


def kind_by_sight(path: Path) -> BlobKind:
    """The kind of a blob whose manifest is lost."""
    if path.suffix != ".json":
        return "bytes" if path.suffix == ".bin" else "text"
    source = FileSource(path)
    try:
        opening = source.read(0, 4096).lstrip()[:1]
    finally:
        source.close()
    return "json_array" if opening == b"[" else "json_object" if opening == b"{" else "json_value"


def read_small(path: Path) -> bytes:
    """A companion file, whole."""
    source = FileSource(path)
    try:
        return source.read(0, min(source.size, _COMPANION_LIMIT))
    finally:
        source.close()


def is_plain(path: Path) -> bool:
    """Return whether the path is a plain file, not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def sync_folder(folder: Path) -> None:
    """Make the new name durable too, where the system lets a folder be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
