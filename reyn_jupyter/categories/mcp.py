"""Tools of MCP servers: which servers there are, what they offer, and calls of it.

Invariants: one action calls every tool, and each tool is a live entry behind ``<server>__<tool>``, so that the number
of tools that a model is offered does not grow with them. Both ways run the same code, and are judged by the rules for
`mcp__call_tool`. What a server says of itself decides nothing, unless the person trusts it: without that a call is of
unknown purity, and asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reyn_jupyter.backends.mcp_sdk.sdk import MCP_SDK
from reyn_jupyter.catalog.action import (
    Arguments,
    Arrival,
    CalledAction,
    Category,
    Effect,
    Entry,
    Operation,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.catalog.discovery.listing import LARGEST_LIMIT, LIMIT, fitting
from reyn_jupyter.catalog.size_budget import ANSWER_BYTES, encoded_size
from reyn_jupyter.catalog.text_normalization import fold
from reyn_jupyter.categories.mcp_management import management_operations
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.runtime.access.mcp_access import McpAccess, McpTool
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import meant_clause, shorten

CATEGORY = "mcp"
_OWN_REASON = (
    "blocked",
    "needs sign-in",
)  # states whose reason is in words of ours; of others it may be a server's
CALL_TOOL = "mcp__call_tool"  # whose rules hold for every tool
CALL_SECONDS = 600.0
_REMARKS = 400  # bytes of an answer that are kept for what is said beside the items
_TEXT = {"type": "string"}
_SERVER = {"type": "string", "description": "Name of a server, as the listing of servers gives it."}
_NONE = {"type": "object", "properties": {}, "additionalProperties": False}
_PAGE = {
    "filter": {"type": "string", "description": "Part of a name or description."},
    "offset": {"type": "integer", "minimum": 0, "default": 0},
    "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": LIMIT},
}


def _schema(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def categories(services: Services) -> tuple[Category, ...]:
    """The category `mcp`."""
    access = services.mcp
    dispatch = ToolDispatch(access)
    return (
        Category(
            CATEGORY,
            "Use the tools, resources and prompts of MCP servers; find, install and drop servers.",
            (
                *management_operations(services),
                *_listings(access),
                dispatch.operation(),
                *_contents(access),
            ),
            Resources(
                dispatch.tool,
                lambda entry, args: {"tool": entry, "tool_args": args},
                "call the server's tool",
                dispatch.entries,
                judged_as="call_tool",
                arrival=dispatch.arrival,
            ),
            limits=CallLimits(seconds=CALL_SECONDS),
            hidden=MCP_SDK.missing,
        ),
    )


# What there is


def _listings(access: McpAccess) -> tuple[Operation, ...]:
    async def list_servers(args: Arguments, context: ToolContext) -> list[dict[str, Any]]:
        await access.tools()
        rows = [_said(server_row(access, name)) for name in sorted(access.servers())]
        for row in rows:
            if row["state"] in _OWN_REASON and "reason" in row:
                row["reason"] = context.without_advice(row["reason"])
        return rows

    async def list_tools(args: Arguments, context: ToolContext) -> dict[str, Any]:
        tools = await access.server_tools(args["server"])
        return tool_page(tools, access.left_out(args["server"]), args)

    async def list_resources(args: Arguments, context: ToolContext) -> dict[str, Any]:
        return resource_page(await access.resources(args["server"]), args)

    return (
        Operation(
            "list_servers",
            "List the MCP servers with their state and how many tools each has.",
            _NONE,
            Tool("list_mcp_servers", list_servers, Purity.READ, guides=True),
        ),
        Operation(
            "list_tools",
            "List the tools of one MCP server with their input schemas, page by page.",
            _schema(["server"], server=_SERVER, **_PAGE),
            Tool("list_mcp_tools", list_tools, Purity.READ, guides=True),
        ),
        Operation(
            "list_resources",
            "List what one MCP server has to be read: resources, templates of their addresses, and prompts.",
            _schema(["server"], server=_SERVER, **_PAGE),
            Tool("list_mcp_resources", list_resources, Purity.READ, guides=True),
        ),
    )


def server_row(access: McpAccess, name: str) -> dict[str, Any]:
    """Return one server as models and people see it."""
    server = access.servers()[name]
    state = next(each for each in access.states() if each.name == name)
    return {
        "server": name,
        "state": state.phase,
        "tools": state.tools,
        "transport": server.transport,
        "isolation": server.isolation,
        "version": state.version,
        "reason": state.reason,
        "left_out": _some(state.left_out) or None,
    }


def _said(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value not in (None, "")}


def tool_page(tools: Sequence[McpTool], left_out: Sequence[str], args: Arguments) -> dict[str, Any]:
    """Return one page of a server's tools, within the bytes of an answer that guides."""
    needle = fold(args.get("filter") or "")
    hits = [tool for tool in tools if needle in fold(f"{tool.entry}\n{tool.description}")]

    def faces() -> Iterator[dict[str, Any]]:
        for tool in _window(hits, args):
            yield {
                "tool": tool.entry,
                "description": tool.description,
                "input_schema": tool.input_schema,
            }

    answer = _paged(faces(), len(hits), args)
    if left_out:
        answer["left_out"] = _some(left_out)
    return answer


