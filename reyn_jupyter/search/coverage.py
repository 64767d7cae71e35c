"""Track which actions of a catalog have a vector, and keep the index over all of them.

Invariant: a coverage belongs to one snapshot and one key, and says nothing of others. Going from one snapshot to the
next costs what moved: records are kept by slice, known vectors by digest, words by record. From some size on the
matrix of vectors lies in a file that has no name any more, mapped into memory, so that it costs the process none.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.snapshot import CatalogSnapshot, CategorySlice
from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.vector_store import VectorStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.embedders.embedder import Embedder
    from reyn_jupyter.search.ranking.index import Index

    Floats = NDArray[np.float32]

MAPPED = 32_000_000  # bytes of vectors from which on they are mapped from a file
CHUNK = 10_000  # rows that are copied at a time
GROWTH = 1.25  # how much the vectors must have grown for an index to take them over while a build goes on


@dataclass
class Coverage:
    """The records of a snapshot, and which of their digests have a vector under `key`; None has none."""

    snapshot: CatalogSnapshot
    key: str | None
    records: tuple[Record, ...]
    known: set[str]
    vectors: int = 0
    index: Index | None = None
    words: Index | None = None
    indexed: int = 0

    def __post_init__(self) -> None:
        self.count()

    def count(self) -> None:
        self.vectors = sum(record.digest in self.known for record in self.records) if self.known else 0

    @property
    def missing(self) -> dict[str, Record]:
        """Return the records without a vector, by digest: equal ones once."""
        return {record.digest: record for record in self.records if record.digest not in self.known}


class CoverageCache:
    """Keeps the coverage of the newest snapshot, and the index over it. Safe for threads; every call may take long.

    Args:
        store: where the vectors are now.
        trouble: hears of a store that cannot be read; what it held then counts as missing.
    """

    def __init__(
        self, store: Callable[[], VectorStore], trouble: Callable[[IndexStoreError], object]
    ) -> None:
        self.now: Coverage | None = None
        self._store = store
        self._trouble = trouble
        self._lock = threading.RLock()
        self._slices: dict[str, tuple[CategorySlice, tuple[Record, ...]]] = {}
        self._matrix: tuple[str, dict[str, int], Floats] | None = None
        self._index: tuple[Embedder | None, Index] | None = None
        self._stale = False

    def forget(self) -> None:
        """Look everything up again at the next call: vectors went, or another class is in force."""
        with self._lock:
            self.now = self._matrix = None

    def grew(self, vectors: int = 0) -> None:
        """Note that vectors were added to the store; about `vectors` actions have one now."""
        self._stale = True
        if self.now is not None:
            self.now.vectors = min(max(self.now.vectors, vectors), len(self.now.records))

    def bring(self, snapshot: CatalogSnapshot, key: str | None) -> Coverage:
        """Return the coverage of this snapshot."""
        with self._lock:
            now = self.now
            if now is None or not _same(now.snapshot, snapshot) or now.key != key:
                records = self._records(snapshot)
                before = now.known if now is not None and now.key == key else set()
                self._stale = False  # before the look: what is stored meanwhile is for the next one
                known = self._known(key, {record.digest for record in records} - before) if key else set()
                self.now = now = Coverage(snapshot, key, records, known | before)
            elif self._stale and key is not None:
                self._stale = False
                now.known |= self._known(key, now.missing)
                now.count()
            return now

    def index(self, coverage: Coverage, embedder: Embedder | None, *, final: bool = True) -> Index:
        """Return the index over a coverage; while a build goes on (not `final`), a slightly older one may do."""
        with self._lock:
            enough = coverage.indexed * (1.0 if final else GROWTH)
            stale = coverage.vectors > enough or (coverage.indexed == 0 and coverage.vectors > 0)
            if coverage.index is None or stale:
                coverage.index = self._built(coverage, embedder)
                coverage.indexed = coverage.vectors
            return coverage.index

    def _built(self, coverage: Coverage, embedder: Embedder | None) -> Index:
        from reyn_jupyter.search.ranking.index import Index

        vectors = self._vectors(coverage) if coverage.vectors else None
        if self._index is not None and self._index[0] is embedder:
            made = self._index[1].updated(coverage.records, vectors)
        else:
            made = Index(coverage.records, vectors, embedder)
        self._index = (embedder, made)
        return made

    def words(self, coverage: Coverage, index: Index) -> Index:
        """Return the same index without vectors, for a request that cannot be embedded."""
        with self._lock:
            if coverage.words is None:
                coverage.words = index.updated(coverage.records)
            return coverage.words

    def _records(self, snapshot: CatalogSnapshot) -> tuple[Record, ...]:
        found: dict[str, tuple[CategorySlice, tuple[Record, ...]]] = {}
        for part in snapshot.visible:
            name = part.category.name
            held = self._slices.get(name)
            found[name] = held if held is not None and held[0] is part else (part, _records_of(part))
        self._slices = found
        return tuple(record for _, records in found.values() for record in records)

    def _known(self, key: str, digests: Iterable[str]) -> set[str]:
        try:
            return self._store().find_digests(key, digests)
        except IndexStoreError as error:
            self._trouble(error)
            return set()

    def _vectors(self, coverage: Coverage) -> Floats | None:
        """Return one row a record, in their order; NaN where there is no vector yet."""
        import numpy as np

        assert coverage.key is not None
        rows: dict[str, int] = {}
        again: list[tuple[int, int]] = []  # the rows of equal records, and the row of the first of them
        for row, record in enumerate(coverage.records):
            if record.digest in coverage.known and (first := rows.setdefault(record.digest, row)) != row:
                again.append((row, first))
        there: set[str] = set()
        try:
            dimension = self._store().dimension(coverage.key)
            made = self._room((len(coverage.records), dimension or 0))
            for digests, found in self._pieces(coverage.key, rows) if dimension else ():
                there.update(digests)
                made[[rows[digest] for digest in digests]] = found
            for start in range(0, len(again), CHUNK):
                chunk = again[start : start + CHUNK]
                made[[row for row, _ in chunk]] = made[[first for _, first in chunk]]
        except IndexStoreError as error:
            self._trouble(error)
            there.clear()
        # A file that broke was set aside, and another process may have cleared it.
        coverage.known -= rows.keys() - there
        coverage.count()
        if not there:
            return None
        self._matrix = (coverage.key, {digest: rows[digest] for digest in there}, made)
        made = made.view()
        made.flags.writeable = False
        return np.asarray(made)

    def _pieces(self, key: str, rows: Iterable[str]) -> Iterable[tuple[list[str], Floats]]:
        """Return the wanted vectors, those of the matrix before from there, the others from the store."""
        wanted = set(rows)
        if self._matrix is not None and self._matrix[0] == key:
            _, places, before = self._matrix
            shared = iter([digest for digest in wanted if digest in places])
            while chunk := list(islice(shared, CHUNK)):
                yield chunk, before[[places[digest] for digest in chunk]]
            wanted = wanted - places.keys()
        yield from self._store().read(key, wanted)

    def _room(self, shape: tuple[int, int]) -> Floats:
        import numpy as np

        path = self._store().path
        if shape[0] * shape[1] * 4 < MAPPED or path is None:
            return np.full(shape, np.nan, np.float32)
        try:
            with tempfile.TemporaryFile(dir=path.parent) as file:  # the mapping outlives name and handle
                # Written, not mapped: a full disk is then an error, where touching a page would end the process.
                blank = np.full((CHUNK, shape[1]), np.nan, np.float32)
                for start in range(0, shape[0], CHUNK):
                    file.write(blank[: shape[0] - start].data)
                file.flush()
                mapped: Floats = np.memmap(file, np.float32, "r+", shape=shape)
            return mapped
        except OSError:
            return np.full(shape, np.nan, np.float32)


def _same(left: CatalogSnapshot, right: CatalogSnapshot) -> bool:
    """Return whether two snapshots offer the very same slices, whatever runs their actions."""
    return left is right or (
        len(left.visible) == len(right.visible)
        and all(a is b for a, b in zip(left.visible, right.visible, strict=True))
    )


def _records_of(part: CategorySlice) -> tuple[Record, ...]:
    category = part.category.name
    return tuple(
        Record(action.name.text, action.name.text, action.description, action.input_schema, category)
        for action in part.actions
    )
