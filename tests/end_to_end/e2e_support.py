"""What the end-to-end tests share: sessions on scripted models, foreign categories, child processes, checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.models.base import Message, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.events import ActionFinished, ActionResolved
from reyn_jupyter.runtime.record.trace import Trace

OPEN = {"type": "object", "properties": {}, "additionalProperties": True}


def invoke(name: str, **args: Any) -> ToolCall:
    """The model's call of an action."""
    return call("invoke_action", action_name=name, args=args)


def scripted(workspace: Path, *steps: Any, **options: Any) -> tuple[reyn.Session, ScriptedModel]:
    """A session on a scripted model, its blobs in memory unless said otherwise."""
    model = ScriptedModel(
        *steps, otherwise=options.pop("otherwise", None), tier=options.pop("tier", "standard")
    )
    return reyn.Session(workspace, model=model, **{"store": "memory", **options}), model


def category(name: str = "odd", purity: Purity = Purity.READ, **handlers: Callable[..., Any]) -> Category:
    """A category of somebody else's: one operation a handler, arguments open."""
    operations = tuple(
        Operation(entry, f"The action {entry}.", OPEN, Tool(f"{entry}_{name}", handler, purity))
        for entry, handler in handlers.items()
    )
    return Category(name, "Do odd things.", operations)


def valid(messages: Sequence[Message]) -> bool:
    """Whether every tool call has exactly one result, right behind it, and no id is used twice."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(str(message.tool_call_id))
        elif waiting:
            return False
        else:
            waiting = [tool.id for tool in message.tool_calls]
            if len(set(waiting)) < len(waiting) or seen & set(waiting):
                return False
            seen |= set(waiting)
    return not waiting


def history_is_valid(session: reyn.Session) -> bool:
    return valid(session.parts.conversation.messages())


def paired(trace: Trace) -> bool:
    """Whether every call left exactly one resolved and one finished event, in this order."""
    state: dict[str, str] = {}
    for event in trace.events:
        if isinstance(event, ActionResolved):
            if event.call in state:
                return False
            state[event.call] = "resolved"
        elif isinstance(event, ActionFinished):
            if state.get(event.call) != "resolved":
                return False
            state[event.call] = "finished"
    return all(seen == "finished" for seen in state.values())


def results(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "tool"]
