"""The start and the close of a session's categories.

Invariants: a category is started once, however many calls wait for it, in a context of its own, so that it keeps
nothing of the turn that came first; a start that nobody waits for any more is cancelled, and its cleanup awaited. Every
start that began is followed by one close. A start that failed is tried again with back-off.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Coroutine
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any

from reyn_jupyter.catalog.action import Arguments, Category, Tool
from reyn_jupyter.runtime.action_error import ActionError, text_of
from reyn_jupyter.runtime.deadline import deadlines_paused
from reyn_jupyter.runtime.live_catalog.backoff import Backoff
from reyn_jupyter.runtime.live_catalog.category_scope import category_scope

START_SECONDS = 30.0  # that a start may take
CLOSE_SECONDS = 3.0  # that a close may take, and the cleanup of a start that was cancelled


class CategoryStartError(ActionError):
    """A category could not be started."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint, code="category_not_started")


@dataclass
class _Life:
    """The state of one category. `started_on` is the loop that it was started on; None while it is not."""

    category: Category
    guarded: Category
    started_on: asyncio.AbstractEventLoop | None = None
    starting: asyncio.Task[None] | None = None
    closing: asyncio.Task[None] | None = None
    waiters: int = 0
    backoff: Backoff = field(default_factory=Backoff)
    failure: str | None = None
    close_failure: str | None = None


class CategoryLifecycle:
    """Starts and closes categories, one instance a session."""

    def __init__(self) -> None:
        self._lives: dict[int, _Life] = {}
        self._guards: dict[int, Category] = {}

    def guard(self, category: Category) -> Category:
        """Return the category with handlers that wait for its start; the same one where there is nothing to start."""
        if category.start is None and category.close is None:
            return category
        if id(category) not in self._guards:
            life = _Life(category, category)
            life.guarded = self._guarded(life)
            self._guards[id(category)] = life.guarded  # `life` keeps the category, and so its identity
            self._lives[id(life.guarded)] = life
        return self._guards[id(category)]

    async def ready(self, category: Category) -> None:
        """Start a guarded category, unless it is started.

        Raises:
            CategoryStartError: it fails, or failed a short while ago.
        """
        life = self._lives.get(id(category))
        if life is not None:
            await self._ready(life)

    def fault(self, category: Category) -> str | None:
        """Return why a guarded category is left out: its start failed, and the next try is not due yet."""
        life = self._lives.get(id(category))
        if life is None or life.failure is None or not life.backoff.is_waiting(_now()):
            return None
        return life.failure

    @property
    def problems(self) -> dict[str, str]:
        """Category → what went wrong when it was started or closed, in a sentence."""
        found = {}
        for life in self._lives.values():
            name = life.category.name
            if life.failure is not None:
                found[f"{name} start"] = f"category {name!r} is left out: {life.failure}"
            if life.close_failure is not None:
                found[f"{name} close"] = f"category {name!r} did not close: {life.close_failure}"
        return found

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to close."""
        return all(life.started_on is None and not _runs(life.starting) for life in self._lives.values())

    async def close(self) -> None:
        """Close what was started, side by side; the next use starts it again. What fails is in `problems`."""
        await asyncio.gather(*(self._end(life) for life in list(self._lives.values())))

    def _guarded(self, life: _Life) -> Category:
        tools: dict[int, Tool] = {}

        def guard(tool: Any) -> Any:
            if not isinstance(tool, Tool) or not callable(tool.handler):
                return tool  # the checks of the catalog say what is wrong with it
            if id(tool) not in tools:
                tools[id(tool)] = replace(tool, handler=self._waiting_handler(life, tool))
            return tools[id(tool)]

        category = life.category
        resources = category.resources
        return replace(
            category,
            operations=tuple(replace(each, tool=guard(each.tool)) for each in category.operations),
            resources=replace(resources, tool=guard(resources.tool)) if resources is not None else None,
        )

    def _waiting_handler(self, life: _Life, tool: Tool) -> Any:
        @functools.wraps(tool.handler)
        async def handler(arguments: Arguments, context: Any) -> object:
            with deadlines_paused():  # a start has a limit of its own
                await self._ready(life)
            return await tool.handler(arguments, context)

        return handler

    async def _ready(self, life: _Life) -> None:
        loop = asyncio.get_running_loop()
        if life.started_on is loop:
            return
        name = life.category.name
        if life.failure is not None and life.backoff.is_waiting(loop.time()):
            raise CategoryStartError(f"The category {name!r} is not available: {life.failure}.", _LATER)
        closing = life.closing
        if _runs(closing) and closing is not None and closing.get_loop() is loop:
            await asyncio.wait([closing])
        await self._wait_for_start(life, loop)
        if life.started_on is not loop:
            raise CategoryStartError(f"The category {name!r} is not available: {life.failure}.", _LATER)

    async def _wait_for_start(self, life: _Life, loop: asyncio.AbstractEventLoop) -> None:
        task = life.starting
        if task is None or task.done() or task.get_loop() is not loop:
            task = life.starting = _apart(loop, self._start(life))
            life.waiters = 0
        life.waiters += 1
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if _is_cancelled() or not task.cancelled():
                raise
            message = f"The category {life.category.name!r} was closed while it started."
            raise CategoryStartError(message, "Call it again.") from None
        finally:
            life.waiters -= 1
            if life.waiters == 0 and not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=2 * CLOSE_SECONDS)

    async def _start(self, life: _Life) -> None:
        category, loop = life.category, asyncio.get_running_loop()
        try:
            if category.start is not None:
                with category_scope(category.name):
                    async with asyncio.timeout(START_SECONDS):
                        await category.start()
        except asyncio.CancelledError:
            await self._close(life)
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a category's own code
            if isinstance(error, TimeoutError):
                why = f"it did not start within {START_SECONDS:g} seconds"
            else:
                why = f"it could not start ({type(error).__name__}: {text_of(error)})"
            life.failure = f"{why}; the next try is in {life.backoff.fail(loop.time()):.0f} s"
            await self._close(life)
        else:
            life.started_on, life.failure = loop, None
            life.backoff.clear()

    async def _close(self, life: _Life) -> None:
        """Let a category end what its start began, within bounds."""
        life.close_failure = None
        try:
            if life.category.close is not None:
                with category_scope(life.category.name):
                    async with asyncio.timeout(CLOSE_SECONDS):
                        await life.category.close()
        except TimeoutError:
            life.close_failure = f"it took longer than {CLOSE_SECONDS:g} seconds"
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a category's own code
            life.close_failure = f"{type(error).__name__}: {text_of(error)}"

    async def _end(self, life: _Life) -> None:
        loop = asyncio.get_running_loop()
        starting = life.starting
        if _runs(starting) and starting is not None and starting.get_loop() is loop:
            starting.cancel()
            await asyncio.wait([starting], timeout=2 * CLOSE_SECONDS)
        if life.started_on is not None:
            on_this_loop, life.started_on = life.started_on is loop, None
            if on_this_loop:
                life.closing = _apart(loop, self._close(life))
                await asyncio.wait([life.closing])
        life.backoff.clear()
        life.failure = None


_LATER = "Do without it, or try again later; %reyn doctor says what is wrong."


def _apart(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Run a coroutine in a task whose context holds nothing of the caller's."""
    return loop.create_task(coroutine, context=Context())


def _runs(task: asyncio.Task[None] | None) -> bool:
    return task is not None and not task.done()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _now() -> float:
    return asyncio.get_running_loop().time()
