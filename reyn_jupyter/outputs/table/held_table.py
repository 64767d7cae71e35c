"""A frame in memory that is open for looking at, with the face of a stored table and without a copy in a store.

Invariant: what is shown is the frame as it was when it was opened. Where pandas copies on write it shares its data with
the person's frame until one of them changes; its cells are read as a store would write them, so that none of the
person's objects is asked for its words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.frames.column_codec import encode_cells
from reyn_jupyter.outputs.frames.records import FrameRecords
from reyn_jupyter.outputs.table.column_spec import STICKY, ColumnSpec, columns_of
from reyn_jupyter.outputs.table.frame_table import FrameTable
from reyn_jupyter.outputs.table.open_table import HEAD, Tell

if TYPE_CHECKING:
    import pandas as pd


class HeldTable:
    """Args:
    table_id: what views call it.
    frame: the rows; nobody changes it any more.
    expression: Python code for the frame, where a variable names it.
    shown: what it was opened for.
    """

    def __init__(
        self, table_id: str, frame: pd.DataFrame, expression: str | None = None, shown: object = None
    ) -> None:
        import pandas as pd

        self.id = table_id
        self.shown = shown
        self.expression = expression
        self.rows = len(frame)
        self.revision = 0
        self.frame_info: dict[str, Any] = FrameRecords(frame, {"kind": "DataFrame"}).info
        self.columns: list[ColumnSpec] = columns_of(self.frame_info)
        levels = sum(column.level is not None for column in self.columns)
        index = [pd.Series(frame.index.get_level_values(level)) for level in range(levels)]
        columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
        series = [each.reset_index(drop=True) for each in (*index, *columns)]
        self.table: FrameTable = FrameTable(self.columns, series, self.rows)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.table.size

    @property
    def headers(self) -> int:
        """The number of the first columns that name their row."""
        return min(STICKY, sum(column.level is not None for column in self.columns))

    def label(self, row: int) -> str:
        """Return the name of a row where no column gives one."""
        span = (self.frame_info.get("index") or {}).get("range")
        return str(span[0] + span[2] * row if span else row)

    def records(self, start: int, count: int) -> list[dict[str, Any]] | None:
        """Return None: rows are read from the table, which is there."""
        return None

    def cells(
        self, column: int, start: int, records: list[dict[str, Any]]
    ) -> tuple[list[Any], dict[int, str]]:
        """Return the JSON values of a column, and which nulls stand for numbers that JSON lacks."""
        return self.table.cells(column, slice(start, start + len(records)))

    def head(self, column: int) -> tuple[list[Any], dict[int, str]]:
        """Return the cells of the first rows."""
        return self.table.cells(column, slice(0, HEAD))

    def has_decimals(self, column: int) -> bool:
        """Return whether the first rows of a column hold decimals alone, which the dtype does not tell."""
        series = self.table.series[column]
        return str(series.dtype) == "object" and encode_cells(series.iloc[:HEAD], {})[2] == {"Decimal"}

    def load(self, tell: Tell) -> FrameTable:
        return self.table
