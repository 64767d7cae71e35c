"""How the SDK's requests to an agent reach the network.

Invariants: they go by `WebClient`, which judges every address, and to one origin alone; an answer has a bounded size,
also one that never ends; what is open when an exchange ends is closed with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx

from reyn_jupyter.backends.a2a.agent_card import TOO_LARGE
from reyn_jupyter.backends.web.web_client import WebAddress, WebClient, WebError, WebStream, read_address

LARGEST_ANSWER = 16 << 20  # bytes of one answer, unpacked; of a stream all that it sends
# What is no more true of a body that was unpacked and may be cut.
_OF_PACKED = ("content-encoding", "content-length", "transfer-encoding")
# What the SDK or httpx would set, and `WebClient` sets itself.
_OWN = frozenset({"host", "user-agent", "accept-encoding", "connection", "content-length"})


class PeerTransport(httpx.AsyncBaseTransport):
    """Sends one exchange's requests.

    Args:
        client: the peer's connections.
        origin: an address at the only origin that is asked.
    """

    def __init__(self, client: WebClient, origin: WebAddress) -> None:
        self._client = client
        self._origin = origin.origin
        self._open: set[_AnswerStream] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises WebError."""
        address = read_address(str(request.url))
        if address.origin != self._origin:
            raise WebError(
                f"A request to {address.origin} was not sent: {self._origin} alone is configured.",
                "Go on without it.",
                "peer_elsewhere",
            )
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OWN}
        content = await request.aread() if request.method != "GET" else None
        opening = self._client.stream(
            request.method, address, headers=headers, content=content, most=LARGEST_ANSWER
        )
        stream = _AnswerStream(opening, self._open)
        answer = await stream.begin()
        kept = [(name, value) for name, value in answer.headers.items() if name not in _OF_PACKED]
        return httpx.Response(answer.status, headers=kept, stream=stream, request=request)

    async def aclose(self) -> None:
        """Close what is still open."""
        for stream in list(self._open):
            await stream.aclose()


class _AnswerStream(httpx.AsyncByteStream):
    """The body of one answer, which is closed once."""

    def __init__(self, opening: AbstractAsyncContextManager[WebStream], among: set[_AnswerStream]) -> None:
        self._opening = opening
        self._among = among
        self._answer: WebStream | None = None

    async def begin(self) -> WebStream:
        self._answer = await self._opening.__aenter__()
        self._among.add(self)
        return self._answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert self._answer is not None
        left = LARGEST_ANSWER
        async for piece in self._answer.pieces:
            left -= len(piece)
            if left < 0:
                host = self._answer.address.host
                raise WebError(
                    f"{host} sent more than {LARGEST_ANSWER >> 20} MiB in one answer.",
                    "Ask for less at a time.",
                    TOO_LARGE,
                )
            yield piece

    async def aclose(self) -> None:
        if self in self._among:
            self._among.discard(self)
            nothing: Any = None
            await self._opening.__aexit__(nothing, nothing, nothing)
