"""Connections to SQLite files that threads and processes share.

Invariant: whoever meets another writer waits for a while before it fails, for the switch to the write-ahead log too,
which SQLite itself does not wait for. Transactions are begun by hand.
"""

from __future__ import annotations

import sqlite3
import time

AGAIN = 0.02  # seconds between two tries


def connected(path: str, patience: float, *, uri: bool = False) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time.

    Args:
        path: of the file, made with the first write; ":memory:" for none.
        patience: seconds that a writer waits for another one.
        uri: whether `path` is a URI, as for a file that is only read.
    """
    return sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False, uri=uri)


def log_ahead(db: sqlite3.Connection, patience: float) -> None:
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
            time.sleep(AGAIN)
    db.execute("PRAGMA synchronous = NORMAL")
