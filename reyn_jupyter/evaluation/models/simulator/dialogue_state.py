"""Read where a turn stands: what the person asked, what was called and answered, which actions were shown.

Invariant: read from the messages alone. A tool's answer is data; it is parsed once for each distinct text, so that
ten thousand trials that see the same listing pay for it once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from reyn_jupyter.evaluation.models.simulator.behaviour_table import Schemas
from reyn_jupyter.models.base import Message, Request, ToolCall, ToolSet
from reyn_jupyter.models.offline.transcript import KnownAction

Kind = Literal["listing", "description", "unknown", "invalid", "error", "ok"]
_GUIDES = ("list_actions", "search_actions", "describe_action")


@dataclass(frozen=True)
class SeenAction:
    """An action that the model has seen: by name, with what was shown of it, and where its schema stood."""

    known: KnownAction
    seen: Schemas = "unseen"
    key: int = 0  # equal keys are equal items; hashing a whole schema each time would cost more than using it

    @property
    def name(self) -> str:
        return self.known.name

    def __hash__(self) -> int:
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeenAction) and self.key == other.key and self.name == other.name


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of a tool."""

    kind: Kind
    text: str
    items: tuple[SeenAction, ...] = ()
    suggestions: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    hint: str = ""


@dataclass(frozen=True)
class AnsweredCall:
    """One call of this turn and its answer."""

    call: ToolCall
    answer: ToolAnswer

    @cached_property
    def arguments(self) -> dict[str, Any]:
        try:
            given = json.loads(self.call.arguments or "{}")
        except (ValueError, RecursionError):
            return {}
        return given if isinstance(given, dict) else {}

    @property
    def invoked(self) -> str:
        """The action that was asked for; the tool's own name for a direct call."""
        name = self.arguments.get("action_name")
        return name if self.call.name == "invoke_action" and isinstance(name, str) else self.call.name


@dataclass(frozen=True)
class DialogueState:
    """A turn so far.

    Attributes:
        text: what the person asked.
        made: this turn's calls, in order.
        earlier: actions that earlier turns of the conversation listed.
        length: how many messages the request has.
    """

    text: str
    made: tuple[AnsweredCall, ...]
    earlier: tuple[SeenAction, ...]
    length: int

    @property
    def last(self) -> AnsweredCall | None:
        return self.made[-1] if self.made else None

    def count(self, *kinds: Kind) -> int:
        """Return how many calls of this turn were answered so."""
        return sum(made.answer.kind in kinds for made in self.made)

    def calls(self, tool: str) -> list[AnsweredCall]:
        return [made for made in self.made if made.call.name == tool]

    def item(self, name: str) -> SeenAction | None:
        """Return what the model knows of an action, from the last place that showed it."""
        for made in reversed(self.made):
            for item in made.answer.items:
                if item.name == name:
                    return item
        return next((item for item in self.earlier if item.name == name), None)


def situation(request: Request) -> DialogueState:
    """Read where the turn of a request stands."""
    messages = request.messages
    start = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"), -1)
    text = messages[start].content if start >= 0 else ""
    made = tuple(_answered_calls(messages[start + 1 :]))
    before = _answered_calls(messages[:start]) if start > 1 else ()
    earlier = tuple(item for each in before for item in each.answer.items)
    return DialogueState(text, made, earlier, len(messages))


def _answered_calls(messages: tuple[Message, ...]) -> Iterator[AnsweredCall]:
    results = {message.tool_call_id: message.content for message in messages if message.role == "tool"}
    for message in messages:
        for call in message.tool_calls:
            content = results.get(call.id)
            if content is not None:
                yield AnsweredCall(call, answer(call.name in _GUIDES, content))


@lru_cache(1024)
def answer(guide: bool, content: str) -> ToolAnswer:
    """Read a tool's answer.

    Args:
        guide: whether a wrapper that shows actions gave it; elsewhere what looks like a listing is content, but for
            an error that carries one, as a gate's does.
        content: its text.
    """
    value = _object(content)
    failed = bool(value.get("error"))
    if guide or failed:
        items = tuple(_items(value))
        if items or (guide and not failed):
            described = "qualified_name" in value
            return ToolAnswer("description" if described else "listing", content, items)
    if not failed:
        return ToolAnswer("ok", content)
    schema = value.get("input_schema")
    hint = str(value.get("hint") or "")
    if "invalid" in value or isinstance(schema, dict):
        return ToolAnswer("invalid", content, schema=schema if isinstance(schema, dict) else None, hint=hint)
    suggestions = value.get("suggestions")
    if isinstance(suggestions, list):
        names = tuple(name for name in suggestions if isinstance(name, str))
        return ToolAnswer("unknown", content, suggestions=names, hint=hint)
    return ToolAnswer("error", content, hint=hint)


_DIRECT: dict[bytes, tuple[SeenAction, ...]] = {}
_MOST_TOOLS = 256


def direct_items(tools: ToolSet, names: tuple[str, ...]) -> tuple[SeenAction, ...]:
    """Return the actions that are offered as tools of their own; read once for each set of tools."""
    known = _DIRECT.get(tools.digest)
    if known is None:
        if len(_DIRECT) >= _MOST_TOOLS:
            _DIRECT.clear()
        functions = [spec["function"] for spec in tools.specs if spec["function"]["name"] in names]
        known = _DIRECT[tools.digest] = tuple(map(_direct, functions))
    return known


def _direct(function: dict[str, Any]) -> SeenAction:
    name, description = function["name"], str(function.get("description") or "")
    return _item(KnownAction(name, description, function.get("parameters") or {}, tool=name), "listed")


def named_action(name: str) -> SeenAction:
    """Return an action of which nothing but the name is known."""
    return _item(KnownAction(name, ""), "unseen")


def with_schema(item: SeenAction, schema: dict[str, Any] | None) -> SeenAction:
    """Return the item with a schema that an error showed."""
    return item if schema is None else _item(replace(item.known, schema=schema), item.seen)


def _items(value: dict[str, Any]) -> Iterator[SeenAction]:
    items = value.get("items")
    for entry in items if isinstance(items, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("qualified_name"), str):
            yield _seen_action(entry, "listed")
    if isinstance(value.get("qualified_name"), str):
        yield _seen_action(value, "described")


def _seen_action(entry: dict[str, Any], how: Schemas) -> SeenAction:
    schema = entry.get("input_schema")
    text = str(entry.get("description") or entry.get("short_description") or "")
    known = KnownAction(entry["qualified_name"], text, schema if isinstance(schema, dict) else None)
    return _item(known, how if known.schema is not None else "unseen")


def _item(known: KnownAction, seen: Schemas) -> SeenAction:
    shape = json.dumps(known.schema, sort_keys=True) if known.schema is not None else ""
    return SeenAction(known, seen, hash((known.name, known.description, known.tool, shape, seen)))


def _object(content: str) -> dict[str, Any]:
    if not content.startswith("{"):
        return {}
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
