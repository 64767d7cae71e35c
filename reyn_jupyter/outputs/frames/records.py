"""Tables as JSON records, and what is needed to get the table back.

Invariant: ``restore(records, info)`` gives the frame that `to_structured` was given, dtypes, index and column labels
included, for every dtype that has a text form. The records stand on their own: keys are unique strings, index levels
that carry meaning come first as ordinary keys, missing values and numbers that JSON lacks are null; `info` keeps the
rest. Large frames are encoded block by block, so that their JSON is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from reyn_jupyter.outputs.content import JsonValue, Structured
from reyn_jupyter.outputs.convert import Namer, TableForms, register_tables, to_json, type_name
from reyn_jupyter.outputs.frames.column_codec import describe, encode_cells, note_specials
from reyn_jupyter.support.encoding import compact

if TYPE_CHECKING:
    import pandas as pd

BLOCK_ROWS = 2000
EAGER_CELLS = 200_000  # frames up to this many cells become a plain list of records at once


def count_cells(value: Any) -> int:
    """Return how many cells a frame, series or array holds."""
    return int(value.size)


def to_structured(value: Any) -> Structured:
    """Return a DataFrame, Series, Index or ndarray (one dimension or more) as records with `frame` info."""
    records = FrameRecords(*_as_frame(value))
    if len(records) * max(1, len(records.info["columns"])) <= EAGER_CELLS:
        return Structured(list(records), frame=records.info)
    return Structured(records, frame=records.info)


def to_records(value: Any) -> JsonValue:
    """Return a table that lies inside another value: a frame's records, an array's nested lists."""
    if hasattr(value, "tolist") and not hasattr(value, "index"):
        return to_json(value.tolist())
    return list(FrameRecords(*_as_frame(value)))


def _as_frame(value: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    import numpy as np
    import pandas as pd

    if isinstance(value, np.ndarray):
        shape = {"kind": "ndarray", "shape": list(value.shape), "dtype": str(value.dtype)}
        if value.dtype.names:
            return pd.DataFrame({name: list(value[name]) for name in value.dtype.names}), shape
        if value.ndim > 2:
            planes = {i: pd.Series(list(value[:, i]), dtype=object) for i in range(value.shape[1])}
            return pd.DataFrame(planes), shape
        return pd.DataFrame(value if value.ndim == 2 else value.reshape(-1, 1)), shape
    if isinstance(value, pd.Series):
        return value.to_frame(), {"kind": "Series"}
    if isinstance(value, pd.Index):
        return value.to_frame(index=False), {"kind": "Index"}
    if isinstance(value, pd.DataFrame):
        return value, {"kind": "DataFrame"}
    return pd.Series(value).to_frame(), {"kind": "array"}


class FrameRecords(Sequence[dict[str, Any]]):
    """The records of a frame, encoded on demand. Iterating once through completes `info`."""

    def __init__(self, frame: pd.DataFrame, head: dict[str, Any]) -> None:
        import pandas as pd

        self._columns: list[pd.Series[Any]] = []
        name_of = Namer()
        levels = [] if _is_plain_range(frame.index) else list(range(frame.index.nlevels))
        index: dict[str, Any] | None = None
        if levels:
            index = {"multi": isinstance(frame.index, pd.MultiIndex), "levels": []}
            for level in levels:
                values = frame.index.get_level_values(level)
                label = values.name
                fallback = "index" if len(levels) == 1 else f"level_{level}"
                key = name_of(fallback if label is None else label_text(label))
                index["levels"].append(
                    {"key": key, "label": encode_label(label), **describe(pd.Series(values))}
                )
                if frequency := getattr(frame.index, "freqstr", None):
                    index["frequency"] = frequency
                self._columns.append(pd.Series(values).reset_index(drop=True))
        elif isinstance(frame.index, pd.RangeIndex):
            steps = [frame.index.start, frame.index.stop, frame.index.step]
            index = {"range": steps, "label": encode_label(frame.index.name)}
        columns = []
        for position, label in enumerate(frame.columns):
            series = frame.iloc[:, position]
            columns.append(
                {"key": name_of(label_text(label)), "label": encode_label(label), **describe(series)}
            )
            self._columns.append(series)
        names = [encode_label(name) for name in frame.columns.names]
        self._rows = len(frame)
        self.info: dict[str, Any] = {
            **head, "rows": len(frame), "cols": len(columns),
            "columns": columns, "column_names": names, "index": index,
        }  # fmt: skip
        self._specs: list[dict[str, Any]] = [*(index or {}).get("levels", []), *columns]

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, position: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, position: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, position: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(position, slice):
            start, stop, step = position.indices(self._rows)
            return self._block(start, max(start, stop), note=False)[::step]
        if not -self._rows <= position < self._rows:
            raise IndexError(position)
        start = position % self._rows
        return self._block(start, start + 1, note=False)[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for block in self.blocks():
            yield from block

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """The records in blocks; what cannot be told from them is noted in `info` on the way."""
        for spec in self._specs:
            spec.pop("specials", None)
            spec.pop("items", None)
        for start in range(0, self._rows, BLOCK_ROWS):
            yield self._block(start, min(start + BLOCK_ROWS, self._rows), note=True)

    def parquet_frame(self) -> pd.DataFrame | None:
        """The columns under their record keys, or None when Parquet could not give them back exactly."""
        import pandas as pd

        if not all(_suits_parquet(column.dtype) for column in self._columns):
            return None
        plain = {
            spec["key"]: column.reset_index(drop=True)
            for spec, column in zip(self._specs, self._columns, strict=True)
        }
        return pd.DataFrame(plain)

    def _block(self, start: int, stop: int, *, note: bool) -> list[dict[str, Any]]:
        keys = [spec["key"] for spec in self._specs]
        encoded = []
        for spec, column in zip(self._specs, self._columns, strict=True):
            values, specials, kinds = encode_cells(column.iloc[start:stop], spec)
            encoded.append(values)
            if note:
                note_specials(spec, start, specials, kinds)
        if not keys:
            return [{} for _ in range(start, stop)]
        return [dict(zip(keys, row, strict=True)) for row in zip(*encoded, strict=True)]


def _is_plain_range(index: pd.Index[Any]) -> bool:
    import pandas as pd

    return isinstance(index, pd.RangeIndex)


def _suits_parquet(dtype: Any) -> bool:
    import pandas as pd

    kinds = pd.api.types
    plain = kinds.is_bool_dtype(dtype) or kinds.is_integer_dtype(dtype) or kinds.is_float_dtype(dtype)
    return str(dtype) == "str" or (plain and not kinds.is_extension_array_dtype(dtype)) or dtype.kind == "M"


def label_text(label: Any) -> str:
    """A column label as a record key; the levels of a tuple are joined by a dot."""
    if isinstance(label, str):
        return str.__str__(label)
    if isinstance(label, tuple):
        return ".".join(label_text(part) for part in label)
    converted = to_json(label)
    if isinstance(converted, str):
        return converted
    return compact(converted)


def encode_label(label: Any) -> JsonValue:
    """A label so that it comes back: plain scalars as they are, tuples and timestamps tagged."""
    import pandas as pd

    if isinstance(label, tuple):
        return {"$tuple": [encode_label(part) for part in label]}
    if isinstance(label, pd.Timestamp):
        return {"$timestamp": label.isoformat()}
    if label is None or isinstance(label, str | int | float):
        return to_json(label)
    converted = to_json(label)
    return converted if isinstance(converted, str | int | float | bool | None) else type_name(label)


register_tables(TableForms(count_cells, to_structured, to_records))
