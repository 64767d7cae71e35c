"""Frames as records and back: dtypes, index, labels, and everything odd that a notebook holds."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from reyn_jupyter.outputs.blob import open_blob
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.outputs.convert import to_content
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.inspect import inspect

if TYPE_CHECKING:
    from pathlib import Path

    from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore

TUPLES = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None])
FRAMES: dict[str, pd.DataFrame] = {
    "duplicate and number columns": pd.DataFrame([[1, 2, 3]], columns=["a", "a", 5]),
    "a column named None": pd.DataFrame([[1, 2]], columns=[None, "a"]),
    "MultiIndex columns": pd.DataFrame([[1, 2]], columns=TUPLES),
    "MultiIndex rows": pd.DataFrame({"v": [1, 2]}, index=TUPLES),
    "index with repeated labels": pd.DataFrame({"v": [1, 2, 3]}, index=pd.Index(["x", "y", "x"], name="k")),
    "index named like a column": pd.DataFrame({"v": [1]}, index=pd.Index(["x"], name="v")),
    "dates as index": pd.DataFrame({"v": [1, 2]}, index=pd.date_range("2024-01-01", periods=2, name="day")),
    "range index with a step": pd.DataFrame({"v": [1, 2, 3]}, index=range(3, 9, 2)),
    "NaN and infinities": pd.DataFrame({"f": [1.5, np.nan, np.inf, -np.inf]}),
    "big integers": pd.DataFrame({"o": [2**70, None, float("nan"), -1]}, dtype=object),
    "unsigned and short numbers": pd.DataFrame({"u": np.array([2**63 + 1], "uint64"), "h": np.array([0.1], "float16")}),
    "mixed objects": pd.DataFrame({"o": [1, "x", [1, {"a": 2}], None, True, 1.5]}, dtype=object),
    "dates of Python": pd.DataFrame({"o": [datetime.date(2024, 1, 1), None]}, dtype=object),
    "decimals": pd.DataFrame({"o": [Decimal("1.10"), Decimal(2)]}),
    "timestamps": pd.DataFrame({"t": [pd.Timestamp(0), None, pd.Timestamp("2024-05-05T10:00:00.123456")]}),
    "time zones": pd.DataFrame({"t": pd.to_datetime(["2024-01-01", "2024-07-01"]).tz_localize("Europe/Berlin")}),
    "durations": pd.DataFrame({"t": pd.to_timedelta(["1 days", "2h", None])}),
    "periods": pd.DataFrame({"t": pd.period_range("2024-01", periods=3, freq="M")}),
    "ordered categories": pd.DataFrame({"c": pd.Categorical(["a", None], categories=["b", "a"], ordered=True)}),
    "cut into intervals": pd.DataFrame({"c": pd.cut([1, 2, 5, 9], 3)}),
    "intervals": pd.DataFrame({"c": pd.arrays.IntervalArray.from_breaks([0, 1, 2])}),
    "nullable": pd.DataFrame({"i": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")}),
    "nullable text": pd.DataFrame({"s": pd.array(["a", None], "string"), "f": pd.array([1.5, None], "Float64")}),
    "complex": pd.DataFrame({"z": [1 + 2j, 0j]}),
    "sparse": pd.DataFrame({"s": pd.arrays.SparseArray([0, 0, 1])}),
    "no rows": pd.DataFrame({"a": pd.Series([], dtype="int8"), "b": pd.Series([], dtype="str")}),
    "no columns": pd.DataFrame(index=range(3)),
    "nothing at all": pd.DataFrame(),
    "described": pd.DataFrame({"g": list("aab"), "x": [1, 2, 3]}).describe(),
    "grouped twice": pd.DataFrame({"g": list("aab"), "x": [1, 2, 3]}).groupby("g").agg({"x": ["mean", "sum"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
async def test_a_stored_frame_comes_back_as_it_was(store: LocalBlobStore, name: str) -> None:
    frame = FRAMES[name]
    content = to_content(frame)
    blob = open_blob(store, await store.store(content))
    pd.testing.assert_frame_equal(blob.df, frame)
    json.loads(blob.text)


async def test_the_header_has_the_shape_and_the_schema_the_dtypes(store: LocalBlobStore) -> None:
    frame = pd.DataFrame({"region": ["n", "s"] * 50, "amount": np.arange(100) / 2})
    delivered = await deliver(frame, store=store, action="table__query")
    assert delivered.text == (
        f"[blob:{delivered.blob}] json_array | 100 entries | 100×2\n"
        f"── schema ──\nregion: {frame['region'].dtype}\namount: float64\n"
        '── head ──\n{"region":"n","amount":0.0}\n{"region":"s","amount":0.5}'
    )
    assert (await inspect(store, str(delivered.blob))).startswith("json_array | 100 entries | 100×2 | ")


async def test_missing_numbers_are_null_in_the_records(store: LocalBlobStore) -> None:
    assert to_content(pd.DataFrame({"f": [np.nan, np.inf, 1]})).value == [
        {"f": None},
        {"f": None},
        {"f": 1.0},
    ]  # type: ignore[union-attr]


def test_series_and_arrays_are_records_too() -> None:
    mean = pd.DataFrame({"region": list("aab"), "x": [1, 2, 3]}).groupby("region").x.mean()
    assert to_content(mean).value == [{"region": "a", "x": 1.5}, {"region": "b", "x": 3.0}]  # type: ignore[union-attr]
    assert to_content(np.array([[1, 2], [3, 4]])).value == [{"0": 1, "1": 2}, {"0": 3, "1": 4}]  # type: ignore[union-attr]
    assert to_content(np.arange(2)).value == [{"0": 0}, {"0": 1}]  # type: ignore[union-attr]


def test_user_objects_in_cells_are_named_and_not_printed() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("repr was called")

    assert to_content(pd.DataFrame({"o": [Loud(), "x"]})).value == [{"o": "Loud"}, {"o": "x"}]  # type: ignore[union-attr]


@pytest.mark.skipif(
    int(pd.__version__.partition(".")[0]) < 3,
    reason="its texts are objects, and frames with those get no sidecar",
)
async def test_a_large_frame_is_streamed_and_gets_a_parquet_sidecar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reyn_jupyter.outputs.blobs.file_store.PARQUET_FROM", 1_000_000)
    store = FsBlobStore(tmp_path / "blobs")
    frame = pd.DataFrame(
        {
            "id": np.arange(50_000),
            "x": np.where(np.arange(50_000) % 7 == 0, np.inf, np.arange(50_000) / 3),
            "name": [None if number % 5 == 0 else f"n{number}" for number in range(50_000)],
            "day": pd.date_range("2024-01-01", periods=50_000, freq="s").as_unit("us"),
            "flag": np.arange(50_000) % 2 == 0,
        }
    )
    content: Any = to_content(frame)
    assert not isinstance(content.value, list)
    blob = open_blob(store, await store.store(content))
    assert (blob.entries, blob.shape, store.sidecar(blob.id) is not None) == (50_000, (50_000, 5), True)
    pd.testing.assert_frame_equal(blob.df, frame)
    store.sidecar(blob.id).unlink()  # type: ignore[union-attr]
    pd.testing.assert_frame_equal(blob.df, frame)
    assert blob.head_rows(1)[0]["name"] is None


async def test_a_plain_array_of_objects_is_a_frame_too(store: LocalBlobStore) -> None:
    blob = open_blob(store, await store.store(to_content([{"a": 1, "b": float("inf")}, {"a": 2}, 5])))
    assert list(blob.df.columns) == ["a", "b", "value"]
    assert blob.df.b[0] == np.inf
