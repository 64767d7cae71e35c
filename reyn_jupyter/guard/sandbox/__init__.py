"""Sandboxes: commands that cannot reach more of the machine than they were given.

`find_sandbox` gives the strongest that isolates here; its `run` runs a command to its end, its `open` starts a program
that lives on. One file a backend: bubblewrap, Landlock with seccomp, Deno for
TypeScript, Pyodide in Deno for Python that needs neither files nor programs.
"""

from __future__ import annotations

from reyn_jupyter.guard.sandbox.confinement import (
    Confinement,
    HostTraffic,
    Language,
    SandboxError,
    SandboxLimits,
    SandboxResult,
)
from reyn_jupyter.guard.sandbox.ladder import Rung, find_sandbox, resolve_backend, rungs
from reyn_jupyter.guard.sandbox.runner import Sandbox, SandboxedProgram

__all__ = [
    "Confinement",
    "HostTraffic",
    "Language",
    "Rung",
    "Sandbox",
    "SandboxError",
    "SandboxLimits",
    "SandboxResult",
    "SandboxedProgram",
    "find_sandbox",
    "resolve_backend",
    "rungs",
]
