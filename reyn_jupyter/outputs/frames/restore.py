"""Frames back from their records: the other half of `frames`.

Invariant: nothing here fails for a column that cannot be given its dtype again; it then keeps the JSON values.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from reyn_jupyter.outputs.content import JsonValue
from reyn_jupyter.outputs.frames.frame_info import is_column_dtype
from reyn_jupyter.support.encoding import compact
from reyn_jupyter.support.frames import frame_of_rows

if TYPE_CHECKING:
    import pandas as pd

_HEXADECIMAL = re.compile(r"-?0x[0-9a-fA-F]+")
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def untag(value: JsonValue) -> Any:
    """``{"$number": …}`` back to a number, at the top of a cell only.

    >>> untag({"$number": "-Infinity"})
    -inf
    """
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("$number"), str):
        text = value["$number"]
        return (
            _SPECIAL[text] if text in _SPECIAL else int(text, 16) if _HEXADECIMAL.fullmatch(text) else value
        )
    return value


def restore(records: Sequence[dict[str, Any]], info: dict[str, Any]) -> pd.DataFrame:
    """The frame that the records came from.

    Args:
        records: all records, in order.
        info: the `frame` description beside them.
    """
    return _assemble(lambda spec: [record.get(spec["key"]) for record in records], info)


def restore_columns(table: pd.DataFrame, info: dict[str, Any]) -> pd.DataFrame:
    """The frame from a table that holds its columns under their record keys (a Parquet sidecar)."""
    return _assemble(lambda spec: table[spec["key"]], info)


def restore_lists(columns: Mapping[str, Sequence[JsonValue]], info: dict[str, Any]) -> pd.DataFrame:
    """The frame from the JSON values of each column, under their record keys."""
    return _assemble(lambda spec: columns[spec["key"]], info)


def from_plain(value: JsonValue) -> pd.DataFrame:
    """A frame of any JSON array: one row an element; what is no object goes into the column ``value``."""

    rows = [
        {key: untag(item) for key, item in element.items()}
        if isinstance(element, dict) and untag(element) is element
        else {"value": untag(element)}
        for element in value
    ]
    return frame_of_rows(rows)


def _assemble(column_of: Callable[[dict[str, Any]], Any], info: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    columns = info["columns"]
    data = {position: _series(column_of(spec), spec) for position, spec in enumerate(columns)}
    frame = pd.DataFrame(data, index=range(info["rows"]))
    frame.columns = _labels(columns, info)
    index = info.get("index")
    if index and "range" in index:
        start, stop, step = index["range"]
        frame.index = pd.RangeIndex(start, stop, step, name=decode_label(index.get("label")))
    elif index:
        frame.index = _index(
            [(_series(column_of(spec), spec), decode_label(spec.get("label"))) for spec in index["levels"]],
            index,
        )
    return frame


def _index(levels: list[tuple[pd.Series[Any], Any]], index: dict[str, Any]) -> pd.Index[Any]:
    import pandas as pd

    if index.get("multi"):
        return pd.MultiIndex.from_arrays([values for values, _ in levels], names=[name for _, name in levels])
    values, name = levels[0]
    restored: pd.Index[Any] = pd.Index(values, name=name, dtype=values.dtype)
    if "frequency" in index and isinstance(restored, pd.DatetimeIndex | pd.TimedeltaIndex):
        with suppress(ValueError, TypeError):
            restored = type(restored)(restored, freq=index["frequency"])
    return restored


def _labels(columns: list[dict[str, Any]], info: dict[str, Any]) -> pd.Index[Any]:
    import pandas as pd

    labels = [decode_label(spec.get("label")) for spec in columns]
    names = [decode_label(name) for name in info.get("column_names", [None])]
    if len(names) > 1 and labels:
        return pd.MultiIndex.from_tuples(labels, names=names)
    if not labels:
        return pd.RangeIndex(0, name=names[0])
    index: pd.Index[Any]
    try:
        index = pd.Index(labels, name=names[0], tupleize_cols=False)
    except UnicodeEncodeError:  # half a character, which the texts of pyarrow cannot hold
        index = pd.Index(labels, name=names[0], tupleize_cols=False, dtype=object)
    return index


def decode_label(label: JsonValue) -> Any:
    if isinstance(label, dict):
        if isinstance(label.get("$tuple"), list):
            return tuple(decode_label(part) for part in label["$tuple"])
        if "$timestamp" in label:
            import pandas as pd

            with suppress(ValueError, TypeError):
                return pd.Timestamp(label["$timestamp"])
        number = untag(label)
        return compact(label) if number is label else number  # no dict can be a label
    return compact(label) if isinstance(label, list) else label


def _series(values: Any, spec: dict[str, Any]) -> pd.Series[Any]:
    import pandas as pd

    try:
        return pd.Series(_decode(values, spec)).reset_index(drop=True)
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError, NotImplementedError):
        return pd.Series(list(values), dtype=object)


def _decode(values: Any, spec: dict[str, Any]) -> Any:
    """One column's cells under the dtype they had."""
    import numpy as np
    import pandas as pd

    dtype = spec["dtype"]
    if not is_column_dtype(dtype):
        raise ValueError(f"{dtype[:100]} is no dtype of a column")
    if isinstance(values, pd.Series):
        return values if str(values.dtype) == dtype else values.astype(dtype)
    if dtype == "category":
        return _categories(values, spec)
    if dtype == "object":
        return pd.Series(_objects(values, spec), dtype=object)
    if dtype.startswith("datetime64"):
        parsed = pd.to_datetime(pd.Series(values, dtype=object), format="ISO8601", utc="," in dtype)
        return parsed.astype(dtype)
    if dtype.startswith("timedelta64"):
        return pd.to_timedelta(pd.Series(values, dtype=object)).astype(dtype)
    if dtype.startswith("interval"):
        return _intervals(values, spec)
    if dtype.startswith("complex"):
        return np.array(
            [complex("nan") if value is None else complex(value) for value in values], dtype=dtype
        )
    if dtype.startswith("float"):
        array = np.array([float("nan") if value is None else value for value in values], dtype=dtype)
        for name, positions in spec.get("specials", {}).items():
            array[positions] = _SPECIAL[name]
        return array
    if dtype.startswith(("int", "uint")):  # pandas' own conversion loses the largest unsigned ones
        return np.array(list(values), dtype=dtype)
    return pd.array(list(values), dtype=dtype)


