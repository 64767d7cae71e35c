"""One SQL query in a DuckDB of its own that can reach nothing but what it was given.

Invariant: the caller's SQL runs only after the door is shut: external access off (DuckDB cannot switch it on again
in a running database), the configuration locked, no replacement scans, no extensions, no spill to disk. Files are
copied in before, through a descriptor that the workspace opened, so that SQL never holds a path: in DuckDB a COPY
may hide inside a WITH, and a path that may be read may be written too.
DuckDB is imported on first use; a database takes about 15 ms, so that a text is parsed before one is made for it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, BinaryIO

from reyn_jupyter.backends.sql_frames import as_table, exact_integers, ordinary_cells
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    import pandas as pd

MEMORY = "2GB"  # of DuckDB's buffers: tables, joins, sorts
_THREADS = 4
_GRAMMAR_MEMORY = "64MB"
_grammar_lock = threading.Lock()
_READERS = {
    ".csv": "read_csv({}, header=true{})",
    ".tsv": "read_csv({}, header=true, delim='\\t'{})",
    ".parquet": "read_parquet({})",
    ".json": "read_json({}{})",
    ".jsonl": "read_json({}, format='newline_delimited'{})",
    ".ndjson": "read_json({}, format='newline_delimited'{})",
}
FILE_KINDS = ", ".join(_READERS)
_READS = frozenset({"SELECT", "EXPLAIN", "MULTI"})  # DuckDB makes several steps of one PIVOT
_MISSING_TABLE = re.compile(r"Table with name (.+?) does not exist")
_LONGEST_MESSAGE = 800  # characters of DuckDB's own words
_HINTS = (
    (
        re.compile(r"file system operations are disabled|Cannot access (?:file|directory)"),
        'SQL opens no files: name a workspace file in "sources", as {"t": "orders.csv"}, and query t.',
    ),
    (
        re.compile(r"Function with name \"?(?:getenv|getvariable|current_setting)\b"),
        "SQL sees its sources alone, not the environment or the settings of the process.",
    ),
)


class SqlError(Exception):
    """The query was refused or failed, in plain words.

    `missing` is the table that it named and nobody gave; `hint` says what to do next, where that is known.
    """

    def __init__(self, message: str, missing: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.missing = missing
        self.hint = hint


def is_installed() -> bool:
    """Return whether DuckDB is there, without importing it."""
    return find_spec("duckdb") is not None


def reader_of(path: str) -> str | None:
    """Return how a file is read, by its name's ending (``.gz`` may follow); None for a kind that is no table."""
    name = path.lower()
    packed = name.endswith(".gz")
    stem = name.removesuffix(".gz")
    reader = next((reader for ending, reader in _READERS.items() if stem.endswith(ending)), None)
    if reader is None or (packed and stem.endswith(".parquet")):
        return None
    return (
        reader.format("{}", ", compression='gzip'" if packed else "")
        if not stem.endswith(".parquet")
        else reader
    )


class SqlQuery:
    """A database for one query. Everything but `interrupt` blocks, so it belongs into a worker thread.

    Args:
        memory: DuckDB's memory limit. It counts buffers; one single huge text is not among them.

    Example:
        >>> with contextlib.closing(SqlQuery()) as query:
        ...     query.add_table("numbers", [1, 2, 3])
        ...     query.run("SELECT sum(value) AS total FROM numbers", limit=10)[0]["total"].tolist()
        [6]
    """

    def __init__(self, memory: str = MEMORY) -> None:
        self._memory = memory
        self._connection: Any = None
        self._lock = threading.Lock()
        self._stopped = False

    def interrupt(self) -> None:
        """Stop what is running, from any thread; harmless when nothing is."""
        with self._lock:
            self._stopped = True
            if self._connection is not None:
                self._connection.interrupt()

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def add_table(self, alias: str, value: object) -> None:
        """Make a value a table; see `sql_frames.as_table`. Raises NotATableError, SqlError."""
        frame = as_table(value)
        self._plainly(lambda connection: connection.register(alias, frame), alias)

    def add_file(self, alias: str, name: str, file: BinaryIO) -> None:
        """Copy an open file into a table.

        Args:
            alias: the table's name.
            name: the file's name, which decides how it is read and stands in messages.
            file: the open file; it is read anew through its descriptor, from the beginning.

        Raises:
            SqlError: no kind of file that is read, or one that cannot be read as such.
        """
        reader = reader_of(name)
        if reader is None:
            raise SqlError(
                f"{name} is no file that SQL reads; these are: {FILE_KINDS}, and most of them as .gz"
            )
        # The descriptor, not the path: whoever swaps the file for a link meanwhile changes nothing.
        place = f"/dev/fd/{file.fileno()}"
        statement = f"CREATE TABLE {_quoted(alias)} AS FROM {reader.format(repr(place))}"
        if os.fstat(file.fileno()).st_size == 0:
            raise SqlError(f"{name} is empty")
        self._plainly(lambda connection: connection.execute(statement), name, place)

    def run(self, sql: str, limit: int) -> tuple[pd.DataFrame, bool]:
        """Shut the door, then run one reading statement.

        Args:
            sql: SELECT, WITH, FROM, VALUES, PIVOT, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN.
            limit: most rows that come back.

        Returns:
            The rows, and whether there were more.

        Raises:
            SqlError: refused, wrong, interrupted, or out of memory.
        """
        kind = check(sql)
        self._plainly(_shut, "the database")
        frame = self._plainly(lambda connection: _fetch(connection, sql, kind, limit + 1), "the SQL")
        more = len(frame) > limit
        return ordinary_cells(frame.iloc[:limit]), more

    def _open(self) -> Any:
        import duckdb

        with self._lock:
            if self._connection is None:
                settings = _settings(self._memory, min(_THREADS, os.cpu_count() or 1))
                self._connection = duckdb.connect(":memory:", config=settings)
                self._connection.execute("SET TimeZone = 'UTC'")
            return self._connection

    def _plainly(self, work: Any, what: str, place: str | None = None) -> Any:
        """Run a step; DuckDB's refusals become SqlError."""
        connection = self._open()
        if self._stopped:
            raise SqlError("it was interrupted")
        with _plain_words(what, self._memory, place):
            return work(connection)


