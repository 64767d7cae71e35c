"""The tool calls of one completion: reads beside each other, everything else one after the other, in order.

Equal pure and read calls that stand in one stretch run once. A write is a barrier: what stands before it finishes
first, and what stands after it waits, is planned afterwards, and sees what the write changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from reyn_jupyter.models.seam import ToolCall
from reyn_jupyter.runtime.invoke import Planned
from reyn_jupyter.runtime.run import Outcome, Run
from reyn_jupyter.runtime.wrappers import Wrappers

Done = Callable[[ToolCall, str], None]


class Rounds:
    """Runs the calls of a completion.

    Args:
        wrappers: plans each call.
        refresh: called after an action that may have changed resources.
    """

    def __init__(self, wrappers: Wrappers, run: Run, refresh: Callable[[Run], Awaitable[Any]]) -> None:
        self._wrappers = wrappers
        self._run = run
        self._refresh = refresh

    async def run(self, calls: Sequence[ToolCall], step: int, done: Done) -> None:
        """Run them; `done` gets each call with the text that the history holds, in the order given."""
        stretch: list[tuple[ToolCall, Planned]] = []
        for call in calls:
            planned = self._wrappers.plan(call.id, call.name, call.arguments, self._run, step)
            if planned.repeatable:
                stretch.append((call, planned))
                continue
            if stretch:
                await self._beside(stretch, done)
                stretch = []
                planned = self._wrappers.plan(call.id, call.name, call.arguments, self._run, step)
            outcome = await planned.run()
            await self._refresh(self._run)
            done(call, outcome.text)
        if stretch:
            await self._beside(stretch, done)

    async def _beside(self, stretch: Sequence[tuple[ToolCall, Planned]], done: Done) -> None:
        if len(stretch) == 1:
            call, planned = stretch[0]
            done(call, (await planned.run()).text)
            return
        running: dict[bytes, asyncio.Task[Outcome]] = {}
        tasks: list[asyncio.Task[Outcome]] = []
        for _, planned in stretch:
            first = running.get(planned.key) if planned.key else None
            if first is not None and planned.repeat is not None:
                tasks.append(asyncio.create_task(planned.repeat(first)))
                continue
            tasks.append(asyncio.create_task(planned.run()))
            if planned.key:
                running[planned.key] = tasks[-1]
        try:
            # A call answers for whatever goes wrong in it, so nothing but a cancellation comes out here.
            outcomes = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        for (call, _), outcome in zip(stretch, outcomes, strict=True):
            done(call, outcome.text)
