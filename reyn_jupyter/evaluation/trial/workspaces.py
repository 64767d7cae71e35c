"""Throwaway workspaces: one read-only copy of a template that trials read, and a private one for each that writes.

Invariants: no trial ever writes where another reads; a private copy is made from the template itself, never from what
lies on disk; everything lies under one temporary folder, which goes with its owner, and where that one was killed, with
the next one that starts.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

from reyn_jupyter.evaluation.trial.trial import FileFact
from reyn_jupyter.models.base import canonical
from reyn_jupyter.support.locks import open_lock_file, release, try_lock, wait_for_lock
from reyn_jupyter.support.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT
from reyn_jupyter.support.user_errors import UserError

LARGEST_SHARED = 200_000  # bytes of a template's file that no read action needs to spool
LARGEST_TEXT = 64 << 10  # bytes of a file's text that a trial keeps
NAME = "workspace"  # of every root: a system prompt names the folder, and must not differ between trials
_LOCK = ".lock"
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of this user's own is made in it
_SPARE = 512 << 20  # bytes that must be free there
_STATE = ".reyn"
_KEPT = "memory"  # of the state folder


class TemplateError(UserError, ValueError):
    """A template that cannot be laid out as files; names the path and what is wrong."""


class Scratch:
    """The temporary folder of one owner; folders of owners that died are swept when one is made.

    Args:
        base: where it lies; the system's folder for temporary files when None.
    """

    def __init__(self, base: Path | None = None) -> None:
        self.base = _private_base(base)
        sweep(self.base)
        self.path, self._lock = _claim(self.base)
        self._finish = weakref.finalize(self, _dispose, self.path, self._lock, os.getpid())

    def folder(self) -> Path:
        """Make a new empty folder."""
        made = self.path / secrets.token_hex(8)
        made.mkdir()
        return made

    def close(self) -> None:
        """Remove everything; closing again does nothing."""
        self._finish()


def sweep(base: Path) -> int:
    """Remove the folders whose owners are gone; returns how many."""
    count = 0
    for lock in base.glob(f"*{_LOCK}"):
        with suppress(OSError):
            descriptor = open_lock_file(lock, flags=os.O_RDWR)
            try:
                if try_lock(descriptor):
                    remove(lock.with_suffix(""))
                    lock.unlink()
                    count += 1
            finally:
                release(descriptor)
    return count


def _private_base(base: Path | None) -> Path:
    folder = base or _temporary() / f"reyn-trials-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise OSError(f"{folder} is not this user's own folder; set TMPDIR to one that is")
    return folder


def _temporary() -> Path:
    """Return the folder for temporary files: memory, where there is some to spare and nobody named another place."""
    if not any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        with suppress(OSError):
            if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _SPARE:
                return _MEMORY
    return Path(tempfile.gettempdir())


def _claim(base: Path) -> tuple[Path, int]:
    """Make a folder, and hold the lock that says that its owner lives."""
    while True:
        path = base / secrets.token_hex(8)
        lock = path.with_name(path.name + _LOCK)
        descriptor = open_lock_file(lock, flags=os.O_RDWR | os.O_CREAT | os.O_EXCL)
        wait_for_lock(descriptor)
        # Somebody may have swept the lock between the two calls, before anybody held it.
        if lock.exists() and lock.stat().st_ino == os.fstat(descriptor).st_ino:
            path.mkdir(mode=0o700)
            return path, descriptor
        release(descriptor)


def _dispose(path: Path, lock: int, owner: int) -> None:
    if os.getpid() != owner:  # a forked child does not own it
        return
    remove(path)
    with suppress(OSError):
        path.with_name(path.name + _LOCK).unlink()
    with suppress(OSError):
        release(lock)


def remove(path: Path) -> None:
    """Remove a folder with all that is in it, read-only folders among it; one that is gone is no error."""

    def unlock(function: object, failed: str, _: object) -> None:
        place = Path(failed)
        with suppress(OSError):
            place.parent.chmod(0o700)
            place.chmod(0o700)
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink()

    shutil.rmtree(path, onerror=unlock)


class Template:
    """The files that trials of a scenario begin with.

    Args:
        files: path (relative, with ``/``) → text.

    Raises:
        TemplateError: a path that leaves the folder, or that another one needs as a folder.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = {
            _check_path(path): text.encode("utf-8", "surrogatepass") for path, text in files.items()
        }
        for path in self.files:
            for folder in PurePosixPath(path).parents:
                if str(folder) in self.files:
                    raise TemplateError(
                        f"{str(folder)!r} is a file and the folder of {path!r}; rename one of them"
                    )
        above = {str(parent) for path in self.files for parent in PurePosixPath(path).parents}
        self._folders = sorted(above - {"."})  # a folder stands before those in it
        self.digest = hashlib.sha256(canonical(dict(files))).hexdigest()
        self._told: dict[str, FileFact] = {}
        # A session keeps a state folder that is there out of git, which is a write.
        self.shareable = all(
            len(data) <= LARGEST_SHARED and not path.startswith(f"{_STATE}/")
            for path, data in self.files.items()
        )

    def lay_out(self, root: Path, *, read_only: bool = False) -> Path:
        """Write the files under `root`, which is made, its own folder being there."""
        place = os.fspath(root)
        root.mkdir()
        for folder in self._folders:
            os.mkdir(f"{place}/{folder}")  # noqa: PTH102 - plain text, since a thousand trials a minute come here
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
        for path, data in self.files.items():
            descriptor = os.open(f"{place}/{path}", flags, 0o444 if read_only else 0o644)
            with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
                file.write(data)
        if read_only:
            for folder in (*self._folders, "."):
                os.chmod(f"{place}/{folder}", 0o500)  # noqa: PTH101
        return root

    def facts(self, root: Path | None, expected: Iterable[str]) -> dict[str, FileFact]:
        """Return what became of the files: those that changed, and those that something is expected of.

        Args:
            root: the private copy; None where the trial wrote nothing.
            expected: the paths that are told of in any case.
        """
        now, changed = self.files, set[str]()
        if root is not None:
            now = _files(root)
            changed = {path for path in {*now, *self.files} if now.get(path) != self.files.get(path)}
        wanted = {_check_path(path) for path in expected}
        return {
            path: _fact(now.get(path), True) if path in changed else self._unchanged(path)
            for path in sorted({*wanted, *changed})
        }

    def _unchanged(self, path: str) -> FileFact:
        """Return what is told of a file that a trial left alone: the same in every trial."""
        if path not in self._told:
            self._told[path] = _fact(self.files.get(path), False)
        return self._told[path]


