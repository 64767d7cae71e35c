"""The columns that a chart's channels name: found, typed, and as SQL reads them.

Invariant: the SQL holds names of columns that exist, quoted, and words of closed lists; nothing else of a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.charts.chart_request import (
    Aggregate,
    Channel,
    ChartError,
    ChartRequest,
    DataType,
    Encoding,
)
from reyn_jupyter.backends.object_summary import dtype_text, is_loaded_type
from reyn_jupyter.backends.sql.sql_scans import quoted
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import did_you_mean, nearest_names, shorten

_NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)|BIGNUM|INTERVAL)")
_FLOATS = ("FLOAT", "DOUBLE")
_DATES = re.compile(r"DATE|TIMESTAMP.*|DATETIME")
_ZONE = re.compile(r"datetime64\[\w+, ([A-Za-z_]+(?:/[\w+-]+)*)\]")
_NAMED = 20  # columns that an error names
_LONGEST_NAME = 80
_NUMERIC: frozenset[Aggregate] = frozenset({"sum", "mean", "median", "min", "max"})


@dataclass(frozen=True)
class ChartColumn:
    """A column behind a channel.

    Attributes:
        name: as the rows have it.
        kind: how the channel shows it.
        sql: the expression that reads it, with infinite numbers and what is none of its kind as NULL.
        zone: the time zone that moments are shown in, if they have one: their own, or UTC.
        unit: "s" for durations, which are shown in seconds.
    """

    name: str
    kind: DataType
    sql: str
    encoding: Encoding
    zone: str = ""
    unit: str = ""

    @property
    def label(self) -> str:
        """The name on one line, as a person may see it."""
        said = f" ({self.zone or self.unit})" if self.zone or self.unit else ""
        return shorten(printable(self.name), _LONGEST_NAME) + said


def find_columns(
    request: ChartRequest, columns: Sequence[tuple[str, str]], measures: Iterable[Channel]
) -> Mapping[Channel, ChartColumn]:
    """Return the columns that the channels of a request name.

    Args:
        columns: (name, type of DuckDB) of all columns of the rows.
        measures: the channels that show a number a group.

    Raises:
        ChartError: no such column, two of that name, or one that cannot be shown as it was asked for.
    """
    names = [name for name, _ in columns]
    found: dict[Channel, ChartColumn] = {}
    for channel, encoding in request.encodings.items():
        if encoding.field is None:
            if encoding.aggregate not in (None, "count"):
                raise ChartError(
                    f"{channel} has the aggregate {encoding.aggregate} and no field.",
                    f'Name a column in it: {{"field": "…", "aggregate": "{encoding.aggregate}"}}.',
                )
            continue
        name = _existing(encoding.field, names)
        kind = dict(columns)[name]
        found[channel] = _column(name, kind, encoding, channel in measures)
    return found


def frame_zones(value: object) -> dict[str, str]:
    """Return the time zones of the columns of a frame by their names; none if a name is there twice."""
    if not is_loaded_type(value, "pandas", "DataFrame"):
        return {}
    frame: Any = value
    labels = [label.lower() if type(label) is str else "" for label in frame.columns.tolist()]
    zones = {}
    for at, dtype in enumerate(frame.dtypes):
        zone = _ZONE.fullmatch(dtype_text(dtype)) if labels[at] else None
        if zone is not None and labels.count(labels[at]) == 1 and zone[1] != "UTC":
            zones[frame.columns[at]] = zone[1]
    return zones


def column_kind(encoding: Encoding, columns: Sequence[tuple[str, str]]) -> DataType:
    """Return how a channel shows its column where nothing else decides it. Raises ChartError."""
    if encoding.field is None:
        return "quantitative"
    name = _existing(encoding.field, [name for name, _ in columns])
    own = _kind(dict(columns)[name])
    return encoding.type or ("temporal" if encoding.time_unit else own)


def _existing(given: str, names: Sequence[str]) -> str:
    """Return the column that was meant: the very name, else the only one that differs in case alone."""
    same = [name for name in names if name == given] or [
        name for name in names if name.lower() == given.lower()
    ]
    if len(same) == 1:
        return same[0]
    shown = printable(given)[:_LONGEST_NAME]
    if same:
        raise ChartError(
            f"two columns are called {shown!r}.", "Give them names of their own in a query: SELECT … AS …"
        )
    listed = ", ".join(printable(name)[:_LONGEST_NAME] for name in names[:_NAMED])
    near = did_you_mean(nearest_names(given, names))
    raise ChartError(f"there is no column {shown!r}. {near}".rstrip(), f"The columns are: {listed}.")


def _column(name: str, sql_type: str, encoding: Encoding, is_measure: bool) -> ChartColumn:
    own = _kind(sql_type)
    kind = encoding.type or ("temporal" if encoding.time_unit else "quantitative" if encoding.bins else own)
    column, zone, unit = quoted(name), "", ""
    if encoding.aggregate in ("count", "distinct") and is_measure:
        return ChartColumn(name, "quantitative", column, encoding)
    if is_measure and (encoding.aggregate in _NUMERIC or encoding.aggregate is None) and kind == "nominal":
        if sql_type != "BOOLEAN":
            raise ChartError(
                f"{encoding.aggregate or 'a measure'} needs numbers, and {printable(name)[:_LONGEST_NAME]!r} is "
                f"{sql_type[:40]}.",
                "Use the aggregate count or distinct, or another column.",
            )
        kind = "quantitative"
    if kind == "quantitative":
        if own == "temporal":
            raise ChartError(
                f"{printable(name)[:_LONGEST_NAME]!r} holds dates, which are no quantities.",
                'Leave its type out, or give it "time_unit".',
            )
        sql, unit = _number_sql(column, sql_type)
    elif kind == "temporal":
        sql = column if sql_type == "TIMESTAMP" else f"TRY_CAST({column} AS TIMESTAMP)"
        zone = "UTC" if sql_type == "TIMESTAMP WITH TIME ZONE" else ""
        if own == "quantitative":
            raise ChartError(
                f"{printable(name)[:_LONGEST_NAME]!r} holds numbers, which are no dates.",
                "Convert them in a query: make_timestamp, make_date, to_timestamp.",
            )
    else:
        sql = column if sql_type == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    return ChartColumn(name, kind, sql, encoding, zone, unit)


def _kind(sql_type: str) -> DataType:
    if _NUMBERS.fullmatch(sql_type):
        return "quantitative"
    return "temporal" if _DATES.fullmatch(sql_type) else "nominal"


def _number_sql(column: str, sql_type: str) -> tuple[str, str]:
    if sql_type in _FLOATS:
        return f"CASE WHEN isfinite({column}) THEN {column} END", ""
    if sql_type == "INTERVAL":
        return f"epoch({column})", "s"
    if _NUMBERS.fullmatch(sql_type):
        return column, ""
    if sql_type == "BOOLEAN":
        return f"CAST({column} AS TINYINT)", ""
    number = f"TRY_CAST({column} AS DOUBLE)"
    return f"CASE WHEN isfinite({number}) THEN {number} END", ""
