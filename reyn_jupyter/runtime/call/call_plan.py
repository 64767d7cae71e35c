"""The plan of a call: what its tool decided once, before anybody was asked.

Invariant: effects, preview and handler of a call see the same plan, which ends with the call.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from reyn_jupyter.catalog.action import Arguments, Tool
from reyn_jupyter.runtime.services import ToolContext


async def with_plan(tool: Tool, args: Arguments, context: ToolContext) -> ToolContext:
    """Return the context with the plan of a call in it, which `close_plan` ends.

    Raises:
        ActionError: whatever the tool refuses, see `Tool.plan`.
    """
    if tool.plan is None:
        plan: object = None
    elif tool.plan_is_slow:
        plan = await _in_thread(tool, args, context)
    else:
        plan = tool.plan(args, context)
    return context if plan is context.plan else replace(context, plan=plan)


def close_plan(context: ToolContext) -> None:
    """End the plan of a call."""
    _close(context.plan)


async def _in_thread(tool: Tool, args: Arguments, context: ToolContext) -> object:
    """Return a plan that is made in a thread; one that comes after an interrupt is closed."""
    assert tool.plan is not None
    making = asyncio.ensure_future(asyncio.to_thread(tool.plan, args, context))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_close_late)
        raise


def _close_late(making: asyncio.Future[object]) -> None:
    if not making.cancelled() and making.exception() is None:
        _close(making.result())


def _close(plan: object) -> None:
    close = getattr(plan, "close", None)
    if close is not None:
        close()
