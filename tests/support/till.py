"""A category as a stranger's server would have it: its description, its schema and its effects are given by a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.catalog.action import (
    Arguments,
    Category,
    Effect,
    Entry,
    Purity,
    PurityRule,
    Resources,
    Tool,
)
from reyn_jupyter.runtime.services import ToolContext
from tests.support.courier import schema

TEXT = {"type": "string"}


@dataclass
class Till:
    """Counts what runs; change its attributes, and call `moved`, to be a server that has other things today.

    Attributes:
        description, properties: the face of ``till__pay``.
        effects: what a call does.
        purity: of the tool.
        running, most: how many calls run now, and most at once.
        gate: what each call waits for before it ends; None for nothing.
    """

    description: str = "Pay an amount."
    properties: dict[str, Any] = field(default_factory=lambda: {"amount": TEXT})
    effects: Callable[[Arguments], Sequence[Effect]] = lambda args: [Effect("mcp", "till/pay")]
    purity: Purity | PurityRule = Purity.WRITE
    calls: list[Arguments] = field(default_factory=list)
    running: int = 0
    most: int = 0
    gate: Callable[[], Any] | None = None
    revision: int = 0

    def moved(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self, name, value)
        self.revision += 1

    def category(self) -> Category:
        async def entries() -> list[Entry]:
            taken = {**schema(**self.properties), "required": []}
            return [Entry("pay", self.description, taken, open_schema=True)]

        tool = Tool("use_till", self._run, self.purity, lambda args, context: self.effects(args))
        rule = Resources(tool, lambda entry, args: args, "call it", entries)
        return Category("till", "Pay.", resources=rule, revision=lambda: self.revision)

    async def _run(self, args: Arguments, context: ToolContext) -> str:
        self.calls.append(args)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await (self.gate() if self.gate is not None else asyncio.sleep(0))
        finally:
            self.running -= 1
        return f"paid {args}"
