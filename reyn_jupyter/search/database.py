"""One SQLite file that is ours: opened, recognised, made.

Invariant: a file is used only when it is empty or says that it is ours and of a format known here; a foreign or a newer
one is never changed.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from reyn_jupyter.outputs.sqlite import connected, log_ahead

NAME = "actions.sqlite"
VERSION = 1
_PROGRAM = 0x52E7A1D0  # SQLite's application_id: whose file this is
_PAGE = 16_384  # bytes: ten vectors of 384 numbers to a page, where 4,096 would hold two
PATIENCE = 5.0  # seconds that a writer waits for another one
_TABLES = """
    CREATE TABLE models (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
    CREATE TABLE vectors (
        model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
        digest BLOB NOT NULL, vector BLOB NOT NULL, UNIQUE (model, digest));
"""


class StoreError(Exception):
    """The file cannot serve. The message says why; `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def checked(path: Path) -> sqlite3.Connection:
    """Open the file, after a look whose it is. Raises StoreError for a foreign or a newer one."""
    db = connected(str(path), PATIENCE)
    try:
        return set_up(db, path)
    except BaseException:
        db.close()
        raise


def read_only(path: Path) -> sqlite3.Connection:
    """A file in a folder where nothing can be written, the log beside it neither: read as it stands."""
    return connected(f"{path.absolute().as_uri()}?immutable=1", PATIENCE, uri=True)


def set_up(db: sqlite3.Connection, path: Path | None = None) -> sqlite3.Connection:
    program, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    empty = not db.execute("SELECT 1 FROM sqlite_master").fetchone()
    if not empty and program != _PROGRAM:
        raise StoreError(
            f"{path} is a database of another program.", "Move it away; the index is then built anew."
        )
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer reyn-jupyter (format {version}; this one reads {VERSION}).",
            f"Update reyn-jupyter, or remove {NAME}; the index is then built anew.",
        )
    if empty:
        db.execute(f"PRAGMA page_size = {_PAGE}")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    log_ahead(db, PATIENCE)
    db.execute("PRAGMA foreign_keys = ON")
    if empty:
        _create(db)
    return db


def _create(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    if not db.execute("SELECT 1 FROM sqlite_master").fetchone():  # another process may have been first
        for statement in _TABLES.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {_PROGRAM}")
        db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def way_out(why: str) -> str:
    if "full" in why.lower() or "space" in why.lower():
        return "Make room on the disk, then %reyn embeddings build."
    if "readonly" in why.lower() or "unable to open" in why.lower() or "permission" in why.lower():
        return "Make the folder .reyn/state of the workspace writable."
    return "Try again; %reyn embeddings clear starts afresh."
