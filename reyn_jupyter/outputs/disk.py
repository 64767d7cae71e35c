"""Writing, surveying and recognising the files of a blob store.

Invariant: a file that is written here is new, of mode 0600, and whole when the call returns; a file that is read here
is a plain one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from reyn_jupyter.outputs.content import FileContent
from reyn_jupyter.outputs.info import BlobKind
from reyn_jupyter.outputs.lines import LineIndex
from reyn_jupyter.outputs.sources import FileSource, blocks
from reyn_jupyter.outputs.structure import JsonIndex, NotJsonError, index_json
from reyn_jupyter.outputs.survey import Index, Surveyed, survey

_COMPANION_LIMIT = 64 << 20


def write_file(path: Path, parts: Iterable[bytes], count_lines: bool, *, durable: bool = True) -> Surveyed:
    """Write a new file of mode 0600; a durable one has reached the disk when this returns."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
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


def pass_over(origin: Path, copy: Path | None) -> Surveyed:
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
    """What a handed-over file holds: JSON when it says so and is complete, else text."""
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
    """Whether the path is a plain file, not a link to one."""
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
