"""The figures of one column: how many, how spread, which values most.

Invariant: figures are of the rows that the filters leave. The number of distinct values is counted up to a million
values and estimated above, and says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.table.column_values import plain_of, text_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

EXACT = 1_000_000
TOP = 5
BINS = 20
_SAMPLED = 64  # above EXACT, values are counted whose hash is a multiple of this


@dataclass(frozen=True)
class ColumnStats:
    """Attributes:
    distinct: None where the values cannot be told apart by hashing.
    marks: labelled values to show: the least, quartiles, the greatest, the mean.
    top: the most frequent values, each with how often it stands there.
    bins: how many values fall in each of equally wide parts between `low` and `high`.
    edges: where these parts begin, and where the last one ends.
    """

    count: int
    missing: int
    distinct: int | None
    exact: bool
    marks: tuple[tuple[str, Any], ...] = ()
    top: tuple[tuple[Any, int], ...] = ()
    bins: tuple[int, ...] = ()
    low: Any = None
    high: Any = None
    edges: tuple[Any, ...] = ()


def figures_of(series: pd.Series) -> ColumnStats:
    import numpy as np
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy()
        return _frequent(codes[codes >= 0], int((codes < 0).sum()), list(series.cat.categories))
    plain = plain_of(series)
    gone = np.zeros(len(series), dtype=bool) if plain.missing is None else plain.missing
    values = plain.values[~gone]
    missing = int(gone.sum())
    if plain.kind == "number" and values.dtype.kind != "c":
        return _spread(values, missing, lambda item: item)
    if plain.kind in ("moment", "span"):
        kept = series[~gone]

        def back(item: Any) -> Any:
            made = pd.Series(np.array([int(item)], dtype=np.int64).view(f"{kept.dtype.kind}8[{_unit(kept)}]"))
            zone = getattr(kept.dtype, "tz", None)
            return (
                made.dt.tz_localize("UTC").dt.tz_convert(zone).iloc[0] if zone is not None else made.iloc[0]
            )

        return _spread(values, missing, back, mean=False)
    if plain.kind == "object":
        values = np.array([text_of(value) for value in values.tolist()] + [""], dtype=object)[:-1]
    codes, distinct = pd.factorize(values)
    return _frequent(codes, missing, list(distinct))


def _unit(series: pd.Series) -> str:
    return str(getattr(series.dtype, "unit", None) or np_unit(series.dtype))


def np_unit(dtype: Any) -> str:
    import numpy as np

    return str(np.datetime_data(dtype)[0])


def _distinct(values: NDArray[Any]) -> tuple[int, bool]:
    import numpy as np
    import pandas as pd

    if len(values) <= EXACT:
        return len(pd.unique(values)), True
    hashed = pd.util.hash_array(values)
    return len(np.unique(hashed[hashed % np.uint64(_SAMPLED) == 0])) * _SAMPLED, False


def _spread(values: NDArray[Any], missing: int, shown: Any, mean: bool = True) -> ColumnStats:
    """Numbers and what counts like them."""
    import numpy as np

    distinct, exact = _distinct(values)
    if not len(values):
        return ColumnStats(0, missing, 0, True)
    # By the lower of two neighbours, so that integers past 2**53 and moments stay what they are.
    quarters = np.quantile(values, [0.25, 0.5, 0.75], method="lower")
    marks: list[tuple[str, Any]] = [
        ("min", shown(values.min())),
        ("25 %", shown(quarters[0])),
        ("median", shown(quarters[1])),
        ("75 %", shown(quarters[2])),
        ("max", shown(values.max())),
    ]
    if mean:
        with np.errstate(invalid="ignore", over="ignore"):
            marks.append(("mean", float(values.mean(dtype=np.float64))))
    finite = values[np.isfinite(values)]
    bins: tuple[int, ...] = ()
    edges: tuple[Any, ...] = ()
    if len(finite) and finite.min() < finite.max():
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = float(finite.min()), float(finite.max())
            if np.isfinite(high - low) and high > low:
                counts, places = np.histogram(finite.astype(np.float64), BINS, (low, high))
                bins = tuple(counts.tolist())
                edges = tuple(shown(place) for place in places.tolist())
    ends: tuple[Any, Any] = (shown(finite.min()), shown(finite.max())) if bins else (None, None)
    return ColumnStats(len(values), missing, distinct, exact, tuple(marks), (), bins, ends[0], ends[1], edges)


def _frequent(codes: NDArray[Any], missing: int, names: list[Any]) -> ColumnStats:
    import numpy as np

    counts = np.bincount(codes, minlength=len(names)) if len(codes) else np.zeros(len(names), dtype=np.int64)
    best = np.argsort(-counts, kind="stable")[:TOP]
    top = tuple((names[place], int(counts[place])) for place in best.tolist() if counts[place])
    return ColumnStats(len(codes), missing, int((counts > 0).sum()), True, (), top)
