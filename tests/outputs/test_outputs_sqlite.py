"""Connections to SQLite files: whoever meets another writer waits, for the write-ahead log too."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from reyn_jupyter.outputs.sqlite import connected, log_ahead


def test_the_switch_to_the_log_waits_for_another_writer(tmp_path: Path) -> None:
    first, second = (connected(str(tmp_path / "f.sqlite"), 0.0) for _ in range(2))
    first.execute("BEGIN EXCLUSIVE")
    first.execute("CREATE TABLE t (x)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        log_ahead(second, 0.1)
    timer = threading.Timer(0.2, first.execute, ("COMMIT",))
    timer.start()
    log_ahead(second, 60.0)
    timer.join()
    assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert second.execute("PRAGMA synchronous").fetchone() == (1,)
    first.close()
    second.close()


def test_a_writer_waits_for_another_one_as_long_as_it_was_told(tmp_path: Path) -> None:
    first, second = (connected(str(tmp_path / "f.sqlite"), patience) for patience in (0.0, 60.0))
    first.execute("CREATE TABLE t (x)")
    first.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, first.execute, ("COMMIT",))
    timer.start()
    second.execute("INSERT INTO t VALUES (1)")
    timer.join()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        second.execute("BEGIN IMMEDIATE")
        first.execute("BEGIN IMMEDIATE")
    first.close()
    second.close()
