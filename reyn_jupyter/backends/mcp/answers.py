"""What a server answers, as the parts of a result.

Invariant: nothing of an answer is lost without a word, and nothing raises: what cannot be read is said in its place.
The parts are checked behind the handler, as any others are.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.parts.content_parts import Audience, ContentPart, ContentParts
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult

LONGEST_ERROR = 4_000  # characters
UNFIT = "The server's structured answer does not fit the schema that the server announced for it."


def tool_answer(result: CallToolResult, server: str, *, fits: bool = True) -> ContentParts:
    """Return the answer of a tool.

    Args:
        fits: whether its structured part is what the server announced.

    Raises:
        ActionError: the tool says that it failed.
    """
    parts = [part_of(block) for block in result.content]
    if result.is_error:
        said = "\n".join(part.text for part in parts if part.text) or "It does not say why."
        raise ActionError(
            shorten(visible(said).strip(), LONGEST_ERROR),
            f"This is what the tool of the server {server} answered; other arguments may help.",
            code="tool_failed",
        )
    if result.structured_content is not None:
        # Servers send the same once more as text, for clients that know no other.
        parts = [part for part in parts if not _says(part, result.structured_content)]
        parts.append(ContentPart.of_json(result.structured_content, "structured"))
    if not fits:
        parts.append(ContentPart.of_text(UNFIT, "note"))
    return ContentParts(parts or [ContentPart.of_text("")])


def resource_answer(result: ReadResourceResult) -> ContentParts:
    """Return the contents of a resource."""
    return ContentParts([_contents(each, "all") for each in result.contents] or [ContentPart.of_text("")])


def prompt_answer(result: GetPromptResult) -> ContentParts:
    """Return the messages of a prompt, each under the role that is to say it."""
    parts: list[ContentPart] = []
    for message in result.messages:
        parts += [ContentPart.of_text(f"[{message.role}]", "role"), part_of(message.content)]
    return ContentParts(parts or [ContentPart.of_text("")])


def part_of(block: ContentBlock) -> ContentPart:
    """Return one block of an answer as a part."""
    audience = _audience(block.annotations)
    match block.type:
        case "text":
            return ContentPart("text/plain", text=block.text, audience=audience)
        case "image" | "audio":
            return _decoded(block.mime_type, block.data, None, audience)
        case "resource_link":
            return ContentPart(
                block.mime_type or "", uri=block.uri, name=block.title or block.name, audience=audience
            )
        case "resource":
            return _contents(block.resource, audience)


def _contents(contents: Any, audience: Audience) -> ContentPart:
    uri, mime = str(contents.uri), contents.mime_type or ""
    if hasattr(contents, "text"):
        return ContentPart(mime or "text/plain", text=contents.text, uri=uri, audience=audience)
    return _decoded(mime or "application/octet-stream", contents.blob, uri, audience)


def _decoded(mime: str, data: str, uri: str | None, audience: Audience) -> ContentPart:
    try:
        return ContentPart(mime, data=base64.b64decode(data, validate=True), uri=uri, audience=audience)
    except (binascii.Error, ValueError):
        return ContentPart.of_text(f"A part of type {mime} could not be read: it is no base64.", "note")


def _audience(annotations: Any) -> Audience:
    if annotations is None:
        return "all"
    match sorted(set(annotations.audience or ())):
        case ["user"]:
            return "person"
        case ["assistant"]:
            return "model"
    return "all"


def _says(part: ContentPart, value: Any) -> bool:
    if part.text is None or part.mime != "text/plain" or part.audience != "all":
        return False
    # Where a schema has to be an object, servers wrap a plain value so.
    plain = value["result"] if isinstance(value, dict) and set(value) == {"result"} else value
    if part.text == plain:
        return True
    try:
        return json.loads(part.text) in (value, plain)
    except (ValueError, RecursionError):
        return False
