"""The files of a workspace that a command must not read: those that no action may, and those that rules keep back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from reyn_jupyter.guard.sandbox.confinement import SandboxError
from reyn_jupyter.guard.workspace import Workspace, protects

_MOST = 200_000  # files and folders that are looked at
_OF_GIT = ("config", "credentials")


def hidden_files(workspace: Workspace, folders: Sequence[str] = (".",)) -> dict[Path, int]:
    """Return the files and folders below some folders that are kept from commands, none below another.

    Each comes with its number in the file system, so that one that is replaced later is recognized.

    Args:
        workspace: as the call sees it, with the rules' word on each file.
        folders: from its root on (".": all of it).

    Raises:
        SandboxError: they hold more than 200,000 files and folders, so that not all can be judged.
    """
    found = _hidden(workspace, ["" if folder == "." else folder for folder in folders])
    return {workspace.root / place: number for place, number in found}


def _hidden(workspace: Workspace, pending: list[str]) -> Iterator[tuple[str, int]]:
    seen = 0
    while pending:
        folder = pending.pop()
        above = tuple(folder.rsplit("/", 2)[-2:]) if folder else ()
        for entry in _entries(workspace, folder):
            seen += 1
            if seen > _MOST:
                raise SandboxError(
                    f"the workspace has more than {_MOST:,} files, so that not all can be judged before a command runs",
                    "Use a smaller folder as the workspace: Session(root=…).",
                )
            place = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                continue  # where it leads to is judged there
            if protects((*above, entry.name)) or workspace.is_off_limits(place):
                yield place, entry.inode()
            elif entry.is_dir(follow_symlinks=False):
                # Git's own files are many, and no rule is about them where there is none.
                if entry.name != ".git" or workspace.has_rules:
                    pending.append(place)
                else:
                    for name in _OF_GIT:
                        with suppress(OSError):
                            yield f"{place}/{name}", os.lstat(f"{entry.path}/{name}").st_ino
            elif workspace.decision(place) != "allow":
                yield place, entry.inode()


def _entries(workspace: Workspace, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(workspace.root / folder) as entries:
            return list(entries)
    except OSError:
        return []
