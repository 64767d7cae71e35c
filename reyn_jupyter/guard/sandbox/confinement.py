"""What a command in a sandbox may reach and use, and what came of it: the types that all backends share."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reyn_jupyter.guard.held_place import open_folder
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW
from reyn_jupyter.support.secret import Secret

Status = Literal["ok", "failed", "timeout", "limit"]
Language = Literal["program", "typescript", "python"]
View = Literal["own", "targets", "paths"]  # see `SandboxBackend`
NOT_ENDED_HINT = (
    "The system holds such a process until it is done (a file on a network, a debugger): end what it waits "
    "for."
)


class SandboxError(Exception):
    """A command that cannot be run in a sandbox, or not to its end; the message says why, `hint` what to do next.

    Attributes:
        began: whether the command had begun, so that its work may be done.
    """

    def __init__(self, message: str, hint: str = "", *, began: bool = False) -> None:
        super().__init__(message)
        self.hint, self.began = hint, began


class PlacesMovedError(SandboxError):
    """A file or folder of a confinement was moved or replaced while the sandbox started, so nothing ran in it."""


PATH_ONLY: int = getattr(os, "O_PATH", os.O_RDONLY)


@dataclass(frozen=True)
class Confinement:
    """What a command sees of the machine. Everything has the same path inside as outside.

    Args:
        folder: where it starts to work; it lies in one of the folders below.
        readable: files and folders that it may read and execute, beside the system's programs and this Python.
        writable: folders that it may change. What is not on this list, it cannot write, but for a temporary folder of
            its own (``$TMPDIR``), which goes with it.
        hidden: files and folders below those that it cannot read; a file reads as empty or not at all. If their numbers
            in the file system are given as well (see `hidden_files`), no command begins when one of them was replaced.
        environment: variables beside a few harmless ones (PATH, HOME, LANG, TMPDIR). A secret stands there alone.
        hosts: what it may reach over HTTP, through a proxy of ours: example.org (ports 80 and 443),
            ``localhost:8080``, ``*.example.org``. Ask the user first.
        held: descriptors of what the command gets at some of these paths, opened when the path was judged. What lies
            below such a path is reached from its descriptor, through no link. Other paths are opened at the start.

    Example:
        >>> Confinement(Path("/work"), readable=(Path("/work"),), hidden=(Path("/work/.env"),)).hosts
        ()
    """

    folder: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: Collection[Path] = ()
    environment: Mapping[str, str | Secret] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    held: Mapping[Path, int] = field(default_factory=dict)

    def open(self, path: Path) -> int:
        """Return a new descriptor of what the command gets at a path. Raises PlacesMovedError if it is not there."""
        try:
            for above in (path, *path.parents):
                if above in self.held:
                    return _open_below(self.held[above], path.relative_to(above).parts)
            return os.open(path, PATH_ONLY | CLOSE_ON_EXEC)
        except OSError as error:
            raise PlacesMovedError(
                f"{path} cannot be shown in the sandbox: {error.strerror or error}",
                "It was moved or replaced. Look where it is now, and run the command again.",
            ) from None

    def check_hidden(self) -> None:
        """Check that the hidden files are still those that were judged. Raises PlacesMovedError."""
        if not isinstance(self.hidden, Mapping):
            return
        for path, number in self.hidden.items():
            try:
                same = path.lstat().st_ino == number
            except OSError:
                same = False
            if not same:
                raise PlacesMovedError(
                    f"{path.name} is hidden from commands, and it was moved, removed or replaced while the sandbox "
                    "started",
                    "Run the command again when no other program changes this file.",
                )


def _open_below(folder: int, parts: tuple[str, ...]) -> int:
    if not parts:
        return os.dup(folder)
    above = open_folder(folder, parts[:-1])
    try:
        found = os.open(parts[-1], PATH_ONLY | NO_FOLLOW | CLOSE_ON_EXEC, dir_fd=above)
    finally:
        os.close(above)
    if stat.S_ISLNK(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.ELOOP, "a link is there")
    return found


@dataclass(frozen=True)
class SandboxLimits:
    """What a command may use, with all the processes that it starts.

    Args:
        seconds: of wall time; None sets no limit (for a program that lives as long as the session).
        cpu_seconds: of processor time, together.
        memory: bytes of private memory, of one process and of all together.
        processes: how many at the same time.
        file_bytes: bytes of one file that is written.
        temporary_bytes: bytes of the temporary folder, where that is in memory.
        written_bytes: bytes written to the disk, together.
        open_files: descriptors of one process.
        output: bytes kept of each of standard output and standard error; the rest is read and counted.
    """

    seconds: float | None = 60.0
    cpu_seconds: int = 120
    memory: int = 2 << 30
    processes: int = 128
    file_bytes: int = 256 << 20
    temporary_bytes: int = 256 << 20
    written_bytes: int = 1 << 30
    open_files: int = 512
    output: int = 1 << 20


@dataclass(frozen=True)
class HostTraffic:
    """What a command exchanged with one host.

    Attributes:
        host: as the person consented to it.
        connections: how many were made.
        sent, received: bytes, encrypted ones as they are.
    """

    host: str
    connections: int
    sent: int
    received: int


@dataclass(frozen=True)
class SandboxResult:
    """What a command did.

    Attributes:
        status: "ok" (it ended with 0), "failed" (with another code), "timeout", or "limit" (it used too much).
        backend, isolation: the name of the sandbox that held it, and what that one keeps apart, in a sentence.
        returncode: as a shell tells it: 128 and the signal's number for one that a signal ended; None where it was
            ended by the sandbox.
        stdout, stderr: the bytes kept of what it wrote.
        stdout_bytes, stderr_bytes: how many it wrote.
        reason: which limit ended it, as a clause; "" where none did.
        seconds: wall time.
        traffic: what it exchanged with each host that it reached.
        refusals: what it tried to reach in vain, in sentences.
    """

    status: Status
    backend: str
    isolation: str
    returncode: int | None
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    reason: str
    seconds: float
    traffic: tuple[HostTraffic, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        """True if it wrote more than was kept."""
        return len(self.stdout) < self.stdout_bytes or len(self.stderr) < self.stderr_bytes
