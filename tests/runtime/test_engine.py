"""The engine: one thread and loop, a pump on the caller's thread, interrupts that wait for cleanup."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import threading
import time
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest

from reyn_jupyter.runtime import pump
from reyn_jupyter.runtime.engine import Engine, WouldDeadlockError, publisher
from reyn_jupyter.runtime.pump import Interrupted, Job
from tests.support.waiting import PATIENCE


@pytest.fixture
def engine() -> Engine:
    return Engine()


def test_a_coroutine_runs_off_the_callers_thread(engine: Engine) -> None:
    async def where() -> int:
        return threading.get_ident()

    assert engine.run(where()) != threading.get_ident()


def test_main_thread_calls_run_on_the_thread_that_called_run(engine: Engine) -> None:
    async def work() -> tuple[int, int]:
        return await engine.main_thread(threading.get_ident), threading.get_ident()

    here, there = engine.run(work())
    assert here == threading.get_ident() != there


def test_what_a_main_thread_call_raises_reaches_the_coroutine(engine: Engine) -> None:
    def fail() -> None:
        raise KeyError("gone")

    async def work() -> str:
        try:
            await engine.main_thread(fail)
        except KeyError as error:
            return f"caught {error}"
        return "nothing"

    assert engine.run(work()) == "caught 'gone'"


@pytest.mark.parametrize("error", [StopIteration("x"), SystemExit(3), GeneratorExit()])
def test_errors_that_would_end_a_loop_become_ordinary_ones(engine: Engine, error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def work() -> None:
        await engine.main_thread(fail)

    with pytest.raises(RuntimeError, match=type(error).__name__):
        engine.run(work())
    assert engine.run(_value(1)) == 1


async def _value(value: int) -> int:
    return value


def test_published_events_arrive_in_order_on_the_callers_thread(engine: Engine) -> None:
    seen: list[tuple[int, int]] = []

    async def work() -> None:
        publish = publisher()
        assert publish is not None
        for number in range(100):
            publish(number)

    engine.run(work(), lambda event: seen.append((event, threading.get_ident())))
    assert seen == [(number, threading.get_ident()) for number in range(100)]


def test_a_view_hears_once_that_it_is_quiet_after_an_event(engine: Engine) -> None:
    seen: list[object] = []
    heard = threading.Event()

    async def work() -> None:
        publish = publisher()
        assert publish is not None
        for event in ("first", "second"):
            publish(event)
            while not heard.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.25)
            heard.clear()

    def view(event: object) -> None:
        seen.append(event)
        if event is None:
            heard.set()

    engine.run(work(), view)
    # A busy machine may let a second pass, and then a view hears it once more.
    assert [event for event, _ in groupby(seen)] == ["first", None, "second", None]


def test_a_view_hears_each_second_that_nothing_comes_so_that_its_clock_goes_on(engine: Engine) -> None:
    seen: list[object] = []
    enough = asyncio.Event()

    def view(event: object) -> None:
        seen.append(event)
        if len(seen) == 3:
            engine.loop.call_soon_threadsafe(enough.set)

    engine.run(asyncio.wait_for(enough.wait(), 60), view)
    assert len(seen) >= 3 and set(seen) == {None}


def test_a_view_catches_up_before_a_call_that_may_hold_its_thread(engine: Engine) -> None:
    seen: list[object] = []

    async def work() -> None:
        publish = publisher()
        assert publish is not None
        publish("about to call")
        await engine.main_thread(lambda: seen.append("the call"))

    engine.run(work(), seen.append)
    assert seen == ["about to call", None, "the call"]


def test_without_an_event_a_view_hears_nothing(engine: Engine) -> None:
    seen: list[object] = []
    began = time.monotonic()
    engine.run(asyncio.sleep(0.25), seen.append)
    # A busy machine may let a second pass, and then the clock of the view goes on.
    assert len(seen) <= time.monotonic() - began


def test_a_view_that_fails_cancels_the_run_and_shows_its_error(engine: Engine) -> None:
    cleaned = threading.Event()

    async def work() -> None:
        publish = publisher()
        assert publish is not None
        try:
            publish("x")
            await asyncio.sleep(600)
        finally:
            cleaned.set()

    def fail(event: object) -> None:
        raise ValueError("the view is broken")

    with pytest.raises(ValueError, match="the view is broken"):
        engine.run(work(), fail)
    assert cleaned.is_set()


def test_an_interrupt_cancels_the_task_and_waits_for_its_cleanup(engine: Engine) -> None:
    order: list[str] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def work() -> str:
        try:
            asyncio.get_running_loop().call_later(0.01, lambda: None)
            publish = publisher()
            assert publish is not None
            publish("go")
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            order.append("cleaned up")
            return "the partial result"
        return "all of it"

    with pytest.raises(Interrupted) as caught:
        engine.run(work(), lambda event: interrupt())
    order.append("returned")
    assert caught.value.result == "the partial result"
    assert order == ["cleaned up", "returned"]


def test_an_interrupt_inside_a_main_thread_call_stops_the_run(engine: Engine) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    went_on: list[str] = []

    async def work() -> str:
        try:
            await engine.main_thread(interrupted)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None and task.cancelling()
            return "cancelled"
        went_on.append("yes")
        return "went on"

    with pytest.raises(Interrupted) as caught:
        engine.run(work())
    assert caught.value.result == "cancelled" and not went_on


def test_a_call_that_was_on_its_way_when_the_interrupt_came_does_not_begin(engine: Engine) -> None:
    began: list[str] = []
    queued, interrupted = threading.Event(), threading.Event()

    def hold() -> None:
        """Keep the loop busy until the interrupt is there, so that the cancellation comes after the call was queued."""
        queued.set()
        interrupted.wait(PATIENCE)
        time.sleep(0.05)

    async def work() -> None:
        publish = publisher()
        assert publish is not None
        publish("about to call")
        asyncio.get_running_loop().call_soon(hold)
        await engine.main_thread(lambda: began.append("yes"))

    def interrupt(event: object) -> None:
        if event is not None:
            assert queued.wait(PATIENCE)
            interrupted.set()
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        engine.run(work(), interrupt)
    assert not began


def test_a_sync_call_from_the_engines_thread_raises_at_once_and_names_the_way_out(engine: Engine) -> None:
    async def inner() -> None:
        engine.run(_value(1))

    with pytest.raises(WouldDeadlockError, match=r"session\.aio"):
        engine.run(inner())


def test_a_sync_call_from_inside_a_main_thread_call_raises_at_once(engine: Engine) -> None:
    async def outer() -> None:
        await engine.main_thread(lambda: engine.run(_value(1)))

    with pytest.raises(WouldDeadlockError, match=r"session\.aio"):
        engine.run(outer())


async def test_awaited_from_another_loop_main_thread_calls_go_to_that_loop(engine: Engine) -> None:
    async def work() -> int:
        return await engine.main_thread(threading.get_ident)

    assert await engine.awaited(work()) == threading.get_ident()


async def test_cancelling_the_awaiting_side_cancels_the_work_and_waits_for_it(engine: Engine) -> None:
    cleaned: list[str] = []
    started = asyncio.Event()
    home = asyncio.get_running_loop()

    async def work() -> None:
        home.call_soon_threadsafe(started.set)
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.02)
            cleaned.append("yes")

    task = asyncio.create_task(engine.awaited(work()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["yes"]


async def test_cancelling_the_awaiting_side_leaves_no_word_on_stderr(engine: Engine) -> None:
    said: list[dict[str, Any]] = []
    started = asyncio.Event()
    home = asyncio.get_running_loop()
    home.set_exception_handler(lambda _, context: said.append(context))

    async def work() -> None:
        home.call_soon_threadsafe(started.set)
        await asyncio.sleep(600)

    task = asyncio.create_task(engine.awaited(work()))
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    del task
    gc.collect()
    assert said == []


def test_without_anyone_serving_it_a_main_thread_call_is_refused_not_hung(engine: Engine) -> None:
    async def work() -> None:
        await engine.main_thread(lambda: 1)

    job = engine.start(work())
    with pytest.raises(RuntimeError, match="nothing serves"):
        job.future.result(PATIENCE)


def test_a_job_can_be_cancelled_from_any_thread(engine: Engine) -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            return "stopped"
        return "done"

    job = engine.start(work())
    job.cancel()
    assert job.future.result(PATIENCE) == "stopped"


def test_a_second_interrupt_that_strikes_while_the_first_is_taken_up_still_waits_for_the_cleanup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, cleaned = Engine(), threading.Event()
    pressed: list[Job[Any]] = []
    cancel = Job.cancel

    def struck(job: Job[Any]) -> None:
        pressed.append(job)
        if len(pressed) == 1:
            raise KeyboardInterrupt
        cancel(job)

    monkeypatch.setattr(Job, "cancel", struck)

    async def work() -> str:
        # Begun here, so that it never strikes before somebody waits for this.
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)
            cleaned.set()
            return "half"
        return "whole"

    with pytest.raises(Interrupted) as caught:
        engine.run(work())
    assert cleaned.is_set() and caught.value.result == "half"


def test_a_process_that_stood_still_after_an_interrupt_is_no_action_that_blocks(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock runs on by a minute at each look, and the engine is not there before some looks."""
    looks: list[object] = []
    interrupted, looked = threading.Event(), threading.Event()
    take = pump._next

    def look(queue: Any, seconds: float) -> Any:
        item = take(queue, seconds)
        if interrupted.is_set():
            looks.append(item)
            if len(looks) == 3:
                looked.set()
        return item

    monkeypatch.setattr(pump, "_next", look)
    ahead = SimpleNamespace(monotonic=lambda: time.monotonic() + 60 * len(looks))
    monkeypatch.setattr(pump, "time", ahead)

    async def work() -> str:
        publish = publisher()
        assert publish is not None
        publish("go")
        asyncio.get_running_loop().call_soon(looked.wait, PATIENCE)
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            return "the partial result"
        return "all of it"

    def interrupt(event: object) -> None:
        if event is not None:
            interrupted.set()
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        engine.run(work(), interrupt)
    assert (caught.value.why, caught.value.result) == ("", "the partial result")


