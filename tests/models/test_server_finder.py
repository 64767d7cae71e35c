"""Servers of models on this machine: real ones, closed ports, and servers that hang, babble or flood."""

from __future__ import annotations

import asyncio
import gzip
import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.models import fake_provider
from reyn_jupyter.evaluation.models.fake_provider import server as server_of_models
from reyn_jupyter.models import server_finder
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.server_finder import LISTED, find_servers
from reyn_jupyter.notebook.render import to_html, view
from tests.support.answering_server import answering, sends, tells
from tests.support.llama_server import TOOLS_TEMPLATE, llama_server
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of a machine that is slow and busy are waited for."""
    monkeypatch.setattr(server_finder, "LOOK", PATIENCE)
    monkeypatch.setattr(server_finder, "TRY", PATIENCE)


def flood(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" " * 1_000_000)


@pytest.mark.parametrize(("template", "tools"), [("", False), (TOOLS_TEMPLATE, True)])
async def test_what_llama_cpp_s_server_can_do_is_found_on_a_real_one(
    workspace: Path, template: str, tools: bool
) -> None:
    with llama_server(template) as address:
        (found,) = await find_servers([address])
        assert found.model.endswith(".gguf") and found.note == ""
        assert (found.server, found.context, found.tools) == ("llama.cpp", 4096, tools)
        # It knows `tool_choice` as a string alone, and leaves even that out for a template that has no form of a call.
        assert (found.forced, found.schema) == ("by JSON schema", True)

        if not tools:
            s = reyn.Session(workspace, store=None)
            key, _, value = found.line.removeprefix("%reyn config ").partition(" ")
            s.configure(key, value.replace("}", ", parameters: {max_tokens: 4, temperature: 0}}"))
            answer = await asyncio.to_thread(lambda: s.ask("Say hello.", model="light").answer)
            assert answer


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
    name: str, tools: bool, forced: str, schema: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_of_models, "BEHAVIOURS", {name: server_of_models.BEHAVIOURS[name]})
    with fake_provider.serve() as server:
        address = server.url.removeprefix("http://").removesuffix("/v1")
        (one,) = await find_servers([address])

    assert (one.model, one.tools, one.forced, one.schema) == (name, tools, forced, schema)


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
        (sends(BODY, 500), "status 500"),
        (sends(BODY, 401), "wants a key: status 401"),
        (flood, "more than 1 MB"),
        (sends(gzip.compress(b" " * 300_000_000, 1), Content_Encoding="gzip"), "more than 1 MB"),
        (sends(gzip.compress(BODY), Content_Encoding="gzip"), "no server of models"),
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


class Silent(socketserver.BaseRequestHandler):
    """Takes a request and says nothing."""

    def handle(self) -> None:
        self.request.recv(1)
        ENDED.wait(300)


class Drip(socketserver.BaseRequestHandler):
    """Says a byte of its headers now and then, and so never lets a pause grow long."""

    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not ENDED.wait(0.1):
            self.request.sendall(b"x")


ENDED = threading.Event()


@pytest.mark.parametrize("kind", [Silent, Drip])
async def test_a_server_that_hangs_or_drips_and_closed_ports_are_given_up_in_time(
    kind: type[socketserver.BaseRequestHandler], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Server(socketserver.ThreadingTCPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is what is tested."""

    closed = [str(free_port()) for _ in range(3)]
    ENDED.clear()
    with Server(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setattr(server_finder, "LOOK", 0.5)
        found = await asyncio.wait_for(find_servers([str(server.server_address[1])]), PATIENCE)
        monkeypatch.setattr(server_finder, "LOOK", PATIENCE)
        found += await find_servers(closed)
        ENDED.set()
        server.shutdown()

    assert [each.note for each in found] == ["no answer within 0.5 s", *["nothing answers"] * 3]


async def test_no_key_leaves_and_no_redirect_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with answering(sends(BODY)) as (elsewhere, reached):
        monkeypatch.setenv("HTTP_PROXY", f"http://{elsewhere}")
        with answering(sends(b"", 307, Location=f"http://{elsewhere}/v1/models")) as (address, asked):
            (found,) = await find_servers([address])

    assert "status 307" in found.note and reached == []
    assert asked and all("Authorization" not in headers for _, headers in asked)


async def test_what_one_server_sets_no_other_one_sees() -> None:
    named = sends(BODY, Set_Cookie="who=first; Path=/")
    with answering(named) as (first, _), answering(sends(BODY)) as (second, asked):
        await find_servers([first, second])

    assert asked and all("Cookie" not in headers for _, headers in asked)


async def test_a_model_that_ollama_runs_elsewhere_and_one_of_embeddings_are_named_and_not_tried() -> None:
    """A request to the first would leave this machine by way of a server on it."""
    names = ["glm-5.1:cloud", "nomic-embed-text:latest"]
    facts = {
        "/v1/models": {"data": [{"id": name, "object": "model", "owned_by": "library"} for name in names]},
        "/api/tags": {
            "models": [
                {"name": names[0], "remote_model": "glm-5.1", "remote_host": "https://ollama.com:443"},
                {"name": names[1], "capabilities": ["embedding"]},
            ]
        },
    }
    with answering(tells(facts)) as (address, asked):
        cloud, embeds = await find_servers([address])

    assert "another machine (https://ollama.com:443)" in cloud.note and "embeddings" in embeds.note
    assert cloud.line == embeds.line == ""
    assert "/v1/chat/completions" not in [path for path, _ in asked]


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a\x1b[31m\u202eb\x00",
    "a, api_base: http://evil",
    "x" * 5_000,
    "a:",
]


def test_a_name_that_is_markup_or_holds_hidden_characters_stays_text_and_gets_no_line(
    workspace: Path,
) -> None:
    listed = {"data": [{"id": name, "owned_by": "vllm"} for name in HOSTILE + [str(n) for n in range(30)]]}
    with answering(tells({"/v1/models": listed})) as (address, _):
        table = reyn.Session(workspace, store=None).find_models(address, quick=True)

    assert len(table.rows) == LISTED and "of 35" in table.rows[-1]["note"]
    assert [row["to use it"] for row in table.rows[: len(HOSTILE)]] == [None] * len(HOSTILE)
    shown = to_html(view(table))
    assert "<img" not in shown and len(shown) < 60_000
    assert not any(sign in shown + repr(table) for sign in "\x1b\u202e\x00")


@pytest.mark.parametrize(
    "address",
    ["example.com:80", "10.0.0.1:8080", "0.0.0.0:80", "http://user@host:80", "nonsense", "127.0.0.1"],
)
async def test_another_machine_is_never_asked(address: str) -> None:
    with pytest.raises(ModelError, match=r"no address of this machine|has no port"):
        await find_servers([address])


async def test_an_address_of_ipv6_may_stand_without_brackets() -> None:
    for given in ("::1:9", "[::1]:9", "http://[::1]:9/v1"):
        (found,) = await find_servers([given])
        assert (found.address, found.note) == ("[::1]:9", "nothing answers")


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
