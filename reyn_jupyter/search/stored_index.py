"""The vectors of one index over records of any kind, out of a store that several indexes may share.

Invariants: what the store holds already is not embedded again, and each batch is stored before the next one begins.
A batch is embedded in a thread that nothing has to wait for: an interrupt ends the build at once, and a build in a
thread goes on after a script's last line, where pools of threads take nothing any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import TYPE_CHECKING

from reyn_jupyter.search import index_builder
from reyn_jupyter.search.embedding_texts import join_vectors, texts_of
from reyn_jupyter.search.index_builder import batch_size, first_work, store_key
from reyn_jupyter.search.index_state import BuildProgress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.embedders.embedder import Embedder
    from reyn_jupyter.search.vector_store import VectorStore

    Floats = NDArray[np.float32]


def embed_records(
    records: Sequence[Record],
    embedder: Embedder,
    store: VectorStore,
    name: str,
    tell: Callable[[BuildProgress], object] = lambda progress: None,
) -> Floats | None:
    """Return one row a record, shape (n, d), NaN where the model has no numbers for it; None where it has none at all.

    Args:
        records: in their order.
        embedder: makes what is missing.
        store: gives what there is, and keeps what is made.
        name: of the index, which lets go of the records that it had before and has no longer.
        tell: hears before the first batch, after every one, and every two seconds meanwhile.

    Raises:
        IndexStoreError: the store cannot serve.
    """
    key = store_key(embedder)
    by_digest = {record.digest: record for record in records}
    store.claim(name, key, by_digest)
    known = store.find_digests(key, by_digest)
    missing = [record for digest, record in by_digest.items() if digest not in known]
    embedder.expect(len(missing))
    began, done, total = time.monotonic(), 0, len(missing)

    def report() -> None:
        doing = "" if done else first_work(embedder)
        tell(BuildProgress(done, total, time.monotonic() - began, doing=doing, noun="record"))

    if missing:
        report()
    while done < total:
        batch = missing[done : done + batch_size(embedder, done)]
        work = _begin_to_embed(embedder, batch)
        while not wait([work], index_builder.BEAT).done:
            report()
        store.add(key, work.result())
        done += len(batch)
        report()
    store.keep_only(name, key, by_digest)
    return read_vectors(records, key, store)


def _begin_to_embed(embedder: Embedder, batch: Sequence[Record]) -> Future[dict[str, Floats]]:
    work: Future[dict[str, Floats]] = Future()
    context = copy_context()

    def embed() -> None:
        try:
            work.set_result(context.run(_embed, embedder, batch))
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            work.set_exception(error)

    threading.Thread(target=embed, name="reyn-embed", daemon=True).start()
    return work


def read_vectors(records: Sequence[Record], key: str, store: VectorStore) -> Floats | None:
    """Return one row a record, shape (n, d), NaN where it has no vector; None where the store knows none of this key.

    Args:
        records: in their order.
        key: of the embedder, see `store_key`.

    Raises:
        IndexStoreError: the store cannot serve.
    """
    import numpy as np

    dimension = store.dimension(key)
    if dimension is None:
        return None
    rows = np.full((len(records), dimension), np.nan, np.float32)
    places: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        places.setdefault(record.digest, []).append(place)
    for digests, vectors in store.read(key, places):
        for digest, vector in zip(digests, vectors, strict=True):
            rows[places[digest]] = vector
    return rows


def _embed(embedder: Embedder, records: Iterable[Record]) -> dict[str, Floats]:
    """Return one vector a record, by digest; a record whose texts the model has no numbers for is left out."""
    import numpy as np

    texts = {record.digest: texts_of(record) for record in records}
    every = list(dict.fromkeys(text for group in texts.values() for text in group))
    rows = dict(zip(every, embedder.embed(every), strict=True))
    found = {
        digest: join_vectors(np.stack([rows[text] for text in group])) for digest, group in texts.items()
    }
    return {digest: vector for digest, vector in found.items() if np.isfinite(vector).all() and vector.any()}
