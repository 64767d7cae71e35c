"""Long-lived tasks of a category: they keep nothing of a turn, reach the notebook's thread, end with the session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.waiting import until

Work = Callable[[Services], Awaitable[Any]]


def session_with(workspace: Path, work: Work) -> tuple[reyn.Session, list[asyncio.Task[Any]]]:
    """Return a session whose action lab__begin begins a task that does the work, and the tasks begun."""
    tasks: list[asyncio.Task[Any]] = []

    async def begin(args: dict[str, Any], context: Any) -> str:
        tasks.append(context.services.spawn(work(context.services), "watch the lab"))
        return "begun"

    tool = Tool("begin_lab", begin, Purity.PURE)
    category = Category("lab", "Watch a lab.", (Operation("begin", "Begin.", {"type": "object"}, tool),))
    return reyn.Session(workspace, store="memory", categories=[category]), tasks


def begun(workspace: Path, work: Work) -> tuple[reyn.Session, asyncio.Task[Any]]:
    session, tasks = session_with(workspace, work)
    assert session.invoke_action("lab__begin").value == "begun"
    return session, tasks[0]


def test_a_task_keeps_no_settings_of_the_turn_that_it_was_begun_in(workspace: Path) -> None:
    from reyn_jupyter.models.scripted import ScriptedModel, call

    go, seen = threading.Event(), []

    async def work(services: Services) -> None:
        await asyncio.to_thread(go.wait)
        seen.append(services.settings().router.limits.max_steps)

    session, tasks = session_with(workspace, work)
    usual = session.parts.settings.router.limits.max_steps
    model = ScriptedModel(call("invoke_action", action_name="lab__begin", args={}), "ok")
    session.ask("go", model=model, max_steps=usual + 3)
    go.set()
    until(tasks[0].done)
    assert seen == [usual]


def test_its_main_thread_calls_are_answered_while_a_call_of_reyn_waits_on_the_thread(workspace: Path) -> None:
    go = threading.Event()

    async def work(services: Services) -> Any:
        await asyncio.to_thread(go.wait)
        return await services.main_thread(threading.current_thread)

    _, task = begun(workspace, work)

    async def wait_for_it() -> Any:
        go.set()
        return await task

    assert ENGINE.run(wait_for_it()) is threading.current_thread()


def test_its_main_thread_calls_are_answered_by_a_loop_that_runs_there(workspace: Path) -> None:
    async def work(services: Services) -> Any:
        await asyncio.to_thread(go.wait)
        return await services.main_thread(threading.current_thread)

    go = threading.Event()
    session, tasks = session_with(workspace, work)

    async def notebook() -> Any:
        await session.aio.invoke_action("lab__begin")
        go.set()
        while not tasks[0].done():
            await asyncio.sleep(0.01)
        return tasks[0].result()

    assert asyncio.run(notebook()) is threading.current_thread()


def test_they_are_refused_clearly_where_nobody_serves_the_thread(workspace: Path) -> None:
    go = threading.Event()

    async def work(services: Services) -> Any:
        await asyncio.to_thread(go.wait)
        return await services.main_thread(threading.current_thread)

    session, task = begun(workspace, work)
    go.set()
    until(task.done)
    with pytest.raises(RuntimeError, match="nothing serves the notebook's thread"):
        task.result()
    until(lambda: "'watch the lab' failed" in " ".join(session.problems))


def test_a_task_that_a_handler_begins_by_itself_is_refused_too_once_its_turn_is_over(workspace: Path) -> None:
    go = threading.Event()
    tasks: list[asyncio.Task[Any]] = []

    async def begin(args: dict[str, Any], context: Any) -> str:
        async def work() -> Any:
            await asyncio.to_thread(go.wait)
            return await context.services.main_thread(threading.current_thread)

        tasks.append(asyncio.create_task(work()))
        return "begun"

    tool = Tool("begin_lab", begin, Purity.PURE)
    category = Category("lab", "x", (Operation("begin", "Begin.", {"type": "object"}, tool),))
    session = reyn.Session(workspace, store="memory", categories=[category])
    session.invoke_action("lab__begin")
    go.set()
    until(tasks[0].done)
    with pytest.raises(RuntimeError, match="nothing serves"):
        tasks[0].result()


def test_tasks_end_with_the_session_and_may_clean_up(workspace: Path) -> None:
    cleaned = []

    async def work(services: Services) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    session, task = begun(workspace, work)
    session.close()
    assert task.cancelled() and cleaned == [True] and session.problems == ()


def test_a_failure_is_named_until_a_task_of_the_name_begins_again(workspace: Path) -> None:
    async def work(services: Services) -> None:
        raise SystemExit(3)

    session, task = begun(workspace, work)
    until(task.done)
    until(lambda: session.problems)
    assert "SystemExit was raised" in session.problems[0]
    assert "Problems" in dict(session.status.sections)


def test_a_task_cannot_begin_where_no_loop_runs(workspace: Path) -> None:
    session = reyn.Session(workspace, store="memory", categories=[])
    with pytest.raises(RuntimeError, match=r"call services\.spawn from a coroutine"):
        session.parts.services.spawn(asyncio.sleep(0), "too early")
