"""A command writes in private copies of its folders; what it changed is taken over into the folders when it has ended.

Invariants: a command changes no folder of the user. Its copy of a folder is compared with the state at the start, so
that only what the command itself made, changed or deleted is taken over, and nothing else is touched. It is taken over
into the folder that was judged, reached from its descriptor through no link, and only if the path still leads there.
A file that somebody else made or changed in the meantime stays as it is: the command's version is set aside. Nothing is
taken over at a place where no action may write (``.git``, names of secret files), and nothing that is no file, folder
or link. A sandbox without a view of its own shows the copies in a mirror of the workspace.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from reyn_jupyter.guard.held_place import (
    HeldFolder,
    PlaceMovedError,
    WorkspaceError,
    open_folder,
    open_regular,
)
from reyn_jupyter.guard.sandbox.confinement import PATH_ONLY, Confinement, SandboxError, View
from reyn_jupyter.guard.sandbox.protected_places import is_protected
from reyn_jupyter.guard.sandbox.staging import Staging, made_folder
from reyn_jupyter.guard.workspace import LONGEST_PATH, protects
from reyn_jupyter.support.files.locks import release, wait_for_lock
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, FOLDER, NO_FOLLOW, NO_WAIT
from reyn_jupyter.support.secret import Secret

MOST_FILES = 5_000  # files and folders of all copies
MOST_BYTES = 64 << 20
_DEEPEST = 200  # folders in each other
MOST_MADE = 20_000  # files and folders in the copies at the end
_MIRRORED_FILE = 1 << 20  # bytes of a file that is copied into a mirror; a larger one is a link to the file
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
_PIECE = 1 << 20
_LOCK_SECONDS = 30.0
_Kind = Literal["file", "folder", "link"]


@dataclass(frozen=True)
class Change:
    """One thing that a command did.

    Attributes:
        place: from the workspace's root on.
        how: "created", "changed" or "deleted".
        kind: what is there now; what was there, if it is deleted.
        size: bytes of a file that is there now.
        digest: the SHA-256 of its content, as hexadecimal digits.
        link: where a link leads.
        mode: the permission bits of the file that was there before.
    """

    place: str
    how: Literal["created", "changed", "deleted"]
    kind: _Kind
    size: int | None = None
    digest: str | None = None
    link: str | None = None
    mode: int | None = None


@dataclass(frozen=True)
class Refusal:
    """A change that was not taken over: `why` as a clause, and where the command's version is set aside, if it is."""

    place: str
    why: str
    set_aside: str | None = None

    def __str__(self) -> str:
        where = f"; the command's version is in {self.set_aside}" if self.set_aside else ""
        return f"{self.place} {self.why}{where}"


@dataclass(frozen=True)
class TakenOver:
    """What came of the changes of a command.

    Attributes:
        changes: those that are in the workspace now.
        planted: the places where no action may write and where it made something, which was not kept.
        left_out: pipes, sockets and devices that it made, which were not kept either.
        refusals: the changes that were not taken over.
    """

    changes: tuple[Change, ...] = ()
    planted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()


class NotKeptError(Exception):
    """What a file held could not be kept; the message says why, as a clause about the file."""


class ChangeRecord(Protocol):
    """Keeps what files held before a command changed them."""

    async def before(self, change: Change, content: bytes | None) -> None:
        """Keep what a file held, and that it is being changed. Raises NotKeptError; it is not changed then.

        Args:
            content: None if there was no file.
        """

    def after(self, change: Change) -> None:
        """Hear that the last change was made."""


@dataclass(frozen=True)
class _Entry:
    kind: _Kind | Literal["other"]
    version: tuple[int, ...]
    mode: int
    size: int = 0
    link: str | None = None


@dataclass(frozen=True)
class _Origin:
    """An entry at the start: as it was in the copy, and the version of what it is a copy of."""

    copy: _Entry
    source: tuple[int, ...]


class _RefusedError(Exception):
    """A change is not taken over; the message says why, as a clause about the place."""


