"""Who is connected: clients that end count as gone, and two of one name are two."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from mcp import Client

import reyn_jupyter as reyn
from reyn_jupyter.backends.serving import client_connection, mcp_endpoint
from reyn_jupyter.backends.serving.connected_clients import IDLE_SECONDS, ConnectedClients
from reyn_jupyter.notebook.displays.mime import mimebundle
from tests.support.mcp_client import by_client, call, posted, token_of
from tests.support.processes import started
from tests.support.waiting import PATIENCE, until

Make = Callable[..., reyn.Session]

PROGRAM = """
import asyncio, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

async def main(address, token, mode):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
        transport = streamable_http_client(address, http_client=http)
        async with Client(transport, client_info=Implementation(name="editor", version="3"), mode=mode) as client:
            await client.list_tools()
            print("there", flush=True)
            await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose a connection is may be looked up for as long as a busy machine takes."""
    monkeypatch.setattr(client_connection, "_LOOK_UP", PATIENCE)


def program(session: reyn.Session, mode: str) -> subprocess.Popen[str]:
    """Start a client in a process of its own; it stays until it is ended."""
    assert session.served is not None
    return started(PROGRAM, session.served.address, token_of(session), mode)


def wait_for(client: subprocess.Popen[str]) -> None:
    assert client.stdout is not None and client.stdout.readline() == "there\n"


def end(client: subprocess.Popen[str]) -> None:
    client.kill()
    client.communicate()


def test_two_clients_of_one_name_without_a_session_are_two_and_one_that_is_killed_is_gone(make: Make) -> None:
    session = make()
    served = session.serve_mcp()
    clients = [program(session, "auto") for _ in range(2)]
    try:
        for each in clients:
            wait_for(each)
        assert {each.process for each in served.connections} == {each.pid for each in clients}
        assert {each.name for each in served.connections} == {"editor 3"}
        os.kill(clients[0].pid, signal.SIGKILL)
        until(lambda: [each.process for each in served.connections if each.left] == [clients[0].pid])
        assert [each.process for each in served.connections if not each.left] == [clients[1].pid]
        drawn = mimebundle(served)["text/plain"]
        assert str(clients[1].pid) in drawn and "left" in drawn and "ago" in drawn
    finally:
        for each in clients:
            end(each)


def test_a_client_with_a_session_is_connected_while_its_stream_is_open(make: Make) -> None:
    session = make()
    served = session.serve_mcp()
    client = program(session, "legacy")
    try:
        wait_for(client)
        until(lambda: served.connections[0].is_connected)
        assert "connected: editor 3" in mimebundle(session.status)["text/plain"]
        os.kill(client.pid, signal.SIGKILL)
        until(lambda: served.connections[0].left)
        assert not served.connections[0].is_connected
        said = mimebundle(session.status)["text/plain"]
        assert "no client now" in said and "editor" not in said
    finally:
        end(client)


def test_a_client_that_ends_its_session_has_left(make: Make) -> None:
    session = make()

    async def work(client: Client) -> None:
        await call("file__read", path="notes.txt")(client)

    by_client(session, work, mode="legacy")
    assert session.served is not None
    until(lambda: session.served is not None and session.served.connections[0].left)


def test_who_is_silent_is_said_to_be_and_after_half_an_hour_is_gone() -> None:
    time = [1000.0]
    clients = ConnectedClients(str, lambda: time[0])
    clients.heard("a", "editor 3")
    clients.open("a")
    time[0] += 2 * IDLE_SECONDS
    assert clients.all()[0].is_connected  # a stream is open, however little comes by it
    clients.close("a")
    time[0] += IDLE_SECONDS - 1
    assert not clients.all()[0].is_connected and not clients.all()[0].left
    time[0] += 2
    assert clients.all()[0].left
    clients.heard("a", "editor 3")
    assert not clients.all()[0].left


def test_sessions_of_clients_that_broke_off_make_room(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_endpoint, "_FORGET", 0.0)
    monkeypatch.setattr(mcp_endpoint, "MOST_SESSIONS", 3)
    session = make()
    served = session.serve_mcp()
    headers = {
        "Authorization": f"Bearer {token_of(session)}",
        "Accept": "application/json, text/event-stream",
    }

    def begin() -> dict[str, Any]:
        opened = posted(session, headers=headers)
        assert opened.status_code == 200, opened.text
        own = {**headers, "mcp-session-id": opened.headers["mcp-session-id"]}
        ready = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
        assert posted(session, headers=own, content=ready).status_code == 202
        return own

    for number in range(mcp_endpoint.MOST_SESSIONS):
        own = begin()
        until(lambda number=number: len(served.connections) > number)  # type: ignore[misc]
        with httpx2.stream("GET", served.address, headers=own) as news:
            assert news.status_code == 200
    until(lambda: all(each.left for each in served.connections))
    begin()
    assert (
        posted(session, headers=own, content=b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}').status_code
        == 404
    )