def test_an_interrupt_before_the_first_wait_is_an_interrupt_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = threading.Event()

    def struck(*_: object) -> None:
        assert begun.wait(PATIENCE)
        raise KeyboardInterrupt

    monkeypatch.setattr("reyn_jupyter.runtime.engine.pump", struck)

    async def work() -> None:
        begun.set()
        await asyncio.sleep(600)

    with pytest.raises(Interrupted):
        Engine().run(work())


@pytest.mark.parametrize(
    "handed_over", [True, False], ids=["after the job began", "before it was handed over"]
)
def test_an_interrupt_while_the_engine_is_woken_leaves_no_job_behind(
    monkeypatch: pytest.MonkeyPatch, handed_over: bool
) -> None:
    engine, begun, cleaned = Engine(), threading.Event(), threading.Event()
    wake = engine.loop.call_soon_threadsafe

    def struck(*given: Any) -> Any:
        monkeypatch.undo()
        if handed_over:
            wake(*given)
            assert begun.wait(PATIENCE)
        raise KeyboardInterrupt

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            cleaned.set()

    monkeypatch.setattr(engine.loop, "call_soon_threadsafe", struck)
    coroutine = work()
    with pytest.raises(Interrupted):
        engine.run(coroutine)
    assert begun.is_set() == cleaned.is_set() == handed_over
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
