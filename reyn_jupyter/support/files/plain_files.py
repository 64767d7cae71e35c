"""Folders and files of a workspace's state: reached without following a link, and read within bounds.

A cloned folder may bring a state folder of its own making. Invariants: what is opened here lies below the root when
the system call happens, with no link on the way, and a folder held open is looked for again at each use; it is a
regular file, so that no pipe makes a reader wait; no more of it is read than a bound; and JSON from it is nested and
numbered as what this package writes. On a system without descriptors of folders each part of the path is looked at
first.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeGuard

DEEPEST = 300  # levels of JSON; a redacted value has 200
LATEST = 253_402_300_799.0  # seconds since the epoch: the end of the last year that a date can have

# 0 where the system has no such flag: what it would refuse is then looked at by name.
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
CLOSE_ON_EXEC: int = getattr(os, "O_CLOEXEC", 0)
FOLDER: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | NO_FOLLOW | CLOSE_ON_EXEC


_STATE = ".reyn"


class PlainFolder:
    """A folder below a root, reached one part after the other, through no link, and held open from its first use on.

    The state folder of a workspace is its owner's alone, however it came there: a clone has the modes that the umask
    gave. So it is made 0700 when it is reached, and one of another user is refused.

    Args:
        root: a folder that is trusted; links in the path to it are followed. Where another folder takes its place,
            nothing is opened.
        parts: the names that lead from it to the folder, which need not exist.
    """

    def __init__(self, root: Path, *parts: str) -> None:
        self.root = root
        self.parts = parts
        self.path = root.joinpath(*parts)
        self._held: _HeldFolder | None = None
        self._root: tuple[int, int] | None = None
        with suppress(OSError):
            self._root = _identity(root.stat())
        self._way = [os.fspath(root.joinpath(*parts[: length + 1])) for length in range(len(parts))]

    def check(self) -> None:
        """Raise OSError where a part of the path is a link or no folder; a folder that is not there is none."""
        with suppress(FileNotFoundError), self._opened():
            pass

    def make(self) -> None:
        """Make the folder, mode 0700, with those above it. Raises OSError."""
        if not self.parts:
            self.root.mkdir(0o700, parents=True, exist_ok=True)
        with self._opened(make=True):
            pass

    def entries(self) -> tuple[list[str], list[str]]:
        """Return the names of its regular files, and of links, pipes and folders in it; none where it is not there."""
        names: tuple[list[str], list[str]] = [], []
        with (
            suppress(OSError),
            self._opened() as folder,
            os.scandir(self.path if folder is None else folder) as found,
        ):
            for entry in found:
                names[not entry.is_file(follow_symlinks=False)].append(entry.name)
        return sorted(names[0]), sorted(names[1])

    def is_regular(self, name: str) -> bool:
        """Return whether there is a regular file of this name, and no link to one."""
        try:
            with self._opened() as folder:
                return stat.S_ISREG(self._status(name, folder).st_mode)
        except OSError:
            return False

    def holds(self, name: str) -> bool:
        """Return whether there is anything of this name, a link too."""
        try:
            with self._opened() as folder:
                self._status(name, folder)
        except OSError:
            return False
        return True

    def open(self, name: str, flags: int, mode: int = 0o600, *, make: bool = False) -> int:
        """Open a regular file and return its descriptor.

        Args:
            flags: as for `os.open`.
            make: make the folder first.

        Raises:
            OSError: it is a link or no regular file, or a part of the path is.
        """
        with self._opened(make=make) as folder:
            flags |= NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC
            if folder is not None:
                return _regular(os.open(name, flags, mode, dir_fd=folder), name)
            with suppress(FileNotFoundError):
                _need_no_link(self._status(name, None), name)
            return _regular(os.open(self.path / name, flags, mode), name)

    def read(self, name: str, limit: int) -> bytes:
        """Return the bytes of a file.

        Raises:
            OSError: there is none, it is a link or no regular file, or it has more than `limit` bytes.
        """
        return _read(self.open(name, os.O_RDONLY), limit, name)

    def first_line(self, name: str, limit: int) -> bytes:
        """Return the first line of a file, `limit` bytes of it at most. Raises OSError as `read` does."""
        with os.fdopen(self.open(name, os.O_RDONLY), "rb") as file:
            return file.readline(limit)

    def remove(self, name: str) -> None:
        """Remove what has this name, of a link the link itself. Raises OSError."""
        with self._opened() as folder:
            os.unlink(self.path / name if folder is None else name, dir_fd=folder)

    def replace(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Put a file, mode 0600, in place of one of this name, or of a link; the folder is made. Raises OSError.

        Args:
            durable: whether its content is on the disk when this returns.
        """
        temporary = f".{name}.{secrets.token_hex(8)}.part"
        try:
            descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, make=True)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            with self._opened() as folder:
                if folder is None:
                    (self.path / temporary).replace(self.path / name)
                else:
                    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                self.remove(temporary)
            raise

    def _status(self, name: str, folder: int | None) -> os.stat_result:
        if folder is None:
            return os.lstat(self.path / name)
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int | None]:
        """Yield the descriptor of the folder, None where the system has none for folders. Raises OSError."""
        if not (NO_FOLLOW and os.open in os.supports_dir_fd):
            self._look(make)
            yield None
            return
        held = self._held
        if held is None or not held.is_at(self._way):
            held = self._held = self._reached(make)
        yield held.descriptor  # `held` keeps it open, also where another thread reaches the folder anew

    def _reached(self, make: bool) -> _HeldFolder:
        """Open the folder, one part after the other. Raises OSError."""
        descriptor = os.open(self.root, os.O_RDONLY | CLOSE_ON_EXEC)
        identities: list[tuple[int, int]] = []
        try:
            if self._root not in (None, _identity(os.fstat(descriptor))):
                raise OSError(errno.ESTALE, f"{self.root} is another folder than before")
            for part in self.parts:
                try:
                    deeper = os.open(part, FOLDER, dir_fd=descriptor)
                except FileNotFoundError:
                    if not make:
                        raise
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=descriptor)
                    deeper = os.open(part, FOLDER, dir_fd=descriptor)
                except OSError as error:
                    if error.errno in (errno.ENOTDIR, errno.ELOOP):
                        raise _link_on_the_way(part) from None
                    raise
                os.close(descriptor)
                descriptor = deeper
                if part == _STATE and not identities:
                    _make_private(descriptor)
                identities.append(_identity(os.fstat(descriptor)))
        except BaseException:
            os.close(descriptor)
            raise
        return _HeldFolder(descriptor, identities)

    def _look(self, make: bool) -> None:
        path = self.root
        for part in self.parts:
            path = path / part
            if make:
                with suppress(FileExistsError):
                    path.mkdir(0o700)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise _link_on_the_way(part)


