"""Hostile SQL: whatever a model writes ends in time and within its memory, reaches nothing, and the session answers on.

Each statement goes the whole way that a model's call goes. Times are measured only against promised ones: a deadline of
`SECONDS`, and an interrupt within one second; the slack is for starting and ending processes on a busy machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.sql.sql_query import SqlQuery, sql_child
from reyn_jupyter.categories.table import categories
from tests.support.waiting import PATIENCE, until

SECONDS = 3.0
MEMORY = "200MB"
SLACK = 60.0
PASSWORD = "plover-egg-hatches"
OUTSIDE = "heron-feather-outside"
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="/proc, and limits of memory, are Linux's")


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[reyn.Session]:
    """A session whose queries may take three seconds and 200 MB."""
    base = tmp_path_factory.mktemp("hostile")
    folder = base / "workspace"
    folder.mkdir()
    (folder / "orders.csv").write_text("region,value\nnorth,1\nsouth,2\n")
    (base / "outside.csv").write_text(f"word\n{OUTSIDE}\n")
    # Named like no secret, so that nothing but the process's own environment could hide it.
    os.environ["HATCHERY"] = PASSWORD
    services = reyn.Session(folder, store=None).parts.services
    made = categories(services, seconds=SECONDS, memory=MEMORY)
    session = reyn.Session(folder, store=None, categories=made, namespace={})
    yield session
    session.close()
    del os.environ["HATCHERY"]


def query(session: reyn.Session, sql: str, **sources: str) -> Any:
    return session.invoke_action("table__query", {"sql": sql, "sources": sources})


def warm(session: reyn.Session) -> int:
    """Wait until the session's process for SQL is there, however busy the machine; returns its id."""
    child = sql_child(session.parts.services.children, MEMORY)
    with closing(SqlQuery(child, PATIENCE)) as patient:
        patient.run("SELECT 1", 1)
    assert child.pid is not None
    return child.pid


def answers_on(session: reyn.Session) -> bool:
    warm(session)
    found = query(session, "SELECT sum(value) AS total FROM t", t="orders.csv")
    return found.error is None and found.value["total"].tolist() == [3]


# Ways out

WAYS_OUT = [
    # Files
    "SELECT * FROM read_csv('{outside}')",
    "SELECT * FROM read_csv_auto('{outside}')",
    "SELECT * FROM read_text('{outside}')",
    "SELECT * FROM read_blob('{outside}')",
    "SELECT * FROM read_json('{outside}')",
    "SELECT * FROM read_parquet('{outside}')",
    "SELECT * FROM sniff_csv('{outside}')",
    "SELECT * FROM '{outside}'",
    "SELECT * FROM '../outside.csv'",
    "SELECT * FROM glob('{root}/**')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_text('/proc/self/cmdline')",
    "SELECT * FROM read_csv('/dev/fd/0')",
    "SELECT * FROM read_csv('/dev/fd/5')",
    "SELECT * FROM read_text(list_value('/etc/passwd', '{outside}'))",
    "SELECT * FROM parquet_metadata('{outside}')",
    "SELECT (SELECT content FROM read_text('{outside}'))",
    "SELECT * FROM query('SELECT * FROM read_text(''{outside}'')')",
    "SELECT * FROM query_table('{outside}')",
    # Writing
    "COPY t TO '{root}/out.csv'",
    "COPY (SELECT 1) TO '{root}/orders.csv'",
    "COPY t FROM '{outside}'",
    "WITH x AS (COPY (SELECT 1) TO '{root}/out.csv') SELECT * FROM x",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{root}/out.csv'",
    "EXPORT DATABASE '{root}/out'",
    "IMPORT DATABASE '{root}'",
    "ATTACH '{root}/out.db'",
    "ATTACH '{root}/out.db' AS out; SELECT 1",
    "USE memory",
    "CHECKPOINT",
    # Extensions and the network
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{root}/evil.duckdb_extension'",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "SELECT * FROM 'https://example.invalid/x.csv'",
    "CREATE SECRET s (TYPE s3)",
    # Settings and the environment
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET memory_limit = '100GB'",
    "SET max_expression_depth = 1000000000",
    "RESET lock_configuration",
    "PRAGMA enable_external_access = true",
    "PRAGMA memory_limit = '100GB'",
    "PRAGMA database_list",
    "SELECT getenv('HATCHERY')",
    "SELECT current_setting('home_directory') || getenv('HATCHERY')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://x', 's3')",
    # Several statements, and other tricks with texts
    "SELECT 1; COPY (SELECT 1) TO '{root}/out.csv'",
    "SELECT 1;\u2028COPY (SELECT 1) TO '{root}/out.csv'",
    "/* */ ; ATTACH '{root}/out.db'",
    "SELECT * FROM read\u200b_text('{outside}')",
    "\uff33\uff25\uff2c\uff25\uff23\uff34 * FROM read_text('{outside}')",
    "SELECT * FROM \"read_text\"('{outside}')",
    "SELECT * FROM READ_TEXT(U&'\\002F' || '{outside}')",
    "SELECT '\0' || read_text('{outside}')",
    "\ufeffCOPY (SELECT 1) TO '{root}/out.csv'",
    "SELECT \ud800",
    "CREATE MACRO m() AS TABLE SELECT * FROM read_text('{outside}')",
    "CREATE TEMP TABLE x AS SELECT 1",
    "PREPARE p AS SELECT * FROM read_text('{outside}')",
    "EXECUTE p",
    "CALL pragma_version()",
    "SELECT * FROM pandas_scan(0, 0, 0)",
    "SELECT * FROM python_map_function(0)",
]


