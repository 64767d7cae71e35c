"""The connection to one server, and the task that owns it.

Invariants: one task opens the client, holds it and closes it, so that a connection that breaks ends this task and no
call; calls use the client from tasks of their own, side by side. A server is started when it is needed and not before.
One that ends at the question for the newest protocol is started again at once, and asked for the older one alone; one
that does not answer it for a while is asked for the older one too.
After a failure it is left alone for a while that doubles, and who asks meanwhile gets the reason at once. A call is
repeated only where the server cannot have seen it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from reyn_jupyter.backends.mcp.answers import LONGEST_ERROR, error_words
from reyn_jupyter.backends.mcp.elicitation import answer_elicitation
from reyn_jupyter.backends.mcp.server_log import ServerLog
from reyn_jupyter.backends.mcp.server_programs import CannotStartError, ServerPrograms
from reyn_jupyter.backends.mcp.tool_listing import MOST_TOOLS, ToolListing, listing_of
from reyn_jupyter.backends.mcp.transports import Ended, http_transport, program_transport
from reyn_jupyter.backends.mcp_sdk.sdk import MCP_SDK
from reyn_jupyter.runtime.access.mcp_access import McpPhase, McpServer, McpServerState
from reyn_jupyter.runtime.action_error import ActionError, text_of
from reyn_jupyter.runtime.live_catalog.backoff import Backoff
from reyn_jupyter.runtime.services import Spawn, ToolContext
from reyn_jupyter.support.network.hosts import Host
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult, Tool

    from reyn_jupyter.backends.mcp_sdk.client import Client
    from reyn_jupyter.backends.mcp_servers.sign_in_store import ServerSignIn

T = TypeVar("T")

START_SECONDS = 60.0  # a runner may load a package first
LIST_SECONDS = 30.0
MOST_PAGES = 500
MOST_QUESTIONS = 20  # of a server to the person in one call
LONGEST_REASON = 500  # characters
_MOST_LOGGED = 20  # tools that are left out, in the log
_KEPT_TIMES = 200  # calls whose duration is kept
_BREAK = 1.0  # seconds between a broken call and the word of the owner why
_SILENT = "[reyn] it has not answered the question for the newest protocol; it is asked for the older one too"
_STARTED_AGAIN = (
    "[reyn] it fails after the question for the newest protocol; it is started again for the older one"
)
# What the SDK says of a response without a message of the protocol, such as 405.
_NOT_TAKEN = ("Server returned an error response", "Not Found")
_OTHER_ADDRESS = (
    ": the address does not take streamable HTTP; "
    "a server that speaks SSE alone is reached through a program such as mcp-proxy"
)
_SETTLE = 0.1  # seconds in which several changes of a listing are one

# The call that a server's question is for, where the SDK asks it in the task of the call.
_asking: ContextVar[_Call | None] = ContextVar("asking", default=None)


@dataclass(frozen=True)
class ConnectionLinks:
    """What a connection needs of its session.

    Attributes:
        programs: start those of servers.
        spawn: see `Services`.
        mask: covers what may not be shown.
        changed: told whenever the tools on offer moved.
        sign_in: gives the place of a remote server's sign-in.
        denies: returns whether a rule denies a host.
    """

    programs: ServerPrograms
    spawn: Spawn
    mask: Callable[[str], str]
    changed: Callable[[], None]
    sign_in: Callable[[McpServer], ServerSignIn | None] = lambda server: None
    denies: Callable[[Host], bool] = lambda host: False


@dataclass(eq=False)
class _Call:
    """A call under way: where its questions go, and how many there were."""

    context: ToolContext | None
    questions: int = 0


@dataclass(eq=False)
class _Life:
    """One opening of the client, to its end.

    Attributes:
        opened: done once the client may be used, or failed.
        ended: the reason of the end, in a sentence.
        unreached: the last request did not reach the server at all.
        calls: those under way.
        answered: it answered a call.
    """

    opened: asyncio.Future[Client]
    ended: asyncio.Future[str]
    unreached: bool = False
    answered: bool = False
    calls: list[_Call] = field(default_factory=list)
    stale: bool = False
    task: asyncio.Task[None] | None = None

    def end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)


class ServerConnection:
    """A server, its tools and how it fares. All of it belongs on one loop.

    Args:
        server: the entry.
        links: what it needs of its session.
        moved: told whenever its state or its log did.
    """

    def __init__(
        self, server: McpServer, links: ConnectionLinks, moved: Callable[[], None] = lambda: None
    ) -> None:
        self.server = server
        self.log = ServerLog(links.mask, moved)
        self._moved = moved
        self.listing = ToolListing()
        self._links = links
        self._life: _Life | None = None
        self._backoff = Backoff()
        self._failure: str | None = None
        self._sign_in = links.sign_in(server) if server.transport == "http" else None
        self._unsigned_at: object = None  # the stamp of the sign-ins when the server wanted another
        self._version = self._protocol = ""
        self._is_older = False  # it ended at the question for the newest protocol, or did not answer it
        self._calls = self._errors = 0
        self._times: deque[float] = deque(maxlen=_KEPT_TIMES)

    @property
    def state(self) -> McpServerState:
        """How the server fares."""
        phase, reason = self._standing()
        return McpServerState(
            self.server.name,
            phase,
            reason,
            len(self.listing.tools),
            self._calls,
            self._errors,
            median(self._times) if self._times else None,
            self._version,
            self._protocol,
            self.log.last_line,
            self.listing.left_out,
        )

    @property
    def is_due(self) -> bool:
        """True if its tools are not known, and it is about to tell them or may be started to."""
        return self._standing()[0] in ("idle", "starting") and not self.listing.tools

    @property
    def is_listed(self) -> bool:
        """True if it is known which tools it has, or had when it was last there."""
        return bool(self.listing.tools) or self._standing()[0] == "ready"

    def _standing(self) -> tuple[McpPhase, str | None]:
        if (blocked := self.server.blocked or MCP_SDK.missing()) is not None:
            return "blocked", blocked
        if self._unsigned_at is not None and self._sign_in is not None:
            if self._unsigned_at == self._sign_in.stamp():
                return "needs sign-in", f"Sign in: {reyn_line('mcp login', self.server.name)}"
            self._unsigned_at = self._failure = None
        if self._life is not None:
            return ("ready", None) if _is_open(self._life) else ("starting", None)
        if self._failure is not None and self._backoff.is_waiting(time.monotonic()):
            return "waiting", self._failure
        return "idle", self._failure

    # The client

    async def open(self) -> Client:
        """Return the client, which is opened first where it is not. Raises ActionError."""
        return (await self._opened())[0]

    async def _opened(self) -> tuple[Client, _Life]:
        while self._life is not None and self._life.ended.done() and self._life.task is not None:
            await asyncio.wait([self._life.task])  # it is closing what is left of it
        phase, reason = self._standing()
        name = self.server.name
        if phase == "blocked":
            raise ActionError(
                f"The MCP server {name} may not be started.", reason or "", code="server_blocked"
            )
        if phase == "needs sign-in":
            raise self._needs_sign_in()
        if phase == "waiting":
            raise ActionError(
                f"The MCP server {name} is not available: {reason}.",
                f"It is tried again later; {reyn_line('mcp log', name)} shows what it wrote.",
                code="server_unavailable",
            )
        life = self._life
        if life is None:
            loop = asyncio.get_running_loop()
            life = self._life = _Life(loop.create_future(), loop.create_future())
            life.opened.add_done_callback(_retrieved)
            life.task = self._links.spawn(self._own(life), f"hold the MCP server {name}")
            self._moved()
        return await asyncio.shield(life.opened), life

    async def restart(self) -> None:
        """End the connection, and open it again at once, however often that failed. Raises ActionError."""
        await self.close()
        self._backoff.clear()
        await self.open()

    async def close(self) -> None:
        """End the connection, and wait until it is gone."""
        life = self._life
        if life is not None and life.task is not None:
            life.task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asyncio.wait([life.task])

    async def _own(self, life: _Life) -> None:
        """Open the client, hold it until the connection ends, and close it."""
        began, reason = time.monotonic(), "the session closed it"
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(START_SECONDS):
                    await MCP_SDK.load()
                    client = await self._entered(stack, life)
                    # It is checked here without the loop, by patterns that end: see `_fits`.
                    client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
                    self.listing = await self._listed(client)
                self._note_opened(client)
                life.opened.set_result(client)
                self._links.changed()
                self._moved()
                async with self._listening(client, life):
                    # A group that fails cancels this task: the future is not to go with it.
                    reason = await asyncio.shield(life.ended)
        except Exception as error:  # noqa: BLE001 - whatever a transport raises is why the server is not there
            life.unreached = _never_reached(error)
            unsigned = self._note_refusal(error)
            if life.ended.done():
                reason = life.ended.result()
            elif unsigned:
                reason = "it needs a sign-in"
            elif isinstance(_leaves(error)[0], TimeoutError):  # alone, or in the group of the transport
                reason = f"it did not answer within {START_SECONDS:g} seconds after its start"
            else:
                leaf = _leaves(error)[0]
                reason = str(leaf) if isinstance(leaf, CannotStartError) else _words(error)
                if getattr(leaf, "message", "") in _NOT_TAKEN:
                    reason += _OTHER_ADDRESS
        finally:
            self._settle(life, reason, time.monotonic() - began)

    async def _entered(self, stack: AsyncExitStack, life: _Life) -> Client:
        """Return the client with its handshake done.

        Servers of older SDKs (the one for Rust, say) end at a first message that is not `initialize`. Those that start
        slowly may answer it late, and refuse the `initialize` that followed it.
        """
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        is_older, self._is_older = self._is_older, False
        if not is_older:
            ends: list[str] = []
            end = ends.append
            try:
                client = await stack.enter_async_context(self._client(life, lambda reason: end(reason)))
            except Exception:
                if not (ends or self._is_older):
                    raise
                self.log.add(_STARTED_AGAIN)
            else:
                end = life.end
                if ends:
                    life.end(ends[0])
                self._is_older = self._is_older and client.protocol_version not in MODERN_PROTOCOL_VERSIONS
                return client
        client = await stack.enter_async_context(self._client(life, life.end, "legacy"))
        self._is_older = True
        return client

    def _note_silence(self) -> None:
        self._is_older = True
        self.log.add(_SILENT)

    def _note_opened(self, client: Client) -> None:
        told = client.server_info
        self._version = "" if told is None else shorten(visible(f"{told.name} {told.version}".strip()), 100)
        self._protocol = shorten(visible(client.protocol_version), 40)
        self._failure = None

    def _settle(self, life: _Life, reason: str, seconds: float) -> None:
        """Say why the connection ended, and when the next may begin."""
        reason = shorten(visible(self._links.mask(reason)), LONGEST_REASON)
        was_open = _is_open(life)
        if self._life is life:
            self._life = None
        asked = asyncio.current_task()
        if asked is not None and asked.cancelling():
            self._failure = None
        else:
            self._failure = reason
            self.log.add(f"[reyn] {reason}")
            if life.answered or self._unsigned_at is not None:
                self._backoff.clear()
            else:
                self._backoff.fail(time.monotonic())
        life.end(reason)
        self._moved()
        if not was_open and not life.opened.done():
            life.opened.set_exception(
                self._needs_sign_in()
                if self._unsigned_at is not None
                else ActionError(
                    f"The MCP server {self.server.name} could not be started: {reason}.",
                    f"{reyn_line('mcp log', self.server.name)} shows what it wrote.",
                    code="server_unavailable",
                )
            )

    @asynccontextmanager
    async def _client(
        self, life: _Life, ended: Ended, mode: Literal["auto", "legacy"] = "auto"
    ) -> AsyncIterator[Client]:
        from mcp_types import Implementation

        from reyn_jupyter.backends.mcp.odd_results import forgiving
        from reyn_jupyter.backends.mcp_sdk.client import Client

        links = self._links
        if self.server.transport == "http":
            transport = http_transport(self.server, self._sign_in, self._links.denies)
        else:
            transport = program_transport(links.programs, self.server, self.log, ended)
        client = Client(
            forgiving(
                transport,
                lambda text: self.log.add(f"[reyn] {text}"),
                self._note_silence if self.server.transport == "stdio" else None,
            ),
            client_info=Implementation(name="reyn-jupyter", version="1"),
            log_level="info",
            mode=mode,
            cache=None,
            logging_callback=self._logged,
            message_handler=lambda message: self._notified(message, life),
            elicitation_callback=lambda context, params: self._elicited(params, life),
        )
        async with client:
            yield client

    # What the server says by itself

    async def _logged(self, params: Any) -> None:
        self.log.add(f"[{params.level}] {params.data}")

    async def _notified(self, message: Any, life: _Life) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._relist_soon(life)

    def _relist_soon(self, life: _Life) -> None:
        if not life.stale and _is_open(life):
            life.stale = True
            self._links.spawn(self._relist(life), f"list the tools of {self.server.name} again")

    async def _relist(self, life: _Life) -> None:
        await asyncio.sleep(_SETTLE)
        life.stale = False
        if self._life is not life:
            return
        try:
            async with asyncio.timeout(LIST_SECONDS):
                self.listing = await self._listed(life.opened.result())
        except Exception as error:  # noqa: BLE001 - the tools that were listed before stay
            self.log.add(f"[reyn] its tools could not be listed again: {_words(error)}")
        else:
            self._links.changed()
            self._moved()

    @asynccontextmanager
    async def _listening(self, client: Client, life: _Life) -> AsyncIterator[None]:
        """Follow the changes of a server whose protocol sends them only to who listens."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        told = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or told is None or not told.list_changed:
            yield
            return

        async def follow() -> None:
            with suppress(Exception):  # a server may refuse; its tools are as they were at the start
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._relist_soon(life)

        task = self._links.spawn(follow(), f"follow the tools of {self.server.name}")
        try:
            yield
        finally:
            task.cancel()

    async def _elicited(self, params: Any, life: _Life) -> Any:
        from mcp_types import ElicitResult

        call = _asking.get()
        if call is None and len(life.calls) == 1:
            [call] = life.calls
        # Of several calls under way, an older protocol does not say whose question it is.
        if call is None or call.context is None or call.questions >= MOST_QUESTIONS:
            return ElicitResult(action="cancel")
        call.questions += 1
        return await answer_elicitation(params, self.server.name, call.context)

    async def _listed(self, client: Client) -> ToolListing:
        from mcp_types import METHOD_NOT_FOUND

        from reyn_jupyter.backends.mcp.odd_results import LEFT_OUT
        from reyn_jupyter.backends.mcp_sdk.client import MCPError

        if client.server_capabilities.tools is None:
            return ToolListing()
        tools: list[Tool] = []
        unread: list[str] = []
        cursor = None
        seen: set[str | None] = {None}
        for _ in range(MOST_PAGES):
            try:
                page = await client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND and not tools:
                    break
                raise
            tools += page.tools
            named = (page.meta or {}).get(LEFT_OUT)
            unread += map(str, named) if isinstance(named, list) else ()
            cursor = page.next_cursor or None  # servers write an empty one for none
            if cursor in seen or len(tools) > MOST_TOOLS:
                break
            seen.add(cursor)
        listing = await asyncio.to_thread(listing_of, self.server, tools, unread[:MOST_TOOLS])
        for reason in listing.left_out[:_MOST_LOGGED]:
            self.log.add(f"[reyn] left out: {reason}")
        return listing

    # Calls

    async def call_tool(
        self, tool: str, arguments: dict[str, Any], context: ToolContext | None
    ) -> CallToolResult:
        """Call a tool by the name that the server has for it. Raises ActionError."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if context is not None:
                said = shorten(visible(message or ""), LONGEST_REASON)
                context.report(said, progress, total)

        return await self._request(
            lambda client: client.call_tool(tool, arguments, progress_callback=report), context
        )

    async def read_resource(self, uri: str, context: ToolContext | None) -> ReadResourceResult:
        """Read a resource. Raises ActionError."""
        return await self._request(lambda client: client.read_resource(uri), context)

    async def get_prompt(
        self, name: str, arguments: dict[str, str], context: ToolContext | None
    ) -> GetPromptResult:
        """Get a prompt with its arguments filled in. Raises ActionError."""
        return await self._request(lambda client: client.get_prompt(name, arguments), context)

    async def request(self, send: Callable[[Client], Awaitable[T]]) -> T:
        """Ask the server for something that is no call of a tool. Raises ActionError."""
        return await self._request(send, None)

    async def _request(self, send: Callable[[Client], Awaitable[T]], context: ToolContext | None) -> T:
        self._calls += 1
        began = time.monotonic()
        call = _Call(context)
        token = _asking.set(call)
        try:
            answer = await self._sent(send, call)
        except BaseException:
            self._errors += 1
            raise
        else:
            self._times.append(time.monotonic() - began)
            return answer
        finally:
            _asking.reset(token)
            self._moved()

    async def _sent(self, send: Callable[[Client], Awaitable[T]], call: _Call) -> T:
        from reyn_jupyter.backends.mcp_sdk.client import MCPError

        for is_last in (False, True):
            client, life = await self._opened()
            life.calls.append(call)
            try:
                answer = await send(client)
            except MCPError as error:
                if self._note_refusal(error):
                    life.end("it needs a sign-in")
                    raise self._needs_sign_in() from None
                if not _broke(error):
                    raise self._refusal(error) from None
                alone = len(life.calls) == 1
                reason, unreached = await self._end_of(life, error)
                if is_last or not (unreached and alone):
                    raise self._broken(reason, unreached) from None
            except (ValidationError, RuntimeError, ExceptionGroup) as error:
                raise ActionError(
                    f"The MCP server {self.server.name} answered what its protocol does not allow: {_words(error)}",
                    "Go on without this answer; whether the call did anything is not known.",
                    code="server_answer",
                ) from None
            else:
                life.answered = True
                return answer
            finally:
                life.calls.remove(call)
        raise AssertionError  # the loop returns or raises

    async def _end_of(self, life: _Life, error: Any) -> tuple[str, bool]:
        """Return why a connection broke, and whether the server cannot have seen the request."""
        if _forgot(error):
            life.unreached = True
            life.end("it does not know this connection any more")
            if life.task is not None:
                await asyncio.wait([life.task], timeout=_BREAK)
            return life.ended.result(), True
        if life.task is not None and not life.ended.done():
            await asyncio.wait([life.ended], timeout=_BREAK)
        if not life.ended.done():  # this answer alone was lost
            return shorten(visible(self._links.mask(error.message)), LONGEST_REASON), False
        return life.ended.result(), life.unreached

    def _broken(self, reason: str, unreached: bool) -> ActionError:
        known = "" if unreached else " in the middle of the call"
        hint = (
            "" if unreached else "Whether the call did anything is not known: look before it is made again. "
        )
        return ActionError(
            f"The MCP server {self.server.name} went away{known}: {reason}.",
            f"{hint}{reyn_line('mcp log', self.server.name)} shows what it wrote.",
            code="server_died",
        )

    def _note_refusal(self, error: BaseException) -> bool:
        """Note that the server wants a sign-in, where that is what an error says; return whether it does."""
        if self._sign_in is None:
            return False
        from reyn_jupyter.backends.mcp_sign_in.bearer import NEEDS_SIGN_IN

        leaf = _leaves(error)[0]
        if getattr(leaf, "code", None) != NEEDS_SIGN_IN:
            return False
        self._unsigned_at = self._sign_in.stamp()
        return True

    def _needs_sign_in(self) -> ActionError:
        name = self.server.name
        return ActionError(
            f"The MCP server {name} needs the person to sign in.",
            f"Tell the person so: only they can, and no call does it. {reyn_line('mcp login', name)}",
            code="sign_in_needed",
        )

    def _refusal(self, error: Any) -> ActionError:
        from reyn_jupyter.backends.mcp_sign_in.bearer import NEEDS_SCOPE, NOT_RENEWED

        name = self.server.name
        if error.code == NEEDS_SCOPE:
            return ActionError(
                f"The MCP server {name} asks for more rights than the person gave.",
                f"Tell the person so: only they can give them. {reyn_line('mcp login', name)}",
                code="sign_in_needed",
            )
        if error.code == NOT_RENEWED:
            said = shorten(visible(self._links.mask(str(error.message))), LONGEST_REASON)
            return ActionError(
                f"The sign-in to the MCP server {name} could not be renewed: {said}.",
                f"Try again later; {reyn_line('mcp login', name)} signs in anew.",
                code="server_unavailable",
            )
        said = shorten(visible(self._links.mask(error_words(error.message, error.data))), LONGEST_ERROR)
        return ActionError(
            f"The MCP server {self.server.name} refused the call: {said}",
            "Look at the tool's description and arguments again.",
            code="server_refused",
        )


async def _unchecked(name: str, result: Any) -> None:
    """Check nothing: a server's own patterns could hold the loop for hours."""


