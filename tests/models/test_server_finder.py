"""Servers of models on this machine: real ones, closed ports, and servers that hang, babble or flood."""

from __future__ import annotations

import asyncio
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.models import fake_provider
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.server_finder import LOOK, FoundModel, find_servers


@contextmanager
def answering(
    answer: Callable[[BaseHTTPRequestHandler], None],
) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """A server that answers every request so; its address, and (path, headers) of each."""
    asked: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers))
            answer(self)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing is logged."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is what is tested."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def sends(body: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def flood(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" " * 1_000_000)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    ("name", "tools", "forced", "schema"),
    [
        ("forces_named", True, "by name", False),
        ("forces_alone", True, "sent alone", False),
        ("forces_schema", True, "by JSON schema", True),
        ("forces_nothing", True, "no", False),
    ],
)
async def test_what_a_model_can_do_is_found_by_trying(
    name: str, tools: bool, forced: str, schema: bool
) -> None:
    with fake_provider.serve() as server:
        address = server.url.removeprefix("http://").removesuffix("/v1")
        found = {each.model: each for each in await find_servers([address], models=[name])}

    one = found[name]
    assert (one.tools, one.forced, one.schema) == (tools, forced, schema)


async def test_a_quick_look_tries_nothing() -> None:
    with fake_provider.serve() as server:
        found = await find_servers([server.url], quick=True)
        assert server.asked == {}

    assert len(found) > 10 and {(each.tools, each.forced, each.schema) for each in found} == {(None,) * 3}


BODY = json.dumps({"data": [{"id": "m"}]}).encode()


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (sends(b"<html>hello</html>"), "no server of models"),
        (sends(b"[1, 2]"), "no server of models"),
        (sends(b'{"data": [3, "x"]}'), "no server of models"),
        (sends(b"[" * 100_000), "no server of models"),
        (sends(b'{"data": []}'), "it has no model"),
        (sends(BODY, 403), "status 403"),
        (flood, "more than 1 MB"),
    ],
)
async def test_what_is_no_server_of_models_is_said_to_be_none(answer: Any, note: str) -> None:
    with answering(answer) as (address, _):
        (found,) = await find_servers([address])

    assert note in found.note and not found.model and not found.line


async def test_garbage_behind_a_list_of_models_is_nothing_that_it_can_do() -> None:
    with answering(sends(BODY)) as (address, asked):
        (found,) = await find_servers([address])

    assert (found.model, found.tools, found.forced, found.schema) == ("m", False, "no", False)
    assert len(asked) < 10


async def test_a_server_that_hangs_and_closed_ports_are_given_up_in_time() -> None:
    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)
            ended.wait(30)

    ended = threading.Event()
    closed = [str(closed_port()) for _ in range(3)]
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        began = asyncio.get_running_loop().time()
        found = await find_servers([str(server.server_address[1]), *closed])
        took = asyncio.get_running_loop().time() - began
        ended.set()
        server.shutdown()

    assert [each.note for each in found] == [f"no answer within {LOOK} s", *["nothing answers"] * 3]
    assert took >= LOOK


async def test_no_key_leaves_and_no_redirect_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with answering(sends(BODY)) as (elsewhere, reached):
        monkeypatch.setenv("HTTP_PROXY", f"http://{elsewhere}")
        with answering(sends(b"", 307, Location=f"http://{elsewhere}/v1/models")) as (address, asked):
            (found,) = await find_servers([address])

    assert "status 307" in found.note and reached == []
    assert asked and all("Authorization" not in headers for _, headers in asked)


@pytest.mark.parametrize(
    "address",
    ["example.com:80", "10.0.0.1:8080", "0.0.0.0:80", "http://user@host:80", "nonsense", "127.0.0.1"],
)
async def test_another_machine_is_never_asked(address: str) -> None:
    with pytest.raises(ModelError, match=r"no address of this machine|has no port"):
        await find_servers([address])


def test_the_line_that_is_shown_makes_the_model_answer(workspace: Path) -> None:
    with fake_provider.serve() as server:
        s = reyn.Session(workspace, store=None)
        table = s.find_models(server.url, quick=True)
        row = next(row for row in table.rows if row["model"] == "loops")
        key, _, value = row["to use it"].removeprefix("%reyn config ").partition(" ")
        s.configure(key, value)
        s.configure("router.limits.max_steps", 1)
        trace = s.ask("hello", model="light")

    assert trace.calls[0].resolved.wrapper == "list_actions"


def test_a_name_that_is_no_plain_word_gets_no_line() -> None:
    assert FoundModel("x", "127.0.0.1:1", "a, api_base: http://evil").line == ""
