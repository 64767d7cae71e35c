"""Tools that attack: in Python under both sandboxes for programs, and in TypeScript, none gets out and none stays."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.dynamic.tool_permissions import read_permissions
from reyn_jupyter.dynamic.tool_runner import LARGEST_OUTPUT, ToolRun, run_tool
from reyn_jupyter.guard.workspace import Workspace
from tests.support.waiting import PATIENCE, until

LOOT = "loot-51c07d"
Mode = Literal["python", "typescript"]
KINDS = [("python", "bubblewrap"), ("python", "landlock"), ("typescript", "deno")]
both = pytest.mark.parametrize(("mode", "backend"), KINDS)

# What each attempt gives is None where it was held; the name of an attempt that got through is in the value.
PYTHON = """
import os, socket, subprocess, urllib.request
def execute(p):
    def read(path):
        with open(path) as file: text = file.read()
        if p["loot"] not in text: raise LookupError
    def write(path):
        with open(path, "w") as file: file.write("out")
    def held(work):
        try: work()
        except (OSError, LookupError, subprocess.SubprocessError): return True
        return False
    def search():
        if not any(p["loot"] in each for each in os.environ.values()): raise LookupError
    def signal():
        os.kill(p["kernel"], 0)
        if p["kernel"] == os.getpid() or not os.path.exists(f"/proc/{p['kernel']}/exe"): raise LookupError
    attempts = {
        "environment": search,
        "environment of the kernel": lambda: read(f"/proc/{p['kernel']}/environ"),
        "key": lambda: read(p["key"]),
        "key by ~": lambda: read(os.path.expanduser("~/.ssh/id_rsa")),
        "workspace": lambda: read(p["inside"]),
        "by a program": lambda: subprocess.run(["cat", p["key"]], check=True, capture_output=True),
        "port": lambda: socket.create_connection(("127.0.0.1", p["port"]), 5),
        "web": lambda: urllib.request.urlopen(f"http://127.0.0.1:{p['port']}/", timeout=5),
        "name": lambda: socket.getaddrinfo("example.org", 80),
        "file outside": lambda: write(p["outside"]),
        "signal": signal,
    }
    return [name for name, work in attempts.items() if not held(work)]
"""
TYPESCRIPT = """
import fs from "node:fs";
import { spawnSync } from "node:child_process";
async function execute(p) {
  const read = (text: string) => { if (!text.includes(p.loot)) throw new Error("nothing"); };
  const worker = () => new Promise((done, fail) => {
    const read = `Deno.readTextFileSync(${JSON.stringify(p.key)})`;
    const code = `let out = 0; try { ${read}; out = 1; } catch { /* held */ } postMessage(out);`;
    const made = new Worker(`data:text/javascript,${encodeURIComponent(code)}`, { type: "module" });
    made.onmessage = (event) => event.data ? done(1) : fail(new Error("held"));
    made.onerror = (event) => { event.preventDefault(); fail(new Error("held")); };
  });
  const attempts: Record<string, () => unknown> = {
    "environment": () => Deno.env.toObject(),
    "environment of Node": () => read(JSON.stringify((globalThis as any).process?.env ?? {})),
    "environment of the kernel": () => read(Deno.readTextFileSync(`/proc/${p.kernel}/environ`)),
    "own environment": () => read(Deno.readTextFileSync("/proc/self/environ")),
    "key": () => read(Deno.readTextFileSync(p.key)),
    "key by Node": () => read(fs.readFileSync(p.key, "utf8")),
    "key by fetch": async () => read(await (await fetch("file://" + p.key)).text()),
    "key as a module": () => import("file://" + p.key),
    "key by a worker": worker,
    "workspace": () => Deno.readTextFileSync(p.inside),
    "program": () => new Deno.Command("cat").outputSync(),
    "program by Node": () => { const done = spawnSync("cat", [p.key]); if (done.error) throw done.error; },
    "rights": () => { if (Deno.permissions.requestSync({ name: "read" }).state !== "granted") throw new Error(); },
    "port": () => Deno.connect({ hostname: "127.0.0.1", port: p.port }),
    "web": () => fetch(`http://127.0.0.1:${p.port}/`),
    "name": () => Deno.resolveDns("example.org", "A"),
    "code of others": () => import("https://example.org/x.ts" + ""),
    "package": () => import("npm:left-pad" + ""),
    "file outside": () => Deno.writeTextFileSync(p.outside, "out"),
    "library": () => Deno.dlopen("libc.so.6", {}),
    "signal": () => Deno.kill(p.kernel, "SIGCONT"),
  };
  const out: string[] = [];
  for (const [name, work] of Object.entries(attempts)) {
    try { await work(); out.push(name); } catch { /* held */ }
  }
  return out;
}
"""


async def run(
    code: str, root: Path, mode: Mode, given: dict[str, Any] | None = None, **options: Any
) -> ToolRun:
    backend = options.pop("backend", "auto")
    permissions = read_permissions(options.pop("permissions", ()))
    return await run_tool(
        code, given or {}, mode=mode, name="attack", settings=SandboxSettings(backend=backend),
        workspace=Workspace(root, off_limits=()), permissions=permissions, **options,
    )  # fmt: skip


@pytest.fixture
def site() -> Iterator[int]:
    """The port of a server that sends whoever asks to another port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            away = self.path.removeprefix("/to/")
            self.send_response(302 if away != self.path else 200)
            if away != self.path:
                self.send_header("Location", f"http://127.0.0.1:{away}/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def attacked(tmp_path: Path, site: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the attempts are given: a home with a key, a workspace in it, a secret in this process."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "workspace").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text(LOOT, encoding="ascii")
    (tmp_path / "workspace" / "inside.txt").write_text(LOOT, encoding="ascii")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PROVIDER_API_KEY", LOOT)
    return {
        "loot": LOOT, "kernel": os.getpid(), "key": str(tmp_path / ".ssh" / "id_rsa"), "port": site,
        "inside": str(tmp_path / "workspace" / "inside.txt"), "outside": str(tmp_path / "outside.txt"),
    }  # fmt: skip


