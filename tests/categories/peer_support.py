"""A main agent and its peers behind one scripted model: each says what its own script says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter import categories as installed
from reyn_jupyter.catalog.action import Category
from reyn_jupyter.models.base import Message, Request, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, Step, call

_NAMED = re.compile(r"^You are ([\w-]+), an agent that other agents ask", re.MULTILINE)


def invoke(name: str, /, **args: Any) -> ToolCall:
    return call("invoke_action", action_name=name, args=args)


def ask(peer: str, /, request: str = "go", **args: Any) -> ToolCall:
    """The call by which a model asks a peer."""
    return invoke(f"agent.peer__{peer}", request=request, **args)


def name_in(request: Request) -> str:
    """Return the peer whose request it is, by its system message; "main" for the agent that a person asks."""
    named = _NAMED.search(request.messages[0].content)
    return named[1] if named else "main"


class Agents:
    """The agents of a test.

    Args:
        scripts: the steps of each agent by its name, "main" for the one that a person asks; a single step is said
            without end.

    Attributes:
        models: each agent's script, with the requests that it got.
        model: what stands behind the seam for all of them.
    """

    def __init__(self, **scripts: Step | list[Step]) -> None:
        self.models = {
            name: ScriptedModel(*steps, label=name)
            if isinstance(steps, list)
            else ScriptedModel(otherwise=steps, label=name)
            for name, steps in scripts.items()
        }
        self.model = ScriptedModel(otherwise=lambda request: self.models[name_in(request)].complete(request))

    def session(
        self, workspace: Path, peers: dict[str, Any], more: Sequence[Category] = (), **options: Any
    ) -> reyn.Session:
        """Return a session with these peers, and with more categories than those that are installed."""
        config = {"peers": peers, **options.pop("config", {})}
        options = {"store": "memory", **options}
        offered: list[Category] = []
        made = reyn.Session(workspace, model=self.model, config=config, categories=offered, **options)
        offered += [*installed.load(made.parts.services)[0], *more]
        return made

    def requests(self, name: str) -> list[Request]:
        return self.models[name].requests

    def read_by(self, name: str) -> list[Message]:
        """Return the messages of the last request that an agent got."""
        return list(self.models[name].requests[-1].messages)


def results(messages: list[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "tool"]
