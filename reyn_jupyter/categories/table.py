"""SQL over what the session already holds: the notebook's frames, blobs, workspace files.

Invariant: a query sees the sources that it names and nothing else, and it only reads. It runs in the session's own
process for SQL (`backends.sql.sql_query`), and stops with the run: cancellation and its own deadline end that process.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from reyn_jupyter.backends.object_summary import HIDDEN, is_frame_like
from reyn_jupyter.backends.sql.sql_columns import Renamed, listed
from reyn_jupyter.backends.sql.sql_frames import NotATableError, as_table, holdable, renamed_in
from reyn_jupyter.backends.sql.sql_masking import SecretInSourceError, masked_frame, masked_source
from reyn_jupyter.backends.sql.sql_query import (
    FILE_KINDS,
    MEMORY,
    SqlAnswer,
    SqlDeadlineError,
    SqlError,
    SqlQuery,
    is_installed,
    reader_of,
    sql_child,
)
from reyn_jupyter.backends.sql.sql_scans import FEWEST_CELLS, WHOLE, Scan
from reyn_jupyter.backends.sql.sql_sources import find_sources, near_source
from reyn_jupyter.backends.sql.value_search import find_values
from reyn_jupyter.catalog.action import Arguments, Category, Effect, Operation, Purity, Tool
from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.outputs.blobs.ids import canonical_id, is_blob_id
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.reference_resolver import find_variable, open_blob_value
from reyn_jupyter.runtime.namespace.variables import visible_variables
from reyn_jupyter.runtime.services import Services, Source, ToolContext

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

LIMIT = 1000
MOST_ROWS = 100_000
SECONDS = 120.0
_TEXT_TYPES = re.compile(r"VARCHAR|BLOB|JSON|STRUCT|MAP|UNION|\[|ENUM")
_ALIAS = re.compile(r"[^\W\d]\w{0,63}")
_SCHEMA = {
    "type": "object",
    "properties": {
        "sql": {
            "type": "string",
            "minLength": 1,
            "description": "One DuckDB statement that reads: SELECT, WITH, PIVOT, DESCRIBE, SUMMARIZE, EXPLAIN.",
        },
        "sources": {
            "type": "object",
            "additionalProperties": {"type": "string", "x-reference": ["array", "object", "python"]},
            "description": "Table name in the SQL → a notebook variable, a workspace file "
            f"({FILE_KINDS}) or a blob id. Only these can be queried.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_ROWS,
            "default": LIMIT,
            "description": "Most rows of the result.",
        },
    },
    "required": ["sql"],
    "additionalProperties": False,
}


_FIND_SCHEMA = {
    "type": "object",
    "properties": {
        "variables": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 10},
        "texts": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 500},
    },
    "required": ["variables", "texts"],
    "additionalProperties": False,
}


def categories(services: Services, *, seconds: float = SECONDS, memory: str = MEMORY) -> tuple[Category, ...]:
    """`table`.

    Args:
        services: namespace, blobs and workspace that sources come from.
        seconds: a query's deadline.
        memory: DuckDB's memory limit, e.g. "2GB"; its process may take 0.7 GB more.
    """

    async def query(args: Arguments, context: ToolContext) -> pd.DataFrame:
        if not is_installed():
            raise ActionError(
                "SQL needs DuckDB, which is not installed.", "pip install 'reyn-jupyter[sql]' adds it."
            )
        return await _query(args, context, seconds, memory)

    async def complete(args: Arguments, context: ToolContext) -> Arguments:
        return await with_named_sources(args, context, seconds, memory) if is_installed() else args

    return (
        Category(
            "table",
            "Compute on tables with SQL: the notebook's data frames, stored results, CSV, Parquet and JSON files.",
            operations=(
                Operation(
                    "query",
                    "Run one SQL query (DuckDB) over notebook variables, workspace files and stored results: "
                    "filter, join, group, aggregate, sort. Name every table of the query in sources.",
                    _SCHEMA,
                    Tool("query_table", query, Purity.READ, file_effects, plan=plan_files, complete=complete),
                ),
                Operation(
                    "find_values",
                    "Find the text columns of notebook variables that hold given texts as whole cells, e.g. before a "
                    "filter. Faster than a query.",
                    _FIND_SCHEMA,
                    Tool("find_values", _find_values, Purity.READ),
                ),
            ),
        ),
    )


async def _find_values(args: Arguments, context: ToolContext) -> dict[str, Any]:
    """Find which columns of variables hold some texts, in a thread, on copies that share their data."""
    names = dict.fromkeys(name.removeprefix("@") for name in args["variables"])
    held = await context.services.main_thread(
        lambda: {name: holdable(find_variable(name, context)) for name in names}
    )
    cells: list[dict[str, str]] = []
    unread: list[str] = []
    for name, value in held.items():
        try:
            found, left = await asyncio.to_thread(find_values, value, args["texts"])
        except NotATableError as error:
            raise ActionError(f"The variable {name!r} {error}.") from error
        cells += [{"variable": name, "column": column, "value": cell} for column, cell in found]
        unread += [f"{name}.{column}" for column in left]
        context.used(Source("variable", name, len(value) if is_frame_like(value) else None))  # type: ignore[arg-type]
    return {"found": cells} | ({"not_searched": unread} if unread else {})


async def with_named_sources(
    args: Arguments, context: ToolContext, seconds: float, memory: str
) -> dict[str, Any]:
    """Return the arguments of a person's query with the sources that its tables name."""
    query = SqlQuery(sql_child(context.services.children, memory), seconds)
    try:
        tables = await run_in_thread(lambda: query.table_names(args["sql"]), query.interrupt)
    except SqlError:  # the query itself says what is wrong
        return dict(args)
    found = await asyncio.to_thread(find_sources, tables, args, context)
    return {**args, "sources": found} if found else dict(args)


