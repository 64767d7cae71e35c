"""Where trials run: bounded, in order, and nothing that was done is lost at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from reyn_jupyter.evaluation.run.executor import AsyncioExecutor
from tests.evaluation.study_support import BASE, study
from tests.support.waiting import awaited


async def test_every_plan_is_run_once_and_no_more_than_the_window_are_taken_ahead() -> None:
    taken = done = ahead = 0

    def plans() -> Iterator[Any]:
        nonlocal taken
        for number in range(200):
            taken += 1
            yield number

    async def one(plan: Any) -> Any:
        await asyncio.sleep(0)
        return plan

    results = []
    async for result in AsyncioExecutor(window=7).run(plans(), one):
        done += 1
        ahead = max(ahead, taken - done)
        results.append(result)
    assert sorted(results) == list(range(200)) and ahead <= 7


async def test_a_fault_of_ours_ends_the_run_after_what_was_done_is_handed_over() -> None:
    async def one(plan: Any) -> Any:
        if plan == 1:
            await asyncio.sleep(0.01)
            raise ZeroDivisionError
        return plan

    results = []
    run = AsyncioExecutor(window=2).run(iter([0, 1]), one)  # type: ignore[arg-type]
    results.append(await anext(run))
    with pytest.raises(ZeroDivisionError):
        await anext(run)
    assert results == [0]


async def test_a_cancellation_hands_over_what_was_done_and_stops_what_runs() -> None:
    stopped, results, begun = [], [], set()

    async def one(plan: Any) -> Any:
        begun.add(plan)
        try:
            await asyncio.sleep(0 if plan == 0 else 600)
        except asyncio.CancelledError:
            if plan == 1:
                return "finished while it was stopped"
            stopped.append(plan)
            raise
        return plan

    async def consume() -> None:
        run = AsyncioExecutor().run(iter([0, 1, 2]), one)  # type: ignore[arg-type]
        while True:
            results.append(await anext(run))

    task = asyncio.create_task(consume())
    await awaited(lambda: results and begun == {0, 1, 2})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert results == [0, "finished while it was stopped"] and stopped == [2]


async def test_leaving_early_stops_what_runs() -> None:
    running: set[Any] = set()

    async def one(plan: Any) -> Any:
        running.add(plan)
        try:
            await asyncio.sleep(0 if plan == 0 else 30)
        finally:
            running.discard(plan)
        return plan

    async with aclosing(AsyncioExecutor().run(iter(range(5)), one)) as run:  # type: ignore[arg-type]
        async for _ in run:
            break
    assert not running


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="window=0"):
        AsyncioExecutor(0)


def test_an_executor_may_give_any_iterator() -> None:
    class OneByOne:
        def __init__(self, plans: Any, one: Any) -> None:
            self._plans, self._one = iter(plans), one

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            for plan in self._plans:
                return await self._one(plan)
            raise StopAsyncIteration

    class Plain:
        def run(self, plans: Any, one: Any) -> Any:
            return OneByOne(plans, one)

    made = study(None, 2, executor=Plain())
    assert (made.run(BASE).ended, made.verify().faults) == ("complete", ())
