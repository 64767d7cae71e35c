"""The SDK's own client, over HTTP, at a session that is served; and requests by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp_types import Implementation

import reyn_jupyter as reyn
from reyn_jupyter.backends.mcp_sdk.client import Client, streamable_http
from reyn_jupyter.backends.mcp_sdk.http import httpx
from reyn_jupyter.backends.serving.address_file import AddressFile
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.sessions.assembly import ENGINE

OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


def posted(session: reyn.Session, **more: Any) -> httpx.Response:
    """Send an opening request by hand."""
    assert session.served is not None
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    content = more.pop("content", json.dumps(OPENING).encode())
    address = more.pop("url", session.served.address)
    return httpx.post(address, content=content, headers={**headers, **more.pop("headers", {})}, timeout=60)


def token_of(session: reyn.Session) -> str:
    return AddressFile(StateFolder(session.root)).find().token.reveal()


@asynccontextmanager
async def connected(session: reyn.Session, **options: Any) -> AsyncIterator[Client]:
    assert session.served is not None
    headers = {"Authorization": f"Bearer {token_of(session)}"}
    info = options.pop("info", Implementation(name="tester", version="7"))
    async with (
        httpx.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http(session.served.address, http, 1 << 20), client_info=info, **options) as client,
    ):
        yield client


def by_client(session: reyn.Session, work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Do what a client does, over HTTP."""
    if session.served is None:
        session.serve_mcp()

    async def run() -> Any:
        async with connected(session, **options) as client:
            return await work(client)

    return ENGINE.run(run())


def call(action: str, /, **args: Any) -> Callable[[Client], Awaitable[Any]]:
    return lambda client: client.call_tool("invoke_action", {"action_name": action, "args": args})


def text(answer: Any) -> str:
    return str(answer.content[0].text)
