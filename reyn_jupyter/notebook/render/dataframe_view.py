"""A frame as a grid of its first rows and columns, every cell exact or plainly cut.

Invariant: only the window that is shown is touched, whatever the frame's size. None, NaN, NaT and <NA> stay apart;
integers keep all their digits; objects of the person's own classes show their type name alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeGuard
from uuid import UUID

from reyn_jupyter.notebook.render.blocks import Cell, Column, Grid, View, missing_cell, number_cell
from reyn_jupyter.notebook.render.value_text import Look, is_a, type_name
from reyn_jupyter.outputs.blobs.manifest import BlobInfo
from reyn_jupyter.outputs.frames.restore import untag
from reyn_jupyter.outputs.table.column_spec import (
    ColumnSpec,
    column_values,
    frame_columns,
    keys_of,
    specials_within,
)
from reyn_jupyter.outputs.table.column_values import ABSENT
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    import pandas as pd

    from reyn_jupyter.sessions.result_objects import FrameView

ROWS = 20
COLUMNS = 12
_CELL = 60
_HEADING = 40
_DECIMALS = 4
_DIGITS = 320
_SHORT = 10_000_000  # integers below are no secret, and need no look
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGE = 1e15  # floats from here on have no decimals worth showing


def frame_of(value: object) -> pd.DataFrame | None:
    """Return the value as a frame when it is one, a series, or an array of one or two dimensions.

    A subclass (a GeoDataFrame) is read through its base class, without a copy.
    """
    pandas = sys.modules.get("pandas")
    numpy = sys.modules.get("numpy")
    if pandas is not None and is_a(value, pandas.DataFrame):
        plain: pd.DataFrame = pandas.DataFrame(value, copy=False)
        return plain
    if pandas is not None and is_a(value, pandas.Series):
        series = pandas.Series(value, copy=False)
        named: pd.DataFrame = series.to_frame("values" if series.name is None else series.name)
        return named
    if numpy is not None and is_a(value, numpy.ndarray):
        return _array(numpy.asarray(value))
    return None


def records_grid(
    rows: list[dict[str, Any]],
    shape: tuple[int, int | None],
    look: Look,
    knob: str,
    info: BlobInfo | None = None,
    start: int = 0,
) -> Grid:
    """Return JSON objects as a grid, one a row; no pandas needed.

    Args:
        rows: the first objects.
        shape: how many objects there are in all, and how many columns where that is known.
        info: where they come from; says what the columns of a stored frame were.
        start: the place there of the first one.
    """
    known = frame_columns(info) if info is not None else []
    specs = {column.key: column for column in known}
    keys = list(specs) or keys_of(rows)
    total, width = shape[0], shape[1] or len(keys)
    columns = []
    cells = []
    for key in keys[:COLUMNS]:
        column = specs.get(key) or ColumnSpec(key)
        values = column_values(rows[:ROWS], key)
        specials = specials_within(column.spec, start, start + len(values))
        style = column_style(values, column.spec)
        columns.append(stored_column(column, style, look))
        cells.append(stored_cells(values, specials, column.spec, style, look))
    caption = f"{count(total, 'row')} × {count(width, 'column')}"
    return Grid(caption, tuple(columns), tuple(zip(*cells, strict=True)), _left_out(total, width, knob))


@dataclass(frozen=True, slots=True)
class ColumnStyle:
    """The style of the cells of a stored column, decided from its first rows, so that a cell shows the same words
    in every window: the least number of decimals, whether midnights are days, whether cells stand at the
    right."""

    decimals: int = 1
    dates: bool = False
    right: bool = False


def column_style(values: list[Any], spec: Mapping[str, Any]) -> ColumnStyle:
    """Return the style of a column from the JSON values of its first rows."""
    present = [value for value in values if value is not None and value is not ABSENT]
    decimals = max((_decimals(value) for value in present if type(value) is float), default=1)
    dates = (
        bool(present)
        and _is_time(spec)
        and all(isinstance(value, str) and value.endswith("T00:00:00") for value in present)
    )
    written = spec.get("items") == "Decimal" or str(spec.get("dtype")).startswith(("timedelta64", "complex"))
    right = bool(present) and (written or all(type(untag(value)) in (int, float) for value in present))
    return ColumnStyle(decimals, dates, right)


def stored_column(column: ColumnSpec, style: ColumnStyle, look: Look) -> Column:
    """Return the head of a stored column."""
    header = column.level is not None
    return Column(look.line(column.key, _HEADING), look.line(column.dtype, _HEADING), style.right, header)


def stored_cells(
    values: list[Any],
    specials: Mapping[int, str],
    spec: Mapping[str, Any],
    style: ColumnStyle,
    look: Look,
) -> list[Cell]:
    """Return the cells of a stored column, as the frame that it was would show them.

    Args:
        values: JSON values, `ABSENT` where a record has none.
        specials: which nulls stand for a number that JSON lacks, by place.
        spec: the column's description in the manifest; empty for records that never were a frame.
    """
    inner = spec.get("categories", spec)
    missing = missing_cell(_missing_word(str(spec.get("dtype", ""))))
    time_like = _is_time(inner)

    def cell(place: int, value: Any) -> Cell:
        kind = type(value)
        if kind is str and not time_like:
            return Cell(look.line(value, _CELL))
        if kind is float:
            return number_cell(_float(value, max(style.decimals, _decimals(value))), value)
        if kind is int and -_SHORT < value < _SHORT:
            return number_cell(str(value), value)
        if value is None:
            word = specials.get(place)
            return missing if word is None else _cell(untag({"$number": word}), look)
        if value is ABSENT:
            return Cell("")
        if kind is str:
            text = value.removesuffix("T00:00:00") if style.dates else value
            return _moment_cell(look.line(text.replace("T", " ", 1), _CELL), value)
        if "closed" in inner and kind is list and len(value) == 2:
            return Cell(look.line(_interval(value, str(inner["closed"])), _CELL))
        return _cell(untag(value), look)

    return [cell(place, value) for place, value in enumerate(values)]


def plain_cell(value: object, look: Look) -> Cell:
    """Return one value on its own: a figure of a column."""
    return _cell(value, look, dates=True)


def _is_time(spec: Mapping[str, Any]) -> bool:
    return str(spec.get("dtype", "")).startswith("datetime64") or spec.get("items") in (
        "datetime",
        "Timestamp",
    )


def _missing_word(dtype: str) -> str:
    """Return what stands where a column of this dtype has nothing."""
    if dtype in ("", "object"):
        return "None" if dtype else "null"
    if dtype.startswith(("datetime64", "timedelta64", "period")):
        return "NaT"
    return "<NA>" if dtype[0].isupper() or dtype in ("string", "boolean") else "NaN"


def _interval(ends: list[Any], closed: str) -> str:
    left, right = (str(end).replace("T", " ", 1) if isinstance(end, str) else str(end) for end in ends)
    return f"{'[' if closed in ('left', 'both') else '('}{left}, {right}{']' if closed in ('right', 'both') else ')'}"


def _array(array: Any) -> pd.DataFrame | None:
    if array.ndim not in (1, 2) or array.dtype.names is not None:
        return None
    import pandas as pd

    return pd.DataFrame(array, copy=False)


def frame_grid(frame: pd.DataFrame, look: Look, knob: str) -> Grid:
    """Return the first 20 rows and 12 columns of a frame; `knob` names what gives all of it."""
    window = frame.iloc[:ROWS, :COLUMNS]
    rows, width = frame.shape
    levels = list(window.index.names)
    headers = [Column(_label(name, look), header=True) for name in levels]
    columns = [
        Column(_label(name, look), str(dtype), _is_number(dtype) or _are_numbers(window.iloc[:, place]))
        for place, (name, dtype) in enumerate(_named(window))
    ]
    index = [_column([_level(key, place) for key in window.index], look) for place in range(len(levels))]
    body = [_column(list(window.iloc[:, place]), look) for place in range(len(columns))]
    return Grid(
        f"{count(rows, 'row')} × {count(width, 'column')}",
        (*headers, *columns),
        tuple(zip(*index, *body, strict=True)) if rows else (),
        _left_out(rows, width, knob),
    )


def viewed_frame(shown: FrameView, look: Look) -> View:
    """Return a frame of the person's: its first rows, which a front end goes on from."""
    rows, width = shown.frame.shape
    facts = (f"{count(rows, 'row')} × {count(width, 'column')}", "in memory")
    title = look.line(shown.name, 80) if shown.name else "A table in memory"
    grid = frame_grid(shown.frame, look, ".df")
    return View("blob", title, (), facts, (grid,), ".df")


