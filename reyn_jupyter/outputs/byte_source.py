"""Bytes that can be read in parts: the ground that indexes, `inspect` and the person's views stand on.

Invariant: a file is opened only when it is a plain file, never through a symbolic link, so that a folder which came
with a cloned workspace cannot hand out what lies elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT

BLOCK = 1 << 20
AROUND = 1 << 16  # bytes before and after a part that a mask looks at too; no secret is longer


class ByteSource(Protocol):
    """Something of a known size that is read by offset. Closing it twice is harmless."""

    @property
    def size(self) -> int: ...

    def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`; fewer only at the end."""
        ...

    def close(self) -> None: ...


class MemorySource:
    """Bytes that are in memory already."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def close(self) -> None:
        """Nothing to give back."""


class FileSource:
    """A plain file, read by offset without a position of its own, so that threads may share it.

    Raises:
        OSError: the file is not there, is a link or is no plain file.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(f"{path.name} is no plain file")
        self.size = status.st_size

    def read(self, offset: int, length: int) -> bytes:
        parts = []
        length = min(length, self.size - offset)
        while length > 0 and (part := os.pread(self._descriptor, length, offset)):
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class MaskedSource:
    """A source in which a mask has covered what may not be shown, wherever a part of it begins or ends.

    Args:
        inner: the source itself.
        mask: from a text to one of as many bytes of UTF-8, so that every offset stays true.
    """

    def __init__(self, inner: ByteSource, mask: Callable[[str], str]) -> None:
        self._inner = inner
        self._mask = mask
        self._start = 0
        self._known = b""
        self.size = inner.size

    def read(self, offset: int, length: int) -> bytes:
        end = min(offset + max(length, 0), self.size)
        if not (self._start <= offset and end <= self._start + len(self._known)):
            self._look(offset, max(length, AROUND))
        return self._known[offset - self._start : end - self._start]

    def _look(self, offset: int, length: int) -> None:
        begin = max(0, offset - AROUND)
        raw = self._inner.read(begin, offset - begin + length + AROUND)
        text = raw.decode("utf-8", "surrogateescape")
        covered = self._mask(text)
        # A text without a secret comes back as it was; what was cut off at either end has its bytes again.
        known = raw if covered is text else covered.encode("utf-8", "surrogateescape")
        self._start, self._known = offset, known[offset - begin : offset - begin + length]

    def close(self) -> None:
        self._inner.close()


def blocks(source: ByteSource, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """The bytes from `start` to `stop`, in blocks of 1 MiB."""
    end = source.size if stop is None else min(stop, source.size)
    while start < end and (block := source.read(start, min(BLOCK, end - start))):
        yield block
        start += len(block)