@pytest.mark.parametrize("sql", WAYS_OUT)
def test_a_statement_reaches_nothing_but_its_sources(bounded: reyn.Session, sql: str) -> None:
    outside = bounded.root.parent / "outside.csv"
    before = {path: path.read_bytes() for path in bounded.root.parent.rglob("*") if path.is_file()}
    warm(bounded)
    began = time.monotonic()
    found = query(
        bounded, sql.replace("{root}", str(bounded.root)).replace("{outside}", str(outside)), t="orders.csv"
    )
    assert time.monotonic() - began < SECONDS + SLACK
    assert found.error is not None
    said = json.dumps(found.payload)
    assert PASSWORD not in said and OUTSIDE not in said
    assert {path: path.read_bytes() for path in bounded.root.parent.rglob("*") if path.is_file()} == before
    assert answers_on(bounded)


READS_OF_ITSELF = [
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_extensions()",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM duckdb_temporary_files()",
    "SELECT * FROM pragma_platform()",
    "SELECT current_setting('home_directory')",
    "SELECT version()",
    "SHOW ALL TABLES",
]


@pytest.mark.parametrize("sql", READS_OF_ITSELF)
def test_what_a_database_says_of_itself_names_no_place_of_the_persons(
    bounded: reyn.Session, sql: str
) -> None:
    warm(bounded)
    said = json.dumps(query(bounded, sql).payload)
    for word in (PASSWORD, str(bounded.root), str(Path.home()), str(Path.cwd())):
        assert word not in said or word == "/"


