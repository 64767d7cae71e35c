"""The changes that a command makes, recorded so that they can be named and undone.

Invariants: what a file held is in a blob before it is changed; if that cannot be kept, the file is not changed.
"""

from __future__ import annotations

from typing import Any

from reyn_jupyter.backends.files.file_changes import NOT_KEPT
from reyn_jupyter.guard.sandbox.private_copies import Change, NotKeptError, TakenOver
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.services import FileChange, ToolContext

MOST_NAMED = 100  # files in a result


class UndoRecord:
    """Records the changes of a command in the run of its call.

    Args:
        context: of the call.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._report: FileChange | None = None

    async def before(self, change: Change, content: bytes | None) -> None:
        """Keep what a file held, and that it is being changed. Raises NotKeptError."""
        blob = None if content is None else await self._kept(content)
        self._report = FileChange(change.place, blob, change.digest, change.mode)
        self._context.changing(self._report)

    def after(self, change: Change) -> None:
        """Record that the last change was made."""
        assert self._report is not None
        self._context.changed(self._report)

    async def _kept(self, content: bytes) -> str:
        blobs = self._context.services.blobs
        if blobs is None:
            return NOT_KEPT
        try:
            return await blobs.store_bytes(content, action=str(self._context.name), run=self._context.run_id)
        except BlobStoreError as error:
            raise NotKeptError(
                f"was not changed, because what it holds could not be kept for undo: {error}"
            ) from None


def told(taken: TakenOver) -> dict[str, Any]:
    """Return what came of a command's changes as a result names it."""
    changes = sorted(taken.changes, key=lambda change: change.place)
    files = [_told(change) for change in changes if change.kind != "folder"]
    said: dict[str, Any] = {"files": files[:MOST_NAMED]}
    if taken.refusals:
        said["not_applied"] = [str(each) for each in taken.refusals[:MOST_NAMED]]
    notes = []
    if len(files) > MOST_NAMED:
        notes.append(f"{len(files) - MOST_NAMED:,} more files changed.")
    if taken.refusals:
        notes.append(f"{len(taken.refusals):,} of the command's changes were not applied; see not_applied.")
    if taken.planted:
        named = ", ".join(taken.planted[:MOST_NAMED])
        notes.append(f"Not kept, because no action may write there: {named}.")
    if taken.left_out:
        named = ", ".join(taken.left_out[:MOST_NAMED])
        notes.append(f"Not kept, because they are pipes, sockets or devices: {named}.")
    if notes:
        said["note"] = " ".join(notes)
    return said


def _told(change: Change) -> dict[str, Any]:
    size = {} if change.size is None or change.how == "deleted" else {"bytes": change.size}
    link = {} if change.link is None else {"link": change.link}
    return {"path": change.place, "change": change.how, **size, **link}
