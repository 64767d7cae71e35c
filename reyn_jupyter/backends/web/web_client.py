"""Requests to the web that a page or a model names.

Invariants: a request goes to the host that was judged, spelled as `support.network.hosts` spells it, and to an address
that was looked up once and is public, unless the settings name its host; no redirect is followed here; an answer takes
a bounded time, and a bounded size however it is compressed. No cookie, no user's name and no referrer leaves.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reyn_jupyter.support.network.addresses import Address, Reach, look_up, reach
from reyn_jupyter.support.network.hosts import Host, HostError, read_host
from reyn_jupyter.support.versions import version_of

if TYPE_CHECKING:
    import ssl

    import httpcore

AGENT = "reyn-jupyter"  # by which robots.txt may name it
SECONDS = 30.0  # for one request, from the name's look-up to the last byte
LARGEST = 16 << 20  # bytes of an answer, unpacked
_CONNECT_SECONDS = 10.0
_ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
_DEFAULT_PORTS = {"http": 80, "https": 443}


class WebError(Exception):
    """A request that was not made or gave nothing; the message is a sentence.

    Args:
        hint: what to do next.
        code: "address_wrong", "address_private", "web_unreachable", "web_slow", "web_wrong" or "web_missing".
    """

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


@dataclass(frozen=True)
class WebAddress:
    """A URL in the one spelling in which it is asked.

    Attributes:
        scheme: "http" or "https".
        host: as rules name it.
        target: path and query, as they are sent.
    """

    scheme: str
    host: Host
    target: bytes

    @property
    def url(self) -> str:
        """It as text, without its fragment."""
        return self.origin + self.target.decode("ascii")

    @property
    def port(self) -> int:
        return self.host.port or _DEFAULT_PORTS[self.scheme]

    @property
    def authority(self) -> str:
        """The host, with its port where that is not the scheme's own."""
        is_bare_6 = self.host.port is None and ":" in self.host.name
        return f"[{self.host}]" if is_bare_6 else str(self.host)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"


def read_address(url: str, base: WebAddress | None = None) -> WebAddress:
    """Return a URL in the spelling in which it is asked.

    Args:
        url: as a person, a model or a server wrote it.
        base: what a relative one (a redirect's) stands on.

    Raises:
        WebError: it is no address of the web, names a user, or libraries read it in two ways.

    Example:
        >>> read_address("HTTPS://Example.ORG.:443/a b?q=ü#top").url
        'https://example.org/a%20b?q=%C3%BC'
    """
    import httpx

    hint = "Give a whole address, such as https://example.org/page."
    try:
        parsed = httpx.URL(url.strip()) if base is None else httpx.URL(base.url).join(url.strip())
        split = urlsplit(str(parsed))
        if parsed.scheme not in _DEFAULT_PORTS:
            raise WebError(f"{_quoted(url)} is no address of the web.", hint, "address_wrong")
        if parsed.userinfo or "@" in split.netloc:
            raise WebError("The address holds a user's name.", "Leave the name out.", "address_wrong")
        host = read_host(url.strip() if base is None else str(parsed))
    except (HostError, httpx.InvalidURL, ValueError) as error:
        raise WebError(
            f"{_quoted(url)} is no address: {str(error).rstrip('.')}.", hint, "address_wrong"
        ) from None
    if parsed.port in _DEFAULT_PORTS.values():
        # Rules do not tell port 80 of https from 443, and a request would.
        raise WebError(f"{_quoted(url)} has the port of another scheme.", hint, "address_wrong")
    return WebAddress(parsed.scheme, host, parsed.raw_path)


def _quoted(url: str) -> str:
    return ascii(url if len(url) <= 80 else f"{url[:80]}…")


@dataclass(frozen=True)
class WebAnswer:
    """What a server answered.

    Attributes:
        address: what was asked.
        headers: names in lower case.
        body: unpacked; of one that is longer than was asked for, its beginning.
        is_whole: whether `body` is all of it.
    """

    address: WebAddress
    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool = True

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


@dataclass(frozen=True)
class WebStream:
    """An answer that arrives.

    Attributes:
        address: what was asked.
        headers: names in lower case.
        pieces: the body, unpacked, piece by piece: at most so many bytes as were asked for, and one more where there
            are more.
    """

    address: WebAddress
    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


