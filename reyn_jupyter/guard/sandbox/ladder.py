"""Which sandbox is in force: the strongest that was found by running it, as far as the settings admit it.

Invariants: a sandbox is in force only after its probe held, once a process. A name that is not known, or a minimum that
nothing here reaches, leaves none: it is never replaced by something weaker.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from reyn_jupyter.guard.sandbox.backend import SandboxBackend
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.confinement import Language, SandboxError
from reyn_jupyter.guard.sandbox.deno import INSTALL as TYPESCRIPT
from reyn_jupyter.guard.sandbox.deno import Deno
from reyn_jupyter.guard.sandbox.landlock import Landlock
from reyn_jupyter.guard.sandbox.pyodide import Pyodide, npm_line
from reyn_jupyter.guard.sandbox.runner import Sandbox

AUTO = "auto"
BACKENDS: tuple[SandboxBackend, ...] = (Bubblewrap(), Landlock(), Deno(), Pyodide())  # strongest first
NAMES: dict[Language, str] = {
    "program": "programs",
    "typescript": "TypeScript",
    "python": "Python alone, without files and programs",
}
_lock = threading.Lock()
_probed: dict[str, str | None] = {}


@dataclass(frozen=True)
class Rung:
    """One backend as it was found: `problem` says why it is not in force, as a clause; None where it isolates."""

    backend: str
    language: Language
    isolation: str
    problem: str | None


def probe(backend: SandboxBackend) -> str | None:
    """Return why a backend does not isolate here; it is run once a process."""
    with _lock:
        if backend.name not in _probed:
            _probed[backend.name] = backend.problem()
        return _probed[backend.name]


def rungs() -> tuple[Rung, ...]:
    """Return all backends, strongest first, as they were found."""
    return tuple(Rung(each.name, each.language, each.isolation, probe(each)) for each in BACKENDS)


def resolve_backend(
    language: Language = "program",
    wanted: str = AUTO,
    minimum: str | None = None,
    backends: Sequence[SandboxBackend] = BACKENDS,
) -> SandboxBackend:
    """Return the backend in force.

    Args:
        language: what is to be run.
        wanted: "auto" for the strongest, or the name of a backend (``sandbox.backend``).
        minimum: the name of the weakest that is admitted (``sandbox.minimum``).

    Raises:
        SandboxError: none is in force; says why of each, and what to install or change.
    """
    names = [each.name for each in backends]
    for key, value in (("sandbox.backend", wanted), ("sandbox.minimum", minimum)):
        if value not in (None, AUTO, *names):
            known = ", ".join(names)
            raise SandboxError(f"{key} is {value!r}, which is no sandbox", f"Known: {AUTO}, {known}.")
    weakest = len(names) if minimum in (None, AUTO) else names.index(str(minimum)) + 1
    found: list[str] = []
    for place, backend in enumerate(backends):
        if backend.language != language or wanted not in (AUTO, backend.name):
            continue
        problem = f"it is weaker than sandbox.minimum ({minimum})" if place >= weakest else probe(backend)
        if problem is None:
            return backend
        found.append(f"{backend.name}: {problem}")
    why = "; ".join(found) or f"{wanted} does not run {NAMES[language]}"
    raise SandboxError(f"no sandbox is in force here: {why}", _advice(language))


def _advice(language: Language) -> str:
    """Return what to do where nothing isolates."""
    if language == "program" and sys.platform != "linux":
        return (
            "Commands are isolated on Linux alone: run the notebook in a container, a virtual machine or WSL."
        )
    install = {
        "program": "sudo apt-get install bubblewrap",
        "typescript": TYPESCRIPT,
        "python": f"{TYPESCRIPT}, then {npm_line()}",
    }
    return f"Install one: {install[language]}"


def find_sandbox(language: Language = "program", wanted: str = AUTO, minimum: str | None = None) -> Sandbox:
    """Return the sandbox in force, see `resolve_backend`. Raises SandboxError where there is none."""
    return Sandbox(resolve_backend(language, wanted, minimum))
