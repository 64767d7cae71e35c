"""The place of one file, held by the descriptor of its folder from the moment when it is judged.

Invariants: what is read and what is changed lies in the folder that was judged, whatever becomes of the path to it;
no link is followed on the way to the folder, nor at its end. A change is refused unless the path still leads to that
very folder. So it lands where the rules were asked about, and nowhere else: who moves the folder after that check moves
the change along with it, as could be done a moment later too.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, FOLDER, NO_FOLLOW, NO_WAIT
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class WorkspaceError(Exception):
    """A path that may not be used, or a file that could not be; the message says why and what to do."""


class PlaceMovedError(WorkspaceError):
    """The path of a held place does not lead to its folder any more."""


def shown(text: str) -> str:
    """Return a path for a message: quoted and bounded."""
    return repr(shorten(text, 120))


@contextmanager
def plainly(name: str) -> Iterator[None]:
    """Raise the operating system's refusals in the block as WorkspaceError, in words."""
    try:
        yield
    except FileNotFoundError:
        raise WorkspaceError(f"{shown(name)} does not exist") from None
    except NotADirectoryError:
        raise WorkspaceError(
            f"{shown(name)}: a part of this path is a file or a link, not a folder"
        ) from None
    except OSError as error:
        raise WorkspaceError(f"{shown(name)} cannot be used: {error.strerror or error}") from None


def open_folder(root: str | int, folders: Sequence[str]) -> int:
    """Return the descriptor of a folder below a root, reached one part after the other and through no link.

    Args:
        root: its path, or its descriptor, which stays open.

    Raises:
        OSError: a part is not there, no folder, or a link.
    """
    descriptor = os.dup(root) if isinstance(root, int) else os.open(root, FOLDER)
    try:
        for folder in folders:
            descriptor = _deeper(descriptor, folder)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _deeper(descriptor: int, folder: str) -> int:
    """Open a folder in an open one, which is closed then, and return its descriptor. Raises OSError."""
    deeper = os.open(folder, FOLDER, dir_fd=descriptor)
    os.close(descriptor)
    return deeper


