"""Which types are known: those whose methods are Python's, numpy's and pandas' own.

Invariant: a type is known by identity. A subclass is the person's own class, whose properties could do anything;
asking here imports nothing and calls nothing of it.
"""

from __future__ import annotations

import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID

from reyn_jupyter.outputs.convert import type_name

_LONGEST_DTYPE = 200  # characters

_SCALARS = frozenset({
    type(None), bool, int, float, complex, Decimal, date, datetime, time, timedelta, UUID,
    PurePosixPath, PureWindowsPath, PosixPath, WindowsPath,
})  # fmt: skip


def is_exactly(value: object, kinds: tuple[type, ...]) -> bool:
    return type(value) in kinds


def is_frame_like(value: object) -> bool:
    """Whether it is exactly a DataFrame, Series or ndarray."""
    return (
        is_loaded_type(value, "pandas", "DataFrame")
        or is_loaded_type(value, "pandas", "Series")
        or is_loaded_type(value, "numpy", "ndarray")
    )


def is_loaded_type(value: object, module: str, name: str) -> bool:
    """By identity: a subclass is the person's own class, whose properties could do anything."""
    loaded = sys.modules.get(module)
    return loaded is not None and type(value) is loaded.__dict__.get(name)


def is_known_dtype(dtype: object) -> bool:
    """Whether a dtype is numpy's or pandas' own; an extension type of the person's is code."""
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
