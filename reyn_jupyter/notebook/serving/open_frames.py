"""The stored tables that are open in this kernel, for all views of it.

Invariants: a table is looked up and loaded on a thread, once for all who ask at the same time, and goes on when one of
them gives up; at most a few stay loaded, the ones used last.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from reyn_jupyter.notebook.render.dataframe_view import ColumnStyle, column_style
from reyn_jupyter.notebook.serving.operation import OperationContext, OperationError
from reyn_jupyter.notebook.serving.viewed_frames import PREFIX, VIEWED
from reyn_jupyter.outputs.blob import BlobKindError, open_blob
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError
from reyn_jupyter.outputs.blobs.random_access import is_local
from reyn_jupyter.outputs.content import BlobNotFoundError, BlobStoreError
from reyn_jupyter.outputs.table.frame_table import FrameTable
from reyn_jupyter.outputs.table.held_table import HeldTable
from reyn_jupyter.outputs.table.open_table import OpenedTable

T = TypeVar("T")
_KEPT = 16  # tables that stay open; what is not loaded takes little
_LOADED = 2  # of which so many stay loaded
_BYTES = 1_000_000_000  # and take so much memory together, the last one used excepted
_PREPARED = 512_000_000  # bytes of JSON; a larger table is loaded only when it has to be
_FIRST = 0.4  # seconds that the first windows have for themselves


class OpenFrames:
    """The tables that are open in this kernel, the last one used at the end. Used on the engine's loop alone."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, OpenedTable] = OrderedDict()
        self._styles: dict[str, dict[int, ColumnStyle]] = {}
        self._opening: dict[str, asyncio.Task[OpenedTable]] = {}
        self._loading: dict[str, asyncio.Task[FrameTable]] = {}
        self._preparing: set[asyncio.Task[None]] = set()
        self._telling: dict[str, list[Callable[[float, float, str], None]]] = {}

    async def opened(self, context: OperationContext, blob_id: str) -> OpenedTable | HeldTable:
        """Return the table of a blob, which is looked up anew each time: it may have been collected meanwhile.

        A frame in memory that a view shows (`viewed_frames`) has an id of its own kind.
        """
        if blob_id.startswith(PREFIX):
            return self._viewed(blob_id)
        store = context.session.parts.services.blobs
        if store is None or not is_local(store):
            raise OperationError(
                "this session keeps no blobs that can be read in parts",
                'Open a session with store="files" or store="memory".',
            )
        try:
            blob = open_blob(store, blob_id)
        except (BlobNotFoundError, InvalidBlobIdError):
            self._forget(blob_id)
            raise OperationError(
                "this blob was removed",
                "Run the cell again that made it; %reyn blobs lists what there is.",
            ) from None
        known = self._tables.get(blob.id)
        if known is not None:
            self._tables.move_to_end(blob.id)
            return known
        found = await _shared(self._opening, blob.id, lambda: OpenedTable(store, blob))
        self._tables[blob.id] = found
        self._styles[blob.id] = {}
        self._shrink()
        return found

    def _viewed(self, frame_id: str) -> HeldTable:
        held = VIEWED.find(frame_id)
        if held is None:
            self._forget(frame_id)
            raise OperationError("this frame is held no longer", "Run the cell again that showed it.")
        return held

    async def loaded(self, context: OperationContext, opened: OpenedTable | HeldTable) -> FrameTable:
        """The table in memory, read once for all who ask at the same time; each of them hears of the progress."""
        if opened.table is not None:
            return opened.table
        listeners = self._telling.setdefault(opened.id, [])
        listeners.append(context.progress)
        try:
            return await self._load(opened)
        finally:
            listeners.remove(context.progress)
            if not listeners:
                self._telling.pop(opened.id, None)

    def prepare(self, opened: OpenedTable | HeldTable) -> None:
        """Begin to load a table that somebody looks at, so that the first sort or filter need not wait for it."""
        if opened.table is None and self.is_light(opened):
            task = asyncio.get_running_loop().create_task(self._prepared(opened))
            self._preparing.add(task)
            task.add_done_callback(self._preparing.discard)

    @staticmethod
    def is_light(opened: OpenedTable | HeldTable) -> bool:
        """Return whether all of a table is in memory, or is loaded without being asked for."""
        return opened.table is not None or opened.size <= _PREPARED

    async def _prepared(self, opened: OpenedTable | HeldTable) -> None:
        await asyncio.sleep(_FIRST)
        with suppress(OperationError):  # whoever needs the table hears of it
            await self._load(opened)

    async def _load(self, opened: OpenedTable | HeldTable) -> FrameTable:
        def tell(done: float, total: float, note: str) -> None:
            for listener in list(self._telling.get(opened.id, ())):
                listener(done, total, note)

        made = await _shared(self._loading, opened.id, lambda: opened.load(tell))
        self._shrink()
        return made

    def style(self, opened: OpenedTable | HeldTable, column: int) -> ColumnStyle:
        styles = self._styles.setdefault(opened.id, {})
        if column not in styles:
            values, _ = opened.head(column)
            spec = opened.columns[column].spec
            if isinstance(opened, HeldTable) and opened.has_decimals(column):
                spec = {**spec, "items": "Decimal"}
            styles[column] = column_style(values, spec)
        return styles[column]

    def _forget(self, blob_id: str) -> None:
        self._tables.pop(blob_id, None)
        self._styles.pop(blob_id, None)

    def _shrink(self) -> None:
        """Let go of the tables that were used longest ago."""
        while len(self._tables) > _KEPT:
            self._forget(next(iter(self._tables)))
        held = [each for each in reversed(self._tables.values()) if each.table is not None]
        size = 0
        for place, each in enumerate(held):
            size += each.table.size if each.table is not None else 0
            if place and (place >= _LOADED or size > _BYTES):
                self._forget(each.blob.id)


async def _shared(tasks: dict[str, asyncio.Task[T]], key: str, work: Callable[[], T]) -> T:
    """Do work on a thread, once for all who ask for it at the same time; it goes on when one of them gives up."""
    task = tasks.get(key)
    if task is None:
        task = tasks[key] = asyncio.get_running_loop().create_task(asyncio.to_thread(work))
        task.add_done_callback(lambda done: (tasks.pop(key, None), done.cancelled() or done.exception()))
    try:
        return await asyncio.shield(task)
    except BlobKindError as error:
        raise OperationError(str(error), "Look at it as a tree or as text.") from None
    except (BlobStoreError, OSError) as error:
        raise OperationError(str(error), "Run the cell again that made it.") from None


def frames_of(context: OperationContext) -> OpenFrames:
    found: OpenFrames = context.caches.setdefault("frames", OpenFrames())
    return found
