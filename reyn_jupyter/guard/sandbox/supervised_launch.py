"""A command that a small process of ours stands over, where no namespace holds it: the launcher and its owner's side.

Invariants: the launcher lives as long as a pipe of this process, so that the death of this process ends the command
too; the temporary folder of the command goes with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from reyn_jupyter.guard.sandbox.backend import file_of, read_to_end
from reyn_jupyter.guard.sandbox.confinement import NOT_ENDED_HINT, Confinement, SandboxError, SandboxLimits
from reyn_jupyter.guard.sandbox.egress import PORT, EgressProxy, received_listener
from reyn_jupyter.guard.sandbox.process_count import count_processes, give_back
from reyn_jupyter.guard.sandbox.visible_system import environment
from reyn_jupyter.support.files import tree_removal

CHANGED = ((1 << 15) - 1) & ~(1 << 6 | 1 << 9 | 1 << 11)  # all rights of Landlock but devices and sockets
_LAUNCHER = Path(__file__).parent / "launcher.py"
_living: weakref.WeakSet[SupervisedLaunch] = weakref.WeakSet()


class SupervisedLaunch:
    """A command as the launcher starts it.

    Args:
        argv: the command; its program is looked for in the PATH of its environment.
        isolation: what is taken from it beside its limits: ``abi``, the version of Landlock in use (0 for none),
            ``rules`` as (rights, path or descriptor, names that lead on from it), and ``ruleset`` and ``calls`` as
            hexadecimal bytes.
        reserve: bytes that the program sets aside and does not use, as V8 does. Linux counts them like those in use, so
            they are granted beside the limit of memory.
        inherited: the descriptors in the rules; they are closed as soon as the launcher is started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        limits: SandboxLimits,
        isolation: Mapping[str, Any],
        *,
        reserve: int = 0,
        inherited: Sequence[int] = (),
    ) -> None:
        self._confinement = confinement
        self.proxy = EgressProxy(confinement.hosts) if confinement.hosts else None
        self._way: socket.socket | None = None
        self._count = count_processes(limits.processes)
        self._temporary = tempfile.mkdtemp(prefix="reyn-sandbox-")
        plan: dict[str, Any] = {
            "argv": list(argv),
            "environment": environment(confinement, self._temporary, self.proxy),
            "folder": os.fspath(confinement.folder),
            "temporary": self._temporary,
            "remover": tree_removal.__file__,
            "limits": dict(_limits(limits, reserve)),
            "count": None if self._count is None else self._count.procs,
            **isolation,
        }
        if isolation["abi"]:
            plan["rules"] = [*isolation["rules"], (CHANGED, self._temporary, ())]
        self._said, said_theirs = os.pipe()
        self._left, left_theirs = os.pipe()
        life_theirs, self._life = os.pipe()
        given: tuple[int, ...] = (life_theirs, said_theirs, left_theirs, *inherited)
        if self.proxy is not None:
            self._way, theirs = socket.socketpair()
            plan["way"], plan["port"] = theirs.fileno(), PORT
            given += (theirs.detach(),)
        task = file_of(json.dumps(plan).encode())
        self.descriptors: tuple[int, ...] = (task, *given)
        words = map(str, (task, life_theirs, said_theirs, left_theirs))
        self.argv: Sequence[str] = (sys.executable, "-I", "-S", os.fspath(_LAUNCHER), *words)
        self.env: Mapping[str, str] = {"LC_ALL": "C.UTF-8"}
        self.cwd = "/"
        _living.add(self)

    async def release(self, process: asyncio.subprocess.Process) -> None:
        problem = await read_to_end(self._said)
        if problem:
            raise SandboxError(f"the command could not be started: {problem.decode('utf-8', 'replace')}")
        self._confinement.check_hidden()
        if self.proxy is not None and self._way is not None:
            await self.proxy.serve(await received_listener(self._way))

    def begin(self) -> None:
        """Do nothing: the launcher begins by itself."""

    def end(self, process: asyncio.subprocess.Process) -> None:
        self.let_go()

    async def wait_until_gone(self) -> None:
        # The launcher ends last, and says what it could not end. Several may wait, each by a descriptor of its own.
        if self._left < 0:
            return
        own = os.dup(self._left)
        try:
            remaining = await read_to_end(own)
        finally:
            os.close(own)
        if remaining:
            raise SandboxError(
                "not all that the command started has ended, though it was killed: "
                f"{remaining.decode('ascii', 'replace')}",
                NOT_ENDED_HINT,
                began=True,
            )

    def let_go(self) -> None:
        """Close the pipe that keeps the launcher alive."""
        descriptor, self._life = self._life, -1
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        self.let_go()
        pipes, self._said, self._left = (self._said, self._left), -1, -1
        for descriptor in pipes:
            if descriptor >= 0:
                os.close(descriptor)
        if self._way is not None:
            self._way.close()
        if self.proxy is not None:
            self.proxy.close()
        count, self._count = self._count, None
        give_back(count)
        temporary, self._temporary = self._temporary, ""
        if temporary and not _is_removed(temporary):
            # The launcher was ended at it. It may take minutes, which the loop is not held up for.
            threading.Thread(target=_remove, args=(temporary,), daemon=True).start()


def _is_removed(folder: str) -> bool:
    """Return whether a folder is gone, which is removed where it is empty."""
    with suppress(OSError):
        Path(folder).rmdir()
    return not os.path.lexists(folder)


def _remove(folder: str) -> None:
    with suppress(OSError):
        tree_removal.remove_tree(folder)


def _limits(limits: SandboxLimits, reserve: int) -> Iterator[tuple[str, int]]:
    """Yield the limits of each process by name; that of processes comes on top of those that there are."""
    yield "RLIMIT_CPU", limits.cpu_seconds
    yield "RLIMIT_DATA", limits.memory + reserve
    yield "RLIMIT_FSIZE", limits.file_bytes
    yield "RLIMIT_NOFILE", limits.open_files
    yield "RLIMIT_NPROC", limits.processes
    yield "RLIMIT_CORE", 0
    yield "RLIMIT_MEMLOCK", 0


def _forget_in_fork() -> None:
    """Close the pipes in a fork of this process, which would keep commands alive."""
    for launch in list(_living):
        launch.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_fork)