# Bombs

ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t"
DISTANCE = "SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))"
BOMBS = {
    "an edit distance of long texts": DISTANCE,
    "many unions": " UNION ALL ".join(["SELECT 1"] * 5000),
    "more unions than are read": " UNION ALL ".join(["SELECT 1"] * 20_000),
    "endless recursion": ENDLESS,
    "recursion that doubles": "WITH RECURSIVE t AS (SELECT 'x' i UNION ALL SELECT i || i FROM t) FROM t LIMIT 1",
    "a cross join": "SELECT sum(hash(a.range, b.range)) FROM range(1000000000) a, range(1000000000) b",
    "joins that double": "WITH a0 AS (FROM range(2))"
    + "".join(f", a{n} AS (SELECT x.* FROM a{n - 1} x, a{n - 1} y)" for n in range(1, 12))
    + " SELECT count(*) FROM a11",
    "a long text": "SELECT len(repeat('x', 1000000000) || repeat('y', 3000000000))",
    "a long text as the answer": "SELECT repeat('x', 1000000000) AS a",
    "long texts together": "SELECT len(string_agg(repeat('x', 100000000), '')) FROM range(60)",
    "a long list": "SELECT len(list(a.range || 'x')) FROM range(100000000) a",
    "a longer list": "SELECT len(range(10000000000))",
    "deep parentheses": "SELECT " + "(" * 40_000 + "1" + ")" * 40_000,
    "deep lists": "SELECT " + "[" * 40_000 + "1" + "]" * 40_000,
    "deep queries": "SELECT * FROM (" * 4000 + "SELECT 1" + ")" * 4000,
    "deep negations": "SELECT " + "NOT " * 20_000 + "true",
    "deep cases": "SELECT " + "CASE WHEN true THEN " * 4000 + "1" + " END" * 4000,
    "many values": "SELECT 1 WHERE 1 IN (" + "1," * 45_000 + "2)",
    "a wide pivot": "PIVOT (SELECT range AS r FROM range(1000000)) ON r USING count(*)",
    "backtracking": "SELECT regexp_matches(repeat('a', 50000), '(a*)*b')",
    "a sleep": "SELECT sleep_ms(1000000)",
}


