"""Locks between processes, held through a file that lies open.

Invariant: a lock is the operating system's, so it ends with the process, however that ends; a kill leaves no lock
behind. Two descriptors of one file exclude each other within a process too.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import threading
import time
from functools import cache
from pathlib import Path

_BETWEEN = 0.005  # seconds between two tries
_held_here: dict[tuple[int, int], int] = {}  # device and inode → descriptor, where the system has no locks
_guard = threading.Lock()


def open_lock_file(path: Path, *, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open a file to lock: readable by its owner alone, never through a link. Returns the descriptor.

    Raises:
        OSError: it cannot be opened.
    """
    for name in ("O_CLOEXEC", "O_NOFOLLOW"):
        flags |= getattr(os, name, 0)
    return os.open(path, flags, 0o600)


def try_lock(descriptor: int, *, required: bool = True) -> bool:
    """Lock the file of a descriptor if nobody holds it. Returns whether it is held now.

    Args:
        descriptor: of an open file, or of an open folder where that can be locked.
        required: raise where the file system has no locks; False goes on there as if the lock were held.

    Raises:
        OSError: the file system has no locks.
    """
    if not _system_has_locks():
        return _lock_here(descriptor)
    from filelock import lock_descriptor

    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError:
        if required:
            raise
        return True


def wait_for_lock(descriptor: int, seconds: float = math.inf, *, required: bool = True) -> bool:
    """Wait until the lock is held, at most for some seconds. Returns whether it is.

    Args:
        descriptor, required: see `try_lock`.

    Raises:
        OSError: the file system has no locks.
    """
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor, required=required):
        if time.monotonic() > deadline:
            return False
        time.sleep(_BETWEEN)
    return True


def release(descriptor: int) -> None:
    """Close the descriptor, which gives its lock back."""
    with _guard:
        for key, holder in list(_held_here.items()):
            if holder == descriptor:
                del _held_here[key]
    os.close(descriptor)


@cache
def _system_has_locks() -> bool:
    """Return False for a Python without them (WebAssembly): what runs there is one process."""
    return sys.platform == "win32" or importlib.util.find_spec("fcntl") is not None


def _lock_here(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    with _guard:
        return _held_here.setdefault((status.st_dev, status.st_ino), descriptor) == descriptor