def plan_files(args: Arguments, context: ToolContext) -> dict[str, str]:
    """Return where the paths of the files lead to, each by the name of its table: links are followed once."""
    workspace = context.services.workspace
    try:
        return {
            alias: workspace.place(given)
            for alias, given in (args.get("sources") or {}).items()
            if type(given) is str and _kind(given) == "file"
        }
    except WorkspaceError as error:
        raise ActionError(str(error), _available(context)) from error


def file_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    """Reads of workspace files, so that a deny rule can name them."""
    return tuple(Effect("read", place) for place in context.plan.values())


async def _query(args: Arguments, context: ToolContext, seconds: float, memory: str) -> pd.DataFrame:
    sql, limit = args["sql"], int(args.get("limit", LIMIT))
    query = SourcedQuery(args.get("sources") or {}, sql, limit, seconds, memory)
    try:
        answer, masked = await run_over_sources(query, context, lambda run: run(sql, limit))
    except SqlError as error:
        raise await asyncio.to_thread(_refused, error, args, context) from error
    notes = _notes(answer, masked)
    if notes:
        answer.frame.attrs["reyn_note"] = notes
    return answer.frame


Run = Callable[[str, int], SqlAnswer]


@dataclass(frozen=True)
class SourcedQuery:
    """The sources of a call, and what it reads of them.

    Args:
        sources: by alias, as the schema of `table__query` has them; the call's plan is `plan_files` of them.
        sql: one statement that reads; it alone decides which parts of large frames are sent.
        limit: most rows of its answer.
        seconds: in which all statements have to be done.
        memory: DuckDB's memory limit.
    """

    sources: Mapping[str, Any]
    sql: str
    limit: int
    seconds: float = SECONDS
    memory: str = MEMORY


async def run_over_sources(
    asked: SourcedQuery, context: ToolContext, work: Callable[[Run], T]
) -> tuple[T, Sequence[str]]:
    """Open the sources of a call, and work on them with statements that read.

    Args:
        work: blocks, in a thread of its own; it runs as many statements as it likes, each with its limit of rows.

    Returns:
        What `work` returned, and which sources held secrets, which were masked.

    Raises:
        SqlError: a statement was refused or failed.
        ActionError: a source or the time.
    """
    tables, files = await _sources(asked.sources, context)
    child = sql_child(context.services.children, asked.memory)
    query = SqlQuery(child, asked.seconds)
    sources = _Sources(context, lambda: SqlQuery(child, asked.seconds))

    def open_and_work() -> T:
        with closing(query), ExitStack() as opened:
            query.check(asked.sql)
            planned = not files and _is_worth_a_plan(tables)
            scans = query.scans(asked.sql, tables, asked.limit) if planned else {}
            for alias, value in tables.items():
                _add_table(query, alias, value, sources, scans.get(alias, WHOLE))
            for alias, path in files.items():
                query.add_file(alias, *sources.file(alias, path, opened))
            return work(query.run)

    def stop() -> None:
        sources.stop()
        query.interrupt()

    try:
        async with asyncio.timeout(asked.seconds):
            return await run_in_thread(open_and_work, stop), sources.masked
    except (TimeoutError, SqlDeadlineError):
        raise ActionError(
            f"The query was stopped after {asked.seconds:g} seconds, which is all that one may take.",
            "Filter or aggregate earlier, or use fewer rows.",
        ) from None
    except WorkspaceError as error:
        raise ActionError(str(error)) from error


