"""Connections to SQLite files: whoever meets another writer waits, for the write-ahead log too."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reyn_jupyter.support.files.sqlite import connect, use_write_ahead_log
from tests.support.waiting import until


def test_the_switch_to_the_log_waits_for_another_writer(tmp_path: Path) -> None:
    first, second = (connect(tmp_path / "f.sqlite", 0.0) for _ in range(2))
    first.execute("BEGIN EXCLUSIVE")
    first.execute("CREATE TABLE t (x)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        use_write_ahead_log(second, 0.1)
    timer = threading.Timer(0.2, first.execute, ("COMMIT",))
    timer.start()
    use_write_ahead_log(second, 60.0)
    timer.join()
    assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert second.execute("PRAGMA synchronous").fetchone() == (1,)
    first.close()
    second.close()


def test_a_writer_waits_for_another_one_as_long_as_it_was_told(tmp_path: Path) -> None:
    first, second = (connect(tmp_path / "f.sqlite", patience) for patience in (0.0, 60.0))
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


OPENED = {
    "index": """
import numpy as np
from reyn_jupyter.search.vector_store import VectorStore

store = VectorStore(folder)
store.add("model", {"00" * 32: np.array([1.0, 0.0], np.float32)})
print(store.counts())
""",
    "study": """
from reyn_jupyter.evaluation.store.store import Store

store = Store(folder / "study.sqlite")
print("open")
""",
}
# The first process stops in its look at the file; the second makes it meanwhile, or waits until the first is done.
LOOKING = """
import pathlib, sqlite3, sys, time

folder, connect, stopped = pathlib.Path(sys.argv[1]), sqlite3.connect, []

def stop(statement):
    if "sqlite_master" in statement or "user_version" in statement:
        if not stopped:
            stopped.append(statement)
            (folder / "stopped").touch()
            deadline = time.monotonic() + 2
            while not (folder / "made").exists() and time.monotonic() < deadline:
                time.sleep(0.01)

def connect_and_stop(*args, **kwargs):
    db = connect(*args, **kwargs)
    db.set_trace_callback(stop)
    return db

sqlite3.connect = connect_and_stop
"""
MAKING = """
import pathlib, sys

folder = pathlib.Path(sys.argv[1])
"""


@pytest.mark.parametrize("kind", list(OPENED))
def test_two_processes_that_make_a_file_at_once_both_use_it(tmp_path: Path, kind: str) -> None:
    def started(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code + OPENED[kind], str(tmp_path)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    first = started(LOOKING)
    until(lambda: (tmp_path / "stopped").exists() or first.poll() is not None)
    second = started(MAKING)
    try:
        _, said = second.communicate(timeout=300)
        (tmp_path / "made").touch()
        assert second.returncode == 0, said
        _, said = first.communicate(timeout=300)
        assert first.returncode == 0, said
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()
