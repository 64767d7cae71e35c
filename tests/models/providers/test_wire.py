"""What leaves is counted on the wire also where a proxy stands before it."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from reyn_jupyter.models.providers.wire import count_client, metering


@pytest.mark.parametrize("answer", [b"403 Forbidden", b"200 OK"], ids=["refused", "a tunnel to nowhere"])
def test_a_request_that_a_proxy_lets_not_through_left_nothing(answer: bytes) -> None:
    asked: list[bytes] = []
    heard: list[tuple[str, int, bool]] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 " + answer + b"\r\n\r\n")
        await writer.drain()
        writer.close()

    async def send() -> None:
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, httpx.AsyncClient(proxy=address) as client:
            count_client(client)
            with metering(lambda *each: heard.append(each)), pytest.raises(httpx.TransportError):
                await client.post("https://api.models.test/v1", content=b"the question")

    asyncio.run(send())
    assert asked[0].startswith(b"CONNECT api.models.test:443 ") and heard == []
