"""Any table of the person's in the grid, from where it is: a pandas frame, an array, a table of polars or Arrow.

Invariant: nothing is stored, and the person's table is neither changed nor kept from being freed by more than a view.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.sql.sql_frames import holdable
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.render.dataframe_view import frame_of
from reyn_jupyter.outputs.convert import type_name
from reyn_jupyter.sessions.result_objects import FrameView

if TYPE_CHECKING:
    import pandas as pd


def view(table: object, *, name: str = "") -> FrameView:
    """Return a table to look at: sorted, filtered and counted in the notebook, whatever its size.

    Args:
        table: a DataFrame, a Series, an array of one or two dimensions, or what gives its rows as an Arrow stream: a
            table of polars, of pyarrow, a relation of DuckDB. It is shown as it is now.
        name: the variable that holds it, for the title and for code.

    Raises:
        ReynError: it is no table, or one of Arrow and neither pyarrow nor DuckDB is installed.

    Example:
        >>> reyn.view(orders)                                                      # doctest: +SKIP
    """
    frame = frame_of(table)
    if frame is None and hasattr(type(table), "__arrow_c_stream__"):
        frame = _of_arrow(table)
    if frame is None:
        lazy = callable(getattr(type(table), "collect", None))
        raise ReynError(
            f"A {type_name(table)} is no table{' yet' if lazy else ''}.",
            "Give what its collect() returns."
            if lazy
            else "Give a DataFrame, a Series, an array of one or two dimensions, or a table of polars or Arrow.",
        )
    held: Any = holdable(frame)
    return FrameView(held, name)


class _Stream:
    """Gives a table's rows as an Arrow stream, and nothing else of it."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _of_arrow(table: object) -> pd.DataFrame:
    """Read a table by pyarrow where it is installed, ten times as fast, and by DuckDB else."""
    try:
        pyarrow: Any = import_module("pyarrow")
    except ImportError:
        return _by_duckdb(table)

    import pandas as pd

    try:
        try:
            read = pyarrow.RecordBatchReader.from_stream(_Stream(table)).read_all()
        except pyarrow.ArrowInvalid:  # one column alone
            read = pyarrow.table({"values": pyarrow.chunked_array(_Stream(table))})
        columns = [_series(column, pyarrow) for column in read.columns]
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        raise _unreadable(error) from error
    frame = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(read.num_rows), copy=False)
    frame.columns = pd.Index(read.column_names, dtype=object)
    return frame


def _series(column: Any, pyarrow: Any) -> pd.Series[Any]:
    """Return a column of Arrow's with its whole numbers whole, missing ones among them or not."""
    import pandas as pd

    whole = {
        getattr(pyarrow, name.lower())(): getattr(pd, f"{name}Dtype")()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    kind = column.type
    if pyarrow.types.is_dictionary(kind) and pyarrow.types.is_unsigned_integer(kind.index_type):
        # Polars counts categories so, and pyarrow before 23 makes no Series of that.
        column = column.cast(pyarrow.dictionary(pyarrow.int64(), kind.value_type, kind.ordered))
    made: pd.Series[Any] = column.to_pandas(types_mapper=whole.get if column.null_count else None)
    return made


def _by_duckdb(table: object) -> pd.DataFrame:
    try:
        import duckdb
    except ImportError as error:
        raise ReynError("An Arrow table is read by pyarrow or DuckDB.", "pip install pyarrow") from error

    try:
        with duckdb.connect() as connection:
            found: pd.DataFrame = connection.from_arrow(_Stream(table)).df()
    except duckdb.Error as error:
        raise _unreadable(error) from error
    return found


def _unreadable(error: Exception) -> ReynError:
    return ReynError(
        f"Its Arrow stream cannot be read: {error}",
        "Convert it to a DataFrame; `pip install pyarrow` may help.",
    )
