"""An OpenAI-compatible chat server on loopback, scripted one reply at a time.

It is a real HTTP server over real sockets, so what reaches it went through the whole client. Each request
takes the next scripted reply; when the script is at its end, `otherwise` answers. A reply is one of:

- `Answer`: text and tool calls, streamed in odd pieces or sent whole, as the request asks;
- `Failure`: an HTTP error in the provider's JSON shape, with headers such as Retry-After;
- `Raw`: any status, content type and bytes;
- a function from the received request to one of these.

    with OpenAIServer() as server:
        server.script(Answer(calls=(Call("list_actions", {}),)), Failure(429, headers={"Retry-After": "1"}))
        ...                                     # a client pointed at server.url
        assert server.requests[0].body["stream"] is True
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from types import TracebackType

Shape = Literal["fragments", "whole", "no index", "no id", "same id", "interleaved"]
Trouble = Literal["stall", "drop", "cut", "malformed", "error"]


@dataclass(frozen=True)
class Call:
    """A tool call to send. `arguments` given as a mapping are serialised; a string goes out as it stands."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Answer:
    """A completion.

    Attributes:
        fragment: characters in one streamed piece of text or of arguments.
        pace: seconds between two chunks.
        shape: how tool calls are laid out in the stream.
        usage: True for figures by length, a mapping to send as it stands, False for none.
        trouble: what goes wrong after `after` chunks: "stall" sends nothing for `stall_seconds`, "drop" cuts
            the connection, "cut" ends the body in good order but too early, "malformed" sends a chunk that is
            no JSON, "error" sends an error object inside the stream.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish_reason: str | None = None
    usage: bool | Mapping[str, Any] = True
    fragment: int = 5
    pace: float = 0.0
    shape: Shape = "fragments"
    trouble: Trouble | None = None
    after: int = 2
    stall_seconds: float = 30.0
    fingerprint: str | None = "fp_loopback"

    @property
    def finish(self) -> str:
        return self.finish_reason or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True)
class Failure:
    """An HTTP error in the provider's shape: ``{"error": {"message", "type", "code"}}``."""

    status: int
    message: str = "it did not work"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Bytes as they stand, after `delay` seconds of silence."""

    body: bytes
    status: int = 200
    content_type: str = "text/html"
    delay: float = 0.0


@dataclass(frozen=True)
class Received:
    """A request as the server got it. Header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


Reply = Answer | Failure | Raw
Scripted = Reply | Callable[[Received], Reply]

CONTEXT_TOO_LONG = Failure(
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "context_length_exceeded",
)


def echo(received: Received) -> Answer:
    """Answer with the request's own body, as JSON text."""
    return Answer(json.dumps(received.body), fragment=4096)


def refuses(parameter: str, otherwise: Reply) -> Callable[[Received], Reply]:
    """Answer `otherwise`, but refuse a request in which `parameter` is set."""

    def reply(received: Received) -> Reply:
        if received.body.get(parameter):
            return Failure(400, f"Unrecognized request argument supplied: {parameter}", "unknown_parameter")
        return otherwise

    return reply


class OpenAIServer:
    """The server. A context manager: it listens from entry to exit, on a free port of 127.0.0.1.

    `requests` holds what came in; `told` is what it answers to a GET, by path; `disconnected` is set when a
    client goes away in the middle of an answer.
    """

    def __init__(self, otherwise: Scripted | None = None) -> None:
        self.otherwise: Scripted = otherwise if otherwise is not None else Answer("ok")
        self.requests: list[Received] = []
        self.told: dict[str, Any] = {}
        self.disconnected = threading.Event()
        self.closing = threading.Event()
        self._script: list[Scripted] = []
        self._lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        """The base address to give to a client: it ends in ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *replies: Scripted) -> OpenAIServer:
        """Add replies to the end of the script."""
        with self._lock:
            self._script.extend(replies)
        return self

    def clear(self) -> None:
        """Forget what came in, and what was still to be said."""
        with self._lock:
            self._script.clear()
            self.requests.clear()
            self.told.clear()
            self.disconnected.clear()

    def next_reply(self, received: Received) -> Reply:
        with self._lock:
            self.requests.append(received)
            scripted = self._script.pop(0) if self._script else self.otherwise
        return scripted(received) if callable(scripted) else scripted

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that resets its connection is no news, and says so by `disconnected`."""