class PrivateCopies:
    """The copies of one command, until `close`.

    Args:
        root: the workspace's root, held.
        folders: those that the command may write in, held. One that lies below another one goes with that.
        hidden: places that the command may not read, from the workspace's root on.
        view: of the sandbox. If it has none of its own, the command works in a mirror: a folder that holds the copies
            at their places. What the copies leave out are links there if the rules of the sandbox are about targets.
        direct: a folder of a run's own, held, that the command writes in itself, so that what it makes can be seen
            while it runs. What it makes at places where no action may write is set aside at the end.

    Raises:
        SandboxError: the folders are too large, cannot be read, or there is no room for the copies.
    """

    def __init__(
        self,
        root: HeldFolder,
        folders: Sequence[HeldFolder],
        hidden: Collection[str],
        *,
        view: View,
        direct: HeldFolder | None = None,
    ) -> None:
        self._root, self._direct = root, direct
        self._mirror, self._has_links = view != "own", view == "targets"
        places = {folder.place for folder in folders}
        self._folders = {
            folder.place: folder
            for folder in folders
            if not any(folder.place != each and _is_below(folder.place, each) for each in places)
        }
        self._hidden = frozenset(hidden)
        # Places of which the copies hold nothing, and whether they have something else there.
        self._kept: dict[str, bool] = {}
        self._before: dict[str, _Origin] = {}
        self._targets: dict[str, int] = {}
        self._shown: dict[Path, int] = {}  # what is at the places that are kept, opened
        self._modes: dict[str, int] = {}  # of the folders at the end
        self._bytes = 0
        self._staging = Staging(root.descriptor)
        try:
            for place, folder in self._folders.items():
                with _copy_errors(place):
                    self._targets[place] = _made_folders(self._staging.descriptor, _parts(place))
                    self._copy(folder)
            if direct is not None:
                self._kept |= {place: True for _, _, place in _protected(direct, ())}
            with _copy_errors(_listed(self._folders)):
                self._open_kept()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the copies; closing again does nothing."""
        opened = (*self._targets.values(), *self._shown.values())
        self._targets, self._shown = {}, {}
        for descriptor in opened:
            os.close(descriptor)
        self._staging.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was never made
            self.close()

    def seen(self, place: str) -> Path:
        """Return where the command finds a place of the workspace, from its root on."""
        is_direct = self._direct is not None and _is_below(place, self._direct.place)
        return (self._base if self._mirror and not is_direct else Path(self._root.root)) / place

    def given(self, value: Any) -> Any:
        """Return a text, or a JSON value, with absolute paths in the workspace as the command finds them."""
        return self._replaced(value, self._root.root, os.fspath(self._base))

    def meant(self, value: Any) -> Any:
        """Return a text, or a JSON value, with the paths that the command found as paths in the workspace."""
        return self._replaced(value, os.fspath(self._base), self._root.root)

    def _replaced(self, value: Any, folder: str, other: str) -> Any:
        with suppress(RecursionError):  # nobody names files so deep in a value
            return _replaced(value, folder, other) if self._mirror else value
        return value

    @property
    def _base(self) -> Path:
        return Path(self._root.root, self._staging.place)

    def confinement(
        self,
        folder: str,
        readable: Sequence[Path],
        hidden: Collection[Path],
        environment: Mapping[str, str | Secret] | None = None,
        hosts: tuple[str, ...] = (),
    ) -> Confinement:
        """Return what the command sees.

        Args:
            folder: where it starts to work, from the workspace's root on.
            readable, hidden, environment, hosts: as a `Confinement` has them.

        Raises:
            SandboxError: a folder is not where it was when it was judged.
        """
        root = Path(self._root.root)
        direct = () if self._direct is None else (self._direct,)
        try:
            for each in (self._root, *direct, *self._folders.values()):
                each.check()
        except PlaceMovedError as error:
            raise SandboxError(
                str(error), "Nothing was changed. Look where the folder is now, and run the command again."
            ) from None
        held = {root: self._root.descriptor, **self._shown}
        held |= {self.seen(place): descriptor for place, descriptor in self._targets.items()}
        held |= {root / each.place: each.descriptor for each in direct}
        shown = (*readable, *(path for path in self._shown if path not in hidden))
        if self._mirror:
            held[self._base] = self._staging.descriptor
            shown += (self._base,)
        if self._mirror and not self._has_links:
            hidden = (*hidden, *(self.seen(place) for place, is_there in self._kept.items() if is_there))
        writable = (*self._folders, *(each.place for each in direct))
        return Confinement(
            self.seen(folder), tuple(dict.fromkeys(shown)), tuple(map(self.seen, writable)), hidden, environment or {},
            hosts, held,
        )  # fmt: skip

    def mirror(self, places: Sequence[str]) -> None:
        """Show more of the workspace in the mirror, to be read; without a mirror it is there already.

        Small files are copied, so that programs which follow no links find them. What is larger, and what goes beyond
        the bounds of a copy, is a link to where it lies.

        Args:
            places: files and folders, from the workspace's root on (".": all of it).

        Raises:
            SandboxError: it is too large, and the rules of the sandbox would not hold for links.
        """
        if not self._mirror:
            return
        pending = list(places)
        entries = total = 0
        for place in pending:  # which grows: what is near the root comes first
            if place in self._folders or place in self._hidden:
                continue
            with _copy_errors(place), suppress(FileNotFoundError, FileExistsError, PermissionError):
                entries += 1
                size, names = self._show(place, fits=entries <= MOST_FILES, most_bytes=MOST_BYTES - total)
                total += size
                pending += names if place == "." else (f"{place}/{each}" for each in names)

    def _show(self, place: str, *, fits: bool, most_bytes: int) -> tuple[int, list[str]]:
        """Show a place in the mirror; return the bytes that were copied, and the names in a folder.

        Raises:
            OSError: it is gone, or there is no room.
            SandboxError: it does not fit, and cannot be a link.
        """
        *above, name = _parts(place) or ["."]
        largest = min(most_bytes, _MIRRORED_FILE) if self._has_links else most_bytes
        with _folder(self._root.descriptor, above) as source, ExitStack() as opened:
            status = os.stat(name, dir_fd=source, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode) and not self._has_links:
                return 0, []
            target = _made_folders(self._staging.descriptor, above)
            opened.callback(os.close, target)
            fits = fits and not is_protected(place)
            if stat.S_ISDIR(status.st_mode) and (fits or self._holds_copy(place)):
                os.close(made_folder(target, name))
                with _folder(source, [name]) as folder:
                    return 0, sorted(os.listdir(folder))  # noqa: PTH208 - of a descriptor
            if stat.S_ISREG(status.st_mode) and fits and status.st_size <= largest:
                return _copy_file(name, source, target).st_size, []
            if stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            elif self._has_links:
                os.symlink(f"{self._root.root}/{place}", name, dir_fd=target)
            elif not is_protected(place):
                raise SandboxError(
                    f"more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MiB would have to be copied to be read "
                    f"beside a folder to write in, such as {place}",
                    "Let it read less, or write nowhere.",
                )
            return 0, []

    def _holds_copy(self, place: str) -> bool:
        return place == "." or any(each.startswith(f"{place}/") for each in self._folders)

    async def take_over(self, record: ChangeRecord | None = None) -> TakenOver:
        """Take what the command changed over into the workspace, once nothing of it runs any more.

        A cancellation waits until that is done.

        Args:
            record: keeps what files held before.
        """
        work = asyncio.ensure_future(self._take_over(record))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    async def _take_over(self, record: ChangeRecord | None) -> TakenOver:
        try:
            changes, not_taken = await asyncio.to_thread(self._changes)
        except OSError as error:
            why = f"cannot be compared with what it was: {error.strerror or error}"
            return TakenOver(refusals=tuple(Refusal(place, why) for place in self._folders))
        made, refusals = [], list(not_taken.refusals)
        for change in changes:
            try:
                if await self._taken(change, record):
                    made.append(change)
            except (_RefusedError, NotKeptError) as error:
                refusals.append(await asyncio.to_thread(self._refused, change, str(error)))
        planted = not_taken.planted
        if self._direct is not None:
            planted += await asyncio.to_thread(self._set_planted_aside, self._direct, refusals)
        return TakenOver(tuple(made), planted, not_taken.left_out, tuple(refusals))

    async def _taken(self, change: Change, record: ChangeRecord | None) -> bool:
        """Return whether a change was made; False if nothing is to be done. Raises _RefusedError and NotKeptError."""
        if change.kind != "file":
            return await asyncio.to_thread(self._make, change)
        need, content = await asyncio.to_thread(self._look, change, record is not None)
        if not need:
            return False
        if record is not None:
            await record.before(change, content)
        await asyncio.to_thread(self._make, change)
        if record is not None:
            record.after(change)
        return True

    def _open_kept(self) -> None:
        """Open what the command may read where its copy holds nothing. Raises OSError."""
        for place, is_there in self._kept.items():
            if is_there and place not in self._hidden and protects(place.split("/")[-3:]) is None:
                *above, name = place.split("/")
                with suppress(FileNotFoundError), _folder(self._root.descriptor, above) as folder:
                    flags = PATH_ONLY | NO_FOLLOW | CLOSE_ON_EXEC
                    self._shown[Path(self._root.root, place)] = os.open(name, flags, dir_fd=folder)

    def _set_planted_aside(self, folder: HeldFolder, refusals: list[Refusal]) -> tuple[str, ...]:
        """Set aside what was made where no action may write, and return the places; failures go to `refusals`."""
        planted = []
        for parent, name, place in _protected(folder, self._kept):
            try:
                self._staging.set_aside(name, parent, place)
                planted.append(place)
            except OSError as error:
                why = f"is where no action may write, and could not be set aside: {error.strerror or error}"
                refusals.append(Refusal(place, why))
        return tuple(planted)

    def _copy(self, folder: HeldFolder) -> None:
        """Copy what a folder holds. Raises OSError and SandboxError."""
        pending: list[tuple[str, ...]] = [()]
        modes: list[tuple[tuple[str, ...], int]] = []
        while pending:
            below = pending.pop()
            with (
                suppress(FileNotFoundError),  # it was removed meanwhile
                _folder(folder.descriptor, below) as source,
                _folder(self._targets[folder.place], below) as target,
                os.scandir(source) as entries,
            ):
                modes.append((below, stat.S_IMODE(os.fstat(source).st_mode)))
                for entry in list(entries):
                    place = "/".join((*_parts(folder.place), *below, entry.name))
                    with suppress(FileNotFoundError):
                        if self._copy_entry(entry, place, source, target):
                            pending.append((*below, entry.name))
        for below, mode in reversed(modes):
            with _folder(self._targets[folder.place], below) as target:
                os.fchmod(target, mode & 0o777)

    def _copy_entry(self, entry: os.DirEntry[str], place: str, source: int, target: int) -> bool:
        """Copy an entry; return whether it is a folder to be filled. Raises OSError and SandboxError."""
        name = entry.name
        if _is_too_deep(place):
            raise SandboxError(
                f"{place[:80]}… is too deep for a folder to write in: a path has at most {_DEEPEST} folders",
                "Name another folder.",
            )
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        is_folder = stat.S_ISDIR(status.st_mode)
        if not stat.S_ISLNK(status.st_mode) and (place in self._hidden or is_protected(place)):
            self._kept[place] = True
            if self._has_links:
                os.symlink(f"{self._root.root}/{place}", name, dir_fd=target)
            elif is_folder:
                os.mkdir(name, 0o700, dir_fd=target)
            else:
                os.close(os.open(name, _NEW, 0o600, dir_fd=target))
        elif is_folder:
            os.mkdir(name, 0o700, dir_fd=target)
            self._before[place] = _Origin(_Entry("folder", (), stat.S_IMODE(status.st_mode) & 0o777), ())
        elif stat.S_ISLNK(status.st_mode) and not (self._mirror and not self._has_links):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        elif stat.S_ISREG(status.st_mode):
            self._bytes += status.st_size
            self._check_size()
            status = _copy_file(name, source, target)
        else:
            # A pipe, a socket or a device, or a link that a rule for paths would not hold.
            self._kept[place] = False
            return False
        if place not in self._before:
            self._before[place] = _Origin(_entry(name, target), _version(status))
        self._check_size()
        return is_folder and place not in self._kept

    def _check_size(self) -> None:
        if len(self._before) > MOST_FILES or self._bytes > MOST_BYTES:
            raise SandboxError(
                f"{_listed(self._folders)} holds more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MiB, "
                "which is the limit for folders that a command may write in",
                "Name a smaller folder, or move files away.",
            )

    def _changes(self) -> tuple[list[Change], TakenOver]:
        """Return what can be taken over, in an order in which it can be done again, and what cannot. Raises OSError."""
        after, not_taken = self._after()
        deleted, made = [], []
        for place, origin in self._before.items():
            now = after.get(place)
            if (now is None or now.kind != origin.copy.kind) and not self._is_closed(place):
                mode = origin.copy.mode if origin.copy.kind == "file" else None
                deleted.append(Change(place, "deleted", _kind(origin.copy), mode=mode))
        for place, now in after.items():
            old = self._before[place].copy if place in self._before else None
            if old == now:
                continue
            how: Literal["created", "changed"]
            how, mode = ("created", None) if old is None or old.kind != now.kind else ("changed", old.mode)
            if now.kind == "file":
                made.append(Change(place, how, "file", now.size, self._digest(place), mode=mode))
            else:
                made.append(Change(place, how, _kind(now), link=now.link))
        deleted.sort(key=lambda change: change.place, reverse=True)  # what is in a folder before the folder
        # A folder comes before what is in it, and its new permissions, which may lock it, after that.
        made.sort(key=lambda change: (change.kind == "folder" and change.how == "changed", change.place))
        self._modes = {place: now.mode for place, now in after.items() if now.kind == "folder"}
        return deleted + made, not_taken

    def _is_closed(self, place: str) -> bool:
        return place in self._hidden or place in self._kept or is_protected(place)

    def _after(self) -> tuple[dict[str, _Entry], TakenOver]:
        """Return what is in the copies and may be taken over, what may not, and what cannot."""
        after: dict[str, _Entry] = {}
        planted: list[str] = []
        left_out: list[str] = []
        too_long: list[Refusal] = []
        pending = list(self._folders)
        seen = 0
        while pending:
            current = pending.pop()
            with self._opened_copy(current) as folder:
                for name in os.listdir(folder):  # noqa: PTH208 - of a descriptor
                    place = name if current == "." else f"{current}/{name}"
                    entry = _entry(name, folder)
                    origin = self._before.get(place)
                    seen += 1
                    if seen > MOST_MADE:
                        unchanged = {place: each.copy for place, each in self._before.items()}
                        return unchanged, TakenOver(refusals=tuple(map(self._too_many, self._folders)))
                    if self._is_closed(place):
                        if origin is None or (origin.copy.kind, origin.copy.version) != (
                            entry.kind,
                            entry.version,
                        ):
                            planted.append(place)
                    elif _is_too_deep(place):
                        too_long.append(
                            Refusal(f"{place[:80]}…", f"is too deep: a path has at most {_DEEPEST} folders")
                        )
                    elif entry.kind == "other":
                        left_out.append(place)
                    else:
                        after[place] = entry
                        if entry.kind == "folder":
                            pending.append(place)
        return after, TakenOver((), tuple(sorted(planted)), tuple(sorted(left_out)), tuple(too_long))

    def _too_many(self, top: str) -> Refusal:
        """Return the refusal of a whole folder, of which the command's version is set aside."""
        aside = ""
        with suppress(OSError):
            for name in os.listdir(self._targets[top]):  # noqa: PTH208 - of a descriptor
                place = name if top == "." else f"{top}/{name}"
                aside = self._staging.set_aside(name, self._targets[top], place)
        why = f"holds more than {MOST_MADE:,} files after the command, so nothing of it is taken over"
        return Refusal(top, why, aside.rpartition("/")[0] or None)

    @contextmanager
    def _opened_copy(self, place: str) -> Iterator[int]:
        """Yield a folder of the copies, which the command may have locked."""
        top = self._top(place)
        with _unlocked(self._targets[top], _below(place, top)) as descriptor:
            yield descriptor

    def _top(self, place: str) -> str:
        return next(top for top in self._folders if _is_below(place, top))

    @contextmanager
    def _both(self, place: str) -> Iterator[tuple[str, int, int]]:
        """Yield the name of a place, and the folders that hold it in the copies and in the workspace.

        Raises:
            _RefusedError: its folder is not where it was, or is gone.
        """
        top = self._top(place)
        *above, name = _below(place, top)
        parent = "/".join((*_parts(top), *above)) or "."
        try:
            self._folders[top].check()
            with ExitStack() as opened:
                try:
                    copy = opened.enter_context(self._opened_copy(parent))
                    os.fchmod(copy, 0o700)  # files are moved out of it
                except (FileNotFoundError, NotADirectoryError):
                    copy = -1  # the command removed it
                real = opened.enter_context(_folder(self._folders[top].descriptor, above))
                yield name, copy, real
        except PlaceMovedError:
            raise _RefusedError(
                "is not taken over: a folder on its path was moved, removed or replaced"
            ) from None
        except FileExistsError:
            raise _RefusedError(
                "was made by another program while the command ran, so it stays as it is"
            ) from None
        except WorkspaceError as error:
            raise _RefusedError(f"is not taken over: {error}") from None
        except OSError as error:
            raise _RefusedError(f"is not taken over: {error.strerror or error}") from None

    def _digest(self, place: str) -> str:
        top = self._top(place)
        *above, name = _below(place, top)
        with self._opened_copy("/".join((*_parts(top), *above)) or ".") as folder:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if not mode & stat.S_IRUSR:
                os.chmod(name, 0o600, dir_fd=folder)
            return _digest_of(name, folder)

    def _look(self, change: Change, whole: bool) -> tuple[bool, bytes | None]:
        """Return whether there is something to do with a file, and what it holds now, if that is wanted.

        Raises:
            _RefusedError: it is not as it was when the command started.
        """
        with self._both(change.place) as (name, _, real):
            try:
                status = os.stat(name, dir_fd=real, follow_symlinks=False)
            except FileNotFoundError:
                if change.how == "changed":
                    raise _RefusedError("was removed by another program while the command ran") from None
                return change.how == "created", None
            is_file = stat.S_ISREG(status.st_mode)
            same = is_file and change.digest is not None and _digest_of(name, real) == change.digest
            origin = self._before.get(change.place)
            if change.how == "created" or origin is None or _version(status) != origin.source:
                if same:
                    return False, None  # somebody else has done the same
                how = "made" if change.how == "created" else "changed"
                raise _RefusedError(
                    f"was {how} by another program while the command ran, so it stays as it is"
                )
            if same and self._mode(change.place) == stat.S_IMODE(status.st_mode) & 0o777:
                return False, None
            if not whole:
                return True, None
            if status.st_size > MOST_BYTES:
                raise _RefusedError(
                    f"has more than {MOST_BYTES >> 20} MiB, which is more than can be kept for undo"
                )
            with open_regular(name, real, change.place) as file:
                return True, file.read(MOST_BYTES)

    def _mode(self, place: str) -> int:
        with self._both(place) as (name, copy, _):
            return stat.S_IMODE(os.stat(name, dir_fd=copy, follow_symlinks=False).st_mode) & 0o777

    def _make(self, change: Change) -> bool:
        """Make a change in the workspace; return whether there was something to do. Raises _RefusedError."""
        with self._locked(), self._both(change.place) as (name, copy, real):
            origin = self._before.get(change.place)
            if change.how != "created" and change.kind != "folder":
                _check_version(name, real, origin)
            if change.how == "deleted":
                return _delete(name, real, change.kind)
            if change.kind == "folder":
                return _make_folder(name, real, self._modes[change.place], is_new=change.how == "created")
            if change.kind == "link":
                return _make_link(name, real, change)
            _put(name, copy, real, replaces=change.how == "changed")
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the workspace, so that no other kernel changes a file between a check and a change."""
        folder = open_folder(self._root.root, ())
        try:
            if not wait_for_lock(folder, _LOCK_SECONDS, required=False):
                raise _RefusedError("is not taken over: another program holds the lock of this workspace")
            yield
        finally:
            release(folder)

    def _refused(self, change: Change, why: str) -> Refusal:
        """Return the refusal of a change, of which the command's version is set aside."""
        if change.kind == "file" and change.how != "deleted":
            top = self._top(change.place)
            *above, name = _below(change.place, top)
            with suppress(OSError), self._opened_copy("/".join((*_parts(top), *above)) or ".") as folder:
                os.fchmod(folder, 0o700)
                return Refusal(change.place, why, self._staging.set_aside(name, folder, change.place))
        return Refusal(change.place, why)


