"""One SQL query over what it was given, in a process of its own that can be ended at any moment.

Invariant: no SQL is parsed or run in this process. It goes to the session's child (`sql_child`), whose memory is
limited, and which is killed when its time is up or a person interrupts; the next query finds a fresh one. Texts are
bounded before they are sent, answers before they are read.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from reyn_jupyter.backends.sql.sql_columns import Renamed
from reyn_jupyter.backends.sql.sql_frames import as_table, hide_secrets
from reyn_jupyter.backends.sql.sql_scans import WHOLE, Layout, Scan, read_scans, sample
from reyn_jupyter.backends.sql.sql_wire import MOST_BYTES, AnswerError, Place, read_answer, write_frame
from reyn_jupyter.support.optional_modules import is_importable
from reyn_jupyter.support.programs.child_process import (
    ChildDeadlineError,
    ChildEndedError,
    ChildLimits,
    ChildMessage,
    ChildProcess,
    ChildProcesses,
)
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    import pandas as pd

MEMORY = "2GB"  # of DuckDB's buffers: tables, joins, sorts
LONGEST_SQL = 100_000  # characters
_OVERHEAD = (
    700_000_000  # bytes of the child's memory beside those: its libraries, frames of texts, the answer
)
_MOST_SOURCES = 100
_LONGEST_WORDS = 2000
_WAIT = 0.05  # seconds between two looks at whether a waiting query was interrupted
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
_READERS = {
    ".csv": "read_csv({}, header=true{})",
    ".tsv": "read_csv({}, header=true, delim='\\t'{})",
    ".parquet": "read_parquet({})",
    ".json": "read_json({}{})",
    ".jsonl": "read_json({}, format='newline_delimited'{})",
    ".ndjson": "read_json({}, format='newline_delimited'{})",
}
FILE_KINDS = ", ".join(_READERS)

# Why a signal ended the process of a query.
_WHY = {
    "SIGKILL": "a user or the operating system ended it; the system does so when memory runs out",
    **dict.fromkeys(
        ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"),
        "DuckDB crashed; it does so when memory runs out or a query is nested too deep",
    ),
    "SIGXCPU": "it used more processor time than a process may use",
}
_HINT = (
    "Run it again. If it fails again, read fewer columns, filter or aggregate earlier, or split it by WITH."
)


class SqlError(Exception):
    """The query was refused or failed, in plain words.

    `missing` is the table that it named and nobody gave; `hint` says what to do next, where that is known; `fixed` is
    the statement with the columns that were meant.
    """

    def __init__(
        self, message: str, missing: str | None = None, hint: str = "", fixed: str | None = None
    ) -> None:
        super().__init__(message)
        self.missing = missing
        self.hint = hint
        self.fixed = fixed


class SqlDeadlineError(SqlError):
    """The query's time was up; its process was killed."""


def is_installed() -> bool:
    """Return whether DuckDB is there, without importing it."""
    return is_importable("duckdb")


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


def sql_child(children: ChildProcesses, memory: str = MEMORY) -> ChildProcess:
    """Return the process of a session that runs its SQL; it starts with the first query.

    Args:
        memory: DuckDB's memory limit, as "2GB". The whole process may take 0.7 GB more.
    """
    found = re.fullmatch(r"(\d+)\s*([MGT]B)", memory)
    if found is None:
        raise ValueError(f'the memory of a query is given as "500MB" or "2GB", not {memory!r}')
    limits = ChildLimits(int(found[1]) * _UNITS[found[2]] + _OVERHEAD, MOST_BYTES)
    return children.get(
        f"sql {memory}",
        lambda: ChildProcess("reyn_jupyter.backends.sql.sql_child", limits, (memory,)),
    )


@dataclass(frozen=True)
class SqlAnswer:
    """What a query gave.

    Attributes:
        frame: the rows, at most as many as were asked for.
        more: whether there were more.
        hidden: the columns of sources whose values were hidden from the query, each after its table and a dot.
        renamed: a phrase for each column of the answer whose name is not the one that its source or the query gave it.
    """

    frame: pd.DataFrame
    more: bool
    hidden: tuple[str, ...]
    renamed: tuple[str, ...] = ()


