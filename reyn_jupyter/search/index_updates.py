"""An index that is brought up to date in the background.

Invariant: a build keeps no session alive that nobody holds any more. It holds the index by a weak reference, and
between two steps nothing that leads back to it; when the index goes, the build ends with the batch under way.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.index_state import BuildProgress, BusyError
from reyn_jupyter.search.vector_store import VectorStore

if TYPE_CHECKING:
    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.embedders.embedder import Embedder

FEW = 64  # actions without a vector that a search may wait for


@dataclass(frozen=True)
class BuildTask:
    """The work of a build.

    Attributes:
        number: that of the snapshot it covers.
        missing: how many of the `records` have no vector.
        usable: whether enough have one for a search to go ahead meanwhile.
    """

    number: int
    store: VectorStore
    embedder: Embedder
    records: dict[str, Record]
    missing: int
    usable: bool


class UpdatableIndex(Protocol):
    """An index that is brought up to date."""

    @property
    def newest(self) -> int:
        """The number of the newest snapshot that is wanted."""

    def todo(self, after: int) -> BuildTask | None:
        """Return the work for a newer snapshot than number `after`; None where there is none. May take long."""

    def prepare(self) -> None:
        """Make what a first search would wait for. May take long."""

    def note_progress(self, progress: BuildProgress | None) -> None:
        """Note that a batch was stored; None: the build is over."""

    def stood(self, trouble: str) -> None:
        """Note how the last build ended: "" where all went well."""

    def in_memory(self, error: IndexStoreError) -> VectorStore:
        """Go on without a disk that cannot serve."""


class BackgroundBuild:
    """A build that goes on.

    Args:
        index: held weakly.
    """

    def __init__(self, index: UpdatableIndex) -> None:
        self._usable = _Usable()
        # Not within the context of whoever began it, which holds the settings of a run, and by them the session.
        self.task = asyncio.get_running_loop().create_task(
            _catch_up(weakref.ref(index), self._usable), context=contextvars.Context()
        )

    @property
    def going_on(self) -> bool:
        return not self.task.done() and self.task.get_loop() is asyncio.get_running_loop()

    async def wait(self, number: int) -> None:
        """Wait until a search of snapshot `number` can go ahead.

        It can when all of a small catalog has vectors, or the first of a large one, or when the build ended.
        """
        if self.going_on:
            await self._usable.wait(number)


class _Usable:
    """The newest snapshot, by its number, that a search need not wait for any more."""

    def __init__(self) -> None:
        self._number = 0.0
        self._moved = asyncio.Event()

    def reach(self, number: float) -> None:
        self._number = max(self._number, number)
        self._moved.set()

    async def wait(self, number: int) -> None:
        while self._number < number:
            self._moved.clear()
            await self._moved.wait()


async def _catch_up(held: weakref.ref[UpdatableIndex], usable: _Usable) -> None:
    trouble, number = "", 0
    try:
        while (todo := await _next(held, number)) is not None:
            number = todo.number
            if todo.usable:
                usable.reach(number)
            if todo.missing:
                await _build(held, usable, todo)
            await _prepare(held, usable, number)
    except BusyError as error:
        trouble = str(error)
    except Exception as error:  # noqa: BLE001 - nobody waits for it; the state tells, and search goes on by words
        trouble = f"the index could not be brought up to date: {error}"
    finally:
        if (index := held()) is not None:
            index.note_progress(None)
            index.stood(trouble)
        usable.reach(math.inf)


async def _next(held: weakref.ref[UpdatableIndex], number: int) -> BuildTask | None:
    while (index := held()) is not None:
        newest = index.newest
        todo = await asyncio.to_thread(index.todo, number)
        if todo is not None or index.newest == newest:
            return todo
        # A newer one came after the thread had looked, and began no build of its own, since this one goes on.
        del index
    return None


async def _prepare(held: weakref.ref[UpdatableIndex], usable: _Usable, number: int) -> None:
    """Prepare the first search. Nobody waits for it: who searches meanwhile waits for what is left of it."""
    if (index := held()) is not None:
        index.note_progress(None)
        usable.reach(number)
        await asyncio.to_thread(index.prepare)


async def _build(held: weakref.ref[UpdatableIndex], usable: _Usable, todo: BuildTask) -> None:
    from reyn_jupyter.search.index_builder import build

    def tell(progress: BuildProgress) -> None:
        index = held()
        if index is None:
            raise asyncio.CancelledError
        index.note_progress(progress)
        if progress.done and todo.missing > FEW:
            usable.reach(todo.number)

    try:
        await build(todo.store, todo.embedder, todo.records, tell=tell, wait=False)
    except IndexStoreError as error:
        index = held()
        if index is None:
            return
        store = index.in_memory(error)
        del index
        await build(store, todo.embedder, todo.records, tell=tell, wait=False)
