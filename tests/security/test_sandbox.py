"""Attacks from inside of a sandbox, on every sandbox that is here: none gets out, and nothing is left running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from reyn_jupyter.guard.sandbox import Sandbox
from reyn_jupyter.guard.sandbox.backend import SandboxBackend
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.deno import Deno
from reyn_jupyter.guard.sandbox.landlock import Landlock
from reyn_jupyter.guard.sandbox.pyodide import Pyodide
from tests.security.attack_table import PYODIDE, written
from tests.security.sandbox_attacks import (
    ATTACKS,
    HARMLESS,
    Attack,
    attacked,
    attacked_by_python,
    attacked_place,
)
from tests.support.waiting import until

# The older Landlock cannot keep signals inside, so that the filter of system calls has to.
BACKENDS: dict[str, SandboxBackend] = {
    "bubblewrap": Bubblewrap(), "landlock": Landlock(), "landlock before Linux 6.12": Landlock(abi=3), "deno": Deno(),
}  # fmt: skip
CASES = [
    pytest.param(name, attack, id=f"{name}: {attack.name}")
    for name, backend in BACKENDS.items()
    for attack in ATTACKS
    if (attack.typescript if backend.language == "typescript" else attack.python)
]


def _backend(name: str) -> SandboxBackend:
    backend = BACKENDS[name]
    if (problem := backend.problem()) is not None:
        pytest.skip(f"{name} is not here: {problem}")
    return backend


@pytest.mark.parametrize(("name", "attack"), CASES)
async def test_an_attack_is_held(name: str, attack: Attack, tmp_path: Path) -> None:
    backend = _backend(name)
    with attacked_place(tmp_path) as place:
        outcome = await attacked(Sandbox(backend), backend.language, attack, place)
        assert outcome.held, outcome.by
        marker = str(place.facts["marker"])
        until(lambda: not _running(marker))


async def test_python_in_pyodide_reaches_nothing_by_javascript(tmp_path: Path) -> None:
    backend = Pyodide(PYODIDE)
    if (absence := backend.absence()) is not None:
        pytest.skip(f"pyodide is not here: {absence}")
    with attacked_place(tmp_path) as place:
        outcomes = await attacked_by_python(Sandbox(backend), place, endless=False)
    assert len(outcomes) > 25
    assert not [name for name, outcome in outcomes.items() if not outcome.held]


def _running(marker: str) -> list[int]:
    return [each.pid for each in psutil.process_iter(["cmdline"]) if marker in (each.info["cmdline"] or ())]


@pytest.mark.skipif(sys.platform != "linux", reason="the attacks look into /proc")
@pytest.mark.parametrize("name", HARMLESS)
def test_the_same_attack_succeeds_without_a_sandbox(name: str, tmp_path: Path) -> None:
    attack = next(each for each in ATTACKS if each.name == name)
    with attacked_place(tmp_path) as place:
        argv = [sys.executable, *place.script(attack, "program")[1:]]
        environ = {**os.environ, "TMPDIR": os.fspath(tmp_path)}
        done = subprocess.run(
            argv, capture_output=True, text=True, env=environ, cwd=place.workspace, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_the_manual_has_every_attack_and_none_got_through() -> None:
    rows = [line.split("|")[1].strip() for line in written().splitlines()[2:]]
    assert rows == [attack.name for attack in ATTACKS], "python -m tests.security.attack_table --write"
    assert "got through" not in written()
