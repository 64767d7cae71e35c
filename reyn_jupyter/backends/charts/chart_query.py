"""What a chart computes: from a request and the types of columns to SQL that groups, counts and bins all rows.

Invariants: every row counts. No sample and no first rows are drawn: what is too much for marks is grouped, binned or
put together in SQL, and said. Rows are read in three statements: the columns, their ranges, the groups.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.backends.charts import time_units
from reyn_jupyter.backends.charts.chart_columns import ChartColumn, column_kind, find_columns
from reyn_jupyter.backends.charts.chart_request import (
    BINS,
    Aggregate,
    Channel,
    ChartError,
    ChartRequest,
    DataType,
    Encoding,
    TimeUnit,
)
from reyn_jupyter.backends.charts.query_facts import QueryFacts
from reyn_jupyter.backends.sql.sql_scans import quoted
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    import pandas as pd

MOST_POINTS = 1000
MOST_GROUPS = 100_000  # that are read; far fewer are drawn
CELLS = (60, 40)  # of points that are too many
MISSING = "(missing)"
_MOST_NUMBERS = 60  # numbers that are drawn as categories
SUMMARIES: Mapping[str, str] = {
    "low": "min({0})",
    "q1": "quantile_cont({0}, 0.25)",
    "median": "median({0})",
    "q3": "quantile_cont({0}, 0.75)",
    "high": "max({0})",
}
_AGGREGATES: Mapping[Aggregate, str] = {
    "count": "count({0})",
    "distinct": "count(DISTINCT {0})",
    "sum": "sum({0})",
    "mean": "avg({0})",
    "median": "median({0})",
    "min": "min({0})",
    "max": "max({0})",
}

_IDENTIFIES = re.compile(r"(?:\A|_| )(?:id|year|zip|postcode|code)\Z|[a-z](?:Id|ID|Year)\Z", re.IGNORECASE)
NO_FACTS = QueryFacts()
Run = Callable[[str, int], Any]
Grouping = Literal["category", "bucket", "moment", "number", "bin"]


@dataclass(frozen=True)
class Bins:
    """Bins of one width: where the first begins, how wide each is, how many there are."""

    start: float
    step: float
    number: int


@dataclass(frozen=True)
class Dimension:
    """A channel that groups.

    Attributes:
        grouping: by category, by a bucket of time, by the very moment or number, or by bins.
        first, last: of the values, where they are moments.
    """

    channel: Channel
    column: ChartColumn
    grouping: Grouping
    unit: TimeUnit | None = None
    bins: Bins | None = None
    first: Any = None
    last: Any = None

    @property
    def label(self) -> str:
        """What stands at the axis."""
        by = f" ({self.unit})" if self.unit else ""
        return self.column.encoding.title or f"{self.column.label}{by}"


@dataclass(frozen=True)
class Measure:
    """The channel that shows a number for each group; without a column the rows are counted.

    Attributes:
        default: whether the call names no aggregate.
        expression: how the query computes the column, if it is an aggregate there.
    """

    channel: Channel
    aggregate: Aggregate
    column: ChartColumn | None
    default: bool = False
    expression: str = ""

    @property
    def label(self) -> str:
        title = self.column.encoding.title if self.column else None
        if title:
            return title
        if self.column is None:
            return "count of rows"
        return (
            f"{'distinct values' if self.aggregate == 'distinct' else self.aggregate} of {self.column.label}"
        )

    @property
    def adds_up(self) -> bool:
        """Whether the numbers of several groups may be added."""
        return self.aggregate in ("sum", "count")


@dataclass(frozen=True)
class ChartRows:
    """The groups of a chart, computed.

    Attributes:
        frame: a column a channel and one beside it that orders its groups, `n` (rows of each group); a box plot has
            low, q1, median, q3 and high.
        total: rows in all; `notes` says which of them are not in the frame.
        sql: the statement that computes the groups, for people.
        filters: which rows the query keeps, in words.
    """

    request: ChartRequest
    frame: pd.DataFrame
    dimensions: tuple[Dimension, ...]
    measure: Measure | None
    total: int
    notes: tuple[str, ...]
    sql: str
    filters: tuple[str, ...] = ()

    def with_note(self, note: str) -> ChartRows:
        return replace(self, notes=(*self.notes, note))

    def dimension(self, channel: Channel) -> Dimension | None:
        return next((each for each in self.dimensions if each.channel == channel), None)


def compute(
    request: ChartRequest, source: str, run: Run, facts: QueryFacts = NO_FACTS, zones: Mapping[str, str] = {}
) -> ChartRows:
    """Compute the rows of a chart.

    Args:
        facts: what the query of the source says of its rows.
        zones: time zones of columns whose moments the source gives as their own zone has them.
        source: what stands after FROM: a quoted table, or a statement that was found to be one that reads.
        run: a statement and its limit of rows → an object with `frame` and `more`.

    Raises:
        ChartError: the request does not fit the data, or there is nothing to draw.
    """
    described = run(f"SELECT column_name, column_type FROM (DESCRIBE {_bare(source)})", 10_000).frame  # noqa: S608
    columns = [(str(name), str(kind)) for name, kind in described.itertuples(index=False, name=None)]
    request, measure_channel = _with_measure(request, columns)
    found = {
        channel: replace(column, zone=zones.get(column.name, column.zone))
        for channel, column in find_columns(
            request, columns, {measure_channel} if measure_channel else set()
        ).items()
    }
    ranges = _Ranges(found, run(_ranges_sql(found, source), 1).frame.iloc[0].to_dict())
    if ranges.total == 0:
        raise ChartError("there are no rows to draw.")
    if measure_channel is None and ranges.total > MOST_POINTS:
        rows = _cells(request, found, ranges, source, run)
    else:
        rows = _grouped(request, measure_channel, found, ranges, source, run)
    return with_facts(rows, facts)


def with_facts(rows: ChartRows, facts: QueryFacts) -> ChartRows:
    """Return the rows with what the query says of them: its filters, and how it computes the measure."""
    measure = rows.measure
    rows = replace(rows, filters=tuple(facts.filters))
    if measure is None or measure.column is None:
        return rows
    return replace(rows, measure=replace(measure, expression=facts.aggregates.get(measure.column.name, "")))


def _bare(source: str) -> str:
    """Return a source without its alias, under which DuckDB would rename a column that is there twice."""
    return source.removesuffix(" AS given")


class _Ranges:
    """What the values of each column lie between, and how many there are."""

    def __init__(self, found: Mapping[Channel, ChartColumn], row: Mapping[str, Any]) -> None:
        self.total = int(row["rows"])
        self._found, self._row = found, row

    def read(self, channel: Channel) -> int:
        return int(self._row[f"{channel}_read"])

    def distinct(self, channel: Channel) -> int:
        return int(self._row[f"{channel}_distinct"])

    def low(self, channel: Channel) -> Any:
        return self._row[f"{channel}_min"]

    def high(self, channel: Channel) -> Any:
        return self._row[f"{channel}_max"]

    def notes(self, channel: Channel, *, left_out: bool) -> list[str]:
        """Return what is not drawn of a column: missing values, and such as cannot be shown."""
        column = self._found[channel]
        given, read = int(self._row[f"{channel}_given"]), self.read(channel)
        said = []
        if read < given:
            what = "dates" if column.kind == "temporal" else "finite numbers"
            said.append(f"{count(given - read, 'value')} of {column.label} are no {what} and left out")
        if left_out and given < self.total:
            said.append(f"{count(self.total - given, 'row')} without {column.label} left out")
        return said


def _with_measure(
    request: ChartRequest, columns: Sequence[tuple[str, str]]
) -> tuple[ChartRequest, Channel | None]:
    """Return the request with what the mark implies, and the channel that shows a number a group, if one does."""
    encodings = dict(request.encodings)
    x, y = encodings.get("x"), encodings.get("y")
    kinds = {channel: column_kind(each, columns) for channel, each in encodings.items()}
    if request.mark == "histogram":
        if x is None or x.field is None:
            raise ChartError("a histogram needs x, the column whose values are counted.")
        if kinds["x"] == "quantitative" and x.bins is None:
            encodings["x"] = replace(x, bins=BINS)
        encodings.setdefault("y", Encoding(aggregate="count"))
        return replace(request, encodings=encodings), "y"
    if x is None and y is None:
        raise ChartError(f"a {request.mark} chart needs x or y.", "Name a column for each axis.")
    if request.mark == "heatmap":
        if x is None or y is None:
            raise ChartError("a heatmap needs x and y; color is what its cells show.")
        encodings.setdefault("color", Encoding(aggregate="count"))
        return replace(request, encodings=encodings), "color"
    if request.mark == "boxplot" and ({"row", "column", "color"} & set(encodings)):
        raise ChartError("a box plot has x and y alone.", "Leave color, row and column out.")
    channel = _measure_channel(request.mark, x, y, kinds)
    if channel is not None:
        encodings.setdefault(channel, Encoding(aggregate="count"))
    return replace(request, encodings=encodings), channel


def _measure_channel(
    mark: str, x: Encoding | None, y: Encoding | None, kinds: Mapping[Channel, DataType]
) -> Channel | None:
    counted = mark != "boxplot"
    if y is None:
        return "y" if counted and not (x and x.aggregate) else "x"
    if x is None:
        return "x" if counted and not y.aggregate else "y"
    if mark == "point" and not (x.aggregate or y.aggregate):
        return None
    sideways = kinds.get("x") == "quantitative" and kinds.get("y") != "quantitative" and x.bins is None
    return "x" if not y.aggregate and (x.aggregate or sideways) else "y"


def _ranges_sql(found: Mapping[Channel, ChartColumn], source: str) -> str:
    parts = ['count(*) AS "rows"']
    for channel, column in found.items():
        parts += [
            f"count({quoted(column.name)}) AS {channel}_given",
            f"count({column.sql}) AS {channel}_read",
            f"count(DISTINCT {column.sql}) AS {channel}_distinct",
        ]
        if column.kind != "nominal" and column.encoding.aggregate not in ("count", "distinct"):
            parts += [f"min({column.sql}) AS {channel}_min", f"max({column.sql}) AS {channel}_max"]
    return f"SELECT {', '.join(parts)} FROM {source}"  # noqa: S608 - quoted names and words of our own


def _grouped(
    request: ChartRequest,
    measure_channel: Channel | None,
    found: Mapping[Channel, ChartColumn],
    ranges: _Ranges,
    source: str,
    run: Run,
) -> ChartRows:
    notes: list[str] = []
    measure = None
    if measure_channel is not None:
        column = found.get(measure_channel)
        given = request.encodings[measure_channel].aggregate
        measure = Measure(measure_channel, given or ("sum" if column else "count"), column, given is None)
        if column is not None and measure.aggregate not in ("count", "distinct"):
            notes += ranges.notes(measure_channel, left_out=False)
    dimensions = []
    for channel, column in found.items():
        if channel != measure_channel:
            made = _dimension(request, channel, column, ranges, raw=measure is None, notes=notes)
            notes += ranges.notes(channel, left_out=made.grouping != "category")
            dimensions.append(made)
    grouped = tuple(dimensions)
    rows = _computed(request, grouped, measure, ranges.total, notes, source, run)
    if (
        measure is None
        or column is None
        or not measure.default
        or request.mark == "boxplot"
        or _is_alone(rows)
    ):
        return rows
    if _IDENTIFIES.search(column.name):
        name = column.name[:80]
        raise ChartError(
            f"{name!r} looks like a year or a number that identifies rows, and there are several rows for a mark.",
            f'If you want a figure of it, name it: {{"field": "{name}", "aggregate": "mean"}}.',
        )
    notes.append("no aggregate is named, so the mean of each group is drawn")
    return _computed(request, grouped, replace(measure, aggregate="mean"), ranges.total, notes, source, run)


def _is_alone(rows: ChartRows) -> bool:
    """Return whether each group is one row, whose value is drawn as it is."""
    return bool((rows.frame["n"] <= 1).all())


def _cells(
    request: ChartRequest, found: Mapping[Channel, ChartColumn], ranges: _Ranges, source: str, run: Run
) -> ChartRows:
    """Count points that are too many for marks in cells."""
    notes = []
    if "color" in found:
        notes.append(f"{found['color'].label} is left out: cells show how many points they hold")
    for channel in ("x", "y"):
        notes += ranges.notes(channel, left_out=True)
    dimensions = []
    for channel, column in found.items():
        if channel == "color":
            continue
        most = CELLS[0] if channel == "x" else CELLS[1]
        dimensions.append(_dimension(request, channel, column, ranges, most=most, notes=notes))
    sizes = " × ".join(
        str(each.bins.number) if each.bins else f"{ranges.distinct(each.channel):,}"
        for each in dimensions
        if each.channel in ("x", "y")
    )
    counted = Measure("color", "count", None)
    binned = replace(request, mark="heatmap")
    rows = _computed(binned, tuple(dimensions), counted, ranges.total, notes, source, run)
    points = int(rows.frame["n"].sum())
    return replace(rows, notes=(f"{points:,} points counted in {sizes} cells", *notes))


def _dimension(
    request: ChartRequest,
    channel: Channel,
    column: ChartColumn,
    ranges: _Ranges,
    *,
    notes: list[str],
    raw: bool = False,
    most: int | None = None,
) -> Dimension:
    """Return how a channel groups. `most` bins at most, where values are too many for marks."""
    encoding, on_axis = column.encoding, channel in ("x", "y")
    if column.kind == "nominal" or ranges.read(channel) == 0:
        return Dimension(channel, replace(column, kind="nominal", sql=_as_text(column)), "category")
    low, high = ranges.low(channel), ranges.high(channel)
    if column.kind == "temporal":
        return _time_dimension(request, channel, column, ranges, raw=raw, most=most, notes=notes)
    bins = encoding.bins or most
    discrete = ranges.distinct(channel) <= _MOST_NUMBERS
    if (
        bins is None
        and not raw
        and on_axis
        and request.mark in ("bar", "heatmap", "boxplot")
        and not discrete
    ):
        bins = BINS
    if bins is None and not raw and ranges.distinct(channel) > MOST_POINTS:
        bins = MOST_POINTS // 10
    if not on_axis:
        bins = bins or (None if ranges.distinct(channel) <= _MOST_NUMBERS else 10)
    if bins is not None:
        edges = nice_bins(float(low), float(high), bins)
        if encoding.bins is None and most is None:
            notes.append(f"{column.label} is binned: {edges.number} bins of {edges.step:g}")
        return Dimension(channel, column, "bin", bins=edges)
    categories = not on_axis or request.mark in ("bar", "boxplot", "heatmap")
    return Dimension(channel, column, "category" if categories else "number")


def _as_text(column: ChartColumn) -> str:
    return f"CAST({quoted(column.name)} AS VARCHAR)" if column.kind != "nominal" else column.sql


def _time_dimension(
    request: ChartRequest,
    channel: Channel,
    column: ChartColumn,
    ranges: _Ranges,
    *,
    raw: bool,
    most: int | None,
    notes: list[str],
) -> Dimension:
    first, last = _moment(ranges.low(channel)), _moment(ranges.high(channel))
    unit = column.encoding.time_unit
    exact = raw or (
        request.mark in ("line", "area", "point") and ranges.distinct(channel) <= time_units.MOST_BUCKETS
    )
    if unit is None and exact and most is None and channel in ("x", "y"):
        return Dimension(channel, column, "moment", first=first, last=last)
    wanted = unit or time_units.usual_unit(first, last)
    fitting = time_units.coarser(wanted, first, last)
    if fitting != wanted:
        notes.append(f"{column.label} is grouped by {fitting}: by {wanted} there would be too many")
    return Dimension(channel, column, "bucket", fitting, first=first, last=last)


def _moment(value: Any) -> Any:
    from datetime import datetime

    return (
        value.to_pydatetime(warn=False)
        if hasattr(value, "to_pydatetime")
        else datetime.fromisoformat(str(value))
    )


def nice_bins(low: float, high: float, most: int) -> Bins:
    """Return at most so many bins with round edges that hold all values from `low` to `high`.

    >>> nice_bins(0.3, 97, 10)
    Bins(start=0.0, step=10.0, number=10)
    """
    span = high - low
    if not span > 0 or not math.isfinite(span):
        step = abs(low) / 10 or 1.0
        return (
            Bins(low - step / 2, step, 1)
            if math.isfinite(span)
            else Bins(low, high / most - low / most, most)
        )
    exact = span / most
    power = 10.0 ** math.floor(math.log10(exact))
    for factor in (1, 2, 2.5, 5, 10, 20, 25, 50):
        step = factor * power
        start = math.floor(low / step) * step
        number = max(1, math.ceil((high - start) / step))
        if number <= most and math.isfinite(start) and start + step > start:
            return Bins(start, step, number)
    return Bins(low, span / most, most)


def _computed(
    request: ChartRequest,
    dimensions: tuple[Dimension, ...],
    measure: Measure | None,
    total: int,
    notes: Sequence[str],
    source: str,
    run: Run,
) -> ChartRows:
    statement = _statement(request, dimensions, measure, source, keys=True)
    answer = run(statement, MOST_GROUPS)
    if answer.more:
        raise ChartError(
            f"there are more than {MOST_GROUPS:,} groups.", "Group by a coarser column, or filter in a query."
        )
    if answer.frame.empty:
        raise ChartError("there is nothing to draw: all values are missing. " + "; ".join(notes))
    people = _statement(request, dimensions, measure, source, keys=False)
    return ChartRows(request, answer.frame, dimensions, measure, total, tuple(notes), people)


def _statement(
    request: ChartRequest,
    dimensions: Sequence[Dimension],
    measure: Measure | None,
    source: str,
    *,
    keys: bool,
) -> str:
    """Return the SQL of the groups; with `keys` what orders categories and the rows of each group too."""
    parts, order, present = [], [], []
    for each in dimensions:
        key, label = _group_sql(each)
        parts.append(f"{label} AS {quoted(each.channel)}")
        if spans(request, each) and each.bins is not None:
            parts.append(f"{label} + {each.bins.step!r}::DOUBLE AS {quoted(each.channel + '2')}")
        if keys:
            parts.append(f"{key if measure is None else f'min({key})'} AS {quoted(each.channel + '_key')}")
        order.append(f"min({key})")
        if each.grouping != "category":
            present.append(f"{each.column.sql} IS NOT NULL")
    value = measure.column.sql if measure is not None and measure.column else "*"
    if measure is None:
        pass
    elif request.mark == "boxplot":
        present.append(f"{value} IS NOT NULL")
        parts += [f"{sql.format(value)} AS {name}" for name, sql in SUMMARIES.items()]
    else:
        parts.append(f"{_AGGREGATES[measure.aggregate].format(value)} AS {quoted(measure.channel)}")
    if keys:
        parts.append("1 AS n" if measure is None else "count(*) AS n")
    where = f"\nWHERE {' AND '.join(present)}" if present else ""
    grouped = f"\nGROUP BY ALL\nORDER BY {', '.join(order)}" if order and measure is not None else ""
    return f"SELECT {', '.join(parts)}\nFROM {source}{where}{grouped}"


def spans(request: ChartRequest, dimension: Dimension) -> bool:
    """Return whether the marks of a channel go from one edge of a bin to the other."""
    wide = request.mark in ("bar", "histogram", "heatmap")
    return wide and dimension.bins is not None and dimension.channel in ("x", "y")


def _group_sql(dimension: Dimension) -> tuple[str, str]:
    """Return the SQL that orders the groups of a dimension, and the one of what stands for a group."""
    sql = dimension.column.sql
    if dimension.unit is not None:
        return time_units.bucket_sql(sql, dimension.unit)
    if dimension.bins is not None:
        start, step = f"{dimension.bins.start!r}::DOUBLE", f"{dimension.bins.step!r}::DOUBLE"
        last = dimension.bins.number - 1
        edge = f"{start} + least(floor(({sql} - {start}) / {step}), {last}) * {step}"
        return edge, edge
    if dimension.grouping == "category":
        text = sql if dimension.column.kind == "nominal" else f"CAST({sql} AS VARCHAR)"
        return sql, f"coalesce({text}, '{MISSING}')"
    return sql, sql