def place_below(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Return the place of a folder or regular file below a root, which is reached through no link.

    Args:
        root: A folder, with no link in the path to it.
        path: A relative path from the root, without "..".

    Raises:
        WorkspaceError: There is no such place, or the path climbs out, crosses a link, or ends at one.
    """
    place = Path(path)
    name = os.fspath(path)
    if place.is_absolute() or ".." in place.parts:
        raise WorkspaceError(f"{shown(name)} leads out of the workspace")
    if not place.parts:
        return Path(root)
    with plainly(name):
        folder = open_folder(os.fspath(root), place.parts[:-1])
        try:
            mode = os.stat(place.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        finally:
            os.close(folder)
    if stat.S_ISLNK(mode):
        raise WorkspaceError(f"{shown(name)} is a link; name the place that it leads to")
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise WorkspaceError(f"{shown(name)} is neither a folder nor a regular file")
    return Path(root, place)


def open_regular(name: str, folder: int, path: str) -> BinaryIO:
    """Open a regular file in an open folder for reading.

    Args:
        name: in the folder; a link is not followed.
        path: what messages call it.

    Raises:
        OSError, WorkspaceError: there is none, or it is no regular file.
    """
    # Without O_NONBLOCK, opening a pipe that was swapped in would wait for a writer.
    descriptor = os.open(name, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC, dir_fd=folder)
    try:
        need_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def need_regular(status: os.stat_result, name: str) -> None:
    """Check that a file is a regular one. Raises WorkspaceError."""
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{shown(name)} is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{shown(name)} is no regular file (a link, device, pipe or socket)")


class HeldFolder:
    """A folder below a root, held by its descriptor from the moment when it is judged until `close`.

    Args:
        root: a folder, no link in the path to it.
        place: of the folder, from the root with ``/`` (".": the root), with no link in it and judged.

    Attributes:
        descriptor: of the folder; -1 once it is closed.

    Raises:
        WorkspaceError: there is no such folder, or a part of the path is a link.

    Example:
        >>> folder = HeldFolder("/work", "data")     # doctest: +SKIP
        >>> folder.check()                           # doctest: +SKIP
    """

    def __init__(self, root: str, place: str) -> None:
        self.root, self.place = root, place
        self.descriptor = -1
        with plainly(place):
            self.descriptor = self._open()

    def _open(self) -> int:
        return open_folder(self.root, [] if self.place == "." else self.place.split("/"))

    def check(self) -> None:
        """Check that the path still leads to this folder. Raises PlaceMovedError."""
        try:
            now = self._open()
        except OSError:
            raise moved(self.place) from None
        try:
            if not os.path.samestat(os.fstat(self.descriptor), os.fstat(now)):
                raise moved(self.place)
        finally:
            os.close(now)

    def close(self) -> None:
        """Close the descriptor; closing again does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def moved(place: str) -> PlaceMovedError:
    """Return the error for a place whose path leads elsewhere than when it was judged."""
    return PlaceMovedError(
        f"{shown(place)} is not where it was when this was asked for: a folder on its path was moved, "
        "removed or replaced"
    )


class HeldPlace:
    """A place where a file is or will be, held until `close`. Threads may share it.

    Args:
        root: a folder, no link in the path to it.
        path: of the file, from the root with ``/``, with no link in it and judged.
        durable: whether what was written is on the disk when a call returns.

    Raises:
        WorkspaceError: a part of the path is a link or a file.

    Example:
        >>> place = HeldPlace("/work", "data/orders.csv")     # doctest: +SKIP
        >>> place.read()                                      # doctest: +SKIP
        b'id,amount'
    """

    def __init__(self, root: str, path: str, *, durable: bool = True) -> None:
        self.root = root
        self.path = path
        self.durable = durable
        *folders, self._name = path.split("/")
        self._lock = threading.Lock()
        self._descriptor = -1
        with plainly(path):
            descriptor, held = os.open(root, FOLDER), 0
            try:
                with suppress(FileNotFoundError):
                    for folder in folders:
                        descriptor = _deeper(descriptor, folder)
                        held += 1
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
        self._way, self._missing = folders[:held], folders[held:]

    def close(self) -> None:
        """Let the folder go; what is under way ends, and anything else is refused."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def open(self) -> BinaryIO | None:
        """Open the file for reading; None where there is none. Raises WorkspaceError for what is no regular file."""
        with plainly(self.path), suppress(FileNotFoundError), self._folder() as folder:
            return open_regular(self._name, folder, self.path)
        return None

    def read(self, limit: int | None = None) -> bytes | None:
        """Return what the file holds, at most `limit` bytes of it; None where there is none. Raises WorkspaceError."""
        file = self.open()
        if file is None:
            return None
        with file, plainly(self.path):
            return file.read() if limit is None else file.read(limit)

    def status(self) -> os.stat_result | None:
        """Return the status of what is there, a link not followed; None where nothing is. Raises WorkspaceError."""
        with plainly(self.path), suppress(FileNotFoundError), self._folder() as folder:
            return os.stat(self._name, dir_fd=folder, follow_symlinks=False)
        return None

    def check(self) -> None:
        """Check that the path leads to the folder that is held. Raises PlaceMovedError."""
        same = False
        with suppress(OSError), self._held() as held:
            now = open_folder(self.root, self._way)
            try:
                same = os.path.samestat(os.fstat(held), os.fstat(now))
            finally:
                os.close(now)
        if not same:
            raise moved(self.path)

    def replace(self, data: bytes, *, mode: int | None = None) -> None:
        """Put `data` in the place of the file in one step; readers see the old content or the new, never a part.

        Missing folders are made. The permission bits of a file that is there are kept, or set to `mode`.

        Raises:
            PlaceMovedError: see `check`; also where a link took the place of a folder that was to be made.
            WorkspaceError: what is there is no file or read-only, or the system refused (disk full).
        """
        self.check()
        with plainly(self.path), self._folder(make=True) as folder:
            kept = self._mode_to_keep(folder)
            temporary = f".{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    wanted = kept if mode is None else mode & 0o777
                    if wanted is not None:
                        os.fchmod(file.fileno(), wanted)
                    file.flush()
                    if self.durable:
                        os.fsync(file.fileno())
                os.replace(temporary, self._name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            if self.durable:
                os.fsync(folder)

    def remove(self) -> None:
        """Remove the file. Raises PlaceMovedError, see `check`, and WorkspaceError for what is no regular file."""
        self.check()
        with plainly(self.path), self._folder() as folder:
            need_regular(os.stat(self._name, dir_fd=folder, follow_symlinks=False), self.path)
            os.unlink(self._name, dir_fd=folder)

    def _mode_to_keep(self, folder: int) -> int | None:
        """Return the permission bits of the file that is to be replaced; None for a new one. Raises WorkspaceError."""
        try:
            status = os.stat(self._name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        need_regular(status, self.path)
        if not status.st_mode & 0o222:
            raise WorkspaceError(f"{shown(self.path)} is read-only; make it writable first (chmod u+w)")
        return stat.S_IMODE(status.st_mode) & 0o777

    @contextmanager
    def _held(self) -> Iterator[int]:
        """Yield the folder under a descriptor of the block's own, which `close` does not take away."""
        with self._lock:
            if self._descriptor < 0:
                raise WorkspaceError(f"{shown(self.path)} is not held any more: the call is over")
            own = os.dup(self._descriptor)
        try:
            yield own
        finally:
            os.close(own)

    @contextmanager
    def _folder(self, *, make: bool = False) -> Iterator[int]:
        """Yield the open folder of the file. Raises OSError where it is not there, and PlaceMovedError for a link."""
        with self._held() as held:
            descriptor = os.dup(held)
            try:
                for folder in self._missing:
                    if make:
                        with suppress(FileExistsError):
                            os.mkdir(folder, dir_fd=descriptor)
                    descriptor = self._made(descriptor, folder)
                yield descriptor
            finally:
                os.close(descriptor)

    def _made(self, descriptor: int, folder: str) -> int:
        try:
            return _deeper(descriptor, folder)
        except FileNotFoundError:
            raise
        except OSError:
            raise PlaceMovedError(
                f"{shown(self.path)} is not where it was when this was asked for: {shown(folder)} is no folder now"
            ) from None
