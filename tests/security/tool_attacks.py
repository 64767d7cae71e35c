"""Tools that attack: the corpus, the place in which each is run without any permission, and what came of it.

The pieces are in `dynamic_tools/corpus.json`: what each wants, how it hides that, its code, and the effect by which one
sees that it got its way.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import psutil

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.dynamic import tool_runner
from reyn_jupyter.dynamic.analysis.safety import SafetyAnalysis, analyze_safety
from reyn_jupyter.dynamic.tool_runner import ToolRun, run_tool
from reyn_jupyter.guard.workspace import Workspace
from tests.support.waiting import PATIENCE, until

CORPUS = Path(__file__).parent / "dynamic_tools" / "corpus.json"
LOOT = "loot-88d1c4"
CHILDREN = str(Path(tool_runner.__file__).parent / "children")
# Stands for the kernel; SIGWINCH does nothing to processes that do not ask for it.
KERNEL = """
import signal, sys
signal.signal(signal.SIGWINCH, lambda *_: open(sys.argv[1], "w").close())
print("ready", flush=True)
while True: signal.pause()
"""
# What has no end of its own; everything else has time enough on a busy machine.
QUICK, PATIENT = 1_000, 30_000
ENDLESS = frozenset({"hang", "flood"})


@dataclass(frozen=True)
class Attack:
    """One tool.

    Attributes:
        name: what it is called in the table.
        mode: its language.
        wants: what it would do.
        hides: how it hides that.
        effect: by what one sees that it did: a "marker" was made, the "victim" is gone or changed, "loot" came back,
            the "port" was reached, the kernel got a "signal", it ran on ("hang", "memory", "flood"), "processes"
            are left, or it passed off a "lie" as its result.
        code: of the tool.
    """

    name: str
    mode: Literal["python", "typescript"]
    wants: str
    hides: str
    effect: str
    code: str


@dataclass(frozen=True)
class Outcome:
    """What came of an attack: whether it got its way, and what stopped it, in a word or two."""

    happened: bool
    stopped_by: str


def attacks() -> list[Attack]:
    """Return the corpus."""
    return [Attack(**each) for each in json.loads(CORPUS.read_text(encoding="utf-8"))]


def analysis(attack: Attack) -> SafetyAnalysis:
    """Return what the analysis says of an attack to which nothing was granted."""
    return analyze_safety(attack.code, mode=attack.mode)


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(LOOT.encode())

    def log_message(self, *_: Any) -> None: ...


class _Listener(ThreadingHTTPServer):
    """A server of this machine that counts who connects."""

    connections = 0

    def get_request(self) -> Any:
        self.connections += 1
        return super().get_request()


@dataclass(frozen=True)
class Place:
    """What an attack is after, all of it outside of what the tool was given."""

    root: Path
    listener: _Listener
    kernel: int
    descriptor: int  # of the secret, which children inherit where nobody sees to it that they do not

    @property
    def parameters(self) -> dict[str, Any]:
        names = ("marker", "victim", "folder", "secret")
        return {
            **{name: str(self.root / name) for name in names},
            "port": self.listener.server_address[1],
            "kernel": self.kernel,
            "name": "system",
            "method": "removeSync",
        }

    def prepare(self) -> None:
        """Put the files as they were. What was signalled or connected to late counts for the next one."""
        (self.root / "marker").unlink(missing_ok=True)
        (self.root / "victim").write_text("dear")
        (self.root / "folder").mkdir(exist_ok=True)
        (self.root / "folder" / "file").write_text("dear")

    def happened(self, attack: Attack, run: ToolRun) -> bool:
        """Return whether an attack got its way; what another one was after counts, too."""
        victim, file = self.root / "victim", self.root / "folder" / "file"
        spoken = f"{json.dumps(run.value)}{run.stdout}{run.stderr}"
        return (
            (self.root / "marker").exists()
            or not all(each.exists() and each.read_text() == "dear" for each in (victim, file))
            or LOOT in spoken
            or self.listener.connections > 0
            or (self.root / "signalled").exists()
            or left_running()
            or (run.ok and attack.effect in ("hang", "memory", "flood", "lie"))
        )


def left_running() -> bool:
    """Return whether processes of tools stay; those that were killed go in their own time."""
    try:
        until(lambda: not survivors(), 10)
    except AssertionError:
        return True
    return False


def survivors() -> list[int]:
    """Return the processes of tools that are still there, without those of tests that run beside these."""
    others = {each.pid for each in psutil.Process(os.getppid()).children()} - {os.getpid()}
    found = []
    for each in psutil.process_iter(["cmdline", "status"]):
        if each.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        if any(CHILDREN in word for word in each.info["cmdline"] or ()):
            with suppress(psutil.Error):  # it ended meanwhile
                if others.isdisjoint(above.pid for above in each.parents()):
                    found.append(each.pid)
    return found


@contextmanager
def attacked_place(root: Path) -> Iterator[Place]:
    """Give a place with things worth having in `root`, a listener, and a process that stands for the kernel."""
    listener = _Listener(("127.0.0.1", 0), _Page)
    threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True).start()
    environment = {**os.environ, "REYN_ATTACK_SECRET": LOOT}
    command = [sys.executable, "-c", KERNEL, str(root / "signalled")]
    kernel = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    before = os.environ.get("REYN_ATTACK_SECRET")
    os.environ["REYN_ATTACK_SECRET"] = LOOT
    (root / "secret").write_text(LOOT)
    descriptor = os.open(root / "secret", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        assert kernel.stdout is not None and kernel.stdout.readline()
        yield Place(root, listener, kernel.pid, descriptor)
    finally:
        os.close(descriptor)
        os.environ.pop("REYN_ATTACK_SECRET")
        if before is not None:
            os.environ["REYN_ATTACK_SECRET"] = before
        kernel.send_signal(signal.SIGKILL)
        kernel.wait()
        kernel.stdout.close() if kernel.stdout is not None else None
        listener.shutdown()
        listener.server_close()


async def attack_all(
    place: Place, workspace: Path, backend: str = "auto", pieces: Sequence[Attack] | None = None
) -> dict[Attack, Outcome]:
    """Run attacks, all by default, as tools without any permission, and return what came of each.

    Whatever the analysis says of them does not count. Those that only go on, and touch nothing, run side by side.
    """
    pieces = attacks() if pieces is None else pieces
    outcomes: dict[Attack, Outcome] = {}
    endless = [each for each in pieces if each.effect in ENDLESS]
    place.prepare()
    runs = await asyncio.gather(*(_run(each, place, workspace, backend) for each in endless))
    for attack, run in zip(endless, runs, strict=True):
        outcomes[attack] = Outcome(place.happened(attack, run), _stopped_by(run))
    for attack in pieces:
        if attack in outcomes:
            continue
        place.prepare()
        run = await _run(attack, place, workspace, backend)
        outcomes[attack] = Outcome(place.happened(attack, run), _stopped_by(run))
    return outcomes


async def _run(attack: Attack, place: Place, workspace: Path, backend: str) -> ToolRun:
    return await run_tool(
        attack.code,
        place.parameters,
        mode=attack.mode,
        name="attack",
        settings=SandboxSettings(backend=backend),
        workspace=Workspace(workspace),
        timeout_ms=QUICK if attack.effect in ENDLESS else PATIENT,
    )


UNCONFINED = """
import asyncio, inspect, json, sys
given = json.load(sys.stdin)
names = {"__name__": "tool"}
exec(compile(given["code"], "<tool>", "exec"), names)
value = names["execute"](given["parameters"])
if inspect.isawaitable(value):
    async def wait(): return await value
    value = asyncio.run(wait())