def _notes(answer: SqlAnswer, masked: Sequence[str]) -> str:
    """Return what a reader of the rows has to know about them; `masked` are the sources that held secrets."""
    notes = []
    if answer.more:
        rows = len(answer.frame)
        notes.append(
            f"the first {rows:,} rows; there are more: aggregate, or raise limit (at most {MOST_ROWS:,})"
        )
    if infinite := _infinite_columns(answer.frame):
        notes.append(f"some null stands for an infinite number in {listed(infinite)}")
    if answer.hidden:
        notes.append(f"named like secrets, and so {HIDDEN} in the query too: {listed(answer.hidden)}")
    if masked:
        notes.append(f"secrets are masked in the sources: {listed(masked)}")
    if answer.renamed:
        notes.append(f"renamed: {listed(answer.renamed)}")
    return "; ".join(notes)


def _infinite_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns with infinite numbers, which records have as null."""
    return [
        str(name)
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if dtype.kind in "fO"
        and any(type(cell) is float and math.isinf(cell) for cell in frame[name].tolist())
    ]


async def run_in_thread(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run blocking work in a thread; when this is cancelled, call `stop` until the work has ended."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # One interrupt may fall between two requests, and unheard.
        while not task.done():
            stop()
            await asyncio.wait([task], timeout=0.05)
        if not task.cancelled():
            task.exception()
        raise


async def _sources(given: Mapping[str, Any], context: ToolContext) -> tuple[dict[str, Any], dict[str, str]]:
    """The tables' values and the files' paths, each by alias; reported as used."""
    _check_aliases(given)
    tables: dict[str, Any] = {}
    files: dict[str, str] = {}
    variables: dict[str, str] = {}
    for alias, source in given.items():
        if type(source) is not str:  # an opened reference may be any object, whose __class__ is its own
            tables[alias] = source
        elif (kind := _kind(source)) == "blob":
            tables[alias] = await open_blob_value(source, None, context.services)
            context.used(Source("blob", canonical_id(source)))
        elif kind == "variable":
            variables[alias] = source.removeprefix("@")
        else:
            files[alias] = _readable(context.plan[alias], context)
    if variables:
        # On the notebook's thread, where nobody changes a frame while it is copied.
        tables |= await context.services.main_thread(
            lambda: {alias: holdable(find_variable(name, context)) for alias, name in variables.items()}
        )
    for source, alias in {source: alias for alias, source in variables.items()}.items():
        context.used(Source("variable", source, len(tables[alias]) if is_frame_like(tables[alias]) else None))
    for path in dict.fromkeys(files.values()):
        context.used(Source("file", path))
    return tables, files


def _kind(source: str) -> str:
    """Return the kind of a source. A variable is an identifier, and no file that can be read is named like one."""
    if is_blob_id(source):
        return "blob"
    return "variable" if source.removeprefix("@").isidentifier() else "file"


def _check_aliases(given: Mapping[str, Any]) -> None:
    seen: dict[str, str] = {}
    for alias, source in given.items():
        # A person may call a table by the name of its file, in quotes.
        if not _ALIAS.fullmatch(alias) and alias != source and reader_of(alias) is None:
            raise ActionError(
                f"The source name {alias[:64]!r} cannot be a table's name.",
                "Use letters, digits and _, a letter first, for example orders.",
            )
        if alias.lower() in seen:
            raise ActionError(
                f"The source names {seen[alias.lower()]!r} and {alias!r} are the same in SQL.",
                "Rename one of them.",
            )
        seen[alias.lower()] = alias


def _readable(path: str, context: ToolContext) -> str:
    if reader_of(path) is None:
        raise ActionError(
            f"{path[:200]} is no file that SQL reads; these are: {FILE_KINDS}, and most of them as .gz.",
            _available(context),
        )
    return path


class _Sources:
    """The sources of one query on their way into it: opened as the rules allow, their secrets covered.

    Args:
        context: the call's surroundings.
        another: makes a query of its own, which reads a file's texts.
    """

    def __init__(self, context: ToolContext, another: Callable[[], SqlQuery]) -> None:
        self._context = context
        self._another = another
        self._reading: SqlQuery | None = None
        self._stopped = threading.Event()
        self.masked: list[str] = []

    def stop(self) -> None:
        """End the work on sources, from any thread."""
        self._stopped.set()
        reading = self._reading
        if reading is not None:
            reading.interrupt()

    def table(self, alias: str, value: object, scan: Scan) -> object:
        """Return what a query reads of a value that is a table, with its secrets covered. Raises NotATableError."""
        if self._context.actor == "person":
            return value
        frame = as_table(value, scan.left_out, scan.rows)
        frame, covered = masked_frame(frame, self._context.services.redactor)
        self.masked += (f"{alias}.{column}" for column in covered)
        return frame

    def renamed(self, value: object) -> Renamed:
        """Return the columns of a value that have other names in SQL, their labels with secrets covered."""
        mask = str if self._context.actor == "person" else self._context.services.redactor.text
        return {name: (mask(label), mask(told)) for name, (label, told) in renamed_in(value).items()}

    def file(self, alias: str, path: str, opened: ExitStack) -> tuple[str, BinaryIO]:
        """Return the name and the open file of a source. Raises ActionError, WorkspaceError."""
        file = opened.enter_context(self._context.workspace.open_place(path))
        if self._context.actor == "person":
            return path, file
        redactor = self._context.services.redactor
        try:
            masked = masked_source(path, file, redactor, self._go_on, self._texts)
        except SecretInSourceError as error:
            raise ActionError(
                f"{path} holds a secret in the column {error.column}, and SQL would see it.",
                "Ask the person for a file without that column.",
            ) from None
        except (OSError, EOFError, zlib.error) as error:
            raise ActionError(f"{path} cannot be read: {error}") from error
        if masked is None:
            return path, file
        self.masked.append(alias)
        return masked[0], opened.enter_context(masked[1])

    def _texts(self, name: str, file: BinaryIO) -> Iterator[pd.DataFrame]:
        """Yield the columns that may hold texts, as texts."""
        described = self._rows(name, file, "SELECT column_name, column_type FROM (DESCRIBE t)")
        columns = [
            '"' + column.replace('"', '""') + '"'
            for column, kind in described.itertuples(index=False)
            if _TEXT_TYPES.search(kind)
        ]
        start = 0
        while columns:
            chosen = ", ".join(f"{column}::VARCHAR AS {column}" for column in columns)
            part = self._rows(name, file, f"SELECT {chosen} FROM t LIMIT {MOST_ROWS} OFFSET {start}")  # noqa: S608 - quoted above
            yield part
            start += len(part)
            if len(part) < MOST_ROWS:
                return

    def _rows(self, name: str, file: BinaryIO, sql: str) -> pd.DataFrame:
        self._go_on()
        with closing(self._another()) as query:
            self._reading = query
            try:
                query.add_file("t", name, file)
                return query.run(sql, MOST_ROWS).frame
            finally:
                self._reading = None

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise SqlError("it was interrupted")


def _add_table(query: SqlQuery, alias: str, value: object, sources: _Sources, scan: Scan) -> None:
    try:
        query.add_table(alias, sources.table(alias, value, scan), scan, sources.renamed(value))
    except NotATableError as error:
        raise ActionError(
            f"The source {alias!r} {error}.",
            'For a part of a blob give {"$blob": "<id>", "path": "/rows"}.',
        ) from error


def _is_worth_a_plan(tables: Mapping[str, Any]) -> bool:
    """Return whether these are frames alone, and so large that a part of them is sent sooner than all."""
    import pandas as pd

    frames = list(tables.values())
    return (
        all(type(frame) is pd.DataFrame for frame in frames)
        and sum(frame.size for frame in frames) >= FEWEST_CELLS
    )


def _refused(error: SqlError, args: Arguments, context: ToolContext) -> ActionError:
    """Return what is said of a query that failed; a person is also offered the call that was probably meant."""
    said, hint = f"SQL: {error}", refusal_hint(error, context)
    if context.actor != "person":
        return ActionError(said, hint)
    if error.fixed is not None:
        return ActionError(said, hint, fix={**args, "sql": error.fixed})
    given = args.get("sources") or {}
    meant = None if error.missing is None else near_source(error.missing, given, context)
    if error.missing is None or meant is None:
        return ActionError(said, hint)
    fix = {**args, "sources": {**given, error.missing: meant[1]}}
    return ActionError(said, f"Did you mean {meant[0]}?", fix=fix)


def refusal_hint(error: SqlError, context: ToolContext) -> str:
    """Return what to do next after a query that failed."""
    if error.missing is None:
        return error.hint
    name = error.missing[:100]
    known = (
        name if context.variables != "off" and name in _variables(context) else "<variable, file or blob id>"
    )
    if reader_of(name):
        return f'Files are not named in the SQL: add "sources": {{"t": "{name}"}} and query t.'
    return f'Only named sources can be queried: add "sources": {{"{name}": "{known}"}}.'


def _available(context: ToolContext) -> str:
    names = [] if context.variables == "off" else list(_variables(context))[:20]
    known = f" Variables: {', '.join(names)}." if names else ""
    return f"A source is a notebook variable, a workspace file or a blob id.{known}"


def _variables(context: ToolContext) -> dict[str, Any]:
    return visible_variables(context.services)
