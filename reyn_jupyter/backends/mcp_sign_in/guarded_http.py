"""Requests to addresses that a stranger's metadata names.

Invariants: a request goes by https, or stays on this machine where the server itself is on it; it reaches no address
that is less public than the server's own, which is looked up once and then connected to; a host beside the server's own
is asked about before it is asked anything, and one that a rule denies never is; no redirect leaves an origin; an answer
takes a bounded time and has a bounded size. So a server cannot make the kernel knock at doors inside its network.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from reyn_jupyter.backends.mcp_sdk.http import httpx
from reyn_jupyter.support.network.addresses import Address, Reach, look_up, reach
from reyn_jupyter.support.network.hosts import Host, HostError, read_host

SECONDS = 15.0  # for one request, from the name's look-up to the last byte
LARGEST = 1 << 20  # bytes of an answer


Approve = Callable[[Host], Awaitable[bool]]
Denies = Callable[[Host], bool]


class GuardError(Exception):
    """A request that is not made, or an answer that is not read; the message is a clause."""


@asynccontextmanager
async def guarded_client(
    server_url: str, approve: Approve, denies: Denies, auth: httpx.Auth | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client whose requests are held to what this module says.

    Args:
        server_url: the address of the MCP server, which the person gave.
        approve: returns whether a host that is not the server's may be asked; it is put once a host.
        denies: returns whether a rule of the person's denies a host, the server's too, as it is now.
        auth: an authentication whose own requests are held to it as well.
    """
    transport = GuardedTransport(server_url, approve, denies)
    async with httpx.AsyncClient(transport=transport, auth=auth, timeout=SECONDS) as client:
        yield client


class GuardedTransport(httpx.AsyncBaseTransport):
    """See `guarded_client`."""

    def __init__(self, server_url: str, approve: Approve, denies: Denies) -> None:
        self._server = read_host(server_url)
        self._approve = approve
        self._denies = denies
        self._approved = {self._server}
        self._reach: Reach | None = None
        self._inner = (
            httpx.AsyncHTTPTransport()
        )  # it takes the certificates that the environment names (SSL_CERT_FILE)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the whole response. Raises GuardError, and the errors of httpx."""
        host = check_address(str(request.url), self._server)
        if self._denies(host):
            raise GuardError(f"{host} may not be asked: a rule of yours denies it")
        if host not in self._approved:
            if not await self._approve(host):
                raise GuardError(f"{host} may not be asked: you said no")
            self._approved.add(host)
        try:
            async with asyncio.timeout(SECONDS):
                pinned = await self._pinned(request, host)
                answer = await self._inner.handle_async_request(pinned)
                return await _read(answer, request, host)
        except TimeoutError:
            raise GuardError(f"{host} gave no answer within {SECONDS:g} seconds") from None

    async def _pinned(self, request: httpx.Request, host: Host) -> httpx.Request:
        """Return the request to the very address that was looked up, so that it cannot become another meanwhile."""
        if self._reach is None:
            self._reach = min(map(reach, await _addresses(self._server)))
        addresses = await _addresses(host)
        if any(reach(each) < self._reach for each in addresses):
            raise GuardError(
                f"{host} is an address inside a network, and {self._server} is not: it could be anybody's"
            )
        return httpx.Request(
            request.method,
            request.url.copy_with(host=str(addresses[0])),
            headers=request.headers,  # its Host still names the host
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host.name},
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


def check_address(url: str, server: Host) -> Host:
    """Return the host of an address that may be asked, or shown to a person.

    Args:
        server: the host of the MCP server.

    Raises:
        GuardError: it does not begin with https://, names a user, or can be read in two ways.

    Example:
        >>> str(check_address("https://auth.example.org/token", read_host("https://a.example.org")))
        'auth.example.org'
        >>> check_address("http://auth.example.org/token", read_host("https://a.example.org"))
        Traceback (most recent call last):
        reyn_jupyter.backends.mcp_sign_in.guarded_http.GuardError: auth.example.org is asked over http, and not https
    """
    try:
        host = read_host(url)
    except HostError as error:
        raise GuardError(str(error).rstrip(".")) from None
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in ("https", "http"):
        raise GuardError("it names an address that is none of the web")
    if "@" in rest.partition("/")[0] or not url.isascii() or any(each.isspace() for each in url):
        raise GuardError(f"an address at {host} holds a user's name or characters that none may have")
    if scheme.lower() == "http" and not (host.is_here and server.is_here):
        raise GuardError(f"{host} is asked over http, and not https")
    return host


async def _addresses(host: Host) -> tuple[Address, ...]:
    try:
        return await look_up(host.name, host.port or 443)
    except OSError as error:
        raise GuardError(f"{host} cannot be found: {error.strerror or error}") from None


async def _read(answer: httpx.Response, request: httpx.Request, host: Host) -> httpx.Response:
    """Return the answer with its whole body, and close it."""
    try:
        if answer.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise GuardError(f"{host} sent a compressed answer")
        is_stream = answer.headers.get("content-type", "").lower().startswith("text/event-stream")
        content = b""
        if not is_stream:  # nobody reads one here, and it may never end
            stream: Any = answer.stream
            async for chunk in stream:
                content += chunk
                if len(content) > LARGEST:
                    raise GuardError(f"{host} sent more than {LARGEST >> 20} MiB")
    finally:
        await answer.aclose()
    return httpx.Response(answer.status_code, headers=answer.headers, content=content, request=request)
