"""A sensible chart of a small result, without anybody saying which: for a press of a button.

Invariants: the rows are drawn as they are, none grouped, none left out; where that makes no chart, there is none.
Choosing reads the frame alone; no process is started for it, no SQL is run, no model is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.charts.chart_columns import ChartColumn
from reyn_jupyter.backends.charts.chart_drawing import ChartDrawing
from reyn_jupyter.backends.charts.chart_layout import MOST_CATEGORIES, lay_out
from reyn_jupyter.backends.charts.chart_query import MOST_POINTS, ChartRows, Dimension, Measure, with_facts
from reyn_jupyter.backends.charts.chart_request import (
    Channel,
    ChartError,
    ChartRequest,
    DataType,
    Encoding,
    MarkName,
)
from reyn_jupyter.backends.charts.chart_result import ChartResult
from reyn_jupyter.backends.charts.query_facts import query_facts
from reyn_jupyter.backends.charts.renderer import chart_child, render, why_not
from reyn_jupyter.backends.sql.sql_frames import NotATableError, as_table, renamed_in
from reyn_jupyter.support.programs.child_process import ChildProcesses

if TYPE_CHECKING:
    import pandas as pd

_MOST_COLUMNS = 4
_PERIODS = frozenset({"year", "quarter", "month", "week", "day", "hour"})


def quick_drawing(
    rows: object, name: str = "df", mask: Callable[[str], str] = str, sql: str = ""
) -> ChartDrawing | None:
    """Return a chart of a small result, before it is drawn; None where none suggests itself.

    One category and a number give bars, a date and a number a line, two numbers points.

    Args:
        rows: a frame, or rows as a list of dicts; see `sql_frames.as_table`.
        name: what the rows are called in the code for Altair.
        mask: covers secrets in a text.
        sql: the query that the rows come from; the title names its filters and its aggregates.
    """
    import pandas as pd

    try:
        frame = as_table(rows, rows=MOST_POINTS + 1)
    except NotATableError:
        return None
    # Renamed columns would be others, or none, in the code for Altair.
    sized = 1 <= len(frame) <= MOST_POINTS and 2 <= frame.shape[1] <= _MOST_COLUMNS
    if not sized or renamed_in(rows):
        return None
    kinds = {str(column): _kind(frame[column]) for column in frame.columns}
    numbers = [column for column, kind in kinds.items() if kind == "quantitative"]
    others = [column for column, kind in kinds.items() if kind != "quantitative"]
    if not others and len(numbers) == 2 and numbers[0].lower() in _PERIODS:
        others = [numbers.pop(0)]
        kinds[others[0]] = "nominal"
    if len(others) > 1 or (others and kinds[others[0]] is None) or not numbers:
        return None
    if not others and len(numbers) != 2:
        return None
    x, y = (others[0], numbers[0]) if others else (numbers[0], numbers[1])
    kind = kinds[x] or "nominal"
    if kind != "quantitative" and (frame[x].isna().any() or frame[x].duplicated().any()):
        return None  # rows, not one a group: what to do with several is not ours to choose
    if kind == "nominal" and len(frame) > MOST_CATEGORIES:
        return None
    if frame[y].isna().all():
        return None
    mark: MarkName = {"nominal": "bar", "temporal": "line", "quantitative": "point"}[kind]  # type: ignore[assignment]
    held = pd.DataFrame({"x": frame[x], "y": frame[y], "x_key": range(len(frame)), "n": 1})
    zone = ""
    if kind == "nominal":
        held["x"] = held["x"].map(str)
    elif kind == "temporal":
        moments = pd.to_datetime(held["x"])
        zone = str(moments.dt.tz or "")
        held["x"] = moments.dt.tz_localize(None)
        held = held.sort_values("x")
    else:
        held = held[held["x"].notna() & held["y"].notna()]
    request = ChartRequest(mark, {"x": Encoding(x, sort="ascending"), "y": Encoding(y)})
    try:
        drawn = with_facts(_rows_of(request, held, kind, len(frame), zone), query_facts(sql))
        return lay_out(drawn, mask, (_data_line(name, x, y, kind),))
    except ChartError:
        return None


def quick_chart(
    rows: object, children: ChildProcesses, name: str = "df", mask: Callable[[str], str] = str, sql: str = ""
) -> ChartResult | None:
    """Return a chart of a small result, drawn; None where none suggests itself or charts are not installed.

    Blocks while the picture is made, some seconds the first time, so it belongs into a worker thread.

    Args:
        children: the session's processes.
        rows, name, mask, sql: as for `quick_drawing`.

    Raises:
        ChartError: the picture could not be made.
    """
    if why_not() is not None:
        return None
    drawing = quick_drawing(rows, name, mask, sql)
    return None if drawing is None else ChartResult.of(drawing, render(chart_child(children), drawing))


def _rows_of(request: ChartRequest, held: pd.DataFrame, kind: DataType, total: int, zone: str) -> ChartRows:
    def column(channel: Channel, shown: DataType) -> ChartColumn:
        encoding = request.encodings[channel]
        return ChartColumn(encoding.field or "", shown, "", encoding, zone if channel == "x" else "")

    x = column("x", kind)
    if kind == "quantitative":
        dimensions = (Dimension("x", x, "number"), Dimension("y", column("y", "quantitative"), "number"))
        return ChartRows(request, held, dimensions, None, total, (), "")
    measure = Measure("y", "sum", column("y", "quantitative"), default=True)
    grouping = Dimension("x", x, "category" if kind == "nominal" else "moment")
    return ChartRows(request, held, (grouping,), measure, total, (), "")


def _data_line(name: str, x: str, y: str, kind: DataType) -> str:
    made = f"data = {name}.reset_index()[[{x!r}, {y!r}]].set_axis(['x', 'y'], axis=1)"
    return f"{made}.astype({{'x': str}})" if kind == "nominal" else made


def _kind(values: Any) -> DataType | None:
    """Return how a column is shown; None for what is no category, date or number."""
    import pandas as pd

    types = pd.api.types
    if types.is_bool_dtype(values.dtype) or types.is_timedelta64_dtype(values.dtype):
        return None
    if types.is_numeric_dtype(values.dtype):
        return "quantitative"
    if types.is_datetime64_any_dtype(values.dtype):
        return "temporal"
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    return {"string": "nominal", "date": "temporal", "datetime": "temporal", "decimal": "quantitative"}.get(
        inferred
    )  # type: ignore[return-value]
