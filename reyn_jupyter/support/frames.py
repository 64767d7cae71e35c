"""Frames of rows whose texts come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame_of_rows(
    rows: Sequence[Any] | Mapping[str, Any], columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return a DataFrame of rows, also of texts with half a character in them, which pyarrow cannot hold.

    Args:
        rows: what `pandas.DataFrame` takes: a list of rows, or lists by column.
        columns: the names of the columns; those of the rows when None.

    Example:
        >>> frame_of_rows([{"text": "a\\ud800"}])["text"].tolist() == ["a\\ud800"]
        True
    """
    import pandas as pd

    names = None if columns is None else list(columns)
    try:
        return pd.DataFrame(rows, columns=names)
    except UnicodeEncodeError:
        # pandas keeps texts in pyarrow where that is installed.
        with pd.option_context("mode.string_storage", "python"):
            return pd.DataFrame(rows, columns=names)
