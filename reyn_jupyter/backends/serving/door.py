"""The door of a served session: HTTP on this machine, with a token, for all that the session offers.

Invariants: it listens at 127.0.0.1 alone. Who it is, is asked before a byte of a body is read: another Host or Origin
than its own is refused, so that no page reaches it by a name that leads here, and so is whoever lacks the token, which
is compared in constant time. It answers no preflight and sets no header of CORS. Connections and requests at once are
bounded, and no log gets the token.
"""

from __future__ import annotations

import asyncio
import hmac
import importlib
import logging
import secrets
import socket
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from reyn_jupyter.backends.serving.address_file import TOKEN_NAME
from reyn_jupyter.backends.serving.client_connection import MOST_STRANGERS, bounded_protocol
from reyn_jupyter.backends.serving.connected_clients import ClientRequest, ConnectedClients
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.text import enumerate_words

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

MOST_REQUESTS = 128  # at once, streams that wait for news included; more get 503
_LOGGERS = ("uvicorn", "sse_starlette")


class ServedPaths(Protocol):
    """What is behind the door at some paths."""

    @property
    def paths(self) -> frozenset[str]:
        """The paths that it answers."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return what is entered before its first request, and left after its last."""

    async def answer(self, scope: Scope, receive: Receive, send: Send, known: ClientRequest) -> None:
        """Answer a request of who has shown the token."""


class Door:
    """Serves what a session offers at an address of its own.

    Args:
        clients: told who is heard of, and who leaves.
    """

    def __init__(self, clients: ConnectedClients) -> None:
        for name in _LOGGERS:
            # Without a handler, Python writes its warnings onto the page below a cell.
            logging.getLogger(name).addHandler(logging.NullHandler())
        self.token = Secret(TOKEN_NAME, secrets.token_urlsafe(32))
        self._clients = clients
        self._offers: dict[str, ServedPaths] = {}
        self._requests = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.bind(("127.0.0.1", 0))
            self.port: int = self._socket.getsockname()[1]
        except OSError:
            self._socket.close()
            raise
        self.hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def listen(self) -> None:
        """Take connections from now on; they are answered once `serve` runs."""
        self._socket.listen(64)
        self._socket.setblocking(False)

    def close(self) -> None:
        """Let go of the address."""
        self._socket.close()

    async def hold(self, offer: ServedPaths, ready: asyncio.Event) -> None:
        """Have an offer behind the door until this is cancelled.

        Args:
            offer: what answers at its paths.
            ready: set once it does.
        """
        async with offer.running():
            self._offers |= dict.fromkeys(offer.paths, offer)
            ready.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                for path in offer.paths:
                    del self._offers[path]

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
        offer = self._offers.get(scope["path"])
        refused = self._refusal(request)
        if refused is None and offer is None:
            paths = enumerate_words([*dict.fromkeys(self._offers)]) or "nothing yet"
            refused = PlainTextResponse(f"There is {paths} alone.\n", 404)
        if refused is not None or offer is None:
            assert refused is not None
            await refused(scope, receive, send)
            return
        connection = scope["state"]["connection"]
        connection.admit()
        if self._requests >= MOST_REQUESTS:
            await PlainTextResponse("Too many requests at once.\n", 503)(scope, receive, send)
            return
        known = ClientRequest(self._clients, connection)
        scope["state"]["request"] = known
        self._requests += 1
        try:
            await offer.answer(scope, receive, send, known)
        finally:
            self._requests -= 1
            known.end()

    def _refusal(self, request: Request) -> Any:
        """Return the answer to who may not come in; None for who may."""
        from starlette.responses import PlainTextResponse

        own = {f"http://{host}" for host in self.hosts}
        if request.headers.get("host") not in self.hosts:
            return PlainTextResponse("Invalid Host header\n", 421)
        if any(origin and origin not in own for origin in request.headers.getlist("origin")):
            return PlainTextResponse("Invalid Origin header\n", 403)
        if not self._admits(request):
            return PlainTextResponse(
                "This session's token is needed, as Authorization: Bearer; %reyn serve says where it is.\n",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        return None

    def _admits(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.token.reveal().encode())
        return right and scheme.lower() == "bearer"


async def import_modules(names: Sequence[str]) -> None:
    """Import modules in a thread: the first time an SDK takes about a second."""

    def load() -> None:
        for name in names:
            importlib.import_module(name)

    await asyncio.to_thread(load)
