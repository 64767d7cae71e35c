"""One HTTP request of the practice provider: read, answered, and where a behaviour says so, answered badly.

Invariant: whatever comes in is answered or refused with a JSON error; nothing raises out of a handler's thread.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from reyn_jupyter.evaluation.practice.behaviours import Reply
from reyn_jupyter.evaluation.practice.wire import chunks, completion, request_of
from reyn_jupyter.models.seam import Request

_LARGEST = 32 * 1024 * 1024  # bytes of a request
_DIGITS = 12  # of a length
# What a body of the wrong shape raises, wherever it is read.
_MISSHAPEN = (ValueError, TypeError, AttributeError, KeyError, RecursionError)


class Provider(Protocol):
    """What stands behind the handler."""

    def reply(self, request: Request) -> Reply: ...
    def wait(self, seconds: float) -> None: ...


class Listener(ThreadingHTTPServer):
    """Listens, and hands every request to the provider."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], provider: Provider) -> None:
        self.provider = provider
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up in the middle is what a timeout looks like from here."""


class _Handler(BaseHTTPRequestHandler):
    server: Listener
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is logged: a study keeps its own record."""

    def do_POST(self) -> None:
        given = self.headers.get("Content-Length") or "0"
        length = int(given) if given.isdecimal() and len(given) < _DIGITS else _LARGEST + 1
        if length > _LARGEST:
            self.close_connection = True  # the rest of the body is not read
            self._error(413, f"a request has a Content-Length, of {_LARGEST:,} bytes at most", {})
            return
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
            request = request_of(body if isinstance(body, dict) else {})
            reply = self.server.provider.reply(request)
        except _MISSHAPEN as error:
            self._error(400, f"Invalid request: {error}", {})
            return
        self._send(reply, request, body)

    def _send(self, reply: Reply, request: Request, body: dict[str, Any]) -> None:
        self.server.provider.wait(reply.delay)
        if reply.response is None:
            self._error(reply.status, reply.message, reply.headers)
        elif reply.trouble == "wrong type":
            self._whole(200, b"<html><body>Welcome to the proxy</body></html>", "text/html", {})
        elif body.get("stream"):
            usage_too = bool((body.get("stream_options") or {}).get("include_usage"))
            self._stream(
                list(chunks(reply.response, request, reply.fingerprint, usage_too=usage_too)),
                cut=reply.trouble == "cut",
            )
        else:
            whole = json.dumps(completion(reply.response, request, reply.fingerprint)).encode()
            end = len(whole) // 2 if reply.trouble == "cut" else len(whole)
            self._whole(200, whole[:end], "application/json", {})

    def _error(self, status: int, message: str, headers: Any) -> None:
        error = {"error": {"message": message, "type": "practice", "code": None, "param": None}}
        self._whole(status, json.dumps(error).encode(), "application/json", headers)

    def _whole(self, status: int, body: bytes, kind: str, headers: Any) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, pieces: list[dict[str, Any]], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = pieces[: max(1, len(pieces) // 2)] if cut else pieces
        data = b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in sent)
        if not cut:
            data += b"data: [DONE]\n\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n")
