"""TypeScript under Deno: a script with its arguments, the files of its confinement, and nothing else."""

from __future__ import annotations

import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
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


async def test_a_module_that_a_script_names_is_read_only_where_files_may_be_read(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "outside.json").write_text('"secret"', encoding="ascii")
    (workspace / "inside.json").write_text('"given"', encoding="ascii")
    for name, file in (("inside.json", "./inside.json"), ("outside.json", "../outside.json")):
        script = f"import text from {file!r} with {{ type: 'json' }};\nconsole.log(text, Deno.args);"
        (workspace / "script.ts").write_text(script, encoding="ascii")
        result = await sandbox.run(["script.ts", "one"], Confinement(workspace, (workspace,)))
        if name == "inside.json":
            assert (result.returncode, result.stdout) == (0, b'given [ "one" ]\n')
        else:
            assert (result.returncode, result.stdout) == (1, b"")
            assert b"Requires read access" in result.stderr


async def test_a_script_reaches_the_hosts_that_it_was_given_through_the_proxy(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    script = """
const [url, other] = Deno.args;
console.log(await (await fetch(url)).text());
await fetch(other);
"""
    (tmp_path / "script.ts").write_text(script, encoding="ascii")
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        port = server.server_address[1]
        place = Confinement(tmp_path, (tmp_path,), hosts=(f"localhost:{port}",))
        urls = (f"http://localhost:{port}/", f"http://127.0.0.1:{port}/")
        result = await sandbox.run(["script.ts", *urls], place)
        server.shutdown()
    assert b"Directory listing" in result.stdout, result.stderr
    assert b"NotCapable" in result.stderr
    assert [(each.host, each.connections) for each in result.traffic] == [(f"localhost:{port}", 1)]
