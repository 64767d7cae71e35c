"""The files of a workspace that a command must not read: those that no action may, and those that rules keep back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from reyn_jupyter.guard.sandbox.confinement import SandboxError
from reyn_jupyter.guard.workspace import Workspace, is_git_folder, protects, protects_file

_MOST = 200_000  # files and folders that are looked at
_LARGE_OF_GIT = ("objects", "refs", "logs")  # folders of a git folder that hold no settings


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
        above = tuple(folder.split("/")) if folder else ()
        entries = _entries(workspace, folder)
        beside = {entry.name for entry in entries}
        # Git's own files are many, and no rule is about them where there is none.
        is_large = is_git_folder(beside) or (".git" in above and above[-1] in ("lfs", "annex"))
        passed = _LARGE_OF_GIT if is_large and not workspace.has_rules else ()
        for entry in entries:
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
                if entry.name not in passed:
                    pending.append(place)
            elif protects_file((*above, entry.name), beside) or workspace.decision(place) != "allow":
                yield place, entry.inode()


def _entries(workspace: Workspace, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(workspace.root / folder) as entries:
            return list(entries)
    except OSError:
        return []
