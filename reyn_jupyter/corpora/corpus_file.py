"""The file of one corpus: its documents, their passages, and what was indexed. SQLite with a write-ahead log.

Invariants: a document and its passages change in one transaction, so that a process that is killed at any moment
leaves whole documents, none of them twice; `verify` proves it. A file that came with a cloned workspace is data: it is
used only if its tables are exactly those of this module, without a view, trigger or index of its own making, and what
is read of it is bounded and checked by type. One that is damaged is set aside and made anew; one of another program, or
of a newer version, is left as it is and refused.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from reyn_jupyter.corpora.document import UNITS, Stamp, headings
from reyn_jupyter.corpora.passages import LONGEST, Passage
from reyn_jupyter.search.metadata import is_fact
from reyn_jupyter.support.files.plain_files import is_moment, parse_json
from reyn_jupyter.support.files.sqlite import (
    FileFormat,
    ForeignFileError,
    NewerFileError,
    connect,
    has_layout,
    prepare,
    remove_companions,
    transaction,
)
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten

NAME = "corpus.sqlite"
PATIENCE = 30.0  # seconds that a writer waits for another one
MOST = 2_000_000  # passages that are read
LONGEST_PATH = 4_096
_FACTS = 20_000  # characters of the facts of one document or passage
_TABLES = (
    "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE documents (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, facts TEXT NOT NULL, note TEXT NOT NULL,
        size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL, inode INTEGER NOT NULL)""",
    """CREATE TABLE passages (
        id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        place INTEGER NOT NULL, heading TEXT NOT NULL, unit TEXT NOT NULL, first INTEGER NOT NULL,
        last INTEGER NOT NULL, facts TEXT NOT NULL, digest BLOB NOT NULL, text TEXT NOT NULL,
        UNIQUE (document, place))""",
)
FORMAT = FileFormat(0x52E7A1D4, (_TABLES,), ("auto_vacuum = INCREMENTAL",))


class CorpusError(Exception):
    """A corpus cannot serve. The message says why; `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class CorpusFacts:
    """What is known of a corpus as a whole.

    Attributes:
        paths: what was indexed: files, folders and patterns.
        about: what it holds, in the words of whoever made it.
        indexed: when it was last brought up to date, in seconds since the epoch; 0 while that was never finished.
        revision: moves with every change.
    """

    paths: tuple[str, ...] = ()
    about: str = ""
    indexed: float = 0.0
    revision: int = 0


@dataclass(frozen=True)
class StoredDocument:
    """A document of a corpus: its row, its path, its kind, its facts, and the state of its file when it was read."""

    id: int
    path: str
    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    stamp: Stamp = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage of a corpus.

    Attributes:
        id: its row; a passage that was read anew has another one.
        document: where it stands.
        place: its number in it, from 0.
        passage: what it says.
        digest: of what is embedded of it, in hex.
    """

    id: int
    document: StoredDocument
    place: int
    passage: Passage
    digest: str


