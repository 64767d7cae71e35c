"""The vectors of actions, kept between sessions in one SQLite file.

Invariant: what a row refers to is whole. Vectors stand inside the rows, a batch is one transaction, and one file
serves several processes (write-ahead log); so a process that is killed at any moment leaves every batch that it
finished, and nothing of the one under way. `verify` proves it. A vector is found by the digest of its record and
by the key of what made it, so equal records share one, and a record that gets an old text back finds its old one.
Several indexes share a file, each under a name: what one stands on, or said that it is about to make, no other drops.

No text of an action is stored, only digests and vectors. A file that cannot be read is set aside and made anew; one
of another program, or of a newer version, is left as it is and refused.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reyn_jupyter.search.database import NAME, IndexStoreError, open_file, read_only, way_out
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.files.sqlite import remove_companions, transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

T = TypeVar("T")
_CHUNK = 500  # rows that are looked up with one query
_STRETCH = 2_000  # rows that are read with one query, about 3 MB
_SPARSE = 8  # rows of a table for each that is wanted, up to which to read all of them is faster
_SLACK = 2e-3  # of a squared length
_SPARE = 10_000  # vectors of texts that are gone, which are kept in case they come back


@dataclass(frozen=True)
class VectorStoreCheck:
    """The result of `VectorStore.verify`: vectors looked at, and what is wrong, one line a fault."""

    vectors: int
    faults: tuple[str, ...]


class VectorStore:
    """Vectors by digest, for every key; safe for threads and processes.

    Args:
        folder: where the file is, made with the first vector; None keeps all of it in memory.
        name: of the file.

    Example:
        >>> store = VectorStore(None)
        >>> import numpy as np
        >>> store.add("model", {"00" * 32: np.array([1.0, 0.0], np.float32)})
        >>> store.find_digests("model", ["00" * 32, "11" * 32])
        {'0000000000000000000000000000000000000000000000000000000000000000'}
    """

    def __init__(self, folder: PlainFolder | Path | None, name: str = NAME) -> None:
        self.folder = PlainFolder(folder) if isinstance(folder, Path) else folder
        self.path = self.folder.path / name if self.folder is not None else None
        self.note = ""  # what happened to a file that could not be read
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def find_digests(self, key: str, digests: Iterable[str]) -> set[str]:
        """Return which of these digests have a vector. Raises IndexStoreError."""
        return {digest.hex() for rows in self._rows(key, digests, "digest") for (digest,) in rows}

    def read(self, key: str, digests: Iterable[str]) -> Iterator[tuple[list[str], Floats]]:
        """Return the vectors that there are, in pieces: digests, and as many rows. Raises IndexStoreError."""
        import numpy as np

        for rows in filter(None, self._rows(key, digests, "digest, vector")):
            found = np.frombuffer(b"".join([vector for _, vector in rows]), "<f4").reshape(len(rows), -1)
            sound = _of_length_one(found)
            if not sound.all():  # one vector of huge numbers would move the mean that all are compared by
                self._drop(key, [rows[place][0] for place in np.flatnonzero(~sound)])
                rows, found = [rows[place] for place in np.flatnonzero(sound)], found[sound]
            yield [digest.hex() for digest, _ in rows], found

    def dimension(self, key: str) -> int | None:
        """Return how many numbers a vector of this key has; None where it has none yet. Raises IndexStoreError."""
        found = self._reading(
            lambda db: db.execute("SELECT dimension FROM models WHERE key = ?", (key,)).fetchone()
        )
        return int(found[0]) if found else None

    def counts(self) -> dict[str, int]:
        """Return how many vectors each key has. Raises IndexStoreError."""
        query = (
            "SELECT key, count(digest) FROM models LEFT JOIN vectors ON model = id GROUP BY key ORDER BY key"
        )
        return {
            str(key): int(count)
            for key, count in self._reading(lambda db: db.execute(query).fetchall()) or ()
        }

    def add(self, key: str, vectors: Mapping[str, Floats]) -> None:
        """Keep a batch of vectors, all of it or nothing.

        Raises:
            IndexStoreError: they have another number of dimensions than those of this key, or cannot be written.
        """
        if not vectors:
            return
        dimension = len(next(iter(vectors.values())))
        rows = [(bytes.fromhex(digest), vector.astype("<f4").tobytes()) for digest, vector in vectors.items()]
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO models (key, dimension) VALUES (?, ?)", (key, dimension))
            model, held = db.execute("SELECT id, dimension FROM models WHERE key = ?", (key,)).fetchone()
            if held != dimension or any(len(vector) != 4 * dimension for _, vector in rows):
                raise IndexStoreError(
                    f"{key} gave vectors of {dimension} numbers, and those kept before have {held}.",
                    "If the model behind the name changed: %reyn embeddings clear, then build again.",
                )
            db.executemany(
                "INSERT OR REPLACE INTO vectors (model, digest, vector) VALUES (?, ?, ?)",
                [(model, digest, vector) for digest, vector in rows],
            )

    def _drop(self, key: str, digests: Iterable[bytes]) -> None:
        """Forget vectors that broke on the disk, so that they are made again; where nothing can be written, stay."""
        which = "DELETE FROM vectors WHERE digest = ? AND model = (SELECT id FROM models WHERE key = ?)"
        with suppress(IndexStoreError), self._writing() as db:
            db.executemany(which, [(digest, key) for digest in digests])

    def claim(self, index: str, key: str, digests: Iterable[str]) -> None:
        """Note which vectors an index stands on or is about to add, so that no other index drops them.

        Args:
            index: the name of the index.
            key: of the vectors' model.
            digests: of the records; those that were claimed before stay claimed.

        Raises:
            IndexStoreError: it cannot be written.
        """
        with self._writing() as db:
            _claim(db, index, key, digests)

    def keep_only(self, index: str, key: str, live: Collection[str]) -> None:
        """Let go of what an index claimed and does not need any more, and drop what no index needs: vectors of keys
        that none claims at once, those of this key once there are many.

        Raises:
            IndexStoreError: the vectors cannot be read or written.
        """
        with self._writing() as db:
            db.execute("DELETE FROM indexes WHERE name = ? AND key <> ?", (index, key))
            owner, held = _claim(db, index, key, live)
            past = [(owner, digest) for digest in held - {bytes.fromhex(digest) for digest in live}]
            db.executemany("DELETE FROM uses WHERE owner = ? AND digest = ?", past)
            db.execute("DELETE FROM models WHERE key NOT IN (SELECT key FROM indexes)")
            used = {row for (row,) in db.execute(_USED, (key,))}
            total = db.execute("SELECT count(*) FROM vectors JOIN models ON model = id WHERE key = ?", (key,))
            surplus = total.fetchone()[0] - 2 * len(used) - _SPARE
            if surplus > 0:
                oldest = "SELECT vectors.rowid, digest FROM vectors JOIN models ON model = id WHERE key = ? ORDER BY 1"
                rows = db.execute(oldest, (key,)).fetchall()
                gone = islice(((row,) for row, digest in rows if digest not in used), surplus)
                db.executemany("DELETE FROM vectors WHERE rowid = ?", list(gone))
        self._shrink()

    def drop_index(self, index: str) -> None:
        """Let go of all that an index claimed; its vectors go with the next `keep_only` of another one. Raises
        IndexStoreError."""
        with self._writing() as db:
            db.execute("DELETE FROM indexes WHERE name = ?", (index,))

    def clear(self) -> int:
        """Drop every vector; how many there were. A damaged file goes, too. Raises IndexStoreError."""
        if self.path is not None and not self.path.exists() and self._connection is None:
            return 0
        count = sum(self.counts().values())
        with self._writing() as db:
            db.execute("DELETE FROM models")
            db.execute("DELETE FROM indexes")
        self._shrink()
        return count

    def _shrink(self) -> None:
        """Give the room of what was dropped back to the disk."""
        with self._guarded(), self._lock:
            if self._connection is not None:
                # `execute` would take one step of it, and one step frees one page.
                self._connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")

    def verify(self) -> VectorStoreCheck:
        """Read everything: the file's own structure, and for each vector its length, its numbers and its norm."""
        import numpy as np

        faults: list[str] = []
        looked = 0
        for (line,) in self._reading(lambda db: db.execute("PRAGMA integrity_check(5)").fetchall()) or ():
            faults += [] if line == "ok" else [str(line)]
        query = "SELECT digest, vector, dimension FROM vectors LEFT JOIN models ON model = id"
        for digest, vector, dimension in self._reading(lambda db: db.execute(query).fetchall()) or ():
            looked += 1
            if dimension is None or len(digest) != 32 or len(vector) != 4 * dimension:
                faults.append(f"{digest.hex()[:12]}: {len(vector)} bytes")
            elif not _of_length_one(np.frombuffer(vector, "<f4")[None])[0]:
                faults.append(f"{digest.hex()[:12]}: not of length 1")
        return VectorStoreCheck(looked, tuple(faults[:20]))

    @property
    def size(self) -> int:
        """Return the size on disk in bytes."""
        if self.path is None:
            return 0
        size = 0
        for file in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            with suppress(FileNotFoundError):  # the last of several processes takes the log away
                size += file.stat().st_size
        return size

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _rows(self, key: str, digests: Iterable[str], columns: str) -> Iterator[list[tuple[Any, ...]]]:
        """Return whole vectors, in pieces. Where a good part of the table is wanted, it is read from end to end."""
        wanted = list(dict.fromkeys(map(bytes.fromhex, digests)))
        query = (
            f"SELECT {columns} FROM vectors {{}} JOIN models ON model = id "  # noqa: S608 - nothing foreign goes in
            "WHERE key = ? AND length(vector) = 4 * dimension AND {}"
        )
        last = self._reading(lambda db: db.execute("SELECT max(rowid) FROM vectors").fetchone()[0] or 0) or 0
        if last >= _SPARSE * len(wanted):
            for first in range(0, len(wanted) if last else 0, _CHUNK):
                chunk = wanted[first : first + _CHUNK]
                marks = ",".join("?" * len(chunk))
                yield self._fetched(query.format("", f"digest IN ({marks})"), key, *chunk)
            return
        held = frozenset(wanted)
        for first in range(0, last + 1, _STRETCH):  # what is added or replaced meanwhile stands behind `last`
            between = query.format("NOT INDEXED", "vectors.rowid >= ? AND vectors.rowid < ?")
            rows = self._fetched(between, key, first, first + _STRETCH)
            yield [row for row in rows if row[0] in held]

    def _fetched(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._reading(lambda db: db.execute(query, values).fetchall()) or []

    def _reading(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what `work` reads; None where no file is there yet: to look makes none."""
        with self._guarded(), self._lock:
            if self._connection is None and self.path is not None and not self.path.exists():
                return None
            return work(self._opened())

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._guarded(), self._lock, transaction(self._opened()) as db:
            yield db

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            damaged = "malformed" in str(error) or "not a database" in str(error)
            if damaged:
                self._set_aside(str(error))
                raise IndexStoreError(f"{self.path} was damaged ({error}).", self.note) from error
            raise IndexStoreError(f"{self.path}: {error}.", way_out(str(error))) from error
        except OSError as error:
            raise IndexStoreError(f"{self.path}: {error.strerror or error}.", way_out(str(error))) from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        if self.folder is None or self.path is None:
            self._connection = open_file(None)
            return self._connection
        try:
            self.folder.make()
            self._connection = open_file(self.path)
        except (OSError, sqlite3.OperationalError):
            if os.access(self.path.parent, os.W_OK) or not self.path.is_file():
                raise
            self._connection = read_only(self.path)
        except sqlite3.DatabaseError as error:
            self._set_aside(str(error))
            self._connection = open_file(self.path)
        return self._connection

    def _set_aside(self, why: str) -> None:
        """Give a damaged file another name; the next use makes a new one."""
        self.close()
        if self.path is None or not self.path.exists():
            return
        aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        try:
            self.path.replace(aside)
        except OSError as error:
            raise IndexStoreError(f"{self.path} is damaged ({why}) and cannot be moved: {error}.") from error
        remove_companions(self.path)
        self.note = f"The index could not be read ({why}). It lies in {aside.name} now and is built afresh."


_USED = "SELECT digest FROM uses JOIN indexes ON owner = id WHERE key = ?"


def _claim(db: sqlite3.Connection, index: str, key: str, digests: Iterable[str]) -> tuple[int, set[bytes]]:
    """Claim what is not claimed yet; the row of the index, and the digests that it held before."""
    db.execute("INSERT OR IGNORE INTO indexes (name, key) VALUES (?, ?)", (index, key))
    (owner,) = db.execute("SELECT id FROM indexes WHERE name = ? AND key = ?", (index, key)).fetchone()
    held = {digest for (digest,) in db.execute("SELECT digest FROM uses WHERE owner = ?", (owner,))}
    new = {bytes.fromhex(digest) for digest in digests} - held
    db.executemany("INSERT INTO uses (owner, digest) VALUES (?, ?)", [(owner, digest) for digest in new])
    return int(owner), held


def _of_length_one(vectors: Floats) -> NDArray[np.bool_]:
    """Return which rows are of finite numbers and of length 1, as all are that were stored."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.abs(np.einsum("nd,nd->n", vectors, vectors) - 1) < _SLACK)
