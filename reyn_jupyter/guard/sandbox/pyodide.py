"""The sandbox by Pyodide in Deno, for Python code that needs neither files nor processes.

Invariants: Python runs as WebAssembly in an isolate of Deno, which has no right at all once the code begins: what
Python itself gives (files, sockets, environment) is its own and in memory, and through JavaScript nothing is reached
either. Nothing is fetched: the interpreter and its standard library come from the npm package ``pyodide``, which the
person installed. It works where Deno does: on macOS too. A start takes seconds.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from reyn_jupyter.guard.sandbox.confinement import Confinement, Language, SandboxError, SandboxLimits, View
from reyn_jupyter.guard.sandbox.deno import Deno, script_of
from reyn_jupyter.guard.sandbox.probe import probe_problem
from reyn_jupyter.guard.sandbox.supervised_launch import SupervisedLaunch

_RUN = Path(__file__).parent / "pyodide_run.mjs"
_PROBE = Path(__file__).parent / "pyodide_probe.py"
_PARTS = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_PAGE = 1 << 16  # bytes of WebAssembly's memory
_MOST_PAGES = 1 << 16
_RUNTIME = 384 << 20  # bytes for Deno itself: Python says MemoryError before Deno has no more
_SECONDS = 90.0  # for a start, on a busy machine
_RELEASE = "314"  # of the npm package: the Python and its minor version


def _folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("reyn-jupyter"), "pyodide")


def npm_line(folder: Path | None = None) -> str:
    """Return the command that installs the package, in the person's cache or another folder."""
    return f"npm install --ignore-scripts --prefix {shlex.quote(os.fspath(folder or _folder()))} pyodide@{_RELEASE}"


class Pyodide:
    """Runs Python files by the npm package ``pyodide``, in the program ``deno``.

    Args:
        folder: where npm installed the package (its ``--prefix``); by default in the person's cache.
        deno: the runtime; by default the one that is found.
    """

    name = "pyodide"
    language: Language = "python"
    view: View = "paths"
    isolation = (
        "Python as WebAssembly, in a runtime without rights: no files, network, programs or environment"
    )

    def __init__(self, folder: Path | None = None, deno: Deno | None = None) -> None:
        self._folder = folder
        self._deno = deno or Deno()

    @property
    def _package(self) -> Path:
        return (self._folder or _folder()) / "node_modules" / "pyodide"

    def absence(self) -> str | None:
        """Return what is missing to run it, as a clause, before it is tried; None where all is here."""
        if (absence := self._deno.absence()) is not None:
            return absence
        if not all((self._package / part).is_file() for part in _PARTS):
            return f"the npm package pyodide is not installed ({npm_line(self._folder)})"
        return None

    def problem(self) -> str | None:
        if (absence := self.absence()) is not None:
            return absence

        def make(argv: Sequence[str]) -> SupervisedLaunch:
            return self.launch((os.fspath(_PROBE), *argv[-2:]), Confinement(_PROBE.parent), SandboxLimits())

        return probe_problem(make, _SECONDS)

    def launch(
        self, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits
    ) -> SupervisedLaunch:
        """Return the script as Pyodide starts it.

        Args:
            argv: the file of the script, and its arguments.
            confinement: its folder, where the script lies, and nothing that the code may reach.
        """
        if confinement.hosts or confinement.readable or confinement.writable or confinement.environment:
            raise SandboxError(
                "Pyodide is given no files, hosts or variables",
                "Hand data over as arguments or standard input.",
            )
        script = script_of(argv, confinement)
        words = (self._package.as_uri(), os.fspath(script), *argv[1:])
        own = max(limits.memory - _RUNTIME, limits.memory // 4)
        memory = f"--wasm-max-mem-pages={min(own // _PAGE, _MOST_PAGES)}"
        readable = (self._package, script)
        return self._deno.supervised(_RUN, words, confinement, limits, readable=readable, flags=(memory,))
