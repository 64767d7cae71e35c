"""How the program of a server is started: with the person's rights, or in a sandbox where its entry says so.

Invariants: a program whose entry asks for a sandbox runs in the one in force or not at all. There it sees the files
that belong to itself and those that its entry names, without secret files and the state of sessions, and reaches the
hosts that its entry names. It ends with the connection, the session and this process, whichever way it was started.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reyn_jupyter.guard.sandbox import Confinement, SandboxError, SandboxLimits, find_sandbox
from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.state_folder import state_base
from reyn_jupyter.guard.workspace import STATE_FOLDER, Workspace, protects
from reyn_jupyter.runtime.access.mcp_access import McpSandbox, McpServer
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.secret import Secret

LIMITS = SandboxLimits(
    seconds=None, cpu_seconds=24 * 3600, memory=4 << 30, processes=256, written_bytes=8 << 30, open_files=1024
)
_BROUGHT_BY = {"uvx": "pip install uv", "uv": "pip install uv", "npx": "Node.js", "node": "Node.js"}
_OF_ENVIRONMENT = ("bin", "lib", "lib64", "pyvenv.cfg")


class SandboxChoice(Protocol):
    """Which sandbox is wanted, as the settings have it."""

    backend: str
    minimum: str | None


@dataclass(frozen=True)
class ServerProgram:
    """A program under way; `end` waits until it is gone, `let_go` does not."""

    process: asyncio.subprocess.Process
    end: Callable[[], Awaitable[None]]
    let_go: Callable[[], object]


class NotInstalledError(Exception):
    """There is no program of the name that a server's entry gives."""


def _check_installed(server: McpServer) -> None:
    """Look for a program on PATH. Raises NotInstalledError."""
    name, places = server.command, server.env.get("PATH")
    path = places.reveal() if isinstance(places, Secret) else places
    if "/" not in name and shutil.which(name, path=path) is None:
        brings = _BROUGHT_BY.get(name)
        raise NotInstalledError(f"{name} is not installed{f': {brings} brings it' if brings else ''}")


class ServerPrograms:
    """Starts the programs of a session's servers.

    Args:
        programs: owns those without a sandbox.
        folder: the workspace: where a program works unless its entry says otherwise, and where relative paths begin.
        choice: gives the settings of the sandbox.
    """

    def __init__(self, programs: OwnedPrograms, folder: Path, choice: Callable[[], SandboxChoice]) -> None:
        self._programs = programs
        self._folder = folder
        self._choice = choice

    async def start(self, server: McpServer) -> ServerProgram:
        """Start a server's program with pipes to its three streams.

        Raises:
            OSError: no process can be made.
            NotInstalledError: there is no such program.
            SandboxError: its entry asks for a sandbox, and there is none, or none that can hold what it says.
        """
        if server.sandbox is None:
            _check_installed(server)
            owned = await self._programs.start(server.argv, env=server.env, cwd=server.cwd or self._folder)
            return ServerProgram(owned.process, owned.end, owned.let_go)
        wanted = self._choice()
        sandbox = await asyncio.to_thread(find_sandbox, "program", wanted.backend, wanted.minimum)
        argv, confinement = await asyncio.to_thread(self._confined, server, server.sandbox)
        program = await sandbox.open(argv, confinement, LIMITS)
        return ServerProgram(program.process, program.end, program.kill)

    def _confined(self, server: McpServer, given: McpSandbox) -> tuple[tuple[str, ...], Confinement]:
        command = shutil.which(server.command)
        if command is None:
            raise SandboxError(f"{server.command} is not installed")
        argv = (os.path.abspath(command), *server.args)  # noqa: PTH100 - a link stays one
        readable, writable = (
            tuple(self._place(path) for path in paths) for paths in (given.readable, given.writable)
        )
        seen = (*readable, *writable)
        if any(self._folder.is_relative_to(path) for path in seen):
            (self._folder / STATE_FOLDER).mkdir(
                mode=0o700, exist_ok=True
            )  # what is not there yet cannot be hidden
        cwd = Path(os.path.realpath(server.cwd or self._folder))
        return argv, Confinement(
            cwd if any(cwd.is_relative_to(path) for path in seen) else Path("/"),
            tuple(dict.fromkeys((*program_paths(argv), *readable))),
            writable,
            tuple(
                dict.fromkeys(
                    each for path in seen if path.is_dir() for each in hidden_files(Workspace(path))
                )
            ),
            server.env,
            given.hosts,
        )

    def _place(self, path: str) -> Path:
        """Return where a path of an entry leads. Raises SandboxError for one that no program may be given."""
        place = Path(os.path.realpath(self._folder / path))
        if not place.exists():
            raise SandboxError(f"{path} is not there, and its entry gives it to the server")
        if protects(place.parts[-3:]) or place.is_relative_to(os.path.realpath(state_base())):
            raise SandboxError(f"{path} holds secrets or the state of sessions, which no sandbox is given")
        return place


def program_paths(argv: Sequence[str]) -> Iterator[Path]:
    """Yield what belongs to an installed program: its file, its environment of Python, its modules of Node."""
    for number, word in enumerate(argv[:2]):
        path = Path(word)
        if not path.is_absolute() or not path.is_file():
            continue
        environment = path.parent.parent
        if "node_modules" in path.parts:
            yield Path(*path.parts[: path.parts.index("node_modules") + 1])
        elif (environment / "pyvenv.cfg").is_file():
            base = Path(os.path.realpath(environment / "bin" / "python")).parent.parent
            for folder in (environment, base):
                if not folder.is_relative_to("/usr"):
                    yield from (each for name in _OF_ENVIRONMENT if (each := folder / name).exists())
        elif number == 0:  # another file is no part of the program, and has to be named
            yield path
            yield Path(os.path.realpath(path))
