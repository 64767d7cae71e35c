"""Tables of any size for the data grid: windows, order, matches, figures of a column, and the pandas code for them.

Invariant: a column is named by its position, since labels may be equal or no texts; whatever a cell holds, it has one
place in the order and sorting never raises. `order_key` and `matches` are what generated code calls where pandas'
own operators would differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["matches", "order_key"]


def order_key(values: pd.Series | pd.Index) -> pd.Series:
    """The place of each value in the grid's order, for ``sort_values(key=order_key)``; missing ones stay missing."""
    import pandas as pd

    from reyn_jupyter.outputs.table.sorting import order_of

    ranks = order_of(pd.Series(values)).ranks().astype("float64")
    ranks[ranks < 0] = float("nan")
    return pd.Series(ranks, index=getattr(values, "index", None))


def matches(values: pd.Series | pd.Index, op: str, value: str = "") -> NDArray[np.bool_]:
    """Return which values match, as the grid's filters see it, for ``df[matches(df["x"], "contains", "north")]``."""
    import pandas as pd

    from reyn_jupyter.outputs.table.row_filter import mask_of

    return mask_of(pd.Series(values).reset_index(drop=True), op, value)