def _is_open(life: _Life) -> bool:
    opened = life.opened
    return opened.done() and not opened.cancelled() and opened.exception() is None


def _retrieved(opened: asyncio.Future[Any]) -> None:
    """Take note of a failure that nobody may wait for."""
    if not opened.cancelled():
        opened.exception()


def _broke(error: Any) -> bool:
    from mcp_types import CONNECTION_CLOSED

    # Servers use the same code for errors of their own.
    ours = error.message == "Connection closed" or error.message.startswith("SSE stream ")
    return (error.code == CONNECTION_CLOSED and ours) or _forgot(error)


def _forgot(error: Any) -> bool:
    """Return whether a server over HTTP said that it has no such session, as after a restart."""
    from mcp_types import INVALID_REQUEST

    return bool(
        error.code == INVALID_REQUEST and error.message in ("Session terminated", "Session not found")
    )


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]


def _never_reached(error: BaseException) -> bool:
    from reyn_jupyter.backends.mcp_sdk.http import httpx

    return any(isinstance(each, httpx.ConnectError | httpx.ConnectTimeout) for each in _leaves(error))


def _words(error: BaseException) -> str:
    """Return an error in a few words, without the frames of the groups that it may be in."""
    leaf = _leaves(error)[0]
    said = text_of(leaf).strip().partition("\n")[0]
    if (data := getattr(leaf, "data", None)) is not None:
        said = error_words(said, data)
    return f"{type(leaf).__name__}: {shorten(visible(said), LONGEST_REASON)}" if said else type(leaf).__name__