@pytest.mark.parametrize("sql", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_over_with_its_deadline(bounded: reyn.Session, sql: str) -> None:
    warm(bounded)
    began = time.monotonic()
    found = query(bounded, sql)
    assert time.monotonic() - began < SECONDS + SLACK
    assert found.error is None or found.payload["hint"]
    assert answers_on(bounded)


HARMLESS = {
    "rows without end": ("FROM range(100000000)", 1000),
    "a long name": ("SELECT 1 AS " + "a" * 90_000, 1),
    "a name of half characters": ('SELECT 1 AS "\u202etxt.\u200b"', 1),
    "many columns": ("SELECT " + ", ".join(f"{n} AS c{n}" for n in range(1000)), 1),
}


@pytest.mark.parametrize(("sql", "rows"), HARMLESS.values(), ids=HARMLESS)
def test_what_is_only_large_is_answered_within_bounds(bounded: reyn.Session, sql: str, rows: int) -> None:
    warm(bounded)
    found = query(bounded, sql)
    assert found.error is None
    assert len(found.value) == rows


def test_the_reason_names_the_time_and_what_to_do(bounded: reyn.Session) -> None:
    warm(bounded)
    found = query(bounded, DISTANCE)
    assert "stopped after 3 seconds" in found.payload["error"]
    assert "aggregate earlier" in found.payload["hint"]


@needs_proc
@pytest.mark.parametrize(
    "bomb", ["a long text", "a long text as the answer", "long texts together", "a long list"]
)
def test_a_bomb_stays_within_the_memory_of_its_process(bounded: reyn.Session, bomb: str) -> None:
    peak = _PeakMemory(warm(bounded))
    query(bounded, BOMBS[bomb])
    assert 0 < peak.megabytes() < 200 + 700
    assert answers_on(bounded)


class _PeakMemory:
    """The most memory that a process had while it lived."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._peak = 0
        self._ended = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def megabytes(self) -> int:
        self._ended.set()
        self._thread.join()
        return self._peak

    def _watch(self) -> None:
        while not self._ended.wait(0.005):
            self._look()

    def _look(self) -> None:
        with suppress(OSError, StopIteration):
            lines = self._status.read_text().splitlines()
            held = next(line for line in lines if line.startswith("VmHWM"))
            self._peak = max(self._peak, int(held.split()[1]) // 1024)


# Interrupts


@needs_proc
@pytest.mark.parametrize(
    "bomb", ["an edit distance of long texts", "many unions", "a long text", "a cross join"]
)
def test_an_interrupt_ends_a_query_within_a_second(workspace: Path, bomb: str) -> None:
    session = reyn.Session(workspace, store=None, namespace={})
    assert query(session, "SELECT 1").error is None
    pressed: list[float] = []

    def press() -> None:
        (pid,) = session.parts.services.children.pids
        until(lambda: _computing(pid))
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    idle = _ticks(session.parts.services.children.pids[0])

    def _computing(pid: int) -> bool:
        return _ticks(pid) > idle + 20

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        query(session, BOMBS[bomb])
    assert time.monotonic() - pressed[0] < 1.0 + SLACK / 4
    thread.join()
    assert query(session, "SELECT 1").error is None
    session.close()


def _ticks(pid: int) -> int:
    """Return the processor time that a process has used, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


# The process


@needs_proc
def test_the_process_holds_nothing_of_the_persons(bounded: reyn.Session) -> None:
    process = Path(f"/proc/{warm(bounded)}")
    environment = (process / "environ").read_bytes()
    names = {entry.partition(b"=")[0].decode() for entry in environment.split(b"\0") if entry}
    assert PASSWORD.encode() not in environment
    assert names <= {"LC_ALL", "OPENBLAS_NUM_THREADS", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"}
    assert list((process / "cwd").iterdir()) == []
    until(lambda: _holds_its_own_alone(process))
    limits = (process / "limits").read_text()
    assert "Max file size             0                    0" in limits
    assert "Max core file size        0                    0" in limits


def _holds_its_own_alone(process: Path) -> bool:
    """Return whether no file is open; while the next database is made, DuckDB reads how much the machine has."""
    held: set[str] = set()
    for file in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            held.add(str(file.readlink()))
    return all(name == "/dev/null" or name.startswith(("socket:", "pipe:", "anon_inode:")) for name in held)


@needs_proc
@pytest.mark.parametrize("bomb", ["an edit distance of long texts", "many unions"])
def test_the_process_ends_with_a_kernel_that_is_killed(workspace: Path, bomb: str) -> None:
    script = """
        import sys
        import reyn_jupyter as reyn
        session = reyn.Session(".", store=None)
        session.invoke_action("table__query", {"sql": "SELECT 1"})
        print(*session.parts.services.children.pids, flush=True)
        session.invoke_action("table__query", {"sql": sys.argv[1]})
    """
    kernel = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), BOMBS[bomb]],
        cwd=workspace,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(reyn.__file__).parents[1])},
    )
    assert kernel.stdout is not None
    pid = int(kernel.stdout.readline())
    idle = _ticks(pid)
    until(lambda: _ticks(pid) > idle + 20)
    before = set(workspace.rglob("*"))
    kernel.kill()
    kernel.wait()
    kernel.stdout.close()
    until(lambda: not _alive(pid))
    assert set(workspace.rglob("*")) == before


def _alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_one_process_serves_a_session_and_ends_with_it(workspace: Path) -> None:
    session = reyn.Session(workspace, store=None)
    children = session.parts.services.children
    assert children.pids == ()  # none before the first query
    pids = {children.pids for _ in range(3) if query(session, "SELECT 1").error is None}
    assert [len(found) for found in pids] == [1]
    session.close()
    assert children.pids == ()
    assert query(session, "SELECT 1").error is None
    session.close()