def _make_private(folder: int) -> None:
    """Take the group's and others' rights off a folder. Raises OSError: it belongs to another user."""
    status, user = os.fstat(folder), os.geteuid()
    if user not in (0, status.st_uid):
        raise PermissionError(
            errno.EPERM,
            f"{_STATE} belongs to another user, who could read and change what is kept in it; remove it",
        )
    if status.st_mode & 0o077:
        with suppress(OSError):  # a file system without modes
            os.fchmod(folder, stat.S_IMODE(status.st_mode) & 0o700)


class _HeldFolder:
    """An open folder, closed once nobody uses it.

    Args:
        descriptor: its own.
        identities: of the folders on the way to it, and its own.
    """

    def __init__(self, descriptor: int, identities: list[tuple[int, int]]) -> None:
        self.descriptor = descriptor
        self._identities = identities

    def is_at(self, way: list[str]) -> bool:
        """Return whether these paths still lead to it, through folders that are no links."""
        try:
            return [_identity(os.lstat(path)) for path in way] == self._identities
        except OSError:
            return False

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self.descriptor)


def read_regular(path: Path, limit: int) -> bytes:
    """Return the bytes of a file that somebody named; a link to it is followed.

    Raises:
        OSError: there is none, it is no regular file, or it has more than `limit` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT | CLOSE_ON_EXEC)
    return _read(_regular(descriptor, path.name), limit, path.name)


def parse_json(raw: bytes | str, *, nan: bool = False) -> Any:
    """Return the value of JSON of the kind that this package writes.

    Args:
        raw: the JSON.
        nan: take NaN and Infinity too, which is no JSON and what Python writes, as in notebooks.

    Raises:
        ValueError: it is no JSON, is nested deeper than `DEEPEST`, or has a number that is no finite one.

    >>> parse_json("[1e999]")
    Traceback (most recent call last):
    ValueError: the number 1e999 is too large
    """
    try:
        value = json.loads(raw, parse_float=_finite, parse_constant=None if nan else _refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    brackets = raw.count("[") + raw.count("{") if isinstance(raw, str) else raw.count(b"[") + raw.count(b"{")
    # Only what has as many brackets can be nested as deeply.
    if brackets > DEEPEST and _depth(value) > DEEPEST:
        raise ValueError("it is nested too deeply")
    return value


def is_moment(value: object) -> TypeGuard[float]:
    """Return whether a value is a number of seconds since the epoch that a date can be made of."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LATEST


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        depth += 1
    return depth


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _regular(descriptor: int, name: str) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{name} is no regular file")
    return descriptor


def _read(descriptor: int, limit: int, name: str) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size > limit:
            raise OSError(errno.EFBIG, f"{name} is larger than {limit:,} bytes")
        return file.read(limit)


def _need_no_link(status: os.stat_result, name: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, f"{name} is a link")


def _link_on_the_way(part: str) -> OSError:
    return OSError(errno.ENOTDIR, f"{part} is a link or no folder, so nothing is kept there")
