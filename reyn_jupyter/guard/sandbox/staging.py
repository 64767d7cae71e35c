"""A folder of one command in the workspace's state: the private copies that it writes in, and what is set aside.

Invariants: it is reached from the workspace's root through no link, held open, and removed from there. Other users get
nothing of it. A folder of a kernel that was killed is removed with the next one that is made.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

from reyn_jupyter.guard.held_place import open_folder
from reyn_jupyter.guard.sandbox.confinement import SandboxError
from reyn_jupyter.guard.workspace import STATE_FOLDER
from reyn_jupyter.support.files.locks import release, try_lock
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, FOLDER, NO_FOLLOW
from reyn_jupyter.support.files.tree_removal import remove_tree

_COMMANDS, _SET_ASIDE = "commands", "set-aside"
_LOCK = ".lock"


class Staging:
    """A new folder of one command, held until `close`.

    Args:
        root: the descriptor of the workspace's root, which stays open.

    Attributes:
        descriptor: of the folder.
        place: of the folder, from the workspace's root on.

    Raises:
        SandboxError: it cannot be made.
    """

    def __init__(self, root: int) -> None:
        self._name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        self.place = f"{STATE_FOLDER}/{_COMMANDS}/{self._name}"
        self.descriptor = self._lock = self._above = self._state = -1
        try:
            self._state = made_folder(root, STATE_FOLDER)
            self._above = made_folder(self._state, _COMMANDS)
            _sweep(self._above)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
            self._lock = os.open(self._name, flags, 0o600, dir_fd=self._above)
            try_lock(self._lock, required=False)
            # It gets the name that is swept once it is held.
            os.rename(self._name, self._name + _LOCK, src_dir_fd=self._above, dst_dir_fd=self._above)
            self.descriptor = made_folder(self._above, self._name)
        except OSError as error:
            self.close()
            raise SandboxError(
                f"the folder for a private copy, {STATE_FOLDER}/{_COMMANDS}, cannot be made: "
                f"{error.strerror or error}",
                f"Free some space, or make the folder {STATE_FOLDER} a writable one.",
            ) from None

    def close(self) -> None:
        """Remove the folder with all that is in it; closing again does nothing."""
        if self.descriptor >= 0:
            with suppress(OSError):
                remove_tree(self._name, dir_fd=self._above)
        if self._lock >= 0:
            with suppress(OSError):
                os.unlink(self._name + _LOCK, dir_fd=self._above)
            release(self._lock)
        for descriptor in (self.descriptor, self._above, self._state):
            if descriptor >= 0:
                os.close(descriptor)
        self.descriptor = self._lock = self._above = self._state = -1

    def set_aside(self, name: str, folder: int, place: str) -> str:
        """Move a file out of the folder to where it stays for the user, and return that place.

        Args:
            name: in the open folder `folder`.
            place: where the file belongs, from the workspace's root on.

        Raises:
            OSError: it cannot be moved.
        """
        parts = (_SET_ASIDE, self._name, *place.split("/"))
        above = os.dup(self._state)
        try:
            for part in parts[:-1]:
                inner = made_folder(above, part)
                os.close(above)
                above = inner
            os.rename(name, parts[-1], src_dir_fd=folder, dst_dir_fd=above)
        finally:
            os.close(above)
        return "/".join((STATE_FOLDER, *parts))


def made_folder(above: int, name: str) -> int:
    """Return the descriptor of a folder in an open one, made for this user alone if it is not there. Raises OSError."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=above)
    return os.open(name, FOLDER, dir_fd=above)


def _sweep(above: int) -> None:
    """Remove the folders of kernels that are gone."""
    for lock in _names(above):
        if not lock.endswith(_LOCK):
            continue
        with suppress(OSError):  # it was swept meanwhile, or this file system has no locks
            descriptor = os.open(lock, os.O_RDWR | NO_FOLLOW | CLOSE_ON_EXEC, dir_fd=above)
            try:
                if try_lock(descriptor):
                    with suppress(FileNotFoundError):
                        remove_tree(lock.removesuffix(_LOCK), dir_fd=above)
                    os.unlink(lock, dir_fd=above)
            finally:
                release(descriptor)


def _names(folder: int) -> Sequence[str]:
    own = open_folder(folder, ())
    try:
        return os.listdir(own)  # noqa: PTH208 - of a descriptor
    finally:
        os.close(own)
