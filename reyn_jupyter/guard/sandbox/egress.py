"""The one way from a sandbox to the network: a proxy that goes to the hosts of a command's consent, and to no others.

Invariants: a name is looked up only after it was found among the hosts, once, and the connection goes to the very
address that came of it. An address of this machine or of a private network is gone to only where the person consented
to it as such: by the address, or by ``localhost``. A request is written anew from what was read of it, so that no
server reads another host in it than was judged here. What goes over it is counted.

It speaks HTTP/1.1: CONNECT for everything that is encrypted, and requests with an ``http`` address.
Sources: RFC 9110 (CONNECT, hop-by-hop fields), RFC 9112 (absolute form); h11 reads and writes the messages.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.guard.sandbox.confinement import HostTraffic, SandboxError
from reyn_jupyter.support.network.addresses import Address, Reach, look_up, reach
from reyn_jupyter.support.network.hosts import Host, HostError, read_host, read_host_pattern

if TYPE_CHECKING:
    import h11

PORT = 3128  # in a network of the command's own, where nobody else listens
_HEAD_SECONDS = 30.0  # in which a request has to be there
_CONNECT_SECONDS = 30.0
_MOST_CONNECTIONS = 64  # at the same time
_MOST_REFUSALS = 20  # that are told
_PIECE = 1 << 16
_CONNECT_TARGET = re.compile(r"([^/?#@\\\s]+):([0-9]{1,5})")
_HTTP_TARGET = re.compile(r"(?i:http)://([^/?#@\\\s]+)([/?][^#\s]*)?")
_PORT = re.compile(r"(?!\[).*:([0-9]{1,5})|\[.*\]:([0-9]{1,5})")
_OF_ONE_HOP = frozenset(
    {b"connection", b"expect", b"host", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
     b"proxy-connection", b"te", b"trailer", b"upgrade"}
)  # fmt: skip


class _RefusedError(Exception):
    """A request that is answered with a reason; `status` is the answer's code."""

    def __init__(self, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class _Counts:
    connections: int = 0
    sent: int = 0
    received: int = 0


class EgressProxy:
    """The proxy of one command.

    Args:
        hosts: as a person consented to them: example.org (ports 80 and 443), example.org:8080 or *.example.org.

    Raises:
        SandboxError: one of them is none.
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        try:
            self._hosts = frozenset(map(read_host_pattern, hosts))
        except HostError as error:
            raise SandboxError(str(error).rstrip("."), "Name hosts: example.org, localhost:8080") from None
        self._counts: dict[str, _Counts] = {}
        self._refusals: deque[str] = deque(maxlen=_MOST_REFUSALS)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which programs find it."""
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        address = f"http://127.0.0.1:{PORT}"
        return {
            **{name: address for each in names for name in (each, each.lower())},
            "NODE_USE_ENV_PROXY": "1",
        }

    @property
    def traffic(self) -> tuple[HostTraffic, ...]:
        """What went to and came from each host that was reached."""
        return tuple(
            HostTraffic(host, each.connections, each.sent, each.received)
            for host, each in self._counts.items()
        )

    @property
    def refusals(self) -> tuple[str, ...]:
        """The last requests that were refused, each as a sentence, without repetitions."""
        return tuple(dict.fromkeys(self._refusals))

    async def serve(self, listener: socket.socket) -> None:
        """Answer what connects to a listening socket, until `close`; the socket is this proxy's from now on."""
        listener.setblocking(False)
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_PIECE)

    def close(self) -> None:
        """Listen no more, and end every connection; closing again does nothing."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._tasks:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MOST_CONNECTIONS or self._server is None:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._answer(_Caller(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, caller: _Caller) -> None:
        import h11

        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                request = await caller.request()
            if request is None:
                return
            if request.method == b"CONNECT":
                await self._tunnel(caller, request)
            else:
                await self._forward(caller, request)
        except _RefusedError as error:
            self._refusals.append(str(error))
            await caller.refuse(error.status, str(error))
        except h11.RemoteProtocolError as error:
            self._refusals.append(f"A request that is none was refused: {error}.")
            await caller.refuse(400, "This is no request of HTTP.")
        except (OSError, h11.LocalProtocolError, TimeoutError):
            pass  # either end is gone, or says nothing
        finally:
            caller.writer.transport.abort()

    async def _tunnel(self, caller: _Caller, request: h11.Request) -> None:
        target = request.target.decode("ascii", "replace")
        match = _CONNECT_TARGET.fullmatch(target)
        if match is None:
            raise _RefusedError(f"{target[:100]!a} is no host with its port.", 400)
        async with self._connection(match[1], int(match[2])) as (reader, writer, counts):
            early = await caller.connected()
            await _both(
                _copy(caller.reader, writer, counts, early), _copy(reader, caller.writer, counts, None)
            )

    async def _forward(self, caller: _Caller, request: h11.Request) -> None:
        import h11

        target = request.target.decode("ascii", "replace")
        match = _HTTP_TARGET.fullmatch(target)
        if match is None:
            raise _RefusedError(f"{target[:100]!a} is no address that begins with http://.", 400)
        authority, path = match[1], match[2] or "/"
        found = _PORT.fullmatch(authority)
        port = int(found[1] or found[2]) if found else 80
        name = authority if found is None else authority.rpartition(":")[0]
        async with self._connection(name, port) as (reader, writer, counts):
            out = h11.Connection(h11.CLIENT)
            head = h11.Request(
                method=request.method,
                target=path if path.startswith("/") else f"/{path}",
                # The host of the address counts, whatever the field says (RFC 9112, 3.2.2).
                headers=[(b"Host", authority.encode()), *_kept(request.headers), (b"Connection", b"close")],
            )

            async def send() -> None:
                _write(writer, out.send(head), counts)
                async for event in caller.body():
                    _write(writer, out.send(event), counts)
                    await writer.drain()

            sending = asyncio.ensure_future(send())
            try:
                await _relay(out, reader, caller, counts)
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError, OSError, h11.ProtocolError):
                    await sending

    @asynccontextmanager
    async def _connection(
        self, name: str, port: int
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, _Counts]]:
        """Yield a connection to a host that may be reached, and what counts for it. Raises _RefusedError."""
        shown = f"{name[:100]}:{port}"
        try:
            host = read_host(f"//{name}:{port}")
        except HostError as error:
            raise _RefusedError(str(error), 400) from None
        if not any(each.admits(host) for each in self._hosts):
            raise _RefusedError(f"{shown!a} is not among the hosts that this command may reach.")
        try:
            addresses = await look_up(host.name, port)
        except OSError:
            raise _RefusedError(f"{host.name} has no address.", 502) from None
        stream = await _connected(host, addresses, port)
        if stream is None:
            raise _RefusedError(f"{shown} cannot be reached.", 502)
        counts = self._counts.setdefault(str(host), _Counts())
        counts.connections += 1
        try:
            yield (*stream, counts)
        finally:
            stream[1].transport.abort()


class _Caller:
    """The command's side of one connection: one request, and the answer to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11

        self.reader = reader
        self.writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def request(self) -> h11.Request | None:
        """Return the head of the request; None where none came. Raises h11.RemoteProtocolError."""
        import h11

        event = await self._next()
        return event if isinstance(event, h11.Request) else None

    async def body(self) -> AsyncIterator[h11.Data | h11.EndOfMessage]:
        """Yield what belongs to the request after its head."""
        import h11

        if self._http.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        while isinstance(event := await self._next(), h11.Data | h11.EndOfMessage):
            yield event
            if isinstance(event, h11.EndOfMessage):
                return

    async def connected(self) -> bytes:
        """Say that the tunnel stands; return what already came for its other end."""
        import h11

        while await self._next() is not h11.PAUSED:
            pass
        await self.send(h11.Response(status_code=200, headers=[]))
        return self._http.trailing_data[0]

    async def refuse(self, status: int, reason: str) -> None:
        """Answer with a reason, where an answer is still possible."""
        import h11

        text = reason.encode("ascii", "backslashreplace")
        headers = [
            ("Content-Type", "text/plain"),
            ("Content-Length", str(len(text))),
            ("Connection", "close"),
        ]
        with suppress(h11.LocalProtocolError, OSError):
            for event in (
                h11.Response(status_code=status, headers=headers), h11.Data(data=text), h11.EndOfMessage()
            ):  # fmt: skip
                await self.send(event)
            self.writer.write_eof()

    async def send(self, event: h11.Event) -> None:
        if data := self._http.send(event):
            self.writer.write(data)
            await self.writer.drain()

    async def _next(self) -> h11.Event | type[h11.PAUSED] | type[h11.NEED_DATA]:
        import h11

        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self.reader.read(_PIECE))
        return event


