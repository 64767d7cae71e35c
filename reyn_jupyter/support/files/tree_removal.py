"""Removing a folder that somebody else filled: however deep, wide or locked, and through no link or mount.

It knows nothing of the package, so that the launcher of a sandbox can read it alone.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def remove_tree(path: str | os.PathLike[str], *, dir_fd: int | None = None) -> None:
    """Remove a folder with all that is in it, without recursion and with one descriptor at a time.

    Paths in it may be longer than the system takes, and its folders without permissions. What cannot be removed, such
    as a folder on which something is mounted, keeps nothing else.

    Args:
        path: of the folder; its name in an open folder if `dir_fd` is given.
        dir_fd: the descriptor of that open folder, which stays open.

    Raises:
        OSError: the first thing that could not be removed; the folder is not there.
    """
    if os.unlink not in os.supports_dir_fd:
        import shutil

        shutil.rmtree(path)
        return
    if dir_fd is None:
        above, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - without following links
        current = os.open(above, _FOLDER)
    else:
        name, current = os.fspath(path), os.dup(dir_fd)
    pending: list[list[str]] = [[name]]  # the folders that are left at each level, from the top on
    entered: list[tuple[int, int]] = []  # who is above each level
    first: OSError | None = None
    try:
        while pending[-1] or entered:
            try:
                if pending[-1]:
                    inner = _open(pending[-1][-1], current)
                    entered.append(_identity(current))
                    os.close(current)
                    current = inner
                    pending.append([])
                    problem = _remove_files(current, pending[-1])
                    first = first or problem
                    continue
                current = _leave(current, entered.pop())
                pending.pop()
                os.rmdir(pending[-1][-1], dir_fd=current)
            except _MovedError as error:
                raise first or error from None
            except OSError as error:
                first = first or error
            pending[-1].pop()
    finally:
        os.close(current)
    if first is not None:
        raise first


class _MovedError(OSError):
    """A folder is no longer where it was entered."""


def _open(name: str, folder: int) -> int:
    try:
        inner = os.open(name, _FOLDER | _NO_LINK, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        inner = os.open(name, _FOLDER | _NO_LINK, dir_fd=folder)
    if _mount(inner) != _mount(folder):
        os.close(inner)
        raise OSError(errno.EBUSY, "something is mounted on this folder", name)
    with suppress(OSError):  # whoever may not change it may still be allowed to empty it
        os.fchmod(inner, 0o700)
    return inner


def _mount(folder: int) -> tuple[int, bytes]:
    """Return on which device and mount a folder lies; a bind mount of the same device is another one."""
    mount = b""
    with suppress(OSError), open(f"/proc/self/fdinfo/{folder}", "rb") as file:  # noqa: PTH123
        mount = next((line for line in file if line.startswith(b"mnt_id")), b"")
    return os.fstat(folder).st_dev, mount


def _leave(folder: int, above: tuple[int, int]) -> int:
    """Return the folder above one, which is closed. Raises OSError where that is another one by now."""
    outer = os.open("..", _FOLDER, dir_fd=folder)
    if _identity(outer) != above:
        os.close(outer)
        raise _MovedError("a folder was moved while it was removed")
    os.close(folder)
    return outer


def _remove_files(folder: int, folders: list[str]) -> OSError | None:
    """Remove all but the folders in a folder, and gather their names; return the first problem."""
    first: OSError | None = None
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        try:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)
        except OSError as error:
            first = first or error
    return first


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino
