"""The process in which SQL runs: `python -m` of this module, started by `backends.sql.sql_query`.

Invariant: the caller's SQL runs only after the door is shut: external access off (DuckDB cannot switch it on again
in a running database), the configuration locked, no replacement scans, no extensions, no spill to disk. Files are
copied in before, through descriptors that came with the request, so that SQL never holds a path: in DuckDB a COPY
may hide inside a WITH, and a path that may be read may be written too. Columns that are named like secrets are replaced
before the SQL sees them. Every query has a database of its own; the next one is made while nobody waits.
"""

from __future__ import annotations

import mmap
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import duckdb

from reyn_jupyter.backends.object_summary import HIDDEN
from reyn_jupyter.backends.sql.sql_answer import exact_frame, prepare_answer
from reyn_jupyter.backends.sql.sql_columns import (
    Label,
    Renamed,
    column_names,
    distinct_names,
    listed,
    meant_by,
    renamed_columns,
    seem_renamed,
    shown_renames,
    without_number,
)
from reyn_jupyter.backends.sql.sql_names import fixed_columns, table_names
from reyn_jupyter.backends.sql.sql_scans import plan_scans, prepare_planning, quoted, view_of
from reyn_jupyter.backends.sql.sql_wire import AnswerError, read_casts, read_frame, write_answer
from reyn_jupyter.support.programs.child_process import ChildMessage, serve
from reyn_jupyter.support.secret_names import secret_name
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    import pandas as pd

_THREADS = 4
_GRAMMAR_MEMORY = "64MB"
_READS = frozenset({"SELECT", "EXPLAIN", "MULTI"})  # DuckDB makes several steps of one PIVOT
_MISSING_TABLE = re.compile(r"Table with name (.+?) does not exist")
_LONGEST_MESSAGE = 800  # characters of DuckDB's own words
_VALUE = re.compile(r"(Could not (?:convert|parse) string )(?:\".*?\"|'.*?')", re.DOTALL)
_SETTING = re.compile(r"\s*Use \"?SET .*", re.DOTALL)  # advice that nobody may follow here
_QUOTED = re.compile(r'"((?:[^"]|"")+)"')
_KEY = r'"([^"\\]+)"\s*:'
_HINTS = (
    (
        re.compile(r"file system operations are disabled|Cannot access (?:file|directory)"),
        'SQL opens no files: name a workspace file in "sources", as {"t": "<path>"}, and query t.',
    ),
    (
        re.compile(r"Function with name \"?(?:getenv|getvariable|current_setting)\b"),
        "SQL sees its sources alone, not the environment or the settings of the process.",
    ),
    (
        re.compile(r"cannot encode str as UTF-8"),
        "A text holds half a character (a lone surrogate), and SQL has no such text: replace it in the frame first.",
    ),
    (
        re.compile(r"limit of \d+ exceeded|larger than 2\^32"),
        "Take it apart: WITH for steps, a source for long lists of values, fewer columns in a PIVOT.",
    ),
)


class _RefusalError(Exception):
    """What the caller is answered: see `backends.sql.sql_query.SqlError`."""

    def __init__(
        self,
        message: str,
        missing: str | None = None,
        hint: str = "",
        *,
        spent: bool = False,
        fixed: str | None = None,
    ) -> None:
        super().__init__(message)
        self.answer = {"error": message, "missing": missing, "hint": hint, "spent": spent, "fixed": fixed}


