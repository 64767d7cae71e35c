"""Undo: what a run did to files, taken back from the blobs that kept the content before."""

from __future__ import annotations

from typing import Any

from reyn_jupyter.guard.undo import RecordedChange, UndoRefusedError, apply, plan
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.results import Card
from reyn_jupyter.runtime.trace import Trace
from reyn_jupyter.sessions import turns
from reyn_jupyter.sessions.wiring import Parts


class NothingToUndoError(LookupError):
    """The run changed no file, or kept nothing to restore."""


async def undo(parts: Parts, target: str | int | None) -> Card:
    """Restore the files that a run, or one step of it, changed.

    Args:
        target: a run (any unique part of its id), ``RUN:STEP``, or None for the last run that changed a file.

    Raises:
        NothingToUndoError: no file was changed, or its content before was not kept.
        UndoRefusedError: a file changed since; its `diff` shows how.
        RunNotFoundError: there is no such run.
    """
    trace, step = _meant(parts, target)
    changes = [change for call in trace.calls for change in _changes(call, step)]
    if not changes:
        raise NothingToUndoError(
            f"the run {trace.run[-12:]} changed no file" + (f" in step {step}" if step else "")
        )
    recorded = [await _recorded(parts, change) for change in changes]
    restores = plan(recorded, parts.workspace)
    run = await turns.by_hand(parts, f"undo {trace.run}" + (f" step {step}" if step else ""))
    try:
        apply(restores, parts.workspace)
    except UndoRefusedError as error:
        turns.finish(parts, run, "error", error=str(error))
        raise
    turns.finish(parts, run, "ok", answer=f"restored {', '.join(restore.path for restore in restores)}")
    facts = [("run", trace.run), ("prompt", trace.prompt)]
    facts += [(restore.path, "removed" if restore.content is None else "restored") for restore in restores]
    sections = tuple((restore.path, tuple(restore.diff.splitlines())) for restore in restores)
    return Card(
        "undo", f"{len(restores)} file{'s' if len(restores) != 1 else ''} restored", tuple(facts), sections
    )


def _meant(parts: Parts, target: str | int | None) -> tuple[Trace, int | None]:
    if target is None:
        for run in reversed(parts.runs.ids()):
            trace = parts.runs.load(run)
            if any(call.finished and call.finished.changes for call in trace.calls):
                return trace, None
        raise NothingToUndoError("no run here has changed a file")
    name, separator, step = str(target).rpartition(":")
    if separator and step.isdecimal():
        return parts.runs.load(name or None), int(step)
    return parts.runs.load(target), None


def _changes(call: Any, step: int | None) -> tuple[dict[str, Any], ...]:
    if call.finished is None or step not in (None, call.resolved.step):
        return ()
    changes: tuple[dict[str, Any], ...] = call.finished.changes
    return changes


async def _recorded(parts: Parts, change: dict[str, Any]) -> RecordedChange:
    blob = change.get("previous_blob")
    store = parts.services.blobs
    previous = None
    if blob is not None:
        if store is None or not blob:  # "" stands for content that was there and could not be kept
            raise NothingToUndoError(
                f"what {change['path']} held before was not kept: the session kept no blobs"
            )
        try:
            previous = await store.load_bytes(blob)
        except BlobStoreError as error:
            raise NothingToUndoError(f"what {change['path']} held before cannot be read: {error}") from error
    return RecordedChange(str(change["path"]), previous, change.get("sha256"), change.get("mode"))
