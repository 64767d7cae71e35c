"""The lock that one process at a time builds an index under, and who holds it.

Invariant: the lock goes with the process that holds it, however that ends; nothing here blocks the loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.index_state import BuildHolder, BusyError
from reyn_jupyter.support.files.locks import release, try_lock, wait_for_lock
from reyn_jupyter.support.files.plain_files import PlainFolder

_LOOK = 0.02  # seconds within which another one that looks who builds has looked
_POLL = 0.2  # seconds between two looks at a lock that another process holds
_LONGEST = 1_000  # bytes that are read of what a lock file says


@asynccontextmanager
async def build_lock(
    folder: PlainFolder | None,
    name: str,
    wait: bool,
    tell: Callable[[BuildHolder], None] = lambda holder: None,
) -> AsyncIterator[None]:
    """Hold the lock of an index.

    Args:
        folder: where its file is, made where it is not there; None for an index in memory, which needs none.
        name: of the file.
        wait: whether to wait for another one that builds.
        tell: hears once who that is.

    Raises:
        BusyError: another one builds, and `wait` is False.
        IndexStoreError: the file cannot be made.
    """
    if folder is None:
        yield
        return
    try:
        folder.make()
        descriptor = folder.open(name, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise IndexStoreError(
            f"{folder.path / name}: {error.strerror or error}.",
            "Make the folder .reyn/state writable.",
        ) from error
    try:
        tries = 0
        # On a file system without locks two builds do the same work, and neither harms the other.
        while not try_lock(descriptor, required=False):
            if tries == 1:  # the first time it may have been somebody who only looked: see `lock_holder`
                if not wait:
                    raise BusyError(_named(folder, name))
                tell(_named(folder, name))
            tries += 1
            await asyncio.sleep(_POLL)
        with suppress(OSError):  # a full disk: who holds the lock is then not told, and it holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        yield
    finally:
        release(descriptor)


def lock_holder(folder: PlainFolder, name: str) -> BuildHolder | None:
    """Return who builds under a lock now; None where nobody does."""
    try:
        descriptor = folder.open(name, os.O_RDONLY)
    except OSError:
        return None
    try:
        # Another one that only looks holds the lock for an instant.
        return None if wait_for_lock(descriptor, _LOOK, required=False) else _named(folder, name)
    finally:
        release(descriptor)


def _named(folder: PlainFolder, name: str) -> BuildHolder:
    try:
        said = json.loads(folder.first_line(name, _LONGEST))
        return BuildHolder(int(said["pid"]), float(said["since"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return BuildHolder()
