"""A way to a served session for programs that can send no token: it adds that to each request.

Where Host or Origin is its own, the session's stands there afterwards; any other is passed as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

HEAD_END = b"\r\n\r\n"


@asynccontextmanager
async def token_proxy(address: str, token: str) -> AsyncIterator[str]:
    """Give the address of a proxy to `address`.

    Args:
        token: what it adds to each request.
    """
    far = urlsplit(address)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(HEAD_END)).removesuffix(HEAD_END)
            first, *headers = head.split(b"\r\n")
            own = f"127.0.0.1:{port}".encode()
            kept = [
                each.replace(own, far.netloc.encode())
                if each.lower().startswith((b"host:", b"origin:"))
                else each
                for each in headers
                if not each.lower().startswith(b"connection:")
            ]
            # One request a connection, so that none comes without the token.
            more = [b"Connection: close", f"Authorization: Bearer {token}".encode()]
            from_far, to_far = await asyncio.open_connection(far.hostname, far.port)
            to_far.write(b"\r\n".join([first, *kept, *more]) + HEAD_END)
            await asyncio.wait(
                [asyncio.create_task(_copy(reader, to_far)), asyncio.create_task(_copy(from_far, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
            to_far.close()
        writer.close()

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"http://127.0.0.1:{port}{far.path}"


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
