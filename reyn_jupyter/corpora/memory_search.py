"""Memories by words and meaning: the same ranking that actions and corpora have, over what is remembered.

Invariants: what did not change is neither read nor embedded again; where nothing embeds, words rank, and the answer
says so; a memory of which no vector could be made is found by its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.memory.memory_store import MemoryFacts
from reyn_jupyter.runtime.access.session_access import EmbedderAccess
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.ranking.tokens import cut_note, cut_query
from reyn_jupyter.search.stored_index import read_vectors
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.ranking.index import Index

    Floats = NDArray[np.float32]

FILE = "memories.sqlite"
_NAME = "memories"
_BATCH = 64
_SECONDS = 20.0  # that embedding what is new may take before a search goes on by words


@dataclass(frozen=True)
class FoundMemory:
    """A memory that was found, and its score in [0, 1]."""

    facts: MemoryFacts
    score: float


class MemorySearch:
    """Searches the memories of one workspace.

    Args:
        folder: where vectors are kept; None keeps them in memory.
        embedder: the session's.
    """

    def __init__(self, folder: PlainFolder | None, embedder: EmbedderAccess) -> None:
        self._folder = folder
        self._embedder = embedder
        self._vectors: VectorStore | None = None
        self._held: tuple[tuple[Any, ...], Index, dict[str, MemoryFacts], bool] | None = None
        self._lock = asyncio.Lock()

    async def search(
        self, memories: Sequence[MemoryFacts], query: str, limit: int
    ) -> tuple[list[FoundMemory], str, str]:
        """Return the memories that fit best, how they were ranked ("hybrid" or "lexical"), and what is to be said.

        Args:
            memories: all that may be found.
        """
        async with self._lock:
            index, by_id, has_vectors, note = await self._index(memories)
        vector = None
        if has_vectors:
            try:
                vector = (await self._embedder.embed([cut_query(query)]))[0]
            except ActionError as error:
                note = f"Ranked by words alone: {error.message}"
        if vector is not None and vector.shape != (index.dimension,):
            vector, note = None, "Ranked by words alone: the model gives vectors of another length now."
        ranked = await asyncio.to_thread(index.search, cut_query(query), limit, vector=vector)
        found = [FoundMemory(by_id[each], round(score, 4)) for each, score in ranked]
        said = " ".join(filter(None, (cut_note(query), note)))
        return found, "hybrid" if vector is not None else "lexical", said

    async def _index(
        self, memories: Sequence[MemoryFacts]
    ) -> tuple[Index, dict[str, MemoryFacts], bool, str]:
        from reyn_jupyter.search.ranking.index import Index

        by_id = {f"{each.layer}/{each.slug}": each for each in memories}
        key = self._embedder.key
        state = (key, tuple((each, facts.digest) for each, facts in by_id.items()))
        before = self._held
        if before is not None and before[0] == state:
            return before[1], by_id, before[3], "" if before[3] else _words_alone(key)
        records = await asyncio.to_thread(lambda: [_record(each, facts) for each, facts in by_id.items()])
        rows, note = (None, _words_alone(None)) if key is None else await self._rows(records, key)
        index = await asyncio.to_thread(
            lambda: Index(records, rows) if before is None else before[1].updated(records, rows)
        )
        if not note or key is None:  # else the next search tries again
            self._held = (state, index, by_id, rows is not None)
        return index, by_id, rows is not None, note

    async def _rows(self, records: Sequence[Record], key: str) -> tuple[Floats | None, str]:
        """Return a vector a record, NaN where there is none, and what is to be said of it."""
        note = ""
        try:
            store = await asyncio.to_thread(self._store)
            digests = {record.digest: record for record in records}
            known = await asyncio.to_thread(store.find_digests, key, digests)
            missing = [record for digest, record in digests.items() if digest not in known]
            if missing:
                await asyncio.to_thread(store.claim, _NAME, key, digests)
                self._embedder.expect(len(missing))
                note = await self._embed(store, key, missing)
                if not note:
                    await asyncio.to_thread(store.keep_only, _NAME, key, digests)
            return await asyncio.to_thread(read_vectors, records, key, store), note
        except (IndexStoreError, OSError) as error:
            return None, f"Ranked by words alone: {error}"

    def _store(self) -> VectorStore:
        if self._folder is None:
            self._vectors = self._vectors or VectorStore(None)
            return self._vectors
        self._folder.check()
        if FILE in self._folder.entries()[1]:
            raise OSError(f"{FILE} is no regular file")
        self._vectors = self._vectors or VectorStore(self._folder.path, FILE)
        return self._vectors

    async def _embed(self, store: VectorStore, key: str, missing: Sequence[Record]) -> str:
        """Embed what is missing; return why not all of it is, "" where it is."""
        import numpy as np

        done = 0
        try:
            async with asyncio.timeout(_SECONDS):
                for first in range(0, len(missing), _BATCH):
                    batch = missing[first : first + _BATCH]
                    rows = await self._embedder.embed([f"{each.name}\n{each.description}" for each in batch])
                    found = {
                        record.digest: np.asarray(row / max(float(np.linalg.norm(row)), 1e-12), np.float32)
                        for record, row in zip(batch, rows, strict=True)
                        if np.isfinite(row).all() and row.any()
                    }
                    await asyncio.to_thread(store.add, key, found)
                    done += len(batch)
        except TimeoutError:
            left = count(len(missing) - done, "memory", "memories")
            return f"{left} are ranked by words alone so far; the next search goes on."
        except ActionError as error:
            return f"Ranked by words where no meaning is known: {error.message}"
        return ""

    async def close(self) -> None:
        """Close the file of vectors."""
        if self._vectors is not None:
            self._vectors.close()
            self._vectors = None
        self._held = None


def _words_alone(key: str | None) -> str:
    return "Ranked by words alone: nothing embeds here." if key is None else ""


def _record(name: str, facts: MemoryFacts) -> Record:
    memory = facts.memory
    return Record(
        name,
        memory.name,
        f"{memory.description}\n{memory.body}",
        metadata={"type": memory.type, "layer": memory.layer},
    )