def _categories(values: Sequence[JsonValue], spec: dict[str, Any]) -> pd.Categorical:
    import pandas as pd

    inner = spec["categories"]
    code_of = {compact(value): code for code, value in enumerate(inner["values"])}
    codes = [-1 if value is None else code_of[compact(value)] for value in values]
    categories = pd.Index(_series(inner["values"], inner))
    return pd.Categorical.from_codes(codes, categories=categories, ordered=spec["ordered"])


def _intervals(values: Sequence[JsonValue], spec: dict[str, Any]) -> pd.IntervalIndex[Any]:
    import pandas as pd

    bounds = spec["dtype"].removeprefix("interval[").rpartition(",")[0] or "float64"
    ends: list[pd.Series[Any]] = []
    for side in (0, 1):
        cells = [None if value is None else value[side] for value in values]
        ends.append(
            _series(cells, {"dtype": "float64" if None in cells and bounds.startswith("int") else bounds})
        )
    return pd.IntervalIndex.from_arrays(ends[0], ends[1], closed=spec["closed"])


_READERS: dict[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time.fromisoformat,
    "Decimal": Decimal,
    "UUID": UUID,
    "bytes": lambda value: b64decode(value["base64"]),
}


def _objects(values: Sequence[JsonValue], spec: dict[str, Any]) -> list[Any]:
    import pandas as pd

    readers: dict[str, Callable[[Any], Any]] = {**_READERS, "Timestamp": pd.Timestamp}
    read = readers.get(spec.get("items", ""), untag)
    decoded = [None if value is None else read(value) for value in values]
    for name, positions in spec.get("specials", {}).items():
        for position in positions:
            decoded[position] = _SPECIAL[name]
    return decoded
