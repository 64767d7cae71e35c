"""Plot what a question about a table computes: `plot amount per month`, `plot weight against height`.

Invariant: behind the word that asks for a chart stands a question that the grammar of tables understands, whole, or two
columns; else the request is declined. No chart is drawn of a part of what was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from reyn_jupyter.models.offline import sql_query
from reyn_jupyter.models.offline.answers import code
from reyn_jupyter.models.offline.context import Declined, PlanningContext, for_job
from reyn_jupyter.models.offline.lexer import units
from reyn_jupyter.models.offline.prompt_tokens import Prompt, read_prompt
from reyn_jupyter.models.offline.skills import table_lookup
from reyn_jupyter.models.offline.skills.table_lookup import by_alias
from reyn_jupyter.models.offline.sql_query import Output, TableQuery, aggregate, of_column, period
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema
from reyn_jupyter.models.offline.transcript import KnownAction

_KINDS = {"bar": "bar", "line": "line", "area": "area", "scatter": "point", "point": "point", "column": "bar"}
_CHART = r"(?:chart|plot|graph|diagram)"
_POLITE = r"(?:(?:please|can you|could you)\s+)*"
_ASKED = re.compile(
    rf"\A{_POLITE}(?:(?:plot|chart|graph|draw|visuali[sz]e|show|make|create)\s+)?(?:(?:me|a|an|the)\s+)*"
    rf"(?:(?P<kind>bar|line|area|scatter|point|column)s?[ -]?(?:{_CHART})?\s+(?:of|for|showing|with)\s+"
    rf"|{_CHART}\s+(?:of|for|showing|with)\s+)?(?:the\s+)?(?P<rest>.+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_VERB = re.compile(
    rf"\A{_POLITE}(?:plot|chart|graph|visuali[sz]e|draw)\b"
    rf"|\b(?:bar|line|area|scatter|pie)\s*{_CHART}\b"
    r"|\A(?:(?:show|make|create)\s+)?(?:(?:me|a|an|the)\s+)*(?:histogram|box ?plot|heat ?map)\b",
    re.IGNORECASE,
)
_HISTOGRAM = re.compile(r"\A(?:(?:a|the)\s+)?(?:histogram|distribution)\s+of\s+(?:the\s+)?", re.IGNORECASE)
_AGAINST = re.compile(
    r"\A(?P<y>\w[\w ]*?)\s+(?:against|vs\.?|versus)\s+(?P<x>\w[\w ]*?)(?:\s+(?:in|of|from)\s+(?P<table>\S+?)[.?!]?)?\Z",
    re.IGNORECASE,
)
_NOT_DRAWN = re.compile(rf"\b(?:pie|box ?plot|heat ?map|map|radar|sankey)\b(?:\s*{_CHART})?", re.IGNORECASE)
_UNITS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "dayofweek": "weekday",
}
_FUNCTIONS = {"avg": "mean", "sum": "sum", "median": "median", "max": "max", "min": "min"}


def attempt(context: PlanningContext, prompt: Prompt) -> str | None:
    """Draw a chart; None when the prompt asks for none."""
    if _VERB.search(prompt.text) is None:
        return None
    asked = _ASKED.match(prompt.text)
    action = _draw_action(context)
    if asked is None or _NOT_DRAWN.search(prompt.text):
        raise Declined(
            "I draw bars, lines, areas, points and histograms; say “plot AMOUNT per MONTH in TABLE”."
        )
    rest, kind = asked["rest"], _KINDS.get((asked["kind"] or "").lower())
    if (histogram := _HISTOGRAM.match(rest)) is not None:
        arguments = _histogram(context, prompt, rest[histogram.end() :])
    elif (against := _AGAINST.match(rest)) is not None:
        arguments = _against(context, prompt, against["y"], against["x"])
    else:
        arguments = _grouped(context, rest)
    result = context.invoke(action, {**arguments, **({"mark": kind} if kind else {})})
    if result.error is not None:
        raise Declined(f"the chart could not be drawn: {result.error}")
    said = [line for line in result.text.splitlines() if line and not line.startswith("[")]
    return said[0] if said else "The chart is drawn."


def _draw_action(context: PlanningContext) -> KnownAction:
    category = context.category("chart")
    found = for_job(context.listing((category,)), ("draw", "chart"), ("mark", "x")) if category else None
    if found is None:
        raise Declined("no action that draws charts is on offer here.")
    return found


# -- two columns ----------------------------------------------------------------------------------------------------


def _tables(context: PlanningContext, prompt: Prompt) -> Iterator[TableSchema]:
    for group in table_lookup.candidates(context, prompt):
        yield from (made for make in group if (made := make()) is not None)


def _columns(context: PlanningContext, prompt: Prompt, *names: str) -> tuple[TableSchema, list[ColumnSchema]]:
    """The first table that has columns of these names; declines with the name that none has."""
    unknown = names[0]
    for table in _tables(context, prompt):
        found = [next((c for c in table.columns if c.name.lower() == name.lower()), None) for name in names]
        columns = [column for column in found if column is not None]
        if len(columns) == len(names):
            return table, columns
        unknown = next(name for name, column in zip(names, found, strict=True) if column is None)
    raise Declined(f"“{unknown[:60]}” is no column of a table that I found.")


def _histogram(context: PlanningContext, prompt: Prompt, rest: str) -> dict[str, Any]:
    name = re.split(r"\s+(?:in|of|from)\s+", rest.strip(" .?!"), maxsplit=1)
    known = {action.entry.lower() for action in table_lookup.variables(context)} | set(
        table_lookup.data_paths(prompt)
    )
    if len(name) == 2 and name[1].lower() not in known and name[1] not in known:
        raise Declined(f"“{name[1][:60]}” is no table that I found.")
    table, [column] = _columns(context, prompt, name[0])
    return {"data": table.source, "mark": "histogram", "x": column.name}


def _against(context: PlanningContext, prompt: Prompt, first: str, second: str) -> dict[str, Any]:
    """Points of two numbers; a bar of one number for each value of a text."""
    if (condition := re.search(r"\s(?:in|of|for|where|with)\s+(.+)", second)) is not None:
        raise Declined(f"points are drawn of all rows, and “{condition[1][:60]}” says which.")
    table, [y, x] = _columns(context, prompt, first, second)
    numbers = [column for column in (y, x) if column.kind == "number"]
    if len(numbers) == 1 and "text" in (x.kind, y.kind):
        [other] = [column for column in (x, y) if column is not numbers[0]]
        return {"data": table.source, "mark": "bar", "x": other.name, "y": numbers[0].name}
    if not numbers:
        raise Declined(f"{code(y.name)} and {code(x.name)} hold no numbers to draw.")
    return {"data": table.source, "mark": "point", "x": x.name, "y": y.name}


# -- a question with groups -----------------------------------------------------------------------------------------


def _grouped(context: PlanningContext, rest: str) -> dict[str, Any]:
    """What the grammar of tables makes of the rest: as it is, else as a total."""
    table, asked = _reading(context, rest)
    if (
        len(asked.groups) not in (1, 2)
        or asked.limit is not None
        or asked.having
        or (len(asked.outputs) != 1 and len(asked.unsaid) != 1)
    ):
        raise Declined("I cannot tell what stands at the two axes; say “plot AMOUNT per MONTH in TABLE”.")
    axes = [_axis(group, table) for group in asked.groups]
    measure = _measure(asked, table)
    rows: dict[str, Any] = {"data": table.source}
    if None in axes or measure is None:
        axes = [{"field": group.label, "sort": "ascending"} for group in asked.groups]
        measure = {"field": asked.outputs[0].label}
        rows = {
            "sql": sql_query.statement(replace(asked, unsaid=()), table.alias),
            "sources": by_alias(table),
        }
    elif asked.conditions or "\n" in table.source:
        sql = f"SELECT {sql_query.whole_rows(table)} FROM {table.alias}{sql_query.where(asked.conditions)}"  # noqa: S608 - as in sql_query
        rows = {"sql": sql, "sources": by_alias(table)}
        axes = [_zoned(axis, group) for axis, group in zip(axes, asked.groups, strict=True)]
    return {
        **rows,
        "mark": "bar",
        "x": axes[0],
        "y": measure,
        **({"color": axes[1]} if len(axes) > 1 else {}),
    }


def _zoned(axis: dict[str, Any] | None, group: Output) -> dict[str, Any] | None:
    """An axis of moments that a query gives as their own time zone has them, which its title names."""
    zone = group.column.zone if group.column is not None else ""
    return {**(axis or {}), "title": f"{group.label} of {axis['field']} ({zone})"} if zone and axis else axis


def _reading(context: PlanningContext, rest: str) -> tuple[TableSchema, TableQuery]:
    problem: Declined | None = None
    for text in (rest, f"total {rest}"):  # "plot amount per month": without a verb it may be no question
        prompt = read_prompt(text)
        try:
            table, asked = table_lookup.best_reading(context, prompt, units(prompt))
        except Declined as declined:
            problem = problem or declined
            continue
        if asked.groups and asked.outputs:
            return table, asked
    raise problem or Declined("it is not said what to plot per what; say “plot AMOUNT per MONTH in TABLE”.")


def _axis(group: Output, table: TableSchema) -> dict[str, Any] | None:
    """The channel of a group: a column, or a date column cut to a unit."""
    for column in table.columns:
        if group == of_column(column):
            return {"field": column.name}
        for name, unit in _UNITS.items():
            if group == period(name, column):
                return {"field": column.name, "time_unit": unit}
    return None


def _measure(asked: TableQuery, table: TableSchema) -> dict[str, Any] | None:
    """The channel of the figure; without an aggregate if the question names none, so that the chart says what it is."""
    [output, *_] = asked.outputs
    if asked.unsaid:
        return {"field": asked.unsaid[0].column.name} if asked.unsaid[0].column is not None else None
    if output.sql == "COUNT(*)":
        return {"aggregate": "count"}
    for column in table.columns:
        for function, name in _FUNCTIONS.items():
            if output == aggregate(function, of_column(column)):
                return {"field": column.name, "aggregate": name}
    return None
