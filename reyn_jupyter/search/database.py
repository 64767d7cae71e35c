"""The file of the index's vectors: its format, and what to do when it cannot serve."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from reyn_jupyter.support.files.sqlite import (
    FileFormat,
    ForeignFileError,
    NewerFileError,
    connect,
    has_layout,
    prepare,
)

NAME = "actions.sqlite"
_LAST_ROW = 1 << 53
PATIENCE = 30.0  # seconds that a writer waits for another one
_TABLES = (
    "CREATE TABLE models (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL)",
    """CREATE TABLE vectors (
        model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
        digest BLOB NOT NULL, vector BLOB NOT NULL, UNIQUE (model, digest))""",
)
# Which vectors an index stands on, so that several indexes share one file.
_USES = (
    """CREATE TABLE indexes (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL, UNIQUE (name, key))""",
    """CREATE TABLE uses (
        owner INTEGER NOT NULL REFERENCES indexes (id) ON DELETE CASCADE,
        digest BLOB NOT NULL, PRIMARY KEY (owner, digest)) WITHOUT ROWID""",
)
# Pages of 16,384 bytes hold ten vectors of 384 numbers, where pages of 4,096 would hold two.
FORMAT = FileFormat(0x52E7A1D0, (_TABLES, _USES), ("page_size = 16384", "auto_vacuum = INCREMENTAL"))


class IndexStoreError(Exception):
    """The file cannot serve. The message says why; `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def open_file(path: Path | None) -> sqlite3.Connection:
    """Open the file, made when it is not there; None keeps it in memory.

    Raises:
        IndexStoreError: it is another program's, or of a newer version.
        sqlite3.DatabaseError: it is no database, is locked, or cannot be written.
    """
    db = connect(path, PATIENCE)
    try:
        prepare(db, FORMAT, PATIENCE)
        _check(db)
    except ForeignFileError:
        db.close()
        raise IndexStoreError(
            f"{path} is a database of another program.", "Move it away; the index is then built anew."
        ) from None
    except NewerFileError as error:
        db.close()
        raise IndexStoreError(
            f"{path} was written by a newer reyn-jupyter (format {error.version}; this one reads "
            f"{FORMAT.version}).",
            f"Update reyn-jupyter, or remove {NAME}; the index is then built anew.",
        ) from None
    except BaseException:
        db.close()
        raise
    return db


def read_only(path: Path) -> sqlite3.Connection:
    """Open a file in a folder where nothing can be written, the log beside it neither: it is read as it stands."""
    db = connect(path, PATIENCE, query="immutable=1")
    try:
        _check(db)
    except BaseException:
        db.close()
        raise
    return db


def _check(db: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError for a file that says it is ours and is not made so, or that takes no more rows."""
    if not has_layout(db, FORMAT):
        raise sqlite3.DatabaseError("its tables are not those of an index")
    for table in ("models", "vectors", "indexes"):
        last = None
        with suppress(sqlite3.DatabaseError):  # a page that broke is told when it is wanted
            (last,) = db.execute(f"SELECT max(rowid) FROM {table}").fetchone()  # noqa: S608 - the names are ours
        if last is not None and not -_LAST_ROW < last < _LAST_ROW:
            raise sqlite3.DatabaseError(f"the rows of its table {table} are numbered to the end")


def way_out(why: str) -> str:
    if "full" in why.lower() or "space" in why.lower():
        return "Make room on the disk, then %reyn embeddings build."
    if "readonly" in why.lower() or "unable to open" in why.lower() or "permission" in why.lower():
        return "Make the folder .reyn/state of the workspace writable."
    return "Try again; %reyn embeddings clear starts afresh."