@both
async def test_a_tool_without_permissions_reaches_nothing_of_the_person(
    mode: Mode, backend: str, tmp_path: Path, attacked: dict[str, Any]
) -> None:
    code = PYTHON if mode == "python" else TYPESCRIPT
    found = await run(code, tmp_path / "workspace", mode, attacked, backend=backend)
    assert found.ok, found.error
    # In a view of its own it may write where the folder for temporary files is.
    got_out = set(found.value) - ({"file outside"} if backend == "bubblewrap" else set())
    assert not got_out
    assert {path.name for path in tmp_path.iterdir()} == {".ssh", "workspace"}


@pytest.mark.parametrize("mode", ["python", "typescript"])
def test_the_same_attempts_succeed_without_a_sandbox(
    mode: Mode, tmp_path: Path, attacked: dict[str, Any]
) -> None:
    given = json.dumps(attacked)
    if mode == "python":
        code = f"{PYTHON}\nimport json, sys\nprint(json.dumps(execute(json.loads(sys.argv[1]))))"
        command = [sys.executable, "-c", code, given]
        missing = {"environment of the kernel", "name"}  # what was set later is not in it; no DNS in a test
    else:
        script = tmp_path / "attempts.ts"
        script.write_text(
            f"{TYPESCRIPT}\nconsole.log(JSON.stringify(await execute(JSON.parse(Deno.args[0]))));\nDeno.exit(0);",
            encoding="utf-8",
        )
        command = [
            str(Path(sys.executable).parent / "deno"),
            "run",
            "-A",
            "--quiet",
            "--no-remote",
            str(script),
            given,
        ]
        missing = {"environment of the kernel", "name", "key as a module", "code of others", "package"}
    told = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    )
    names = re.findall(r'^ +"([a-z ~N]+)": ', PYTHON if mode == "python" else TYPESCRIPT, re.MULTILINE)
    assert set(names) - set(told) <= missing


@both
async def test_a_redirect_leads_to_no_other_host(mode: Mode, backend: str, tmp_path: Path, site: int) -> None:
    code = {
        "python": "import urllib.request as u\ndef execute(p):\n    return u.urlopen(p['url'], timeout=5).status",
        "typescript": "const execute = async (p) => (await fetch(p.url)).status;",
    }[mode]
    options: dict[str, Any] = {"backend": backend, "permissions": [f"network:localhost:{site}"]}
    assert (await run(code, tmp_path, mode, {"url": f"http://localhost:{site}/"}, **options)).value == 200
    away = await run(code, tmp_path, mode, {"url": f"http://localhost:{site}/to/{site}"}, **options)
    assert not away.ok
    assert "not among the hosts" in str(away.error) or away.error_kind == "refused"
    assert [(each.host, each.connections) for each in away.traffic] == [(f"localhost:{site}", 1)]