def _some(left_out: Sequence[str]) -> list[str]:
    """Return the first reasons of tools that are left out, and how many more there are."""
    more = [f"{len(left_out) - 2:,} more"] if len(left_out) > 2 else []
    return [*(shorten(each, 120) for each in left_out[:2]), *more]


def resource_page(found: Any, args: Arguments) -> dict[str, Any]:
    """Return one page of what a server has to be read."""
    needle = fold(args.get("filter") or "")
    rows: list[dict[str, Any]] = []
    for kind, name, keys in (
        ("resource", "resources", ("uri", "name", "description", "mimeType")),
        ("template", "templates", ("uriTemplate", "name", "description", "mimeType")),
        ("prompt", "prompts", ("name", "description", "arguments")),
    ):
        for each in found[name]:
            row = {"kind": kind} | {key: _short(each[key]) for key in keys if key in each}
            if needle in fold(" ".join(map(str, row.values()))):
                rows.append(row)
    return _paged(iter(_window(rows, args)), len(rows), args)


def _short(value: Any) -> Any:
    return shorten(value, 500) if isinstance(value, str) else value


def _window(hits: Sequence[Any], args: Arguments) -> Sequence[Any]:
    start = args.get("offset", 0)
    return hits[start : start + args.get("limit", LIMIT)]


def _paged(faces: Iterator[dict[str, Any]], total: int, args: Arguments) -> dict[str, Any]:
    start = args.get("offset", 0)
    answer: dict[str, Any] = {"items": [], "total": total}
    items, cut = fitting(faces, ANSWER_BYTES - encoded_size(answer) - _REMARKS)
    answer["items"] = items
    if items and start + len(items) < total:
        answer["next_offset"] = start + len(items)
    if cut:
        answer["note"] = f"The page was shortened to {ANSWER_BYTES:,} bytes: go on with next_offset."
    elif not items and total:
        answer["note"] = f"offset {start} is past the end: there are {total:,}."
    return answer


# Calls


