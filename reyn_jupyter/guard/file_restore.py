"""Restores the files that a run changed.

Invariants: nothing is overwritten that came after the run, and nothing is put where a rule forbids it. First every
change is judged and checked against the file as it is now; only when all fit is anything written, in the folders that
were judged, and when a write fails, those before it are taken back. A path that has become a link is not followed for
this: its file is left as it is, and named, and the others are put back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from reyn_jupyter.guard.diff import unified
from reyn_jupyter.guard.held_place import HeldPlace, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reyn_jupyter.guard.workspace import Workspace


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
    """One file to put back: its content now and the content it gets; None is a file that is not there.

    Attributes:
        path: as it was recorded.
        place: where that leads to now, held.
    """

    path: str
    place: HeldPlace
    current: bytes | None
    content: bytes | None
    mode: int | None = None

    @property
    def diff(self) -> str:
        """The change that the restore makes, as a unified diff."""
        return unified(self.current, self.content, self.path)


class Restores(tuple[Restore, ...]):
    """The restores of an undo.

    Attributes:
        linked: for each path that is left as it is, since a link stands there now, the reason as a clause.
        back: the paths that are left as they are, since they are as they were before the changes.
    """

    linked: Mapping[str, str] = MappingProxyType({})
    back: tuple[str, ...] = ()


class UndoRefusedError(Exception):
    """A file is not as the run left it, or may not be changed, so nothing was undone.

    Attributes:
        diff: from what an undo would put back to what is there now.
    """

    def __init__(self, path: str, reason: str, diff: str = "", advice: str = "") -> None:
        super().__init__(f"{path} {reason}, so nothing was undone" + (f". {advice}" if advice else ""))
        self.path = path
        self.diff = diff


# What forbids a change of the file at a place (from the workspace root), as a clause; None where nothing does. The
# second argument says whether the file would be removed.
Judge = Callable[[str, bool], str | None]


def _allow(place: str, removes: bool) -> None:
    """Forbid nothing: no rules are in force."""


@contextmanager
def planned(
    changes: Sequence[RecordedChange], workspace: Workspace, judge: Judge = _allow
) -> Iterator[Restores]:
    """Yield the restores that undo the changes, which are given oldest first; their places are held in the block.

    Args:
        judge: asked about each restore.

    Raises:
        UndoRefusedError: a rule forbids a restore, or a file was changed since, or between two of the changes, or
            cannot be reached any more.
    """
    places: dict[str, HeldPlace] = {}
    linked: dict[str, str] = {}
    with ExitStack() as held:
        for path, digest in {change.path: change.sha256 for change in changes}.items():
            link = _link(workspace, path)
            if link is not None and not _leads_to(workspace, path, digest):
                linked[path] = f"{link} is a link now"
            else:
                places[path] = held.enter_context(closing(_held(workspace, path)))
        if linked and not places:
            path, why = next(iter(linked.items()))
            raise UndoRefusedError(path, f"is not put back ({why})", advice="Remove the link first.")
        reached = [each for each in changes if each.path in places]
        back = _back(reached, places)
        restores = Restores(_restores([each for each in reached if each.path not in back], places, judge))
        restores.linked, restores.back = linked, back
        yield restores


def _link(workspace: Workspace, path: str) -> str | None:
    """Return the part of a path, from the root, at which a link stands; None where none does."""
    way = ""
    for part in path.split("/"):
        way = f"{way}/{part}" if way else part
        if (workspace.root / way).is_symlink():
            return way
    return None


def _leads_to(workspace: Workspace, path: str, digest: str | None) -> bool:
    """Return whether a path with a link in it leads to the content that the run left: the link was there before."""
    try:
        return digest is not None and _sha256(content(workspace, path)) == digest
    except UndoRefusedError:
        return False


def _back(changes: Sequence[RecordedChange], places: dict[str, HeldPlace]) -> tuple[str, ...]:
    """Return the paths of files that already have the content from before the changes."""
    before = {change.path: change.previous for change in reversed(changes)}
    after = {change.path: change.sha256 for change in changes}
    found = []
    for path, previous in before.items():
        now = _content(path, places[path])
        if now == previous and _sha256(now) != after[path]:
            found.append(path)
    return tuple(found)


def _restores(
    changes: Sequence[RecordedChange], places: dict[str, HeldPlace], judge: Judge
) -> tuple[Restore, ...]:
    current: dict[str, bytes | None] = {}
    virtual: dict[str, bytes | None] = {}
    modes: dict[str, int | None] = {}
    for change in reversed(changes):
        if change.path not in current:
            current[change.path] = virtual[change.path] = _content(change.path, places[change.path])
        here = virtual[change.path]
        if _sha256(here) != change.sha256:
            reason = "was changed since" if here is current[change.path] else "was changed in between"
            raise UndoRefusedError(change.path, reason, unified(change.previous, here, change.path))
        virtual[change.path] = change.previous
        modes[change.path] = change.mode
    for path, previous in virtual.items():
        if previous == current[path]:
            continue
        if (why := judge(places[path].path, previous is None)) is not None:
            raise UndoRefusedError(
                path,
                f"may not be {'removed' if previous is None else 'put back'} ({why})",
                unified(current[path], previous, path),
                "Take the rule back for as long as the undo needs, or put the file back by your own means.",
            )
    return tuple(
        Restore(path, places[path], current[path], previous, modes[path])
        for path, previous in virtual.items()
    )


def apply(restores: Sequence[Restore]) -> None:
    """Write what `planned` gave.

    Raises:
        UndoRefusedError: a file moved between plan and now, or could not be written; what was written is
        taken back.
    """
    for restore in restores:
        if _content(restore.path, restore.place) != restore.current:
            raise UndoRefusedError(restore.path, "was changed just now")
    done: list[Restore] = []
    try:
        for restore in restores:
            done.append(restore)
            _put(restore.place, restore.content, restore.mode)
    except WorkspaceError as error:
        for restore in reversed(done):
            with suppress(WorkspaceError):
                _put(restore.place, restore.current, None)
        raise UndoRefusedError(done[-1].path, f"could not be put back ({error})") from None


def _put(place: HeldPlace, content: bytes | None, mode: int | None) -> None:
    if content is not None:
        place.replace(content, mode=mode)
    elif place.status() is not None:
        place.remove()


def content(workspace: Workspace, path: str) -> bytes | None:
    """Return the content of a file, None when it is not there. Raises UndoRefusedError when it cannot be reached."""
    with closing(_held(workspace, path)) as place:
        return _content(path, place)


def _held(workspace: Workspace, path: str) -> HeldPlace:
    try:
        return workspace.held(path)
    except WorkspaceError as error:
        raise _unreached(path, error) from None


def _content(path: str, place: HeldPlace) -> bytes | None:
    try:
        return place.read()
    except WorkspaceError as error:
        raise _unreached(path, error) from None


def _unreached(path: str, error: WorkspaceError) -> UndoRefusedError:
    return UndoRefusedError(path, f"cannot be reached any more ({error})")


def _sha256(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
