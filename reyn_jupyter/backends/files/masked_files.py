"""Files with their secrets covered, before anything of them is cut, searched or queried.

Invariants: a secret is recognised in the whole file, wherever a window, a block or a line ends (as far as
`byte_source.AROUND` reaches); line numbers stay true, and with `masked_file` and `masked_copy` every offset too. Memory
stays at a few blocks. A file without a secret costs one linear pass over the part that is looked at, and its bytes
stay as they are.
"""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO, cast

from cachetools import LRUCache

from reyn_jupyter.outputs.byte_source import AROUND, MaskedSource

if TYPE_CHECKING:
    from reyn_jupyter.support.secrets import Redactor, SecretSpan

_BLOCK = 1 << 20
_MOST_COPIED = 4 << 30  # bytes of a copy: a compressed file may be a thousand times as large as it looks
_SETTLED = 2 * 10**9  # nanoseconds after which a change of a file cannot have left its times as they were
# A memo, not state: the versions of files that held no secret.
_clean: LRUCache[tuple[object, ...], None] = LRUCache(4096)
_clean_lock = threading.Lock()


class _OpenFile:
    """The bytes of an open file by offset, without moving its position. Closing it is its owner's business."""

    def __init__(self, file: BinaryIO) -> None:
        self._descriptor = file.fileno()
        self.size = os.fstat(self._descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._descriptor, max(0, length), offset)

    def close(self) -> None:
        """Nothing to give back."""


class _MaskedBytes(io.RawIOBase):
    def __init__(self, source: MaskedSource) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._source.read(self._position, len(buffer))
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)


def masked_file(file: BinaryIO, redactor: Redactor) -> BinaryIO:
    """Return an open file from its start as a stream with every secret covered by as many bytes."""
    source = MaskedSource(_OpenFile(file), redactor.masked)
    return cast("BinaryIO", io.BufferedReader(_MaskedBytes(source), _BLOCK))


def redacted_blocks(
    file: BinaryIO, blocks: Iterator[tuple[int, bytes]], redactor: Redactor
) -> Iterator[tuple[int, bytes]]:
    """Yield parts of a file with each secret replaced by its mark, once a line, so that line numbers stay true.

    Args:
        file: the open file that the parts are of; its position is not moved.
        blocks: (offset in the file, bytes), each behind the one before.
        redactor: knows the secrets.
    """
    source = _OpenFile(file)
    for offset, block in blocks:
        begin = max(0, offset - AROUND)
        head = source.read(begin, offset - begin)
        raw = head + block + source.read(offset + len(block), AROUND)
        spans = redactor.byte_spans(raw)
        yield offset, _marked(raw, spans, len(head), len(head) + len(block)) if spans else block


def _marked(raw: bytes, spans: tuple[SecretSpan, ...], start: int, end: int) -> bytes:
    pieces: list[bytes] = []
    position = start
    for span in spans:
        first, last = max(span.start, start), min(span.end, end)
        if first >= last:
            continue
        pieces.append(raw[position:first])
        # A part that begins inside a line whose beginning was another part's has its mark already.
        fresh = span.start >= start or first == 0 or raw[first - 1 : first] == b"\n"
        for at, line in enumerate(raw[first:last].split(b"\n")):
            ending = b"\r" if line.endswith(b"\r") else b""
            marked = line.strip() and (at > 0 or fresh)
            pieces.append(
                (b"\n" if at else b"") + (f"[redacted:{span.name}]".encode() if marked else b"") + ending
            )
        position = last
    return b"".join([*pieces, raw[position:end]])


def masked_copy(
    file: BinaryIO, redactor: Redactor, check: Callable[[], None], *, packed: bool = False
) -> BinaryIO | None:
    """Return a copy of an open file with every secret covered by as many bytes; None where it holds none.

    Args:
        file: the open file, of which the whole is read.
        redactor: knows the secrets.
        check: asked between blocks.
        packed: the file is gzip-compressed; the copy is not.

    Returns:
        A nameless file that ends with its last descriptor, or None.

    Raises:
        OSError: the file is no sound gzip file, the copy finds no room, or it would have more than 4 GiB.
    """
    version = (*_version(file, redactor), packed)
    with _clean_lock:
        if version in _clean:
            return None
    with ExitStack() as stack:
        source = _opened(file, packed, stack)
        if not any(changed for _, changed in _masked_blocks(source, redactor, check)):
            _remember_clean(file, version)
            return None
    with ExitStack() as stack:
        source = _opened(file, packed, stack)
        copy = cast("BinaryIO", stack.enter_context(tempfile.TemporaryFile()))
        for block, _ in _masked_blocks(source, redactor, check):
            if copy.tell() > _MOST_COPIED:
                raise OSError("it holds a secret, and is too large for a copy without it")
            copy.write(block)
        copy.flush()
        copy.seek(0)
        source.close()
        stack.pop_all()
        return copy


def _remember_clean(file: BinaryIO, version: tuple[object, ...]) -> None:
    """Keep that this version of a file holds no secret, unless it may still change without a trace in its times."""
    status = os.fstat(file.fileno())
    if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED:
        with _clean_lock:
            _clean[version] = None


def _opened(file: BinaryIO, packed: bool, stack: ExitStack) -> BinaryIO:
    again = stack.enter_context(os.fdopen(os.dup(file.fileno()), "rb"))
    again.seek(0)
    return cast("BinaryIO", stack.enter_context(gzip.open(again))) if packed else again


def _version(file: BinaryIO, redactor: Redactor) -> tuple[object, ...]:
    status = os.fstat(file.fileno())
    times = status.st_mtime_ns, status.st_ctime_ns
    return status.st_dev, status.st_ino, status.st_size, times, redactor.version


def _masked_blocks(
    source: BinaryIO, redactor: Redactor, check: Callable[[], None]
) -> Iterator[tuple[bytes, bool]]:
    """Yield a stream's blocks with secrets covered, and whether one was."""
    before, current = b"", source.read(_BLOCK)
    while current:
        check()
        after = source.read(_BLOCK)
        raw = before + current + after[:AROUND]
        covered = _masked(raw, redactor)
        block = covered[len(before) : len(before) + len(current)]
        yield block, block != current
        before, current = current[-AROUND:], after


def _masked(raw: bytes, redactor: Redactor) -> bytes:
    if not redactor.may_hold(raw):
        return raw
    text = raw.decode("utf-8", "surrogateescape")
    covered = redactor.masked(text)
    return raw if covered is text else covered.encode("utf-8", "surrogateescape")


def masked_texts(texts: list[str], redactor: Redactor) -> list[str]:
    """Return texts with marks in the place of their secrets, those over several texts too (a key block in lines).

    The same list when there are none.
    """
    joined = "\n".join(texts)
    spans = redactor.spans(joined)
    if not spans:
        return texts
    result: list[str] = []
    position = at = 0
    for text in texts:
        end = position + len(text)
        pieces: list[str] = []
        kept = position
        while at < len(spans) and spans[at].start < end:
            first, last = max(spans[at].start, position), min(spans[at].end, end)
            if first < last:
                pieces += (joined[kept:first], f"[redacted:{spans[at].name}]")
                kept = last
            if spans[at].end > end:
                break
            at += 1
        result.append("".join([*pieces, joined[kept:end]]) if pieces else text)
        position = end + 1
    return result
