"""Paths inside the workspace, and nothing else.

Invariant: whatever is opened, replaced or removed here lies under the root when the system call happens,
not only when the path was checked. A path is first resolved (symlinks and all) and judged; then the file is
reached from the root's descriptor one component at a time, following no link, so a link swapped in between
is refused, not followed. A hard link cannot be told from the file itself: reading one reads that file;
writing replaces the name and leaves the other one as it was.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from reyn_jupyter.config import user_path
from reyn_jupyter.guard.protected import protects
from reyn_jupyter.guard.state import state_base

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONGEST_NAME = 255  # bytes of one component
LONGEST_PATH = 4096  # bytes
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceError(Exception):
    """A path that may not be used, or a file that could not be; the message says why and what to do."""


class Workspace:
    """The folder that file actions may touch.

    Args:
        root: an existing folder; links in the path to it are resolved once, here.
        off_limits: folders that are nobody's business even when they lie inside the root, as they do when
        the root
            is the home folder; in place of those with the user's configuration, trust and approvals.

    Example:
        >>> workspace = Workspace(".")                       # doctest: +SKIP
        >>> workspace.relative(workspace.resolve("data/orders.csv"))   # doctest: +SKIP
        'data/orders.csv'
    """

    def __init__(self, root: str | Path, *, off_limits: Sequence[Path] | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        folders = (state_base(), user_path().parent) if off_limits is None else off_limits
        self._off_limits = tuple(Path(os.path.realpath(folder)) for folder in folders)
        if not self.root.is_dir():
            raise WorkspaceError(f"the workspace {self.root} is no folder; create it or name another root")

    def resolve(self, path: str | Path, *, for_write: bool = False) -> Path:
        """The absolute path that `path` leads to, links followed, proved to lie inside the root.

        Args:
            path: relative to the root, or absolute inside it. It need not exist.
            for_write: the file is to be written, replaced or removed: folders and ``.git`` are refused as
            well.

        Raises:
            WorkspaceError: outside the root, protected, ``..``, no file or folder (a device, pipe or
            socket), or a
                name that no file can have.
        """
        text = _checked(path)
        given = Path(text)
        if given.is_absolute():
            lexical = Path(os.path.normpath(text))
            parts = lexical.relative_to(self.root).parts if lexical.is_relative_to(self.root) else ()
        else:
            lexical, parts = self.root / given, given.parts
        real = Path(os.path.realpath(lexical))
        if not real.is_relative_to(self.root):
            raise WorkspaceError(
                f"{_shown(text)} leads outside the workspace; only files inside it can be used"
            )
        if any(real.is_relative_to(folder) for folder in self._off_limits):
            raise WorkspaceError(f"{_shown(text)} is protected: permissions and trust are kept there")
        for candidate in (parts, real.relative_to(self.root).parts):
            reason = protects(candidate, for_write=for_write)
            if reason is not None:
                raise WorkspaceError(f"{_shown(text)} is protected: {reason}")
        self._check_kind(real, text, for_write)
        return real

    def relative(self, path: str | Path) -> str:
        """A path inside the root as text with ``/``, relative to the root ("." for the root itself)."""
        absolute = self.root / path
        try:
            return absolute.relative_to(self.root).as_posix()
        except ValueError:
            raise WorkspaceError(f"{_shown(str(path))} is not inside the workspace {self.root}") from None

    def open_read(self, path: str | Path) -> BinaryIO:
        """Open a regular file for reading. Raises WorkspaceError."""
        real = self.resolve(path)
        name = self.relative(real)
        with _plainly(name), self._parent(real) as folder:
            # Without O_NONBLOCK, opening a pipe that was swapped in would wait for a writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(real.name, flags, dir_fd=folder)
            try:
                _need_regular(os.fstat(descriptor), name)
                return os.fdopen(descriptor, "rb")
            except BaseException:
                os.close(descriptor)
                raise

    def read_bytes(self, path: str | Path, limit: int | None = None) -> bytes:
        """The content of a regular file, at most `limit` bytes of it. Raises WorkspaceError."""
        with self.open_read(path) as file:
            return file.read() if limit is None else file.read(limit)

    def mode(self, path: str | Path) -> int | None:
        """The permission bits of a file, or None when it does not exist."""
        try:
            return stat.S_IMODE(os.lstat(self.resolve(path)).st_mode)
        except FileNotFoundError:
            return None

    def write_atomic(self, path: str | Path, data: bytes, *, mode: int | None = None) -> Path:
        """Put `data` in place of a file in one step; readers see the old content or the new, never a part.

        Missing folders are made. The permission bits of a file that is there are kept, or set to `mode`.

        Returns:
            The absolute path written.

        Raises:
            WorkspaceError: the path may not be written, or the system refused (disk full, read-only).
        """
        real = self.resolve(path, for_write=True)
        name = self.relative(real)
        with _plainly(name), self._parent(real, make=True) as folder:
            kept = _mode_to_keep(real.name, folder, name)
            temporary = f".{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    wanted = kept if mode is None else mode & 0o777
                    if wanted is not None:
                        os.fchmod(file.fileno(), wanted)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, real.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)
        return real

    def delete(self, path: str | Path) -> Path:
        """Remove a regular file. Raises WorkspaceError."""
        real = self.resolve(path, for_write=True)
        name = self.relative(real)
        with _plainly(name), self._parent(real) as folder:
            _need_regular(os.stat(real.name, dir_fd=folder, follow_symlinks=False), name)
            os.unlink(real.name, dir_fd=folder)
        return real

    def walk(self, base: str | Path = ".", skip: Callable[[str], bool] | None = None) -> Iterator[Path]:
        """The regular files under a folder, in a stable order, without protected ones, ``.git`` and links.

        Args:
            base: the folder to begin with; a file is its own only one.
            skip: asked with the name of each folder below; True leaves it out.
        """
        folder = self.resolve(base)
        if folder.is_file():
            yield folder
            return
        yield from self._walk(folder, skip)

    def _walk(self, folder: Path, skip: Callable[[str], bool] | None) -> Iterator[Path]:
        pending = [folder]
        while pending:
            current = pending.pop()
            if current.is_symlink():  # swapped since it was listed
                continue
            try:
                with os.scandir(current) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError:
                continue
            folders: list[Path] = []
            # The folders above were judged on the way down; only this one's name matters for what is in it.
            above = (current.name,) if current != self.root else ()
            for entry in entries:
                path = current / entry.name
                if entry.name == ".git" or protects((*above, entry.name)) or path in self._off_limits:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if skip is None or not skip(entry.name):
                        folders.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path
            pending.extend(reversed(folders))

    def _check_kind(self, real: Path, text: str, for_write: bool) -> None:
        try:
            mode = os.lstat(real).st_mode
        except FileNotFoundError:
            return
        except OSError as error:
            raise WorkspaceError(f"{_shown(text)} cannot be used: {error.strerror}") from None
        if stat.S_ISDIR(mode):
            if for_write:
                raise WorkspaceError(f"{_shown(text)} is a folder; name a file in it")
        elif not stat.S_ISREG(mode):
            raise WorkspaceError(
                f"{_shown(text)} is no regular file (a device, pipe, socket or circular link)"
            )

    @contextmanager
    def _parent(self, real: Path, *, make: bool = False) -> Iterator[int]:
        """The open folder that holds `real`, reached from the root without following any link."""
        descriptor = os.open(self.root, _FOLDER)
        try:
            for part in real.relative_to(self.root).parts[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                deeper = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor
        finally:
            os.close(descriptor)


def _checked(path: str | Path) -> str:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise WorkspaceError("a path must be text")
    if not text.strip():
        raise WorkspaceError('the path is empty; "." is the workspace itself')
    if "\0" in text:
        raise WorkspaceError("the path holds a NUL character, which no file name can")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise WorkspaceError(f"{_shown(text)} holds characters that no file name can") from None
    parts = text.replace("\\", "/").split("/")
    if len(encoded) >= LONGEST_PATH or any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise WorkspaceError(
            f"{_shown(text)} is too long: {LONGEST_NAME} bytes a name, {LONGEST_PATH} in all"
        )
    if ".." in parts:
        raise WorkspaceError(f"{_shown(text)} climbs with '..'; name the file from the workspace root")
    if parts[0].startswith("~"):
        raise WorkspaceError(f"{_shown(text)}: '~' is not expanded; name the file from the workspace root")
    return text


def _shown(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:119] + "…")


def _need_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{_shown(name)} is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{_shown(name)} is no regular file (a device, pipe or socket)")


def _mode_to_keep(name: str, folder: int, shown: str) -> int | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _need_regular(status, shown)
    if not status.st_mode & 0o222:
        raise WorkspaceError(f"{_shown(shown)} is read-only; make it writable first (chmod u+w)")
    return stat.S_IMODE(status.st_mode) & 0o777


@contextmanager
def _plainly(name: str) -> Iterator[None]:
    """The operating system's refusals, in words."""
    try:
        yield
    except FileNotFoundError:
        raise WorkspaceError(f"{_shown(name)} does not exist") from None
    except NotADirectoryError:
        raise WorkspaceError(
            f"{_shown(name)}: a part of this path is a file or a link, not a folder"
        ) from None
    except OSError as error:
        raise WorkspaceError(f"{_shown(name)} cannot be used: {error.strerror or error}") from None
