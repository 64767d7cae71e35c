"""What a workspace asks of a path before and while it is used, and how it says no.

Invariant: a refusal names the path as the caller wrote it, bounded, and tells what to do; nothing here opens a file.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_NAME = 255  # bytes of one component
LONGEST_PATH = 4096  # bytes


class WorkspaceError(Exception):
    """A path that may not be used, or a file that could not be; the message says why and what to do."""


def as_prefix(folder: str) -> str:
    """How every path below a folder begins."""
    return folder if folder.endswith("/") else folder + "/"


def check_kind(real: str, status: os.stat_result | None, text: str, for_write: bool) -> None:
    """That there is nothing at a path, a file, or for reading a folder; `status` where it is known. Raises
    WorkspaceError."""
    try:
        mode = (os.lstat(real) if status is None else status).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{shown(text)} cannot be used: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        if for_write:
            raise WorkspaceError(f"{shown(text)} is a folder; name a file in it")
    elif not stat.S_ISREG(mode):
        raise WorkspaceError(f"{shown(text)} is no regular file (a device, pipe, socket or circular link)")


def checked(path: str | Path) -> str:
    """The path as text, if any file could have it. Raises WorkspaceError."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise WorkspaceError("a path must be text")
    if not text.strip():
        raise WorkspaceError('the path is empty; "." is the workspace itself')
    if "\0" in text:
        raise WorkspaceError("the path holds a NUL character, which no file name can")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise WorkspaceError(f"{shown(text)} holds characters that no file name can") from None
    parts = text.replace("\\", "/").split("/")
    if len(encoded) >= LONGEST_PATH or any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise WorkspaceError(f"{shown(text)} is too long: {LONGEST_NAME} bytes a name, {LONGEST_PATH} in all")
    if ".." in parts:
        raise WorkspaceError(f"{shown(text)} climbs with '..'; name the file from the workspace root")
    if parts[0].startswith("~"):
        raise WorkspaceError(f"{shown(text)}: '~' is not expanded; name the file from the workspace root")
    return text


def shown(text: str) -> str:
    """A path in a message: quoted and bounded."""
    return repr(text if len(text) <= 120 else text[:119] + "…")


def need_regular(status: os.stat_result, name: str) -> None:
    """That a file is a regular one. Raises WorkspaceError."""
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{shown(name)} is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{shown(name)} is no regular file (a device, pipe or socket)")


def mode_to_keep(last: str, folder: int, name: str) -> int | None:
    """The permission bits of the file that is to be replaced; None for a new one. Raises WorkspaceError.

    Args:
        last: its name in the open `folder`.
        name: what messages call it.
    """
    try:
        status = os.stat(last, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    need_regular(status, name)
    if not status.st_mode & 0o222:
        raise WorkspaceError(f"{shown(name)} is read-only; make it writable first (chmod u+w)")
    return stat.S_IMODE(status.st_mode) & 0o777


@contextmanager
def plainly(name: str) -> Iterator[None]:
    """The operating system's refusals, in words."""
    try:
        yield
    except FileNotFoundError:
        raise WorkspaceError(f"{shown(name)} does not exist") from None
    except NotADirectoryError:
        raise WorkspaceError(
            f"{shown(name)}: a part of this path is a file or a link, not a folder"
        ) from None
    except OSError as error:
        raise WorkspaceError(f"{shown(name)} cannot be used: {error.strerror or error}") from None
