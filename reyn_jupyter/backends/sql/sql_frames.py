"""Frames on their way into DuckDB, and what it gave on its way back.

Invariant: DuckDB meets no object of the person's own class, whose methods it would call: such a cell becomes its
type's name. Every column has a distinct text name. A frame of the caller is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from reyn_jupyter.backends.object_summary import (
    HIDDEN,
    dtype_text,
    is_frame_like,
    is_known_dtype,
    is_loaded_type,
    without_attrs,
)
from reyn_jupyter.backends.sql.sql_columns import Label, Renamed, column_names, field_names, renamed_columns
from reyn_jupyter.backends.sql.sql_wire import decimal_size
from reyn_jupyter.outputs.convert import type_name
from reyn_jupyter.support.frames import frame_of_rows
from reyn_jupyter.support.secret_names import secret_name

if TYPE_CHECKING:
    import pandas as pd

_PLAIN = frozenset({
    type(None), bool, int, float, str, bytes, bytearray, Decimal, date, datetime, time, timedelta, UUID,
})  # fmt: skip
# What a member of an enumeration, and others of a class of their own, are as values, without code of that class.
_VALUES: dict[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}
_MOST_DIGITS = 38  # of DuckDB's DECIMAL
_MOST_BITS = 10_000  # of a whole number; of many more Python writes no decimals
_DEEPEST = 20  # levels of lists and dicts in a cell


class NotATableError(TypeError):
    """A value that SQL cannot see as a table; the message says what it is and what would work."""


def holdable(value: object) -> object:
    """A copy that stays as it is while a query runs: cheap where frames share their data until one changes.

    Before pandas 3 they do so only when the person switched that on; else all data are copied.
    """
    if is_frame_like(value):
        frame: Any = value
        return without_attrs(frame).copy(deep=not _copies_on_write()) if hasattr(frame, "iloc") else frame
    return list(value) if type(value) is list else value


def _copies_on_write() -> bool:
    import pandas as pd

    return int(pd.__version__.split(".")[0]) >= 3 or pd.get_option("mode.copy_on_write") is True


def as_table(value: object, without: Collection[str] = (), rows: int | None = None) -> pd.DataFrame:
    """Any tabular value as a frame that DuckDB can read.

    Args:
        value: a DataFrame, Series or ndarray (at most two dimensions); records as a list of dicts; a list of
            scalars (the column ``value``); a dict of equally long lists.
        without: names of columns to leave out. One stays where these are all, which keeps the number of rows.
        rows: how many rows are read. If cells are nested, all rows are returned nevertheless.

    Returns:
        A new frame. A named index comes first, as columns; a nameless one is left out.

    Raises:
        NotATableError: anything else, subclasses of these types included.
    """
    import pandas as pd

    frame = _with_index(_raw(value))
    if frame.shape[1] == 0:
        raise NotATableError("has no columns")
    names = column_names(frame.columns.tolist())
    read = [at for at, name in enumerate(names) if name not in without] or [_cheapest(frame)]
    # The type of a column of objects is that of all its cells, whatever rows are read.
    columns = {at: _readable(frame.iloc[:, at]) for at in read if _has_mixed_cells(frame.iloc[:, at].dtype)}
    if any(map(_has_nested_cells, columns.values())):  # DuckDB finds their type
        rows = None
    first = {
        names[at]: _first_rows(columns[at], rows) if at in columns else _readable(frame.iloc[:rows, at])
        for at in read
    }
    return pd.DataFrame(first, copy=False)


def text_columns(value: object) -> list[tuple[str, pd.Series[Any]]]:
    """Return the columns of a table that can hold text, unchanged, each with its name in SQL.

    Columns that are named like a secret are left out.

    Raises:
        NotATableError: the value is not a table.
    """
    import pandas as pd

    frame = _with_index(_raw(value))
    names = column_names(frame.columns.tolist())
    kinds = (pd.StringDtype, pd.CategoricalDtype)
    return [
        (name, frame.iloc[:, at])
        for at, (name, dtype) in enumerate(zip(names, frame.dtypes, strict=True))
        if (_holds_objects(dtype) or isinstance(dtype, kinds) or "string[pyarrow]" in str(dtype))
        and is_known_dtype(dtype)
        and not secret_name(name)
    ]


def _has_mixed_cells(dtype: Any) -> bool:
    import pandas as pd

    return _holds_objects(dtype) or isinstance(dtype, pd.CategoricalDtype) or hasattr(dtype, "pyarrow_dtype")


def _has_nested_cells(column: pd.Series[Any]) -> bool:
    return _holds_objects(column.dtype) and not {list, dict}.isdisjoint(map(type, column.tolist()))


def _first_rows(column: pd.Series[Any], rows: int | None) -> pd.Series[Any]:
    import pandas as pd

    first = column.iloc[:rows]
    if len(first) < len(column) and _holds_objects(column.dtype) and first.isna().all():
        texts = str in set(map(type, column.tolist()))
        return first.astype(pd.StringDtype("python")) if texts else first
    return first


def renamed_in(value: object) -> Renamed:
    """Return the columns of a tabular value whose names in SQL are not their labels."""
    import pandas as pd

    table: Any = value
    if type(value) is list and value and all(type(row) is dict for row in value):
        return renamed_columns([Label(key) for key in dict.fromkeys(key for row in value for key in row)])
    if type(value) is dict:
        return renamed_columns([Label(key) for key in value])
    if type(value) is pd.Series:
        columns = ["value" if table.name is None else table.name]
    elif is_loaded_type(value, "pandas", "DataFrame"):
        columns = table.columns.tolist()
    else:
        return {}
    return renamed_columns(
        [*(Label(name, is_index=True) for name in _level_names(table.index)), *map(Label, columns)]
    )


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its index as its first columns, if that has a name; objects in it are asked for nothing."""
    import numpy as np
    import pandas as pd

    index: Any = frame.index
    labels = _level_names(index)
    if not labels:
        return frame
    several = index.nlevels > 1
    levels = [index.get_level_values(at) if several else index for at in range(index.nlevels)]
    first = [
        pd.Series(level.to_numpy(), dtype=object) if _holds_objects(level.dtype) else pd.Series(level.array)
        for level in levels
    ]
    rest = [frame.iloc[:, at].set_axis(np.arange(len(frame))) for at in range(frame.shape[1])]
    joined = pd.DataFrame(dict(enumerate([*first, *rest])), copy=False)
    columns = np.empty(len(labels) + frame.shape[1], dtype=object)
    columns[:] = [*labels, *frame.columns.tolist()]
    return joined.set_axis(pd.Index(columns, dtype=object, tupleize_cols=False), axis=1)