class _GoneError(Exception):
    """The client went away."""


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing: the test reads `requests`."""

        def do_GET(self) -> None:
            told = server.told.get(self.path)
            body = json.dumps({"error": "not found"} if told is None else told).encode()
            self._whole(404 if told is None else 200, body, "application/json", {})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length) or b"{}")
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = Received(self.path, headers, body)
            reply = server.next_reply(received)
            try:
                self._send(reply, received)
            except (_GoneError, BrokenPipeError, ConnectionResetError):
                server.disconnected.set()
                self.close_connection = True

        def _send(self, reply: Reply, received: Received) -> None:
            match reply:
                case Failure():
                    error = {
                        "error": {
                            "message": reply.message,
                            "type": "error",
                            "code": reply.code,
                            "param": None,
                        }
                    }
                    self._whole(reply.status, json.dumps(error).encode(), "application/json", reply.headers)
                case Raw():
                    self._silence(reply.delay)
                    self._whole(reply.status, reply.body, reply.content_type, {})
                case Answer() if not received.body.get("stream"):
                    whole = json.dumps(completion(reply, received.body)).encode()
                    self._whole(200, whole, "application/json", {})
                case Answer():
                    self._stream(reply, received.body)

        def _whole(self, status: int, body: bytes, content_type: str, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": content_type,
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, answer: Answer, body: Mapping[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            batch: list[bytes] = []
            for position, chunk in enumerate(stream(answer, body)):
                if answer.trouble is not None and position == answer.after:
                    self._chunk(b"".join(batch))
                    batch = []
                    if self._trouble(answer):
                        return
                batch.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                if len(batch) >= 64 or answer.trouble is not None or answer.pace:
                    self._chunk(b"".join(batch))
                    self._silence(answer.pace)
                    batch = []
            self._chunk(b"".join(batch) + b"data: [DONE]\n\n")
            self._chunk(b"", last=True)

        def _chunk(self, data: bytes, last: bool = False) -> None:
            if data or last:
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()

        def _trouble(self, answer: Answer) -> bool:
            """Make the trouble; True when the answer ends here."""
            match answer.trouble:
                case "stall":
                    self._silence(answer.stall_seconds)
                    return False
                case "drop":
                    reset = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                    # The readers of the handler hold the socket open: shut it so that the client notices now.
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return True
                case "cut":
                    self._chunk(b"", last=True)
                    return True
                case "malformed":
                    self._chunk(b'data: {"choices": [{"delta": \n\n')
                    return False
                case "error":
                    self._chunk(
                        b'data: {"error": {"message": "the engine fell over", "type": "server_error"}}\n\n'
                    )
                    self._chunk(b"data: [DONE]\n\n")
                    self._chunk(b"", last=True)
                    return True
            return False

        def _silence(self, seconds: float) -> None:
            """Say nothing for a while; raise when the client hangs up meanwhile."""
            end = time.monotonic() + seconds
            while time.monotonic() < end and not server.closing.is_set():
                readable, _, _ = select.select([self.connection], [], [], 0.02)
                if readable and not self.connection.recv(1, socket.MSG_PEEK):
                    raise _GoneError

    return Handler


def completion(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    """The whole answer as one JSON object, for a request that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_call(answer, position, call) for position, call in enumerate(answer.calls)]
    whole: dict[str, Any] = {
        **_envelope(answer, body, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish}],
    }
    if answer.usage is not False:
        whole["usage"] = _usage(answer, body)
    return whole


def stream(answer: Answer, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The answer as the chunks of a stream, the usage chunk last when the request asks for it."""
    envelope = _envelope(answer, body, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(answer.text, answer.fragment):
        yield chunk({"content": piece})
    for delta in _call_deltas(answer):
        yield chunk({"tool_calls": delta})
    yield chunk({}, answer.finish)
    if answer.usage is not False and (body.get("stream_options") or {}).get("include_usage"):
        yield {**envelope, "choices": [], "usage": _usage(answer, body)}


def _envelope(answer: Answer, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-loopback",
        "object": kind,
        "created": 1_700_000_000,
        "model": body.get("model", ""),
        "system_fingerprint": answer.fingerprint,
    }


def _usage(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(answer.usage, Mapping):
        return dict(answer.usage)
    prompt = len(json.dumps(body.get("messages", []))) // 4
    completed = (len(answer.text) + sum(len(call.text) for call in answer.calls)) // 4
    return {"prompt_tokens": prompt, "completion_tokens": completed, "total_tokens": prompt + completed}


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _call(answer: Answer, position: int, call: Call) -> dict[str, Any]:
    identity = {"no id": None, "same id": "call_same"}.get(answer.shape, call.id or f"call_{position}")
    return {"id": identity, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def _call_deltas(answer: Answer) -> Iterator[list[dict[str, Any]]]:
    """The tool calls of an answer as the `tool_calls` of successive deltas."""
    whole = [_call(answer, position, call) for position, call in enumerate(answer.calls)]
    match answer.shape:
        case "whole" | "no id" | "same id":
            yield from ([{"index": position, **call}] for position, call in enumerate(whole))
        case "no index":
            yield from ([call] for call in whole)
        case "fragments":
            for position, call in enumerate(whole):
                yield from ([piece] for piece in _fragments(position, call, answer.fragment))
        case "interleaved":
            queues = [_fragments(position, call, answer.fragment) for position, call in enumerate(whole)]
            for turn in range(max((len(queue) for queue in queues), default=0)):
                yield [queue[turn] for queue in queues if turn < len(queue)]


def _fragments(position: int, call: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """One call in pieces: id and name first, as providers do, then the arguments bit by bit."""
    head = {"index": position, **call, "function": {"name": call["function"]["name"], "arguments": ""}}
    tail = [
        {"index": position, "function": {"arguments": piece}}
        for piece in _pieces(call["function"]["arguments"], size)
    ]
    return [head, *tail]
