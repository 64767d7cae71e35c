"""Descriptions of Python objects, made without running any of the person's code.

Invariant: an object is described by what it is, decided by the identity of its type: frames, series, arrays, scalars,
text and the built-in containers, whose methods are Python's, numpy's and pandas' own. Of any other object, a subclass
of these included, only the type's name is read: `repr`, properties, `__getattr__`, `__len__` and `__class__` of the
person's classes are never called, and nothing is imported. What comes out is plain JSON and bounded.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID

from reyn_jupyter.outputs.convert import number_tag, to_json, type_name
from reyn_jupyter.support.secret_names import secret_name
from reyn_jupyter.support.text import count

HIDDEN = "[hidden]"  # in place of a value under a name like a secret's
_COLUMNS = 100  # of a frame that are listed
_COLUMNS_SHOWN = 50  # of a frame whose cells are shown
_COLUMNS_NAMED = 8  # in the one-line title
_COLUMNS_MEASURED = 2000  # of a frame whose bytes are told
_KEYS = 30
_LOOKED_AT = 1000  # elements of a container whose types are counted
_TEXT = 200  # characters of one text
_TEXT_ALONE = 1000  # characters of a text that is a variable of its own
_ITEMS = 10  # of a container inside another
_DEPTH = 3

_NO_NUMBERS = tuple(number_tag(number) for number in (math.nan, math.inf, -math.inf))
_SEQUENCES = (list, tuple, set, frozenset)


def title(value: object) -> str:
    """One line: type, size and, for a frame, its first columns.

    >>> title([1, 2, 3]), title("word")
    ('list, 3 elements', 'str, 4 characters')
    """
    kind = type(value)
    if is_loaded_type(value, "pandas", "DataFrame"):
        frame: Any = value
        rows, columns = frame.shape
        named = ", ".join(_labels(frame.columns[:_COLUMNS_NAMED]))
        more = ", …" if columns > _COLUMNS_NAMED else ""
        return f"DataFrame, {count(rows, 'row')} × {count(columns, 'column')}: {named}{more}"
    if is_loaded_type(value, "pandas", "Series"):
        series: Any = value
        return f"Series, {count(len(series), 'value')}, {dtype_text(series.dtype)}"
    if is_loaded_type(value, "numpy", "ndarray"):
        array: Any = value
        return f"ndarray, {' × '.join(map(str, array.shape)) or 'no dimensions'}, {dtype_text(array.dtype)}"
    if is_exactly(value, (str,)):
        return f"str, {count(len(value), 'character')}"  # type: ignore[arg-type]
    if is_exactly(value, (bytes, bytearray)):
        return f"{kind.__name__}, {count(len(value), 'byte')}"  # type: ignore[arg-type]
    if is_exactly(value, (dict,)):
        return f"dict, {count(len(value), 'key')}"  # type: ignore[arg-type]
    if is_exactly(value, _SEQUENCES):
        return f"{kind.__name__}, {count(len(value), 'element')}"  # type: ignore[arg-type]
    return type_name(value)


def shape(value: object) -> Hashable:
    """Return what `title` depends on beside the type, cheaply enough for every variable at every run."""
    if is_loaded_type(value, "pandas", "DataFrame"):
        frame: Any = value
        return (*frame.shape, *_labels(frame.columns[:_COLUMNS_NAMED]))
    if is_loaded_type(value, "pandas", "Series") or is_loaded_type(value, "numpy", "ndarray"):
        table: Any = value
        return (table.shape, dtype_text(table.dtype))
    if is_exactly(value, (str, bytes, bytearray, dict, *_SEQUENCES)):
        return len(value)  # type: ignore[arg-type]
    return None


def describe(value: object, rows: int, *, head: bool) -> dict[str, Any]:
    """Type, shape, schema and, with `head`, the first `rows` rows or elements.

    Returns:
        Plain JSON; what is left out is counted.
    """
    for module, name, tell in (
        ("pandas", "DataFrame", _frame),
        ("pandas", "Series", _series),
        ("numpy", "ndarray", _array),
    ):
        if is_loaded_type(value, module, name):
            return tell(value, rows, head)
    if is_exactly(value, (str, bytes, bytearray)):
        return _text(value, head)
    if is_exactly(value, (dict,)):
        return _dict(value, rows, head)
    if is_exactly(value, _SEQUENCES):
        return _sequence(value, rows, head)
    if is_scalar(type(value)):
        return {"type": type_name(value)} | ({"value": glimpse(value)} if head else {})
    return {"type": type_name(value), "note": "Only its type is shown."}


def glimpse(value: object, depth: int = _DEPTH) -> Any:
    """A value as bounded JSON: long texts and containers are cut and say so; unknown objects give their type."""
    if type(value) is str:
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}… ({len(value):,} characters)"
    if is_exactly(value, (bytes, bytearray)) or (type(value) is int and value.bit_length() > 1024):
        return f"<{title(value)}>"
    if is_scalar(type(value)):
        return to_json(value)
    if depth == 0:
        return f"<{title(value)}>"
    if type(value) is dict:
        entries = {
            _label(key): HIDDEN if secret_name(_label(key)) else glimpse(item, depth - 1)
            for key, item in islice(value.items(), _ITEMS)
        }
        return entries | ({"…": f"{len(value) - _ITEMS:,} more keys"} if len(value) > _ITEMS else {})
    if is_exactly(value, _SEQUENCES):
        items = [glimpse(item, depth - 1) for item in islice(value, _ITEMS)]  # type: ignore[call-overload]
        left = len(value) - _ITEMS  # type: ignore[arg-type]
        return [*items, f"… {left:,} more"] if left > 0 else items
    return f"<{title(value)}>"


def _frame(frame: Any, rows: int, head: bool) -> dict[str, Any]:
    frame = without_attrs(frame)
    shape = list(frame.shape)
    # Of a frame with very many columns only those that are named are looked at: pandas takes its time for each.
    wide = shape[1] > _COLUMNS_MEASURED
    if wide:
        frame = frame.iloc[:rows, :_COLUMNS]
    dtypes = list(frame.dtypes)
    known = [is_known_dtype(dtype) for dtype in dtypes]
    labels = _unique(_labels(frame.columns[:_COLUMNS]))
    summary: dict[str, Any] = {
        "type": "DataFrame",
        "shape": shape,
        "columns": [
            {"name": label, "dtype": dtype_text(dtype)} for label, dtype in zip(labels, dtypes, strict=False)
        ],
    }
    if shape[1] > _COLUMNS:
        summary["columns_left_out"] = shape[1] - _COLUMNS
    if not wide and all(known):
        # Not index=True: that joins the labels anew, which pyarrow refuses for one with half a character.
        summary["memory_bytes"] = int(frame.memory_usage(index=False).sum() + frame.index.memory_usage())
    levels = _levels(frame.index)
    if levels:
        summary["index"] = levels
    if head:
        positions = [at for at in range(len(labels)) if known[at]][:_COLUMNS_SHOWN]
        summary["head"] = _records(frame.iloc[:rows, positions], [labels[at] for at in positions], levels)
    return summary


def _records(part: Any, labels: Sequence[str], levels: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    keys = part.index.tolist() if levels else []
    cells = [keys] if len(levels) == 1 else [[key[at] for key in keys] for at in range(len(levels))]
    names = _unique([*labels, *(level["name"] for level in levels)])[len(labels) :]
    named = [
        *zip(names, cells, strict=True),
        *((label, part.iloc[:, at].tolist()) for at, label in enumerate(labels)),
    ]
    columns = {
        name: [HIDDEN] * len(held) if secret_name(name) else [_cell(cell) for cell in held]
        for name, held in named
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cell(value: object) -> Any:
    """A cell of a frame; what is no number there (NaN, an infinity) is null, as in records."""
    summary = glimpse(value)
    return None if is_scalar(type(value)) and summary in _NO_NUMBERS else summary


def _levels(index: Any) -> list[dict[str, str]]:
    """Return names and types of the levels of an index that is more than a row number."""
    if is_loaded_type(index, "pandas", "RangeIndex") and index.name is None:
        return []
    several = is_loaded_type(index, "pandas", "MultiIndex")
    dtypes = [level.dtype for level in index.levels] if several else [index.dtype]
    names = [
        _label(name) if name is not None else f"level_{at}" if several else "(index)"
        for at, name in enumerate(index.names)
    ]
    return [{"name": name, "dtype": dtype_text(dtype)} for name, dtype in zip(names, dtypes, strict=True)]


def _series(series: Any, rows: int, head: bool) -> dict[str, Any]:
    series = without_attrs(series)
    known = is_known_dtype(series.dtype)
    summary: dict[str, Any] = {
        "type": "Series",
        "name": None if series.name is None else _label(series.name),
        "shape": list(series.shape),
        "dtype": dtype_text(series.dtype),
    }
    if known:
        summary["memory_bytes"] = int(series.memory_usage(index=True, deep=False))
    label = summary["name"] or "value"
    levels = _levels(series.index)
    if levels:
        summary["index"] = levels
    if head and known:
        summary["head"] = _records(series.iloc[:rows].to_frame(), [label], levels)
    return summary


def _array(array: Any, rows: int, head: bool) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "type": "ndarray",
        "shape": list(array.shape),
        "dtype": dtype_text(array.dtype),
        "memory_bytes": int(array.nbytes),
    }
    if head:
        corner = array[(slice(rows), *[slice(_ITEMS)] * (array.ndim - 1))] if array.ndim else array
        summary["head"] = (
            [glimpse(item) for item in corner.tolist()] if array.ndim else glimpse(corner.tolist())
        )
    return summary


def _text(value: Any, head: bool) -> dict[str, Any]:
    summary: dict[str, Any] = {"type": type_name(value), "length": len(value)}
    if head and type(value) is str:
        summary["head"] = value[:_TEXT_ALONE]
        if len(value) > _TEXT_ALONE:
            summary["characters_left_out"] = len(value) - _TEXT_ALONE
    return summary


def _dict(value: Any, rows: int, head: bool) -> dict[str, Any]:
    pairs = list(islice(value.items(), _KEYS))
    labels = _unique([_label(key) for key, _ in pairs])
    summary: dict[str, Any] = {
        "type": "dict",
        "length": len(value),
        "keys": {label: title(item) for label, (_, item) in zip(labels, pairs, strict=True)},
    }
    if len(value) > _KEYS:
        summary["keys_left_out"] = len(value) - _KEYS
    if head:
        summary["head"] = {
            label: HIDDEN if secret_name(label) else glimpse(item)
            for label, (_, item) in islice(zip(labels, pairs, strict=True), rows)
        }
    return summary


def _sequence(value: Any, rows: int, head: bool) -> dict[str, Any]:
    counted = Counter(type_name(item) for item in islice(value, _LOOKED_AT))
    summary: dict[str, Any] = {
        "type": type_name(value),
        "length": len(value),
        "elements": dict(counted.most_common(_ITEMS)),
    }
    first = next(iter(value), None)
    if type(first) is dict:
        summary["first_element"] = {_label(key): title(item) for key, item in islice(first.items(), _KEYS)}
    if head:
        summary["head"] = [glimpse(item) for item in islice(value, rows)]
    return summary


def _labels(labels: Any) -> list[str]:
    listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return [_label(label) for label in listed]


def _label(label: object) -> str:
    if type(label) is str:
        return label if len(label) <= _TEXT else label[: _TEXT - 1] + "…"
    if type(label) is tuple:
        return "/".join(_label(part) for part in label)[:_TEXT]
    return str(to_json(label))[:_TEXT] if is_scalar(type(label)) else f"<{type_name(label)}>"


def _unique(labels: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    unique = []
    for label in labels:
        seen[label] += 1
        unique.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return unique


_LONGEST_DTYPE = 200  # characters
_RESULT_FRAME = "reyn_jupyter.runtime.record.result_frame"

_SCALARS = frozenset({
    type(None), bool, int, float, complex, Decimal, date, datetime, time, timedelta, UUID,
    PurePosixPath, PureWindowsPath, PosixPath, WindowsPath,
})  # fmt: skip


def is_exactly(value: object, kinds: tuple[type, ...]) -> bool:
    return type(value) in kinds


def is_frame_like(value: object) -> bool:
    """Return whether it is exactly a DataFrame, Series or ndarray."""
    return (
        is_loaded_type(value, "pandas", "DataFrame")
        or is_loaded_type(value, "pandas", "Series")
        or is_loaded_type(value, "numpy", "ndarray")
    )


def without_attrs(value: Any) -> Any:
    """Return a DataFrame or Series that shares its data and has no attrs: pandas copies those objects at every step."""
    return value._constructor(value, copy=False)


def is_loaded_type(value: object, module: str, name: str) -> bool:
    """By identity: a subclass is the person's own class, whose properties could do anything.

    Only the frame that a question came to (`ResultFrame`) is the DataFrame that it is made of.
    """
    loaded = sys.modules.get(module)
    if loaded is None:
        return False
    ours, kind = sys.modules.get(_RESULT_FRAME), type(value)
    if ours is not None and kind is ours.__dict__.get("ResultFrame"):
        kind = kind.__base__
    return kind is loaded.__dict__.get(name)


def is_known_dtype(dtype: object) -> bool:
    """Return whether a dtype is numpy's or pandas' own; an extension type of the person's is code."""
    numpy = sys.modules["numpy"]
    return numpy.dtype in type.__dict__["__mro__"].__get__(type(dtype)) or type(dtype) in _pandas_dtypes()


@cache
def _pandas_dtypes() -> frozenset[type]:
    import pandas as pd

    names = [
        "Categorical",
        "DatetimeTZ",
        "Period",
        "Interval",
        "Sparse",
        "String",
        "Boolean",
        "Arrow",
        "Float32",
        "Float64",
    ]
    names += [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    return frozenset(getattr(pd, f"{name}Dtype") for name in names if hasattr(pd, f"{name}Dtype"))


def dtype_text(dtype: object) -> str:
    return str(dtype)[:_LONGEST_DTYPE] if is_known_dtype(dtype) else type_name(dtype)


def is_scalar(kind: type) -> bool:
    return kind in _SCALARS or kind in _table_scalars(sys.modules.get("pandas"), sys.modules.get("numpy"))


@cache
def _table_scalars(pandas: Any, numpy: Any) -> frozenset[type]:
    found: set[type] = set(numpy.sctypeDict.values()) if hasattr(numpy, "sctypeDict") else set()
    for name in ("Timestamp", "Timedelta", "Period", "Interval"):
        if hasattr(pandas, name):
            found.add(getattr(pandas, name))
    return frozenset(found | {type(getattr(pandas, name)) for name in ("NaT", "NA") if hasattr(pandas, name)})
