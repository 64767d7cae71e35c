"""The chart of a small result that nobody described: bars, a line, points, or none."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import altair
import pandas as pd
import pytest

from reyn_jupyter.backends.charts.quick_chart import quick_chart, quick_drawing
from reyn_jupyter.support.programs.child_process import ChildProcesses

REGIONS = pd.DataFrame({"region": ["South", "North", "East"], "total amount": [310, 550, 240]})
DAYS = pd.to_datetime(["2026-02-01", "2026-01-01", "2026-04-01"])


@pytest.fixture(scope="module")
def children() -> Iterator[ChildProcesses]:
    with ChildProcesses() as processes:
        yield processes


def test_the_title_names_filters_aggregates_and_the_time_zone() -> None:
    query = "SELECT region, sum(amount) AS v FROM orders WHERE status = 'paid' GROUP BY region LIMIT 3"
    drawing = quick_drawing(REGIONS.set_axis(["region", "v"], axis=1), sql=query)
    assert drawing is not None
    assert drawing.title == "v (sum(amount)) by region, where status = 'paid', the first 3 rows"
    assert drawing.words.startswith(f"Bar chart: {drawing.title}, 3 bars")
    late = (
        pd.to_datetime(["2023-12-31 23:30", "2024-02-01 12:00"])
        .tz_localize("UTC")
        .tz_convert("Europe/Berlin")
    )
    zoned = quick_drawing(pd.DataFrame({"at": late, "n": [2, 1]}))
    assert (
        zoned is not None and "n by at (Europe/Berlin)" in zoned.words and "highest 2024-01-01" in zoned.words
    )


@pytest.mark.parametrize(
    ("rows", "mark", "said"),
    [
        (REGIONS, "bar", "Bar chart: total amount by region, 3 bars, highest North 550, lowest East 240"),
        (REGIONS.to_dict("records"), "bar", "3 bars"),
        (pd.DataFrame({"day": DAYS, "n": [2, 1, 4]}), "line", "highest 2026-04-01 4"),
        (pd.DataFrame({"day": [d.date() for d in DAYS], "n": [2, 1, 4]}), "line", "3 points"),
        (pd.DataFrame({"day": DAYS.tz_localize("UTC"), "n": [2, 1, 4]}), "line", "3 points"),
        (pd.DataFrame({"x": [1.5, 2, 2], "y": [1, 4, 9]}), "point", "Scatter chart: y and x, 3 points"),
        (pd.DataFrame({"year": [2024, 2025], "total": [1, 4]}), "bar", "total by year, 2 bars"),
        (pd.DataFrame({"g": ["a", "b"], "v": [Decimal("1.5"), Decimal("2.5")]}), "bar", "highest b 2.5"),
        (pd.DataFrame({"g": ["a", "b"], "v": [1.0, None], "w": [1, 2]}), "bar", "v by g, 2 bars, a 1"),
    ],
)
def test_the_chart_follows_from_the_columns(rows: Any, mark: str, said: str) -> None:
    drawing = quick_drawing(rows)
    assert drawing is not None and drawing.layers[0].mark == mark
    assert said in drawing.words


@pytest.mark.parametrize(
    "rows",
    [
        None,
        "text",
        [],
        [1, 2, 3],
        pd.DataFrame({"v": [1]}),
        pd.DataFrame({"g": ["a", "a"], "v": [1, 2]}),
        pd.DataFrame({"g": ["a", None], "v": [1, 2]}),
        pd.DataFrame({"g": ["a"], "h": ["b"], "v": [1]}),
        pd.DataFrame({"g": ["a", "b"], "G": [1, 2]}),
        pd.DataFrame({"g": ["a", "b"], "v": [None, None]}),
        pd.DataFrame({"g": ["a"], "v": [True]}),
        pd.DataFrame({"g": [["a"]], "v": [1]}),
        pd.DataFrame({"g": ["a"], "v": [float("inf")]}),
        pd.DataFrame({"g": [f"g{n}" for n in range(51)], "v": range(51)}),
        pd.DataFrame({"x": range(1001), "y": range(1001)}),
        pd.DataFrame({"x": [], "y": []}),
        pd.DataFrame({f"c{n}": [n] for n in range(5)}),
        dt.date(2026, 1, 1),
    ],
)
def test_there_is_none_where_none_suggests_itself(rows: Any) -> None:
    assert quick_drawing(rows) is None


def test_the_picture_and_the_code_show_the_rows_in_their_order(children: ChildProcesses) -> None:
    for frame in (
        REGIONS,
        pd.DataFrame({"day": DAYS, "n": [2, 1, 4]}),
        pd.DataFrame({"x": [1.5, 2], "y": [3, 4]}),
    ):
        chart = quick_chart(frame, children, "res")
        assert chart is not None and chart.svg.startswith("<svg ")
        names: dict[str, Any] = {"res": frame}
        *lines, last = chart.altair.rstrip("\n").split("\n")
        exec("\n".join([*lines, f"drawn = {last}"]), names)
        with altair.data_transformers.enable("default", consolidate_datasets=False):
            spec = names["drawn"].to_dict()
        assert spec["encoding"] == chart.spec["encoding"] and spec["mark"] == chart.spec["mark"]
        rows = sorted(chart.spec["data"]["values"], key=str)
        assert sorted(spec["data"]["values"], key=str) == rows
    assert [row["x"] for row in quick_drawing(REGIONS).values] == ["South", "North", "East"]  # type: ignore[union-attr]


def test_secrets_and_hidden_characters_are_covered() -> None:
    rows = [{"g": "key sesame", "v": 1}, {"g": "\u202eb", "v": 2}]
    drawing = quick_drawing(rows, mask=lambda text: text.replace("sesame", "•••"))
    assert drawing is not None
    assert "sesame" not in str(drawing.record) and "\u202e" not in str(drawing.record)


def test_choosing_imports_neither_altair_nor_the_renderer() -> None:
    code = (
        "import sys\nfrom reyn_jupyter.backends.charts.quick_chart import quick_drawing\n"
        "assert quick_drawing([{'g': 'a', 'v': 1}]) is not None\n"
        "print([name for name in ('altair', 'vl_convert', 'duckdb') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
