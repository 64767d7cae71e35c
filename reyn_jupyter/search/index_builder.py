"""Brings the vectors of a catalog up to date: only what is missing, in batches, by one process at a time.

Invariants: a batch is stored before the next one begins, so an interrupt or a kill costs one batch at most and the
next build goes on where this one stood; the lock goes with the process that holds it, however that ends. Nothing
here blocks the loop: a local model embeds in a thread, a provider is awaited.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.embedding_texts import VIEWS, join_vectors, texts_of
from reyn_jupyter.search.index_state import BuildHolder, BuildProgress, BusyError
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.locks import open_lock_file, release, try_lock, wait_for_lock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.embedders.embedder import Embedder

    Floats = NDArray[np.float32]

LOCK = "actions.lock"
ACTIONS = "actions"  # the index of a workspace's actions in its store
FIRST_BATCH = 4  # records: as soon as one action has a vector, search is on
_LOOK = 0.02  # seconds within which another one that looks who builds has looked
_POLL = 0.2  # seconds between two looks at a lock that another process holds


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
        tell: hears of every batch, and once of another process that is waited for.
        wait: whether to wait for another process that builds the same index.

    Raises:
        BusyError: another process builds, and `wait` is False.
        IndexStoreError: what was made cannot be kept.
        ModelError: the provider failed for good; what was made before is kept.
    """
    began = time.monotonic()
    async with _locked(store, wait, lambda holder: tell(BuildProgress(0, len(records), 0.0, holder))):
        key = store_key(embedder)
        if records:  # before it looks: what is there must not go meanwhile
            await asyncio.to_thread(store.claim, index, key, list(records))
        known = await asyncio.to_thread(store.find_digests, key, list(records))
        missing = [record for digest, record in records.items() if digest not in known]
        size = embedder.batch
        embedder.expect(len(missing))
        tell(BuildProgress(0, len(missing)))
        done = 0
        while done < len(missing):
            batch = missing[done : done + (size if done else min(size, FIRST_BATCH))]
            vectors = await _vectors(embedder, batch)
            await asyncio.to_thread(store.add, key, vectors)
            done += len(batch)
            tell(BuildProgress(done, len(missing), time.monotonic() - began))
        if len(known) + len(missing) == len(records):
            await asyncio.to_thread(store.keep_only, index, key, records)
        return len(missing)


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
    if store.path is None or not (lock := store.path.with_name(LOCK)).is_file():
        return None
    try:
        descriptor = open_lock_file(lock, flags=os.O_RDONLY)
    except OSError:
        return None
    try:
        # Another one that only looks holds the lock for an instant.
        return None if wait_for_lock(descriptor, _LOOK, required=False) else _named(lock)
    finally:
        release(descriptor)


@asynccontextmanager
async def _locked(store: VectorStore, wait: bool, told: Callable[[BuildHolder], None]) -> AsyncIterator[None]:
    """Hold the lock of a store's index; one in memory has none, and needs none."""
    if store.path is None:
        yield
        return
    lock = store.path.with_name(LOCK)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_lock_file(lock)
    except OSError as error:
        raise IndexStoreError(
            f"{lock}: {error.strerror or error}.", "Make the folder .reyn/state of the workspace writable."
        ) from error
    try:
        tries = 0
        # On a file system without locks two builds do the same work, and neither harms the other.
        while not try_lock(descriptor, required=False):
            if tries == 1:  # the first time it may have been somebody who only looked: see `holder`
                if not wait:
                    raise BusyError(_named(lock))
                told(_named(lock))
            tries += 1
            await asyncio.sleep(_POLL)
        with suppress(OSError):  # a full disk: who holds the lock is then not told, and it holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        yield
    finally:
        release(descriptor)


def _named(lock: Path) -> BuildHolder:
    try:
        said = json.loads(lock.read_text("utf-8"))
        return BuildHolder(int(said["pid"]), float(said["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return BuildHolder()
