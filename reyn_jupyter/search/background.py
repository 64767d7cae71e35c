"""An index that is brought up to date in the background.

Invariant: a build keeps no session alive that nobody holds any more. It holds the index by a weak reference, and
between two steps nothing that leads back to it; when the index goes, the build ends with the batch under way.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from reyn_jupyter.search.database import StoreError
from reyn_jupyter.search.progress import BusyError, Progress
from reyn_jupyter.search.store import VectorStore

if TYPE_CHECKING:
    from reyn_jupyter.search.building import AnyEmbedder
    from reyn_jupyter.search.records import Record

FEW = 64  # actions without a vector that a first turn may wait for


@dataclass(frozen=True)
class Todo:
    """What a build has to do. `number` is that of the snapshot it covers; `slow` says not to wait for it at all."""

    number: int
    store: VectorStore
    embedder: AnyEmbedder
    records: dict[str, Record]
    missing: int
    slow: bool


class Indexed(Protocol):
    """What is brought up to date."""

    def todo(self, after: int) -> Todo | None:
        """What is to be done for a newer snapshot than number `after`; None where there is none. May take long."""

    def prepare(self) -> None:
        """Make what a first search would wait for. May take long."""

    def told(self, progress: Progress | None) -> None:
        """A batch was stored; None: the build is over."""

    def stood(self, trouble: str) -> None:
        """How the last build ended: "" where all went well."""

    def in_memory(self, error: StoreError) -> VectorStore:
        """Go on without a disk that cannot serve."""


class Work:
    """A build that goes on.

    Args:
        index: held weakly.

    Attributes:
        seen: set once nobody needs to wait any more: all of a small catalog has vectors, or the first of a large one.
    """

    def __init__(self, index: Indexed) -> None:
        self.seen = asyncio.Event()
        # Not within the context of whoever began it, which holds the settings of a run, and by them the session.
        self.task = asyncio.get_running_loop().create_task(
            _catch_up(weakref.ref(index), self.seen), context=contextvars.Context()
        )

    @property
    def going_on(self) -> bool:
        return not self.task.done() and self.task.get_loop() is asyncio.get_running_loop()

    async def wait(self, seconds: float) -> None:
        """Wait until `seen` is set, for some seconds at most."""
        if self.going_on:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.seen.wait()


async def _catch_up(held: weakref.ref[Indexed], seen: asyncio.Event) -> None:
    trouble, number = "", 0
    try:
        while (todo := await _next(held, number)) is not None:
            number = todo.number
            if todo.slow:
                seen.set()
            if todo.missing:
                await _build(held, seen, todo)
            await _prepare(held, seen)
    except BusyError as error:
        trouble = str(error)
    except Exception as error:  # noqa: BLE001 - nobody waits for it; the state tells, and search goes on by words
        trouble = f"the index could not be brought up to date: {error}"
    finally:
        seen.set()
        if (index := held()) is not None:
            index.told(None)
            index.stood(trouble)


async def _next(held: weakref.ref[Indexed], number: int) -> Todo | None:
    index = held()
    return await asyncio.to_thread(index.todo, number) if index is not None else None


async def _prepare(held: weakref.ref[Indexed], seen: asyncio.Event) -> None:
    """Nobody waits for it: who searches meanwhile waits for what is left of it."""
    if (index := held()) is not None:
        index.told(None)
        seen.set()
        await asyncio.to_thread(index.prepare)


async def _build(held: weakref.ref[Indexed], seen: asyncio.Event, todo: Todo) -> None:
    from reyn_jupyter.search.building import build

    def tell(progress: Progress) -> None:
        index = held()
        if index is None:
            raise asyncio.CancelledError
        index.told(progress)
        if progress.done and todo.missing > FEW:
            seen.set()

    try:
        await build(todo.store, todo.embedder, todo.records, tell=tell, wait=False)
    except StoreError as error:
        index = held()
        if index is None:
            return
        store = index.in_memory(error)
        del index
        await build(store, todo.embedder, todo.records, tell=tell, wait=False)