def _left_out(rows: int, width: int, knob: str) -> str:
    parts = []
    if rows > ROWS:
        parts.append(f"the first {ROWS} of {rows:,} rows")
    if width > COLUMNS:
        parts.append(f"the first {COLUMNS} of {width:,} columns")
    return f"These are {' and '.join(parts)}; all of it: {knob}" if parts else ""


def _named(window: pd.DataFrame) -> list[tuple[Any, Any]]:
    return list(zip(list(window.columns), list(window.dtypes), strict=True))


def _label(name: object, look: Look) -> str:
    if name is None:
        return ""
    if is_a(name, tuple):
        return look.line(" / ".join(_cell(part, look).text for part in name), _HEADING)
    return look.line(_cell(name, look).text, _HEADING)


def _level(key: object, place: int) -> object:
    return key[place] if is_a(key, tuple) and place < len(key) else key


def _is_number(dtype: object) -> bool:
    return getattr(dtype, "kind", "O") in "iufcm"


def _are_numbers(values: pd.Series) -> bool:
    """Return whether a column of objects or categories holds numbers alone: decimals of a database, long integers."""
    present = [value for value in map(_native, values) if not _missing(value)]
    return bool(present) and all(type(value) in (int, float, Decimal) for value in present)


def _column(values: list[object], look: Look) -> list[Cell]:
    """Return the cells of one column: its floats with equally many decimals, its midnights as dates."""
    values = [_native(value) for value in values]
    decimals = max((_decimals(value) for value in values if type(value) is float), default=0)
    moments = [value for value in values if _is_moment(value)]
    dates = bool(moments) and all(value.time() == time() and value.tzinfo is None for value in moments)
    return [_cell(value, look, decimals, dates) for value in values]


