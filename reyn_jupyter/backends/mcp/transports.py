"""The two ways to a server: the pipes of a program, and HTTP.

Invariants: a program is owned by the session, and ends with it, its group too; it gets the few variables that most need
and those of its entry. A message has at most `LARGEST_MESSAGE` bytes in either way; a larger one ends the connection,
so that a flood costs memory for one message. What a program prints beside the protocol goes to its log, and ends the
connection where it is as much as a message may be, without one in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.mcp.server_log import ServerLog
from reyn_jupyter.backends.mcp.server_programs import ServerProgram, ServerPrograms
from reyn_jupyter.runtime.access.mcp_access import McpServer
from reyn_jupyter.support.network.hosts import Host
from reyn_jupyter.support.secret import Secret

if TYPE_CHECKING:
    import anyio
    from mcp.client._transport import TransportStreams

    from reyn_jupyter.backends.mcp_sdk.http import httpx
    from reyn_jupyter.backends.mcp_servers.sign_in_store import ServerSignIn

LARGEST_MESSAGE = 32 << 20
CONNECT_SECONDS = 15.0
_CHUNK = 1 << 16
_LEAST_LINE = 1_000  # bytes that a line beside the protocol counts at least: it costs work, however short
_ENDED = 0.5  # seconds that a program may take to end by itself once its input is closed
_LAST_WORDS = 2.0  # seconds that are waited for what a program said last; a child of it may hold its end open

Ended = Callable[[str], None]  # takes the reason, in a sentence


class MessageTooLargeError(Exception):
    """A server sent more than one message may have.

    Args:
        where: how it sent that.
    """

    def __init__(self, where: str = "in one message") -> None:
        super().__init__(f"it sent more than {LARGEST_MESSAGE >> 20} MiB {where}")


@asynccontextmanager
async def program_transport(
    programs: ServerPrograms, server: McpServer, log: ServerLog, ended: Ended
) -> AsyncIterator[TransportStreams]:
    """Start a server's program, and yield its streams of messages.

    Args:
        ended: told once, when the program's output ends.

    Raises:
        OSError: no process can be made.
        SandboxError: it is to run in a sandbox, and cannot.
    """
    import anyio
    from mcp.shared.message import SessionMessage

    program = await programs.start(server)
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    closing, said_all = False, anyio.Event()

    def tell(reason: str) -> None:
        if not closing:  # otherwise it ends because the connection does
            ended(reason)

    try:
        async with anyio.create_task_group() as group, read_stream, write_stream:
            group.start_soon(_read, program, incoming, log, tell, said_all)
            group.start_soon(_write, program, outgoing)
            group.start_soon(_read_errors, program, log, said_all)
            try:
                yield read_stream, write_stream
            finally:
                closing = True
                with anyio.CancelScope(shield=True):
                    await _end(program, log)
                group.cancel_scope.cancel()
    finally:
        for stream in (incoming, read_stream, write_stream, outgoing):
            stream.close()
        program.let_go()


async def _end(program: ServerProgram, log: ServerLog) -> None:
    """Close the program's input, as the protocol says, and end what does not end by itself."""
    import anyio

    from reyn_jupyter.guard.sandbox import SandboxError

    process = program.process
    if process.stdin is not None:
        process.stdin.close()
    with anyio.move_on_after(_ENDED):
        await process.wait()
    try:
        await program.end()
    except SandboxError as error:  # the connection is closed whatever is left of its program
        log.add(str(error))


async def _read(
    program: ServerProgram, incoming: Any, log: ServerLog, ended: Ended, said_all: anyio.Event
) -> None:
    import anyio

    from reyn_jupyter.backends.mcp.messages import message_of

    reason = "its program ended"
    try:
        beside = 0
        async for line in _lines(program):
            message = message_of(line)
            if message is None:
                beside += max(len(line), _LEAST_LINE)
                log.feed(line[:_CHUNK] + b"\n")
                if beside > LARGEST_MESSAGE:
                    raise MessageTooLargeError("beside the protocol")
            else:
                beside = 0
                await incoming.send(message)
    except MessageTooLargeError as error:
        reason = str(error)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # the connection is closed from this side
    with anyio.move_on_after(_LAST_WORDS):
        await program.process.wait()
        await said_all.wait()
    code = program.process.returncode
    if last := log.last_error:
        reason += f"; its log says: {last}"
    elif code:
        reason += f" with code {code}"
    ended(reason)
    incoming.close()  # whoever waits for an answer finds the reason there


