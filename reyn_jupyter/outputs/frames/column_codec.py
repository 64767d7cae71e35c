"""The cells of one column as JSON, and what JSON cannot say about them.

Invariant: a cell that is missing, NaN or infinite is null; what tells those apart again is noted in the column's
description, so that `restore` gives back the very values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.content import JsonValue
from reyn_jupyter.outputs.convert import number_tag, to_json

if TYPE_CHECKING:
    import pandas as pd

UNIFORM = (
    "date",
    "datetime",
    "time",
    "Decimal",
    "UUID",
    "Timestamp",
    "bytes",
)  # object columns of one of these come back
_INFINITIES = (("Infinity", float("inf")), ("-Infinity", float("-inf")))


def note_specials(spec: dict[str, Any], start: int, specials: dict[str, list[int]], kinds: set[str]) -> None:
    """Add to a column's description what `encode_cells` found in the rows from `start` on."""
    for name, positions in specials.items():
        spec.setdefault("specials", {}).setdefault(name, []).extend(
            start + position for position in positions
        )
    if kinds:
        known = spec.get("items")
        only = next(iter(kinds)) if len(kinds) == 1 else "mixed"
        spec["items"] = only if known in (None, only) else "mixed"


def describe(series: pd.Series[Any]) -> dict[str, Any]:
    import pandas as pd

    dtype: Any = series.dtype
    spec: dict[str, Any] = {"dtype": str(dtype)}
    if isinstance(dtype, pd.CategoricalDtype):
        categories = pd.Series(dtype.categories)
        inner = describe(categories)
        values, specials, kinds = encode_cells(categories, inner)
        note_specials(inner, 0, specials, kinds)
        spec = {
            "dtype": "category",
            "ordered": bool(dtype.ordered),
            "categories": {**inner, "values": values},
        }
    elif isinstance(dtype, pd.IntervalDtype):
        spec["closed"] = str(dtype.closed)
    return spec


def encode_cells(
    part: pd.Series[Any], spec: dict[str, Any]
) -> tuple[list[JsonValue], dict[str, list[int]], set[str]]:
    """One column's cells as JSON, the positions of numbers that became null, and the kinds of an object column."""
    import numpy as np
    import pandas as pd

    dtype: Any = part.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        shown = spec["categories"]["values"]
        return [shown[code] if code >= 0 else None for code in part.cat.codes], {}, set()
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        return _encode_objects(part.tolist())
    if dtype.kind == "f" and isinstance(dtype, np.dtype):
        values = part.to_numpy()
        finite = np.isfinite(values).tolist()
        listed = [float(item) if sound else None for item, sound in zip(values.tolist(), finite, strict=True)]
        infinite = {name: np.flatnonzero(values == sign).tolist() for name, sign in _INFINITIES}
        return listed, {name: found for name, found in infinite.items() if found}, set()
    listed = part.tolist()
    if dtype.kind in "biu" and isinstance(dtype, np.dtype):
        return listed, {}, set()
    if isinstance(dtype, pd.IntervalDtype):
        intervals: list[Any] = part.astype(object).tolist()
        return (
            [to_json([i.left, i.right]) if isinstance(i, pd.Interval) else None for i in intervals],
            {},
            set(),
        )
    if dtype.kind == "M":
        return _encode_times(part), {}, set()
    missing = pd.isna(part).to_numpy()
    if dtype.kind == "m" or isinstance(dtype, pd.PeriodDtype) or dtype.kind == "c":
        return [None if gone else str(item) for item, gone in zip(listed, missing, strict=True)], {}, set()
    present: list[Any] = [None if gone else item for item, gone in zip(listed, missing, strict=True)]
    if isinstance(dtype, pd.StringDtype) and max((len(item) for item in present if item), default=0) < 1000:
        return present, {}, set()  # as they are: only a very long text could need another form
    values_found, specials, _ = _encode_objects(present)
    return values_found, specials, set()


def _encode_times(part: pd.Series[Any]) -> list[JsonValue]:
    import numpy as np
    import pandas as pd

    values: Any = part.to_numpy()
    if values.dtype.kind == "M":  # no time zone
        seconds = values.astype("datetime64[s]")
        missing = np.isnat(values)
        if ((seconds == values) | missing).all():  # then numpy writes what isoformat does, many times faster
            texts = np.datetime_as_string(seconds).tolist()
            return [None if gone else text for text, gone in zip(texts, missing.tolist(), strict=True)]
    return [None if item is pd.NaT else item.isoformat() for item in part.tolist()]


def _encode_objects(values: list[Any]) -> tuple[list[JsonValue], dict[str, list[int]], set[str]]:
    """Cells of any type. NaN and infinities become null and are noted, so that they are told from None."""
    encoded: list[JsonValue] = []
    specials: dict[str, list[int]] = {}
    kinds: set[str] = set()
    for position, value in enumerate(values):
        if value is None:
            encoded.append(None)
            continue
        kind = type(value)
        kinds.add(_kind_name(kind))
        if issubclass(kind, float) and not -float("inf") < value < float("inf"):
            specials.setdefault(number_tag(value)["$number"], []).append(position)
            encoded.append(None)
        else:
            encoded.append(to_json(value))
    return encoded, specials, kinds


def _kind_name(kind: type) -> str:
    package = kind.__module__.partition(".")[0]
    known = kind is bytes or package in ("datetime", "decimal", "uuid", "pandas")
    return kind.__name__ if known and kind.__name__ in UNIFORM else "value"