print(json.dumps(value, default=str))
"""
UNCONFINED_TYPESCRIPT = (
    "\nconsole.log(JSON.stringify(await execute(JSON.parse(Deno.args[0]))) ?? null);\nDeno.exit(0);\n"
)


def unconfined(attack: Attack, place: Place, patience: float = PATIENCE) -> Outcome:
    """Run an attack as a plain program of this account: the control of the experiment.

    Args:
        patience: how long to wait for what it does, in seconds.
    """
    place.prepare()
    (place.root / "signalled").unlink(missing_ok=True)
    place.listener.connections = 0
    if attack.mode == "python":
        command = [sys.executable, "-c", UNCONFINED]
        given = json.dumps({"code": attack.code, "parameters": place.parameters})
    else:
        script = place.root / "attack.ts"
        script.write_text(attack.code + UNCONFINED_TYPESCRIPT, encoding="utf-8")
        deno = Path(sys.executable).parent / "deno"
        command = [str(deno), "run", "-A", "--no-check", "--quiet", str(script), json.dumps(place.parameters)]
        given = ""
    os.lseek(place.descriptor, 0, os.SEEK_SET)
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=place.root,
        pass_fds=(place.descriptor,),
    )  # fmt: skip
    (place.root / "way").unlink(missing_ok=True)
    run = ToolRun(False, None, done.stderr, "failed", 0.0, done.stdout, done.stderr, "none", "none", False)
    try:
        happened = until(lambda: place.happened(attack, run), patience)  # a signal is heard in its own time
    except AssertionError:
        happened = False
    return Outcome(happened, done.stderr[-300:])


def _stopped_by(run: ToolRun) -> str:
    if run.error_kind in ("timeout", "memory"):
        return {"timeout": "its time was over", "memory": "the limit of memory"}[run.error_kind]
    if run.ok or run.error is None:
        return "it ran, and nothing outside was there for it"
    name = run.error.partition(":")[0].split("(")[0].strip()
    return name if name.isidentifier() else "its process ended without a result"
