"""What a sandbox is to the runner: how a command is started in it, and how its end is reached.

Invariant: a command begins only after its limits hold, and ends with the process that started it, however that ends.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Protocol

from reyn_jupyter.guard.sandbox.confinement import Confinement, Language, SandboxLimits, View
from reyn_jupyter.guard.sandbox.egress import EgressProxy

_MOST_SAID = 1 << 16  # bytes that are read of what a starting sandbox says


class Launch(Protocol):
    """One command on its way into a sandbox.

    Attributes:
        argv, env, cwd: of the process to start.
        descriptors: what it inherits beside its three streams; closed here as soon as it is started.
        proxy: the way to the hosts of its confinement; None where there are none. It ends with `close`.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    descriptors: tuple[int, ...]
    proxy: EgressProxy | None

    def begin(self) -> None:
        """Let the command begin at once, without the limits that are set from outside; for a probe."""

    async def release(self, process: asyncio.subprocess.Process) -> None:
        """Let the command begin under its limits. Raises SandboxError where the sandbox could not be made."""

    def end(self, process: asyncio.subprocess.Process) -> None:
        """Kill the command with every process that it started; it need not run any more."""

    async def wait_until_gone(self) -> None:
        """Wait, once the launched process has ended, until nothing that the command started is left.

        Raises:
            SandboxError: something of it does not end, though it was killed.
        """

    def close(self) -> None:
        """Give back what was made for the command; closing again does nothing."""


class SandboxBackend(Protocol):
    """A way to isolate commands: one file a backend.

    Attributes:
        name: as settings and results call it.
        language: what it runs: programs, or files of TypeScript and JavaScript or of Python, of which the first word
            is the file.
        isolation: what it keeps apart, in a sentence.
        view: "own", if a command can get another folder at a path than the one that is there; otherwise what its rules
            are about: "targets", where links lead, or "paths", how a path is written.
    """

    name: str
    language: Language
    isolation: str
    view: View

    def problem(self) -> str | None:
        """Return why it does not isolate here, as a clause, by really running it; None where it does."""

    def launch(self, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits) -> Launch:
        """Return the command as it is started. Raises SandboxError where the confinement cannot be held."""


async def read_to_end(descriptor: int) -> bytes:
    """Return what comes out of a pipe until it is closed, without blocking the loop; at most 64 KiB are kept."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    pieces = bytearray()

    def read() -> None:
        try:
            piece = os.read(descriptor, _MOST_SAID)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        pieces.extend(piece[: _MOST_SAID - len(pieces)])
        if not piece and not ended.done():
            ended.set_result(None)

    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, read)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
    return bytes(pieces)


async def wait_for_end(process: int) -> None:
    """Return once a process has ended that a descriptor stands for, whoever its parent is; several may wait."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    own = os.dup(process)
    loop.add_reader(own, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(own)
        os.close(own)


def file_of(data: bytes) -> int:
    """Return the descriptor of a nameless file that holds these bytes, at its start."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("reyn-sandbox")
    else:  # macOS
        with tempfile.TemporaryFile() as temporary:
            descriptor = os.dup(temporary.fileno())
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
