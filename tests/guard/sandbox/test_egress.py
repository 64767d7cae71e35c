"""The way from a sandbox to hosts with consent: real programs over it, names that lead elsewhere, what is counted."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.guard.sandbox import Confinement, Sandbox, SandboxError, SandboxResult
from reyn_jupyter.guard.sandbox.backend import SandboxBackend
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.deno import Deno
from reyn_jupyter.guard.sandbox.landlock import Landlock
from tests.support.waiting import awaited

BACKENDS: tuple[SandboxBackend, ...] = (Bubblewrap(), Landlock())
# Refuses one system call (unshare), as a container does, before the rest of a test runs.
WITHOUT_NAMESPACES = """
import asyncio, ctypes, platform, struct, sys
from pathlib import Path
number = {"x86_64": 272}.get(platform.machine(), 97)
code = b"".join(struct.pack("=HBBI", *each) for each in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)))
held = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxQ", 4, ctypes.addressof(held)), 0, 0) == 0
from reyn_jupyter.guard.sandbox import Confinement, Sandbox, SandboxError
from reyn_jupyter.guard.sandbox.landlock import Landlock
place = Confinement(Path(sys.argv[1]), (Path(sys.argv[1]),), hosts=("example.org",))
try:
    asyncio.run(Sandbox(Landlock()).run(["true"], place))
except SandboxError as error:
    print(error)
"""


@pytest.fixture(params=BACKENDS, ids=lambda backend: str(backend.name))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    if (problem := request.param.problem()) is not None:
        pytest.skip(f"{request.param.name} is not here: {problem}")
    return Sandbox(request.param)


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int, int]]:
    """Serve a folder over HTTP and HTTPS on loopback: a page, a package, a repository. Gives the ports too."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "page.txt").write_text("served", encoding="ascii")
    _certificate(folder)
    _package(folder)
    _repository(folder, tmp_path_factory.mktemp("source"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    servers = [
        ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=os.fspath(folder))) for _ in range(2)
    ]
    servers[1].socket = context.wrap_socket(servers[1].socket, server_side=True)
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield folder, servers[0].server_port, servers[1].server_port
    for server in servers:
        server.shutdown()
        server.server_close()


