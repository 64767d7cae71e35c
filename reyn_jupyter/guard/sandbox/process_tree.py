"""What the processes that a process started use together, as Linux tells it.

Nothing of it can be told elsewhere: there the limits of each process hold alone.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE = mmap.PAGESIZE
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100  # where there is a /proc to read


@dataclass(frozen=True)
class TreeUsage:
    """What a tree of processes uses.

    Attributes:
        processes: how many there are, threads too.
        memory: bytes in memory, shared ones counted for each.
        cpu: seconds of processor time, of those that ended too.
        written: bytes written to disks, of those that ended too.
    """

    processes: int
    memory: int
    cpu: float
    written: int


def tree_usage(root: int) -> TreeUsage:
    """Return what the processes below one use, without itself."""
    processes = memory = written = 0
    cpu = 0.0
    for pid in _descendants(root):
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            processes += int(fields[17])  # threads
            memory += int(fields[21]) * _PAGE
            cpu += sum(map(int, fields[11:15])) / _TICKS
            written += _written(pid)
    return TreeUsage(processes, memory, cpu, written)


def _written(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/io").read_bytes().splitlines():
            if line.startswith(b"write_bytes:"):
                return int(line.split()[1])
    return 0


def _descendants(root: int) -> Iterator[int]:
    pending = [root]
    while pending:
        current = pending.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{current}/task"):
                children = Path(f"/proc/{current}/task/{thread}/children").read_bytes().split()
                pending += map(int, children)
                yield from map(int, children)
