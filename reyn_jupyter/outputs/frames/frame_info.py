"""The description that restores a table, as it is read from a file that somebody else may have written.

Invariant: what is taken as sound asks for no more rows, columns or bytes than the records themselves can hold, so that
a description of a few bytes makes no table of gigabytes.
"""

from __future__ import annotations

import re
from typing import Any

MOST_ROWS = 1 << 40
LARGEST_ARRAY = 1 << 30  # bytes of an array that has more of them than its records let expect
_CELL = 4  # bytes of a cell at least, its key included: {"":1}
_LONGEST_DTYPE = 10_000  # characters; of nested types of Arrow they are many
# A width of four digits and more is of no dtype of a column; in the name of a category or of an Arrow type it may be.
_WIDTH = re.compile(r"\d{4}")


def is_frame_info(info: object, size: int) -> bool:
    """Return whether a description is one that records of `size` bytes can have.

    >>> is_frame_info({"rows": 1, "cols": 1, "columns": [{"key": "a", "dtype": "int64"}]}, len('[{"a":1}]'))
    True
    >>> is_frame_info({"rows": 10**9, "cols": 1, "columns": [{"key": "a", "dtype": "int64"}]}, len('[{"a":1}]'))
    False
    """
    if not isinstance(info, dict) or not _is_count(info.get("rows")) or not _is_count(info.get("cols")):
        return False
    rows, columns, index = info["rows"], info.get("columns"), info.get("index")
    if not isinstance(columns, list) or len(columns) != info["cols"] or not all(map(_is_column, columns)):
        return False
    if not isinstance(info.get("column_names", []), list):
        return False
    levels: list[Any] = []
    if index is not None:
        if not isinstance(index, dict):
            return False
        if "range" in index:
            if not _is_range(index["range"], rows):
                return False
        else:
            levels = index.get("levels", [])
            if not isinstance(levels, list) or not levels or not all(map(_is_column, levels)):
                return False
    least: int = rows * max(1, len(columns) + len(levels)) * (_CELL if columns or levels else 1)
    return least <= size


def is_column_dtype(dtype: str) -> bool:
    """Return whether a name can be the dtype of a column: it names no width in bytes of its own."""
    return dtype.startswith("category") or dtype.endswith("[pyarrow]") or _WIDTH.search(dtype) is None


def _is_column(spec: object) -> bool:
    return (
        isinstance(spec, dict)
        and isinstance(spec.get("key"), str)
        and isinstance(spec.get("dtype"), str)
        and len(spec["dtype"]) <= _LONGEST_DTYPE
    )


def _is_range(span: object, rows: int) -> bool:
    if not isinstance(span, list) or len(span) != 3 or not all(type(each) is int for each in span):
        return False
    start, stop, step = map(int, span)
    if step == 0 or any(abs(each) >= 1 << 63 for each in span):
        return False
    return max(0, -((start - stop) // step)) == rows  # `len` of a range counts no further than 1 << 63


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_ROWS
