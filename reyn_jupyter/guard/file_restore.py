"""Restores the files that a run changed.

Invariant: nothing is overwritten that came after the run. First every change is checked against the file as
it is now; only when all fit is anything written, and when a write fails, those before it are taken back.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.guard.diff import unified
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class RecordedChange:
    """One change as it was recorded.

    Attributes:
        path: relative to the workspace root.
        previous: the content before; None when the file was not there.
        sha256: the hash of the content after; None when the file was removed.
        mode: the permission bits before, where they are known.
    """

    path: str
    previous: bytes | None
    sha256: str | None
    mode: int | None = None


@dataclass(frozen=True)
class Restore:
    """One file to put back: its content now and the content it gets; None is a file that is not there."""

    path: str
    current: bytes | None
    content: bytes | None
    mode: int | None = None

    @property
    def diff(self) -> str:
        """The change that the restore makes, as a unified diff."""
        return unified(self.current, self.content, self.path)


class UndoRefusedError(Exception):
    """A file is not as the run left it. `diff`: from what an undo would put back to what is there now."""

    def __init__(self, path: str, reason: str, diff: str = "") -> None:
        super().__init__(f"{path} {reason}, so nothing was undone")
        self.path = path
        self.diff = diff


def plan(changes: Sequence[RecordedChange], workspace: Workspace) -> tuple[Restore, ...]:
    """Return the restores that undo the changes, which are given oldest first.

    Raises:
        UndoRefusedError: a file was changed since, or between two of the changes, or cannot be reached any more.
    """
    current: dict[str, bytes | None] = {}
    virtual: dict[str, bytes | None] = {}
    modes: dict[str, int | None] = {}
    for change in reversed(changes):
        if change.path not in current:
            current[change.path] = virtual[change.path] = content(workspace, change.path)
        here = virtual[change.path]
        if _sha256(here) != change.sha256:
            reason = "was changed since" if here is current[change.path] else "was changed in between"
            raise UndoRefusedError(change.path, reason, unified(change.previous, here, change.path))
        virtual[change.path] = change.previous
        modes[change.path] = change.mode
    return tuple(Restore(path, current[path], content, modes[path]) for path, content in virtual.items())


def apply(restores: Sequence[Restore], workspace: Workspace) -> None:
    """Write what `plan` gave.

    Raises:
        UndoRefusedError: a file moved between plan and now, or could not be written; what was written is
        taken back.
    """
    for restore in restores:
        if content(workspace, restore.path) != restore.current:
            raise UndoRefusedError(restore.path, "was changed just now")
    done: list[Restore] = []
    try:
        for restore in restores:
            done.append(restore)
            _put(workspace, restore.path, restore.content, restore.mode)
    except WorkspaceError as error:
        for restore in reversed(done):
            with suppress(WorkspaceError):
                _put(workspace, restore.path, restore.current, None)
        raise UndoRefusedError(done[-1].path, f"could not be put back ({error})") from None


def _put(workspace: Workspace, path: str, content: bytes | None, mode: int | None) -> None:
    if content is not None:
        workspace.write_atomic(path, content, mode=mode)
    elif workspace.resolve(path, for_write=True).exists():
        workspace.delete(path)


def content(workspace: Workspace, path: str) -> bytes | None:
    """Return the content of a file, None when it is not there. Raises UndoRefusedError when it cannot be reached."""
    try:
        return workspace.read_bytes(path) if workspace.resolve(path, for_write=True).exists() else None
    except WorkspaceError as error:
        raise UndoRefusedError(path, f"cannot be reached any more ({error})") from None


def _sha256(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
