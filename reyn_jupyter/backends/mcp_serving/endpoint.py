"""The door of a served session: HTTP on this machine, with a token, for MCP's streamable HTTP.

Invariants: it listens at 127.0.0.1 alone. Who it is, is asked before a byte of a body is read: another Host or Origin
than its own is refused, so that no page reaches it by a name that leads here, and so is whoever lacks the token, which
is compared in constant time. It answers no preflight and sets no header of CORS. Bodies, sessions, connections and
requests at once are bounded, and no log gets the token.
"""

from __future__ import annotations

import asyncio
import hmac
import importlib
import logging
import secrets
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.mcp_serving.address_file import TOKEN_NAME
from reyn_jupyter.backends.mcp_serving.client_connection import MOST_STRANGERS, bounded_protocol
from reyn_jupyter.backends.mcp_serving.connected_clients import IDLE_SECONDS, ClientRequest, ConnectedClients
from reyn_jupyter.support.secret import Secret

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.requests import Request
    from starlette.types import Message, Receive, Scope, Send

PATH = "/mcp"
MOST_BODY = 4 << 20  # bytes of one request
MOST_SESSIONS = 32
MOST_REQUESTS = 128  # at once, streams that wait for news included; more get 503
_FORGET = 10.0  # seconds for which a client has to be gone before its session makes room for another
_SESSION = "mcp-session-id"
_MODULES = ("mcp.server.lowlevel.server", "mcp.server.subscriptions", "uvicorn.protocols.http.h11_impl")
_LOGGERS = ("mcp", "uvicorn", "sse_starlette")


class Endpoint:
    """Serves one MCP server object at an address of its own.

    Args:
        server: what answers.
        clients: told who is heard of, and who leaves.
    """

    def __init__(self, server: Server[Any], clients: ConnectedClients) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings

        for name in _LOGGERS:
            # Without a handler, Python writes its warnings onto the page below a cell.
            logging.getLogger(name).addHandler(logging.NullHandler())
        self.token = Secret(TOKEN_NAME, secrets.token_urlsafe(32))
        self._clients = clients
        self._requests = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.bind(("127.0.0.1", 0))
            self.port: int = self._socket.getsockname()[1]
        except OSError:
            self._socket.close()
            raise
        hosts = [f"127.0.0.1:{self.port}", f"localhost:{self.port}"]
        settings = TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        )
        self._door = TransportSecurityMiddleware(settings)
        self._manager = StreamableHTTPSessionManager(
            server,
            security_settings=settings,
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=MOST_BODY,
            max_sessions=MOST_SESSIONS,
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def listen(self) -> None:
        """Take connections from now on; they are answered once `serve` runs."""
        self._socket.listen(64)
        self._socket.setblocking(False)

    def close(self) -> None:
        """Let go of the address."""
        self._socket.close()

    async def serve(self) -> None:
        """Answer requests until this is cancelled; what is under way then is cancelled too."""
        import uvicorn

        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            http=bounded_protocol(),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_REQUESTS + MOST_STRANGERS,
            timeout_keep_alive=30,
        )
        http = uvicorn.Server(config)
        try:
            async with self._manager.run():
                await http.serve(sockets=[self._socket])
        finally:
            # First off the loop, then closed: a descriptor that is closed first stays known to the loop, which then
            # never hears of the next socket of that number.
            self._end(http)
            self.close()

    @staticmethod
    def _end(http: Any) -> None:
        """Close what an HTTP server has open."""
        for listener in getattr(http, "servers", ()):
            listener.close()
        for task in list(http.server_state.tasks):
            task.cancel()
        for connection in list(http.server_state.connections):
            with suppress(Exception):  # it closes itself just now
                connection.transport.abort()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            return
        request = Request(scope)
        refused = await self._door.validate_request(request)
        if refused is None and not self._admits(request):
            refused = PlainTextResponse(
                "This session's token is needed, as Authorization: Bearer; %reyn serve says where it is.\n",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        if refused is None and scope["path"] != PATH:
            refused = PlainTextResponse(f"There is {PATH} alone.\n", 404)
        if refused is not None:
            await refused(scope, receive, send)
            return
        connection = scope["state"]["connection"]
        connection.admit()
        if self._requests >= MOST_REQUESTS:
            await PlainTextResponse("Too many requests at once.\n", 503)(scope, receive, send)
            return
        session = request.headers.get(_SESSION, "")
        if request.method == "DELETE":
            self._clients.leave(session)
        elif request.method == "POST" and not session and _begins_session(request):
            await self._make_room()
        known = ClientRequest(self._clients, connection)
        scope["state"]["request"] = known
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

        self._requests += 1
        try:
            await self._manager.handle_request(scope, receive, watch)
        finally:
            self._requests -= 1
            known.end()

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

        host = f"127.0.0.1:{self.port}".encode()
        headers = [(b"host", host), (_SESSION.encode(), session.encode("latin-1", "replace"))]
        scope = {"type": "http", "method": "DELETE", "path": PATH, "query_string": b"", "headers": headers}
        await self._manager.handle_request(scope, receive, send)

    def _admits(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.token.reveal().encode())
        return right and scheme.lower() == "bearer"


def _begins_session(request: Request) -> bool:
    """Return whether a request without a session is of a protocol that keeps one."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return request.headers.get("mcp-protocol-version") not in MODERN_PROTOCOL_VERSIONS


async def import_server() -> None:
    """Import the SDK's server and what serves it, in a thread: the first time takes about a second."""

    def load() -> None:
        for name in _MODULES:
            importlib.import_module(name)

    await asyncio.to_thread(load)