def check(sql: str) -> str:
    """Return what kind of statement a text is, without a database: what is no SQL does not cost one.

    Returns:
        DuckDB's word for it.

    Raises:
        SqlError: no SQL, several statements, or one that does more than read.

    Example:
        >>> check("SELECT 1")
        'SELECT'
    """
    with _plain_words("the SQL", _GRAMMAR_MEMORY), _grammar_lock:
        return _only_reads(_grammar(), sql)


@contextmanager
def _plain_words(what: str, memory: str, place: str | None = None) -> Iterator[None]:
    """DuckDB's refusals become SqlError."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise SqlError("it was interrupted") from None
    except duckdb.OutOfMemoryException:
        raise SqlError(
            f"{what} needs more than the {memory} of memory that a query may use; read fewer columns, "
            "filter or aggregate earlier"
        ) from None
    except (duckdb.Error, RuntimeError, ValueError, TypeError) as error:
        message = _words(error)
        missing = _MISSING_TABLE.search(message)
        text = message.replace(place, what) if place else message
        raise SqlError(text, missing[1].strip('"') if missing else None, _advice(message)) from None


def _settings(memory: str, threads: int) -> dict[str, Any]:
    return {
        "memory_limit": memory,
        "threads": threads,
        "temp_directory": "",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
        "python_scan_all_frames": False,
    }


@cache
def _grammar() -> Any:
    """A database that holds nothing and runs nothing: texts are only parsed on it."""
    import duckdb

    connection = duckdb.connect(":memory:", config=_settings(_GRAMMAR_MEMORY, 1))
    _shut(connection)
    return connection


def _shut(connection: Any) -> None:
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _only_reads(connection: Any, sql: str) -> str:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        found = f"there are {len(statements)}" if statements else "there is none"
        raise SqlError(
            f"one statement is needed, and {found}",
            hint="Send one SELECT a call; WITH puts several steps into one.",
        )
    kind = str(statements[0].type.name)
    if kind in _READS:
        return kind
    raise SqlError(
        f"{kind} is not allowed: a query only reads (SELECT, WITH, PIVOT, DESCRIBE, SUMMARIZE, EXPLAIN)",
        hint="Write a statement that reads; a long result is stored, and its blob id can be a source later.",
    )


def _fetch(connection: Any, sql: str, kind: str, rows: int) -> pd.DataFrame:
    if kind == "EXPLAIN":
        explained: pd.DataFrame = connection.execute(sql).df()
        return explained
    relation = connection.sql(sql)
    if relation is None:
        raise SqlError("it gives no rows")
    # pandas has no 128-bit integers, and DuckDB would round them to floats: sums of integers are such.
    wide = [at for at, column in enumerate(relation.types) if str(column) in ("HUGEINT", "UHUGEINT")]
    if wide:
        chosen = [f"#{at + 1}{'::VARCHAR' if at in wide else ''}" for at in range(len(relation.types))]
        named = zip(chosen, relation.columns, strict=True)
        relation = relation.project(", ".join(f"{column} AS {_quoted(name)}" for column, name in named))
    return exact_integers(relation.limit(rows).df(), wide)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _advice(message: str) -> str:
    return next((hint for pattern, hint in _HINTS if pattern.search(message)), "")


def _words(error: Exception) -> str:
    text = str(error).partition("\nLINE ")[0].strip()
    text = re.sub(r"^[A-Z][A-Za-z ]+ Error: ", "", text)
    return shorten(text, _LONGEST_MESSAGE)