class SqlServer:
    """Answers the requests of `backends.sql.sql_query`, one after another."""

    def __init__(self, memory: str) -> None:
        self._memory = memory
        self._grammar = _database(_GRAMMAR_MEMORY, 1)
        prepare_planning(self._grammar)
        _shut(self._grammar)
        self._next: Any = None

    def prepare(self) -> None:
        """Make the database of the next query."""
        if self._next is None:
            self._next = _database(self._memory, min(_THREADS, os.cpu_count() or 1))
            prepare_answer(self._next)

    def answer(self, request: ChildMessage) -> ChildMessage:
        """Return what a text is (``check``), which tables it names (``names``), what it reads of its frames (``scan``),
        or a query's rows (``sql``)."""
        header = request.header
        try:
            if "check" in header:
                with _plain_words("the SQL", _GRAMMAR_MEMORY):
                    return ChildMessage({"kind": _only_reads(self._grammar, header["check"])})
            if "names" in header:
                return ChildMessage({"names": table_names(self._grammar, header["names"])})
            if "scan" in header:
                return self._scans(header, request.descriptors)
            return self._query(header, request.descriptors)
        except _RefusalError as refusal:
            return ChildMessage(refusal.answer)
        except MemoryError:
            raise  # the process ends, and its memory with it
        except Exception as error:  # noqa: BLE001 - any of them would end the process without a reason
            # The error's own message may quote a cell of a hidden column.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__} in {frame.name}, line {frame.lineno}"
            failure = _RefusalError(
                f"the process that runs SQL failed: {where}", hint="Report this as a bug."
            )
            return ChildMessage(failure.answer)

    def _scans(self, header: Any, descriptors: Any) -> ChildMessage:
        (data,) = descriptors
        with _mapped(data) as mapped:
            samples = [
                (alias, read_frame(mapped, tuple(place)), read_casts(mapped, tuple(place)))
                for alias, place in header["tables"]
            ]
            try:
                scans = plan_scans(self._grammar, header["scan"], header["rows"], samples)
            except (
                duckdb.Error,
                RuntimeError,
                ValueError,
            ):  # with all rows it may be right; else its run says why not
                scans = {}
            finally:
                del samples
        return ChildMessage({"scans": scans})

    def _query(self, header: Any, descriptors: Any) -> ChildMessage:
        self.prepare()
        connection, self._next = self._next, None
        hidden: list[str] = []
        renamed: dict[str, Renamed] = {}
        with closing(connection):
            data, *files = descriptors
            with _mapped(data) as mapped:
                for alias, place, layout, names in header["tables"]:
                    renamed[alias] = names
                    with _plain_words(alias, self._memory):
                        _register(connection, alias, mapped, tuple(place), layout)
                for (alias, name, reader), descriptor in zip(header["files"], files, strict=True):
                    with _plain_words(name, self._memory, descriptor):
                        found, renamed[alias] = _load(connection, alias, reader, descriptor)
                        hidden += found
                _shut(connection)
                with _plain_words(
                    "the SQL",
                    self._memory,
                    fix=lambda error: fixed_columns(connection, header["sql"], error),
                    renamed=renamed,
                ):
                    frame, notes = _fetch(connection, header["sql"], header["rows"])
                    columns, pieces = write_answer(frame)
                for alias, *_ in header["tables"]:  # whichever of both it is
                    connection.unregister(_part_of(alias))
                    connection.unregister(alias)
        told = {"hidden": hidden, "renamed": [*notes, *shown_renames(renamed, frame.columns)]}
        return ChildMessage({"columns": columns, "rows": len(frame), **told}, pieces)


@contextmanager
def _mapped(descriptor: int) -> Iterator[memoryview]:
    if not os.fstat(descriptor).st_size:
        yield memoryview(b"")
        return
    # Shared, so that it does not count as this process's own memory.
    mapped = mmap.mmap(descriptor, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    yield memoryview(mapped)
    with suppress(BufferError):  # a frame still holds it; it goes with the frame
        mapped.close()


def _register(connection: Any, alias: str, data: memoryview, place: Any, layout: Any) -> None:
    """Make a frame a table; with a layout, one that has columns of nothing where the query reads none."""
    frame, casts = read_frame(data, place), read_casts(data, place)
    if not layout and not casts:
        connection.register(alias, frame)
        return
    connection.register(_part_of(alias), frame)
    layout = layout or [(name, None) for name in frame.columns]
    connection.execute(view_of(alias, _part_of(alias), layout, casts))


def _part_of(alias: str) -> str:
    return f"part of {alias}"  # no table of a query is named like this


def _load(connection: Any, alias: str, reader: str, descriptor: int) -> tuple[list[str], Renamed]:
    """Copy a file into a table, and replace the values of columns that are named like secrets.

    Returns:
        Those columns, as alias.name, and the columns whose names are not those of the file.
    """
    # The descriptor, not the path: whoever swaps the file for a link meanwhile changes nothing.
    table = quoted(alias)
    source = reader.format(repr(f"/dev/fd/{descriptor}"))
    connection.execute(f"CREATE TABLE {table} AS FROM {source}")
    renamed = _rename_numbered(connection, alias, source)
    relation = connection.table(alias)
    hidden: list[str] = []
    replaced: list[str] = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        column = quoted(name)
        if secret_name(name) or _names_a_secret(kind) or _holds_a_secret_key(connection, table, column, kind):
            hidden.append(f"{alias}.{name}")
            replaced.append(f"CASE WHEN {column} IS NOT NULL THEN '{HIDDEN}' END AS {column}")
    if replaced:
        connection.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT * REPLACE ({', '.join(replaced)}) FROM {table}"  # noqa: S608 - quoted
        )
    return hidden, renamed


