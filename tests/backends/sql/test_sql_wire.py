"""Frames go to the process of SQL and come back as they were; an answer of a stranger is read or refused."""

from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from reyn_jupyter.backends.sql.sql_wire import AnswerError, read_answer, read_frame, write_answer, write_frame

FRAME = pd.DataFrame({
    "n": [1, 2],
    "x": [1.5, float("nan")],
    "word": ["ä\U0001f600", ""],
    "gaps": pd.Series(["a", None], dtype=object),
    "nul": ["a\0b", "c"],
    "nothing": pd.Series([None, None], dtype=object),
    "day": pd.to_datetime(["2024-02-03", None]),
    "zoned": pd.to_datetime(["2024-02-03", None]).tz_localize("Europe/Oslo"),
    "span": pd.to_timedelta([1, None], unit="s"),
    "kind": pd.Categorical(["b", None], categories=["a", "b"]),
    "flag": [True, False],
})  # fmt: skip
NESTED = [
    [1, [2.5, None]], {"a": {"b": [b"x"]}}, {1: "x"}, Decimal("1.10"), date(2024, 2, 3), time(1, 2), 2**90,
    datetime(2024, 2, 3, 4, tzinfo=UTC), timedelta(days=-1, microseconds=7), UUID(int=5), b"\xff", float("inf"), None,
    pd.Timestamp("2024-02-03"), "text", True,
]  # fmt: skip


def test_a_frame_is_the_same_on_the_other_side() -> None:
    wide = FRAME.assign(
        nested=pd.Series([[1, {"a": b"x"}], None], dtype=object), whole=pd.array([1, None], "Int64")
    )
    with tempfile.TemporaryFile() as file:
        place = write_frame(wide, file, lambda: None)
        file.seek(0)
        found = read_frame(memoryview(file.read()), place)
    texts = ["word"]  # texts of pandas' own become objects, which SQL sees as the same
    pd.testing.assert_frame_equal(found.drop(columns=texts), wide.drop(columns=texts), check_dtype=False)
    assert found["word"].tolist() == FRAME["word"].tolist()


def test_a_long_column_of_texts_comes_in_pieces() -> None:
    cells = [str(number) for number in range(300_000)]
    long = pd.DataFrame(
        {"a": pd.Series(cells, dtype=object), "b": pd.Series([None, *cells[1:]], dtype=object)}
    )
    with tempfile.TemporaryFile() as file:
        calls: list[None] = []
        place = write_frame(long, file, lambda: calls.append(None))
        file.seek(0)
        found = read_frame(memoryview(file.read()), place)
    assert found["a"].tolist() == cells and found["b"].tolist() == [None, *cells[1:]]
    assert len(calls) == 4


@pytest.mark.parametrize("rows", [0, 2])
def test_an_answer_is_the_same_on_the_other_side(rows: int) -> None:
    frame = FRAME.iloc[:rows]
    columns, pieces = write_answer(frame)
    pd.testing.assert_frame_equal(read_answer(columns, rows, b"".join(pieces)), frame)


def test_cells_of_every_kind_come_back() -> None:
    frame = pd.DataFrame({"a": pd.Series(NESTED, dtype=object)})
    columns, pieces = write_answer(frame)
    found = read_answer(columns, len(frame), b"".join(pieces))["a"].tolist()
    assert found == NESTED
    assert list(map(type, found)) == list(map(type, NESTED))


def lie(**changes: Any) -> tuple[Any, bytes]:
    columns, pieces = write_answer(pd.DataFrame({"a": [1, 2]}))
    return [columns[0] | changes], b"".join(pieces)


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        ({"sizes": [17]}, None),
        ({"sizes": [-1]}, None),
        ({"sizes": ["16"]}, None),
        ({"sizes": [8]}, None),
        ({"sizes": []}, None),
        ({"dtype": "O"}, None),
        ({"dtype": "|O8"}, None),
        ({"dtype": "<f3"}, None),
        ({"dtype": "i8, O"}, None),
        ({"dtype": 7}, None),
        ({"kind": "code"}, None),
        ({"kind": "zoned", "dtype": "datetime64[ns, ../../etc/passwd]"}, None),
        ({"kind": "zoned", "dtype": "datetime64[ns, Nowhere/Never]"}, None),
        ({"kind": "category", "of": {"kind": "fixed", "dtype": "<i8", "count": 1}, "sizes": [8, 8]}, None),
        ({"kind": "texts", "dtype": "str", "sizes": [1, 16, 2]}, b"x" + np.array([5, 1]).tobytes() + b"\0\0"),
        ({"kind": "texts", "dtype": "str", "sizes": [1, 16, 2]}, b"x" + np.array([-1, 1]).tobytes() + b"\0\0"),
        ({"kind": "texts", "dtype": "str", "sizes": [1, 16, 2]}, b"\xff" + np.array([1, 1]).tobytes() + b"\0\0"),
        ({"kind": "marked", "dtype": "object", "sizes": [3]}, b"[1]"),
        ({"kind": "marked", "dtype": "object", "sizes": [9]}, b"not json!"),
        ({"kind": "marked", "dtype": "object", "sizes": [17]}, b'[{"eval":"x"},1]\n'),
        ({"kind": "marked", "dtype": "object", "sizes": [13]}, b'[{"a":1,"b"}]'),
        ({"kind": "marked", "dtype": "object", "sizes": [200_000]}, b"[" * 200_000),
    ],
)  # fmt: skip
def test_an_answer_that_lies_is_refused(changes: dict[str, Any], body: bytes | None) -> None:
    columns, sound = lie(**changes)
    with pytest.raises(AnswerError):
        read_answer(columns, 2, sound if body is None else body)


@pytest.mark.parametrize(
    ("columns", "rows"), [(7, 2), ([{}], 2), ([], "x"), ([7], 2), (lie()[0], -1), (lie()[0], 10**18)]
)
def test_a_header_that_lies_is_refused(columns: Any, rows: Any) -> None:
    with pytest.raises(AnswerError):
        read_answer(columns, rows, lie()[1])