def _kept(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the fields that go on to the other side, with one word on where the message ends."""
    named = {
        word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")
    }
    dropped = _OF_ONE_HOP | named - {b"transfer-encoding", b"content-length"}
    if any(name == b"transfer-encoding" for name, _ in headers):
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name not in dropped]


async def _relay(out: h11.Connection, reader: asyncio.StreamReader, caller: _Caller, counts: _Counts) -> None:
    """Pass the answer of a server on to who asked."""
    import h11

    while True:
        try:
            event = out.next_event()
        except h11.RemoteProtocolError as error:
            raise _RefusedError(f"The answer is none of HTTP: {error}.", 502) from None
        if event is h11.NEED_DATA:
            data = await reader.read(_PIECE)
            counts.received += len(data)
            out.receive_data(data)
        elif isinstance(event, h11.Response):
            headers = [*_kept(event.headers), (b"Connection", b"close")]
            await caller.send(h11.Response(status_code=event.status_code, headers=headers))
        elif isinstance(event, h11.Data):
            await caller.send(event)
        elif isinstance(event, h11.EndOfMessage):
            await caller.send(event)
            caller.writer.write_eof()
            return
        elif not isinstance(event, h11.InformationalResponse):
            return


def _write(writer: asyncio.StreamWriter, data: bytes | None, counts: _Counts) -> None:
    if data:
        counts.sent += len(data)
        writer.write(data)


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counts: _Counts, early: bytes | None
) -> None:
    """Copy one way of a tunnel to its end; `early` is what the command sent first, None for the way back to it."""
    _write(writer, early, counts)
    while data := await reader.read(_PIECE):
        if early is None:
            counts.received += len(data)
            writer.write(data)
        else:
            _write(writer, data, counts)
        await writer.drain()
    writer.write_eof()


async def _both(*ways: Coroutine[None, None, None]) -> None:
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _connected(
    host: Host, addresses: Sequence[Address], port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """Return a connection to the first address that takes one. Raises _RefusedError for one that must not be."""
    for address in addresses:
        if not _admits(host, address):
            raise _RefusedError(
                f"{host.name} has the address {address}, which is of this machine or a private network; "
                "consent has to name that address."
            )
    for address in addresses:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(str(address), port, limit=_PIECE)
    return None


def _admits(host: Host, address: Address) -> bool:
    """Return whether a host that was consented to may have this address."""
    if address.is_unspecified or address.is_multicast:
        return False
    if host.name == str(address):
        return True
    if host.name == "localhost" or host.name.endswith(".localhost"):
        return address.is_loopback
    return reach(address) is Reach.WORLD


async def received_listener(way: socket.socket) -> socket.socket:
    """Return the listening socket that comes out of a sandbox over a socket pair. Raises SandboxError."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()
    way.setblocking(False)

    def arrive() -> None:
        if not arrived.done():
            arrived.set_result(None)

    loop.add_reader(way, arrive)
    try:
        await arrived
    finally:
        loop.remove_reader(way)
    descriptors: Sequence[int] = ()
    with suppress(OSError):
        descriptors = socket.recv_fds(way, 1, 1)[1]
    if not descriptors:
        raise SandboxError("the sandbox has no network of its own that a proxy could listen in")
    return socket.socket(fileno=descriptors[0])
