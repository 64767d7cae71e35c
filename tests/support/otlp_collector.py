"""A collector of OpenTelemetry on loopback: it takes OTLP over HTTP, decodes it, and can be as broken as a real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class SpanView:
    """A span as it arrived."""

    proto: Span

    @property
    def id(self) -> str:
        return self.proto.span_id.hex()

    @property
    def parent(self) -> str:
        return self.proto.parent_span_id.hex()

    @property
    def trace(self) -> str:
        return self.proto.trace_id.hex()

    @property
    def attributes(self) -> dict[str, Any]:
        return {pair.key: _plain(pair.value) for pair in self.proto.attributes}

    @property
    def failed(self) -> bool:
        return bool(self.proto.status.code == self.proto.status.STATUS_CODE_ERROR)


@dataclass
class Collector:
    """What arrived, and how it is answered.

    Attributes:
        status, headers, body: the answer; `forever` sends garbage until the client goes.
        first: the status of the first answers, one after the other, in its place.
        held: while it is clear, no answer comes.
        asked: set with the first request.
    """

    url: str = ""
    status: int = 200
    first: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    forever: bool = False
    held: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    bodies: list[bytes] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for body in self.bodies]

    @property
    def spans(self) -> list[SpanView]:
        return [
            SpanView(span)
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def named(self, name: str) -> list[SpanView]:
        return [span for span in self.spans if span.proto.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    """Serve a collector that takes everything."""
    made = Collector()
    made.held.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.paths.append(self.path)
            made.heads.append({key.lower(): value for key, value in self.headers.items()})
            made.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            made.asked.set()
            made.held.wait()
            try:
                self.send_response(made.first.pop(0) if made.first else made.status)
                for key, value in made.headers.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(made.body)
                while made.forever:
                    self.wfile.write(b"\xff" * 65536)
            except OSError:
                pass

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        made.held.set()
        made.forever = False
        server.shutdown()
        server.server_close()
        thread.join()


def _plain(value: Any) -> Any:
    found = MessageToDict(value)
    kind, inner = next(iter(found.items()))
    if kind == "arrayValue":
        return [next(iter(each.values())) for each in inner.get("values", ())]
    return int(inner) if kind == "intValue" else inner
