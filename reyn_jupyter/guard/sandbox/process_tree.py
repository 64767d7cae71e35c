"""What the processes that a process started use together, as Linux tells it.

Invariants: a process that ended counts on, also one that nobody waits for. What cannot be read is an error, never
nothing. Nothing of it can be told outside of Linux: there the limits of each process hold alone.
"""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE = mmap.PAGESIZE
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100  # where there is a /proc to read
_GONE = (FileNotFoundError, ProcessLookupError)  # it ended meanwhile
_REFUSALS = 20  # looks in a row at which a process may not say what it wrote
_PASSES = 100  # over a tree that is killed


_ProcessId = tuple[int, int]  # its number, and when it began: numbers come again


@dataclass(frozen=True)
class _Used:
    """What was used up: seconds of processor time, bytes written to disks."""

    cpu: float
    written: int

    def __add__(self, other: _Used) -> _Used:
        return _Used(self.cpu + other.cpu, self.written + other.written)

    def __sub__(self, other: _Used) -> _Used:
        return _Used(self.cpu - other.cpu, self.written - other.written)

    def above_zero(self) -> _Used:
        return _Used(max(0.0, self.cpu), max(0, self.written))


_NOTHING = _Used(0.0, 0)


@dataclass(frozen=True)
class _Process:
    """One process as it is: its threads, its memory, what it and those that it waited for used up."""

    id: _ProcessId
    threads: int
    memory: int
    used: _Used


@dataclass(frozen=True)
class TreeUsage:
    """What a tree of processes uses.

    Attributes:
        processes: how many there are below the first, threads too.
        memory: bytes of these in memory, shared ones counted for each.
        cpu: seconds of processor time, of those that ended too.
        written: bytes written to disks, of those that ended too.
    """

    processes: int
    memory: int
    cpu: float
    written: int


class TreeMeter:
    """Measures again and again what a process and all below it use.

    A process that ended is in the figures of its parent, or in nobody's where its parent asked for no word of its
    children's ends. So what the ended ones had used is compared with what those that were there before and after
    gained, and what is missing is counted on. Two things are not counted: what such a process did after the last look
    at it, and what the others used up meanwhile, which hides as much.

    Args:
        root: the process; it is not among the processes, and their memory is without its own.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._last: dict[_ProcessId, _Used] = {}
        self._lost = _NOTHING
        self._refused: dict[_ProcessId, int] = {}

    def usage(self) -> TreeUsage:
        """Return what the tree uses now, and what it used up since the first look.

        Raises:
            OSError: it cannot be read.
        """
        processes = memory = 0
        now: dict[_ProcessId, _Used] = {}
        unread = set()  # whose end came between two files here: they count as ended at the next look
        for pid in (self._root, *_descendants(self._root)):
            try:
                process = self._read(pid)
            except _GONE:
                unread.add(pid)
                continue
            now[process.id] = process.used
            if pid != self._root:
                processes += process.threads
                memory += process.memory
        ended = gained = _NOTHING
        for process_id, last in self._last.items():
            if process_id not in now:
                pid, used = process_id[0], last if process_id[0] in unread else None
                with suppress(*_GONE):  # it may be there, and have got another parent while this one looked
                    process = self._read(pid)
                    used = process.used if process.id == process_id else used
                if used is None:
                    ended += last
                    continue
                now[process_id] = used
            gained += now[process_id] - last
        self._lost += (ended - gained).above_zero()
        self._last = now
        self._refused = {each: looks for each, looks in self._refused.items() if each in now}
        total = sum(now.values(), self._lost)
        return TreeUsage(processes, memory, total.cpu, total.written)

    def _read(self, pid: int) -> _Process:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # from the state on
        process_id = (pid, int(fields[19]))
        try:
            written = _written(pid)
            self._refused.pop(process_id, None)
        except PermissionError:
            # Linux says it of the dead to root alone, and of who is about to begin or to end. Who says nothing for
            # longer hides it, by a program that may be run and not be read.
            looks = self._refused[process_id] = self._refused.get(process_id, 0) + 1
            if looks > _REFUSALS and fields[0] != b"Z":
                raise
            written = self._last.get(process_id, _NOTHING).written
        used = _Used(sum(map(int, fields[11:15])) / _TICKS, written)
        return _Process(process_id, int(fields[17]), int(fields[21]) * _PAGE, used)


def kill_tree(root: int) -> None:
    """Kill a process and all below it, also what it starts meanwhile."""
    for _ in range(_PASSES):
        found = []
        with suppress(OSError):
            found = list(_descendants(root))
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            break
    with suppress(OSError):
        os.kill(root, signal.SIGKILL)


def _written(pid: int) -> int:
    for line in Path(f"/proc/{pid}/io").read_bytes().splitlines():
        if line.startswith(b"write_bytes:"):
            return int(line.split()[1])
    return 0


def _descendants(root: int) -> Iterator[int]:
    pending = [root]
    while pending:
        current = pending.pop()
        threads: list[str] = []
        with suppress(*_GONE):
            threads = os.listdir(f"/proc/{current}/task")
        for thread in threads:
            with suppress(*_GONE):
                children = [*map(int, Path(f"/proc/{current}/task/{thread}/children").read_bytes().split())]
                pending += children
                yield from children
