"""The rows that DuckDB gives, as a frame with the exact values. Used in the process that runs SQL.

Invariant: the values of a frame are those of DuckDB: a kind of column that is not known here is refused, by name and
type. NULL is told apart from NaN. Nothing is rounded, and what Python has no value for (infinite dates) is its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.sql.sql_scans import quoted
from reyn_jupyter.backends.sql.sql_wire import AnswerError

if TYPE_CHECKING:
    import pandas as pd

_KEPT = '"rows of the answer"'  # a database, so that the table in it is none of the query's
_ROWS = f"{_KEPT}.main.rows"
_ARRAYS = frozenset({
    "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "float",
    "double", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone",
    "timestamptz_ns", "interval", "varchar", "blob", "geometry", "uuid",
})  # fmt: skip
_NESTED = frozenset({"list", "array", "struct", "tuple", "map", "union", "variant", "null"})
_INFINITE = re.compile("DATE|TIMESTAMP")
_FRACTION = re.compile(r"\.\d{7}")  # of a second, finer than Python's times have it


def prepare_answer(connection: Any) -> None:
    """Make the database in which `exact_frame` keeps the rows of an answer, while databases can be made."""
    connection.execute(f"ATTACH ':memory:' AS {_KEPT}")


def exact_frame(connection: Any, relation: Any, rows: int) -> pd.DataFrame:
    """Return the first rows of a relation.

    Args:
        connection: one of `prepare_answer`. The answer is kept there as a table, since it may be computed only once.
        relation: a relation of DuckDB.
        rows: how many rows at most.

    Returns:
        A frame whose columns are numbered.

    Raises:
        AnswerError: a column cannot be carried.
    """
    import pandas as pd

    kinds = relation.types
    for name, kind in zip(relation.columns, kinds, strict=True):
        if kind.id not in _ARRAYS | _NESTED | _TEXTS.keys() | {"enum"}:
            raise _unknown(name, kind)
    named = ", ".join(f"#{at + 1} AS c{at}" for at in range(len(kinds)))
    relation.project(named).limit(rows).create(_ROWS)
    ((count,),) = connection.execute(f"SELECT count(*) FROM {_ROWS}").fetchall()  # noqa: S608 - quoted
    nested = [at for at, kind in enumerate(kinds) if kind.id in _NESTED]
    for at in nested:
        _refuse_infinite(connection, at, relation.columns[at], kinds[at])
    flat = [at for at in range(len(kinds)) if at not in nested]
    arrays = _read(connection, flat, kinds).fetchnumpy() if flat else {}
    lists = zip(*_read(connection, nested, kinds).fetchall(), strict=True) if nested and count else ()
    columns: dict[int, Any] = {at: pd.Series([], dtype=object) for at in nested}
    columns |= {at: pd.Series(list(cells), dtype=object) for at, cells in zip(nested, lists, strict=False)}
    for name, cells in arrays.items():
        at = int(name.removeprefix("c"))
        columns[at] = _column(cells, kinds[at])
    return pd.DataFrame({at: columns[at] for at in range(len(kinds))}, index=range(count), copy=False)


def _read(connection: Any, places: Sequence[int], kinds: Sequence[Any]) -> Any:
    chosen = ", ".join(f"c{at}{'::VARCHAR' if kinds[at].id in _TEXTS else ''} AS c{at}" for at in places)
    return connection.execute(f"SELECT {chosen} FROM {_ROWS}")  # noqa: S608 - quoted


def _refuse_infinite(connection: Any, at: int, name: str, kind: Any) -> None:
    """Refuse infinite dates inside nested cells: DuckDB makes the last day of the year 9999 of them."""
    if not _INFINITE.search(str(kind)):
        return
    found = connection.execute(
        f"SELECT count(*) FROM {_ROWS} WHERE contains(c{at}::VARCHAR, 'infinity')"  # noqa: S608 - quoted
    )
    if found.fetchone()[0]:
        raise AnswerError(
            f"the column {name!r} of the type {str(kind)[:200]} has infinite dates in nested cells",
            f"Cast it: {quoted(name)}::VARCHAR.",
        )


def _unknown(name: str, kind: Any) -> AnswerError:
    return AnswerError(
        f"the column {name!r} has the type {str(kind)[:200]}, which cannot be carried",
        f"Cast it: {quoted(name)}::VARCHAR.",
    )


def _column(cells: Any, kind: Any) -> pd.Series[Any]:
    """Return a column of what `fetchnumpy` gives for it."""
    import numpy as np
    import pandas as pd

    values = np.ma.getdata(cells)
    missing = np.ma.getmaskarray(cells)
    if kind.id == "enum" or values.dtype.kind == "O":
        read = _TEXTS.get(kind.id, _OBJECTS.get(kind.id))
        held = [
            None if gone or cell is None else read(cell) if read else cell
            for cell, gone in zip(values.tolist(), missing.tolist(), strict=True)
        ]
        return _objects(held, kind)
    if values.dtype.kind in "mM":
        values = values.copy()
        values[missing] = np.array("NaT", values.dtype)
        return _moments(values, "TIME ZONE" in str(kind) or kind.id == "timestamptz_ns")
    if not missing.any():
        return pd.Series(values)
    if values.dtype.kind == "f":
        if np.isnan(values[~missing]).any():
            held = [
                None if gone else cell for cell, gone in zip(values.tolist(), missing.tolist(), strict=True)
            ]
            return pd.Series(held, dtype=object)
        return pd.Series(np.where(missing, np.array(np.nan, values.dtype), values))
    array = pd.arrays.BooleanArray if values.dtype.kind == "b" else pd.arrays.IntegerArray
    return pd.Series(array(values, missing))


def _objects(cells: list[Any], kind: Any) -> pd.Series[Any]:
    import pandas as pd

    if kind.id == "enum":
        ((_, categories),) = kind.children
        return pd.Series(pd.Categorical(cells, pd.Index(categories), ordered=True))
    if kind.id in ("hugeint", "uhugeint", "bignum"):
        fits = all(cell is None or -(2**63) <= cell < 2**63 for cell in cells)
        whole: Any = ("Int64" if None in cells else "int64") if fits else object
        numbers: pd.Series[Any] = pd.Series(cells, dtype=whole)
        return numbers
    if kind.id == "varchar" and isinstance(pd.Series(["a"]).dtype, pd.StringDtype):
        return pd.Series(cells, dtype="str")
    return pd.Series(cells, dtype=object)


def _moments(values: Any, zoned: bool) -> pd.Series[Any]:
    """Return moments or durations; in a column with infinite moments, these are texts among the others."""
    import numpy as np
    import pandas as pd

    column: pd.Series[Any] = pd.Series(values)
    column = column.dt.tz_localize("UTC") if zoned else column
    largest = np.iinfo("int64").max
    infinite = dict.fromkeys(np.flatnonzero(values.view("int64") == largest), "infinity")
    infinite |= dict.fromkeys(np.flatnonzero(values.view("int64") == -largest), "-infinity")
    if not infinite or values.dtype.kind == "m":
        return column
    cells = [None if cell is pd.NaT else cell for cell in column.drop(list(infinite)).tolist()]
    for at in sorted(infinite):
        cells.insert(int(at), infinite[at])
    return pd.Series(cells, dtype=object)


def _date(text: str) -> date | str:
    try:
        return date.fromisoformat(text)
    except ValueError:  # infinite, before the year 1, or after 9999
        return text


def _time(text: str) -> time | str:
    # 24:00:00, and finer than microseconds: Python has no such time.
    return text if text.startswith("24") or _FRACTION.search(text) else time.fromisoformat(text)


# The kinds that are read as DuckDB's text.
_TEXTS: dict[str, Callable[[str], Any]] = {
    "hugeint": int, "uhugeint": int, "bignum": int, "decimal": Decimal, "date": _date, "time": _time,
    "time_ns": _time, "time with time zone": _time, "bit": str,
}  # fmt: skip
_OBJECTS: dict[str, Callable[[Any], Any]] = {"blob": bytes, "geometry": bytes}
