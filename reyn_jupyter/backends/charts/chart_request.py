"""What a call asks of a chart: a mark, fields for its channels, and how they are computed.

Invariant: everything but names of columns and titles is one of a closed list. No expression, transform, address or
piece of a spec can be said here, so that none can reach a chart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

MarkName = Literal["bar", "line", "area", "point", "histogram", "boxplot", "heatmap"]
Channel = Literal["x", "y", "color", "row", "column"]
DataType = Literal["quantitative", "temporal", "nominal"]
Aggregate = Literal["count", "distinct", "sum", "mean", "median", "min", "max"]
TimeUnit = Literal["year", "quarter", "month", "week", "day", "hour", "weekday"]
SortOrder = Literal["ascending", "descending", "value", "value descending"]

CHANNELS: tuple[Channel, ...] = get_args(Channel)
LONGEST_TITLE = 200
LONGEST_FIELD = 500
MOST_BINS = 100
BINS = 30


class ChartError(Exception):
    """What cannot be drawn, in plain words; `hint` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Encoding:
    """What one channel shows.

    Attributes:
        field: a column; None counts rows.
        bins: how many bins at most; None where the values stay as they are.
    """

    field: str | None = None
    type: DataType | None = None
    aggregate: Aggregate | None = None
    bins: int | None = None
    time_unit: TimeUnit | None = None
    sort: SortOrder | None = None
    title: str | None = None


@dataclass(frozen=True)
class ChartRequest:
    """What a call asks for: the mark, the encodings by channel, the title."""

    mark: MarkName
    encodings: Mapping[Channel, Encoding]
    title: str = ""


_FIELD = {"type": "string", "minLength": 1, "maxLength": LONGEST_FIELD}
_TITLE = {"type": "string", "maxLength": LONGEST_TITLE}


def _channel_schema(description: str) -> dict[str, Any]:
    return {
        "type": ["string", "object"],
        "minLength": 1,
        "maxLength": LONGEST_FIELD,
        "properties": {
            "field": {**_FIELD, "description": "A column."},
            "type": {"enum": list(get_args(DataType)), "description": "Left out: by the column's data."},
            "aggregate": {
                "enum": list(get_args(Aggregate)),
                "description": "Left out: the value where each group has one row, else the mean.",
            },
            "bin": {"type": "integer", "minimum": 2, "maximum": MOST_BINS, "description": "Most bins."},
            "time_unit": {"enum": list(get_args(TimeUnit)), "description": "What dates are grouped by."},
            "sort": {"enum": list(get_args(SortOrder))},
            "title": _TITLE,
        },
        "additionalProperties": False,
        "description": description,
    }


ARGUMENTS: dict[str, Any] = {
    "mark": {"enum": list(get_args(MarkName))},
    "x": _channel_schema('A column, or an object as {"field": "day", "time_unit": "month"}.'),
    "y": _channel_schema(
        'The same for y, as {"field": "amount", "aggregate": "sum"}; left out: rows are counted.'
    ),
    "color": _channel_schema("A column that splits the marks by color; for a heatmap its measure."),
    "row": _channel_schema("A column with a row of charts a value."),
    "column": _channel_schema("A column with a chart a value, side by side."),
    "title": _TITLE,
}


def read_request(args: Mapping[str, Any]) -> ChartRequest:
    """Return what validated arguments ask for."""
    encodings: dict[Channel, Encoding] = {}
    for channel in CHANNELS:
        given = args.get(channel)
        if isinstance(given, str):
            encodings[channel] = Encoding(given)
        elif isinstance(given, Mapping):
            encodings[channel] = Encoding(
                given.get("field"),
                given.get("type"),
                given.get("aggregate"),
                given.get("bin"),
                given.get("time_unit"),
                given.get("sort"),
                given.get("title"),
            )
    return ChartRequest(args["mark"], encodings, args.get("title", ""))
