"""Changes of workspace files that can be undone.

Invariant: what a file held is kept as a blob before the file is changed; where it cannot be kept, nothing is
changed. A change is made in one step, and only to the very content that was kept: when another writer was
faster, it is made again from that writer's content. A change that was made is reported, even when its task is
cancelled.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from reyn_jupyter.backends.file_tree import AT_ONCE, FileTree, human
from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import FileChange, ToolContext
from reyn_jupyter.support.locks import release, wait_for_lock
from reyn_jupyter.support.plain_files import CLOSE_ON_EXEC

LARGEST = 64 << 20  # bytes of a file whose content is kept before a change
NOT_KEPT = ""  # in a report: the file was there, and what it held is in no blob
_ATTEMPTS = 10
_LOCK_SECONDS = 10.0
_Identity = tuple[int, int, int, int]

# The new content from the current one; None stands for no file, on either side. Raises ActionError to refuse.
Make = Callable[[bytes | None], bytes | None]


@dataclass(frozen=True)
class AppliedChange:
    """A change as made: `before` and `after` are None for no file. `undo` says whether it can be undone."""

    path: str
    before: bytes | None
    after: bytes | None
    undo: bool


@dataclass(frozen=True)
class _Current:
    data: bytes | None
    identity: _Identity | None
    mode: int | None = None


class _OvertakenError(Exception):
    pass


async def change(tree: FileTree, path: str, make: Make, context: ToolContext) -> AppliedChange:
    """Change one file, and report it with its previous content kept.

    Args:
        path: from the workspace root; links are followed, and folders that are missing are made.
        make: asked with the current content, again when another writer was faster.

    Raises:
        ActionError: what `make` refuses, a path that may not be written, a previous content that cannot be
            kept, a full or read-only disk, or a file that never holds still.
    """
    relative = tree.locate(path, for_write=True)
    for _ in range(_ATTEMPTS):
        if _small(tree, relative):
            current = _current(tree, relative)
        else:
            current = await asyncio.to_thread(_current, tree, relative)
        data = make(current.data)
        if data == current.data:
            return AppliedChange(relative, data, data, undo=True)
        blob = await _keep(current.data, relative, context)
        digest = None if data is None else hashlib.sha256(data).hexdigest()
        report = FileChange(relative, blob, digest, current.mode)
        context.changing(report)
        try:
            await _to_the_end(
                partial(_apply, tree, relative, current, data),
                partial(context.changed, report),
                waits=tree.workspace.durable or len(data or b"") > AT_ONCE,
            )
        except _OvertakenError:
            continue
        return AppliedChange(relative, current.data, data, undo=blob != NOT_KEPT)
    raise ActionError(f"{relative} is being changed by another program", "Try again when that is done.")


def content(tree: FileTree, path: str) -> bytes | None:
    """The current content of a file, None when there is none. Raises ActionError."""
    return _current(tree, tree.locate(path, for_write=True)).data


def _small(tree: FileTree, relative: str) -> bool:
    """Return whether a file, or that there is none, is looked at faster than a thread would start."""
    try:
        return os.lstat(tree.workspace.root / relative).st_size <= AT_ONCE
    except OSError:
        return True


def _current(tree: FileTree, relative: str) -> _Current:
    if not os.path.lexists(tree.workspace.root / relative):
        return _Current(None, None)
    try:
        with tree.workspace.open_read(relative) as file:
            status = os.fstat(file.fileno())
            if status.st_size > LARGEST:
                raise ActionError(
                    f"{relative} has {human(status.st_size)}; what a file held is kept before a change, and "
                    f"that goes up to {human(LARGEST)}",
                    "Change it by other means, or write a new file.",
                )
            return _Current(file.read(), _identity(status), stat.S_IMODE(status.st_mode))
    except (WorkspaceError, OSError) as error:
        raise ActionError(str(error)) from error


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


async def _keep(data: bytes | None, relative: str, context: ToolContext) -> str | None:
    if data is None:
        return None
    blobs = context.services.blobs
    if blobs is None:
        return NOT_KEPT
    try:
        return await blobs.store_bytes(data, action=str(context.name), run=context.run_id)
    except BlobStoreError as error:
        raise ActionError(
            f"{relative} was not changed, because what it holds could not be kept for undo: {error}",
            "Free some space, or make the folder .reyn writable.",
        ) from error


def _apply(tree: FileTree, relative: str, current: _Current, data: bytes | None) -> None:
    with _one_at_a_time(tree):
        try:
            now = _identity(os.lstat(tree.workspace.root / relative))
        except OSError:
            now = None
        if now != current.identity:
            raise _OvertakenError
        try:
            if data is None:
                tree.workspace.delete(relative)
            else:
                tree.workspace.write_atomic(relative, data)
        except WorkspaceError as error:
            raise ActionError(str(error), "Nothing was changed.") from error


@contextmanager
def _one_at_a_time(tree: FileTree) -> Iterator[None]:
    """Hold the workspace's lock, so that no other kernel or thread changes a file between check and change."""
    folder = os.open(tree.workspace.root, os.O_RDONLY | os.O_DIRECTORY | CLOSE_ON_EXEC)
    try:
        # On a file system without locks the check alone has to do.
        if not wait_for_lock(folder, _LOCK_SECONDS, required=False):
            raise ActionError("another program holds the lock of this workspace", "Try again later.")
        yield
    finally:
        release(folder)


async def _to_the_end(work: Callable[[], None], done: Callable[[], None], *, waits: bool) -> None:
    """Run a step that must not be left half reported: a cancelled task waits for it, then stops.

    One that does not wait for a disk is over before a thread would have taken it up.
    """
    if not waits:
        work()
        done()
        return
    step = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(step)
    except asyncio.CancelledError:
        await asyncio.wait([step])
        if step.exception() is None:
            done()
        raise
    done()
