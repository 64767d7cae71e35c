"""Calls that a model wrote as text instead of making them, as the tool calls that they are.

Invariants: only a reply that is calls as a whole becomes any, never a part of one; what a model repeats word for word
from what it has read is the text of others, and becomes none, but for a look into the catalog; a choice is no look,
since what is chosen is forced by the next request. A call that was read here goes the way of every other: the same
limits, rules and questions. The forms are in `models.written_calls`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.names import CHOOSE, SEPARATOR, bare_name
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.models.base import Message, ToolCall
from reyn_jupyter.models.written_calls import INVOKE, WrittenCall, arguments_of, read_calls, unfenced
from reyn_jupyter.router.context.history import GUIDES
from reyn_jupyter.router.request.surface import Offer

QUOTED = (
    "the model repeated a call that stands in what it had read, so it was not run (router.weak.text_calls)"
)
_UNSEEN = re.compile(r"[\s\\]+")


@dataclass(frozen=True)
class TextCalls:
    """What a reply in words came to.

    Attributes:
        calls: the tool calls that it is; without ids of their own.
        quoted: whether it is a call, but one that was only repeated.
    """

    calls: tuple[ToolCall, ...] = ()
    quoted: bool = False


def text_calls(text: str, offer: Offer, snapshot: CatalogSnapshot, read: Iterable[Message]) -> TextCalls:
    """Return the tool calls that a reply is as a whole.

    Args:
        text: of the reply.
        offer: the tools on offer; a name that is none of theirs is one of an action.
        snapshot: the actions on offer.
        read: the messages that the model has read.
    """
    written = read_calls(text)
    named = [_tool_call(call, offer, snapshot) for call in written]
    calls = [call for call in named if call is not None]
    if not calls or len(calls) < len(written):
        return TextCalls()
    if any(call.name not in GUIDES or call.name == CHOOSE for call in calls) and _is_quoted(text, read):
        return TextCalls(quoted=True)
    return TextCalls(tuple(calls))


def _tool_call(call: WrittenCall, offer: Offer, snapshot: CatalogSnapshot) -> ToolCall | None:
    """Return the call of a tool on offer that was meant; None where the text may be anything else."""
    name = bare_name(call.name, offer.tools.names)
    arguments: Any = call.arguments
    if name == INVOKE and name not in offer.tools.names and isinstance(arguments.get("action_name"), str):
        # There are direct tools alone. What is no object is answered by the schema, as in any call.
        name, given = arguments["action_name"], arguments.get("args") or None
        arguments = given if (read := arguments_of(given)) is None else read
    if name not in offer.tools.names:
        known = snapshot.named(name)
        if known is None and not call.marked and SEPARATOR not in name:
            return None
        if offer.surface == "universal":
            wrapped = isinstance(arguments, dict) and arguments.keys() == {"args"}
            inner = arguments["args"] if wrapped else arguments
            name, arguments = INVOKE, {"action_name": name, "args": inner}
    return ToolCall("", name, json.dumps(arguments, ensure_ascii=False))


def _is_quoted(text: str, read: Iterable[Message]) -> bool:
    said = _UNSEEN.sub("", unfenced(text))
    return any(
        said in _UNSEEN.sub("", message.content) for message in read if message.role in ("tool", "user")
    )