def _certificate(folder: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


def _package(folder: Path) -> None:
    name = "tinypkg-1.0-py3-none-any.whl"
    (folder / "simple" / "tinypkg").mkdir(parents=True)
    with zipfile.ZipFile(folder / "simple" / "tinypkg" / name, "w") as wheel:
        wheel.writestr("tinypkg.py", "VALUE = 1\n")
        wheel.writestr(
            "tinypkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n"
        )
        wheel.writestr(
            "tinypkg-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tinypkg-1.0.dist-info/RECORD", "")
    (folder / "simple" / "tinypkg" / "index.html").write_text(
        f'<a href="{name}">{name}</a>', encoding="ascii"
    )


def _repository(folder: Path, source: Path) -> None:
    (source / "a.txt").write_text("in the repository", encoding="ascii")
    git = ["git", "-C", os.fspath(source), "-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    bare = os.fspath(folder / "source.git")
    subprocess.run(["git", "clone", "-q", "--bare", source, bare], check=True, capture_output=True)
    subprocess.run(["git", "-C", bare, "update-server-info"], check=True)


def _place(folder: Path, *hosts: str, **further: Any) -> Confinement:
    return Confinement(folder, (folder,), hosts=hosts, **further)


def _why(result: SandboxResult) -> str:
    return f"{result} {result.refusals}"


async def test_curl_git_and_pip_work_over_https_with_a_host_of_consent(
    sandbox: Sandbox, site: tuple[Path, int, int], tmp_path: Path
) -> None:
    folder, _, secure = site
    address, authority = f"https://localhost:{secure}", str(folder / "cert.pem")
    place = Confinement(tmp_path, (folder,), (tmp_path,), hosts=(f"localhost:{secure}",))
    commands = [
        ["curl", "-sS", "--cacert", authority, "-o", "page.txt", f"{address}/page.txt"],
        ["python", "-m", "pip", "--isolated", "download", "-q", "--no-deps", "--no-cache-dir", "--cert", authority,
         "--proxy", "http://127.0.0.1:3128", "--index-url", f"{address}/simple", "tinypkg"],
    ]  # fmt: skip
    if sandbox.name == "bubblewrap":  # git works there alone
        clone = ["clone", "-q", f"{address}/source.git", "cloned"]
        commands.append(["git", "-c", f"http.sslCAInfo={authority}", *clone])
    for argv in commands:
        result = await sandbox.run(argv, place)
        assert result.status == "ok", _why(result)
        assert [each.host for each in result.traffic] == [f"localhost:{secure}"]
    assert (tmp_path / "page.txt").read_text(encoding="ascii") == "served"
    assert (tmp_path / "tinypkg-1.0-py3-none-any.whl").exists()
    assert (tmp_path / "cloned" / "a.txt").exists() == (len(commands) == 3)


async def test_bytes_are_counted_by_host_and_refusals_are_told(
    sandbox: Sandbox, site: tuple[Path, int, int]
) -> None:
    folder, plain, secure = site
    code = f"""
import urllib.request
print(urllib.request.urlopen(urllib.request.Request("http://localhost:{plain}/page.txt")).read())
for url in ("https://localhost:{secure}/", "http://example.org/"):
    try: urllib.request.urlopen(url)
    except OSError as error: print(error)
"""
    result = await sandbox.run(["python", "-c", code], _place(folder, f"localhost:{plain}"))
    assert result.stdout.startswith(b"b'served'\n"), _why(result)
    assert len(result.traffic) == 1
    assert result.traffic[0].connections == 1
    assert result.traffic[0].sent > len("GET /page.txt")
    assert result.traffic[0].received > len("served")
    assert [f"localhost:{secure}" in result.refusals[0], "example.org" in result.refusals[1]] == [True, True]


async def test_a_large_body_goes_there_and_an_answer_comes_back_whole(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    class Counting(_Files):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = len(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (str(size).encode(), b"x" * 500_000):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    with ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        code = f"""
import urllib.request
said = urllib.request.urlopen("http://localhost:{server.server_port}/", data=b"y" * 3_000_000).read()
print(said[:7], len(said))
"""
        result = await sandbox.run(
            ["python", "-c", code], _place(tmp_path, f"localhost:{server.server_port}")
        )
        server.shutdown()
    assert result.stdout == b"b'3000000' 500007\n", _why(result)
    assert result.traffic[0].sent > 3_000_000


async def test_a_name_that_leads_to_this_machine_is_looked_up_once_and_refused(
    sandbox: Sandbox, site: tuple[Path, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, plain, _ = site
    asked: list[str] = []
    real = socket.getaddrinfo

    def answer(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host == "rebind.example":
            asked.append(host)
            return real("127.0.0.1", port, *args, **kwargs)
        return real(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    argv = ["curl", "-sS", f"http://rebind.example:{plain}/page.txt"]
    result = await sandbox.run(argv, _place(folder, f"rebind.example:{plain}"))
    assert b"served" not in result.stdout
    assert "127.0.0.1, which is of this machine or a private network" in result.refusals[0]
    assert asked == ["rebind.example"]
    assert result.traffic == ()
    result = await sandbox.run(
        ["curl", "-sS", f"http://0x7f.1:{plain}/page.txt"], _place(folder, f"127.0.0.1:{plain}")
    )
    assert result.stdout == b"served", _why(result)  # that very address was consented to


async def test_a_command_that_ends_or_is_ended_leaves_no_connection_and_no_descriptor(
    sandbox: Sandbox, site: tuple[Path, int, int]
) -> None:
    import psutil

    folder, plain, _ = site
    place = _place(folder, f"localhost:{plain}")
    await sandbox.run(["true"], place)
    before = psutil.Process().num_fds()
    code = f"""
import socket
held = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(5)]
held[0].sendall(b"CONNECT localhost:{plain} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
print(held[0].recv(100))
"""
    for _ in range(3):
        result = await sandbox.run(["python", "-c", code], place)
        assert b" 200 " in result.stdout, _why(result)
    await awaited(lambda: psutil.Process().num_fds() <= before)  # what was ended closes on the loop


@pytest.mark.skipif(Landlock().problem() is not None, reason="Landlock is not here")
def test_landlock_without_namespaces_refuses_hosts_and_says_why(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES, tmp_path], capture_output=True, text=True, check=True
    )
    assert "so no host can be allowed alone" in done.stdout


async def test_what_cannot_be_held_to_hosts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="no host"):
        await Sandbox(Bubblewrap()).run(["true"], _place(tmp_path, "a.*.example.org"))
    if Deno().absence() is None:
        (tmp_path / "a.ts").write_text("", encoding="ascii")
        with pytest.raises(SandboxError, match="no host"):
            await Sandbox(Deno()).run(["a.ts"], _place(tmp_path, "*.example.org"))
