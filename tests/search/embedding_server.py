"""A server on loopback that speaks the OpenAI embeddings protocol: real HTTP, vectors from words, scripted trouble.

Each request takes the next scripted reply; when there is none, texts get vectors: equal words, near vectors.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSION = 64
Body = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    status: int
    message: str = "it did not work"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    body: bytes


@dataclass(frozen=True)
class Slow:
    seconds: float


Reply = Failure | Raw | Slow | Callable[[Body], Body]


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """A bag of hashed words."""
    found = [0.01] * dimension
    for word in text.lower().replace("_", " ").split():
        found[hashlib.sha256(word.encode()).digest()[0] % dimension] += 1.0
    return found


def answer(body: Body, dimension: int = DIMENSION) -> Body:
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text, dimension)}
        for index, text in enumerate(body["input"])
    ]
    tokens = sum(len(text.split()) for text in body["input"])
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


class EmbeddingServer:
    """Use it as a context; `url` is its address, `requests` what it got, as (headers, body)."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], Body]] = []
        self._script: deque[Reply] = deque()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                reply = outer._script.popleft() if outer._script else answer
                if isinstance(reply, Slow):
                    time.sleep(reply.seconds)
                    reply = answer
                status, headers = 200, {}
                if isinstance(reply, Failure):
                    status, headers = reply.status, reply.headers
                    payload = json.dumps(
                        {"error": {"message": reply.message, "type": "x", "code": None}}
                    ).encode()
                elif isinstance(reply, Raw):
                    payload = reply.body
                else:
                    payload = json.dumps(reply(body)).encode()
                try:
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", **headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(payload)))
                    self.end_headers()
                    self.wfile.write(payload)
                except OSError:
                    return  # the client went away

            def log_message(self, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *replies: Reply) -> None:
        self._script.extend(replies)

    @property
    def texts(self) -> list[str]:
        return [text for _, body in self.requests for text in body["input"]]

    def __enter__(self) -> EmbeddingServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
