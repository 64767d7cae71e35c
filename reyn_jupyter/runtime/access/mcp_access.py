"""MCP servers, as a session knows them: what a person configured, where that comes from, and how each one fares.

Invariants: what an entry says is data, which no shell reads; a secret of an entry stands in no text. A source gives the
servers that may be started now, and for each that may not the reason; it never starts anything itself.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.outputs.parts.content_parts import ContentParts

MOST_REASONS = 5  # tools that are left out and named beside a server

McpTransport = Literal["stdio", "http"]
McpPhase = Literal["idle", "starting", "ready", "waiting", "needs sign-in", "blocked"]

# What stands before the `__` of a tool's name, in rules and in the targets of effects.
SERVER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]|_(?!_)){0,62}(?<!_)")


@dataclass(frozen=True)
class McpSandbox:
    """What the program of a server may reach in a sandbox, beside its own files.

    Attributes:
        hosts: over HTTP, as rules spell them.
        readable, writable: Files and folders. A relative one begins at the workspace, and crosses no link.

    Example:
        >>> str(McpSandbox(hosts=("api.x.org",), readable=(".",)))
        'sandbox; reads .; reaches api.x.org'
    """

    hosts: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{verb} {', '.join(names)}"
            for verb, names in (("reads", self.readable), ("writes", self.writable), ("reaches", self.hosts))
            if names
        ]
        return "; ".join(["sandbox", *parts, *([] if self.hosts else ["no network"])])


@dataclass(frozen=True)
class McpServer:
    """One configured server.

    Attributes:
        name: letters, digits, ``.``, ``-`` and single ``_``, at most 63; see `SERVER_NAME`.
        transport: "stdio" for a program of this machine, "http" for an address.
        command, args: the program and its words.
        env: what stands in its environment beside PATH, HOME and the like.
        cwd: The folder that it works in, an absolute path; None for an empty folder.
        url: the address of its endpoint.
        headers: what each request to it carries.
        trusted_hints: the person takes the server's word for which of its tools only read.
        blocked: why it may not be started now, in a sentence that says what to do; None where it may.
        sandbox: what its program may reach in a sandbox; None where it runs with the person's rights.

    Raises:
        ValueError: a name that is none, or a transport without its command or address.

    Example:
        >>> McpServer("time", "stdio", command="mcp-server-time", args=("--local-timezone=UTC",)).argv
        ('mcp-server-time', '--local-timezone=UTC')
    """

    name: str
    transport: McpTransport
    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str | Secret] = field(default_factory=dict)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    trusted_hints: bool = False
    blocked: str | None = None
    sandbox: McpSandbox | None = None

    def __post_init__(self) -> None:
        if not SERVER_NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name[:80]!a} is no name of a server: it takes letters, digits, '.', '-' and single '_', "
                "at most 63, and begins with a letter or a digit"
            )
        if not (self.command if self.transport == "stdio" else self.url):
            what = "command" if self.transport == "stdio" else "url"
            raise ValueError(f"the server {self.name} is reached by {self.transport}, and has no {what}")

    @property
    def isolation(self) -> str:
        """How it is kept apart from the rest of the machine, in a few words."""
        if self.transport == "http":
            return "remote"
        return "none" if self.sandbox is None else str(self.sandbox)

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the program."""
        return (self.command, *self.args)