class SqlQuery:
    """One query. Everything but `interrupt` blocks, so it belongs into a worker thread.

    Args:
        child: what `sql_child` gave.
        seconds: in which `run` has to be done.

    Example:
        >>> with ChildProcesses() as children, contextlib.closing(SqlQuery(sql_child(children))) as query:
        ...     query.add_table("numbers", [1, 2, 3])
        ...     query.run("SELECT sum(value) AS total FROM numbers", limit=10).frame["total"].tolist()
        [6]
    """

    def __init__(self, child: ChildProcess, seconds: float = 120.0) -> None:
        self._child = child
        self._seconds = seconds
        self._lock = threading.Lock()
        self._stopped = False
        self._speaking = False
        self._data: BinaryIO | None = None
        self._began = 0.0
        self._tables: list[tuple[str, Place, Layout, Renamed]] = []
        self._files: list[tuple[str, str, str]] = []
        self._descriptors: list[int] = []
        self._hidden: list[str] = []

    def interrupt(self) -> None:
        """Stop what is running, from any thread; harmless when nothing is."""
        with self._lock:
            self._stopped = True
            if self._speaking:
                self._child.kill()

    def close(self) -> None:
        if self._data is not None:
            self._data.close()
            self._data = None

    def check(self, sql: str) -> None:
        """Refuse what is no single statement that reads, before any source is opened for it. Raises SqlError."""
        if len(sql) > LONGEST_SQL:
            raise SqlError(
                f"it has {len(sql):,} characters, and at most {LONGEST_SQL:,} are read",
                hint="Put lists of values into a table, and name it as a source.",
            )
        self._ask(ChildMessage({"check": sql}))

    def table_names(self, sql: str) -> tuple[tuple[str, ...], ...]:
        """Return the tables that a statement reads, each as its name in parts: that of a schema has two.

        What WITH defines is none of them, nor are aliases. Nothing for a statement that DuckDB does not take apart.
        """
        if len(sql) > LONGEST_SQL:
            return ()
        names = self._ask(ChildMessage({"names": sql})).header.get("names")
        if not isinstance(names, list):
            return ()
        return tuple(tuple(map(str, parts)) for parts in names if isinstance(parts, list) and parts)

    def scans(self, sql: str, frames: Mapping[str, pd.DataFrame], limit: int) -> Mapping[str, Scan]:
        """Return what a query reads of frames, by table, so that the rest of them need not be sent.

        Args:
            sql: a statement that `check` let through.
            frames: all sources of the query.
            limit: as for `run`.

        Returns:
            Nothing of a frame that is read whole, or where it cannot be said.
        """
        with _nameless_file() as data:
            tables = [
                (alias, write_frame(hide_secrets(as_table(sample(frame)))[0], data, self._go_on))
                for alias, frame in frames.items()
            ]
            data.flush()
            request = {"scan": sql, "rows": limit + 1, "tables": tables}
            answer = self._ask(ChildMessage(request, descriptors=(data.fileno(),)))
        try:
            return read_scans(answer.header["scans"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._child.close()
            raise SqlError(f"the plan of its process cannot be read: {error}") from error

    def add_table(
        self, alias: str, value: object, scan: Scan = WHOLE, renamed: Renamed | None = None
    ) -> None:
        """Make a value a table; see `sql_frames.as_table`.

        Args:
            alias: the table's name.
            value: a tabular value.
            scan: the part of it that `run` reads.
            renamed: the columns whose names in SQL are not their labels; see `sql_frames.renamed_in`.

        Raises:
            NotATableError: SQL cannot see the value as a table.
            SqlError: the query was interrupted.
        """
        self._go_on()
        frame, hidden = hide_secrets(as_table(value, scan.left_out, scan.rows))
        self._hidden += (f"{alias}.{name}" for name in hidden)
        if self._data is None:
            self._data = _nameless_file()
        # One column may be there although it is not read: it holds the rows.
        layout = [(name, None if name in frame else kind) for name, kind in scan.columns]
        place = write_frame(frame, self._data, self._go_on)
        self._tables.append((alias, place, layout, renamed or {}))

    def add_file(self, alias: str, name: str, file: BinaryIO) -> None:
        """Make an open file a table.

        Args:
            alias: the table's name.
            name: the file's name, which decides how it is read and stands in messages.
            file: the open file, which stays open until `run` has returned; it is read anew through its descriptor,
                from the beginning.

        Raises:
            SqlError: no kind of file that is read, or an empty one.
        """
        reader = reader_of(name)
        if reader is None:
            raise SqlError(
                f"{name} is no file that SQL reads; these are: {FILE_KINDS}, and most of them as .gz"
            )
        if os.fstat(file.fileno()).st_size == 0:
            raise SqlError(f"{name} is empty")
        self._files.append((alias, name, reader))
        self._descriptors.append(file.fileno())

    def run(self, sql: str, limit: int) -> SqlAnswer:
        """Run one reading statement over the sources that were added.

        Args:
            sql: SELECT, WITH, FROM, VALUES, PIVOT, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN.
            limit: most rows that come back.

        Raises:
            SqlDeadlineError: it took too long.
            SqlError: refused, wrong, interrupted, out of memory, or a source that cannot be read as a table.
        """
        self.check(sql)
        if len(self._tables) + len(self._files) > _MOST_SOURCES:
            raise SqlError(f"it has more than {_MOST_SOURCES} sources", hint="Join some of them first.")
        if self._data is None:
            self._data = _nameless_file()
        self._data.flush()
        request = {"sql": sql, "rows": limit + 1, "tables": self._tables, "files": self._files}
        answer = self._ask(ChildMessage(request, descriptors=(self._data.fileno(), *self._descriptors)))
        header = answer.header
        try:
            frame = read_answer(header["columns"], header["rows"], bytes(answer.body[0]))
            hidden = tuple(str(name)[:200] for name in header["hidden"])
            renamed = tuple(str(phrase)[:500] for phrase in header["renamed"])
        except (AnswerError, KeyError, TypeError, ValueError, IndexError) as error:
            self._child.close()
            raise SqlError(f"its answer cannot be read: {error}") from error
        more = len(frame) > limit
        return SqlAnswer(frame.iloc[:limit], more, (*self._hidden, *hidden), renamed)

    def _ask(self, request: ChildMessage) -> ChildMessage:
        with self._turn():
            try:
                answer = self._child.exchange(request, self._left())
            except ChildDeadlineError:
                self._child.start()
                raise self._too_late() from None
            except ChildEndedError as error:
                if error.signal is not None or self._stopped:
                    self._child.start()
                if self._stopped:
                    raise SqlError("it was interrupted") from None
                raise SqlError(*_ending(error)) from None
            except OSError as error:
                raise SqlError(f"its process could not be started: {error}") from error
            if answer.header.get("spent") is True:  # what it holds on to would be missing for the next query
                self._child.close()
                self._child.start()
        if "error" in answer.header:
            raise _refusal(answer.header)
        return answer

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until the child answers nobody else; this query alone may then end it."""
        self._began = self._began or time.monotonic()
        while not self._child.turn.acquire(timeout=_WAIT):
            self._go_on()
        try:
            with self._lock:
                self._go_on()
                self._speaking = True
            try:
                yield
            finally:
                with self._lock:
                    self._speaking = False
        finally:
            self._child.turn.release()

    def _go_on(self) -> None:
        if self._stopped:
            raise SqlError("it was interrupted")
        if self._left() <= 0:
            raise self._too_late()

    def _left(self) -> float:
        self._began = self._began or time.monotonic()
        return self._began + self._seconds - time.monotonic()

    def _too_late(self) -> SqlDeadlineError:
        return SqlDeadlineError(
            f"it was stopped after {self._seconds:g} seconds",
            hint="Filter or aggregate earlier, or use fewer rows.",
        )


def _refusal(header: Any) -> SqlError:
    missing, hint, fixed = header.get("missing"), header.get("hint"), header.get("fixed")
    return SqlError(
        shorten(str(header["error"]), _LONGEST_WORDS),
        missing if isinstance(missing, str) else None,
        hint if isinstance(hint, str) else "",
        fixed if isinstance(fixed, str) else None,
    )


def _ending(error: ChildEndedError) -> tuple[str, None, str]:
    if error.signal is None:
        return f"the process that runs it failed: {error}", None, ""
    why = _WHY.get(error.signal, "another program sent that signal, not the query")
    return f"the process that ran it was ended by {error.signal}: {why}", None, _HINT


def _nameless_file() -> BinaryIO:
    """Return a file that is gone once nobody holds it open, whatever ends this process."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("reyn-frames", os.MFD_CLOEXEC), "w+b")
    return tempfile.TemporaryFile()