FLOOD_IN_PYTHON = """
import signal, sys
def execute(p):
    for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            while True: sys.stdout.write("x" * 65536)
        except BaseException: pass
"""
FLOOD_IN_TYPESCRIPT = """
function execute(p) {
  Deno.exit = () => {};
  for (;;) try { console.log("x".repeat(65536)); } catch { /* go on */ }
}
"""
FORK = """
import os, time
def execute(p):
    while True:
        try:
            if os.fork() == 0: time.sleep(3600)  # each but the first: growth that does not starve other tests
        except OSError: time.sleep(1)
"""


def descendants() -> set[psutil.Process]:
    """Return what this process started, and what that started in its turn: other tests may have left some running."""
    return set(psutil.Process().children(recursive=True))


@pytest.mark.parametrize(
    ("mode", "code"),
    [("python", FLOOD_IN_PYTHON), ("typescript", FLOOD_IN_TYPESCRIPT), ("python", FORK)],
    ids=["flood in Python", "flood in TypeScript", "fork without end"],
)
async def test_what_takes_all_that_it_can_is_ended_whole(mode: Mode, code: str, tmp_path: Path) -> None:
    before = descendants()
    found = await run(code, tmp_path, mode, timeout_ms=1000)
    assert not found.ok
    assert len(found.stdout) <= LARGEST_OUTPUT
    until(lambda: descendants() <= before)


async def test_memory_without_end_is_said_to_be_that(tmp_path: Path) -> None:
    code = "function execute() { const all = []; for (;;) all.push(new Array(1e5).fill(all.length + 0.5)); }"
    found = await run(code, tmp_path, "typescript")
    assert found.error_kind == "memory", found.error


async def test_what_a_tool_forges_is_its_own_value_or_none(tmp_path: Path) -> None:
    find = (
        "import os, sys\ndef execute(p):\n    frame = sys._getframe()\n"
        "    while 'frame' not in frame.f_back.f_locals: frame = frame.f_back\n"
        "    nonce = frame.f_back.f_locals['frame']\n"
    )
    nested = find + "    os.write(1, b'\\n' + nonce + b'\\n' + b'[' * 100_000 + b'\\n')\n    os._exit(0)"
    found = await run(nested, tmp_path, "python")
    assert (found.error_kind, found.value) == ("failed", None)
    assert "was lost" in str(found.error)
    shaped = find + "    os.write(1, b'\\n' + nonce + b'\\n{\"ok\": true}\\n')\n    os._exit(0)"
    assert (await run(shaped, tmp_path, "python")).error_kind == "failed"
    own = find + "    os.write(1, b'\\n' + nonce + b'\\n{\"value\": 7}\\n')\n    return 8"
    assert (await run(own, tmp_path, "python")).value == 8


async def test_what_a_tool_left_running_does_not_spoil_its_value(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, threading\ndef execute(p):\n"
        "    def flood():\n        while True: print('x' * 1000)\n"
        "    threading.Thread(target=flood).start()\n"
        "    subprocess.Popen(['sleep', '600'])\n    return 'done'"
    )
    before = descendants()
    assert (await run(code, tmp_path, "python")).value == "done"
    until(lambda: descendants() <= before)


KERNEL = """
import asyncio, sys
from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.dynamic.tool_runner import run_tool
from reyn_jupyter.guard.workspace import Workspace
mode, backend, root = sys.argv[1:]
code = {
    "python": "import subprocess\\ndef execute(p):\\n    child = subprocess.Popen(['sleep', '600'])\\n"
        "    print('begun', flush=True)\\n    child.wait()",
    "typescript": "const execute = (p) => { console.log('begun'); while (true); }",
}[mode]
asyncio.run(run_tool(
    code, {}, mode=mode, name="attack", settings=SandboxSettings(backend=backend), workspace=Workspace(root),
    on_output=lambda *_: print("begun", flush=True), timeout_ms=600_000,
))
"""


@both
def test_a_killed_kernel_leaves_no_process_of_a_tool(mode: Mode, backend: str, tmp_path: Path) -> None:
    kernel = subprocess.Popen(
        [sys.executable, "-c", KERNEL, mode, backend, tmp_path], stdout=subprocess.PIPE, text=True
    )
    assert kernel.stdout is not None
    assert kernel.stdout.readline() == "begun\n"
    started = psutil.Process(kernel.pid).children(recursive=True)
    assert started
    kernel.kill()
    kernel.communicate()
    until(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in started))
