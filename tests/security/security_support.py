"""Attacks as a model makes them: calls in a session, and all that the model gets to read of their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category
from reyn_jupyter.models.base import ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.trace import Trace


def invoke(name: str, /, **args: Any) -> ToolCall:
    """The model's call of an action."""
    return call("invoke_action", action_name=name, args=args)


@dataclass
class Attacker:
    """A model that makes calls in one session.

    Args:
        root: the workspace.
        permissions: the rules in force.
        names: the notebook's variables.
        answer: the person's answer to every question.
        settings: other settings of the session.
        categories: in place of those that are installed.
        servers: the MCP servers.
    """

    root: Path
    permissions: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)
    answer: Answer = "deny"
    settings: Mapping[str, Any] = field(default_factory=dict)
    categories: Sequence[Category] | None = None
    servers: Sequence[McpServer] = ()
    questions: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = {"permissions": dict(self.permissions), "variables": "schema", **self.settings}
        self.session = reyn.Session(
            self.root, store="memory", config=config, namespace=self.names, categories=self.categories,
            mcp_servers=McpServerList(self.servers) if self.servers else None,
        )  # fmt: skip
        self.session.parts.ask_person = self._asked

    def _asked(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    def call(self, name: str, /, **args: Any) -> str:
        """Make one call, and return what the model reads of it."""
        return self.calls(invoke(name, **args))

    def calls(self, *calls: ToolCall) -> str:
        """Make calls, one a step, and return what the model reads of them."""
        return self.trace(*calls)[1]

    def trace(self, *calls: ToolCall) -> tuple[Trace, str]:
        """Make calls, one a step; return the trace too."""
        model = ScriptedModel(*calls, "done")
        trace = self.session.ask("go", model=model, new=True)
        assert trace.answer == "done", trace.error
        messages = model.requests[-1].messages
        return trace, "\n".join(message.content for message in messages if message.role == "tool")

    def stored(self, text: object) -> str:
        """Store a value as an earlier result is, and return its blob id."""
        from reyn_jupyter.outputs.convert import to_content

        async def store() -> str:
            blobs = self.session.parts.services.blobs
            assert blobs is not None
            return await blobs.store(to_content(text))

        import asyncio

        return asyncio.run(store())
