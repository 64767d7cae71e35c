"""SQL over columns that pandas keeps in Arrow, and over Parquet files of others."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

import reyn_jupyter as reyn

MOMENT = pd.Timestamp("2024-02-03 04:05:06").to_pydatetime()
ZONED = MOMENT.replace(tzinfo=dt.UTC)
COLUMNS: list[tuple[Any, list[Any]]] = [
    *((kind, [1, None, 100]) for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    )),
    *((kind, [1.5, None, float("inf")]) for kind in (pa.float16(), pa.float32(), pa.float64())),
    (pa.bool_(), [True, None]), (pa.string(), ["a", None, ""]), (pa.large_string(), ["a", None]),
    (pa.string_view(), ["a", None]), (pa.binary(), [b"\xff", None]), (pa.date32(), [dt.date(2024, 2, 3), None]),
    *((pa.timestamp(unit), [MOMENT, None]) for unit in ("s", "ms", "us", "ns")),
    *((pa.timestamp(unit, "Europe/Oslo"), [ZONED, None]) for unit in ("s", "ms", "us", "ns")),
    *((pa.duration(unit), [dt.timedelta(seconds=5), None]) for unit in ("s", "ms", "us", "ns")),
    (pa.time64("us"), [dt.time(1, 2, 3, 4), None]), (pa.decimal128(38, 2), [Decimal("1.10"), None]),
    (pa.null(), [None, None]), (pa.list_(pa.int64()), [[1, None], None]),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": None}, None]),
]  # fmt: skip


def test_columns_of_arrow_are_read_as_they_are(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with closing(reyn.Session(tmp_path, namespace=names, store="memory")) as session:
        for kind, full in COLUMNS:
            for values in (full, [value for value in full if value is not None], [None, None], []):
                names["f"] = pd.DataFrame({"x": pd.array(pa.array(values, kind), dtype=pd.ArrowDtype(kind))})
                result = session.invoke_action("table__query", {"sql": "FROM f", "sources": {"f": "f"}})
                found = _cells(result.df)
                assert found == values, kind
        names["f"] = pd.DataFrame(
            {"x": pd.Series(["b", None, "a"], dtype="string[pyarrow]").astype("category")}
        )
        assert _cells(session.invoke_action("table__query", {"sql": "FROM f", "sources": {"f": "f"}}).df) == [
            "b",
            None,
            "a",
        ]


def test_columns_of_a_parquet_file_are_told_apart(tmp_path: Path) -> None:
    part = pa.array([{"a": 1, "l": [1]}])
    table = pa.table(
        [pa.array([1]), part, pa.array([2]), pa.array([3])], names=["Region", "s", "region", "region_1"]
    )
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet")
    with closing(reyn.Session(tmp_path, store="memory")) as session:
        result = session.invoke_action("table__query", {"sql": "FROM t", "sources": {"t": "c.parquet"}})
        assert list(result.df) == ["Region_0", "s", "region_2", "region_1"]
        assert "region_2 is the column 'region' in t" in result.payload
        refused = session.invoke_action(
            "table__query", {"sql": "SELECT region FROM t", "sources": {"t": "c.parquet"}}
        )
        assert "Region_0 is the column 'Region'" in str(refused.error)


def _cells(frame: pd.DataFrame) -> list[Any]:
    return frame["x"].astype(object).where(frame["x"].notna(), None).tolist()