class CorpusFile:
    """The documents and passages of one corpus; safe for threads and processes.

    Args:
        path: of the file, made with the first document.

    Example:
        >>> file = CorpusFile(Path("corpus.sqlite"))                                         # doctest: +SKIP
        >>> file.replace("a.md", "text", {}, "", (0, 0, 0, 0), [Passage("Hello.")])          # doctest: +SKIP
        >>> [each.passage.text for each in file.passages()]                                  # doctest: +SKIP
        ['Hello.']
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.note = ""  # what happened to a file that could not be read
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    # Reading

    def facts(self) -> CorpusFacts:
        """Return what is known of the corpus. Raises CorpusError."""
        said = dict(self._rows("SELECT key, value FROM facts WHERE length(value) <= 1000000"))
        paths = _json(said.get("paths"), list)
        indexed = _json(said.get("indexed"), float | int)
        revision = _json(said.get("revision"), int)
        return CorpusFacts(
            tuple(str(path)[:LONGEST_PATH] for path in paths or () if isinstance(path, str)),
            shorten(printable(str(said.get("about", ""))), 300),
            float(indexed) if is_moment(indexed) else 0.0,
            revision or 0,
        )

    def counts(self) -> tuple[int, int]:
        """Return the number of documents and of passages. Raises CorpusError."""
        ((documents, passages),) = self._rows(
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)"
        ) or [(0, 0)]
        return int(documents), int(passages)

    def documents(self) -> list[StoredDocument]:
        """Return the documents, by path. Raises CorpusError."""
        rows = self._rows(
            "SELECT id, path, kind, facts, note, size, modified, changed, inode FROM documents "
            "WHERE typeof(path) = 'text' AND length(path) <= ? AND length(facts) <= ? ORDER BY path",
            LONGEST_PATH,
            _FACTS,
        )
        return [
            StoredDocument(
                int(row[0]),
                row[1],
                str(row[2])[:20],
                _facts(row[3]),
                shorten(printable(str(row[4])), 200),
                cast("Stamp", tuple(each if isinstance(each, int) else 0 for each in row[5:9])),
            )
            for row in rows
        ]

    def passages(self, document: int | None = None) -> list[StoredPassage]:
        """Return the passages, by document and place, or those of one document. Raises CorpusError."""
        documents = {each.id: each for each in self.documents() if document in (None, each.id)}
        rows = self._rows(
            "SELECT id, document, place, heading, unit, first, last, facts, hex(digest), text FROM passages "
            "WHERE typeof(text) = 'text' AND length(text) <= ? AND length(digest) = 32 AND length(facts) <= ? "
            "AND length(heading) <= ? AND (? IS NULL OR document = ?) ORDER BY document, place LIMIT ?",
            *(2 * LONGEST, _FACTS, _FACTS, document, document, MOST),
        )
        known: dict[str, tuple[str, ...]] = {}
        found = []
        for row in rows:
            if row[1] not in documents or row[4] not in UNITS:
                continue
            heading = known.get(row[3])
            if heading is None:
                heading = known[row[3]] = _heading(row[3])
            first, last = (each if isinstance(each, int) else 1 for each in row[5:7])
            passage = Passage(row[9], heading, row[4], first, last, _facts(row[7]))
            place = row[2] if isinstance(row[2], int) else 0
            found.append(StoredPassage(int(row[0]), documents[row[1]], place, passage, row[8].lower()))
        return found

    def digests(self) -> dict[str, tuple[int, int]]:
        """Return for each text that is to have a vector a passage that has it, and its length. Raises CorpusError."""
        rows = self._rows(
            "SELECT hex(digest), min(id), length(text) FROM passages WHERE length(digest) = 32 GROUP BY digest"
        )
        return {digest.lower(): (int(row), int(length)) for digest, row, length in rows}

    def texts(self, rows: Sequence[int]) -> dict[str, str]:
        """Return what is embedded of some passages, by digest; only what really has that digest. Raises CorpusError."""
        marks = ",".join("?" * len(rows))
        found = self._rows(
            f"SELECT heading, text FROM passages WHERE id IN ({marks}) AND typeof(text) = 'text'",  # noqa: S608
            *rows,
        )
        passages = [Passage(text, _heading(heading)) for heading, text in found]
        return {passage.digest: passage.embedded for passage in passages}

    def verify(self) -> tuple[str, ...]:
        """Read everything, and return what is wrong, one line a fault: nothing is lost, nothing is there twice."""
        faults = [str(line) for (line,) in self._rows("PRAGMA integrity_check(5)") if line != "ok"]
        faults += [f"row {row[1]} of {row[0]} stands alone" for row in self._rows("PRAGMA foreign_key_check")]
        gaps = self._rows(
            "SELECT path, count(passages.id), max(place) FROM documents LEFT JOIN passages ON document = documents.id "
            "GROUP BY documents.id HAVING count(passages.id) <> coalesce(max(place) + 1, 0)"
        )
        return (*faults, *(f"{path}: {count} passages up to number {last}" for path, count, last in gaps))

    # Writing

    def replace(
        self,
        path: str,
        kind: str,
        facts: Mapping[str, Any],
        note: str,
        stamp: Stamp,
        passages: Sequence[Passage],
    ) -> None:
        """Put a document in the place of what the corpus has of its path, all of it or nothing. Raises CorpusError."""
        with self._writing() as db:
            db.execute("DELETE FROM documents WHERE path = ?", (path,))
            row = db.execute(
                "INSERT INTO documents (path, kind, facts, note, size, modified, changed, inode) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (path, kind, _dumped(facts), note, stamp[0], stamp[1], stamp[2], stamp[3]),
            ).lastrowid
            db.executemany(
                "INSERT INTO passages (document, place, heading, unit, first, last, facts, digest, text) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        row,
                        place,
                        json.dumps(each.heading),
                        each.unit,
                        each.first,
                        each.last,
                        _dumped(each.facts),
                        bytes.fromhex(each.digest),
                        each.text,
                    )
                    for place, each in enumerate(passages)
                ),
            )

    def remove(self, paths: Iterable[str]) -> None:
        """Take documents out. Raises CorpusError."""
        with self._writing() as db:
            db.executemany("DELETE FROM documents WHERE path = ?", [(path,) for path in paths])

    def note_facts(self, **facts: Any) -> None:
        """Keep facts about the corpus: `paths`, `about`, `indexed`. Raises CorpusError."""
        with self._writing() as db:
            for key, value in facts.items():
                kept = value if key == "about" else json.dumps(value)
                db.execute("INSERT OR REPLACE INTO facts (key, value) VALUES (?, ?)", (key, kept))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make the changes of a block one transaction: on the disk together, and faster. Raises CorpusError."""
        with self._writing():
            yield

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @property
    def size(self) -> int:
        """Return the size on disk in bytes, the log included."""
        size = 0
        for end in ("", "-wal"):
            with suppress(OSError):
                size += self.path.with_name(f"{self.path.name}{end}").stat().st_size
        return size

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what a query gives; nothing where no file is there yet: to look makes none."""
        with self._guarded(), self._lock:
            if self._connection is None and not self.path.exists():
                return []
            return self._opened().execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._guarded(), self._lock:
            db = self._opened()
            if db.in_transaction:  # within a batch
                yield db
                return
            with transaction(db):
                yield db
                db.execute(
                    "INSERT INTO facts (key, value) VALUES ('revision', '1') "
                    "ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
                )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if "malformed" in str(error) or "not a database" in str(error):
                self._set_aside(str(error))
                raise CorpusError(
                    f"The corpus file was damaged ({error}).", f"{self.note} Index it again."
                ) from error
            raise CorpusError(f"The corpus cannot be used: {error}.", _way_out(str(error))) from error
        except (OverflowError, UnicodeError) as error:
            raise CorpusError(f"The corpus cannot be used: {error}.") from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._open()
            except sqlite3.DatabaseError as error:
                if "not a database" not in str(error) and "malformed" not in str(error):
                    raise
                self._set_aside(str(error))
                self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        db = connect(self.path, PATIENCE)
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            prepare(db, FORMAT, PATIENCE)
            if not has_layout(db, FORMAT):
                raise ForeignFileError
        except ForeignFileError:
            db.close()
            raise CorpusError(
                f"{self.path} is a database of another making, so it is not used.",
                "Drop the corpus, or move the file away; then index again.",
            ) from None
        except NewerFileError as error:
            db.close()
            raise CorpusError(
                f"{self.path} was written by a newer reyn-jupyter (format {error.version}; this one reads "
                f"{FORMAT.version}).",
                "Update reyn-jupyter, or drop the corpus and index again.",
            ) from None
        except BaseException:
            db.close()
            raise
        return db

    def _set_aside(self, why: str) -> None:
        """Give a damaged file another name; the next use makes a new one."""
        self.close()
        aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        with suppress(OSError):
            self.path.replace(aside)
        remove_companions(self.path)
        self.note = f"The file could not be read ({why}); it lies in {aside.name} now."


def _dumped(facts: Mapping[str, Any]) -> str:
    text = json.dumps(dict(facts), ensure_ascii=False) if facts else "{}"
    return text if len(text) <= _FACTS else "{}"


def _facts(text: object) -> Mapping[str, Any]:
    if text == "{}":
        return _NOTHING
    said = _json(text, dict) or {}
    return {str(key)[:60]: value for key, value in said.items() if is_fact(value)}


_NOTHING: Mapping[str, Any] = {}


def _heading(text: object) -> tuple[str, ...]:
    return headings(tuple(each for each in _json(text, list) or () if isinstance(each, str)))


def _json(text: object, kind: Any) -> Any:
    """Return a JSON value of a kind; None for anything else."""
    try:
        value = parse_json(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _way_out(why: str) -> str:
    if "full" in why.lower() or "space" in why.lower():
        return "Make room on the disk, then index again: what was indexed is kept."
    if "readonly" in why.lower() or "unable to open" in why.lower() or "permission" in why.lower():
        return "Make the folder .reyn/state of the workspace writable."
    return "Try again."
