"""Read a file that somebody else made: a regular one alone, and no more of it than a bound, however it is packed."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_WAIT

if TYPE_CHECKING:
    from gzip import GzipFile


class BoundExceededError(ValueError):
    """There is more to read than the bound allows."""


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes; a link to it is followed, and a pipe makes nobody wait.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT | CLOSE_ON_EXEC | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is no regular file")
    return os.fdopen(descriptor, "rb")


def read_at_most(stream: IO[bytes] | GzipFile, most: int) -> bytes:
    """Return all bytes of a stream, a decompressing one for instance, and close it.

    Raises:
        BoundExceededError: there are more than `most`.

    Example:
        >>> import io
        >>> read_at_most(io.BytesIO(b"abc"), 3)
        b'abc'
    """
    with stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise BoundExceededError(f"more than {most:,} bytes")
    return content
