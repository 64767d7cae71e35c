"""Charts of what the session already holds: a query, a variable, a file or a stored result.

Invariant: a call names columns, a mark and words of closed lists; no code, expression, address or piece of a spec can
be said. Rows are read as `table__query` reads them, with its permissions and its masking of secrets; the picture is
made in a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.backends.charts.chart_columns import frame_zones
from reyn_jupyter.backends.charts.chart_layout import lay_out
from reyn_jupyter.backends.charts.chart_query import NO_FACTS, ChartRows, compute
from reyn_jupyter.backends.charts.chart_request import ARGUMENTS, ChartError, read_request
from reyn_jupyter.backends.charts.chart_result import ChartResult
from reyn_jupyter.backends.charts.query_facts import query_facts
from reyn_jupyter.backends.charts.renderer import SECONDS, chart_child, render, why_not
from reyn_jupyter.backends.charts.source_code import query_lines, source_lines
from reyn_jupyter.backends.sql.sql_query import FILE_KINDS, MEMORY, SqlError
from reyn_jupyter.backends.sql.sql_scans import quoted
from reyn_jupyter.catalog.action import Arguments, Category, Operation, Purity, Tool
from reyn_jupyter.categories.table import (
    SourcedQuery,
    file_effects,
    plan_files,
    refusal_hint,
    run_in_thread,
    run_over_sources,
    with_named_sources,
)
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.reference_resolver import find_variable
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.text import enumerate_words

DATA = "data"
ALL_ROWS = 1 << 60
_SCHEMA = {
    "type": "object",
    "properties": {
        "data": {
            "type": "string",
            "x-reference": ["array", "object", "python"],
            "description": "The rows: a notebook variable, a workspace file "
            f"({FILE_KINDS}) or a blob id. Instead of sql and sources.",
        },
        "sql": {
            "type": "string",
            "minLength": 1,
            "description": "One DuckDB SELECT whose rows are drawn, over sources.",
        },
        "sources": {
            "type": "object",
            "additionalProperties": {"type": "string", "x-reference": ["array", "object", "python"]},
            "description": "Table name in the SQL → a notebook variable, a workspace file or a blob id.",
        },
        **ARGUMENTS,
    },
    "required": ["mark"],
    "additionalProperties": False,
}


def categories(services: Services, *, seconds: float = SECONDS) -> tuple[Category, ...]:
    """`chart`.

    Args:
        services: namespace, blobs, workspace and processes.
        seconds: in which the rows have to be computed, and again in which the picture has to be drawn.
    """

    async def draw(args: Arguments, context: ToolContext) -> ChartResult:
        return await _draw(args, context, seconds)

    async def complete(args: Arguments, context: ToolContext) -> Arguments:
        lacking = "sql" in args and DATA not in args and why_not() is None
        return await with_named_sources(args, context, seconds, MEMORY) if lacking else args

    return (
        Category(
            "chart",
            "Draw charts of tables: bars, lines, areas, points, histograms, box plots, heatmaps.",
            operations=(
                Operation(
                    "draw",
                    "Draw a chart of a variable, file, stored result or SQL query: name the mark, and a column for "
                    "each axis. Grouping and aggregation are done here, over all rows.",
                    _SCHEMA,
                    Tool("draw_chart", draw, Purity.READ, file_effects, plan=_plan, complete=complete),
                ),
            ),
            hidden=why_not,
        ),
    )


def _sources(args: Arguments) -> tuple[str, dict[str, Any]]:
    """Return what stands after FROM in the queries of a chart, and the sources. Raises ActionError."""
    if (DATA in args) == ("sql" in args):
        raise ActionError(
            "A chart draws either data or the rows of sql.",
            'Give "data": "orders", or "sql" with its "sources": {"orders": "orders"}.',
        )
    if DATA not in args:
        statement = str(args["sql"]).strip().rstrip(";").rstrip()
        return f"({statement}\n) AS given", dict(args.get("sources") or {})
    if "sources" in args:
        raise ActionError('"sources" belongs to sql.', 'Leave it out, or give "sql" instead of "data".')
    given = args[DATA]
    name = given.removeprefix("@") if isinstance(given, str) else ""
    alias = name if name.isascii() and name.isidentifier() and len(name) <= 64 and name[0] != "_" else DATA
    return f'"{alias}"', {alias: given}


def _plan(args: Arguments, context: ToolContext) -> dict[str, str]:
    return plan_files({"sources": _sources(args)[1]}, context)


async def _zones(sources: Mapping[str, Any], context: ToolContext) -> dict[str, str]:
    """Return the time zones of the columns of the variable that is drawn, so that days and months are its own.

    A frame with two columns of one name, and zones that are fixed offsets, stay in UTC, as the axis then says.
    """
    [given] = sources.values()
    name = given.removeprefix("@") if isinstance(given, str) else ""
    if not name.isidentifier():
        return {}
    return await context.services.main_thread(lambda: frame_zones(find_variable(name, context)))


async def _draw(args: Arguments, context: ToolContext, seconds: float) -> ChartResult:
    if (missing := why_not()) is not None:
        raise ActionError(f"{missing[:1].upper()}{missing[1:]}")
    source, sources = _sources(args)
    request = read_request(args)
    child = chart_child(context.services.children)
    # The statement of the call by itself: around it, half of one could become another.
    read = str(args["sql"]) if "sql" in args else f"FROM {source}"
    asked = SourcedQuery(sources, read, ALL_ROWS, seconds)
    facts = query_facts(str(args["sql"])) if "sql" in args else NO_FACTS
    zones = await _zones(sources, context) if DATA in args else {}
    if zones:
        local = ", ".join(
            f"timezone('{zone}', {quoted(name)}) AS {quoted(name)}" for name, zone in zones.items()
        )
        source = f"(SELECT * REPLACE ({local}) FROM {source}) AS given"  # noqa: S608 - quoted names and known zones

    def work(run: Any) -> ChartRows:
        child.start()  # it gets ready while the rows are computed
        return compute(request, source, run, facts, zones)

    try:
        rows, masked = await run_over_sources(asked, context, work)
        if masked:
            note = f"secrets are masked in the sources: {enumerate_words([*masked][:20])}"
            rows = rows.with_note(note)
        code = [*source_lines(sources), *query_lines(rows.sql)]
        drawing = lay_out(rows, context.services.redactor.text, code)
        picture = await run_in_thread(lambda: render(child, drawing, seconds), child.kill)
    except SqlError as error:
        raise ActionError(f"SQL: {error}", refusal_hint(error, context)) from error
    except ChartError as error:
        raise ActionError(f"It cannot be drawn: {error}", error.hint) from error
    return ChartResult.of(drawing, picture)
