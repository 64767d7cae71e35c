"""The MCP servers of a session: one connection each, opened on first use.

Invariants: what the source says holds: a server that it gives no more, or gives otherwise, is ended. A tool is known by
its entry, and a call goes to the server that listed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reyn_jupyter.backends.mcp.answers import prompt_answer, resource_answer, tool_answer
from reyn_jupyter.backends.mcp.connection import ConnectionLinks, ServerConnection
from reyn_jupyter.catalog.arguments.preparation import faults
from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.catalog.schema_check import check_schema, read_schema
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.runtime.access.mcp_access import (
    WATCHERS,
    McpServer,
    McpServerSource,
    McpServerState,
    McpTool,
)
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.text import meant_clause

_SHORT = 100_000  # characters of an answer that is read on the loop
FIRST_SECONDS = 5.0  # that a listing waits for servers which begin; the rest come later by themselves


class McpConnections:
    """See `McpAccess`.

    Args:
        source: where servers come from.
        links: what connections need of the session.
    """

    def __init__(self, source: McpServerSource, links: ConnectionLinks) -> None:
        self._source = source
        self._links = links
        self._connections: dict[str, ServerConnection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tools: dict[str, McpTool] = {}
        self._tools_of: tuple[object, ...] = ()
        source.subscribe(self._source_moved)

    def servers(self) -> Mapping[str, McpServer]:
        """See `McpAccess.servers`."""
        return self._source.servers()

    def states(self) -> tuple[McpServerState, ...]:
        """See `McpAccess.states`."""
        found = []
        for name, server in sorted(self.servers().items()):
            held = self._connections.get(name)
            known = held is not None and held.server == server
            found.append(held.state if known and held else ServerConnection(server, self._links).state)
        return tuple(found)

    def log(self, server: str) -> tuple[str, ...]:
        """See `McpAccess.log`."""
        held = self._connections.get(server)
        return () if held is None else held.log.lines

    def left_out(self, server: str) -> tuple[str, ...]:
        """See `McpAccess.left_out`."""
        held = self._connections.get(server)
        return () if held is None else held.listing.left_out

    def tool(self, entry: str) -> McpTool | None:
        """See `McpAccess.tool`."""
        listings = tuple(each.listing for each in self._connections.values())
        if listings != self._tools_of:
            self._tools = {tool.entry: tool for listing in listings for tool in listing.tools}
            self._tools_of = listings
        return self._tools.get(entry)

    def unlisted(self, entry: str) -> str | None:
        """See `McpAccess.unlisted`."""
        name = entry.partition(SEPARATOR)[0]
        server, held = self.servers().get(name), self._connections.get(name)
        is_known = held is not None and held.server == server and held.is_listed
        return None if server is None or is_known else name

    async def tools(self) -> Sequence[McpTool]:
        """See `McpAccess.tools`."""
        connections = self._held()
        begun = [asyncio.ensure_future(each.open()) for each in connections if each.is_due]
        for each in begun:
            each.add_done_callback(_retrieved)
        if begun:
            await asyncio.wait(begun, timeout=FIRST_SECONDS)
        return [tool for each in connections for tool in each.listing.tools]

    async def server_tools(self, server: str) -> Sequence[McpTool]:
        """See `McpAccess.server_tools`."""
        held = self._connection(server)
        await held.open()
        return held.listing.tools

    async def restart(self, server: str) -> None:
        """See `McpAccess.restart`."""
        await self._connection(server).restart()

    async def call(self, entry: str, arguments: dict[str, Any], context: Any) -> ContentParts:
        """See `McpAccess.call`."""
        tool = self.tool(entry)
        if tool is None:
            raise ActionError(
                f"No MCP server has a tool {entry!r} now{meant_clause(entry, self._tools) or '.'}",
                "List the tools of the server again.",
                code="tool_unknown",
            )
        held = self._connection(tool.server)
        result = await held.call_tool(tool.tool, arguments, context)
        announced, structured = tool.output_schema, result.structured_content
        fits = (
            announced is None or structured is None or await asyncio.to_thread(_fits, announced, structured)
        )
        if sum(len(getattr(each, "text", "")) for each in result.content) < _SHORT:
            return tool_answer(result, tool.server, fits=fits)
        return await asyncio.to_thread(tool_answer, result, tool.server, fits=fits)

    async def resources(self, server: str) -> Mapping[str, list[dict[str, Any]]]:
        """See `McpAccess.resources`."""
        held = self._connection(server)
        return await held.request(_resources_of)

    async def read_resource(self, server: str, uri: str, context: Any) -> ContentParts:
        """See `McpAccess.read_resource`."""
        return resource_answer(await self._connection(server).read_resource(uri, context))

    async def get_prompt(
        self, server: str, name: str, arguments: dict[str, str], context: Any
    ) -> ContentParts:
        """See `McpAccess.get_prompt`."""
        return prompt_answer(await self._connection(server).get_prompt(name, arguments, context))

    def _connection(self, name: str) -> ServerConnection:
        found = self._connections.get(name)
        if found is None or found.server is not self.servers().get(name):
            self._held()
            found = self._connections.get(name)
        if found is None:
            there = sorted(self._connections)
            raise ActionError(
                f"There is no MCP server {name!r}{meant_clause(name, there) or '.'}",
                f"There are: {', '.join(there)}." if there else "None is configured: %reyn mcp shows how.",
                code="server_unknown",
            )
        return found

    def _held(self) -> Sequence[ServerConnection]:
        """Return the connections to the servers that there are now; others are ended."""
        self._loop = asyncio.get_running_loop()
        servers = self.servers()
        for name, held in list(self._connections.items()):
            if servers.get(name) != held.server:
                del self._connections[name]
                self._links.spawn(held.close(), f"end the MCP server {name}")
        for name, server in servers.items():
            if name not in self._connections:
                self._connections[name] = ServerConnection(server, self._links, self._moved)
        return [self._connections[name] for name in sorted(servers)]

    def _source_moved(self) -> None:
        """Take note of other servers, from any thread: those that are gone end now, the rest at the next use."""
        self._links.changed()
        self._moved()
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._held_if_any)

    def _moved(self) -> None:
        for watcher in list(WATCHERS):
            watcher(self)

    def _held_if_any(self) -> None:
        if self._connections:
            self._held()


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether an object is what a schema allows; a schema that cannot be used allows nothing.

    By the checks of arguments: they fetch nothing that a schema refers to, and their patterns end.
    """
    if not isinstance(value, dict):  # the schema of any value, held by a property
        schema, value = {"type": "object", "properties": {"value": schema}}, {"value": value}
    if check_schema(schema) is not None:
        return False
    return not faults(read_schema(schema, open_schema=True), value)


async def _resources_of(client: Any) -> Mapping[str, list[dict[str, Any]]]:
    told = client.server_capabilities
    found: dict[str, list[dict[str, Any]]] = {"resources": [], "templates": [], "prompts": []}
    if told.resources is not None:
        found["resources"] = await _pages(client.list_resources, "resources")
        found["templates"] = await _pages(client.list_resource_templates, "resource_templates")
    if told.prompts is not None:
        found["prompts"] = await _pages(client.list_prompts, "prompts")
    return found


async def _pages(ask: Callable[..., Any], name: str) -> list[dict[str, Any]]:
    from mcp_types import METHOD_NOT_FOUND

    from reyn_jupyter.backends.mcp_sdk.client import MCPError

    found: list[dict[str, Any]] = []
    cursor = None
    seen: set[str | None] = {None}
    while len(found) < 1_000:
        try:
            page = await ask(cursor=cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                break
            raise
        found += [
            each.model_dump(mode="json", exclude_none=True, by_alias=True) for each in getattr(page, name)
        ]
        cursor = page.next_cursor or None
        if cursor in seen or not getattr(page, name):
            break
        seen.add(cursor)
    return found


def _retrieved(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
