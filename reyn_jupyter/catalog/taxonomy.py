"""The known kinds of action, in one place: their order, their roles, and the stale names of some.

What a session shows are the *installed* categories; this is the map on which they stand, so that a name
that is known but not installed, or that is out of date, is answered as such. Source: Universal Action
Catalog (FP-0034), master taxonomy and legacy redirects.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TAXONOMY: Mapping[str, str] = MappingProxyType(
    {
        "skill": "workflows of the project and the standard library",
        "agent.peer": "peer agents that take a delegated message",
        "mcp": "management of MCP servers and dispatch to their tools",
        "file": "files of the workspace",
        "web": "search and fetching on the web",
        "memory_entry": "persistent records",
        "memory_operation": "remembering, forgetting and listing records",
        "reyn_source": "this package's own source and documentation",
        "rag_corpus": "indexed corpora",
        "rag_operation": "recall over several corpora, and their upkeep",
        "exec": "commands in a sandbox",
        "dynamic_tool": "tools made at run time",
        "dynamic_tool_operation": "making, running and removing such tools",
        "utility": "utilities declared by a manifest",
        "table": "SQL over frames, stored results and files",
        "chart": "charts of tables",
        "variable": "the notebook's own variables",
        "function": "Python functions that the person registered",
        "notebook": "cells of the person's notebook",
        "python": "Python code in the kernel, where the person has switched it on",
    }
)

REDIRECTS: Mapping[str, str] = MappingProxyType(
    {
        "mcp.server": "mcp",
        "mcp.tool": "mcp",
        "mcp.operation": "mcp",
        "multi_agent": "agent.peer",
        **{name.replace("_", "."): name for name in TAXONOMY if "_" in name},
    }
)


def nearest_category_name(name: str, on_offer: Iterable[str]) -> str | None:
    """Return the category that a wrong name is nearest to, on offer or known to the taxonomy; None where none is near.

    >>> nearest_category_name("skil", ["file"]), nearest_category_name("fil", ["file"])
    ('skill', 'file')
    """
    return nearest(name, (*on_offer, *TAXONOMY))


_ORDER = {name: position for position, name in enumerate(TAXONOMY)}


def in_order(names: Iterable[str]) -> list[str]:
    """Category names in the order of the taxonomy, foreign ones after it by name."""
    return sorted(names, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
