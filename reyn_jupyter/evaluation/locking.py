"""One runner a study: a second one is told who the first is.

Invariant: the lock is the operating system's, so it ends with the process, however that ends; a kill leaves no lock
behind. The file beside the study only says whose it is, and is taken away with the lock.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StudyBusyError(RuntimeError):
    """Another process, or another `Study` of this one, runs the study."""


@contextmanager
def running_alone(path: Path | None) -> Iterator[None]:
    """Hold the lock of a study's file; a study in memory has nobody to share it with.

    Raises:
        StudyBusyError: somebody else holds it.
    """
    if path is None:
        yield
        return
    beside = path.with_name(f"{path.name}.lock")
    descriptor = _held(beside, path)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        beside.unlink(missing_ok=True)
        os.close(descriptor)


def _held(beside: Path, path: Path) -> int:
    while True:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StudyBusyError(
                f"{path.name} is being run already, by process {owner}. Its trials can be read meanwhile "
                f"(Study.open); to run it here, wait until that run ends or interrupt it."
            ) from None
        if _same(descriptor, beside):
            return descriptor
        os.close(descriptor)  # whoever held it took the file away just now


def _same(descriptor: int, beside: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), beside.stat())
    except FileNotFoundError:
        return False
