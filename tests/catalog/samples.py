"""Categories for the catalog's tests, with the names and routes of the published catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.catalog.discovery.visibility import is_exec_available
from reyn_jupyter.catalog.snapshot import CatalogSnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """An object schema; a required parameter without a schema of its own is a text."""
    return {
        "type": "object",
        "properties": {**{name: TEXT for name in required if name not in properties}, **properties},
        "required": list(required),
    }


async def echo(arguments: dict[str, Any], context: object) -> object:
    return arguments


async def no_entries() -> Sequence[Entry]:
    return ()


def operation(
    entry: str, target: str, *required: str, purity: Purity = Purity.READ, **properties: dict[str, Any]
) -> Operation:
    title = entry.replace("_", " ").capitalize()
    return Operation(entry, f"{title}.", schema(*required, **properties), Tool(target, echo, purity))


RECALL = Tool("recall", echo, Purity.READ)


def file_category() -> Category:
    write = Purity.WRITE
    return Category(
        "file",
        "Read and change files of the workspace.",
        (
            operation("read", "read_file", "path", offset=WHOLE, limit=WHOLE),
            operation("write", "write_file", "path", "content", purity=write),
            operation("edit", "edit_file", "path", "old_string", "new_string", purity=write),
            operation("delete", "delete_file", "path", purity=write),
            operation("list", "list_file", "path"),
            operation("glob", "glob_file", "pattern", path=TEXT),
            operation("grep", "grep_file", "pattern", path=TEXT, max_results=WHOLE),
        ),
    )


def mcp_category() -> Category:
    return Category(
        "mcp",
        "Manage MCP servers and call their tools.",
        (
            operation("search_registry", "search_registry_mcp", "text"),
            operation("install_registry", "install_registry_mcp", "server_id", purity=Purity.NETWORK),
            operation("install_package", "install_package_mcp", "kind", "identifier", purity=Purity.NETWORK),
            operation("install_local", "install_local_mcp", "name", "command", purity=Purity.EXEC),
            operation("list_servers", "list_servers_mcp"),
            operation("list_tools", "list_tools_mcp", "server"),
            operation(
                "call_tool", "call_mcp_tool", "tool", tool_args={"type": "object"}, purity=Purity.UNKNOWN
            ),
            operation("drop_server", "drop_server_mcp", "server", purity=Purity.WRITE),
        ),
    )


def resource_category(name: str, tool: Tool, default: str, transform: Any) -> Category:
    return Category(name, f"Holds {name}.", (), Resources(tool, transform, default, no_entries))


def skill_category() -> Category:
    return resource_category(
        "skill",
        Tool("invoke_skill", echo, Purity.UNKNOWN),
        "run the workflow",
        lambda e, a: {"name": e, "input": a},
    )


def published_categories(backend: str | None = None) -> list[Category]:
    """The eleven categories of the published catalog; `backend` is the resolved sandbox."""
    delegate = Tool("delegate_to_agent", echo, Purity.UNKNOWN)
    body = Tool("read_memory_body", echo, Purity.READ)
    return [
        skill_category(),
        resource_category("agent.peer", delegate, "delegate a message", lambda e, a: {"to": e, **a}),
        mcp_category(),
        file_category(),
        Category(
            "web",
            "Search and fetch.",
            (operation("search", "search_web", "query"), operation("fetch", "fetch_web", "url")),
        ),
        resource_category("memory_entry", body, "read the body", lambda e, a: {"slug": e, **a}),
        Category(
            "memory_operation",
            "Remember and forget.",
            tuple(
                operation(entry, f"{entry}_memory", "slug", purity=Purity.WRITE)
                for entry in ("remember_shared", "remember_agent", "forget")
            ),
        ),
        Category(
            "reyn_source",
            "This package's source.",
            (operation("read", "read_reyn_source", "path"), operation("list", "list_reyn_source")),
        ),
        resource_category("rag_corpus", RECALL, "recall from it", lambda e, a: {"sources": [e], **a}),
        Category(
            "rag_operation",
            "Recall over several corpora.",
            (
                Operation("recall", "Recall.", schema("query", sources={"type": "array"}), RECALL),
                operation("drop_source", "drop_source_rag", "source", purity=Purity.WRITE),
            ),
        ),
        Category(
            "exec",
            "Run commands in a sandbox.",
            (
                operation(
                    "run", "run_exec", "argv", argv={"type": "array", "items": TEXT}, purity=Purity.EXEC
                ),
            ),
            hidden=lambda: None if is_exec_available(backend) else "No sandbox is here.",
        ),
    ]


ENTRIES = {
    "skill": [Entry("foo", "Do foo.", schema("topic")), Entry("form", "Fill a form.", schema())],
    "agent.peer": [Entry("alice", "Asks Alice.", schema("request"))],
    "memory_entry": [Entry("style", "How to write.", schema())],
    "rag_corpus": [Entry("meetings", "Minutes of meetings.", schema("query", top_k=WHOLE))],
}


def published(backend: str | None = None) -> CatalogSnapshot:
    return CatalogSnapshot.build(published_categories(backend), ENTRIES)


def of_size(count: int) -> CatalogSnapshot:
    """A snapshot with `file` and this many workflows."""
    shared = schema("topic", pages=WHOLE)
    entries = [
        Entry(f"report_{i:06d}", f"Write report number {i} about region {i % 7}.", shared)
        for i in range(count)
    ]
    return CatalogSnapshot.build([file_category(), skill_category()], {"skill": entries})
