"""Runs of tools: a value or an error comes out, whatever the code does, in Python and in TypeScript."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.dynamic.tool_permissions import read_permissions
from reyn_jupyter.dynamic.tool_runner import LARGEST_OUTPUT, ToolRun, run_tool
from reyn_jupyter.guard.sandbox import SandboxError, ladder
from reyn_jupyter.guard.workspace import Workspace
from tests.dynamic.tool_samples import CALCULATE_AVERAGE, FETCH_JSON, STRING_REVERSE
from tests.security.attack_table import PYODIDE
from tests.support.waiting import until

Mode = Literal["python", "typescript"]
REVERSE_PY = "def execute(params):\n    return params.get('text', '')[::-1]\n"


async def run(
    code: str,
    folder: Path,
    parameters: dict[str, Any] | None = None,
    *,
    mode: Mode = "python",
    backend: str = "auto",
    permissions: tuple[str, ...] = (),
    timeout_ms: float = 30_000,
) -> ToolRun:
    return await run_tool(
        code, parameters or {}, mode=mode, name="sample", settings=SandboxSettings(backend=backend),
        workspace=Workspace(folder, off_limits=()), permissions=read_permissions(permissions), timeout_ms=timeout_ms,
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_python_runs_plain_and_async_and_what_it_prints_is_apart(backend: str, tmp_path: Path) -> None:
    plain = await run(REVERSE_PY, tmp_path, {"text": "Hello World"}, backend=backend)
    assert (plain.ok, plain.value, plain.backend) == (True, "dlroW olleH", backend)
    code = (
        "import asyncio, sys\nasync def execute(params):\n    await asyncio.sleep(0)\n"
        "    print('said')\n    print('noted', file=sys.stderr)\n    return params"
    )
    given = {"text": "ünï\n", "n": [1, 2.5, None, True], "deep": {"a": {}}}
    found = await run(code, tmp_path, given, backend=backend)
    assert (found.value, found.stdout, found.stderr) == (given, "said\n", "noted\n")
    assert found.isolation


@pytest.mark.parametrize(
    ("mode", "code", "error", "line"),
    [
        ("python", "def execute(params):\n    return params['gone']", "KeyError: 'gone'", '"<tool sample>", line 2'),
        ("python", "def execute(params):\n    return 1 +", "SyntaxError", '"<tool sample>", line 2'),
        ("python", "def other(params):\n    pass", "no function execute", ""),
        ("python", "def execute():\n    pass", "TypeError", ""),
        ("python", "def execute(p):\n    return {'a': [1, {2}]}", "result['a'][1] is of type set", ""),
        ("python", "def execute(p):\n    return {(1, 2): 3}", "key of type tuple", ""),
        ("python", "def execute(p):\n    a = []\n    a.append(a)\n    return a", "holds itself", ""),
        ("python", "def execute(p):\n    return 10**5000", "digits", ""),
        ("python", "def execute(p):\n    return 'x' * (17 << 20)", "larger than 16 MiB", ""),
        ("python", "import os\ndef execute(p):\n    os._exit(3)", "exit code 3", ""),
        ("python", "def execute(p):\n    raise SystemExit(0)", "return instead", ""),
        ("python", "import ctypes\ndef execute(p):\n    ctypes.string_at(0)", "signal 11", ""),
        ("typescript", "function execute(p) {\n  return p.gone.more;\n}", "TypeError", "<tool sample>:2"),
        ("typescript", "function execute(p) {\n  return (;\n}", "SyntaxError", "<tool sample>:2"),
        ("typescript", "function other(p) {}", "no function execute", ""),
        ("typescript", "const execute = (p) => ({ a: [1, 2n] })", 'result["a"][1] is of type bigint', ""),
        ("typescript", "const execute = (p) => new Map()", "of type Map", ""),
        ("typescript", "const execute = (p) => { p.p = p; return p }", "holds itself", ""),
        ("typescript", "function execute(p) { Deno.exit(3); }", "exit code 3", ""),
        ("typescript", "function execute(p) { throw 'words'; }", "words", ""),
        ("typescript", "async function execute(p) { await new Promise(() => {}); }", "never resolved", ""),
    ],
)  # fmt: skip
async def test_what_goes_wrong_in_a_tool_is_said_with_its_line(
    mode: Mode, code: str, error: str, line: str, tmp_path: Path
) -> None:
    found = await run(code, tmp_path, mode=mode)
    assert (found.ok, found.value, found.error_kind) == (False, None, "failed")
    assert error in str(found.error)
    assert line in found.traceback
    assert "python_tool.py" not in found.traceback + str(found.error)
    assert "typescript_tool.ts" not in found.traceback + str(found.error)


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("python", "def execute(p):\n    return [float('nan'), float('-inf'), (1,), {1: 'a'}]"),
        ("typescript", "const execute = (p: object) => [NaN, -Infinity, [1], { 1: 'a', b: undefined }];"),
    ],
)
async def test_a_number_that_json_lacks_is_what_outputs_make_of_it(
    mode: Mode, code: str, tmp_path: Path
) -> None:
    found = await run(code, tmp_path, mode=mode)
    assert found.value == [{"$number": "NaN"}, {"$number": "-Infinity"}, [1], {"1": "a"}]


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("python", "def execute(p):\n    print('x' * (3 << 20))\n    return {'error': 'no numbers'}"),
        (
            "typescript",
            "function execute(p) { console.log('x'.repeat(3 << 20)); return { error: 'no numbers' } }",
        ),
    ],
)
async def test_a_flood_is_cut_the_value_arrives_and_an_error_in_it_is_a_soft_one(
    mode: Mode, code: str, tmp_path: Path
) -> None:
    found = await run(code, tmp_path, mode=mode)
    assert (found.ok, found.error_kind, found.error) == (False, "soft", "no numbers")
    assert found.value == {"error": "no numbers"}
    assert (len(found.stdout), set(found.stdout), found.truncated) == (LARGEST_OUTPUT, {"x"}, True)


async def test_what_looks_like_a_value_in_what_is_printed_is_none(tmp_path: Path) -> None:
    code = "def execute(p):\n    print('\\n' + 'a' * 32 + '\\n{\"value\": 1}\\n')\n    return 2"
    found = await run(code, tmp_path)
    assert (found.value, '"value": 1' in found.stdout) == (2, True)


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("python", "def execute(p):\n    while True: pass"),
        ("python", "import time\nasync def execute(p):\n    print('begun', flush=True)\n    time.sleep(600)"),
        ("typescript", "function execute(p) { while (true); }"),
    ],
)
async def test_a_tool_that_takes_too_long_is_ended_and_the_next_one_runs(
    mode: Mode, code: str, tmp_path: Path
) -> None:
    found = await run(code, tmp_path, mode=mode, timeout_ms=300)
    assert (found.ok, found.error_kind) == (False, "timeout")
    assert "0.3 seconds" in str(found.error)
    assert found.stdout in ("", "begun\n")
    assert (await run(REVERSE_PY, tmp_path, {"text": "ab"})).value == "ba"


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("python", "def execute(p):\n    return bytearray(1 << 40)"),
        ("python", "def execute(p):\n    raise MemoryError"),
        ("typescript", "function execute(p) { return new ArrayBuffer(2 ** 45); }"),
    ],
)
async def test_a_tool_without_memory_is_said_to_have_none(mode: Mode, code: str, tmp_path: Path) -> None:
    assert (await run(code, tmp_path, mode=mode)).error_kind == "memory"


async def test_a_file_that_the_user_makes_meanwhile_stays_and_the_tool_is_said_to_have_failed(
    tmp_path: Path,
) -> None:
    for name in ("out", "signal"):
        (tmp_path / name).mkdir()
    code = (
        "import os, time\ndef execute(p):\n    open('out/x', 'w').write('of the tool')\n"
        "    while not os.path.exists('signal/go'): time.sleep(.01)\n    return 1"
    )

    def user() -> None:
        until(lambda: list(tmp_path.glob(".reyn/commands/*/out/x")))
        (tmp_path / "out" / "x").write_text("of the user", encoding="ascii")
        (tmp_path / "signal" / "go").touch()

    working = asyncio.create_task(asyncio.to_thread(user))
    found = await run(code, tmp_path, {}, permissions=("read:signal", "write:out"))
    await working
    assert (found.ok, found.error_kind) == (False, "failed")
    assert "out/x was made by another program while the command ran" in str(found.error)
    assert (tmp_path / "out" / "x").read_text(encoding="ascii") == "of the user"


@pytest.mark.parametrize("mode", ["python", "typescript"])
async def test_files_are_those_of_the_permissions(mode: Mode, tmp_path: Path) -> None:
    there = ("data/in.txt", "data/.env", "other.txt", "out/sub/.keep", "out/.git/HEAD", "out/.mcp.json")
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="ascii")
    code = {
        "python": (
            "def attempt(path, mode='r'):\n    try:\n        with open(path, mode) as file:\n"
            "            return file.read() if mode == 'r' else file.write('made') and 'made'\n"
            "    except OSError as error:\n        return 'no'\n"
            "def execute(p):\n    found = [attempt(each) for each in p['read']]\n"
            "    return found + [attempt(each, 'w') for each in p['write']]"
        ),
        "typescript": (
            "function attempt(work) { try { return work() } catch { return 'no' } }\n"
            "const execute = (p) => [...p.read.map((each) => attempt(() => Deno.readTextFileSync(each))),"
            " ...p.write.map((each) => attempt(() => { Deno.writeTextFileSync(each, 'made'); return 'made'; }))];"
        ),
    }[mode]
    given = {
        "read": ["data/in.txt", "data/.env", "other.txt"],
        "write": [
            "out/made.txt",
            "data/in.txt",
            "out/.git/new",
            "out/.mcp.json",
            "out/sub/.env",
            "other.txt",
        ],
    }
    found = await run(code, tmp_path, given, mode=mode, permissions=("read:data", "write:out"))
    assert isinstance(found.value, list), found.error
    assert found.value[:1] + found.value[2:7] == ["data/in.txt", "no", "made", "no", "no", "no"]
    assert found.value[1] in ("", "no")
    assert (tmp_path / "out" / "made.txt").read_text(encoding="ascii") == "made"
    # A name of a secret file may be made, and is gone again. What lies beside the folders is as it was: a view of its
    # own may show it changed, where the workspace lies in the folder for temporary files.
    assert found.planted == ("out/sub/.env",)
    assert not (tmp_path / "out/sub/.env").exists()
    assert {name: (tmp_path / name).read_text(encoding="ascii") for name in there} == {
        name: name for name in there
    }
    nothing = await run(code, tmp_path, {"read": [str(tmp_path / "data/in.txt")], "write": []}, mode=mode)
    assert nothing.value == ["no"]


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("python", "import urllib.request as u\ndef execute(p):\n    u.urlopen('http://127.0.0.1:8089/')"),
        ("python", "import socket\ndef execute(p):\n    socket.getaddrinfo('example.org', 80)"),
        ("python", "def execute(p):\n    open('/usr/new', 'w')"),
        ("typescript", "const execute = async (p) => await fetch('http://127.0.0.1:8089/');"),
        ("typescript", "import s from 'file:///etc/hostname' with { type: 'json' };\nconst execute = () => s;"),
    ],
)  # fmt: skip
async def test_a_run_that_the_sandbox_held_back_says_so(mode: Mode, code: str, tmp_path: Path) -> None:
    found = await run(code, tmp_path, mode=mode)
    assert found.error_kind == "refused", found.error
    assert "run again with" not in str(found.error)


async def test_a_cancelled_run_leaves_no_process(tmp_path: Path) -> None:
    heard = asyncio.Event()
    code = (
        "import subprocess\ndef execute(p):\n    print('begun', flush=True)\n"
        "    subprocess.run(['sleep', p['marker']])"
    )
    marker = f"600.{id(heard) % 100_000:05d}"
    task = asyncio.ensure_future(
        run_tool(
            code, {"marker": marker}, mode="python", name="sample", settings=SandboxSettings(),
            workspace=Workspace(tmp_path, off_limits=()), on_output=lambda *_: heard.set(),
        )
    )  # fmt: skip
    await heard.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    until(lambda: not _running(marker))


def _running(marker: str) -> list[int]:
    import psutil

    return [each.pid for each in psutil.process_iter(["cmdline"]) if marker in (each.info["cmdline"] or ())]


async def test_without_a_sandbox_nothing_runs_and_both_reasons_are_said(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="deno does not run programs"):
        await run(REVERSE_PY, tmp_path, backend="deno")


async def test_python_without_a_sandbox_for_programs_runs_in_pyodide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not PYODIDE.is_dir():
        pytest.skip("pyodide is not here")
    (tmp_path / "reyn-jupyter").mkdir()
    (tmp_path / "reyn-jupyter" / "pyodide").symlink_to(PYODIDE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ladder, "_probed", {})
    code = (
        "import asyncio\nasync def execute(params):\n    await asyncio.sleep(0)\n    print('said')\n"
        "    return params['text'][::-1]"
    )
    found = await run(code, tmp_path, {"text": "abc"}, backend="pyodide")
    assert (found.value, found.stdout, found.backend) == ("cba", "said\n", "pyodide"), found.error
    with pytest.raises(SandboxError, match="no files, hosts"):
        await run(code, tmp_path, backend="pyodide", permissions=("network:localhost:1",))


async def test_typescript_of_others_runs_as_it_stands(tmp_path: Path) -> None:
    assert (
        await run(STRING_REVERSE["code"], tmp_path, {"text": "Hello World"}, mode="typescript")
    ).value == "dlroW olleH"
    assert (
        await run(CALCULATE_AVERAGE["code"], tmp_path, {"numbers": [1, 2, 4.5]}, mode="typescript")
    ).value == 2.5
    empty = await run(CALCULATE_AVERAGE["code"], tmp_path, {"numbers": []}, mode="typescript")
    assert (empty.error_kind, empty.error) == ("soft", "有効な数値配列を指定してください")


async def test_a_tool_fetches_from_the_hosts_that_it_was_granted(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"n": [1, 2]}', encoding="ascii")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        host = f"127.0.0.1:{server.server_address[1]}"
        given = {"url": f"http://{host}/data.json"}
        granted = await run(
            FETCH_JSON["code"], tmp_path, given, mode="typescript", permissions=(f"network:{host}",)
        )
        missing = await run(
            FETCH_JSON["code"],
            tmp_path,
            {"url": f"http://{host}/gone"},
            mode="typescript",
            permissions=(f"network:{host}",),
        )
        refused = await run(FETCH_JSON["code"], tmp_path, given, mode="typescript")
        code = "import json, urllib.request as u\ndef execute(p):\n    return json.load(u.urlopen(p['url']))"
        python = await run(code, tmp_path, given, permissions=(f"network:{host}",))
        server.shutdown()
    assert (granted.value, python.value) == ({"n": [1, 2]}, {"n": [1, 2]})
    assert [(each.host, each.connections) for each in granted.traffic] == [(host, 1)]
    assert (missing.error_kind, missing.error) == ("soft", "HTTP 404: Not Found")
    assert refused.error_kind == "soft"
    assert "Requires net access" in str(refused.error)