def _rename_numbered(connection: Any, alias: str, source: str) -> Renamed:
    """Rename the columns of a file that DuckDB has numbered, as `sql_columns` names those of a frame.

    DuckDB reads a file with Region and region as Region and region_1, and `region` as Region.
    """
    names = connection.table(alias).columns
    if not seem_renamed(names):
        return {}
    given = _names_in_file(connection, source, names)
    labels = [label or name for label, name in zip(given, names, strict=True)]
    if column_names(labels) == labels:
        return {}
    table = quoted(alias)
    for at, name in enumerate(names):
        connection.execute(
            f"ALTER TABLE {table} RENAME {quoted(name)} TO {quoted(f'column {at} of {alias}')}"
        )
    for at, name in enumerate(column_names(labels)):
        connection.execute(
            f"ALTER TABLE {table} RENAME {quoted(f'column {at} of {alias}')} TO {quoted(name)}"
        )
    return renamed_columns([Label(label) for label in labels])


def _names_in_file(connection: Any, source: str, names: list[str]) -> list[str]:
    """Return the names of a file's columns as the file has them, or those of DuckDB if that cannot be told."""
    if source.startswith("read_csv("):
        source = source.replace("header=true", "header=false, all_varchar=true, null_padding=true", 1)
        first = connection.execute(f"FROM {source} LIMIT 1").fetchone() or ()
        given = [str(cell or "") for cell in first]
    elif source.startswith("read_parquet("):
        schema = source.replace("read_parquet(", "parquet_schema(", 1)
        given = _top_level(connection.execute(f"SELECT name, num_children FROM {schema}").fetchall())  # noqa: S608 - our own
    else:
        objects = source.replace("read_json(", "read_json_objects(", 1)
        keys = connection.execute(
            "SELECT keys FROM (SELECT json_keys(json) AS keys, row_number() OVER () AS row "  # noqa: S608 - our own
            f"FROM {objects}) GROUP BY keys ORDER BY min(row)"
        ).fetchall()
        given = list(dict.fromkeys(key for (row,) in keys for key in row or ()))
        if len(given) != len(names):
            given = [name if name in given else without_number(name) for name in names]
    same = len(given) == len(names) and all(
        name.lower().startswith(label.lower()) for name, label in zip(names, given, strict=True)
    )
    return given if same else names


def _top_level(schema: list[tuple[str, int | None]]) -> list[str]:
    """Return the columns of a Parquet schema, whose rows are in the order of a walk: the root, then its children."""
    found, position = [], 1
    while position < len(schema):
        found.append(schema[position][0])
        below = 1
        while below:
            below += (schema[position][1] or 0) - 1
            position += 1
    return found


def _names_a_secret(kind: Any) -> bool:
    """Return whether a type has a field, at any depth, that is named like a secret."""
    if kind.id not in ("struct", "list", "array", "map", "union"):
        return False
    return any(
        (kind.id in ("struct", "union") and secret_name(str(name))) or _names_a_secret(child)
        for name, child in kind.children
        if isinstance(child, duckdb.sqltypes.DuckDBPyType)
    )


def _holds_a_secret_key(connection: Any, table: str, column: str, kind: Any) -> bool:
    """Return whether JSON texts or maps have a key that is named like a secret."""
    if "MAP(" not in str(kind) and "JSON" not in str(kind):
        return False
    found = connection.execute(
        f"SELECT DISTINCT unnest(regexp_extract_all(to_json({column})::VARCHAR, ?, 1)) FROM {table}",  # noqa: S608 - quoted
        [_KEY],
    )
    return any(secret_name(str(name)) for (name,) in found.fetchall())


