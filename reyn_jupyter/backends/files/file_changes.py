"""Changes of workspace files that can be undone.

Invariants: a change is made where it was judged, and nowhere else (`guard.held_place`). What a file held is kept as a
blob before the file is changed; where it cannot be kept, nothing is changed. A change is made in one step, and only to
the very content that was kept: once it was shown to somebody it is made as shown or not at all, and otherwise, when
another writer was faster, it is made again from that writer's content. A change that was made is reported, even when
its task is cancelled.
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

from reyn_jupyter.backends.files.file_tree import AT_ONCE, human
from reyn_jupyter.guard.held_place import HeldPlace, PlaceMovedError, WorkspaceError
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import FileChange, ToolContext
from reyn_jupyter.support.files.locks import release, wait_for_lock
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC

LARGEST = 64 << 20  # bytes of a file whose content is kept before a change
NOT_KEPT = ""  # in a report: the file was there, and what it held is in no blob
_ATTEMPTS = 10
_LOCK_SECONDS = 30.0

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
    mode: int | None = None


class _OvertakenError(Exception):
    pass


class PlannedChange:
    """A change of one file, from the moment when it is judged until it is made.

    Args:
        place: where; `close` lets it go.
    """

    def __init__(self, place: HeldPlace) -> None:
        self.place = place
        self._shown: _Current | None = None

    @property
    def path(self) -> str:
        """The path of the file from the workspace root, links followed."""
        return self.place.path

    def close(self) -> None:
        """Let the place go."""
        self.place.close()

    def preview(self, make: Make) -> tuple[bytes | None, bytes | None]:
        """Return the content before and after, for a question; `apply` changes only this content from then on.

        Raises:
            ActionError: what `make` refuses, or a file that cannot be read.
        """
        try:
            self._shown = _current(self.place)
        except PlaceMovedError as error:
            raise _moved(error) from error
        return self._shown.data, make(self._shown.data)

    async def apply(self, make: Make, context: ToolContext) -> AppliedChange:
        """Make the change, and report it with its previous content kept. Folders that are missing are made.

        Args:
            make: asked with the current content, again when another writer was faster.

        Raises:
            ActionError: what `make` refuses, a file that is not the one shown any more, a folder that was swapped, a
                previous content that cannot be kept, a full or read-only disk, or a file that never holds still.
        """
        for _ in range(_ATTEMPTS):
            current = await self._read()
            data = make(current.data)
            if data == current.data:
                return AppliedChange(self.path, data, data, undo=True)
            blob = await _keep(current.data, self.path, context)
            digest = None if data is None else hashlib.sha256(data).hexdigest()
            report = FileChange(self.path, blob, digest, current.mode)
            context.changing(report)
            try:
                await _to_the_end(
                    partial(self._land, current.data, data),
                    partial(context.changed, report),
                    waits=self.place.durable or max(len(data or b""), len(current.data or b"")) > AT_ONCE,
                )
            except _OvertakenError:
                continue
            return AppliedChange(self.path, current.data, data, undo=blob != NOT_KEPT)
        raise ActionError(f"{self.path} is being changed by another program", "Try again when that is done.")

    async def _read(self) -> _Current:
        """Return what the file holds now. Raises ActionError where it is not what was shown, or cannot be read."""
        try:
            self.place.check()
            status = self.place.status()
            small = status is None or status.st_size <= AT_ONCE
            current = _current(self.place) if small else await asyncio.to_thread(_current, self.place)
        except PlaceMovedError as error:
            raise _moved(error) from error
        except (ActionError, WorkspaceError) as error:
            if self._shown is not None:
                raise self._not_as_shown() from error
            raise error if isinstance(error, ActionError) else ActionError(str(error)) from error
        if self._shown is not None and current.data != self._shown.data:
            raise self._not_as_shown()
        return current

    def _not_as_shown(self) -> ActionError:
        return ActionError(
            f"{self.path} was changed while the question of consent was open, so it was left as it is now",
            "Read it and make the call again.",
            code="changed_meanwhile",
        )

    def _land(self, before: bytes | None, data: bytes | None) -> None:
        with _one_at_a_time(self.place.root):
            try:
                self.place.check()
                if self.place.read(LARGEST + 1) != before:
                    raise _OvertakenError
                if data is None:
                    self.place.remove()
                else:
                    self.place.replace(data)
            except PlaceMovedError as error:
                raise _moved(error) from error
            except WorkspaceError as error:
                raise ActionError(str(error), "Nothing was changed.") from error


def _moved(error: PlaceMovedError) -> ActionError:
    hint = "Nothing was changed. Look where the file is now, and make the call again."
    return ActionError(str(error), hint, code="place_moved")


def _current(place: HeldPlace) -> _Current:
    try:
        file = place.open()
        if file is None:
            return _Current(None)
        with file:
            status = os.fstat(file.fileno())
            if status.st_size > LARGEST:
                raise ActionError(
                    f"{place.path} has {human(status.st_size)}; what a file held is kept before a change, and "
                    f"that goes up to {human(LARGEST)}",
                    "Change it by other means, or write a new file.",
                )
            return _Current(file.read(), stat.S_IMODE(status.st_mode))
    except PlaceMovedError:
        raise
    except (WorkspaceError, OSError) as error:
        raise ActionError(str(error)) from error


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


@contextmanager
def _one_at_a_time(root: str) -> Iterator[None]:
    """Hold the workspace's lock, so that no other kernel or thread changes a file between check and change."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | CLOSE_ON_EXEC)
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
