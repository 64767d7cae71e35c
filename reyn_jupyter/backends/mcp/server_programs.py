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

from reyn_jupyter.backends.mcp_servers.workspace_code import relative_path_problem
from reyn_jupyter.guard.held_place import WorkspaceError, place_below
from reyn_jupyter.guard.sandbox import Confinement, SandboxError, SandboxLimits, find_sandbox
from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.workspace import STATE_FOLDER, Workspace, protects
from reyn_jupyter.runtime.access.mcp_access import McpSandbox, McpServer
from reyn_jupyter.support.files.state_base import state_base
from reyn_jupyter.support.installed_places import untrusted_folder
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.programs.program_search import (
    SAFE_PATH,
    find_program,
    is_runner,
    program_environment,
)
from reyn_jupyter.support.reyn_line import reyn_line
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


class CannotStartError(Exception):
    """A server that cannot be started as its entry says; the message is a clause that says what to do."""


def _check_installed(server: McpServer, path: str | None) -> None:
    """Look for a program on PATH. Raises CannotStartError."""
    name = server.command
    if "/" in name or find_program(name, path) is not None:
        return
    brings = _BROUGHT_BY.get(name)
    left_out = shutil.which(name, path=path)
    raise CannotStartError(
        f"{name} is found in {Path(left_out).parent} alone, which is not searched as long as the folder is not "
        "trusted; write the whole path of the program"
        if left_out
        else f"{name} is not installed{f': {brings} brings it' if brings else ''}"
    )


class ServerPrograms:
    """Starts the programs of a session's servers.

    Args:
        programs: owns those without a sandbox.
        folder: The workspace, where relative folders of a sandbox begin. A program works in an empty folder unless
            its entry names another one.
        choice: gives the settings of the sandbox.
    """

    def __init__(self, programs: OwnedPrograms, folder: Path, choice: Callable[[], SandboxChoice]) -> None:
        self._programs = programs
        self._folder = folder
        self._choice = choice

    async def start(self, server: McpServer) -> ServerProgram:
        """Start a server's program with pipes to its three streams.

        Raises:
            OSError: No process can be made.
            CannotStartError: There is no such program, a path of the entry is ambiguous, or a runner would look for
                code in an untrusted folder.
            SandboxError: The entry asks for a sandbox, and there is none, or none that can hold what the entry says.
        """
        path = server.env.get("PATH")
        _check_installed(server, path.reveal() if isinstance(path, Secret) else path)
        cwd = self._working_folder(server)
        if server.sandbox is None:
            owned = await self._programs.start(server.argv, env=server.env, cwd=cwd)
            return ServerProgram(owned.process, owned.end, owned.let_go)
        wanted = self._choice()
        sandbox = await asyncio.to_thread(find_sandbox, "program", wanted.backend, wanted.minimum)
        argv, confinement = await asyncio.to_thread(self._confined, server, server.sandbox, cwd)
        program = await sandbox.open(argv, confinement, LIMITS)
        return ServerProgram(program.process, program.end, program.kill)

    def _working_folder(self, server: McpServer) -> Path | None:
        """Return the folder that an entry names, or None if it names none. Raises CannotStartError."""
        problem = relative_path_problem(server.command, server.args, server.cwd)
        if problem is not None:
            raise CannotStartError(problem)
        if server.cwd is None:
            return None
        try:
            cwd = self._place(server.cwd)
        except WorkspaceError as error:
            raise CannotStartError(f'its "cwd" cannot be used: {error}') from None
        if is_runner(server.command) and untrusted_folder(cwd) is not None:
            raise CannotStartError(
                f'{server.command} would look for code in {cwd}, which is not trusted; leave "cwd" out, or write the '
                f"entry into the workspace's own file ({reyn_line('mcp add', server.name, scope='workspace')} -- …)"
            )
        return cwd

    def _confined(
        self, server: McpServer, given: McpSandbox, cwd: Path | None
    ) -> tuple[tuple[str, ...], Confinement]:
        variables = {
            name: each.reveal() if isinstance(each, Secret) else each for name, each in server.env.items()
        }
        name = server.command if "/" not in server.command else os.fspath((cwd or Path()) / server.command)
        command = find_program(name, variables.get("PATH"))
        if command is None:
            raise SandboxError(f"{server.command} is not installed")
        argv = (command, *server.args)
        readable, writable = (tuple(map(self._given, paths)) for paths in (given.readable, given.writable))
        seen = (*readable, *writable)
        if any(self._folder.is_relative_to(path) for path in seen):
            (self._folder / STATE_FOLDER).mkdir(
                mode=0o700, exist_ok=True
            )  # what is not there yet cannot be hidden
        inside = cwd is not None and any(cwd.is_relative_to(path) for path in seen)
        safe = program_environment(argv, variables, cwd if inside else None)
        # An entry without a PATH of its own has that of the sandbox.
        changed = {SAFE_PATH, *({"PATH"} & variables.keys())}
        return argv, Confinement(
            cwd if cwd is not None and inside else Path("/"),
            tuple(dict.fromkeys((*program_paths(argv), *readable))),
            writable,
            tuple(
                dict.fromkeys(
                    each for path in seen if path.is_dir() for each in hidden_files(Workspace(path))
                )
            ),
            {**server.env, **{name: safe[name] for name in changed if name in safe}},
            given.hosts,
        )

    def _place(self, path: str | Path) -> Path:
        """Return where a path of an entry leads: through no link of the workspace if it is in there.

        Raises:
            WorkspaceError: It is in the workspace, and leads out or crosses a link.
        """
        place = self._folder / path
        for above in (*reversed(place.parents), place):
            if os.path.realpath(above) == os.fspath(self._folder):
                return place_below(self._folder, place.relative_to(above))
        return Path(os.path.realpath(place))

    def _given(self, path: str) -> Path:
        """Return the place of a file or folder for a sandbox. Raises SandboxError if no program may be given it."""
        try:
            place = self._place(path)
        except WorkspaceError as error:
            raise SandboxError(f"{error}, and its entry gives it to the server") from None
        if not place.exists():
            raise SandboxError(f"{path} does not exist, and its entry gives it to the server")
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
                    places = (folder / name for name in _OF_ENVIRONMENT)
                    # A link (`lib64` to `lib`) would be bound at its target, where something is already.
                    yield from (each for each in places if each.exists() and not each.is_symlink())
        elif number == 0:  # another file is no part of the program, and has to be named
            yield path
            yield Path(os.path.realpath(path))
