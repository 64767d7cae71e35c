"""What a server answers, as the parts of a result.

Invariant: nothing of an answer is lost without a word, and nothing raises: what cannot be read is said in its place.
The parts are checked behind the handler, as any others are.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.parts.content_parts import Audience, ContentPart, ContentParts
from reyn_jupyter.outputs.parts.media_type import UNKNOWN, media_facts
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult

LONGEST_ERROR = 4_000  # characters
_URL_SAFE = str.maketrans("-_", "+/")
_FENCED = re.compile(r"```(?:json)?\s*\n(.*)\n```", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?|true|false")
UNFIT = "The server's structured answer does not fit the schema that the server announced for it."


def tool_answer(result: CallToolResult, server: str, *, fits: bool = True) -> ContentParts:
    """Return the answer of a tool.

    Args:
        fits: whether its structured part is what the server announced.

    Raises:
        ActionError: the tool says that it failed.
    """
    parts = [part_of(block) for block in result.content]
    structured = result.structured_content
    if result.is_error:
        told = [part.text for part in parts if part.text]
        if structured is not None and not _repeats(parts, structured):
            told.append(_written(structured))
        said = "\n".join(told) or "It does not say why."
        raise ActionError(
            shorten(visible(said).strip(), LONGEST_ERROR),
            f"This is what the tool of the server {server} answered; other arguments may help.",
            code="tool_failed",
        )
    if structured is not None:
        parts = _once(parts, structured)
    elif (rows := _rows(parts)) is not None:
        parts = [ContentPart.of_json(rows)]
    if not fits:
        parts.append(ContentPart.of_text(UNFIT, "note"))
    return ContentParts(parts or [ContentPart.of_text("")])


def error_words(message: object, data: object) -> str:
    """Return what an error of the protocol says: its message and its data.

    >>> error_words("Invalid params", {"field": "q"}), error_words("", "no context")
    ('Invalid params: {"field": "q"}', 'no context')
    """
    said = str(message or "").strip()
    more = "" if data in (None, {}, []) else data.strip() if isinstance(data, str) else _written(data)
    if more in said:
        return said or "it does not say why"
    return f"{said}: {more}" if said else more


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
    held = binary(data)
    if held is None:
        return ContentPart.of_text(f"A part of type {mime} could not be read: it is not base64.", "note")
    return ContentPart(mime or sniffed(held), data=held, uri=uri, audience=audience)


def binary(text: str) -> bytes | None:
    """Return the bytes of base64 text, also with line breaks, without padding, in a data URL; None for other text.

    >>> binary("data:image/png;base64,aGk"), binary("a\\nGk="), binary("!!")
    (b'hi', b'hi', None)
    """
    if text.startswith("data:"):
        text = text.partition(",")[2]
    plain = "".join(text.split()).rstrip("=").translate(_URL_SAFE)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def sniffed(data: bytes | None) -> str:
    """Return the MIME type that the first bytes say."""
    return (media_facts(data).mime if data else None) or UNKNOWN


def _audience(annotations: Any) -> Audience:
    if annotations is None:
        return "all"
    match sorted(set(annotations.audience or ())):
        case ["user"]:
            return "person"
        case ["assistant"]:
            return "model"
    return "all"


def _once(parts: list[ContentPart], structured: Any) -> list[ContentPart]:
    """Return parts and a structured part without the text that says the same once more.

    Servers send the structured part as text, too, for clients that know no other. A text or a list that FastMCP wraps
    into an object, because the protocol wanted one, is unwrapped.
    """
    lone = next(iter(structured.values())) if isinstance(structured, dict) and len(structured) == 1 else None
    wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
    shown = lone if wrapped or (isinstance(lone, str) and _repeats(parts, structured)) else structured
    said = _sayings(structured) if parts else frozenset()
    kept = [part for part in parts if not _is_said(part, said)]
    if isinstance(shown, str):
        text = ContentPart.of_text(shown)
        rows = None if kept else _rows([text])
        return [*kept, text if rows is None else ContentPart.of_json(rows)]
    name = "structured" if kept or not wrapped else ""
    return [*kept, ContentPart.of_json(shown, name)]


def _repeats(parts: list[ContentPart], value: Any) -> bool:
    said = _sayings(value) if parts else frozenset()
    return any(_is_said(part, said) for part in parts)


def _sayings(value: Any) -> frozenset[str]:
    """Return the texts that say a value, the values of an object, or the items of a list in it."""
    level = [value]
    found = [value]
    for _ in range(2):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
        found += level
    return frozenset(each.strip() if isinstance(each, str) else _written(each) for each in found)


def _is_said(part: ContentPart, said: frozenset[str]) -> bool:
    text = _plain_text(part)
    if text is None:
        return False
    if text.strip() in said:
        return True
    value = _read(text)
    return value is not None and (value.strip() if isinstance(value, str) else _written(value)) in said


def _rows(parts: list[ContentPart]) -> list[dict[str, Any]] | None:
    """Return the rows of a table that the text is: a list of objects, an object per line, or an object per part."""
    texts = [_plain_text(part) for part in parts]
    if len(texts) == 1 and texts[0] is not None:
        value = _read(texts[0])
        if value is None and texts[0].lstrip().startswith("{"):
            value = [_read(line) for line in texts[0].splitlines() if line.strip()]
    else:
        value = [None if text is None else _read(text) for text in texts]
        if len({frozenset(each) if isinstance(each, dict) else None for each in value}) != 1:
            return None
    is_table = isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    return value if is_table else None


def _plain_text(part: ContentPart) -> str | None:
    """Return the text of a part that is nothing else, for everybody."""
    is_plain = part.mime in ("text/plain", "application/json") and part.audience == "all" and part.uri is None
    return part.text if is_plain else None


def _read(text: str) -> Any:
    """Return the value of JSON text, also in a fence of Markdown; None for other text."""
    if (fenced := _FENCED.fullmatch(text.strip())) is not None:
        text = fenced[1]
    text = text.strip()
    if text[:1] not in ("{", "[", '"') and not _NUMBER.fullmatch(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except RecursionError:
        return f"(nested too deep, {id(value)})"  # like no other