class ToolDispatch:
    """Calls of tools, by the name of the one action or by the tool's own entry."""

    def __init__(self, access: McpAccess) -> None:
        self._access = access
        self.tool = Tool(
            "call_mcp_tool", self.call, self.purity, self.effects, remote=True, untrusted_output=True
        )

    def operation(self) -> Operation:
        """Return the action that calls any tool."""
        return Operation(
            "call_tool",
            "Call a tool of an MCP server by the name <server>__<tool>, with the arguments of its input schema.",
            _schema(
                ["tool"],
                tool={
                    "type": "string",
                    "description": "The tool as the listing of tools names it: <server>__<tool>.",
                },
                tool_args={"type": "object", "description": "Arguments of the tool itself.", "default": {}},
            ),
            self.tool,
            calls=lambda args: CalledAction(
                f"{CATEGORY}__{args['tool']}", named_by="tool", held_by="tool_args"
            ),
        )

    async def entries(self) -> list[Entry]:
        """Return an entry for each tool of the servers that answer within seconds."""
        return [
            Entry(
                tool.entry,
                tool.description,
                tool.input_schema,
                Purity.READ if tool.reads else Purity.UNKNOWN,
                open_schema=True,
            )
            for tool in await self._access.tools()
        ]

    def arrival(self, entry: str) -> Arrival | None:
        """Return what starts the server of a tool that is not listed, where its tools are not known yet."""
        server = self._access.unlisted(entry)
        if server is None:
            return None
        return Arrival(
            lambda: self._access.server_tools(server),
            f"The MCP server {server} is still starting, so its tools are not known yet.",
            f"Call it again in a while; {reyn_line('mcp log', server)} shows what it writes meanwhile.",
        )

    def purity(self, args: Arguments) -> Purity:
        return Purity.READ if self._tool(args).reads else Purity.UNKNOWN

    def effects(self, args: Arguments, context: ToolContext) -> list[Effect]:
        tool = self._tool(args)
        return server_effects(self._access, tool.server, tool.entry.removeprefix(f"{tool.server}__"))

    async def call(self, args: Arguments, context: ToolContext) -> ContentParts:
        context.came_from(f"MCP tool {args['tool']}")
        return await self._access.call(args["tool"], args.get("tool_args") or {}, context)

    def _tool(self, args: Arguments) -> McpTool:
        tool = self._access.tool(args["tool"])
        if tool is None:
            raise ActionError(
                f"No MCP server has a tool {args['tool']!r} now.",
                "List the tools of the server again.",
                code="tool_unknown",
            )
        return tool


def server_effects(access: McpAccess, server: str, what: str) -> list[Effect]:
    """Return the effects of asking a server for something: the server's part, and the host of a remote one.

    Raises:
        ActionError: there is no such server.
    """
    entry = access.servers().get(server)
    if entry is None:
        raise ActionError(
            f"There is no MCP server {server!r}{meant_clause(server, access.servers()) or '.'}",
            "List the servers again.",
            code="server_unknown",
        )
    effects = [Effect.mcp(server, what)]
    return [*effects, Effect.network(entry.url)] if entry.transport == "http" else effects


# What can be read


def _contents(access: McpAccess) -> tuple[Operation, ...]:
    async def read_resource(args: Arguments, context: ToolContext) -> ContentParts:
        context.came_from(f"MCP server {args['server']}")
        return await access.read_resource(args["server"], args["uri"], context)

    async def get_prompt(args: Arguments, context: ToolContext) -> ContentParts:
        context.came_from(f"MCP server {args['server']}")
        given = {name: str(value) for name, value in args.get("prompt_args", {}).items()}
        return await access.get_prompt(args["server"], args["prompt"], given, context)

    def purity(args: Arguments) -> Purity:
        return Purity.READ if access.servers()[args["server"]].trusted_hints else Purity.UNKNOWN

    return (
        Operation(
            "read_resource",
            "Read a resource of an MCP server by its address.",
            _schema(["server", "uri"], server=_SERVER, uri=_TEXT),
            Tool(
                "read_mcp_resource",
                read_resource,
                purity,
                lambda args, context: server_effects(access, args["server"], "resources"),
                remote=True,
                untrusted_output=True,
            ),
        ),
        Operation(
            "get_prompt",
            "Get a prompt of an MCP server, filled in with its arguments.",
            _schema(["server", "prompt"], server=_SERVER, prompt=_TEXT, prompt_args={"type": "object"}),
            Tool(
                "get_mcp_prompt",
                get_prompt,
                purity,
                lambda args, context: server_effects(access, args["server"], "prompts"),
                remote=True,
                untrusted_output=True,
            ),
        ),
    )