def _replaced(value: Any, folder: str, other: str) -> Any:
    """Return a JSON value in which texts that are a folder or a path below it are paths in another folder."""
    if isinstance(value, str):
        return other + value[len(folder) :] if value == folder or value.startswith(f"{folder}/") else value
    if isinstance(value, list):
        return [_replaced(each, folder, other) for each in value]
    if isinstance(value, dict):
        return {key: _replaced(each, folder, other) for key, each in value.items()}
    return value


def _parts(place: str) -> list[str]:
    return [] if place == "." else place.split("/")


def _is_too_deep(place: str) -> bool:
    return place.count("/") > _DEEPEST or len(os.fsencode(place)) >= LONGEST_PATH


def _is_below(place: str, folder: str) -> bool:
    return folder == "." or place == folder or bool(folder and place.startswith(f"{folder}/"))


def _below(place: str, top: str) -> list[str]:
    return _parts(place)[len(_parts(top)) :]


def _listed(places: Collection[str]) -> str:
    return ", ".join("the workspace" if place == "." else place for place in places)


@contextmanager
def _copy_errors(place: str) -> Iterator[None]:
    """Raise what keeps a copy from being made as a SandboxError."""
    try:
        yield
    except OSError as error:
        at = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
        raise SandboxError(
            f"what {_listed([place])} holds could not be copied: {error.strerror or error}{at}",
            "Free some space, or name another folder.",
        ) from None


