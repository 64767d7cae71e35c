"""The tools of a server, as far as they can be offered: their names, descriptions and schemas come from strangers.

Invariants: an entry is ``<server>__<tool>`` in plain ASCII, and of all servers no two are the same; a tool keeps its
entry while its server lists the same names. Descriptions are bounded and hide no character; a schema that hides one in
what a call is made of is not offered. Whatever is left out is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.mcp.schema_repair import UnusableSchemaError, repaired_schema
from reyn_jupyter.catalog.arguments.reference_places import admit_references
from reyn_jupyter.catalog.schema_check import DEEPEST_SCHEMA, check_schema
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpTool
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from mcp_types import Tool

MOST_TOOLS = 10_000
LONGEST_DESCRIPTION = 4_000  # characters
LONGEST_REMARK = 1_000  # characters of the description of one argument
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_ODD = re.compile(r"[^A-Za-z0-9_./-]")
_REMARKS = frozenset(
    {"description", "title", "$comment", "markdownDescription", "deprecationMessage", "errorMessage"}
    | {"enumDescriptions", "markdownEnumDescriptions", "example", "examples"}
)


@dataclass(frozen=True)
class ToolListing:
    """What one server offers.

    Attributes:
        tools: the tools in the order of their entries.
        left_out: the tools that are not offered, each with the reason, in sentences.
    """

    tools: tuple[McpTool, ...] = ()
    left_out: tuple[str, ...] = ()


def listing_of(server: McpServer, tools: Sequence[Tool], unread: Sequence[str] = ()) -> ToolListing:
    """Return what can be offered of a server's tools. It takes up to 1 ms per tool; call it in a thread.

    Args:
        unread: the tools that could not be read, each with the reason.
    """
    found: dict[str, McpTool] = {}
    left_out = [shorten(visible(clean(each)), LONGEST_REMARK) for each in unread]
    if len(tools) > MOST_TOOLS:
        left_out.append(f"{len(tools) - MOST_TOOLS:,} tools beyond the first {MOST_TOOLS:,}")
    seen: set[str] = set()
    for tool in tools[:MOST_TOOLS]:
        shown = shorten(visible(clean(tool.name)), 100)
        if tool.name in seen:
            left_out.append(f"{shown}: it is listed twice")
            continue
        seen.add(tool.name)
        try:
            offered = _offered(server, tool, shown)
        except (_HiddenError, UnusableSchemaError) as error:
            left_out.append(f"{shown}: {error}")
        except RecursionError:
            left_out.append(f"{shown}: its schema is too deep")
        else:
            found[offered.entry] = offered
    return ToolListing(tuple(found[entry] for entry in sorted(found)), tuple(map(visible, left_out)))


class _HiddenError(Exception):
    """A schema cannot be shown as it is."""


def _offered(server: McpServer, tool: Tool, shown: str) -> McpTool:
    entry = f"{server.name}__{tool_entry(tool.name)}"
    said = tool.description or tool.title or (tool.annotations.title if tool.annotations else None) or ""
    description = shorten(visible(clean(said)).strip(), LONGEST_DESCRIPTION) or f"The tool {shown}."
    if not entry.endswith(f"__{tool.name}"):
        description = f"{description}\n\nIts server calls it {shown!r}."
    hints = tool.annotations
    reads = server.trusted_hints and hints is not None and hints.read_only_hint is True
    schema = admit_references(_shown(repaired_schema(tool.input_schema), 0, names=False))
    if (fault := check_schema(schema)) is not None:
        raise UnusableSchemaError(f"its input schema {fault}")
    return McpTool(entry, server.name, tool.name, description, schema, tool.output_schema, reads)


def tool_entry(name: str) -> str:
    """Return what a tool is called in an entry: its name, or where that has other characters, a likeness with a hash.

    >>> tool_entry("git_status"), tool_entry("Größe?")
    ('git_status', 'Gr__e_~4d1c1e38')
    """
    if _NAME.fullmatch(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_ODD.sub('_', name[:100]) or 'tool'}~{digest}"


def _shown(value: Any, depth: int, *, names: bool) -> Any:
    """Return a part of a schema with its remarks made visible and bounded.

    Args:
        names: the keys are names of arguments, so that one called "description" holds a schema.
    """
    if depth > DEEPEST_SCHEMA:
        raise RecursionError
    if isinstance(value, str):
        if visible(value) != value:
            raise _HiddenError(f"its schema hides characters: {shorten(visible(value), 60)!r}")
        return value
    if isinstance(value, list):
        return [_shown(each, depth + 1, names=False) for each in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, each in value.items():
        _shown(key, depth, names=False)
        if not names and key in _REMARKS and isinstance(each, str | list):
            made[key] = _remark(each)
        else:
            made[key] = _shown(
                each, depth + 1, names=not names and key in ("properties", "$defs", "definitions")
            )
    return made


def _remark(value: Any) -> Any:
    """Return words about an argument with hidden characters shown; a call is not made of them."""
    if isinstance(value, list):
        return [_remark(each) for each in value if isinstance(each, str | int | float)]
    return shorten(visible(clean(value)), LONGEST_REMARK) if isinstance(value, str) else value
