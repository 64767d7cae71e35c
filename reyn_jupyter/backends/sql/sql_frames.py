"""Frames on their way into DuckDB, and what it gave on its way back.

Invariant: DuckDB meets no object of the person's own class, whose methods it would call: such a cell becomes its
type's name. Every column has a distinct text name. A frame of the caller is never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from reyn_jupyter.backends.object_summary import (
    HIDDEN,
    dtype_text,
    is_frame_like,
    is_known_dtype,
    without_attrs,
)
from reyn_jupyter.outputs.convert import type_name
from reyn_jupyter.support.frames import frame_of_rows
from reyn_jupyter.support.secret_names import secret_name

if TYPE_CHECKING:
    import pandas as pd

_PLAIN = frozenset({
    type(None), bool, int, float, str, bytes, bytearray, Decimal, date, datetime, time, timedelta, UUID,
})  # fmt: skip
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
        rows: most rows.

    Returns:
        A new frame. A named index comes first, as columns; a nameless one is left out.

    Raises:
        NotATableError: anything else, subclasses of these types included.
    """
    import pandas as pd

    frame = _with_index(_raw(value).iloc[:rows])
    if frame.shape[1] == 0:
        raise NotATableError("has no columns")
    names = _distinct([_name(label, at) for at, label in enumerate(frame.columns.tolist())])
    read = [at for at, name in enumerate(names) if name not in without] or [_cheapest(frame)]
    return pd.DataFrame({names[at]: _readable(frame.iloc[:, at]) for at in read}, copy=False)


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its index as its first columns, if that has a name; objects in it are asked for nothing."""
    import numpy as np
    import pandas as pd

    index: Any = frame.index
    if all(name is None for name in index.names):
        return frame
    several = index.nlevels > 1
    labels = [f"level_{at}" if name is None else name for at, name in enumerate(index.names)]
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
    """The column in a type that DuckDB knows: what it does not know becomes text."""
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
    if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype) or dtype.kind == "c":
        missing = plain.isna()
        texts = [None if gone else str(item) for item, gone in zip(plain, missing, strict=True)]
        return pd.Series(texts, dtype=object)
    if isinstance(dtype, pd.CategoricalDtype):
        inner = dtype.categories.dtype
        ready = isinstance(inner, pd.StringDtype) or (isinstance(inner, np.dtype) and inner.kind in "biufM")
        return plain if ready else _readable(plain.astype(inner))
    return _plain_objects(plain) if _holds_objects(dtype) else plain


def _holds_objects(dtype: Any) -> bool:
    import numpy as np

    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _plain_objects(column: pd.Series[Any]) -> pd.Series[Any]:
    cells = column.tolist()
    return column if set(map(type, cells)) <= _PLAIN else _objects(cells)


def _objects(cells: list[Any]) -> pd.Series[Any]:
    """A column of plain cells. pandas before 2.3 asks an object in a list for its array, so objects go out first."""
    import pandas as pd

    return pd.Series([_plain_cell(cell, _DEEPEST) for cell in cells], dtype=object)


def _plain_cell(cell: Any, depth: int) -> Any:
    import numpy as np
    import pandas as pd

    kind = type(cell)
    if kind in _PLAIN:
        return cell
    if cell is pd.NaT or cell is pd.NA:
        return None
    if kind in (pd.Timestamp, pd.Timedelta):
        return cell
    if kind in (pd.Period, pd.Interval):
        return str(cell)
    if depth:
        if kind in (list, tuple, set, frozenset):
            return [_plain_cell(item, depth - 1) for item in cell]
        if kind is dict:
            return {
                name: HIDDEN if secret_name(name) else _plain_cell(item, depth - 1)
                for name, item in ((_name(key, at), item) for at, (key, item) in enumerate(cell.items()))
            }
        if kind is np.ndarray:
            return _plain_cell(cell.tolist(), depth - 1)
    if kind in np.sctypeDict.values() and kind not in (np.void, np.object_):
        return _plain_cell(cell.item(), 0)
    return f"<{type_name(cell)}>"


def _name(label: Any, position: int) -> str:
    if type(label) is str:
        return label.replace("\0", "").encode("utf-8", "replace").decode() or f"column_{position}"
    if type(label) is tuple:
        return "_".join(_name(part, position) for part in label if part != "") or f"column_{position}"
    named = type(label) in _PLAIN and label is not None and label == label  # NaN, what pandas makes of None
    return str(label) if named else f"column_{position}"


def _distinct(names: Sequence[str]) -> list[str]:
    """Names that differ even when letter case does not count, as in SQL: a, A → a, A_1."""
    taken = {name.lower() for name in names}
    used: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 0
        while candidate.lower() in used or (number and candidate.lower() in taken):
            number += 1
            candidate = f"{name}_{number}"
        used.add(candidate.lower())
        result.append(candidate)
    return result


def exact_integers(frame: pd.DataFrame, columns: Sequence[int]) -> pd.DataFrame:
    """Columns of 128-bit integers, fetched as text, as integers again: int64 where they fit, else Python's own."""
    import pandas as pd

    for at in columns:
        values = [None if pd.isna(text) else int(text) for text in frame.iloc[:, at]]
        fits = all(value is None or -(2**63) <= value < 2**63 for value in values)
        whole = fits and None not in values
        dtype: Any = "int64" if whole else "Int64" if fits else object
        frame = frame.assign(**{frame.columns[at]: pd.Series(values, dtype=dtype, index=frame.index)})
    return frame


def ordinary_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Lists instead of arrays, bytes instead of byte arrays, None for what is missing, in columns of objects."""
    import pandas as pd

    changed = {
        name: pd.Series([_ordinary(cell) for cell in frame[name]], dtype=object, index=frame.index)
        for name in frame.columns
        if _holds_objects(frame[name].dtype)
    }
    return frame.assign(**changed) if changed else frame


def _ordinary(cell: Any) -> Any:
    import numpy as np
    import pandas as pd

    if isinstance(cell, np.ndarray):
        return [_ordinary(item) for item in cell.tolist()]
    if isinstance(cell, dict):
        return {key: _ordinary(item) for key, item in cell.items()}
    if isinstance(cell, list | tuple):
        return [_ordinary(item) for item in cell]
    if isinstance(cell, bytearray):
        return bytes(cell)
    return None if cell is pd.NA or cell is pd.NaT else cell