class McpServerSource(Protocol):
    """Where servers come from: a file, a program, a test."""

    def servers(self) -> Mapping[str, McpServer]:
        """Return the servers now, by name. Cheap: it is asked often, from any thread."""

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener`, on any thread, whenever `servers` would answer differently; return what ends that."""


class McpServerList:
    """Servers that a program gives.

    Example:
        >>> servers = McpServerList([McpServer("time", "stdio", command="mcp-server-time")])
        >>> list(servers.servers())
        ['time']
    """

    def __init__(self, servers: Sequence[McpServer] = ()) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._servers = _by_name(servers)

    def servers(self) -> Mapping[str, McpServer]:
        """See `McpServerSource.servers`."""
        return self._servers

    def replace(self, servers: Sequence[McpServer]) -> None:
        """Have these servers from now on. Raises ValueError for two of one name."""
        self._servers = _by_name(servers)
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """See `McpServerSource.subscribe`."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end


def _by_name(servers: Sequence[McpServer]) -> Mapping[str, McpServer]:
    found = {server.name: server for server in servers}
    if len(found) != len(servers):
        raise ValueError("two servers have one name")
    return MappingProxyType(found)


@dataclass(frozen=True)
class McpServerState:
    """How a server fares.

    Attributes:
        name: the server's.
        phase: "idle" before its first use, "starting", "ready", "waiting" until the next try after a failure, "needs
            sign-in" until the person signs in, "blocked" where it may not be started.
        reason: why it is not ready, in a sentence; None where it is.
        tools: how many tools it has on offer.
        calls, errors: how many calls it got, and how many of them failed.
        median: seconds that half of its last calls took at most; None before the first.
        version: its own name and version, as it says.
        protocol: the version of the protocol that is spoken.
        last_line: the last line of its log.
        left_out: its tools that cannot be offered, each with the reason, in sentences.
    """

    name: str
    phase: McpPhase
    reason: str | None = None
    tools: int = 0
    calls: int = 0
    errors: int = 0
    median: float | None = None
    version: str = ""
    protocol: str = ""
    last_line: str = ""
    left_out: tuple[str, ...] = ()


def left_out_tools(states: Iterable[McpServerState]) -> list[str]:
    """Return a sentence for each server that has tools which cannot be offered, with the first reasons."""
    return [
        f"The MCP server {state.name} leaves out {count(len(state.left_out), 'tool')}: "
        + "; ".join(state.left_out[:MOST_REASONS])
        for state in states
        if state.left_out
    ]


@dataclass(frozen=True)
class McpTool:
    """A tool of a server, as it describes it.

    Attributes:
        entry: ``<server>__<tool>``, unique among all servers: what an action is called, without its category.
        server, tool: the server, and the tool's name as the server has it.
        description, input_schema, output_schema: what the server says; not to be trusted.
        reads: the server says that it only reads, and the person takes its word.
    """

    entry: str
    server: str
    tool: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    reads: bool = False


class McpAccess(Protocol):
    """The MCP servers of a session. All of it but `servers`, `states` and `log` belongs on the engine's loop."""

    def servers(self) -> Mapping[str, McpServer]:
        """Return the configured servers by name."""

    def states(self) -> tuple[McpServerState, ...]:
        """Return how each configured server fares, by name."""

    def log(self, server: str) -> tuple[str, ...]:
        """Return the last lines that a server wrote on its standard error or sent as messages, oldest first."""

    def left_out(self, server: str) -> tuple[str, ...]:
        """Return which tools of a server are not offered, each with the reason, in sentences."""

    def tool(self, entry: str) -> McpTool | None:
        """Return a tool that is on offer; None where there is none."""

    def unlisted(self, entry: str) -> str | None:
        """Return the server that a tool may be of whose tools are not known yet; None where they are."""

    async def tools(self) -> Sequence[McpTool]:
        """Start every server that is not, side by side; return what those offer that answer within seconds."""

    async def server_tools(self, server: str) -> Sequence[McpTool]:
        """Return the tools of one server, which is started first. Raises ActionError."""

    async def restart(self, server: str) -> None:
        """End a server that runs, and start it. Raises ActionError where it does not come."""

    async def call(self, entry: str, arguments: dict[str, Any], context: Any) -> ContentParts:
        """Call a tool and return what it answers. Raises ActionError."""

    async def resources(self, server: str) -> Mapping[str, list[dict[str, Any]]]:
        """Return what a server offers beside tools: "resources", "templates", "prompts". Raises ActionError."""

    async def read_resource(self, server: str, uri: str, context: Any) -> ContentParts:
        """Return the contents of a server's resource. Raises ActionError."""

    async def get_prompt(
        self, server: str, name: str, arguments: dict[str, str], context: Any
    ) -> ContentParts:
        """Return the messages of a server's prompt. Raises ActionError."""


# Told of every server whose state or log moved, on the thread that it comes from, in storms too.
WATCHERS: list[Callable[[McpAccess], None]] = []


class NoMcpServers:
    """Stands where a session has no MCP servers."""

    def servers(self) -> Mapping[str, McpServer]:
        return {}

    def states(self) -> tuple[McpServerState, ...]:
        return ()

    def log(self, server: str) -> tuple[str, ...]:
        return ()

    def left_out(self, server: str) -> tuple[str, ...]:
        return ()

    def tool(self, entry: str) -> McpTool | None:
        return None

    def unlisted(self, entry: str) -> str | None:
        return None

    async def tools(self) -> Sequence[McpTool]:
        return ()

    async def server_tools(self, server: str) -> NoReturn:
        _refuse()

    async def restart(self, server: str) -> NoReturn:
        _refuse()

    async def call(self, entry: str, arguments: dict[str, Any], context: Any) -> NoReturn:
        _refuse()

    async def resources(self, server: str) -> NoReturn:
        _refuse()

    async def read_resource(self, server: str, uri: str, context: Any) -> NoReturn:
        _refuse()

    async def get_prompt(self, server: str, name: str, arguments: dict[str, str], context: Any) -> NoReturn:
        _refuse()


def _refuse() -> NoReturn:
    raise ActionError("There are no MCP servers here.", "Go on without them.", code="not_available")
