"""SQLite files that threads and processes share: connected, recognised, made.

Invariants: a file is used only when it is empty or says that it is of the wanted format; a foreign or a newer one is
never changed. What a file says of itself is read in one transaction and written in one with its tables, so that no
process ever sees a file half set up. Whoever meets another writer waits for a while before it fails, for the switch to
the write-ahead log too, which SQLite itself does not wait for. Transactions are begun by hand. No journal beside a
database leads SQLite to a file elsewhere.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reyn_jupyter.support.files.bounded_reading import open_regular

_LAYOUT = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master LIMIT 1000"
_BETWEEN = 0.02  # seconds between two tries
# Begins the header of a journal, and ends the name of a super-journal.
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


@dataclass(frozen=True)
class FileFormat:
    """A kind of file of ours.

    Attributes:
        program: SQLite's `application_id`: whose file it is.
        migrations: the statements that lead from one version to the next. The file's `user_version` is the number of
            those that it has been through; a released one never changes.
        layout: pragmas that only act before the first table, ``"page_size = 16384"``.
    """

    program: int
    migrations: tuple[tuple[str, ...], ...]
    layout: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """The version that files are brought to."""
        return len(self.migrations)


class ForeignFileError(Exception):
    """The file is a database of another program."""


class NewerFileError(Exception):
    """The file was written by a newer version of this program, `version`."""

    def __init__(self, version: int) -> None:
        super().__init__(f"format {version}")
        self.version = version


def connect(path: Path | None, patience: float, *, query: str = "") -> sqlite3.Connection:
    """Return a connection that any thread may use, one at a time.

    Args:
        path: of the file, created with mode 0600 if it is missing; None for a database in memory.
        patience: seconds that a writer waits for another one.
        query: how a file is opened that is only read: "mode=ro" or "immutable=1".

    Raises:
        sqlite3.DatabaseError: the journal beside the database would lead SQLite to another file.
    """
    name = ":memory:"
    if path is not None:
        _check_journal(path.with_name(f"{path.name}-journal"))
        name = f"{path.absolute().as_uri()}?{query}" if query else str(path)
        if not query:
            _create_private(path)
    return sqlite3.connect(
        name, timeout=patience, isolation_level=None, check_same_thread=False, uri=bool(query)
    )


def _create_private(path: Path) -> None:
    """Create an empty file with mode 0600 unless the path exists.

    SQLite gives its log files the mode of the database. If the file cannot be created, SQLite reports why.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _check_journal(journal: Path) -> None:
    """Refuse a rollback journal that names another file.

    A journal can end with the name of a super-journal, and SQLite deletes that file after the rollback, wherever it is.
    Only a transaction over attached databases makes such a journal, so none of ours is one.

    Raises:
        sqlite3.DatabaseError: the journal names another file, or is not a regular file.
    """
    try:
        with open_regular(journal) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(_JOURNAL_MAGIC)))
            names_another = file.read() == _JOURNAL_MAGIC
    except FileNotFoundError:
        return
    except OSError as error:
        raise sqlite3.DatabaseError(f"malformed: {journal.name}: {error.strerror or error}") from None
    if names_another:
        raise sqlite3.DatabaseError(f"malformed: {journal.name} names another file")


def remove_companions(path: Path) -> None:
    """Remove the logs and the journal of a database that was moved away: they would be applied to the next one."""
    for end in ("-journal", "-wal", "-shm"):
        with suppress(OSError):
            path.with_name(f"{path.name}{end}").unlink()


def prepare(db: sqlite3.Connection, file_format: FileFormat, patience: float) -> None:
    """Make a file's tables, or bring it up to the version of its format; several processes may try at once.

    Raises:
        ForeignFileError: the file is another program's; nothing was changed.
        NewerFileError: the file is of a newer version; nothing was changed.
        sqlite3.DatabaseError: it is no database, is locked, or cannot be written.
    """
    version = version_of(db, file_format)
    if version == 0:
        for pragma in file_format.layout:
            db.execute(f"PRAGMA {pragma}")
    if version < file_format.version:
        with transaction(db):
            for statements in file_format.migrations[
                _version(db, file_format) :
            ]:  # another may have been first
                for statement in statements:
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {file_format.program}")
            db.execute(f"PRAGMA user_version = {file_format.version}")
    # After the first tables: the file's header names its owner before there is a log beside it.
    use_write_ahead_log(db, patience)
    db.execute("PRAGMA foreign_keys = ON")


def has_layout(db: sqlite3.Connection, file_format: FileFormat) -> bool:
    """Return whether a file of the format's version has its tables and indexes, to the letter, and nothing else.

    A file that somebody else made may say that it is of a format, and have views or triggers that never end.
    """
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in (each for migration in file_format.migrations for each in migration):
            fresh.execute(statement)
        return sorted(fresh.execute(_LAYOUT)) == sorted(db.execute(_LAYOUT))


def version_of(db: sqlite3.Connection, file_format: FileFormat) -> int:
    """Return the version of a file, 0 for an empty one. Raises as `prepare` does."""
    with transaction(db, "DEFERRED"):
        return _version(db, file_format)


def _version(db: sqlite3.Connection, file_format: FileFormat) -> int:
    program, version = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
    )
    if program != file_format.program and (
        program or db.execute("SELECT 1 FROM sqlite_master LIMIT 1000").fetchone()
    ):
        raise ForeignFileError
    if version > file_format.version:
        raise NewerFileError(version)
    return version


@contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
    """Run a block as one transaction: all of it is kept, or nothing.

    Args:
        kind: "IMMEDIATE" locks out other writers from the start, "DEFERRED" with the first write.
    """
    db.execute(f"BEGIN {kind}")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk may have ended the transaction already
            db.execute("ROLLBACK")
        raise


def use_write_ahead_log(db: sqlite3.Connection, patience: float) -> None:
    """Switch to the write-ahead log: a transaction that committed outlives a kill, and readers wait for no writer.

    After a power cut the last transactions may be gone, whole ones each.

    Raises:
        sqlite3.OperationalError: the file is still locked after `patience` seconds, or cannot be written.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_BETWEEN)
    db.execute("PRAGMA synchronous = NORMAL")
