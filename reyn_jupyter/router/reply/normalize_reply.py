"""A model's reply on its way into the history.

Invariant: whatever a model sends, the history holds only what every provider takes back: tool-call ids that differ in
the whole conversation, names that a function may have, arguments that are a JSON object, text that UTF-8 can carry.
One reply that breaks this would lock the conversation out for good. What runs, and what is recorded, is the reply as
it came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Sequence
from dataclasses import replace

from reyn_jupyter.catalog.names import bare_name
from reyn_jupyter.models.base import Response, ToolCall
from reyn_jupyter.models.thoughts import split_thoughts
from reyn_jupyter.support.encoding import clean

_ID = re.compile(r"[!-~]{1,8192}")  # some providers carry more than a number in it
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_HEAD = 200  # characters of unreadable arguments that stay


def readable(response: Response) -> Response:
    """Return the reply with surrogate halves, which a stream can tear apart, joined again or replaced."""
    texts = (response.text, *(text for call in response.tool_calls for text in (call.name, call.arguments)))
    thoughts = response.reasoning
    if all(map(str.isascii, (*texts, thoughts.text))):
        return response
    calls = tuple(ToolCall(call.id, clean(call.name), clean(call.arguments)) for call in response.tool_calls)
    reasoning = replace(thoughts, text=clean(thoughts.text))
    return replace(response, text=clean(response.text), tool_calls=calls, reasoning=reasoning)


def without_thoughts(response: Response) -> Response:
    """Return the reply with the thoughts that its text begins with as its reasoning."""
    thoughts, answer = split_thoughts(response.text)
    if answer == response.text:
        return response
    known = response.reasoning
    text = "\n\n".join(filter(None, (known.text, thoughts)))
    return replace(response, text=answer, reasoning=replace(known, text=text))


def with_bare_names(response: Response, known: Collection[str]) -> Response:
    """Return the reply with names of tools as they are on offer."""
    calls = tuple(replace(call, name=bare_name(call.name, known)) for call in response.tool_calls)
    return response if calls == response.tool_calls else replace(response, tool_calls=calls)


def distinct(calls: Sequence[ToolCall], *taken: Container[str]) -> tuple[ToolCall, ...]:
    """Return the calls with ids of their own; `taken` are those of the conversation so far.

    >>> [call.id for call in distinct([ToolCall("a", "f", "{}"), ToolCall("a", "f", "{}")], set())]
    ['a', 'a-2']
    """
    own: set[str] = set()
    seen = (own, *taken)

    def known(identity: str) -> bool:
        return any(identity in ids for ids in seen)

    found = []
    for number, call in enumerate(calls, start=1):
        identity = call.id
        if not _ID.fullmatch(identity) or known(identity):
            base = identity if _ID.fullmatch(identity) else "call"
            while known(identity := f"{base}-{number}"):
                number += len(calls)
            call = replace(call, id=identity)
        own.add(identity)
        found.append(call)
    return tuple(found)


def sendable(call: ToolCall) -> ToolCall:
    """Return the call as the history may hold it; redact before, as that may reach over the end of a JSON string.

    >>> sendable(ToolCall("1", "file.read", "")), sendable(ToolCall("1", "f", "[1"))
    (ToolCall(id='1', name='file_read', arguments='{}'), ToolCall(id='1', name='f', arguments='{"unreadable": "[1"}'))
    """
    name = call.name
    if not _NAME.fullmatch(name):
        name = _UNFIT.sub("_", name[:_LONGEST_NAME]) or "unnamed"
    return ToolCall(call.id, name, _arguments(call.arguments))


def _arguments(text: str) -> str:
    try:
        if isinstance(_JSON.decode(text), dict):
            return text
    except (ValueError, RecursionError):
        if not text.strip():
            return "{}"
    return json.dumps({"unreadable": text[:_HEAD]}, ensure_ascii=False)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


_JSON = json.JSONDecoder(parse_constant=_no_number)