class WebClient:
    """Sends requests. One a session; `close` ends its connections.

    Args:
        private_hosts: hosts whose addresses may be inside a network or this machine, as `str(Host)`.
        proxy: the URL of a proxy that all requests go through; it looks up the names then.
    """

    def __init__(self, private_hosts: Collection[str] = (), proxy: str | None = None) -> None:
        self._private = frozenset(private_hosts)
        self.proxy = proxy
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def get(self, address: WebAddress, **options: Any) -> WebAnswer:
        """Return the answer to a GET; see `send`."""
        return await self.send("GET", address, **options)

    async def send(
        self,
        method: str,
        address: WebAddress,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        most: int = LARGEST,
        seconds: float = SECONDS,
    ) -> WebAnswer:
        """Return what a server answers, redirects and errors as they are.

        Args:
            headers: beside those that every request has.
            most: bytes of the body.
            seconds: for all of it.

        Raises:
            WebError: the address is not public, there was no answer, or one that cannot be read.
        """
        try:
            async with (
                asyncio.timeout(seconds),
                self.stream(method, address, headers=headers, content=content, most=most) as answer,
            ):
                body = b"".join([piece async for piece in answer.pieces])
                whole = len(body) <= most
                return WebAnswer(address, answer.status, answer.headers, body[:most], whole)
        except TimeoutError:
            raise WebError(
                f"{address.host} did not answer within {seconds:g} seconds.", "Try again later.", "web_slow"
            ) from None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        address: WebAddress,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        most: int = LARGEST,
    ) -> AsyncIterator[WebStream]:
        """Yield what a server answers while it arrives, for as long as it takes; otherwise as `send`."""
        import httpcore

        if self.proxy is not None:
            await self._check_behind_proxy(address)
        url = httpcore.URL(
            scheme=address.scheme, host=address.host.name, port=address.host.port, target=address.target
        )
        sent = {
            "Host": address.authority,
            "User-Agent": f"{AGENT}/{version_of(AGENT) or 'source'} (+https://github.com/reyn-jupyter/reyn-jupyter)",
            "Accept": _ACCEPT,
            "Accept-Encoding": "gzip, deflate",
            **(headers or {}),
        }
        if content is not None:
            sent["Content-Length"] = str(len(content))
        with _explaining(address):
            async with self._connections().stream(
                method, url, headers=list(sent.items()), content=content
            ) as answer:
                received = {
                    name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers
                }
                pieces = _unpacked(address, answer.aiter_stream(), received, most)
                yield WebStream(address, answer.status, received, pieces)

    async def close(self) -> None:
        """End all connections; a later request opens new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    def _connections(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            import httpcore

            bounds: dict[str, Any] = {
                "ssl_context": _certificates(),
                "max_connections": 20,
                "max_keepalive_connections": 5,
                "keepalive_expiry": 15.0,
            }
            if self.proxy is None:
                backend = _guarded_backend(self._private)
                self._pool = httpcore.AsyncConnectionPool(network_backend=backend, **bounds)
            else:
                self._pool = httpcore.AsyncHTTPProxy(self.proxy, **bounds)
        return self._pool

    async def _check_behind_proxy(self, address: WebAddress) -> None:
        """Raise WebError for a name that is known here and is not public; what it is for the proxy, the proxy knows."""
        try:
            addresses = await look_up(address.host.name, address.port)
        except OSError:
            return
        check_public(address.host.name, address.port, addresses, self._private)


def check_public(name: str, port: int, addresses: Iterable[Address], private: Collection[str]) -> None:
    """Raise WebError where an address of a host is not public and the settings do not name the host."""
    host = Host(name, None if port in _DEFAULT_PORTS.values() else port)
    if str(host) in private:
        return
    for address in addresses:
        if reach(address) is not Reach.WORLD:
            what = f"{host} is {address}" if name != str(address) else str(host)
            raise WebError(
                f"{what}, which is an address of this machine or of a private network.",
                f"The person can allow it: web.private_hosts: [{str(host)!r}] in the settings.",
                "address_private",
            )


def _guarded_backend(private: Collection[str]) -> httpcore.AsyncNetworkBackend:
    import httpcore
    from httpcore import AnyIOBackend

    class PublicNetwork(httpcore.AsyncNetworkBackend):
        """Connects to the addresses that it judged, and looks nothing up twice."""

        def __init__(self) -> None:
            self._inner = AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
            local_address: str | None = None,
            socket_options: Any = None,
        ) -> httpcore.AsyncNetworkStream:
            addresses = await look_up(host, port)
            check_public(host, port, addresses, private)
            failure: Exception = OSError("it has no address")
            for address in addresses:
                try:
                    return await self._inner.connect_tcp(
                        str(address), port, _CONNECT_SECONDS, local_address, socket_options
                    )
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    failure = error
            raise failure

        async def sleep(self, seconds: float) -> None:
            await self._inner.sleep(seconds)

    return PublicNetwork()


@cache
def _certificates() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()  # it takes those that the environment names (SSL_CERT_FILE)


@contextmanager
def _explaining(address: WebAddress) -> Iterator[None]:
    """Raise WebError in place of what the network raises."""
    import httpcore

    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProxyError, OSError) as error:
        why = str(error) or type(error).__name__
        raise WebError(
            f"{address.host} cannot be reached: {why[:200]}.", "Look at the address, or try again later.",
            "web_unreachable",
        ) from None  # fmt: skip
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol, zlib.error, UnicodeError) as error:
        raise WebError(
            f"{address.host} sent an answer that cannot be read: {str(error)[:200]}.", "Go on without it.",
            "web_wrong",
        ) from None  # fmt: skip


async def _unpacked(
    address: WebAddress, pieces: AsyncIterator[bytes], headers: Mapping[str, str], most: int
) -> AsyncIterator[bytes]:
    """Yield a body, unpacked: at most so many bytes, and one more where there are more. Raises WebError."""
    left = most + 1
    with _explaining(address):
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise zlib.error(f"it is packed in a way that was not asked for ({encoding[:40]})")
        unpack = _Unpacking(encoding) if encoding not in ("", "identity") else None
        async for piece in pieces:
            plain = piece[:left] if unpack is None else unpack.more(piece, left)
            left -= len(plain)
            if plain:
                yield plain
            if left <= 0:
                return


class _Unpacking:
    """Unpacks gzip and both kinds of deflate, never more than was asked for."""

    def __init__(self, encoding: str) -> None:
        self._stream = zlib.decompressobj(47)  # gzip or zlib, by the header
        self._may_be_raw = encoding == "deflate"

    def more(self, piece: bytes, most: int) -> bytes:
        try:
            unpacked = self._stream.decompress(piece, most)
        except zlib.error:
            if not self._may_be_raw:
                raise
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
            unpacked = self._stream.decompress(piece, most)
        self._may_be_raw = False
        return unpacked