@contextmanager
def _folder(root: int, parts: Sequence[str]) -> Iterator[int]:
    descriptor = open_folder(root, [part for part in parts if part != "."])
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _unlocked(root: int, parts: Sequence[str]) -> Iterator[int]:
    """Yield a folder that a command may have taken all permissions from."""
    descriptor = os.dup(root)
    try:
        for part in parts:
            try:
                inner = os.open(part, FOLDER, dir_fd=descriptor)
            except PermissionError:
                os.chmod(part, 0o700, dir_fd=descriptor)
                inner = os.open(part, FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _protected(folder: HeldFolder, known: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield what lies in a folder where no action may write, by the open folder that holds it, its name and its place.

    Args:
        known: places that are left out.
    """
    pending: list[tuple[str, ...]] = [()]
    while pending:
        below = pending.pop()
        with (
            suppress(OSError),
            _unlocked(folder.descriptor, below) as current,
            os.scandir(current) as entries,
        ):
            for entry in list(entries):
                place = "/".join((*_parts(folder.place), *below, entry.name))
                if is_protected(place):
                    if place not in known:
                        yield current, entry.name, place
                elif entry.is_dir(follow_symlinks=False):
                    pending.append((*below, entry.name))


def _made_folders(root: int, parts: Sequence[str]) -> int:
    descriptor = os.dup(root)
    for part in parts:
        inner = made_folder(descriptor, part)
        os.close(descriptor)
        descriptor = inner
    return descriptor


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _entry(name: str, folder: int) -> _Entry:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode) & 0o777
    if stat.S_ISDIR(status.st_mode):
        return _Entry("folder", (), mode)
    if stat.S_ISLNK(status.st_mode):
        return _Entry("link", (), 0, link=os.readlink(name, dir_fd=folder))
    return _Entry("file" if stat.S_ISREG(status.st_mode) else "other", _version(status), mode, status.st_size)


def _kind(entry: _Entry) -> _Kind:
    assert entry.kind != "other"
    return entry.kind


def _copy_file(name: str, source: int, target: int, new_name: str = "") -> os.stat_result:
    """Copy a regular file with its mode and times; return the status of the original. Raises OSError."""
    given = os.open(name, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC, dir_fd=source)
    try:
        status = os.fstat(given)
        made = os.open(new_name or name, _NEW, 0o600, dir_fd=target)
        try:
            _copy_content(given, made)
            os.fchmod(made, stat.S_IMODE(status.st_mode) & 0o777)
            os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(made)
    finally:
        os.close(given)
    return status


def _copy_content(given: int, made: int) -> None:
    left = os.fstat(given).st_size
    try:
        while left and (copied := os.copy_file_range(given, made, left)):
            left -= copied
        return
    except (OSError, AttributeError) as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
    os.lseek(given, 0, os.SEEK_SET)
    os.lseek(made, 0, os.SEEK_SET)
    os.ftruncate(made, 0)
    left = os.fstat(given).st_size
    while left > 0 and (piece := os.read(given, min(left, _PIECE))):
        left -= len(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(made, view) :]


def _digest_of(name: str, folder: int) -> str:
    digest = hashlib.sha256()
    with open_regular(name, folder, name) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _check_version(name: str, real: int, origin: _Origin | None) -> None:
    """Check that what is to be changed is what was copied. Raises _RefusedError."""
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=real, follow_symlinks=False)
        if origin is None or _version(status) != origin.source:
            raise _RefusedError("was changed by another program while the command ran, so it stays as it is")


def _delete(name: str, real: int, kind: _Kind) -> bool:
    try:
        if kind == "folder":
            os.rmdir(name, dir_fd=real)
        else:
            os.unlink(name, dir_fd=real)
    except FileNotFoundError:
        return False
    except OSError as error:
        if kind == "folder" and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False  # it holds what is not the command's to delete
        raise
    return True


def _make_folder(name: str, real: int, mode: int, *, is_new: bool) -> bool:
    if is_new:
        try:
            os.mkdir(name, 0o700, dir_fd=real)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=real, follow_symlinks=False).st_mode):
                raise
            return False
    with _folder(real, [name]) as made:
        os.fchmod(made, mode | 0o700 if is_new else mode)  # what is in a new one comes next
    return True


def _make_link(name: str, real: int, change: Change) -> bool:
    assert change.link is not None
    if change.how == "created":
        os.symlink(change.link, name, dir_fd=real)
        return True
    temporary = f".{secrets.token_hex(8)}.tmp"
    os.symlink(change.link, temporary, dir_fd=real)
    os.replace(temporary, name, src_dir_fd=real, dst_dir_fd=real)
    return True


def _put(name: str, copy: int, real: int, *, replaces: bool) -> None:
    """Move a file from the copies to where it belongs. Raises OSError."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=copy, follow_symlinks=False).st_mode) & 0o777
    os.chmod(name, mode, dir_fd=copy)  # without the bits that give a program another user's rights
    try:
        _move(name, copy, real, replaces=replaces)
        return
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
    temporary = f".{secrets.token_hex(8)}.tmp"  # on another file system, or one without hard links
    try:
        _copy_file(name, copy, real, temporary)
        if not replaces and _is_there(name, real):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.replace(temporary, name, src_dir_fd=real, dst_dir_fd=real)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=real)
        raise


def _move(name: str, copy: int, real: int, *, replaces: bool) -> None:
    if replaces:
        os.replace(name, name, src_dir_fd=copy, dst_dir_fd=real)
    else:
        os.link(name, name, src_dir_fd=copy, dst_dir_fd=real, follow_symlinks=False)
        os.unlink(name, dir_fd=copy)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
