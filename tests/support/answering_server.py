"""An HTTP server on loopback that answers every request by one function, for servers that hang, babble or flood."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Serve; gives host and port, and (path, headers) of each request."""
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


def sends(body: bytes, status: int = 200, **headers: str) -> Answer:
    """Send these bytes, whatever is asked."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def tells(facts: Mapping[str, Any]) -> Answer:
    """Send the JSON of a path, and 404 for every other path."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        known = handler.path in facts
        body = facts[handler.path] if known else {"error": "not found"}
        sends(json.dumps(body).encode(), 200 if known else 404)(handler)

    return answer
