"""The long-lived tasks of a session.

Invariants: a task runs in a context of its own, so that it keeps no settings and no listener of the turn that it was
begun in; it ends with the session; one that fails is named in `problems`, and takes nothing else with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

from reyn_jupyter.runtime.action_error import text_of
from reyn_jupyter.runtime.live_catalog.category_scope import category_scope, current_category
from reyn_jupyter.support.import_path import package_imports
from reyn_jupyter.support.text import shorten

T = TypeVar("T")
CLOSE_SECONDS = 2.0  # that tasks have to clean up
_LONGEST_NAME = 100  # characters


class SessionTasks:
    """The tasks that categories begin with `Services.spawn`.

    Example:
        >>> tasks = SessionTasks()
        >>> async def work() -> int:
        ...     return await tasks.spawn(asyncio.sleep(0, 7), "wait a moment")
        >>> asyncio.run(work())
        7
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failures: dict[str, str] = {}

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Begin a task that outlives the call.

        Args:
            coroutine: what it does. Its main-thread calls are answered while somebody serves the notebook's thread,
                and refused with a RuntimeError otherwise.
            name: for people, who find it in ``%reyn doctor`` if it fails. A new task of a name takes the failure of
                the last one away.

        Raises:
            RuntimeError: called from elsewhere than a handler, `start`, `close` or another task of the engine.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            coroutine.close()
            raise RuntimeError(
                f"the task {name!r} cannot begin here: call services.spawn from a coroutine of the category "
                "(a handler, start or close), which runs on the engine"
            ) from None
        label = shorten(" ".join(str(name).split()), _LONGEST_NAME)
        self._failures.pop(label, None)
        context = Context()
        context.run(package_imports)
        task = loop.create_task(_contained(coroutine, current_category()), name=label, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    @property
    def problems(self) -> dict[str, str]:
        """Name → what a task failed with, in a sentence."""
        return dict(self._failures)

    @property
    def is_idle(self) -> bool:
        """True if no task is under way."""
        return not self._tasks

    async def close(self) -> None:
        """Cancel every task, and wait until they have cleaned up, within bounds."""
        loop = asyncio.get_running_loop()
        tasks = [task for task in self._tasks if task.get_loop() is loop]
        self._tasks.difference_update(set(self._tasks) - set(tasks))  # of a loop that is gone
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            for task in left:
                name = task.get_name()
                self._failures[name] = f"the task {name!r} did not end within {CLOSE_SECONDS:g} seconds"

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            name = task.get_name()
            self._failures[name] = f"the task {name!r} failed: {type(error).__name__}: {text_of(error)}"


async def _contained(coroutine: Coroutine[Any, Any, T], category: str | None) -> T:
    """Keep what would end the engine's thread inside the task, which is its category's and of no call."""
    try:
        with category_scope(category):
            return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"{type(error).__name__} was raised in a task: {error}") from error
