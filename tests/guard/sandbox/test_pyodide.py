"""Python in Pyodide: a plain script with its streams, arguments and code, and nothing of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reyn_jupyter.guard.sandbox import Confinement, Sandbox, SandboxError, SandboxLimits
from reyn_jupyter.guard.sandbox.deno import Deno
from reyn_jupyter.guard.sandbox.pyodide import Pyodide

INSTALLED = Path(sys.prefix, "pyodide")  # by `make setup-test`
SCRIPT = """
import asyncio, statistics, sys
print(sys.argv[1:], input(), statistics.median([3, 1, 2]))

async def later():
    await asyncio.sleep(0)
    return "later"

print(asyncio.run(later()), await later())
try:
    held = [bytearray(64 << 20) for _ in range(40)]
except MemoryError:
    print("no more memory")
print("to stderr", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture(scope="module")
def pyodide() -> Pyodide:
    """Pyodide as it was found to isolate: by its own attack."""
    backend = Pyodide(INSTALLED)
    if backend.absence() is not None:
        pytest.skip(f"pyodide is not here: {backend.absence()}")
    assert backend.problem() is None
    return backend


@pytest.mark.parametrize("memory", [512 << 20, 1 << 30])
async def test_a_script_has_its_streams_arguments_code_and_a_limit_of_memory(
    pyodide: Pyodide, tmp_path: Path, memory: int
) -> None:
    (tmp_path / "my script.py").write_text(SCRIPT, encoding="utf-8")
    limits = SandboxLimits(seconds=120, memory=memory)
    argv = ["my script.py", "--flag", "ü"]
    result = await Sandbox(pyodide).run(argv, Confinement(tmp_path), limits, stdin="given ä\n".encode())
    assert result.stderr.decode() == "to stderr\n"
    assert result.stdout.decode().splitlines() == [
        "['--flag', 'ü'] given ä 2", "later later", "no more memory",
    ]  # fmt: skip
    assert (result.status, result.returncode, result.backend) == ("failed", 3, "pyodide")
    assert "no files" in result.isolation


async def test_what_it_cannot_give_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("", encoding="utf-8")
    sandbox = Sandbox(Pyodide(INSTALLED))
    for confinement in (
        Confinement(tmp_path, readable=(tmp_path,)),
        Confinement(tmp_path, writable=(tmp_path,)),
        Confinement(tmp_path, hosts=("example.org",)),
        Confinement(tmp_path, environment={"NAME": "value"}),
    ):
        with pytest.raises(SandboxError, match="is given no files"):
            await sandbox.run(["script.py"], confinement)
    for nothing in ([], ["missing.py"]):
        with pytest.raises(SandboxError, match="there is no file"):
            await sandbox.run(nothing, Confinement(tmp_path))


def test_where_it_is_absent_it_says_what_to_install(tmp_path: Path) -> None:
    assert f"npm install --ignore-scripts --prefix {tmp_path} pyodide@" in str(Pyodide(tmp_path).problem())
    without = Pyodide(INSTALLED, Deno(str(tmp_path / "no-deno")))
    assert str(without.problem()) == "deno is not installed (pip install 'reyn-jupyter[typescript]')"
