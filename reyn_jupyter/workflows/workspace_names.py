"""Find files of the workspace by the names that a request gives them.

Invariant: A file that the caller may not read without a question is not found, and no message names it.
"""

from __future__ import annotations

import os
import unicodedata
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.support.text import nearest_names

if TYPE_CHECKING:
    from reyn_jupyter.runtime.services import ToolContext

_MOST_NEAR = 1_000  # entries of a folder that are compared with a missing name
_MOST_FOLDERS = 20


def find_file(context: ToolContext, name: str) -> str | None:
    """Return the path of a file or folder of this name as the disk spells it, or None.

    Canonically equivalent names of Unicode are the same.
    """
    workspace = context.workspace
    try:
        place = workspace.place(name)
        if not (workspace.root / place).exists():
            place = name = "" if name.isascii() else _respelled(workspace.root, place)
    except (WorkspaceError, OSError):
        return None
    return name if place and context.may_read(place) else None


def nearest_files(context: ToolContext, name: str, place: str) -> list[str]:
    """Return the files with the names nearest to one that does not exist, best first.

    Args:
        context: Of the call.
        name: As it was given.
        place: Where it would be, from the workspace's root on.
    """
    root = context.workspace.root
    found: dict[str, None] = {}
    folders = [root / Path(place).parent, root]
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in islice(entries, _MOST_NEAR):
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False) and folder == root and len(folders) < _MOST_FOLDERS:
                    folders.append(Path(entry.path))
                found[os.path.relpath(entry.path, root)] = None
    return [each for each in nearest_names(name, found) if context.may_read(each)]


def _respelled(root: Path, place: str) -> str:
    """Return a place with its names as the disk spells them, or "" if there is none or more than one."""
    made: list[str] = []
    for name in place.split("/"):
        names = (entry.name for entry in root.joinpath(*made).iterdir())
        alike = [each for each in names if _nfc(each) == _nfc(name)]
        if name not in alike and len(alike) != 1:
            return ""
        made.append(name if name in alike else alike[0])
    return "/".join(made)


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)
