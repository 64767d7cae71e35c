"""TypeScript under Deno: a script with its arguments, the files of its confinement, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reyn_jupyter.guard.sandbox import Confinement, Sandbox, SandboxError
from reyn_jupyter.guard.sandbox.deno import Deno

SCRIPT = """
const text: string = Deno.readTextFileSync("in.txt");
Deno.writeTextFileSync("out/made.txt", text);
console.log(text, Deno.args.join("+"));
Deno.readTextFileSync("hidden.txt");
"""


@pytest.fixture
def sandbox() -> Sandbox:
    backend = Deno()
    if (absence := backend.absence()) is not None:
        pytest.skip(f"deno is not here: {absence}")
    return Sandbox(backend)


async def test_a_script_reads_and_writes_what_it_was_given_also_where_no_file_can_be_nameless(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)  # macOS has none
    assert Deno().problem() is None
    for name, text in (("in.txt", "given"), ("hidden.txt", "secret"), ("script.ts", SCRIPT)):
        (tmp_path / name).write_text(text, encoding="ascii")
    (tmp_path / "out").mkdir()
    place = Confinement(tmp_path, (tmp_path,), (tmp_path / "out",), (tmp_path / "hidden.txt",))
    result = await sandbox.run(["script.ts", "one", "two"], place)
    assert (result.returncode, result.stdout) == (1, b"given one+two\n")
    assert b"NotCapable" in result.stderr
    assert (tmp_path / "out" / "made.txt").read_text(encoding="ascii") == "given"


async def test_a_script_that_is_not_there_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    for nothing in ([], ["missing.ts"], ["."]):
        with pytest.raises(SandboxError, match="there is no file"):
            await sandbox.run(nothing, Confinement(tmp_path))
