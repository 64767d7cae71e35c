"""A function for each item: bounded, in order, and nothing that was done is lost at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.executors.bounded import run_bounded
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
    async for result in run_bounded(plans(), one, window=7):
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
    run = run_bounded(iter([0, 1]), one, window=2)
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
        run = run_bounded(iter([0, 1, 2]), one)
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

    async with aclosing(run_bounded(iter(range(5)), one)) as run:
        async for _ in run:
            break
    assert not running


async def test_a_window_of_nothing_is_refused() -> None:
    async def one(plan: Any) -> Any:
        return plan

    with pytest.raises(ValueError, match="window=0"):
        await anext(run_bounded([1], one, window=0))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 6), st.booleans())
def test_results_come_once_each_and_in_order_where_that_is_asked(
    turns: list[int], window: int, ordered: bool
) -> None:
    begun = yielded = 0

    async def one(item: tuple[int, int]) -> int:
        nonlocal begun
        begun += 1
        assert begun - yielded <= window
        for _ in range(item[1]):
            await asyncio.sleep(0)
        return item[0]

    async def play() -> list[int]:
        nonlocal yielded
        found = []
        async for each in run_bounded(enumerate(turns), one, window=window, ordered=ordered):
            yielded += 1
            found.append(each)
        return found

    found = asyncio.run(play())
    assert sorted(found) == list(range(len(turns)))
    if ordered:
        assert found == sorted(found)
