"""Read the values of a column, whatever pandas keeps them in: numbers, moments, texts, or objects of any kind.

Invariant: `plain_of` tells missing values apart from all others by one rule for every dtype, so that order, matches
and figures agree on what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.outputs.frames.restore import untag
from reyn_jupyter.support.encoding import compact

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

Kind = Literal["number", "bool", "moment", "span", "text", "object"]


class _Absent:
    """The value in a column of a record that has no such key."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


@dataclass(frozen=True)
class ColumnValues:
    """The values of a column as one array.

    Attributes:
        kind: "moment" and "span" are integers since the epoch, or of duration; "object" holds anything.
        values: what stands at a missing place means nothing.
        missing: None where nothing is missing.
    """

    kind: Kind
    values: NDArray[Any]
    missing: NDArray[np.bool_] | None


def plain_of(series: pd.Series) -> ColumnValues:
    """The values of a column; a categorical column gives the values of its categories."""
    import numpy as np
    import pandas as pd

    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        series = pd.Series(series.astype(object))
        dtype = series.dtype
    missing = series.isna().to_numpy(dtype=bool)
    gone = missing if missing.any() else None
    if isinstance(dtype, np.dtype) and dtype.kind in "iufc":
        return ColumnValues("number", series.to_numpy(), gone)
    if isinstance(dtype, np.dtype) and dtype.kind == "b":
        return ColumnValues("bool", series.to_numpy(), gone)
    if dtype.kind in "mM" and hasattr(series.array, "asi8"):
        return ColumnValues("moment" if dtype.kind == "M" else "span", np.asarray(series.array.asi8), gone)
    if isinstance(dtype, pd.PeriodDtype):
        return ColumnValues("object", np.asarray(series.astype(object)), gone)
    if isinstance(dtype, pd.StringDtype):
        return ColumnValues("text", series.to_numpy(dtype=object), gone)
    if pd.api.types.is_extension_array_dtype(dtype) and dtype.kind in "iufb":
        fill: Any = False if dtype.kind == "b" else 0
        values = series.to_numpy(dtype=dtype.numpy_dtype, na_value=fill)
        return ColumnValues("bool" if dtype.kind == "b" else "number", values, gone)
    return _objects(series.to_numpy(dtype=object))


def _objects(values: NDArray[Any]) -> ColumnValues:
    """A column of objects: as numbers or texts where it holds nothing else."""
    import numpy as np

    listed = values.tolist()
    kinds = set(map(type, listed))
    if dict in kinds or _Absent in kinds:
        listed = [None if value is ABSENT else untag(value) for value in listed]
        kinds = set(map(type, listed))
        values = _boxed(listed)
    gone = None
    if kinds - {str, int, bool}:
        flags = np.fromiter(map(is_missing, listed), dtype=bool, count=len(listed))
        gone = flags if flags.any() else None
        kinds = {type(value) for value, missing in zip(listed, flags, strict=True) if not missing}
    if kinds == {str}:
        return ColumnValues("text", values, gone)
    if kinds in ({int}, {bool}) or kinds == {float}:
        kind = next(iter(kinds))
        filled = [kind() if is_missing(value) else value for value in listed] if gone is not None else listed
        try:
            dtype = {int: "int64", bool: "bool", float: "float64"}[kind]
            return ColumnValues("bool" if kind is bool else "number", np.array(filled, dtype=dtype), gone)
        except OverflowError:
            pass
    return ColumnValues("object", values, gone)


def _boxed(listed: list[Any]) -> NDArray[Any]:
    import numpy as np

    boxed = np.empty(len(listed), dtype=object)
    boxed[:] = listed
    return boxed


def is_missing(value: object) -> bool:
    """None, NaN of any kind, NaT, <NA>, and a key that its record does not have."""
    if value is None or value is ABSENT:
        return True
    kind = type(value)
    if kind is str or kind is int or kind is bool or kind is list or kind is dict:
        return False
    if isinstance(value, Decimal):
        return Decimal.is_nan(value)
    if kind.__name__ in ("NaTType", "NAType"):
        return True
    if kind is float or kind is complex or hasattr(kind, "dtype"):
        return bool(value != value)
    return False


def text_of(value: object) -> str:
    """The text that filters look into: whole numbers without decimals, nested values as JSON."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return str(value)
    if hasattr(type(value), "dtype") and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value == value and abs(value) < 1e15 and value == int(value):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return hex(value) if value.bit_length() > 10_000 else str(value)
    if type(value).__name__ in ("Timestamp", "datetime"):
        return str(value).removesuffix(" 00:00:00")
    converted = to_json(value)
    return converted if isinstance(converted, str) else compact(converted)
