"""Servers over HTTP: calls, keys, restarts, and hosts that are asked about."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.runtime.access.mcp_access import McpServer
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.support.secret import Secret
from tests.security.security_support import Attacker
from tests.support.mcp_http import HttpServer, http_server
from tests.support.mcp_servers import program
from tests.support.waiting import clock_of, until

Make = Callable[..., reyn.Session]


@pytest.fixture(scope="module")
def far() -> Iterator[HttpServer]:
    with http_server() as server:
        yield server


def called(session: reyn.Session, tool: str, **args: Any) -> Any:
    return session.invoke_action("mcp__call_tool", {"tool": tool, "tool_args": args})


def test_tools_are_called_and_its_version_is_known(make: Make, far: HttpServer) -> None:
    session = make(far.entry())
    assert called(session, "far__echo", text="hello").value == "hello"
    [row] = session.invoke_action("mcp__list_servers").value
    assert (row["state"], row["transport"], row["version"]) == ("ready", "http", "far 2")


def test_a_key_goes_with_each_request_and_stands_in_no_text(make: Make, far: HttpServer) -> None:
    session = make(far.entry(headers={"Authorization": Secret("FAR_KEY", "Bearer open-sesame")}))
    assert called(session, "far__headers").value == "Bearer open-sesame"
    assert "sesame" not in repr(session.parts.services.mcp.servers())


def test_changes_of_its_tools_arrive(make: Make) -> None:
    with http_server() as server:
        session = make(server.entry())
        called(session, "far__grow", text="A new trick.")
        until(lambda: session.list_actions("mcp", filter="far grown").total == 1)


def test_a_server_that_was_killed_and_started_again_answers_the_next_call(make: Make) -> None:
    with http_server() as server:
        session = make(server.entry())
        assert called(session, "far__echo", text="one").error is None
        server.kill()
        server.start()
        assert called(session, "far__echo", text="two").error is None
        assert called(session, "far__count").value == 1


def test_a_server_that_is_gone_is_noticed_at_the_call_and_left_alone(make: Make) -> None:
    with http_server() as server:
        session = make(server.entry(), program())
        assert called(session, "far__echo", text="one").error is None
        server.kill()
        gone = called(session, "far__echo", text="two")
        assert gone.code in ("server_died", "server_unavailable") and "onnect" in str(gone.error)
        assert called(session, "far__echo", text="two").code == "server_unavailable"
        assert called(session, "lab__echo", text="on").value == "on"


def test_one_that_dies_in_the_middle_of_a_call_is_not_asked_twice(make: Make) -> None:
    with http_server() as server:
        session = make(server.entry())
        assert called(session, "far__echo", text="one").error is None
        states = session.parts.services.mcp.states
        found: list[Any] = []
        calling = threading.Thread(target=lambda: found.append(called(session, "far__hang")))
        calling.start()
        until(lambda: states()[0].calls == 2)
        server.kill()
        calling.join(60)
        assert found[0].code == "server_died" and "not known" in str(found[0].payload)


def test_a_model_asks_for_the_tool_and_for_the_host(workspace: Path, far: HttpServer) -> None:
    attacker = Attacker(workspace, answer="deny", servers=[far.entry()])
    try:
        attacker.call("mcp__far__echo", text="data")
        [question] = attacker.questions
        assert "mcp far/echo" in question.text and f"network 127.0.0.1:{far.port}" in question.text
    finally:
        attacker.session.close()


class Answers(BaseHTTPRequestHandler):
    """Answers every request with what the test set."""

    status: int = 200
    headers_out: ClassVar[dict[str, str]] = {}
    body: bytes | None = b""

    def do_POST(self) -> None:
        self.send_response(self.status)
        for name, value in self.headers_out.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            if self.body is not None:
                self.wfile.write(self.body)
            while self.body is None:  # until whoever reads is gone
                self.wfile.write(b": still here\n\n")
                select.select([self.connection], [], [], 0.02)

    def do_GET(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.do_POST()

    def log_message(self, *said: Any) -> None:
        return None


HOSTILE = {
    "a page": (200, {"Content-Type": "text/html"}, b"<script>alert(1)</script>"),
    "a flood": (200, {"Content-Type": "application/json"}, b"[" + b"0," * (17 << 20)),
    "a bomb": (200, {"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"\x1f\x8b"),
    "no json": (200, {"Content-Type": "application/json"}, b"{nonsense"),
    "another host": (307, {"Location": "http://169.254.169.254/latest"}, b""),
    "an error": (500, {}, b"Traceback: /home/ada/secret.py"),
    "nothing there": (404, {}, b"no such page"),
    "another way": (405, {"Allow": "GET"}, b""),
    "huge headers": (200, {"Content-Type": "application/json", "X-Long": "x" * 300_000}, b"{}"),
    "an event without an end": (200, {"Content-Type": "text/event-stream"}, b"data: " + b"x" * (33 << 20)),
    "a stream that stops": (200, {"Content-Type": "text/event-stream"}, b": hello\n\n"),
}
# What says nothing for ever: given up once its time is over.
MUTE = {
    "taken and never answered": (202, {}, b""),
    "a stream that drips": (200, {"Content-Type": "text/event-stream"}, None),
    "a stream of events of others": (
        200,
        {"Content-Type": "text/event-stream"},
        b'event: message\ndata: {"jsonrpc": "2.0", "id": 77, "result": {}}\n\n',
    ),
}


@contextmanager
def odd_server(kind: tuple[int, dict[str, str], bytes | None]) -> Iterator[McpServer]:
    """Give the entry of a server that answers every request in one way."""
    handler = type("Handler", (Answers,), dict(zip(("status", "headers_out", "body"), kind, strict=True)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield McpServer("odd", "http", url=f"http://127.0.0.1:{server.server_port}/mcp")
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_server_is_said_to_be_none(make: Make, kind: str) -> None:
    with odd_server(HOSTILE[kind]) as odd:
        session = make(odd, program())
        result = session.invoke_action("mcp__list_tools", {"server": "odd"})
        assert result.code == "server_unavailable" and "<script>" not in str(result.error)
        assert called(session, "lab__echo", text="on").value == "on"


def test_a_key_that_is_refused_is_no_matter_of_signing_in(make: Make) -> None:
    with odd_server((401, {}, b"")) as server:
        keyed = replace(server, headers={"Authorization": Secret("KEY", "Bearer wrong-key")})
        session = make(keyed)
        assert session.invoke_action("mcp__list_tools", {"server": "odd"}).code == "server_unavailable"


@pytest.mark.parametrize("kind", MUTE)
def test_what_never_answers_is_given_up_and_holds_nobody(make: Make, kind: str) -> None:
    with odd_server(MUTE[kind]) as odd:
        session = make(odd, program())
        found: list[Any] = []
        asking = threading.Thread(
            target=lambda: found.append(session.invoke_action("mcp__list_tools", {"server": "odd"}))
        )
        assert called(session, "lab__echo", text="on").value == "on"
        with clock_of(ENGINE.loop) as forward:
            asking.start()
            until(lambda: (forward(61), not asking.is_alive())[1])
        assert found[0].code == "server_unavailable", found[0].error
        assert called(session, "lab__echo", text="on").value == "on"
