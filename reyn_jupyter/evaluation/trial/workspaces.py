"""Throwaway workspaces: one read-only copy of a template that trials read, and a private one for each that writes.

Invariants: no trial ever writes where another reads; a private copy is made from the template itself, never from what
lies on disk; everything lies under one temporary folder (`support/files/scratch.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

from reyn_jupyter.evaluation.trial.trial import FileFact
from reyn_jupyter.models.base import canonical
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT
from reyn_jupyter.support.user_errors import UserError

LARGEST_SHARED = 200_000  # bytes of a template's file that no read action needs to spool
LARGEST_TEXT = 64 << 10  # bytes of a file's text that a trial keeps
NAME = "workspace"  # of every root: a system prompt names the folder, and must not differ between trials
_STATE = ".reyn"
_KEPT = "memory"  # of the state folder


class TemplateError(UserError, ValueError):
    """A template that cannot be laid out as files; names the path and what is wrong."""


class Template:
    """The files that trials of a scenario begin with.

    Args:
        files: path (relative, with ``/``) → text.

    Raises:
        TemplateError: a path that leaves the folder, or that another one needs as a folder.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = {
            _check_path(path): text.encode("utf-8", "surrogatepass") for path, text in files.items()
        }
        for path in self.files:
            for folder in PurePosixPath(path).parents:
                if str(folder) in self.files:
                    raise TemplateError(
                        f"{str(folder)!r} is a file and the folder of {path!r}; rename one of them"
                    )
        above = {str(parent) for path in self.files for parent in PurePosixPath(path).parents}
        self._folders = sorted(above - {"."})  # a folder stands before those in it
        self.digest = hashlib.sha256(canonical(dict(files))).hexdigest()
        self._told: dict[str, FileFact] = {}
        # A session keeps a state folder that is there out of git, which is a write.
        self.shareable = all(
            len(data) <= LARGEST_SHARED and not path.startswith(f"{_STATE}/")
            for path, data in self.files.items()
        )

    def lay_out(self, root: Path, *, read_only: bool = False) -> Path:
        """Write the files under `root`, which is made, its own folder being there."""
        place = os.fspath(root)
        root.mkdir()
        for folder in self._folders:
            os.mkdir(f"{place}/{folder}")  # noqa: PTH102 - plain text, since a thousand trials a minute come here
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
        for path, data in self.files.items():
            descriptor = os.open(f"{place}/{path}", flags, 0o444 if read_only else 0o644)
            with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
                file.write(data)
        if read_only:
            for folder in (*self._folders, "."):
                os.chmod(f"{place}/{folder}", 0o500)  # noqa: PTH101
        return root

    def facts(self, root: Path | None, expected: Iterable[str]) -> dict[str, FileFact]:
        """Return what became of the files: those that changed, and those that something is expected of.

        Args:
            root: the private copy; None where the trial wrote nothing.
            expected: the paths that are told of in any case.
        """
        now, changed = self.files, set[str]()
        if root is not None:
            now = _files(root)
            changed = {path for path in {*now, *self.files} if now.get(path) != self.files.get(path)}
        wanted = {_check_path(path) for path in expected}
        return {
            path: _fact(now.get(path), True) if path in changed else self._unchanged(path)
            for path in sorted({*wanted, *changed})
        }

    def _unchanged(self, path: str) -> FileFact:
        """Return what is told of a file that a trial left alone: the same in every trial."""
        if path not in self._told:
            self._told[path] = _fact(self.files.get(path), False)
        return self._told[path]


@lru_cache(4096)
def _check_path(path: str) -> str:
    """Return the path in its plain form. Raises TemplateError."""
    pure = PurePosixPath(path)
    if not path or "\0" in path or "\\" in path or pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise TemplateError(f"{path!r} is no path inside a workspace; use one like data/orders.csv")
    return str(pure)


def _files(root: Path) -> dict[str, bytes]:
    """Return every file below, links left alone; of the state folder the memories alone."""
    found: dict[str, bytes] = {}
    pending = [(os.fspath(root), "")]
    while pending:
        folder, above = pending.pop()
        inside_state = above == f"{_STATE}/"
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                place = above + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not inside_state or entry.name == _KEPT:
                        pending.append((entry.path, f"{place}/"))
                elif not inside_state and entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        found[place] = _read_bytes(entry.path)
    return found


def _read_bytes(path: str) -> bytes:
    """Return a file that is no link; without O_NONBLOCK a pipe in its place would wait for a writer."""
    flags = os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC
    with open(os.open(path, flags), "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        return file.read()


def _fact(data: bytes | None, changed: bool) -> FileFact:
    if data is None:
        return FileFact(exists=False, changed=changed)
    text = None
    if len(data) <= LARGEST_TEXT:
        with suppress(UnicodeDecodeError):
            text = data.decode()
    return FileFact(text=text, sha256=hashlib.sha256(data).hexdigest(), changed=changed)
