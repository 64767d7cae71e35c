"""Short ways to script a model and to look at what it was sent."""

from __future__ import annotations

from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Request, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, call


def invoke(name: str, **args: Any) -> ToolCall:
    return call("invoke_action", action_name=name, args=args)


def session(workspace: Any, *steps: Any, tier: str = "standard", config: Any = None, **options: Any) -> Any:
    """A session in memory on a scripted model of a tier."""
    otherwise = options.pop("otherwise", None)
    model = ScriptedModel(*steps, tier=tier, otherwise=otherwise)  # type: ignore[arg-type]
    made = reyn.Session(
        workspace, model=model, config=config, store=options.pop("store", "memory"), **options
    )
    made.model = model
    return made


def results(request: Request) -> list[str]:
    """The tool results that a request carries, in order."""
    return [message.content for message in request.messages if message.role == "tool"]


def valid_history(request: Request) -> bool:
    """Whether every tool call has exactly one result, right behind it."""
    waiting: list[str] = []
    for message in request.messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(str(message.tool_call_id))
        elif waiting:
            return False
        else:
            waiting = [tool.id for tool in message.tool_calls]
    return not waiting
