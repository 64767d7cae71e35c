"""Brings the vectors of a catalog up to date: only what is missing, in batches, by one process at a time.

Invariants: a batch is stored before the next one begins, so an interrupt or a kill costs one batch at most and the
next build goes on where this one stood; the lock goes with the process that holds it, however that ends. Nothing
here blocks the loop: a local model embeds in a thread, a provider is awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from reyn_jupyter.search.build_lock import build_lock, lock_holder
from reyn_jupyter.search.embedding_texts import VIEWS, join_vectors, texts_of
from reyn_jupyter.search.index_state import BuildHolder, BuildProgress
from reyn_jupyter.search.vector_store import VectorStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.embedders.embedder import Embedder

    Floats = NDArray[np.float32]

LOCK = "actions.lock"
ACTIONS = "actions"  # the index of a workspace's actions in its store
FIRST_BATCH = 4  # records: as soon as one action has a vector, search is on
BEAT = 2.0  # seconds between two words on a build in which nothing moves, as while a model is loaded


def store_key(embedder: Embedder) -> str:
    """Return the key of stored vectors: the model that made them, and how texts become one vector."""
    return f"{embedder.key}#{VIEWS}"


async def build(
    store: VectorStore,
    embedder: Embedder,
    records: Mapping[str, Record],
    *,
    index: str = ACTIONS,
    tell: Callable[[BuildProgress], None] = lambda progress: None,
    wait: bool = True,
) -> int:
    """Embed and store what has no vector yet; how many that were.

    Args:
        records: by digest, those that are to have a vector.
        index: the name of the index that needs them, among those of the store.
        tell: hears of every batch, every two seconds while none is done, and once of another process that is waited
            for.
        wait: whether to wait for another process that builds the same index.

    Raises:
        BusyError: another process builds, and `wait` is False.
        IndexStoreError: what was made cannot be kept.
        ModelError: the provider failed for good; what was made before is kept.
    """
    async with build_lock(
        store.folder, LOCK, wait, lambda holder: tell(BuildProgress(0, len(records), 0.0, holder))
    ):
        key = store_key(embedder)
        if records:  # before it looks: what is there must not go meanwhile
            await asyncio.to_thread(store.claim, index, key, list(records))
        known = await asyncio.to_thread(store.find_digests, key, list(records))
        missing = [record for digest, record in records.items() if digest not in known]
        embedder.expect(len(missing))
        began, done = time.monotonic(), 0

        def report() -> None:
            doing = first_work(embedder) if missing and not done else ""
            tell(BuildProgress(done, len(missing), time.monotonic() - began, doing=doing))

        report()
        async with _beating(report):
            while done < len(missing):
                batch = missing[done : done + batch_size(embedder, done)]
                vectors = await _vectors(embedder, batch)
                await asyncio.to_thread(store.add, key, vectors)
                done += len(batch)
                report()
        if len(known) + len(missing) == len(records):
            await asyncio.to_thread(store.keep_only, index, key, records)
        return len(missing)


def batch_size(embedder: Embedder, done: int) -> int:
    """Return how many records the next batch has: the first few are to be there soon."""
    return embedder.batch if done else min(embedder.batch, FIRST_BATCH)


def first_work(embedder: Embedder) -> str:
    """Return what goes on until the first batch is done, in words; "" where nothing has to be loaded for it."""
    if embedder.is_remote:
        return "asking the provider"
    return "" if embedder.is_loaded else "loading the embedding model"


@asynccontextmanager
async def _beating(beat: Callable[[], None]) -> AsyncIterator[None]:
    """Call a function every two seconds while the block runs."""

    async def go_on() -> None:
        while True:
            await asyncio.sleep(BEAT)
            beat()

    beats = asyncio.create_task(go_on())
    try:
        yield
    finally:
        beats.cancel()


async def _vectors(embedder: Embedder, batch: list[Record]) -> dict[str, Floats]:
    """Return one vector a record, by digest."""
    import numpy as np

    texts = [texts_of(record) for record in batch]
    flat = [text for several in texts for text in several]
    rows = await embedder.embed_async(flat)
    found: dict[str, Floats] = {}
    place = 0
    for record, several in zip(batch, texts, strict=True):
        vector = join_vectors(rows[place : place + len(several)])
        # What a model has no numbers for is found by its words.
        if np.isfinite(vector).all() and vector.any():
            found[record.digest] = vector
        place += len(several)
    return found


def holder(store: VectorStore) -> BuildHolder | None:
    """Return who builds the index of this store now; None where nobody does."""
    return None if store.folder is None else lock_holder(store.folder, LOCK)