def _native(value: Any) -> object:
    """Return a numpy scalar, or a float of a class of the person's, as Python's own."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and is_a(value, numpy.generic):
        if is_a(value, numpy.datetime64) or is_a(value, numpy.timedelta64):
            return str(value)
        value = value.item()
    return float.__float__(value) if is_a(value, float) else value


def _decimals(value: float) -> int:
    if not abs(value) < _LARGE:
        return 1
    text = f"{value:.{_DECIMALS}f}".rstrip("0")
    return max(1, len(text) - text.index(".") - 1)


def _cell(value: object, look: Look, decimals: int | None = None, dates: bool = False) -> Cell:
    value = _native(value)
    missing = _missing(value)
    if missing:
        return missing_cell(missing)
    if is_a(value, float):
        return number_cell(_float(value, _decimals(value) if decimals is None else decimals), value)
    if is_a(value, str):
        return Cell(look.line(value, _CELL))
    if is_a(value, bytes):
        length = bytes.__len__(value)
        return number_cell(count(length, "byte"), length, "muted")
    if is_a(value, bool):
        return Cell(look.text(value, _DIGITS))
    if is_a(value, int):
        return number_cell(look.text(value, _DIGITS), int.__int__(value))
    if any(type(value) is kind for kind in _library_types()):
        text = _text_of(value)
        shown = look.line(text[:-9] if dates and text.endswith(" 00:00:00") else text, _CELL)
        number = _number_of(value)
        return Cell(shown) if number is None else number_cell(shown, number)
    return Cell(look.compact(value, _CELL))


def _missing(value: object) -> str:
    """Return the word for a missing value, "" for any other."""
    if value is None:
        return "None"
    if type(value) is float:
        return "" if value == value else "NaN"
    return {"NaTType": "NaT", "NAType": "<NA>"}.get(type_name(value), "")


def _float(value: float, decimals: int) -> str:
    size = abs(value)
    if size >= _LARGE or 0 < size < 10**-_DECIMALS:
        return f"{value:.6g}"
    return f"{value:.{max(1, decimals)}f}"


def _is_moment(value: object) -> TypeGuard[datetime]:
    pandas = sys.modules.get("pandas")
    return type(value) is datetime or (pandas is not None and type(value) is pandas.Timestamp)


def _library_types() -> tuple[Any, ...]:
    """Types whose str() may be called: those of the standard library and pandas, no subclass of the person's."""
    pandas = sys.modules.get("pandas")
    scalars = (
        (pandas.Timestamp, pandas.Timedelta, pandas.Period, pandas.Interval) if pandas is not None else ()
    )
    return (date, datetime, time, timedelta, Decimal, UUID, complex, *scalars)


def _moment_cell(text: str, iso: str) -> Cell:
    """Return the cell of a moment given as ISO text."""
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return Cell(text)
    return number_cell(text, _seconds_since_1970(moment))


def _seconds_since_1970(moment: datetime) -> float:
    """Return a moment in seconds since 1970; one without a time zone counts as UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH).total_seconds()


def _number_of(value: Any) -> float | None:
    """The number that a value of one of `_library_types` is sorted by; None where there is none, or no float."""
    try:
        if _is_moment(value):
            return _seconds_since_1970(value)
        if isinstance(value, timedelta):
            return value.total_seconds()
        if isinstance(value, date):
            return _seconds_since_1970(datetime.combine(value, time(), UTC))
        return float(value) if isinstance(value, Decimal) else None
    except (ValueError, OverflowError):
        return None


def _text_of(value: object) -> str:
    try:
        return str(value)
    except (ValueError, OverflowError, NotImplementedError):
        return f"<{type_name(value)} out of range>"
