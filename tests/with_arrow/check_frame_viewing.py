"""Tables of polars and Arrow in the grid: every kind of column, with nothing lost on the way."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.notebook.errors import ReynError

LARGE = 2**63 + 5
DAY, MOMENT = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC)


def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "whole": [2**53 + 1, None, 3],
            "large": pl.Series([LARGE, 1, None], dtype=pl.UInt64),
            "text": ["a", None, "ü\n<b>"],
            "day": [DAY, None, DAY],
            "moment": [MOMENT] * 3,
            "kind": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
            "numbers": [[1, 2], [], None],
            "fields": [{"a": 1}, {"a": 2}, None],
            "price": [decimal.Decimal("1.10")] * 3,
            "done": [True, None, False],
            "took": [dt.timedelta(seconds=5)] * 3,
            "raw": [b"a", b"\xff", None],
            "nothing": pl.Series([None] * 3),
        }
    )


@pytest.mark.parametrize("kind", ["polars", "arrow", "batch"])
def test_every_kind_of_column_comes_as_it_is(kind: str) -> None:
    polars = table()
    arrow = polars.to_arrow()
    given: Any = {"polars": polars, "arrow": arrow, "batch": arrow.to_batches()[0]}[kind]
    frame = reyn.view(given).frame
    assert list(frame.columns) == polars.columns and len(frame) == 3
    assert frame["whole"].tolist()[::2] == [2**53 + 1, 3] and frame["whole"].isna().tolist()[1]
    assert frame["large"].tolist()[:2] == [LARGE, 1]
    assert frame["text"].tolist()[::2] == ["a", "ü\n<b>"]
    assert frame["day"].tolist()[0] == DAY and frame["moment"].tolist()[0] == MOMENT
    assert list(frame["numbers"][0]) == [1, 2] and frame["fields"][1] == {"a": 2}
    assert frame["price"][0] == decimal.Decimal("1.10") and frame["took"][0] == dt.timedelta(seconds=5)
    assert frame["done"].tolist() == [True, None, False] and frame["raw"][1] == b"\xff"
    assert frame["nothing"].isna().all()


def test_a_column_alone_no_rows_and_equal_names() -> None:
    assert reyn.view(table()["whole"]).frame.shape == (3, 1)
    assert reyn.view(table().head(0)).frame.shape == (0, 13)
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert reyn.view(twice).frame.to_numpy().tolist() == [[1, 2]]


def test_a_view_does_not_follow_what_becomes_of_the_table() -> None:
    rows = table()
    view = reyn.view(rows)
    rows[0, "whole"] = 7
    assert view.frame["whole"].tolist()[0] == 2**53 + 1


def test_a_query_that_is_not_run_yet_says_what_to_do() -> None:
    with pytest.raises(ReynError, match=r"no table yet.*collect"):
        reyn.view(table().lazy())
