"""What answers at the door by MCP's streamable HTTP.

Invariants: bodies and sessions are bounded; a client that is gone takes no place from one that comes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from reyn_jupyter.backends.serving.connected_clients import IDLE_SECONDS, ClientRequest, ConnectedClients
from reyn_jupyter.backends.serving.served_session import MCP_PATH

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import Message, Receive, Scope, Send

MOST_BODY = 4 << 20  # bytes of one request
MOST_SESSIONS = 32
_FORGET = 10.0  # seconds for which a client has to be gone before its session makes room for another
_SESSION = "mcp-session-id"


class McpEndpoint:
    """Answers for one MCP server object.

    Args:
        server: what answers.
        clients: told who is heard of, and who leaves.
        hosts: the names of the door.
    """

    paths = frozenset({MCP_PATH})

    def __init__(self, server: Server[Any], clients: ConnectedClients, hosts: Sequence[str]) -> None:
        # Without a handler, Python writes its warnings onto the page below a cell.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self._clients = clients
        self._host = hosts[0]
        self._manager = StreamableHTTPSessionManager(
            server,
            security_settings=TransportSecuritySettings(
                allowed_hosts=list(hosts), allowed_origins=[f"http://{host}" for host in hosts]
            ),
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=MOST_BODY,
            max_sessions=MOST_SESSIONS,
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return what its sessions live in."""
        return self._manager.run()

    async def answer(self, scope: Scope, receive: Receive, send: Send, known: ClientRequest) -> None:
        """Answer a request of who has shown the token."""
        request = Request(scope)
        session = request.headers.get(_SESSION, "")
        if request.method == "DELETE":
            self._clients.leave(session)
        elif request.method == "POST" and not session and _begins_session(request):
            await self._make_room()
        if session and request.method != "DELETE":
            known.belongs_to(session)

        async def watch(message: Message) -> None:
            if (
                request.method == "GET"
                and message["type"] == "http.response.start"
                and message["status"] == 200
            ):
                known.becomes_stream()
            await send(message)

        await self._manager.handle_request(scope, receive, watch)

    async def _make_room(self) -> None:
        """End the sessions of clients that are gone, so that they take no place from one that comes."""
        now = time.time()
        for key, client in self._clients.by_key().items():
            if client.left and now - client.last > _FORGET:
                await self._end_session(key)

    async def _end_session(self, session: str) -> None:
        """End a session as its client would; nothing where there is none of this id."""

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            return None

        headers = [(b"host", self._host.encode()), (_SESSION.encode(), session.encode("latin-1", "replace"))]
        scope = {
            "type": "http",
            "method": "DELETE",
            "path": MCP_PATH,
            "query_string": b"",
            "headers": headers,
        }
        await self._manager.handle_request(scope, receive, send)


def _begins_session(request: Request) -> bool:
    """Return whether a request without a session is of a protocol that keeps one."""
    return request.headers.get("mcp-protocol-version") not in MODERN_PROTOCOL_VERSIONS
