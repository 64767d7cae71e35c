"""The plan of a call: what its tool decided once, before anybody was asked.

Invariant: effects, preview and handler of a call see the same plan, which ends with the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from reyn_jupyter.catalog.action import Arguments, Tool
from reyn_jupyter.runtime.services import ToolContext


@contextmanager
def planned(tool: Tool, args: Arguments, context: ToolContext) -> Iterator[ToolContext]:
    """Yield the context with the plan of a call in it, and close the plan after the block.

    Raises:
        ActionError: whatever the tool refuses, see `Tool.plan`.
    """
    plan = None if tool.plan is None else tool.plan(args, context)
    try:
        yield context if plan is context.plan else replace(context, plan=plan)
    finally:
        close = getattr(plan, "close", None)
        if close is not None:
            close()
