"""The outcome of a call as the content of an MCP answer.

Invariants: the first text is the very one that a model gets, and structured content is the same again; images and
sounds follow it, and what is too large or of another kind is a link to be read as a resource. No part for the
person alone leaves, nor an answer of more than `MOST_BYTES`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.wrapper_specs import OUTPUTS
from reyn_jupyter.models.base import Attachment, Medium
from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.outputs.parts.stored_parts import PartEntry, entries_in
from reyn_jupyter.router.seen_parts import attachments_of
from reyn_jupyter.runtime.run import Outcome
from reyn_jupyter.runtime.services import Services

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

# A client of the protocol's Python SDK takes an event of at most 1 MiB, and base64 makes four bytes of three.
MOST_BYTES = 700_000
RESULTS = "reyn://results/"
_MOST_LINKS = 32
_MEDIA: frozenset[Medium] = frozenset({"image", "audio"})


async def tool_answer(
    tool: str, outcome: Outcome, services: Services, notes: Sequence[str] = ()
) -> CallToolResult:
    """Return what a client gets for a call.

    Args:
        tool: the name of the tool that was called.
        outcome: the outcome of the call.
        services: the session's.
        notes: what became of earlier calls of this client that were cancelled.
    """
    from mcp_types import CallToolResult, TextContent

    content: list[ContentBlock] = [TextContent(text=outcome.text)]
    structured = _structured(tool, outcome)
    size = len(outcome.text.encode())
    room = MOST_BYTES - (size if structured is None else 2 * size)
    shown = set()
    for each in await attachments_of(outcome, services.blobs, _MEDIA, services.redactor.text):
        if each.data is not None and each.size <= room:
            room -= each.size
            shown.add(each.blob)
            content.append(_medium(each))
    content += await _links(outcome, services, shown)
    if notes:
        lines = "\n".join(f"- {each}" for each in notes)
        content.append(TextContent(text=f"Your cancelled calls:\n{lines}"))
    if structured is None:
        return CallToolResult(content=content, is_error=not outcome.ok)
    return CallToolResult(content=content, structured_content=structured, is_error=False)


def _structured(tool: str, outcome: Outcome) -> dict[str, Any] | None:
    """Return a successful result as a JSON object, or None if it is something else.

    The answers of tools with an output schema are objects. So are results of actions that are shown whole.
    """
    if not outcome.ok:
        return None
    if tool in OUTPUTS:
        plain = to_json(outcome.payload)
        return plain if isinstance(plain, dict) else None
    if outcome.content_kind != "json_object" or not outcome.text.startswith("{"):
        return None
    try:
        found = json.loads(outcome.text, parse_constant=_refused)
    except (ValueError, RecursionError):  # a summary, or a line about its origin follows
        return None
    return found if isinstance(found, dict) else None


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def failure(error: str, hint: str) -> CallToolResult:
    """Return the answer to a call that could not begin."""
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(text=f"{error} {hint}")], is_error=True)


def _medium(attachment: Attachment) -> ContentBlock:
    from mcp_types import AudioContent, ImageContent

    data = base64.b64encode(attachment.data or b"").decode()
    kind = AudioContent if attachment.medium == "audio" else ImageContent
    return kind(data=data, mime_type=attachment.mime)


async def _links(outcome: Outcome, services: Services, shown: set[str]) -> list[ContentBlock]:
    """Return links to what an answer does not hold itself."""
    from mcp_types import ResourceLink

    if outcome.blob is None or services.blobs is None:
        return []
    links: list[ContentBlock]
    if outcome.content_kind != "parts":
        links = [
            ResourceLink(
                name=f"result {outcome.blob[-12:]}",
                uri=RESULTS + outcome.blob,
                description="The whole result; the tool inspect reads it in parts.",
                size=outcome.size,
            )
        ]
        return links
    try:
        entries = entries_in(await services.blobs.load(outcome.blob))
    except Exception:  # noqa: BLE001 - a store may fail in ways of its own, and the text names every part
        return []
    links = [
        ResourceLink(
            name=services.redactor.text(each.name) or f"part {each.blob[-12:]}",
            uri=RESULTS + each.blob,
            mime_type=each.mime,
            size=each.size,
        )
        for each in entries
        if _is_linked(each, shown)
    ]
    return links[:_MOST_LINKS]


def _is_linked(entry: PartEntry, shown: set[str]) -> bool:
    return bool(entry.blob) and entry.audience != "person" and entry.blob not in shown
