"""Run tasks on the loop of their caller, from the same data that another process would get."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from reyn_jupyter.executors.executor import Task, TaskWorker
from reyn_jupyter.support.files.scratch import Scratch


class LocalExecutor:
    """Runs tasks in this process. Good for what waits (hosted models), and to find out whether something can be sent.

    Args:
        slots: tasks at a time.
    """

    def __init__(self, slots: int = 4) -> None:
        if slots < 1:
            raise ValueError(f"slots={slots}: give a whole number from 1 on")
        self.slots = slots
        self._scratch = Scratch()
        self._workers: dict[str, TaskWorker] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(slots)

    async def submit(self, task: Task) -> Any:
        """See `Executor.submit`; there is no worker that could be lost."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._free = loop, asyncio.Semaphore(self.slots)
        async with self._free:
            worker = self._workers.get(task.spec.digest)
            if worker is None:
                worker = self._workers[task.spec.digest] = task.spec.open(self._scratch.folder())
            return await worker.run(task.payload)

    def close(self) -> None:
        """See `Executor.close`."""
        while self._workers:
            self._workers.popitem()[1].close()
        self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