ABANDONED = """
import gc, os, sys, time
import reyn_jupyter as reyn
session = reyn.Session(sys.argv[1], store=None)
session.invoke_action("table__query", {"sql": "SELECT 1"}).value
(pid,) = session.parts.services.children.pids
del session
end = time.monotonic() + 100
while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
    gc.collect()  # again: a thread that builds the session's index may hold it for a while
    time.sleep(0.05)
print(os.path.exists(f"/proc/{pid}"))
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_the_process_of_a_session_that_nobody_refers_to_ends(workspace: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED, str(workspace)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "False\n", done.stderr


# Columns that are named like secrets

UNMASKING = [
    "SELECT * FROM t",
    "SELECT password AS p FROM t",
    "SELECT reverse(password) FROM t",
    "SELECT substr(password, 2) || left(password, 1) FROM t",
    "SELECT t AS whole FROM t",
    "SELECT to_json(t)::VARCHAR FROM t",
    "SELECT COLUMNS('pass.*') FROM t",
    "SELECT string_split(password, '-') FROM t",
    "SELECT unnest(string_split(password, '')) FROM t",
    "SELECT ascii(password), hex(password), md5(password), len(password) FROM t",
    "SELECT count(*) FROM t WHERE password LIKE 'plover%' HAVING count(*) > 0",
    "SELECT CAST(password AS INTEGER) FROM t",
    "SELECT error(password) FROM t",
    "SUMMARIZE t",
    "SELECT * FROM t AS renamed(a, b)",
    "UNPIVOT (SELECT name, password FROM t) ON COLUMNS(*)",
]


@pytest.fixture
def accounts(workspace: Path) -> Iterator[reyn.Session]:
    rows = [{"name": "ann", "password": PASSWORD}]
    pd.DataFrame(rows).to_csv(workspace / "accounts.csv", index=False)
    (workspace / "accounts.json").write_text(json.dumps(rows))
    (workspace / "nested.json").write_text(json.dumps([{"name": "ann", "login": {"apiKey": PASSWORD}}]))
    (workspace / "mixed.json").write_text(
        json.dumps([{"login": {"apiKey": PASSWORD}}, {"login": [1]}, {"login": "none"}])
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT MAP {{'api_key': '{PASSWORD}'}} AS login) TO '{workspace}/maps.parquet'"
        )
    names = {
        "frame": pd.DataFrame(rows),
        "records": rows,
        "deep": [{"login": {"password": PASSWORD, "at": 1}}],
    }
    session = reyn.Session(workspace, store=None, namespace=names)
    yield session
    session.close()


@pytest.mark.parametrize("source", ["frame", "records", "accounts.csv", "accounts.json"])
def test_no_expression_reaches_a_column_that_is_named_like_a_secret(
    accounts: reyn.Session, source: str
) -> None:
    pieces = [PASSWORD, PASSWORD[::-1], PASSWORD[1:], *PASSWORD.split("-"), PASSWORD.encode().hex().upper()]
    for sql in UNMASKING:
        said = json.dumps(query(accounts, sql, t=source).payload)
        assert not any(piece in said for piece in pieces), sql
    assert (
        query(accounts, "SELECT count(*) AS n FROM t WHERE password LIKE 'plover%'", t=source).value["n"][0]
        == 0
    )
    found = query(accounts, "SELECT name, reverse(password) AS p FROM t", t=source)
    assert found.value.to_dict("records") == [{"name": "ann", "p": "]neddih["}]
    assert "t.password" in json.dumps(found.payload)


@pytest.mark.parametrize("source", ["deep", "nested.json", "mixed.json", "maps.parquet"])
def test_nested_values_that_are_named_like_secrets_are_hidden_too(
    accounts: reyn.Session, source: str
) -> None:
    for sql in ("FROM t", "SELECT login::VARCHAR FROM t", "SELECT reverse(login::VARCHAR) FROM t"):
        said = json.dumps(query(accounts, sql, t=source).payload)
        assert PASSWORD not in said and PASSWORD[::-1] not in said


def test_an_error_of_a_source_quotes_no_line_of_it(accounts: reyn.Session) -> None:
    lines = "\n".join(f"{n},x" for n in range(30_000))
    (accounts.root / "broken.csv").write_text(f"id,password\n{lines}\n{PASSWORD},{PASSWORD},{PASSWORD}\n")
    found = query(accounts, "FROM t", t="broken.csv")
    assert PASSWORD not in json.dumps(found.payload)
