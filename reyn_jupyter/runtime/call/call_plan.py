"""The plan of a call: what its tool decided once, before anybody was asked.

Invariant: effects, preview and handler of a call see the same plan, which ends with the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from reyn_jupyter.catalog.action import Arguments, Tool
from reyn_jupyter.runtime.services import ToolContext


async def make_plan(tool: Tool, args: Arguments, context: ToolContext) -> object:
    """Return the plan of a call, which `closing_plan` ends; None where its tool plans nothing.

    Raises:
        ActionError: whatever the tool refuses, see `Tool.plan`.
    """
    if tool.plan is None:
        return None
    return await _in_thread(tool, args, context) if tool.plan_is_slow else tool.plan(args, context)


@contextmanager
def closing_plan(plan: object) -> Iterator[object]:
    """End a plan with the block."""
    try:
        yield plan
    finally:
        close_plan(plan)


def close_plan(plan: object) -> None:
    """End a plan."""
    close = getattr(plan, "close", None)
    if close is not None:
        close()


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
        close_plan(making.result())
