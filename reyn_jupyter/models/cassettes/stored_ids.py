"""The ids of blobs in messages and answers: new in every run, so a replayed answer gets those of its own run.

Invariant: ids are matched by their place, counted from the last one; everything else of an answer stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reyn_jupyter.models.base import Response, ToolCall

_STORED = re.compile(r"\[blob:([0-9a-f-]{36})\]")


def message_texts(messages: Iterable[Mapping[str, Any]], role: str) -> Iterator[str]:
    """The texts of the messages of a role."""
    return (str(message.get("content") or "") for message in messages if message.get("role") == role)


def stored_ids_in(messages: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The ids of blobs in tool results, in the order of their first place."""
    return unique_ids(found for text in message_texts(messages, "tool") for found in _STORED.findall(text))


def unique_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The ids, each once."""
    return tuple(dict.fromkeys(ids))


def replace_stored_ids(reply: Response, recorded: tuple[str, ...], now: tuple[str, ...]) -> Response:
    """The answer with each recorded id replaced by the one in its place now, counted from the last."""
    names = {old: new for old, new in zip(reversed(recorded), reversed(now), strict=False) if old != new}
    if not names:
        return reply
    pattern = re.compile("|".join(map(re.escape, names)))

    def rename(text: str) -> str:
        return pattern.sub(lambda found: names[found[0]], text)

    calls = tuple(ToolCall(call.id, call.name, rename(call.arguments)) for call in reply.tool_calls)
    return replace(reply, text=rename(reply.text), tool_calls=calls)
