"""The files of a utility's folder: which there are, what is in them, and whether any of it moved.

Invariants: a walk costs a bounded number of looks and bytes, follows no link and waits for no pipe. What is hashed is
what was read. A folder whose signature is equal to one of before has the very files of before; what was written so
lately that a file system's clock could not tell a second change from it has no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT

MOST_FILES = 2_000
MOST_BYTES = 32 << 20
MOST_LEVELS = 20  # of folders within a folder
_RACY = 2.0  # seconds: the coarsest clock of a file system that is in use (FAT)

Signature = tuple[tuple[str, int, int, int, int, int], ...]


class UtilityFolderError(Exception):
    """A folder that can be no utility's: the message is a sentence's end, after the folder's name."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message, self.path = message, path


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder as they were read.

    Attributes:
        hashes: SHA-256 of each file by its path, with ``+x`` behind that of a program; of a link within the folder what
            it leads to, ``-> target``.
        manifest: the bytes of ``tool.yaml``; None where there is none.
    """

    hashes: Mapping[str, str]
    manifest: bytes | None

    @property
    def digest(self) -> str:
        """SHA-256 of `trust_content`, as hexadecimal digits."""
        return hashlib.sha256(trust_content(self.hashes)).hexdigest()


def trust_content(hashes: Mapping[str, str]) -> bytes:
    """Return the text that a person trusts: a line for each file, its hash and its path, in their order.

    >>> trust_content({"run.sh": "12ab +x", "tool.yaml": "34cd"}).decode().splitlines()
    ['12ab +x  "run.sh"', '34cd  "tool.yaml"']
    """
    return "".join(f"{hashes[path]}  {json.dumps(path)}\n" for path in sorted(hashes)).encode("ascii")


def signature_of(folder: str) -> Signature | None:
    """Return what tells whether anything in a folder moved, without reading it; None where that cannot be told.

    Raises:
        UtilityFolderError: more files than a utility may have, or what is neither a file nor a folder.
    """
    found = []
    newest = 0.0
    for path, status in _walk(folder):
        newest = max(newest, status.st_mtime, status.st_ctime)
        found.append(
            (path, status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        )
    return tuple(found) if newest < time.time() - _RACY else None


def read_folder(
    folder: Path, manifest: str, contents: MutableMapping[str, bytes] | None = None
) -> FolderFiles:
    """Read and hash the files of a folder.

    Args:
        folder: of a utility.
        manifest: the name of the file whose bytes are kept.
        contents: where the bytes of every file are put, by path, those that were hashed.

    Raises:
        UtilityFolderError: more files or bytes than a utility may have, a link out of the folder, a socket, a file that
            cannot be read.
    """
    hashes: dict[str, str] = {}
    content: bytes | None = None
    left = MOST_BYTES
    for path, status in _walk(os.fspath(folder)):
        if stat.S_ISDIR(status.st_mode):
            continue
        if stat.S_ISLNK(status.st_mode):
            hashes[path] = f"-> {json.dumps(_target(folder, path))}"
            continue
        data = _read(folder / path, path, left)
        left -= len(data)
        if contents is not None:
            contents[path] = data
        hashes[path] = hashlib.sha256(data).hexdigest() + (" +x" if status.st_mode & 0o111 else "")
        if path == manifest:
            content = data
    return FolderFiles(hashes, content)


def _walk(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and status of everything in a folder, in the order of names."""
    pending = [("", 0)]
    seen = 0
    while pending:
        inner, level = pending.pop()
        try:
            with os.scandir(f"{folder}/{inner}" if inner else folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_FILES:
                        raise UtilityFolderError(f"holds more than {MOST_FILES:,} files and folders")
                    path = f"{inner}/{entry.name}" if inner else entry.name
                    status = entry.stat(follow_symlinks=False)
                    mode = status.st_mode
                    if stat.S_ISDIR(mode):
                        if level == MOST_LEVELS:
                            raise UtilityFolderError(f"has folders deeper than {MOST_LEVELS} levels", path)
                        pending.append((path, level + 1))
                    elif not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                        raise UtilityFolderError("is a pipe, a socket or a device", path)
                    yield path, status
        except OSError as error:
            raise UtilityFolderError(f"cannot be read: {error.strerror}", inner) from None


def _read(place: Path, path: str, left: int) -> bytes:
    try:
        descriptor = os.open(place, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UtilityFolderError("is no regular file", path)
            data = file.read(left + 1)
    except OSError as error:
        raise UtilityFolderError(f"cannot be read: {error.strerror}", path) from None
    if len(data) > left:
        raise UtilityFolderError(f"holds more than {MOST_BYTES >> 20} MiB")
    return data


def _target(folder: Path, path: str) -> str:
    """Return what a link leads to, as it is written. Raises UtilityFolderError where that is outside of the folder."""
    try:
        written = (folder / path).readlink()
        real = (folder / path).resolve()
    except (OSError, RuntimeError) as error:
        raise UtilityFolderError(f"is a link that leads nowhere ({type(error).__name__})", path) from None
    if written.is_absolute() or not real.is_relative_to(folder.resolve()):
        raise UtilityFolderError("is a link that leads out of the folder", path)
    return written.as_posix()
