"""Lines of a text file, read as a stream: windows of lines for reading, matching lines for searching.

Invariant: the windows ``1..n``, ``n+1..2n``, … of a file, put together, are the file: a line ends with
``\\n`` and nothing else, so carriage returns, form feeds and a missing final newline come out as they are.
Memory stays at a block or two, whatever the file's size and however long its lines.
"""

from __future__ import annotations

import codecs
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from reyn_jupyter.backends.files.masked_files import redacted_blocks
from reyn_jupyter.outputs.content import FileContent, Text

if TYPE_CHECKING:
    from pathlib import Path

    from reyn_jupyter.support.secrets import Redactor

BLOCK = 1 << 20  # bytes read at once
IN_MEMORY = 4 << 20  # bytes of text that are handed over as a value; more goes to a file
_LARGEST = 64 << 20  # bytes held in memory where there is no folder for a file
_STALE = 24 * 3600.0  # seconds after which a file that no one fetched is removed

# Called between two blocks of long work; it raises when nobody waits for the answer any more.
Check = Callable[[], None]


class NotTextError(ValueError):
    """The bytes are no UTF-8. `kind` says what they look like."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class FileTooLargeError(ValueError):
    """More text than memory should hold, and no folder to put it in."""


class PastTheEndError(ValueError):
    """A window begins after the last line. `lines` says how many there are."""

    def __init__(self, lines: int) -> None:
        super().__init__(f"{lines} lines")
        self.lines = lines


def window(file: BinaryIO, offset: int, limit: int | None, check: Check) -> Iterator[tuple[int, bytes]]:
    """The bytes of `limit` lines from line `offset` (1-based), block by block, each with its place in the file.

    Args:
        file: open at its start.
        offset: the first line, from 1.
        limit: how many lines; None for all to the end.
        check: asked between blocks.
    """
    skip, take = offset - 1, limit
    end = 0
    while (take is None or take > 0) and (block := file.read(BLOCK)):
        check()
        place, end = end, end + len(block)
        if skip:
            found = block.count(b"\n")
            if found < skip:
                skip -= found
                continue
            start = _after(block, skip)
            block, place, skip = block[start:], place + start, 0
        if take is not None:
            found = block.count(b"\n")
            if found >= take:
                block = block[: _after(block, take)]
            take -= found
        if block:
            yield place, block


def _after(block: bytes, count: int) -> int:
    """The position after the `count`-th newline."""
    position = 0
    for _ in range(count):
        position = block.index(b"\n", position) + 1
    return position


def count_lines(file: BinaryIO, check: Check) -> int:
    """Return how many lines; a final newline makes no extra one."""
    file.seek(0)
    lines, last = 0, b""
    while block := file.read(BLOCK):
        check()
        lines += block.count(b"\n")
        last = block[-1:]
    return lines + (last not in (b"", b"\n"))


def read_lines(
    file: BinaryIO,
    offset: int,
    limit: int | None,
    spool: Path | None,
    check: Check,
    redactor: Redactor | None = None,
) -> Text | FileContent:
    """The exact text of a window of lines.

    Args:
        file: open for reading bytes, at its start.
        offset: the first line, from 1.
        limit: how many lines, or None for all the rest.
        spool: a folder for text over 4 MiB, which is handed over as a file; None (or a link) to hold it
            in memory.
        check: asked between blocks.
        redactor: replaces the secrets of the file by their marks, line by line; None gives its exact text.

    Returns:
        The text, or a new file in `spool` that the caller must hand on or remove.

    Raises:
        NotTextError, PastTheEndError, TooLargeError, OSError; and whatever `check` raises.
    """
    places = _as_utf8(window(file, offset, limit, check))
    if redactor is not None:
        places = redacted_blocks(file, places, redactor)
    blocks = (block for _, block in places)
    kept = bytearray()
    for block in blocks:
        kept += block
        if len(kept) > (_LARGEST if spool is None else IN_MEMORY):
            if spool is not None and os.path.realpath(spool) != os.fspath(spool):
                spool = None  # a link leads elsewhere, where no file of ours belongs
                continue
            if b"\0" in kept[:8192]:
                # A small text with a NUL is given as it is (an edit needs it); a large one is no text.
                raise NotTextError("binary (it holds NUL bytes)")
            if spool is None:
                raise FileTooLargeError
            return _spooled(spool, bytes(kept), blocks)
    if not kept and offset > 1 and (limit is None or limit > 0):
        lines = count_lines(file, check)
        if offset > lines:
            raise PastTheEndError(lines)
    return Text(kept.decode("utf-8"))


def _as_utf8(blocks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The same blocks; raises NotTextError as soon as they are no UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    first = True
    start = b""
    try:
        for place, block in blocks:
            if first:
                start, first = block[:8192], False
            decoder.decode(block)
            yield place, block
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise NotTextError(kind_of(start, error)) from error


_MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or an Office document)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"(\xb5/\xfd", "zstd-compressed data"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x7fELF", "an executable"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)


def kind_of(start: bytes, error: UnicodeDecodeError | None = None) -> str:
    """Return what bytes that are no UTF-8 look like, in a few words."""
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return kind
    if b"\0" in start:
        return "binary (it holds NUL bytes)"
    if error is None:
        return "no UTF-8 text"
    byte = error.object[error.start]
    return f"no UTF-8 text (it has the byte 0x{byte:02x}; perhaps Latin-1 or Windows-1252)"


def _spooled(folder: Path, start: bytes, rest: Iterator[bytes]) -> FileContent:
    with _new_file(folder) as (path, file):
        file.write(start)
        for block in rest:
            file.write(block)
    return FileContent(path, "text")


@contextmanager
def _new_file(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new private file, removed again when writing it fails."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in folder.glob("?" * 32 + ".txt"):
        with suppress(OSError):
            if time.time() - old.lstat().st_mtime > _STALE:
                old.unlink()
    path = folder / f"{secrets.token_hex(16)}.txt"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        try:
            yield path, file
        except BaseException:
            path.unlink(missing_ok=True)
            raise
