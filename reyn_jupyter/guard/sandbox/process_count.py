"""A number of processes that root keeps to, where Linux has one: a control group for each command.

A limit of the system holds for every user but root. Where the kernel runs as root (a container, a hosted notebook) and
may make control groups, each command gets one that holds so many processes; where it may make none, only the look at
what a command uses ends one that makes too many.

Invariants: a group holds one command at a time, and is given to the next one only when it is empty; groups go when the
process that made them ends, and those of a process that was killed with the next one that makes some.
Source: the Linux kernel's documentation, "Process Number Controller" (v1) and "Control Group v2", PID.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_HEADROOM = 16  # beyond the limit, so that a command is ended for it, and not only kept from making more
_NAME = "reyn-commands"
_LEAVING = 2.0  # seconds that the last processes of a command may take to leave its group


class ProcessCount:
    """A control group that holds a command to a number of processes.

    Args:
        folder: of the group.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def procs(self) -> str:
        """The file that a process writes ``0`` into, to enter the group."""
        return os.fspath(self._folder / "cgroup.procs")

    def hold(self, most: int) -> None:
        """Let the group have so many processes and threads, and a few more. Raises OSError."""
        (self._folder / "pids.max").write_text(str(most + _HEADROOM))

    def add(self, process: int) -> None:
        """Put a process, and what it starts from now on, into the group. Raises OSError."""
        Path(self.procs).write_text(str(process))

    @property
    def is_empty(self) -> bool:
        """Return whether no process is in it."""
        return not Path(self.procs).read_text()

    def remove(self, patience: float = 0.0) -> None:
        """Remove it once it is empty, within so many seconds; otherwise it stays."""
        end = time.monotonic() + patience
        while True:
            try:
                self._folder.rmdir()
            except OSError as error:
                # The kernel lets a process that was killed leave only some time after its parent was told.
                if error.errno != errno.EBUSY or time.monotonic() > end:
                    return
                time.sleep(0.01)
            else:
                return


def count_processes(most: int) -> ProcessCount | None:
    """Return a group for a command that may have so many processes and threads.

    None where the system holds the user to a number by itself, or lets nobody make a group.

    Example:
        >>> count_processes(128) is None or os.geteuid() == 0
        True
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return None
    parent = _own_group()
    return None if parent is None else _Groups.of(parent, os.getpid()).take(most)


def give_back(count: ProcessCount | None) -> None:
    """Take a group back once its command has ended; the next command may get it."""
    if count is not None:
        _Groups.of(Path(count.procs).parent.parent, os.getpid()).put_back(count)


class _Groups:
    """The groups of this process below one of the system's."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._idle: list[ProcessCount] = []
        self._made: list[ProcessCount] = []
        self._works = True
        self._lock = threading.Lock()
        self._remove_orphans()
        atexit.register(self._close)

    @staticmethod
    @cache
    def of(parent: Path, process: int) -> _Groups:
        """Return those of a process; a fork has its own."""
        return _Groups(parent)

    def take(self, most: int) -> ProcessCount | None:
        """Return an empty group; None where none can be made."""
        with self._lock:
            return self._take(most) if self._works else None

    def _take(self, most: int) -> ProcessCount | None:
        for group in self._idle:
            with suppress(OSError):
                if group.is_empty:
                    group.hold(most)
                    self._idle.remove(group)
                    return group
        try:
            group = ProcessCount(self._parent / f"{_NAME}-{os.getpid()}-{len(self._made)}")
            Path(group.procs).parent.mkdir()
            self._made.append(group)
            group.hold(most)
        except OSError:  # read-only, or without the controller
            self._works = False
            return None
        return group

    def put_back(self, group: ProcessCount) -> None:
        """Keep a group for the next command."""
        self._idle.append(group)

    def _remove_orphans(self) -> None:
        with suppress(OSError):
            for folder in self._parent.glob(f"{_NAME}-*"):
                owner = folder.name.removeprefix(f"{_NAME}-").partition("-")[0]
                if not Path("/proc", owner).exists():
                    ProcessCount(folder).remove()

    def _close(self) -> None:
        end = time.monotonic() + _LEAVING
        for group in self._made:
            group.remove(end - time.monotonic())


@cache
def _own_group() -> Path | None:
    """Return the folder of this process's group that counts processes; None where no mount shows it."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    for line in groups:
        _, controllers, own = line.split(":", 2)
        for mount in mounts:
            place, _, kind = mount.partition(" - ")
            root, point = place.split()[3:5]
            named = kind.split()
            first = (
                named[0] == "cgroup" and "pids" in named[-1].split(",") and "pids" in controllers.split(",")
            )
            second = named[0] == "cgroup2" and controllers == ""
            if not (first or second) or not (own == root or own.startswith(root.rstrip("/") + "/")):
                continue
            folder = Path(point + "/" + own[len(root.rstrip("/")) :].lstrip("/"))
            if first or _divides(folder):
                return folder
    return None


def _divides(folder: Path) -> bool:
    """Return whether a group of the second version lets those below it count processes."""
    with suppress(OSError):
        return "pids" in (folder / "cgroup.subtree_control").read_text().split()
    return False
