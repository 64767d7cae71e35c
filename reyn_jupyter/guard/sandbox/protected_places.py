"""What lies where no action may write, below the folders that a command may write in: ``.git``, names of secret files.

Invariants: what is there before a command stays as it is, since it is shown read-only; what a command puts there is
removed after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from reyn_jupyter.guard.workspace import protects
from reyn_jupyter.support.files.tree_removal import remove_tree


class ProtectedPlaces:
    """The protected places below some folders, as they are before a command.

    Args:
        root: the workspace's root.
        folders: from the root on.
    """

    def __init__(self, root: Path, folders: Sequence[str]) -> None:
        self._root = root
        self._folders = folders
        self._before = dict(self._found())

    def __contains__(self, place: object) -> bool:
        """Return whether a place, from the root on, was protected and there before."""
        return place in self._before

    @property
    def paths(self) -> tuple[Path, ...]:
        """What was there before: a command may read it, as far as it is not hidden, and never write it. Links are not
        among it: one that was replaced is removed.
        """
        return tuple(self._root / place for place, link in self._before.items() if link is None)

    def remove_new(self) -> tuple[str, ...]:
        """Remove what was put in such places since, and return these, from the root on."""
        new = tuple(
            place for place, link in self._found() if place not in self._before or self._before[place] != link
        )
        for place in new:
            path = self._root / place
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):
                    remove_tree(path)
            else:
                with suppress(OSError):
                    path.unlink()
        return new

    def _found(self) -> Iterator[tuple[str, int | None]]:
        """Yield each place, with its number in the file system where it is a link."""
        for folder in self._folders:
            for place, entry in walk_places(self._root, folder):
                if is_protected(place):
                    yield place, entry.inode() if entry.is_symlink() else None


def is_protected(place: str) -> bool:
    """Return whether no action may write at a place, from the root on."""
    return protects(tuple(place.split("/")[-3:]), for_write=True) is not None


def walk_places(root: Path, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield everything below a folder by its place, through no link, and nothing below what is protected."""
    pending = [folder]
    while pending:
        current = pending.pop()
        with suppress(OSError), os.scandir(root / current) as entries:
            for entry in list(entries):
                place = entry.name if current == "." else f"{current}/{entry.name}"
                yield place, entry
                if entry.is_dir(follow_symlinks=False) and not is_protected(place):
                    pending.append(place)
