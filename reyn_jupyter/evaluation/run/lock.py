"""One runner a study: a second one is told who the first is.

Invariant: the lock is the operating system's, so it ends with the process, however that ends; a kill leaves no lock
behind. The file beside the study only says whose it is, and is taken away with the lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.support.files.locks import open_lock_file, release, try_lock
from reyn_jupyter.support.user_errors import UserError

_LOOKS, _BETWEEN = 400, 0.005  # how often, and with how many seconds between, a holder's number is looked for


class StudyBusyError(UserError, RuntimeError):
    """Another process, or another `Study` of this one, runs the study."""


@contextmanager
def running_alone(path: Path | None, here: threading.Lock) -> Iterator[None]:
    """Hold the lock of a study's file; a study in memory is shared with the threads of this process alone.

    Args:
        path: the study's file.
        here: the lock of the study in this process.

    Raises:
        StudyBusyError: somebody else holds it.
        StoreError: the lock cannot be made beside the file.
    """
    if not here.acquire(blocking=False):
        raise StudyBusyError(
            "This study is being run already, by another thread of this process. Wait until that run ends, or "
            "interrupt it; its trials can be read meanwhile."
        )
    try:
        if path is None:
            yield
            return
        beside = path.with_name(f"{path.name}.lock")
        descriptor = _held(beside, path)
        try:
            yield
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            release(descriptor)
    finally:
        here.release()


def _held(beside: Path, path: Path) -> int:
    while True:
        try:
            descriptor = open_lock_file(beside)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be run: the file {beside.name} beside it cannot be made ({error.strerror}). Its "
                "folder must be one that can be written to; to read the study, use Study.open."
            ) from error
        try:
            held = try_lock(descriptor)
        except OSError as error:
            release(descriptor)
            raise StoreError(
                f"{path} cannot be run: its file system has no locks ({error.strerror}). Copy it to a local disk."
            ) from error
        if not held:
            owner = _owner(descriptor)
            release(descriptor)
            raise StudyBusyError(
                f"{path.name} is being run already, by {owner}. Its trials can be read meanwhile "
                f"(Study.open); to run it here, wait until that run ends or interrupt it."
            )
        if _same(descriptor, beside):
            with suppress(OSError):  # a full disk: the lock holds without a name in it
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        release(descriptor)  # whoever held it took the file away just now


def _owner(descriptor: int) -> str:
    """Return who holds a lock; one that took it in this instant has not written its number yet."""
    for _ in range(_LOOKS):
        if number := os.pread(descriptor, 20, 0).decode(errors="replace").strip():
            return f"process {number}"
        time.sleep(_BETWEEN)
    return "another process"


def _same(descriptor: int, beside: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), beside.stat())
    except FileNotFoundError:
        return False