async def _lines(program: ServerProgram) -> AsyncIterator[bytes]:
    stdout = program.process.stdout
    assert stdout is not None
    held: list[bytes] = []
    size = 0
    while data := await stdout.read(_CHUNK):
        first, *rest = data.split(b"\n")
        held.append(first)
        size += len(first)
        if size > LARGEST_MESSAGE:
            raise MessageTooLargeError
        for piece in rest:
            yield b"".join(held)
            held, size = [piece], len(piece)
    yield b"".join(held)


async def _write(program: ServerProgram, outgoing: Any) -> None:
    stdin = program.process.stdin
    assert stdin is not None
    async with outgoing:
        async for sent in outgoing:
            text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            with suppress(ConnectionError):  # that it ended is seen where its output is read
                await stdin.drain()


async def _read_errors(program: ServerProgram, log: ServerLog, said_all: anyio.Event) -> None:
    stderr = program.process.stderr
    assert stderr is not None
    while data := await stderr.read(_CHUNK):
        log.feed(data)
    log.end()
    said_all.set()


@asynccontextmanager
async def http_transport(
    server: McpServer, sign_in: ServerSignIn | None, denies: Callable[[Host], bool]
) -> AsyncIterator[TransportStreams]:
    """Yield the streams of messages of a server that speaks streamable HTTP.

    A redirect is followed within the address's own origin alone.

    Args:
        sign_in: whose token requests carry, unless the entry names a key of its own.
        denies: returns whether a rule denies a host, for the renewal of that token.
    """
    from reyn_jupyter.backends.mcp_sdk.client import streamable_http
    from reyn_jupyter.backends.mcp_sdk.http import httpx

    headers = {
        name: each.reveal() if isinstance(each, Secret) else each for name, each in server.headers.items()
    }
    auth = None
    if sign_in is not None and not any(name.lower() == "authorization" for name in headers):
        from reyn_jupyter.backends.mcp_sign_in.bearer import BearerAuth

        auth = BearerAuth(sign_in, denies)
    # How long an answer may take is the call's own limit.
    timeout = httpx.Timeout(CONNECT_SECONDS, read=None)
    limits = httpx.Limits(max_connections=None)  # a stream each; a pool of a few would hold calls back
    # A compressed answer of a few KB may unpack to gigabytes.
    headers = {"accept-encoding": "identity", **headers}
    async with (
        httpx.AsyncClient(
            headers=headers,
            auth=auth,
            timeout=timeout,
            limits=limits,
            event_hooks={"response": [_bound]},
        ) as client,
        streamable_http(server.url, client, LARGEST_MESSAGE) as streams,
    ):
        yield streams


async def _bound(answer: httpx.Response) -> None:
    """End an answer that is larger than a message may be, and put its frame right.

    Raises:
        MessageTooLargeError: the answer is compressed.
    """
    from reyn_jupyter.backends.mcp.messages import reframed
    from reyn_jupyter.backends.mcp_sdk.http import httpx

    class BoundedStream(httpx.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            held: list[bytes] = []
            size = 0
            async for data in self._stream:
                size += len(data)
                if size > LARGEST_MESSAGE:
                    raise httpx.StreamError(str(MessageTooLargeError()))
                held.append(data)
            yield reframed(b"".join(held), answer.request.content)

        async def aclose(self) -> None:
            await self._stream.aclose()

    if answer.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise MessageTooLargeError
    if not answer.headers.get("content-type", "").lower().startswith("text/event-stream"):
        answer.stream = BoundedStream(answer.stream)
