"""From computed groups to a drawing: order, the most marks, scales, words.

Invariant: a category that is not drawn is counted: with sums and counts the rest stands in a mark of its own; with
other aggregates, which cannot be put together, it is said how many are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.charts import time_units
from reyn_jupyter.backends.charts.chart_drawing import ChartDrawing, ChartLayer, ChartTable
from reyn_jupyter.backends.charts.chart_query import MISSING, SUMMARIES, ChartRows, Dimension, Measure, spans
from reyn_jupyter.backends.charts.chart_request import Channel, ChartError
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import count, shorten

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 50
MOST_COLORS = 10
MOST_FACETS = 12
MOST_MARKS = 5000
TABLE_ROWS = 50
_LONGEST_LABEL = 60
_AGGREGATE_WORDS = re.compile(
    r"(?:\b|_)(?:sum|total|average|avg|mean|median|max\w*|min\w*|count|number|share|percentage)(?:\b|_)",
    re.IGNORECASE,
)
_MARKS = {
    "bar": ("Bar chart", "bar"),
    "line": ("Line chart", "point"),
    "area": ("Area chart", "point"),
    "point": ("Scatter chart", "point"),
    "histogram": ("Histogram", "bar"),
    "boxplot": ("Box plot", "box"),
    "heatmap": ("Heatmap", "cell"),
}

Mask = Callable[[str], str]


@dataclass
class _Scale:
    """The categories of a channel, in their order: the values as SQL has them, and what is shown for each."""

    values: list[Any]
    labels: list[str]
    others: str = ""
    by_value: dict[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_value = dict(zip(self.values, self.labels, strict=True))

    @property
    def domain(self) -> list[str]:
        return [*self.labels, *([self.others] if self.others else [])]


def lay_out(rows: ChartRows, mask: Mask, data_code: Sequence[str] = ()) -> ChartDrawing:
    """Return what is drawn of computed rows.

    Args:
        mask: covers secrets in a text, before it is cut.
        data_code: lines of Python that compute the rows as `data`.

    Raises:
        ChartError: there would be more marks than can be drawn.
    """
    layout = _Layout(rows, mask)
    return layout.drawing(tuple(data_code))


class _Layout:
    def __init__(self, rows: ChartRows, mask: Mask) -> None:
        self._rows, self._mask = rows, mask
        self._mark = rows.request.mark
        self._measure = rows.measure
        self._notes = list(rows.notes)
        self._scales: dict[Channel, _Scale] = {}
        self._frame = self._within_limits(rows.frame)

    # Order and limits

    def _within_limits(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the groups that are drawn, each category by its label, the rest put together."""
        for each in self._rows.dimensions:
            if each.grouping not in ("category", "bucket"):
                continue
            scale = self._scale(each, frame)
            self._scales[each.channel] = scale
            labels = frame[each.channel].map(scale.by_value)
            if scale.others:
                labels = labels.fillna(scale.others)
            frame = frame.assign(**{each.channel: labels})[labels.notna()]
        if any(scale.others for scale in self._scales.values()):
            frame = self._summed(frame)
        return frame

    def _summed(self, frame: pd.DataFrame) -> pd.DataFrame:
        assert self._measure is not None
        value = self._measure.channel
        channels = [each.channel for each in self._rows.dimensions]
        numbers = frame.assign(**{value: [_number(each) for each in frame[value]]})
        grouped = numbers.groupby(channels, dropna=False, sort=False, observed=True)
        return grouped.agg(
            **{value: (value, lambda held: held.sum(min_count=1)), "n": ("n", "sum")}
        ).reset_index()

    def _scale(self, each: Dimension, frame: pd.DataFrame) -> _Scale:
        if each.grouping == "bucket" and each.unit is not None:
            labels = time_units.labels_between(each.first, each.last, each.unit)
            present = [label for label in dict.fromkeys(frame[each.channel]) if label not in set(labels)]
            labels += [label for label in present if isinstance(label, str)]
            if each.column.encoding.sort == "descending":
                labels.reverse()
            if each.column.encoding.sort in ("value", "value descending"):
                labels = self._ordered(each, frame)
            return _Scale(labels, list(labels))
        values = self._ordered(each, frame)
        most = MOST_CATEGORIES if each.channel in ("x", "y") else MOST_COLORS
        most = MOST_FACETS if each.channel in ("row", "column") else most
        kept, others = values, ""
        if len(values) > most:
            kept, others = self._largest(each, frame, values, most)
        return _Scale(kept, self._labels(kept), others)

    def _largest(
        self, each: Dimension, frame: pd.DataFrame, values: list[Any], most: int
    ) -> tuple[list[Any], str]:
        """Return the largest categories in their order, and the name of the mark that all others share."""
        sizes = self._sizes(each, frame)
        ranked = sorted(values, key=lambda value: -sizes.get(value, -math.inf))
        kept, left = set(ranked[:most]), len(values) - most
        shared = self._measure is not None and self._measure.adds_up and each.channel in ("x", "y", "color")
        by = self._measure.label if self._measure else "rows"
        said = f"the {most} largest of {len(values):,} values of {each.column.label} by {by}"
        others = f"{left:,} others" if shared else ""
        self._notes.append(f"{said}; the other {left:,} " + ("are one mark" if shared else "are left out"))
        return [value for value in values if value in kept], others

    def _sizes(self, each: Dimension, frame: pd.DataFrame) -> dict[Any, float]:
        name = "n"
        if self._measure is not None and self._mark != "boxplot":
            name = self._measure.channel
        elif self._mark == "boxplot":
            name = "median"
        numbers = frame.assign(_size=[_number(value) for value in frame[name]])
        sums = numbers.groupby(each.channel, dropna=False, observed=True)["_size"].sum(min_count=1)
        return {key: float(value) for key, value in sums.items() if not math.isnan(value)}

    def _ordered(self, each: Dimension, frame: pd.DataFrame) -> list[Any]:
        """Return the categories of a channel in the order that was asked for."""
        key = f"{each.channel}_key"
        values = list(dict.fromkeys(frame.sort_values(key, kind="stable")[each.channel]))
        values = [value for value in values if value != MISSING] + [v for v in values if v == MISSING]
        sort = each.column.encoding.sort
        is_text = each.column.kind == "nominal"
        if sort is None and is_text and each.channel in ("x", "y") and self._measure is not None:
            sort = "value descending"
        if sort == "descending":
            values.reverse()
        if sort in ("value", "value descending"):
            sizes = self._sizes(each, frame)
            sign = 1 if sort == "value" else -1
            values.sort(key=lambda value: sign * sizes.get(value, sign * math.inf))
        return values

    def _labels(self, values: Iterable[Any]) -> list[str]:
        """Return a text for each value: masked, on one line, short, and never the same for two."""
        from reyn_jupyter.outputs.convert import Namer

        name = Namer()
        return [name(shorten(printable(self._mask(str(value))), _LONGEST_LABEL) or '""') for value in values]

    def _text(self, text: str) -> str:
        return printable(self._mask(text))

    # The drawing

    def drawing(self, data_code: tuple[str, ...]) -> ChartDrawing:
        values = self._with_gaps([self._value(row) for row in self._frame.to_dict("records")])
        shown = "median" if self._mark == "boxplot" else self._measure_name
        if shown and all(value[shown] is None for value in values):
            raise ChartError(f"all values of {self._measure_label()} are missing.")
        if len(values) > MOST_MARKS:
            raise ChartError(
                f"there would be {len(values):,} marks, and at most {MOST_MARKS:,} are drawn.",
                "Group by a coarser column, time unit or bin, or leave color out.",
            )
        notes = tuple(self._text(note) for note in self._notes)
        width, height = self._size()
        title = self._title()
        return ChartDrawing(
            tuple(self._layers(len(values))),
            plain_values(values),
            title,
            notes,
            width,
            height,
            self._words(title, values, notes),
            self._table(values),
            data_code,
        )

    def _title(self) -> str:
        """Return the title: what is drawn by what, of which rows; a given title stands for the first part."""
        by = [each.label for each in self._rows.dimensions]
        if self._rows.request.title:
            said = self._rows.request.title
        elif self._measure is None:
            said = " and ".join(reversed(by[:2])) + "".join(f" by {each}" for each in by[2:])
        else:
            said = f"{self._measure_label()} by {' and '.join(by)}" if by else self._measure_label()
        return self._text(", ".join([said, *self._rows.filters]))

    def _measure_label(self) -> str:
        """Return the name of the measure: the bare column if each group is one row, or if it is not summed up."""
        measure = self._measure
        if measure is None:
            return ""
        if measure.column is None or measure.aggregate in ("count", "distinct"):
            return self._text(measure.label)
        alone = measure.default and bool((self._rows.frame["n"] <= 1).all())
        label = measure.column.encoding.title or (
            measure.column.label if alone or self._mark == "boxplot" else measure.label
        )
        computed = measure.expression and not _AGGREGATE_WORDS.search(label)
        return self._text(f"{label} ({measure.expression})" if computed else label)

    def _value(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for each in self._rows.dimensions:
            held = row[each.channel]
            if each.grouping in ("category", "bucket"):
                value[each.channel] = held
            elif each.grouping == "moment":
                value[each.channel] = _iso(held)
            else:
                value[each.channel] = _number(held)
                if spans(self._rows.request, each):
                    value[f"{each.channel}2"] = _number(row[f"{each.channel}2"])
        if self._mark == "boxplot":
            value |= {name: _none(_number(row[name])) for name in SUMMARIES}
        elif self._measure is not None:
            value[self._measure.channel] = _none(_number(row[self._measure.channel]))
        value["_exact"] = (
            row.get(self._measure.channel) if self._measure and self._mark != "boxplot" else None
        )
        value["_n"] = row["n"]
        return value

    def _with_gaps(self, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give a line the buckets without rows, so that it is broken there."""
        bucket = next((each for each in self._rows.dimensions if each.grouping == "bucket"), None)
        if bucket is None or self._measure is None or self._mark not in ("line", "area"):
            return values
        rest = [each.channel for each in self._rows.dimensions if each is not bucket]
        order = self._scales[bucket.channel].domain
        series = dict.fromkeys(tuple(value[channel] for channel in rest) for value in values)
        if len(series) * len(order) > MOST_MARKS:
            return values
        held = {(tuple(value[c] for c in rest), value[bucket.channel]): value for value in values}
        return [
            held.get((key, label))
            or {
                **dict(zip(rest, key, strict=True)),
                bucket.channel: label,
                self._measure.channel: None,
                "_n": 0,
            }
            for key in series
            for label in order
        ]

    def _size(self) -> tuple[int, int]:
        across, down = (self._marks_on(channel) for channel in ("x", "y"))
        faceted = {each.channel for each in self._rows.dimensions} & {"row", "column"}
        width = min(640, max(200, 80 * across)) if across and self._mark in ("bar", "boxplot") else 600
        height = min(900, max(80, 26 * down)) if down else 280
        if faceted:
            many = len(self._scales["column"].domain) if "column" in self._scales else 1
            width, height = max(110, min(width, 660 // max(1, min(many, 4)))), min(height, 180)
        return width, height

    def _marks_on(self, channel: Channel) -> int:
        return len(self._scales[channel].domain) if channel in self._scales else 0

    def _layers(self, marks: int) -> list[ChartLayer]:
        if self._mark == "boxplot":
            return self._box_layers()
        encodings = {channel: self._encoding(channel) for channel in ("x", "y", "color", "row", "column")}
        kept: dict[str, Mapping[str, Any]] = {name: given for name, given in encodings.items() if given}
        for each in self._rows.dimensions:
            if spans(self._rows.request, each):
                kept[f"{each.channel}2"] = {"field": f"{each.channel}2"}
        measure = self._measure
        if self._mark == "bar" and "color" in kept and measure is not None and not measure.adds_up:
            side = "yOffset" if measure.channel == "x" else "xOffset"
            kept[side] = (
                {"field": "color", "scale": {"domain": self._scales["color"].domain}}
                if "color" in self._scales
                else {"field": "color"}
            )
        looks: dict[str, tuple[str, dict[str, Any]]] = {
            "bar": ("bar", {}),
            "histogram": ("bar", {}),
            "line": ("line", {"point": marks <= 100}),
            "area": ("area", {"opacity": 0.8, "line": True}),
            "point": ("point", {"filled": True, "opacity": 0.65, "size": 40}),
            "heatmap": ("rect", {}),
        }
        mark, options = looks[self._mark]
        return [ChartLayer(mark, options, _in_order(kept))]

    def _box_layers(self) -> list[ChartLayer]:
        assert self._measure is not None
        value, other = ("y", "x") if self._measure.channel == "y" else ("x", "y")
        group = self._encoding(other)
        shared: dict[str, Mapping[str, Any]] = {other: group} if group else {}
        title = self._measure_label()

        def axis(low: str, high: str) -> dict[str, Mapping[str, Any]]:
            scale = {"zero": False}
            ends = {value: {"field": low, "type": "quantitative", "title": title, "scale": scale}}
            return {**shared, **ends, **({f"{value}2": {"field": high}} if high else {})}

        return [
            ChartLayer("rule", {}, axis("low", "high")),
            ChartLayer("bar", {"size": 24}, axis("q1", "q3")),
            ChartLayer("tick", {"color": "white", "size": 24, "thickness": 2}, axis("median", "")),
        ]

    def _encoding(self, channel: Any) -> dict[str, Any]:
        if self._measure is not None and self._measure.channel == channel:
            return self._measure_encoding(self._measure)
        each = self._rows.dimension(channel)
        if each is None:
            return {}
        given: dict[str, Any] = {"field": channel, "title": self._text(each.label)}
        if each.grouping in ("category", "bucket"):
            domain = self._scales[channel].domain
            given["type"] = "ordinal" if each.grouping == "bucket" else "nominal"
            if channel in ("row", "column"):
                given["sort"] = domain
                return given
            given["scale"] = {"domain": domain}
            if channel == "x":
                given["axis"] = {
                    "labelAngle": 0 if _fits(domain, self._size()[0]) else -45,
                    "labelOverlap": True,
                }
            return given
        if each.grouping == "moment":
            return {**given, "type": "temporal"}
        given["type"] = "quantitative"
        if spans(self._rows.request, each):
            return {**given, "bin": "binned"}
        return {**given, "scale": {"zero": False}} if channel in ("x", "y") else given

    def _measure_encoding(self, measure: Measure) -> dict[str, Any]:
        given: dict[str, Any] = {
            "field": measure.channel,
            "type": "quantitative",
            "title": self._measure_label(),
        }
        overlaid = self._mark == "area" and not measure.adds_up
        return {**given, "stack": None} if overlaid else given

    # The words

    def _words(self, title: str, values: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
        kind, one = _MARKS[self._mark]
        drawn = [value for value in values if value["_n"]]
        said = [f"{kind}: {title}", count(len(drawn), one, {"box": "boxes"}.get(one, ""))]
        others = {scale.others for scale in self._scales.values() if scale.others}
        ranked = [v for v in drawn if self._shown(v) is not None and others.isdisjoint(map(str, v.values()))]
        if self._measure is not None and self._mark != "boxplot" and len(ranked) > 1:
            by_name = sorted(ranked, key=self._named)  # of equal ones always the same is named
            lowest = min(by_name, key=lambda value: value[self._measure_name])
            highest = max(by_name, key=lambda value: value[self._measure_name])
            if lowest[self._measure_name] == highest[self._measure_name]:
                said.append(f"each {number_text(_exact(highest, self._measure_name))}")
            else:
                said += [f"highest {self._named(highest)}", f"lowest {self._named(lowest)}"]
        elif self._measure is not None and self._mark != "boxplot" and ranked:
            said.append(self._named(ranked[0]))
        return "; ".join([", ".join(said), f"from {count(self._rows.total, 'row')}", *notes]) + "."

    @property
    def _measure_name(self) -> str:
        return self._measure.channel if self._measure is not None else ""

    def _shown(self, value: Mapping[str, Any]) -> Any:
        return value.get(self._measure_name)

    def _named(self, value: Mapping[str, Any]) -> str:
        groups = ", ".join(self._group_text(each, value) for each in self._rows.dimensions)
        return f"{groups} {number_text(_exact(value, self._measure_name))}".strip()

    def _group_text(self, each: Dimension, value: Mapping[str, Any]) -> str:
        held = value[each.channel]
        if each.grouping in ("category", "bucket") or held is None:
            return str(held)
        if each.grouping == "moment":
            return str(held).removesuffix("T00:00:00").replace("T", " ")
        if each.bins is not None:
            return f"{number_text(held)} to {number_text(held + each.bins.step)}"
        return number_text(held)

    def _table(self, values: Sequence[Mapping[str, Any]]) -> ChartTable:
        measures = (
            list(SUMMARIES) if self._mark == "boxplot" else [self._measure_name] if self._measure else []
        )
        names = [self._text(each.label) for each in self._rows.dimensions]
        names += (
            ["lowest", "first quartile", "median", "third quartile", "highest"]
            if self._mark == "boxplot"
            else [self._measure_label()] * len(measures)
        )
        drawn = self._in_scale_order([value for value in values if value["_n"]])
        rows = tuple(
            (
                *(self._group_text(each, value) for each in self._rows.dimensions),
                *(number_text(_exact(value, name)) for name in measures),
            )
            for value in drawn[:TABLE_ROWS]
        )
        return ChartTable(tuple(names), rows, max(0, len(drawn) - TABLE_ROWS))

    def _in_scale_order(self, values: list[Any]) -> list[Any]:
        places = {
            channel: {label: place for place, label in enumerate(scale.domain)}
            for channel, scale in self._scales.items()
        }
        channels = [each.channel for each in self._rows.dimensions if each.channel in places]
        return sorted(
            values, key=lambda value: [places[channel].get(value[channel], 0) for channel in channels]
        )


def plain_values(values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what is for words alone."""
    return [{name: held for name, held in value.items() if not name.startswith("_")} for value in values]


def _in_order(encodings: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    order = ("x", "x2", "y", "y2", "xOffset", "yOffset", "color", "row", "column")
    return {name: encodings[name] for name in order if name in encodings}


def _fits(labels: Sequence[str], width: int) -> bool:
    """Return whether labels stand side by side."""
    return max(map(len, labels), default=0) * 6.5 + 6 < width / max(1, len(labels))


def _exact(value: Mapping[str, Any], name: str) -> Any:
    """Return a number as SQL gave it, beyond what a float holds too."""
    exact = value.get("_exact")
    return value.get(name) if exact is None else exact


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _none(number: float) -> float | int | None:
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


def _iso(value: Any) -> str | None:
    text = value.isoformat() if hasattr(value, "isoformat") else None
    return None if text == "NaT" else text


def number_text(value: Any) -> str:
    """Return a number for people: with separators, whole where it is whole.

    >>> number_text(1050), number_text(1234567.891), number_text(None)
    ('1,050', '1,234,567.891', 'missing')
    """
    if value is None or value != value:
        return "missing"
    whole = isinstance(value, int) or (hasattr(value, "is_integer") and float(value).is_integer())
    if whole and abs(value) < 1e21:
        return f"{int(value):,}"
    number = float(value)
    return (
        f"{number:,.6g}"
        if abs(number) < 1000 or abs(number) >= 1e15
        else f"{number:,.3f}".rstrip("0").rstrip(".")
    )
