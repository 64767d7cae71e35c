"""Images and sounds in the requests of providers, in the chat-completions form that LiteLLM documents.

Invariant: what a model does not take, and what no provider takes, stays the sentence in the text; nothing is fetched,
and an address is never sent, so that no provider fetches anything either. Most providers take no image in the result
of a tool, and those that do take it after the results too: so it follows them, in a message of its own, and the results
of one reply stay together.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from reyn_jupyter.models.base import Attachment, Medium, Message

# The formats that OpenAI, Anthropic and Google all take, and the smallest of their bounds (Anthropic: 5 MB of base64 an
# image, 8,000 pixels a side, 32 MB a request). Sources: their documentation of vision and of audio input.
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
MOST_BYTES = 3_900_000
MOST_PIXELS_A_SIDE = 8_000
MOST_IN_A_REQUEST, MOST_BYTES_IN_A_REQUEST = 20, 20_000_000
FOLLOWING = "[What the results above refer to, in their order:]"


def is_sendable(mime: str, size: int, width: int, height: int) -> bool:
    """Return whether providers take an image or a sound of this type and size."""
    fits = 0 < size <= MOST_BYTES and max(width, height) <= MOST_PIXELS_A_SIDE
    return fits and (mime in IMAGES or mime in SOUNDS)


def provider_messages(messages: Sequence[Message], media: Collection[Medium]) -> list[dict[str, Any]]:
    """Return messages in the wire form, with the attachments that the model takes.

    Args:
        messages: the whole request; of very many attachments the newest are sent.
        media: what the model takes beside text.
    """
    kept = _newest(messages, media)
    wire: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for message in messages:
        if waiting and message.role != "tool":
            wire.append(_following(waiting))
            waiting = []
        shown = [content for each in message.attachments if id(each) in kept for content in _content(each)]
        plain = copy.deepcopy(message.text_alone.wire)
        if shown and message.role == "user":
            plain["content"] = [{"type": "text", "text": message.content}, *shown]
        elif shown:
            waiting += shown
        wire.append(plain)
    return [*wire, _following(waiting)] if waiting else wire


def _newest(messages: Sequence[Message], media: Collection[Medium]) -> set[int]:
    """Return the identities of the attachments that are sent."""
    kept: set[int] = set()
    room = MOST_BYTES_IN_A_REQUEST
    for each in (each for message in reversed(messages) for each in reversed(message.attachments)):
        if not each.data or each.medium not in media:
            continue
        room -= each.size
        if room < 0 or len(kept) >= MOST_IN_A_REQUEST:
            break
        kept.add(id(each))
    return kept


def _following(contents: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": FOLLOWING}, *contents]}


def _content(attachment: Attachment) -> Iterator[dict[str, Any]]:
    """Yield which one it is, in words, and the thing itself."""
    coded = base64.b64encode(attachment.data).decode()
    name = f' "{attachment.name}"' if attachment.name else ""
    yield {"type": "text", "text": f"{attachment.mime}{name} of [blob:{attachment.blob}]:"}
    if attachment.medium == "audio":
        sound = {"data": coded, "format": SOUNDS[attachment.mime]}
        yield {"type": "input_audio", "input_audio": sound}
    else:
        yield {"type": "image_url", "image_url": {"url": f"data:{attachment.mime};base64,{coded}"}}