def _level_names(index: Any) -> list[Any]:
    """Return the names of an index's levels, none for an index without a name."""
    if all(name is None for name in index.names):
        return []
    return [f"level_{at}" if name is None else name for at, name in enumerate(index.names)]


def _cheapest(frame: pd.DataFrame) -> int:
    """Return the place of a column of numbers, where there is one."""
    import numpy as np

    kinds = [isinstance(dtype, np.dtype) and dtype.kind != "O" for dtype in frame.dtypes]
    return kinds.index(True) if True in kinds else 0


def hide_secrets(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Replace the values of columns that are named like secrets, so that no expression of a query can reach them.

    Args:
        frame: what `as_table` gave.

    Returns:
        The frame, and the names of those columns. In nested cells `as_table` has hidden such values already.
    """
    import pandas as pd

    names = tuple(name for name in frame.columns if secret_name(name))
    covers = {
        name: pd.Series([HIDDEN], dtype=object).repeat(len(frame)).where(frame[name].notna().to_numpy(), None)
        for name in names
    }
    columns = {name: covers.get(name, frame[name]).reset_index(drop=True) for name in frame.columns}
    return (pd.DataFrame(columns, copy=False), names) if names else (frame, ())


def _raw(value: object) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    table: Any = value
    if type(value) is pd.DataFrame:
        return without_attrs(table)  # type: ignore[no-any-return]
    if type(value) is pd.Series:
        named = "value" if table.name is None else table.name
        return without_attrs(table).to_frame(named)  # type: ignore[no-any-return]
    if type(value) is np.ndarray and table.ndim <= 2:
        if table.ndim == 2:
            return pd.DataFrame(table, columns=[f"c{at}" for at in range(table.shape[1])])
        return pd.DataFrame(table) if table.dtype.names else pd.DataFrame({"value": table.reshape(-1)})
    if type(value) is list:
        if value and all(type(row) is dict for row in value):
            return frame_of_rows(_plain_records(value))
        return pd.DataFrame({"value": _objects(value)})
    if type(value) is dict and _are_columns(list(table.values())):
        return pd.DataFrame({key: _objects(cells) for key, cells in table.items()})
    raise NotATableError(
        f"is a {type_name(value)}, which is no table. Tables are DataFrames, Series, arrays of one or two dimensions "
        "and lists of records; convert it to a DataFrame first"
    )


def _plain_records(rows: list[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """pandas looks into the cells of records to find their types, so objects are taken out first."""
    if {type(cell) for row in rows for cell in row.values()} <= _PLAIN:
        return rows
    return [{key: _plain_cell(cell, _DEEPEST) for key, cell in row.items()} for row in rows]


def _are_columns(values: list[Any]) -> bool:
    return bool(values) and all(type(value) is list and len(value) == len(values[0]) for value in values)


def _readable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column in a type that DuckDB reads as it is; what DuckDB has no type for becomes text."""
    import numpy as np
    import pandas as pd

    dtype: Any = column.dtype
    plain = column.reset_index(drop=True)
    if not is_known_dtype(dtype):
        raise NotATableError(
            f"has a column of the type {dtype_text(dtype)}, which SQL does not know; convert that column first"
        )
    if isinstance(dtype, pd.SparseDtype):
        return _readable(pd.Series(plain.to_numpy()))
    if isinstance(dtype, pd.CategoricalDtype):
        inner = dtype.categories.dtype
        texts = isinstance(inner, pd.StringDtype) or set(map(type, dtype.categories.tolist())) == {str}
        if not texts:
            return _of_cells(plain.astype(object).tolist())
        return plain.cat.rename_categories(pd.Index(dtype.categories.tolist(), dtype=object))
    if isinstance(dtype, pd.StringDtype):  # out of Arrow, which the process of SQL may be without
        return plain if dtype.storage == "python" else plain.astype(pd.StringDtype("python"))
    if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype):
        return _of_cells(plain.tolist())
    if _holds_objects(dtype):
        return _of_cells(plain.tolist(), plain)
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_arrow(plain)
    if not isinstance(dtype, np.dtype):
        return plain
    if dtype.kind == "c":
        return _of_cells(plain.astype(object).where(plain.notna(), None).tolist())
    if dtype.kind == "f" and dtype.itemsize > 8:
        rounded = plain.astype("float64")
        exact = (plain.isna() | (rounded.astype(dtype) == plain)).all()
        return rounded if exact else plain.astype(str).astype(object).where(plain.notna(), None)
    return plain if dtype.isnative else plain.astype(dtype.newbyteorder("="))


