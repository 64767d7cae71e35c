"""How many trials a provider gets: more while it takes them, fewer once it refuses, none before the time it names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.run.concurrency import Concurrency, ProviderClosedError
from reyn_jupyter.models.base import ModelError

HOST = "api.example.com"


def refused(after: float | None = None) -> ModelError:
    return ModelError("rate_limited", "slow down", retryable=True, retry_after=after)


async def turns() -> None:
    """Let the loop turn a few times, so that whatever may begin has begun, on a slow machine too."""
    for _ in range(20):
        await asyncio.sleep(0)


async def rounds(pace: Concurrency, trials: int, *, local: bool = False) -> int:
    """Run trials as quickly as they are let; the most that ran at a time."""
    running = most = 0

    async def trial() -> None:
        nonlocal running, most
        async with pace.slot(HOST, local=local):
            running += 1
            most = max(most, running)
            await turns()
            running -= 1

    await asyncio.gather(*(trial() for _ in range(trials)))
    return most


async def test_it_grows_to_the_bound_while_calls_succeed() -> None:
    pace = Concurrency(start=2, most=8)
    assert await rounds(pace, 60) == 8
    assert pace.limits == {HOST: 8}


async def test_models_in_this_process_keep_to_their_own_bound() -> None:
    assert await rounds(Concurrency(start=4, most=32, most_local=3), 40, local=True) == 3


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:11434", "[::1]:8080"])
async def test_a_server_on_this_machine_begins_with_one(host: str) -> None:
    pace = Concurrency(start=4, most=32)
    async with pace.slot(host):
        assert pace.limits == {host: 1}


async def test_no_answer_in_time_counts_as_a_refusal() -> None:
    pace = Concurrency(start=8)
    async with pace.slot(HOST):
        pace.on_model_error(HOST, ModelError("timeout", "too late", retryable=True))
    assert pace.limits == {HOST: 4}


async def test_a_limit_that_is_not_used_does_not_grow() -> None:
    pace = Concurrency(start=2, most=8)
    for _ in range(20):
        await rounds(pace, 1)
    assert pace.limits == {HOST: 2}


async def test_refusals_of_one_round_halve_it_once_and_growth_is_slow_from_then_on() -> None:
    now = 0.0
    pace = Concurrency(start=8, most=32, clock=lambda: now)
    async with pace.slot(HOST):
        pass
    for _ in range(5):
        pace.on_model_error(HOST, refused(0.02))
    assert pace.limits == {HOST: 4}
    now = 0.03
    await rounds(pace, 6)
    assert pace.limits[HOST] in (4, 5)


async def test_nothing_starts_before_the_time_that_the_provider_named() -> None:
    now = 0.0
    pace = Concurrency(start=4, most=4, clock=lambda: now)
    async with pace.slot(HOST):
        pace.on_model_error(HOST, refused(0.2))
    entered = asyncio.create_task(rounds(pace, 1))
    await asyncio.sleep(0.05)
    assert not entered.done()
    now = 0.21
    await asyncio.wait_for(entered, 60)


@pytest.mark.parametrize("after", [0.0, -3.0, 0.001])
async def test_refusals_of_one_round_halve_it_once_even_where_they_ask_for_no_wait(after: float) -> None:
    now = 0.0
    pace = Concurrency(start=8, clock=lambda: now)
    async with pace.slot(HOST):
        for _ in range(8):
            pace.on_model_error(HOST, refused(after))
            now += 0.01
    assert pace.limits == {HOST: 4}
    now += 1.0
    pace.on_model_error(HOST, refused(after))
    assert pace.limits == {HOST: 2}


async def test_a_provider_that_asks_for_a_longer_wait_than_anybody_sits_through_is_closed_until_another_run() -> (
    None
):
    now = 0.0
    pace = Concurrency(start=1, most=1, clock=lambda: now)
    async with pace.slot(HOST):
        waiting = asyncio.create_task(rounds(pace, 1))
        await asyncio.sleep(0)
        pace.on_model_error(HOST, refused(7200.0))
        assert pace.waits == {HOST: 7200.0}
    with pytest.raises(ProviderClosedError, match="no call within the next 2 hours"):
        await asyncio.wait_for(waiting, 60)
    with pytest.raises(ProviderClosedError):
        await rounds(pace, 1)
    pace.afresh()
    assert await asyncio.wait_for(rounds(pace, 1), 60) == 1 and not pace.waits


async def test_a_wait_that_grows_meanwhile_is_heard_by_those_who_wait_already() -> None:
    now = 0.0
    pace = Concurrency(start=4, most=4, clock=lambda: now)
    async with pace.slot(HOST):
        pace.on_model_error(HOST, refused(30.0))
    entered = asyncio.create_task(rounds(pace, 1))
    await asyncio.sleep(0.01)
    pace.on_model_error(HOST, refused(1e9))
    with pytest.raises(ProviderClosedError, match="days"):
        await asyncio.wait_for(entered, 60)


def test_what_a_lost_engine_still_holds_does_not_keep_another_one_waiting() -> None:
    pace = Concurrency(start=1, most=1)
    lost = asyncio.new_event_loop()
    held = pace.slot(HOST)
    lost.run_until_complete(held.__aenter__())
    assert asyncio.run(asyncio.wait_for(rounds(pace, 2), 60)) == 1
    lost.run_until_complete(held.__aexit__(None, None, None))
    lost.close()
    assert asyncio.run(asyncio.wait_for(rounds(pace, 2), 60)) == 1


async def test_worker_processes_have_a_bound_of_their_own() -> None:
    pace = Concurrency(start=4, most=32, most_local=3)

    async def trial() -> None:
        async with pace.slot(HOST, local=True, most=12):
            await turns()

    await asyncio.gather(*(trial() for _ in range(20)))
    assert pace.limits == {HOST: 12}


async def test_it_never_goes_below_one_and_other_errors_do_not_count() -> None:
    now = 0.0
    pace = Concurrency(start=4, clock=lambda: now)
    async with pace.slot(HOST):
        pace.on_model_error(HOST, ModelError("auth", "no"))
        pace.on_model_error(HOST, ModelError("rate_limited", "no credit left"))
        assert pace.limits == {HOST: 4}
        for _ in range(6):
            pace.on_model_error(HOST, refused(1.0))
            now += 2.0
    assert pace.limits == {HOST: 1}


async def test_a_trial_that_is_cancelled_while_it_waits_gives_its_place_back() -> None:
    pace = Concurrency(start=1, most=1)
    async with pace.slot(HOST):
        waiting = [asyncio.create_task(rounds(pace, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        await asyncio.sleep(0)
    assert await asyncio.wait_for(asyncio.gather(waiting[0], waiting[2]), 60) == [1, 1]
    assert await asyncio.wait_for(rounds(pace, 3), 60) == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["trial", "cancel", "refuse"]), max_size=40), st.integers(1, 4))
def test_never_more_run_than_the_limit_whatever_happens(steps: list[str], start: int) -> None:
    async def play() -> None:
        now = 0.0
        pace = Concurrency(start=start, most=6, clock=lambda: now)
        running = 0
        gates: list[asyncio.Event] = []

        async def trial(gate: asyncio.Event) -> None:
            nonlocal running
            async with pace.slot(HOST):
                running += 1
                assert running <= 6
                try:
                    await gate.wait()
                finally:
                    running -= 1

        tasks: list[asyncio.Task[Any]] = []
        for step in steps:
            if step == "trial":
                gates.append(asyncio.Event())
                tasks.append(asyncio.create_task(trial(gates[-1])))
            elif step == "cancel" and tasks:
                tasks[len(tasks) // 2].cancel()
            else:
                pace.on_model_error(HOST, refused(0.0))
            await asyncio.sleep(0)
        now = 1e9
        for gate in gates:
            gate.set()
        done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
        assert all(each is None or isinstance(each, asyncio.CancelledError) for each in done)
        assert running == 0
        assert await asyncio.wait_for(rounds(pace, 2), 60) >= 1

    asyncio.run(play())


def test_bounds_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="start=5"):
        Concurrency(start=5, most=2)


async def test_the_number_of_workers_is_followed_while_they_come_and_go() -> None:
    pace, seen = Concurrency(), []
    for most in (2, 6, 1):
        async with pace.slot("simulator", local=True, most=most):
            seen.append(pace.limits["simulator"])
    assert seen == [2, 6, 1]
