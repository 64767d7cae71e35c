"""Streamable HTTP by the first major version of the SDK, with what the second does about bad answers.

Invariants: every request gets an answer or the end of its connection: a refusal, a body that cannot be read and a
stream that breaks off become errors of the protocol, for the request that they answer. An event has at most as many
bytes as the caller allows.

Importing this module imports the SDK.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JSONRPCError,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)

from reyn_jupyter.backends.mcp_sdk.first_messages import changed, from_first, to_first
from reyn_jupyter.backends.mcp_sdk.http import httpx

_http: Any = importlib.import_module("mcp.client.streamable_http")
_LOST = "SSE stream ended without an answer"
_SESSION = "mcp-session-id"


def streamable_http_client(
    url: str, *, http_client: httpx.AsyncClient, max_sse_event_size: int
) -> AbstractAsyncContextManager[Any]:
    """Return a connection; see `client.streamable_http`."""
    send = http_client.send  # not a hook of the client: those come before its authentication

    async def repaired(request: httpx.Request, **options: Any) -> httpx.Response:
        response = await send(request, **options)
        await _repair(response, max_sse_event_size)
        return response

    http_client.send = repaired  # type: ignore[method-assign]
    return changed(_http.streamable_http_client(url, http_client=http_client), from_first, to_first)


async def _repair(response: httpx.Response, largest: int) -> None:
    """Make an error of the protocol of an answer that the SDK would end the connection for, or wait behind."""
    request = response.request
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    asked = _asked(request)
    if request.method == "POST" and response.status_code >= 400:
        if asked is None:  # a notification
            response.status_code = 202
        else:
            code, message = _refusal(response, _SESSION in request.headers)
            _put(response, await _error_in(response) or {"code": code, "message": message}, asked)
    elif response.is_redirect:
        return  # the SDK follows it, or says why not
    elif is_stream:
        response.stream = _Events(response.stream, largest, asked)
    elif asked is not None and response.status_code == 202:
        _put(
            response,
            {"code": INVALID_REQUEST, "message": "server answered a request with 202 Accepted"},
            asked,
        )
    elif asked is not None:
        await _repair_body(response, asked)


async def _repair_body(response: httpx.Response, asked: Any) -> None:
    try:
        body = await response.aread()
        jsonrpc_message_adapter.validate_json(body, by_name=False)
    except (httpx.TransportError, httpx.StreamError) as error:
        _put(response, {"code": CONNECTION_CLOSED, "message": f"SSE stream broke off: {error}"}, asked)
    except ValueError:
        kind = response.headers.get("content-type", "")[:100]
        what = (
            "an answer that cannot be read"
            if kind.startswith("application/json")
            else f"the content type {kind!r}"
        )
        _put(response, {"code": INTERNAL_ERROR, "message": f"the server sent {what}"}, asked)


def _asked(request: httpx.Request) -> Any:
    """Return the id of the request in a body; None if it is another message, or there is none."""
    if request.method != "POST":
        return None
    try:
        message = jsonrpc_message_adapter.validate_json(request.content, by_name=False)
    except (ValueError, httpx.RequestNotRead):
        return None
    return message.id if isinstance(message, JSONRPCRequest) else None


def _refusal(response: httpx.Response, has_session: bool) -> tuple[int, str]:
    if response.status_code != 404:
        return INTERNAL_ERROR, "Server returned an error response"
    return (INVALID_REQUEST, "Session terminated") if has_session else (METHOD_NOT_FOUND, "Not Found")


async def _error_in(response: httpx.Response) -> dict[str, Any] | None:
    """Return the error of the protocol that a refusal holds."""
    try:
        told = jsonrpc_message_adapter.validate_json(await response.aread(), by_name=False)
    except (ValueError, httpx.TransportError, httpx.StreamError):
        return None
    return told.error.model_dump(exclude_unset=True) if isinstance(told, JSONRPCError) else None


def _put(response: httpx.Response, error: dict[str, Any], asked: Any) -> None:
    response.status_code = 200
    response.headers["content-type"] = "application/json"
    # The body may have been read, which the response remembers.
    response._content = json.dumps({"jsonrpc": "2.0", "id": asked, "error": error}).encode()


class _Events(httpx.AsyncByteStream):
    """The body of an event stream, which ends with an error for a request that it did not answer.

    Args:
        stream: the body as it comes.
        largest: bytes of one event.
        asked: the id of the request, if it is the answer to one.
    """

    def __init__(self, stream: Any, largest: int, asked: Any) -> None:
        self._stream = stream
        self._largest = largest
        self._asked = asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, tail, resumes, message = 0, b"", False, _LOST
        try:
            async for data in self._stream:
                end = max(data.rfind(b"\n\n"), data.rfind(b"\r\n\r\n"), data.rfind(b"\r\r"))
                size = size + len(data) if end < 0 else len(data) - end
                if size > self._largest:
                    message, resumes = (
                        f"SSE stream has more than {self._largest >> 20} MiB in one message",
                        False,
                    )
                    break
                resumes = resumes or b"\nid:" in b"\n" + tail + data
                tail = data[-3:]
                yield data
        except httpx.TransportError:
            if self._asked is None or resumes:
                raise
        if self._asked is not None and not resumes:  # read only if no answer came before
            error = {"code": CONNECTION_CLOSED, "message": message}
            last = json.dumps({"jsonrpc": "2.0", "id": self._asked, "error": error})
            yield f"\n\nevent: message\ndata: {last}\n\n".encode()

    async def aclose(self) -> None:
        await self._stream.aclose()
