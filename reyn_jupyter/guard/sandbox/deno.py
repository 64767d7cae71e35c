"""The sandbox by Deno, for TypeScript and JavaScript: the runtime itself refuses what was not granted.

Invariants: no prompt, no configuration and no package is read, nothing is fetched, no program is started and no
library loaded. The script reads the folders of its confinement, but for what is hidden there, and writes in the
writable ones. It works where Deno does: on macOS too. Where hosts are given, it is put into a network of its own, in
which our proxy listens, with the right to these hosts alone; or it does not run.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from reyn_jupyter.guard.sandbox.confinement import Confinement, Language, SandboxError, SandboxLimits, View
from reyn_jupyter.guard.sandbox.probe import probe_problem
from reyn_jupyter.guard.sandbox.supervised_launch import SupervisedLaunch
from reyn_jupyter.support.network.hosts import Host, HostError, read_host
from reyn_jupyter.support.programs.program_search import find_program

_FIXED = (
    "run",
    "--quiet",
    "--no-prompt",
    "--no-config",
    "--no-lock",
    "--no-npm",
    "--no-remote",
    "--cached-only",
)
_NO_SHELL = ("--deny-run", "--deny-ffi", "--deny-env", "--deny-sys")
_PROBE = Path(__file__).parent / "deno_probe.ts"
_RUN = Path(__file__).parent / "deno_run.mjs"
_MEGABYTE = 1 << 20
_RESERVE = 2 << 30  # bytes set aside for code and stacks: 0.7 GiB on two cores, of which 0.15 are in use
INSTALL = "pip install 'reyn-jupyter[typescript]'"


class Deno:
    """Runs TypeScript and JavaScript files by the program ``deno``.

    Args:
        program: another one than that of this Python or on the PATH.
    """

    name = "deno"
    language: Language = "typescript"
    view: View = "paths"
    isolation = (
        "the runtime refuses files outside of the given folders, network, programs, libraries and environment"
    )

    def __init__(self, program: str | None = None) -> None:
        self._program = program

    @cached_property
    def _found(self) -> str | None:
        own = Path(sysconfig.get_path("scripts"), "deno")
        if self._program is not None:
            return find_program(self._program)
        return os.fspath(own) if own.exists() else find_program("deno")

    def absence(self) -> str | None:
        """Return why Deno cannot be run here, as a clause, before it is tried; None where it can."""
        if sys.platform == "win32":
            return "limits of processes are set on Linux and macOS alone"
        if self._found is None:
            return f"deno is not installed ({INSTALL})"
        return None

    def problem(self) -> str | None:
        if (problem := self.absence()) is not None:
            return problem

        def make(argv: Sequence[str]) -> SupervisedLaunch:
            return self.launch((os.fspath(_PROBE), *argv[-2:]), Confinement(_PROBE.parent), SandboxLimits())

        return probe_problem(make)

    def launch(
        self, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits
    ) -> SupervisedLaunch:
        """Return the script as Deno starts it.

        Args:
            argv: the file of the script, and its arguments.
        """
        if confinement.hosts and sys.platform != "linux":
            raise SandboxError(
                "a script is given hosts on Linux alone, where it can have a network of its own",
                "Run it without them.",
            )
        script = script_of(argv, confinement)
        readable = (*confinement.readable, *confinement.writable, script)
        words = (script.resolve().as_uri(), *argv[1:])
        return self.supervised(_RUN, words, confinement, limits, readable=readable)

    def supervised(
        self,
        script: Path,
        arguments: Sequence[str],
        confinement: Confinement,
        limits: SandboxLimits,
        *,
        readable: Sequence[Path],
        flags: Sequence[str] = (),
    ) -> SupervisedLaunch:
        """Return a script as Deno starts it, with the right to read some files and folders.

        Args:
            flags: of V8, beside the limit of its heap.
        """
        if self._found is None:
            raise SandboxError("deno is gone from this machine", INSTALL)
        engine = (f"--max-old-space-size={limits.memory // _MEGABYTE}", *flags)
        options = [*_FIXED, *_NO_SHELL, _network(confinement.hosts), f"--v8-flags={','.join(engine)}"]
        options += [_paths("--allow-read", readable)]
        denied = tuple(_denied(confinement))
        hidden = (*denied, *_leading_out((*readable, *confinement.writable), denied))
        if hidden:
            options += [_paths("--deny-read", hidden)]
        if confinement.writable:
            kept = [
                path
                for path in confinement.readable
                if path not in confinement.writable
                and not any(each.is_relative_to(path) for each in confinement.writable)
            ]
            options += [_paths("--deny-write", (*hidden, *kept))] if hidden or kept else []
            options += [_paths("--allow-write", confinement.writable)]
        command = (self._found, *options, "--", os.fspath(script), *arguments)
        return SupervisedLaunch(command, confinement, limits, {"abi": 0}, reserve=_RESERVE)


def _denied(confinement: Confinement) -> Iterator[Path]:
    """Yield what is hidden; of a folder that holds something shown, everything else in it.

    What is denied in Deno is denied in all of a folder.
    """
    shown = (*confinement.readable, *confinement.writable)
    pending = list(confinement.hidden)
    while pending:
        path = pending.pop()
        if path in shown:
            continue
        if any(each.is_relative_to(path) for each in shown):
            with suppress(OSError):
                pending += path.iterdir()
        else:
            yield path


def script_of(argv: Sequence[str], confinement: Confinement) -> Path:
    """Return the file that is to be run. Raises SandboxError where there is none."""
    if not argv or not (path := confinement.folder / argv[0]).is_file():
        raise SandboxError(
            f"there is no file {(argv or [''])[0][:200]!r}", "Name a script, from the working folder on."
        )
    return path


def _network(hosts: Sequence[str]) -> str:
    """Return the option for hosts, with their ports: without one Deno takes a host for all of its ports."""
    if not hosts:
        return "--deny-net"
    try:
        named = [read_host(host) for host in hosts]
    except HostError as error:
        raise SandboxError(str(error).rstrip("."), "Name hosts: example.org, localhost:8080") from None
    ends = (
        Host(host.name, port) for host in named for port in ((80, 443) if host.port is None else (host.port,))
    )
    return f"--allow-net={','.join(map(str, ends))}"


def _leading_out(granted: Iterable[Path], hidden: Iterable[Path]) -> Iterator[Path]:
    """Yield the links in granted folders that lead to anything but a granted file.

    Deno judges the path that is named, and then follows links: a link to `/` would grant every file.
    """
    folders = {path for path in granted if path.is_dir()}
    real = [Path(os.path.realpath(path)) for path in granted]
    kept = [Path(os.path.realpath(path)) for path in hidden]
    for top in folders:
        for folder, below, files in os.walk(top):
            for path in (Path(folder, name) for name in (*below, *files)):
                if not path.is_symlink():
                    continue
                target = Path(os.path.realpath(path))
                is_granted = any(target.is_relative_to(each) for each in real)
                if target.is_dir() or not is_granted or any(target.is_relative_to(each) for each in kept):
                    yield path


def _paths(option: str, paths: Iterable[Path]) -> str:
    """Return an option with a list of paths. Raises SandboxError for one that the list cannot hold."""
    names = [os.fspath(path) for path in paths]
    if any("," in name for name in names):
        raise SandboxError("Deno takes no path with a comma", "Rename the folder.")
    return f"{option}={','.join(names)}"
