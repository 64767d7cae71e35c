"""Find the rows that match a filter on one column.

Invariant: a missing value matches only "missing"; a comparison with what the column cannot hold raises RowFilterError,
it is never silently empty. Texts are compared as they are, but "contains" ignores case.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, get_args

from reyn_jupyter.outputs.table.column_values import ColumnValues, plain_of, text_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

Op = Literal["contains", "equals", "differs", "less", "most", "greater", "least", "missing", "present"]
OPS: tuple[str, ...] = get_args(Op)
_WHOLE = re.compile(r"[+-]?\d{1,4000}")


class RowFilterError(ValueError):
    """The filter makes no sense for the column; the message says what would."""


def mask_of(series: pd.Series, op: str, value: str = "") -> NDArray[np.bool_]:
    """For each row whether it matches."""
    import numpy as np
    import pandas as pd

    if op not in OPS:
        raise RowFilterError(f"{op!r} is no comparison; there are {', '.join(OPS)}")
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _of_categories(series, op, value)
    plain = plain_of(series)
    missing = np.zeros(len(series), dtype=bool) if plain.missing is None else plain.missing
    if op in ("missing", "present"):
        return missing if op == "missing" else ~missing
    if op == "contains":
        return _contains(series, plain, value) & ~missing
    found: NDArray[np.bool_] = _compared(series, plain, op, value) & ~missing
    return found


def _of_categories(series: pd.Series, op: str, value: str) -> NDArray[np.bool_]:
    """Each category is looked at once."""
    import numpy as np
    import pandas as pd

    codes = series.cat.codes.to_numpy()
    if op in ("missing", "present"):
        return codes < 0 if op == "missing" else codes >= 0
    found = mask_of(pd.Series(series.cat.categories), op, value)
    return np.append(found, False)[codes]


def _contains(series: pd.Series, plain: ColumnValues, value: str) -> NDArray[np.bool_]:
    import numpy as np
    import pandas as pd

    wanted = value.upper()
    if plain.kind == "text":
        # Missing places hold NaN or None; their text is never looked into.
        texts = (
            plain.values.tolist()
            if plain.missing is None
            else np.where(plain.missing, "", plain.values).tolist()
        )
        return np.fromiter((wanted in text.upper() for text in texts), dtype=bool, count=len(texts))
    if plain.kind == "object":
        listed = plain.values.tolist()
        return np.fromiter(
            (wanted in text_of(item).upper() for item in listed), dtype=bool, count=len(listed)
        )
    codes, distinct = pd.factorize(plain.values)
    shown: list[Any] = distinct.tolist()
    if plain.kind in ("moment", "span"):
        first = np.zeros(len(distinct), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        shown = series.iloc[first].tolist()
    found = np.fromiter((wanted in text_of(item).upper() for item in shown), dtype=bool, count=len(shown))
    return found[codes] if len(found) else np.zeros(len(codes), dtype=bool)


def _compared(series: pd.Series, plain: ColumnValues, op: str, value: str) -> Any:
    import numpy as np

    if plain.kind == "object":
        return _objects(plain, op, value)
    if plain.kind == "text":
        values = plain.values if plain.missing is None else np.where(plain.missing, "", plain.values)
        return _apply(values, op, np.array(value, dtype=object))  # a bare text would end at its last NULs
    if plain.kind == "bool":
        if value.strip().lower() not in ("true", "false"):
            raise RowFilterError(f"{value[:40]!r} is neither true nor false, which is what the column holds")
        return _apply(plain.values, op, value.strip().lower() == "true")
    if plain.kind == "number":
        return _apply(plain.values, op, number(value))
    return np.asarray(_apply(series, op, moment(value, series)), dtype=bool)


def number(value: str) -> int | float:
    text = value.strip()
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        raise RowFilterError(f"{value[:40]!r} is no number; the column holds numbers") from None


def moment(value: str, series: pd.Series) -> Any:
    """A moment in the column's own time zone, or a duration."""
    import pandas as pd

    spans = series.dtype.kind == "m"
    try:
        if spans:
            return pd.Timedelta(value.strip())
        found = pd.Timestamp(value.strip())
        zone = getattr(series.dtype, "tz", None)
        if zone is not None and found.tzinfo is None:
            return found.tz_localize(zone)
        return found.tz_convert(None) if zone is None and found.tzinfo is not None else found
    except (ValueError, OverflowError):
        said = "a duration such as 1 day 02:00" if spans else "a date such as 2024-05-31 or 2024-05-31 14:00"
        raise RowFilterError(f"{value[:40]!r} is not understood; write {said}") from None


def _apply(values: Any, op: str, value: Any) -> Any:
    match op:
        case "equals":
            return values == value
        case "differs":
            return values != value
        case "less":
            return values < value
        case "most":
            return values <= value
        case "greater":
            return values > value
        case _:
            return values >= value


def _objects(plain: ColumnValues, op: str, value: str) -> NDArray[np.bool_]:
    """Numbers are compared as numbers where the value is one; all other things by their text."""
    import numpy as np

    try:
        wanted: int | float | None = number(value)
    except RowFilterError:
        wanted = None

    def test(item: Any) -> bool:
        if wanted is not None and type(item) in (int, float):
            return bool(_apply(item, op, wanted))
        return bool(_apply(text_of(item), op, value))

    listed = plain.values.tolist()
    gone = plain.missing
    return np.fromiter(
        (not (gone is not None and gone[place]) and test(item) for place, item in enumerate(listed)),
        dtype=bool,
        count=len(listed),
    )
