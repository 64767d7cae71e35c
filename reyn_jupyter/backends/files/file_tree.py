"""The files under one folder, read and listed; the workspace and this package's own source alike.

Invariant: every path goes through a `Workspace`, so nothing outside its root is reached; every answer is
bounded, and what was left out is said together with the argument that changes it. What a person or a model
did wrong is an `ActionError` in plain words.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from reyn_jupyter.backends.files.file_lines import (
    Check,
    FileTooLargeError,
    NotTextError,
    PastTheEndError,
    count_lines,
    read_lines,
)
from reyn_jupyter.guard.held_place import HeldPlace
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError, protects, protects_file
from reyn_jupyter.outputs.content import FileContent, Text
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import did_you_mean, nearest_names

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from pathlib import Path

    from reyn_jupyter.support.secrets import Redactor

T = TypeVar("T")

AT_ONCE = 256 * 1024  # bytes that are read without a thread
MOST_ENTRIES = 2000  # entries of a listing
# Folders that hold copies and caches; a search goes into one only when its path or pattern names it.
SKIPPED = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".ipynb_checkpoints", ".tox", ".nox"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
_COUNTED = 64 << 20  # bytes of a file whose lines are counted after a part of them was read
_HINT_FILES = 2000  # files looked at for a name that a missing path may have meant


class _Abandoned(Exception):  # noqa: N818 - it is no error: nobody waits for the answer
    pass


async def in_thread(work: Callable[[Check], T]) -> T:
    """Run blocking work in a thread; it ends at its next `check()` once the waiting task is cancelled."""
    abandoned = threading.Event()

    def check() -> None:
        if abandoned.is_set():
            raise _Abandoned

    try:
        return await asyncio.to_thread(work, check)
    except asyncio.CancelledError:
        abandoned.set()
        raise


def printable_name(name: str) -> str:
    """A file name as one line of valid text, whatever bytes it has."""
    return printable(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def human(size: int) -> str:
    """A size for people: 512 bytes, 3.2 MB."""
    amount, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"


class FileTree:
    """The files under a workspace's root.

    Args:
        workspace: decides which paths may be used.
        hidden: names of files and folders that are not shown at all.

    Example:
        >>> tree = Tree(Workspace("."))                                    # doctest: +SKIP
        >>> (await tree.read("notes.md", offset=1, limit=20)).text         # doctest: +SKIP
        '# Notes\\n…'
    """

    def __init__(self, workspace: Workspace, hidden: frozenset[str] = frozenset()) -> None:
        self.workspace = workspace
        self._hidden = hidden

    def within(self, workspace: Workspace) -> FileTree:
        """Return the tree as a call may see it, whose `workspace` is given."""
        return self if workspace is self.workspace else FileTree(workspace, self._hidden)

    def locate(self, path: object) -> str:
        """Return the place that `path` leads to, links followed, see `Workspace.place`. Raises ActionError."""
        return self._located(path, self.workspace.place)

    def held(self, path: object) -> HeldPlace:
        """Return the place that `path` leads to, links followed, held for a change. Raises ActionError."""
        return self._located(path, self.workspace.held)

    def _located(self, path: object, find: Callable[[str], T]) -> T:
        if not isinstance(path, str):
            raise ActionError("a path must be given as text", "A reference cannot stand for a path.")
        try:
            found = find(path)
        except WorkspaceError as error:
            raise ActionError(str(error), "Use a path relative to the workspace.") from error
        place = found.path if isinstance(found, HeldPlace) else str(found)
        if not self._hidden.isdisjoint(place.split("/")):
            raise ActionError(f"{path} does not exist", "List the folder above it to see its files.")
        return found

    def open(self, path: str, place: str) -> BinaryIO:
        """Open a file for reading.

        Args:
            path: as the caller wrote it, for messages.
            place: where it leads to, see `locate`.

        Raises:
            ActionError: it cannot be read; for a missing file with the nearest names.
        """
        try:
            return self.workspace.open_place(place)
        except WorkspaceError as error:
            target = self.workspace.root / place
            if not os.path.lexists(target):
                raise self.missing(path) from error
            raise ActionError(str(error), "List it to see its files." if target.is_dir() else "") from error

    def missing(self, path: str) -> ActionError:
        """The error for a path that is not there, with the nearest names."""
        return ActionError(f"{path} does not exist", self._nearest(path))

    async def read(
        self,
        path: str,
        offset: int | None = None,
        limit: int | None = None,
        spool: Path | None = None,
        redactor: Redactor | None = None,
        place: str | None = None,
    ) -> Text | FileContent:
        """The exact text of a file, or of `limit` lines from line `offset` (from 1).

        Args:
            path: as the caller wrote it.
            spool: where text over 4 MiB goes as a file, instead of through memory.
            redactor: see `file_lines.read_lines`.
            place: where the path led to when the call was judged; None looks now.

        Raises:
            ActionError: no such file, no text, a window past the end, a file that changes meanwhile.
        """
        with self.open(path, self.locate(path) if place is None else place) as file:
            for _ in range(2):
                before = os.fstat(file.fileno())
                try:
                    content = await _read(file, before.st_size, offset or 1, limit, spool, redactor)
                except (NotTextError, PastTheEndError, FileTooLargeError, OSError) as error:
                    raise _unread(path, before.st_size, error) from error
                after = os.fstat(file.fileno())
                if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                    if limit is None or not isinstance(content, Text):
                        return content
                    return replace(content, note=await _left(file, before.st_size, (offset or 1) + limit))
                if isinstance(content, FileContent):
                    content.path.unlink(missing_ok=True)
                file.seek(0)
        raise ActionError(
            f"{path} changed while it was being read ({before.st_size} bytes before, {after.st_size} after)",
            "Something is writing to it. Read it again when that is done.",
        )

    def entries(self, path: str, place: str | None = None) -> dict[str, Any]:
        """Return what lies in one folder: {path, entries: [{name, type, size?}], total, note?}, by name.

        `type` is file, folder, link or other; `size` is in bytes, for files. Protected files are left out.

        Args:
            path, place: as for `read`.
        """
        relative = self.locate(path) if place is None else place
        try:
            with self.workspace.listing(relative) as found:
                beside = {entry.name for entry in found}
                visible = (entry for entry in found if self._visible(relative, entry, beside))
                listed = list(self._allowed(relative, visible))
                entries = [each for entry in listed[:MOST_ENTRIES] if (each := _described(entry))]
        except NotADirectoryError:
            raise ActionError(
                f"{path} is a file, not a folder", "Read it, or list the folder it is in."
            ) from None
        except FileNotFoundError:
            raise self.missing(path) from None
        except OSError as error:
            raise ActionError(f"{path} cannot be listed: {error.strerror}") from error
        answer: dict[str, Any] = {"path": printable_name(relative), "entries": entries, "total": len(listed)}
        notes = self.workspace.left_out.notes
        if len(listed) > MOST_ENTRIES:
            notes.append(f"The first {MOST_ENTRIES} of {len(listed)}; narrow them with a glob pattern.")
        return {**answer, "note": " ".join(notes)} if notes else answer

    def files(
        self,
        path: str,
        skipped: set[str],
        check: Check,
        wanted: Callable[[str], bool] | None = None,
        place: str | None = None,
    ) -> Iterator[str]:
        """Yield the path from the root of every file below, in order, that the rules allow.

        Folders of copies and caches are left out unless `path` is one; their names are added to `skipped`.

        Args:
            path: a file or folder.
            skipped: gets the names of folders that were left out.
            check: asked before each file.
            wanted: asked with each file's path from `path`; False leaves it out.
            place: where the path led to when the call was judged; None looks now.
        """
        relative = self.locate(path) if place is None else place
        start = self.workspace.root / relative
        if not os.path.lexists(start):
            raise self.missing(path)
        base = start if start.is_dir() else start.parent

        def skip(name: str) -> bool:
            if name in SKIPPED:
                skipped.add(name)
            return name in SKIPPED or name in self._hidden

        def chosen(file: Path) -> bool:
            check()
            below = file.name not in self._hidden
            return below and (wanted is None or wanted(file.relative_to(base).as_posix()))

        for file in self.workspace.walk_place(relative, skip, chosen):
            yield self.workspace.relative(file)

    def _allowed(self, folder: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a folder that the rules allow; the others are counted as left out."""
        for entry in entries:
            decision = self.workspace.decision(entry.name if folder == "." else f"{folder}/{entry.name}")
            self.workspace.left_out.add(decision)
            if decision == "allow":
                yield entry

    def _visible(self, relative: str, entry: os.DirEntry[str], beside: Container[str]) -> bool:
        if entry.name in self._hidden:
            return False
        parts = (*(() if relative == "." else relative.split("/")), entry.name)
        return (protects(parts) if entry.is_dir() else protects_file(parts, beside)) is None

    def _nearest(self, path: str) -> str:
        """A hint with the names that a path which is not there may have meant."""
        wanted = path.rpartition("/")[2].casefold()
        with suppress(WorkspaceError):
            files = [
                self.workspace.relative(file)
                for file in islice(
                    self.workspace.walk(".", (SKIPPED | self._hidden).__contains__), _HINT_FILES
                )
            ]
            names: dict[str, list[str]] = {}
            for file in files:
                place = file  # and the folders on the way to it
                while place and place not in names.setdefault(place.rpartition("/")[2].casefold(), []):
                    names[place.rpartition("/")[2].casefold()].append(place)
                    place = place.rpartition("/")[0]
            close = nearest_names(wanted, names)
            if close:
                return did_you_mean([printable_name(file) for name in close for file in names[name][:2]])
        return "List the folder to see what is there."


