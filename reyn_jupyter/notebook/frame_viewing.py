"""Any table of the person's in the grid, from where it is: a pandas frame, an array, a table of polars or Arrow.

Invariant: nothing is stored, and the person's table is neither changed nor kept from being freed by more than a view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.sql_frames import holdable
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
        ReynError: it is no table, or one of Arrow and the extra `sql` is not installed.

    Example:
        >>> reyn.view(orders)                                                      # doctest: +SKIP
    """
    frame = frame_of(table)
    if frame is None and hasattr(type(table), "__arrow_c_stream__"):
        frame = _of_arrow(table)
    if frame is None:
        raise ReynError(
            f"A {type_name(table)} is no table.",
            "Give a DataFrame, a Series, an array of one or two dimensions, or a table of polars or Arrow.",
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
    try:
        import duckdb
    except ImportError as error:
        raise ReynError("An Arrow table is read by DuckDB.", "pip install 'reyn-jupyter[sql]'") from error

    try:
        with duckdb.connect() as connection:
            found: pd.DataFrame = connection.from_arrow(_Stream(table)).df()
    except duckdb.Error as error:
        raise ReynError(f"Its Arrow stream cannot be read: {error}", "Convert it to a DataFrame.") from error
    return found