@contextmanager
def _plain_words(
    what: str,
    memory: str,
    descriptor: int | None = None,
    fix: Callable[[str], str | None] = lambda error: None,
    renamed: Mapping[str, Renamed] = MappingProxyType({}),
) -> Iterator[None]:
    """DuckDB's refusals become answers; `fix` gives the statement that was meant, from DuckDB's words."""
    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError):
        raise _RefusalError(
            f"{what} needs more than the {memory} of memory that a query may use",
            hint="Read fewer columns, filter or aggregate earlier.",
            spent=True,
        ) from None
    except AnswerError as error:
        raise _RefusalError(
            str(error), hint=error.hint or "Select fewer columns, or cut long texts with left()."
        ) from None
    except (duckdb.Error, RuntimeError, ValueError, TypeError, RecursionError) as error:
        message = _words(error)
        unknown = message.partition("\nCandidate ")[0] if isinstance(error, duckdb.BinderException) else ""
        for name in _QUOTED.findall(unknown):
            if meant := meant_by(name.strip("^$"), renamed):
                told = [f"{column} is {described}" for column, described in meant.items()]
                raise _RefusalError(
                    f"no column is called {name!r} here, since names in SQL have no case: {listed(told)}",
                    hint=f"Write {' or '.join(map(quoted, list(meant)[:5]))}.",
                ) from None
        missing = _MISSING_TABLE.search(message)
        text = message
        if descriptor is not None:  # an error that quotes a file's line may quote what would have been hidden
            text = text.partition("Original Line:")[0].strip().replace(f"/dev/fd/{descriptor}", what)
            text = _VALUE.sub(r"\1…", text)
        advice = next((hint for pattern, hint in _HINTS if pattern.search(message)), "")
        named = missing[1].strip('"') if missing else None
        if named is not None:
            text = text.partition("\nDid you mean")[0]  # it knows its own tables alone
        raise _RefusalError(text, named, advice, fixed=fix(message)) from None


def _database(memory: str, threads: int) -> Any:
    settings: dict[str, Any] = {
        "memory_limit": memory,
        "threads": threads,
        "temp_directory": "",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
        "python_scan_all_frames": False,
        # With fewer rows, later cells are forced into the type of the first ones.
        "pandas_analyze_sample": 1 << 60,
    }
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _shut(connection: Any) -> None:
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _only_reads(connection: Any, sql: str) -> str:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        found = f"there are {len(statements)}" if statements else "there is none"
        raise _RefusalError(
            f"one statement is needed, and {found}",
            hint="Send one SELECT a call; WITH puts several steps into one.",
        )
    kind = str(statements[0].type.name)
    if kind in _READS:
        return kind
    raise _RefusalError(
        f"{kind} is not allowed: a query only reads (SELECT, WITH, PIVOT, DESCRIBE, SUMMARIZE, EXPLAIN)",
        hint="Write a statement that reads; a long result is stored, and its blob id can be a source later.",
    )


def _fetch(connection: Any, sql: str, rows: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the first rows, and a phrase for each column that had to be renamed."""
    if _only_reads(connection, sql) == "EXPLAIN":
        return connection.execute(sql).df(), []
    relation = connection.sql(sql)
    if relation is None:
        raise _RefusalError("it gives no rows")
    names, phrases = distinct_names(relation.columns)
    frame = exact_frame(connection, relation, rows)
    frame.columns = names
    return frame, phrases


def _words(error: Exception) -> str:
    text = str(error).partition("\nLINE ")[0].strip()
    text = _SETTING.sub("", re.sub(r"^[A-Z][A-Za-z ]+ Error: ", "", text))
    return shorten(text, _LONGEST_MESSAGE)


def main() -> None:
    """Serve until the parent is gone."""
    import sys

    import pandas as pd  # before memory is limited and the working folder goes

    server = SqlServer(sys.argv[3])
    connection = server._grammar
    connection.execute("SELECT 1").df()
    pd.DataFrame({"a": [1]})
    serve(server.answer, server.prepare)


if __name__ == "__main__":
    main()
