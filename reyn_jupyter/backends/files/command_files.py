"""What a command did to the files of the folders that it may write in, so that it can be named and undone.

Invariants: what a file held is in memory before the command runs and in a blob before its change is reported; a folder
whose files are too many or too large for that is refused. What a command puts where no action may write (``.git``,
names of secret files) is removed again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reyn_jupyter.backends.files.file_changes import NOT_KEPT
from reyn_jupyter.guard.held_place import WorkspaceError, open_folder, open_regular
from reyn_jupyter.guard.sandbox.protected_places import ProtectedPlaces, walk_places
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import FileChange, ToolContext

MOST_BYTES = 64 << 20  # of all files whose content is kept
MOST_FILES = 5_000
_PIECE = 1 << 20


@dataclass(frozen=True)
class _File:
    data: bytes
    mode: int
    version: tuple[int, ...]


@dataclass(frozen=True)
class CommandChange:
    """One file that a command made, changed or deleted; `size` in bytes, None where it is gone."""

    path: str
    change: str
    size: int | None

    @property
    def told(self) -> dict[str, Any]:
        """Return it as a result names it."""
        size = {} if self.size is None else {"bytes": self.size}
        return {"path": self.path, "change": self.change, **size}


class WatchedFolders:
    """The folders that a command may write in, as they were before it ran.

    Args:
        root: the workspace's root.
        folders: from the root on, none below another.

    Attributes:
        protected: what lies in them where no action may write.

    Raises:
        ActionError: their files are too many or too large to be kept.
    """

    def __init__(self, root: Path, folders: Sequence[str]) -> None:
        self._root = root
        self._folders = folders
        self.protected = ProtectedPlaces(root, folders)
        self._before: dict[str, _File] = {}
        total = 0
        for place, status in self._files():
            total += status.st_size
            if total > MOST_BYTES or len(self._before) >= MOST_FILES:
                raise ActionError(
                    f"{', '.join(folders)} has more than can be kept for undo: {MOST_FILES:,} files, "
                    f"{MOST_BYTES >> 20} MiB",
                    "Name a smaller folder, or move files away.",
                )
            self._before[place] = _File(self._read(place), stat.S_IMODE(status.st_mode), _version(status))

    async def report(self, context: ToolContext) -> tuple[tuple[CommandChange, ...], tuple[str, ...]]:
        """Report what changed, for the record and for undo, and return it with the places that were removed again."""
        removed = self.protected.remove_new()
        after = dict(self._files())
        changes = []
        for place in sorted({*self._before, *after}):
            before, status = self._before.get(place), after.get(place)
            if before is not None and status is not None and before.version == _version(status):
                continue
            digest = None if status is None else self._digest(place)
            if before is not None and digest == hashlib.sha256(before.data).hexdigest():
                continue
            blob = None if before is None else await _kept(before.data, context)
            context.changed(FileChange(place, blob, digest, None if before is None else before.mode))
            change = "created" if before is None else "deleted" if status is None else "changed"
            changes.append(CommandChange(place, change, None if status is None else status.st_size))
        return tuple(changes), removed

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        for folder in self._folders:
            for place, entry in walk_places(self._root, folder):
                if place in self.protected or not entry.is_file(follow_symlinks=False):
                    continue
                with suppress(OSError):
                    yield place, entry.stat(follow_symlinks=False)

    def _read(self, place: str) -> bytes:
        with self._open(place) as file:
            return bytes(file.read(MOST_BYTES))

    def _digest(self, place: str) -> str:
        digest = hashlib.sha256()
        with suppress(OSError, WorkspaceError), self._open(place) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        return digest.hexdigest()

    def _open(self, place: str) -> Any:
        *folders, name = place.split("/")
        folder = open_folder(os.fspath(self._root), folders)
        try:
            return open_regular(name, folder, place)
        finally:
            os.close(folder)


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


async def _kept(data: bytes, context: ToolContext) -> str:
    blobs = context.services.blobs
    if blobs is None:
        return NOT_KEPT
    try:
        return await blobs.store_bytes(data, action=str(context.name), run=context.run_id)
    except BlobStoreError:
        return NOT_KEPT
