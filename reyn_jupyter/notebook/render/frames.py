"""A frame as a grid of its first rows and columns, every cell exact or plainly cut.

Invariant: only the window that is shown is touched, whatever the frame's size. None, NaN, NaT and <NA> stay apart;
integers keep all their digits; objects of the person's own classes show their type name alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeGuard
from uuid import UUID

from reyn_jupyter.notebook.render.figures import count
from reyn_jupyter.notebook.render.model import Cell, Column, Grid
from reyn_jupyter.notebook.render.untrusted import Look, is_a, type_name

if TYPE_CHECKING:
    import pandas as pd

ROWS = 20
COLUMNS = 12
_CELL = 60
_HEADING = 40
_DECIMALS = 4
_DIGITS = 320
_LARGE = 1e15  # floats from here on have no decimals worth showing


def frame_of(value: object) -> pd.DataFrame | None:
    """The value as a frame when it is one, a series, or an array of one or two dimensions.

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
    dtypes: Mapping[str, str],
    look: Look,
    knob: str,
) -> Grid:
    """JSON objects as a grid, one a row; no pandas needed.

    Args:
        rows: the first objects.
        shape: how many objects there are in all, and how many columns where that is known.
        dtypes: the dtype of a column, by key.
    """
    keys = list(dict.fromkeys(key for row in rows for key in row))
    total, width = shape[0], shape[1] or len(keys)
    columns = []
    cells = []
    for key in keys[:COLUMNS]:
        values = [row.get(key, _ABSENT) for row in rows[:ROWS]]
        numbers = [value for value in values if value is not None and value is not _ABSENT]
        right = bool(numbers) and all(type(value) in (int, float) for value in numbers)
        columns.append(Column(look.line(key, _HEADING), look.line(dtypes.get(key, ""), _HEADING), right))
        cells.append(_json_column(values, look))
    caption = f"{count(total, 'row')} × {count(width, 'column')}"
    return Grid(caption, tuple(columns), tuple(zip(*cells, strict=True)), _left_out(total, width, knob))


_ABSENT = object()


def _json_column(values: list[Any], look: Look) -> list[Cell]:
    words = {id(None): Cell("null", "muted"), id(_ABSENT): Cell("")}
    drawn = _column([None if value is _ABSENT else value for value in values], look)
    return [words.get(id(value), cell) for value, cell in zip(values, drawn, strict=True)]


def _array(array: Any) -> pd.DataFrame | None:
    if array.ndim not in (1, 2) or array.dtype.names is not None:
        return None
    import pandas as pd

    return pd.DataFrame(array, copy=False)


def frame_grid(frame: pd.DataFrame, look: Look, knob: str) -> Grid:
    """The first 20 rows and 12 columns of a frame; `knob` names what gives all of it."""
    window = frame.iloc[:ROWS, :COLUMNS]
    rows, width = frame.shape
    levels = list(window.index.names)
    headers = [Column(_label(name, look), header=True) for name in levels]
    columns = [Column(_label(name, look), str(dtype), _is_number(dtype)) for name, dtype in _named(window)]
    index = [_column([_level(key, place) for key in window.index], look) for place in range(len(levels))]
    body = [_column(list(window.iloc[:, place]), look) for place in range(len(columns))]
    return Grid(
        f"{count(rows, 'row')} × {count(width, 'column')}",
        (*headers, *columns),
        tuple(zip(*index, *body, strict=True)) if rows else (),
        _left_out(rows, width, knob),
    )


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


def _column(values: list[object], look: Look) -> list[Cell]:
    """The cells of one column: its floats with equally many decimals, its midnights as dates."""
    values = [_native(value) for value in values]
    decimals = max((_decimals(value) for value in values if type(value) is float), default=0)
    moments = [value for value in values if _is_moment(value)]
    dates = bool(moments) and all(value.time() == time() and value.tzinfo is None for value in moments)
    return [_cell(value, look, decimals, dates) for value in values]


def _native(value: Any) -> object:
    """A numpy scalar, or a float of a class of the person's, as Python's own."""
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
        return Cell(missing, "muted")
    if is_a(value, float):
        return Cell(_float(value, _decimals(value) if decimals is None else decimals))
    if is_a(value, str):
        return Cell(look.line(value, _CELL))
    if is_a(value, bytes):
        return Cell(count(bytes.__len__(value), "byte"), "muted")
    if is_a(value, bool) or is_a(value, int):
        return Cell(look.text(value, _DIGITS))
    if any(type(value) is kind for kind in _library_types()):
        text = _text_of(value)
        return Cell(look.line(text[:-9] if dates and text.endswith(" 00:00:00") else text, _CELL))
    return Cell(look.compact(value, _CELL))


def _missing(value: object) -> str:
    """The word for a missing value, "" for any other."""
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


def _text_of(value: object) -> str:
    try:
        return str(value)
    except (ValueError, OverflowError, NotImplementedError):
        return f"<{type_name(value)} out of range>"
