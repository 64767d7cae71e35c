"""Answer one HTTP request of the fake provider in the chat-completions format, badly where a behaviour says so.

Invariants: whatever comes in is answered or refused with a JSON error, and nothing raises out of a handler's thread; a
request is read as any client sends it, and a reply, whole or as a stream, has the shape that clients read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from reyn_jupyter.evaluation.models.fake_provider.behaviours import ProviderReply
from reyn_jupyter.models.base import Message, Request, Response, ToolSet, estimate_tokens

_LARGEST = 32 * 1024 * 1024  # bytes of a request
_DIGITS = 12  # of a length
# What a body of the wrong shape raises, wherever it is read.
_MISSHAPEN = (ValueError, TypeError, AttributeError, KeyError, RecursionError)


class ReplySource(Protocol):
    """The source of the handler's replies."""

    @property
    def models(self) -> tuple[str, ...]: ...
    def reply(self, request: Request) -> ProviderReply: ...
    def wait(self, seconds: float) -> None: ...


class Listener(ThreadingHTTPServer):
    """Listens, and hands every request to the provider."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], provider: ReplySource) -> None:
        self.provider = provider
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that hangs up in the middle: it is what a timeout looks like from here."""


class _Handler(BaseHTTPRequestHandler):
    server: Listener
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is logged: a study keeps its own record."""

    def do_GET(self) -> None:
        """List the models; there is nothing else to get."""
        if self.path != "/v1/models":
            self._error(404, "There is nothing here.", {})
            return
        listed = [{"id": name, "object": "model"} for name in self.server.provider.models]
        self._whole(200, json.dumps({"object": "list", "data": listed}).encode(), "application/json", {})

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

    def _send(self, reply: ProviderReply, request: Request, body: dict[str, Any]) -> None:
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


_PIECE = 24  # characters of one piece of a stream
_NOT_ASKED = ("model", "messages", "tools", "tool_choice", "stream", "stream_options")


def request_of(body: Mapping[str, Any], repeat: int = 0) -> Request:
    """Return the request that a body holds.

    Raises:
        ValueError: it is none; says what is wrong.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a list that is not empty")
    try:
        parsed = tuple(Message.from_wire(message) for message in messages)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"a message has not the chat-completions shape: {error!r}") from None
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(map(_is_tool, tools)):
        raise ValueError("tools must be a list of functions with a name each")
    choice = body.get("tool_choice") or "auto"
    if isinstance(choice, Mapping):
        choice = choice.get("function", {}).get("name", "required")
    parameters = {name: value for name, value in body.items() if name not in _NOT_ASKED}
    return Request(
        str(body.get("model", "")),
        parsed,
        ToolSet(tuple(tools)),
        str(choice),
        parameters,
        repeat=repeat,
    )


def completion(response: Response, request: Request, fingerprint: str) -> dict[str, Any]:
    """Return a whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": response.text or None}
    if response.tool_calls:
        message["tool_calls"] = _calls(response)
    return {
        **_envelope(request, fingerprint, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": response.finish_reason}],
        "usage": usage(response, request),
    }


def chunks(
    response: Response, request: Request, fingerprint: str, *, usage_too: bool
) -> Iterator[dict[str, Any]]:
    """Yield the answer in pieces, as a stream has it; the usage comes last where it was asked for."""
    envelope = _envelope(request, fingerprint, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(response.text):
        yield chunk({"content": piece})
    for index, call in enumerate(_calls(response)):
        function = call["function"]
        yield chunk({"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, response.finish_reason)
    if usage_too:
        yield {**envelope, "choices": [], "usage": usage(response, request)}


def usage(response: Response, request: Request) -> dict[str, int]:
    """Tokens by length."""
    asked = sum(message.tokens for message in request.messages) + request.tools.tokens
    said = estimate_tokens(
        response.text + "".join(call.name + call.arguments for call in response.tool_calls)
    )
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _is_tool(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)


def _envelope(request: Request, fingerprint: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request.key[:16]}",
        "object": kind,
        "created": 1_700_000_000,
        "model": request.model,
        "system_fingerprint": fingerprint,
    }


def _calls(response: Response) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in response.tool_calls
    ]


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
