"""Temporary folders that go with their owner, and where that one was killed, with the next one that starts."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from reyn_jupyter.support.files.locks import open_lock_file, release, try_lock, wait_for_lock
from reyn_jupyter.support.files.tree_removal import remove_tree

_LOCK = ".lock"
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of this user's own is made in it
_SPARE = 512 << 20  # bytes that must be free there


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
    """Return the folder of all owners of this user: the one that is there, or a new one.

    Its name cannot be guessed, so another user of a shared temporary folder can neither take it nor prepare it.
    """
    if base is not None:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        return base
    above, prefix = _temporary(), f"reyn-trials-{os.getuid()}-"
    with suppress(OSError):
        for folder in sorted(above.glob(f"{prefix}*")):
            if _is_private(folder):
                return folder
    return Path(tempfile.mkdtemp(prefix=prefix, dir=above))


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


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

    if os.unlink in os.supports_dir_fd:
        with suppress(OSError):
            remove_tree(path)
        return

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
