"""Frames as they really come: odd labels, missing values of every sort, exact integers, objects in cells."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Grid
from reyn_jupyter.notebook.render.dataframe_view import frame_grid
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.outputs.frames import records as stored_frames
from reyn_jupyter.sessions.result_objects import Result
from tests.notebook.render.samples import Reader, blob


def grid(frame: pd.DataFrame) -> Grid:
    return frame_grid(frame, Look(), "result.value")


def column(frame: pd.DataFrame, place: int = 1) -> list[str]:
    """The cell texts of one column; column 0 is the index."""
    return [row[place].text for row in grid(frame).rows]


def objects(*values: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(list(values), dtype=object)})


def test_missing_values_of_every_sort_are_told_apart() -> None:
    assert column(objects(None, float("nan"), pd.NaT, pd.NA, "", "NaN")) == [
        "None",
        "NaN",
        "NaT",
        "<NA>",
        "",
        "NaN",
    ]


def test_integers_keep_all_their_digits() -> None:
    assert column(objects(2**53 + 1, -(2**63), 10**40)) == [
        "9007199254740993",
        "-9223372036854775808",
        str(10**40),
    ]
    assert column(pd.DataFrame({"x": np.array([2**64 - 1], dtype="uint64")})) == [str(2**64 - 1)]


def test_the_floats_of_a_column_line_up() -> None:
    assert column(pd.DataFrame({"x": [1.5, 20.25, -3.0]})) == ["1.50", "20.25", "-3.00"]
    assert column(pd.DataFrame({"x": [1e20, 1e-9, float("inf"), 0.0]})) == ["1e+20", "1e-09", "inf", "0.0"]


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ([Decimal("1.50"), None, Decimal("20.25")], True),
        ([10**20, 5], True),
        ([1, None, 2.5], True),
        (pd.Categorical([1, 2]), True),
        (pd.array([1.25, None], dtype="Float64"), True),
        (["12", "x"], False),
        ([True, False], False),
        ([1, "n/a"], False),
        ([None, None], False),
    ],
)
def test_columns_of_numbers_stand_at_the_right_whatever_holds_them(values: Any, right: bool) -> None:
    frame = pd.DataFrame({"x": values if hasattr(values, "dtype") else pd.Series(values, dtype=object)})
    assert grid(frame).columns[1].right is right
    stored = view(blob(stored_frames.to_structured(frame)))
    [kept] = [block for block in stored.blocks if isinstance(block, Grid)]
    assert kept.columns[-1].right is right


def test_duplicate_and_unnamed_and_non_string_columns_each_keep_their_place() -> None:
    shown = grid(pd.DataFrame([[1, 2, 3, 4]], columns=pd.Index(["a", "a", 7, 2.5], dtype=object)))
    assert [column.name for column in shown.columns] == ["", "a", "a", "7", "2.5"]
    assert [cell.text for cell in shown.rows[0]] == ["0", "1", "2", "3", "4"]


def test_several_levels_of_rows_and_columns_are_all_shown() -> None:
    index = pd.MultiIndex.from_tuples([("north", 2024), ("south", 2025)], names=["region", "year"])
    columns = pd.MultiIndex.from_tuples([("value", "mean"), ("value", "count")])
    shown = grid(pd.DataFrame([[1.5, 2], [3.5, 4]], index=index, columns=columns))
    assert [c.name for c in shown.columns] == ["region", "year", "value / mean", "value / count"]
    assert [c.header for c in shown.columns] == [True, True, False, False]
    assert [cell.text for cell in shown.rows[1]] == ["south", "2025", "3.5", "4"]


def test_ten_thousand_columns_show_the_first_twelve_and_count_the_rest() -> None:
    shown = grid(pd.DataFrame(np.zeros((3, 10_000))))
    assert len(shown.columns) == 13
    assert "12 of 10,000 columns" in shown.more
    assert shown.caption == "3 rows × 10,000 columns"


def test_objects_in_cells_are_named_by_their_type() -> None:
    class Order:
        def __repr__(self) -> str:
            raise AssertionError("repr was called")

    assert column(objects(Order(), [1, Order()], {"a": Order()}, {1, 2}, b"abc", np.int64(5))) == [
        "<Order>", "[1, <Order>]", '{"a": <Order>}', "<set>", "3 bytes", "5",
    ]  # fmt: skip


def test_a_subclass_of_a_library_type_is_not_trusted_to_describe_itself() -> None:
    class Price(Decimal):
        def __str__(self) -> str:
            raise AssertionError("str was called")

    class Day(dt.datetime):
        def time(self) -> Any:
            raise AssertionError("time was called")

    assert column(objects(Price("1.5"), Day(2024, 1, 1))) == ["<Price>", "<Day>"]
    assert column(objects(Decimal("1.50"), dt.date(2024, 2, 29), dt.time(1, 2))) == [
        "1.50",
        "2024-02-29",
        "01:02:00",
    ]


def test_dates_are_short_where_every_one_is_midnight_and_reach_the_edges_of_time() -> None:
    assert column(pd.DataFrame({"x": pd.to_datetime(["2024-01-01", "2024-01-02"])})) == [
        "2024-01-01",
        "2024-01-02",
    ]
    assert (
        column(pd.DataFrame({"x": pd.to_datetime(["2024-01-01 00:00", "2024-01-02 08:30"])}))[0]
        == "2024-01-01 00:00:00"
    )
    edges = ["0001-01-01", "9999-12-31"]
    assert column(objects(*map(dt.datetime.fromisoformat, edges))) == edges
    assert (
        len(column(pd.DataFrame({"x": np.array(["-5000-01-01", "20000-01-01"], dtype="datetime64[s]")}))) == 2
    )


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame(index=range(3)),
        pd.DataFrame({"c": pd.Categorical(["x", None, "y"])}),
        pd.DataFrame({"p": pd.period_range("2024-01", periods=2, freq="M"), "i": pd.interval_range(0, 2)}),
        pd.DataFrame(
            {"t": pd.to_timedelta(["1h", None]), "z": pd.to_datetime(["2024-01-01", None], utc=True)}
        ),
        pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "b": pd.array([True, None], dtype="boolean")}),
        pd.DataFrame({"m": [1, "two", 3.0, None, (4, 5), 1 + 2j]}),
        pd.DataFrame({"\x1b[31m\u202e": ["\n\t\r"]}, index=pd.Index(["<b>"], name="\x00")),
        pd.DataFrame({"s": ["漢字", "e\u0301", "👩\u200d👧"]}),
    ],
    ids=lambda frame: ",".join(map(repr, frame.columns)) or f"{frame.shape}",
)
def test_any_frame_draws_as_html_and_as_text(frame: pd.DataFrame) -> None:
    shown = view(Result("f", "x", frame))
    page = Reader(to_html(shown))
    cells = [tag for tag, _ in page.tags if tag in ("td", "th")]
    assert len(cells) % (min(frame.shape[1], 12) + 1) == 0
    assert "rows" in to_text(shown) or "1 row" in to_text(shown)


def test_the_header_names_the_dtypes_and_has_scopes_for_screen_readers() -> None:
    frame = pd.DataFrame({"a": [1], "b": ["x"]})
    page = Reader(to_html(view(Result("f", "x", frame))))
    scopes = [attributes.get("scope") for tag, attributes in page.tags if tag == "th"]
    assert scopes == ["col", "col", "row"]
    assert "int64" in page.text and str(frame["b"].dtype) in page.text
    assert any(tag == "caption" for tag, _ in page.tags)


def test_a_series_and_an_array_are_grids_too() -> None:
    assert "3 rows × 1 column" in to_text(view(Result("f", "x", pd.Series([1, 2, 3], name="n"))))
    assert "2 rows × 2 columns" in to_text(view(Result("f", "x", np.eye(2))))


def test_a_stored_frame_shows_its_first_rows_dtypes_and_shape_without_being_loaded() -> None:
    frame = pd.DataFrame({"order": np.arange(1000) + 2**53 + 1, "region": ["north", None] * 500})
    missing = str(frame["region"].iloc[1])  # NaN; in pandas 2 None
    shown = view(blob(stored_frames.to_structured(frame)))
    text = to_text(shown)
    assert "1,000 rows × 2 columns" in shown.facts
    assert "9007199254740993" in text and "int64" in text and missing.lower() in text.lower()
    assert "the first 20 of 1,000 rows; all of it: blob.df" in text
    assert "slice:20..40" in text


def test_wide_letters_keep_the_columns_of_the_text_in_line() -> None:
    from reyn_jupyter.notebook.render.hosts.plain_text import text_width

    text = to_text(
        view(Result("f", "x", pd.DataFrame({"name": ["漢字", "abc", "e\u0301"], "n": [1, 22, 333]})))
    )
    rows = [line for line in text.splitlines() if line[:1].isdigit()][:3]
    assert len({text_width(line) for line in rows}) == 1