async def _read(
    file: BinaryIO,
    size: int,
    offset: int,
    limit: int | None,
    spool: Path | None,
    redactor: Redactor | None,
) -> Text | FileContent:
    if size <= AT_ONCE:
        return read_lines(file, offset, limit, spool, lambda: None, redactor)
    return await in_thread(lambda check: read_lines(file, offset, limit, spool, check, redactor))


async def _left(file: BinaryIO, size: int, following: int) -> str:
    """Return the sentence that more lines follow from one on; "" where none does, or the file is too large to count."""
    if size > _COUNTED:
        return ""
    if size <= AT_ONCE:
        lines = count_lines(file, lambda: None)
    else:
        lines = await in_thread(lambda check: count_lines(file, check))
    left = lines - following + 1
    return f"{left:d} lines left: offset={following} reads on" if left > 0 else ""


def _unread(path: str, size: int, error: Exception) -> ActionError:
    match error:
        case NotTextError():
            return ActionError(
                f"{path} is not text: {error.kind}, {human(size)}",
                "Only UTF-8 text can be read. Tables and images are opened by other means.",
            )
        case PastTheEndError():
            return ActionError(
                f"{path} has {error.lines} lines, and the offset is past the end",
                f"Use an offset from 1 to {max(1, error.lines)}.",
            )
        case FileTooLargeError():
            return ActionError(
                f"{path} has {human(size)}, too much to show at once", "Give offset and limit."
            )
        case OSError():
            return ActionError(f"{path} could not be read: {error.strerror or error}")
    raise error


def _described(entry: os.DirEntry[str]) -> dict[str, Any] | None:
    try:
        if entry.is_symlink():
            return {"name": printable_name(entry.name), "type": "link"}
        if entry.is_dir():
            return {"name": printable_name(entry.name), "type": "folder"}
        if entry.is_file():
            return {"name": printable_name(entry.name), "type": "file", "size": entry.stat().st_size}
    except OSError:
        return None
    return {"name": printable_name(entry.name), "type": "other"}