@lru_cache(4096)
def _check_path(path: str) -> str:
    """Return the path in its plain form. Raises TemplateError."""
    pure = PurePosixPath(path)
    if not path or "\0" in path or "\\" in path or pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise TemplateError(f"{path!r} is no path inside a workspace; use one like data/orders.csv")
    return str(pure)


def _files(root: Path) -> dict[str, bytes]:
    """Return every file below, links left alone; of the state folder the memories alone."""
    found: dict[str, bytes] = {}
    pending = [(os.fspath(root), "")]
    while pending:
        folder, above = pending.pop()
        inside_state = above == f"{_STATE}/"
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                place = above + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not inside_state or entry.name == _KEPT:
                        pending.append((entry.path, f"{place}/"))
                elif not inside_state and entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        found[place] = _read_bytes(entry.path)
    return found


def _read_bytes(path: str) -> bytes:
    """Return a file that is no link; without O_NONBLOCK a pipe in its place would wait for a writer."""
    flags = os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC
    with open(os.open(path, flags), "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        return file.read()


def _fact(data: bytes | None, changed: bool) -> FileFact:
    if data is None:
        return FileFact(exists=False, changed=changed)
    text = None
    if len(data) <= LARGEST_TEXT:
        with suppress(UnicodeDecodeError):
            text = data.decode()
    return FileFact(text=text, sha256=hashlib.sha256(data).hexdigest(), changed=changed)