def _of_arrow(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column that pandas keeps in Arrow in a type of pandas or NumPy."""
    dtype: Any = column.dtype
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        letter = {"i": "Int", "u": "UInt", "f": "Float"}.get(dtype.kind)
        least = 32 if dtype.kind == "f" else 8
        masked: Any = "boolean" if letter is None else f"{letter}{max(least, dtype.itemsize * 8)}"
        return column.astype(masked)
    cells = column.tolist()
    if str(dtype.pyarrow_dtype).startswith("map<"):
        cells = [dict(cell) if type(cell) is list else cell for cell in cells]
    return _of_cells(cells)


def _holds_objects(dtype: Any) -> bool:
    import numpy as np

    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _of_cells(cells: list[Any], held: pd.Series[Any] | None = None) -> pd.Series[Any]:
    """Return a column with one type for all its cells.

    Cells of several kinds, and numbers that no type of SQL holds exactly, become texts.

    Args:
        cells: the cells.
        held: the same cells as a column of objects, which is returned if it can stay as it is.
    """
    import pandas as pd

    given = cells
    if not set(map(type, cells)) <= _PLAIN:
        cells = [_plain_cell(cell, _DEEPEST) for cell in cells]
    kinds = set(map(type, cells)) - {type(None)}
    if kinds & {float, Decimal}:
        # As in pandas, what is not a number is a missing value.
        cells = [None if _is_nan(cell) else cell for cell in cells]
        kinds = set(map(type, cells)) - {type(None)} or kinds & {float}
    if kinds == {bool}:
        return pd.Series(cells, dtype="boolean" if None in cells else "bool")
    if kinds == {int} and all(cell is None or -(2**63) <= cell < 2**63 for cell in cells):
        return pd.Series(cells, dtype="Int64" if None in cells else "int64")
    if float in kinds and _are_floats(cells):
        return pd.Series([None if cell is None else float(cell) for cell in cells], dtype="float64")
    if kinds and kinds <= {datetime, pd.Timestamp} and (moments := _moments(cells)) is not None:
        return moments
    groups = ({date, datetime, pd.Timestamp}, {timedelta, pd.Timedelta}, {bytes, bytearray})
    alike = len(kinds) < 2 or any(kinds <= group for group in groups) or bool(kinds & {list, dict})
    if kinds and kinds <= {date, datetime, pd.Timestamp, time}:
        # DuckDB would take those without an offset for UTC.
        alike = alike and len({_has_offset(cell) for cell in cells if cell is not None}) == 1
        if alike and any(type(cell) is time and cell.tzinfo and not _has_offset(cell) for cell in cells):
            cells = [None if cell is None else cell.replace(tzinfo=None) for cell in cells]
    if Decimal in kinds and kinds <= {int, Decimal}:
        decimals = [None if cell is None else Decimal(cell) for cell in cells]
        alike = (
            all(cell is None or cell.is_finite() for cell in decimals)
            and decimal_size(decimals)[0] <= _MOST_DIGITS
        )
        cells = decimals if alike else cells
    if kinds == {int}:
        alike = all(cell is None or cell.bit_length() < _MOST_BITS for cell in cells)
    if not alike:
        cells = [None if cell is None else _text(cell) for cell in cells]
    return held if held is not None and cells is given else pd.Series(cells, dtype=object)


def _is_nan(cell: Any) -> bool:
    if type(cell) is Decimal:
        return cell.is_nan()
    return type(cell) is float and cell != cell


def _has_offset(cell: Any) -> bool:
    return type(cell) is not date and cell.utcoffset() is not None


def _text(cell: Any) -> str:
    return hex(cell) if type(cell) is int and cell.bit_length() >= _MOST_BITS else str(cell)


def _moments(cells: list[Any]) -> pd.Series[Any] | None:
    """Return moments as such, to the nanosecond if they have them.

    Returns:
        None if only some of them have a time zone, or one is too far away.
    """
    import pandas as pd

    zoned = {cell.utcoffset() is not None for cell in cells if cell is not None}
    if len(zoned) > 1:
        return None
    unit = "ns" if any(getattr(cell, "nanosecond", 0) for cell in cells) else "us"
    try:
        if zoned == {True}:
            cells = [None if cell is None else cell.astimezone(UTC).replace(tzinfo=None) for cell in cells]
        moments = pd.Series(cells, dtype=f"datetime64[{unit}]")
    except (ValueError, OverflowError):
        return None
    return moments.dt.tz_localize("UTC") if zoned == {True} else moments


def _are_floats(cells: list[Any]) -> bool:
    """Return whether all cells are floats, or whole numbers that floats hold exactly."""
    return all(
        cell is None
        or type(cell) is float
        or (type(cell) is int and abs(cell) <= 2**1000 and float(cell) == cell)
        for cell in cells
    )


def _objects(cells: list[Any]) -> pd.Series[Any]:
    """A column of plain cells. pandas before 2.3 asks an object in a list for its array, so objects go out first."""
    import pandas as pd

    return pd.Series([_plain_cell(cell, _DEEPEST) for cell in cells], dtype=object)


def _plain_cell(cell: Any, depth: int) -> Any:
    import numpy as np

    kind = type(cell)
    if kind in _PLAIN:
        return cell
    if depth:
        if kind in (list, tuple, set, frozenset):
            return [_plain_cell(item, depth - 1) for item in cell]
        if kind is dict:
            return {
                name: HIDDEN if secret_name(name) else _plain_cell(item, depth - 1)
                for name, item in zip(field_names(list(cell)), cell.values(), strict=True)
            }
        if kind is np.ndarray:
            moments = cell.dtype.kind in "mM" and cell.ndim
            return _plain_cell(list(cell) if moments else cell.tolist(), depth - 1)
    return _plain_value(cell)


def _plain_value(cell: Any) -> Any:
    """Return a value that holds no others as one of plain Python or pandas, without code of its class."""
    import numpy as np
    import pandas as pd

    kind = type(cell)
    if cell is pd.NaT or cell is pd.NA:
        return None
    if kind in (pd.Timestamp, pd.Timedelta):
        return cell
    if kind in (pd.Period, pd.Interval, complex):
        return str(cell)
    if kind in (np.datetime64, np.timedelta64):  # whose `item` is a bare number of nanoseconds
        try:
            return _plain_value(pd.Timestamp(cell) if kind is np.datetime64 else pd.Timedelta(cell))
        except ValueError:
            return str(cell)
    if kind in np.sctypeDict.values() and kind not in (np.void, np.object_):
        return _plain_cell(cell.item(), 0)
    values = [value(cell) for base, value in _VALUES.items() if issubclass(kind, base)]
    return values[0] if values else f"<{type_name(cell)}>"
