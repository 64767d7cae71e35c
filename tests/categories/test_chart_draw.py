"""Charts as they are asked for: real SQL, the real renderer, hostile names and values, and rows that are too many."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import math
import socket
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reyn_jupyter.backends.charts.chart_result import ChartResult
from reyn_jupyter.backends.charts.renderer import SVG_BYTES, chart_child, is_plain_svg
from reyn_jupyter.categories.chart import categories
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.programs.child_process import ChildProcesses
from tests.categories.notebook_support import SECRET, InvalidArgumentsError, Notebook

ORDERS = pd.DataFrame(
    {
        "day": pd.to_datetime(["2026-01-05", "2026-01-20", "2026-02-01", "2026-02-14", "2026-04-02"]),
        "amount": [200, 310, 700, 350, 240],
        "region": ["North", "South", None, "North", "East"],
        "product": ["a", "b", "a", "c", "b"],
    }
)


@pytest.fixture(scope="module")
def children() -> Iterator[ChildProcesses]:
    """The processes of all tests here: fresh ones take their time to start."""
    with ChildProcesses() as processes:
        yield processes


@pytest.fixture
def notebook(tmp_path: Path, children: ChildProcesses) -> Notebook:
    ORDERS.to_csv(tmp_path / "orders.csv", index=False)
    return Notebook(tmp_path, {"orders": ORDERS}, children=children)


async def draw(notebook: Notebook, **args: Any) -> ChartResult:
    chart = await notebook.caller(categories).call("draw", **{"data": "orders", "mark": "bar"} | args)
    assert isinstance(chart, ChartResult)
    return chart


async def draw_frame(notebook: Notebook, frame: pd.DataFrame, **args: Any) -> ChartResult:
    notebook.names["frame"] = frame
    return await draw(notebook, **{"data": "frame"} | args)


async def refusal(notebook: Notebook, **args: Any) -> str:
    with pytest.raises(ActionError) as caught:
        await draw(notebook, **args)
    return f"{caught.value.message} {caught.value.hint}"


def values(chart: ChartResult, *channels: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(channel) for channel in channels) for row in chart.spec["data"]["values"]]


MONTHLY = {"x": {"field": "day", "time_unit": "month"}, "y": {"field": "amount", "aggregate": "sum"}}


# What is drawn


async def test_the_sum_of_each_month_is_a_bar_and_a_month_without_rows_has_its_place(
    notebook: Notebook,
) -> None:
    chart = await draw(notebook, **MONTHLY)
    assert values(chart, "x", "y") == [("Jan 2026", 510), ("Feb 2026", 1050), ("Apr 2026", 240)]
    assert chart.spec["mark"]["type"] == "bar"
    assert chart.spec["encoding"]["y"]["title"] == "sum of amount"
    assert chart.spec["encoding"]["x"]["scale"]["domain"] == ["Jan 2026", "Feb 2026", "Mar 2026", "Apr 2026"]
    assert chart.words.startswith(
        "Bar chart: sum of amount by day (month), 3 bars, highest Feb 2026 1,050, lowest Apr 2026 240; from 5 rows."
    )
    assert all(text in chart.svg for text in ("Jan 2026", "Mar 2026", "sum of amount"))


async def test_a_line_is_broken_where_a_month_has_no_rows(notebook: Notebook) -> None:
    chart = await draw(notebook, mark="line", **MONTHLY)
    assert values(chart, "x", "y")[2] == ("Mar 2026", None)


async def test_a_stored_result_a_file_and_a_query_are_drawn_alike(notebook: Notebook) -> None:
    blob = await notebook.keep(ORDERS)
    sql = {"sql": "SELECT * FROM o;", "sources": {"o": "orders"}, "mark": "bar"}
    drawn = [
        await draw(notebook, data=given, **MONTHLY) for given in ("orders", "@orders", blob, "orders.csv")
    ]
    drawn.append(await notebook.caller(categories).call("draw", **sql, **MONTHLY))
    drawn.append(await draw(notebook, data={"$var": "orders"}, **MONTHLY))
    assert {json.dumps(values(each, "x", "y")) for each in drawn} == {
        '[["Jan 2026", 510], ["Feb 2026", 1050], ["Apr 2026", 240]]'
    }


def countries() -> pd.DataFrame:
    rows = [("Germany", 2002, 78.7), ("Germany", 2007, 79.4), ("France", 2002, 79.6), ("France", 2007, 80.7)]
    return pd.DataFrame(rows, columns=["country", "year", "life"])


async def draw_query(notebook: Notebook, sql: str, **given: Any) -> ChartResult:
    notebook.names["gap"] = countries()
    arguments = {"sql": sql, "sources": {"gap": "gap"}, "mark": "bar", "x": "year"} | given
    chart = await notebook.caller(categories).call("draw", **arguments)
    assert isinstance(chart, ChartResult)
    return chart


async def test_the_title_and_the_words_name_every_filter_and_the_aggregate(notebook: Notebook) -> None:
    germany, france = (
        "SELECT * FROM gap WHERE country = 'Germany'",
        "SELECT * FROM gap WHERE country = 'France'",
    )
    mean = {"field": "life", "aggregate": "mean"}
    cases: list[tuple[str, dict[str, Any], str]] = [
        (germany, {"y": "life"}, "life by year, where country = 'Germany'"),
        (germany, {"y": "life", "title": "Life"}, "Life, where country = 'Germany'"),
        ('SELECT * FROM gap WHERE "year" > 1990', {"y": mean}, "mean of life by year, where year > 1990"),
        (
            f"WITH g AS ({france}) SELECT * FROM g LIMIT 1",
            {"y": "life"},
            "life by year, where country = 'France', the first 1 rows",
        ),
        (
            "SELECT year, avg(life) AS v FROM gap GROUP BY year HAVING avg(life) > 1",
            {"y": "v"},
            "v (avg(life)) by year, where avg(life) > 1",
        ),
        (f"{france} -- WHERE no\n", {"y": "life"}, "life by year, where country = 'France'"),
        ("SELECT * FROM gap", {"y": {"field": "life", "aggregate": "max"}}, "max of life by year"),
    ]
    wrong = []
    for sql, given, expected in cases:
        chart = await draw_query(notebook, sql, **given)
        if chart.title != expected or f"Bar chart: {expected}, " not in chart.words:
            wrong.append((expected, chart.title, chart.words))
    assert wrong == []


async def test_without_an_aggregate_one_value_is_drawn_as_it_is_and_of_several_the_mean(
    notebook: Notebook,
) -> None:
    alone = await draw_query(notebook, "SELECT * FROM gap WHERE country = 'France'", y="life")
    assert values(alone, "x", "y") == [("2002", 79.6), ("2007", 80.7)] and "mean" not in alone.words
    several = await draw_frame(notebook, countries(), x="year", y="life")
    assert dict(values(several, "x", "y"))["2002"] == pytest.approx(79.15)
    assert several.title == "mean of life by year"
    assert "no aggregate is named, so the mean of each group is drawn" in several.words


async def test_years_and_numbers_of_rows_are_put_together_only_if_the_call_says_how(
    notebook: Notebook,
) -> None:
    frame = pd.DataFrame({"name": ["a", "a", "b"], "year": [1, 2, 3], "order_id": [1, 2, 3]})
    for name in ("year", "order_id"):
        with pytest.raises(ActionError, match="looks like a year"):
            await draw_frame(notebook, frame, x="name", y=name)
    chart = await draw_frame(notebook, frame, x="name", y={"field": "year", "aggregate": "max"})
    assert chart.title == "max of year by name"


async def test_categories_come_largest_first_and_missing_values_last_or_named(notebook: Notebook) -> None:
    total = {"field": "amount", "aggregate": "sum"}
    chart = await draw(notebook, x="region", y=total)
    assert dict(values(chart, "x", "y")) == {"North": 550, "South": 310, "East": 240, "(missing)": 700}
    assert chart.spec["encoding"]["x"]["scale"]["domain"] == ["(missing)", "North", "South", "East"]
    turned = await draw(notebook, x={"field": "region", "sort": "ascending"}, y=total)
    assert turned.spec["encoding"]["x"]["scale"]["domain"] == ["East", "North", "South", "(missing)"]


async def test_a_group_without_a_value_is_missing_and_no_bar_of_zero(notebook: Notebook) -> None:
    frame = pd.DataFrame({"region": ["East", "West", "West"], "amount": [math.nan, 2.0, 3.0]})
    chart = await draw_frame(notebook, frame, x="region", y="amount")
    assert dict(values(chart, "x", "y")) == {"East": None, "West": 2.5}
    assert ("East", "missing") in StoredTable.rows(chart)


class StoredTable:
    @staticmethod
    def rows(chart: ChartResult) -> list[tuple[str, ...]]:
        record: Any = chart.parts[1].json
        return [tuple(row) for row in record["table"]["rows"]]


@pytest.mark.parametrize(
    ("args", "drawn"),
    [
        (
            {"mark": "histogram", "x": {"field": "amount", "bin": 3}},
            "Histogram: count of rows by amount, 2 bars",
        ),
        ({"mark": "boxplot", "x": "product", "y": "amount"}, "Box plot: amount by product, 3 boxes"),
        ({"mark": "point", "x": "day", "y": "amount", "color": "region"}, "5 points"),
        ({"mark": "heatmap", "x": "region", "y": "product"}, "Heatmap: count of rows by region and product"),
        (
            {"mark": "area", **MONTHLY, "color": "product"},
            "Area chart: sum of amount by day (month) and product",
        ),
        ({"y": "region", "x": "amount"}, "Bar chart: mean of amount by region, 4 bars"),
        (
            {"x": "product", "y": {"field": "amount", "aggregate": "mean"}, "color": "region"},
            "Bar chart: mean of",
        ),
        ({"x": "product"}, "Bar chart: count of rows by product, 3 bars, highest a 2, lowest c 1"),
        ({**MONTHLY, "column": "product"}, "Bar chart: sum of amount by day (month) and product"),
        ({**MONTHLY, "row": "product"}, "Bar chart: sum of amount by day (month) and product"),
        ({"x": {"field": "day", "time_unit": "weekday"}}, "by day (weekday)"),
    ],
)
async def test_every_mark_is_drawn_by_the_renderer(
    notebook: Notebook, args: dict[str, Any], drawn: str
) -> None:
    chart = await draw(notebook, **args)
    assert drawn in chart.words
    assert is_plain_svg(chart.svg) and len(chart.svg) < SVG_BYTES


async def test_quartiles_are_those_of_all_values(notebook: Notebook) -> None:
    frame = pd.DataFrame({"g": ["a"] * 5, "v": [1, 2, 3, 4, 100]})
    chart = await draw_frame(notebook, frame, mark="boxplot", x="g", y="v")
    assert values(chart, "low", "q1", "median", "q3", "high") == [(1, 2, 3, 4, 100)]


# What the model reads


async def test_the_model_reads_words_and_neither_rows_nor_picture(notebook: Notebook) -> None:
    frame = pd.DataFrame({"name": [f"customer-{n}" for n in range(40)], "n": range(40)})
    chart = await draw_frame(notebook, frame, x="name", y="n")
    assert notebook.blobs is not None
    delivered = await deliver(chart, store=notebook.blobs, action="chart__draw", run="r")
    assert len(delivered.text.encode()) <= 800 and delivered.content_kind == "parts"
    assert "Bar chart: n by name, 40 bars, highest customer-39 39, lowest customer-0 0" in delivered.text
    assert "customer-20" not in delivered.text and "<svg" not in delivered.text


async def test_secrets_are_masked_in_titles_labels_and_pictures_whoever_calls(notebook: Notebook) -> None:
    frame = pd.DataFrame({"word": [SECRET, "plain"], "n": [1, 2]})
    notebook.names["frame"] = frame
    for actor in ("model", "person"):
        caller = notebook.caller(categories).under(actor=actor)
        chart = await caller.call("draw", data="frame", mark="bar", x="word", y="n", title=f"about {SECRET}")
        everything = json.dumps(chart.parts[1].json) + chart.svg + str(chart.parts[0].text)
        assert SECRET not in everything and "redacted" in everything


# Nothing but names and words of closed lists


@pytest.mark.parametrize(
    "args",
    [
        {"mark": {"type": "image", "url": "https://example.com/x.png"}},
        {"mark": "image"},
        {"x": {"field": "day", "href": "https://example.com"}},
        {"x": {"expr": "1"}},
        {"transform": [{"calculate": "1", "as": "z"}]},
        {"data": {"url": "https://example.com/x.json"}},
        {"usermeta": {"embedOptions": {}}},
        {"x": {"field": "day", "aggregate": "stdev"}},
        {"y": {"field": "amount", "axis": {"labelExpr": "datum.label"}}},
        {"spec": {}},
    ],
)
async def test_code_addresses_and_pieces_of_a_spec_are_refused(
    notebook: Notebook, args: dict[str, Any]
) -> None:
    with pytest.raises((InvalidArgumentsError, ActionError)):
        await draw(notebook, **{"x": "region"} | args)


async def test_names_and_values_that_look_like_code_are_text(notebook: Notebook) -> None:
    names = ["price.usd", "x[0]", 'q"uote', "back\\slash", "<b>x</b>", "datum.y", "sum(y)", "a:b", '");DROP']
    labels = [
        "<script>alert(1)</script>",
        "]]>",
        "&amp;",
        "\u202egnp.exe",
        "a\nb",
        "{{x}}",
        "' OR 1",
        "x" * 300,
        "",
    ]
    for name in names:
        frame = pd.DataFrame({name: range(1, 10), "label": labels})
        chart = await draw_frame(notebook, frame, x="label", y=name)
        assert sorted(row[0] for row in values(chart, "y")) == list(range(1, 10))
        assert chart.spec["encoding"]["y"]["field"] == "y" and chart.spec["encoding"]["y"]["title"] == name
        assert is_plain_svg(chart.svg) and "<script" not in chart.svg and "\u202e" not in chart.svg
    again = await draw_frame(notebook, pd.DataFrame({"<b>x</b>": labels, "n": 1}), y="<b>x</b>", x="n")
    assert again.spec["encoding"]["y"]["title"] == "<b>x</b>"


async def test_no_text_of_a_call_or_the_data_is_in_a_spec_but_as_title_and_value(notebook: Notebook) -> None:
    frame = pd.DataFrame({"zebra_name": ["zebra_value", "b"], "n": [1, 2]})
    chart = await draw_frame(notebook, frame, x="zebra_name", y="n", title="zebra_title")
    spec = chart.spec
    found = {".".join(map(str, path)) for path, text in _texts(spec) if "zebra" in text}
    assert found == {"data.values.0.x", "encoding.x.title", "encoding.x.scale.domain.0", "title.text.0"} or found == {
        "data.values.1.x", "encoding.x.title", "encoding.x.scale.domain.1", "title.text.0"
    }  # fmt: skip
    assert not {"url", "href", "expr", "transform", "signal", "params"} & {
        str(key) for path, _ in _texts(spec) for key in path
    }


def _texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _texts(held, (*path, key))
    elif isinstance(value, list):
        for place, held in enumerate(value):
            yield from _texts(held, (*path, place))
    elif isinstance(value, str):
        yield path, value


async def test_two_columns_of_one_name_are_refused_with_a_way_out(notebook: Notebook) -> None:
    said = await refusal_of_sql(notebook, "SELECT 1 AS a, 2 AS a", x="a")
    assert "two columns are called 'a'" in said and "SELECT … AS …" in said


async def refusal_of_sql(notebook: Notebook, sql: str, **args: Any) -> str:
    with pytest.raises(ActionError) as caught:
        await notebook.caller(categories).call("draw", sql=sql, mark="bar", **args)
    return f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            {"x": "regoin", "y": "amount"},
            "no column 'regoin'. Did you mean region? The columns are: day, amount",
        ),
        ({"x": "product", "y": "region"}, "needs numbers, and 'region' is VARCHAR"),
        ({"mark": "histogram"}, "a histogram needs x"),
        ({"mark": "heatmap", "x": "region"}, "a heatmap needs x and y"),
        ({}, "needs x or y"),
        ({"x": {"field": "amount", "time_unit": "month"}}, "holds numbers, which are no dates"),
        ({"x": {"aggregate": "sum"}}, "and no field"),
        ({"sql": "SELECT 1", "x": "region"}, "either data or the rows of sql"),
        ({"sources": {"o": "orders"}, "x": "region"}, '"sources" belongs to sql'),
    ],
)
async def test_what_does_not_fit_is_said_with_what_to_do(notebook: Notebook, args: Any, said: str) -> None:
    assert said in await refusal(notebook, **args)


async def test_half_a_statement_of_a_call_never_becomes_another(notebook: Notebook) -> None:
    for sql in ("SELECT 1) AS t, (SELECT 2", "SELECT 1; SELECT 2", "DROP TABLE x", "SELECT 1 --"):
        if sql.endswith("--"):
            chart = await notebook.caller(categories).call("draw", sql=sql, mark="bar", x="1")
            assert values(chart, "y") == [(1,)]
        else:
            assert "SQL" in await refusal_of_sql(notebook, sql, x="1")


# Too much, too little, and strange


async def test_a_million_points_are_counted_in_cells_all_of_them(notebook: Notebook) -> None:
    random = np.random.default_rng(7)
    frame = pd.DataFrame({"x": random.normal(size=1_000_000), "y": random.normal(size=1_000_000)})
    frame.loc[:99, "x"] = np.nan
    chart = await draw_frame(notebook, frame, mark="point", x="x", y="y")
    counts = [count for (count,) in values(chart, "color")]
    assert sum(counts) == 999_900 and len(counts) <= 60 * 40
    assert "999,900 points counted in" in chart.words and "from 1,000,000 rows" in chart.words
    assert "100 rows without x left out" in chart.words
    subtitle = " ".join(chart.spec["title"]["subtitle"])
    assert "999,900 points counted in" in subtitle
    assert chart.svg == "" or len(chart.svg.encode()) <= SVG_BYTES


async def test_the_rest_of_many_categories_is_one_bar_where_it_adds_up(notebook: Notebook) -> None:
    frame = pd.DataFrame({"c": [f"c{n}" for n in range(5000)], "n": range(5000)})
    chart = await draw_frame(notebook, frame, x="c", y={"field": "n", "aggregate": "sum"})
    drawn = dict(values(chart, "x", "y"))
    assert len(drawn) == 51 and drawn["4,950 others"] == sum(range(4950)) and drawn["c4999"] == 4999
    assert "the other 4,950 are one mark" in chart.words
    mean = await draw_frame(notebook, frame, x="c", y={"field": "n", "aggregate": "mean"})
    assert len(values(mean, "x")) == 50 and "the other 4,950 are left out" in mean.words


async def test_a_histogram_counts_every_row_that_has_a_value(notebook: Notebook) -> None:
    numbers = [*np.linspace(-3, 97, 997), math.nan, math.inf, -math.inf]
    chart = await draw_frame(notebook, pd.DataFrame({"v": numbers}), mark="histogram", x="v")
    assert sum(count for (count,) in values(chart, "y")) == 997
    assert "2 values of v are no finite numbers and left out" in chart.words
    starts, ends = zip(*values(chart, "x", "x2"), strict=True)
    assert list(starts[1:]) == pytest.approx(list(ends[:-1]))


@pytest.mark.parametrize(
    ("column", "drawn"),
    [
        ([2**63 - 1], "9,223,372,036,854,775,807"),
        ([-5, -7], "highest"),
        ([True, False], "highest"),
        ([Decimal("1.10"), Decimal("2.25")], "2.25"),
        ([pd.Timedelta(hours=1)], "3,600"),
        ([1e300, -1e300], "highest"),
        ([1, "two", None], "missing"),
    ],
)
async def test_numbers_of_every_kind_are_drawn(notebook: Notebook, column: list[Any], drawn: str) -> None:
    frame = pd.DataFrame({"g": [f"g{n}" for n in range(len(column))], "v": pd.Series(column, dtype=object)})
    try:
        chart = await draw_frame(notebook, frame, x="g", y="v")
    except ActionError as error:
        assert "cannot be drawn" in error.message and "needs numbers" in error.message
        return
    assert drawn in chart.words + str(StoredTable.rows(chart))


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day", "hour", "weekday"])
async def test_each_time_unit_has_a_bucket_for_every_row(notebook: Notebook, unit: str) -> None:
    days = pd.date_range("2023-12-28", periods=100, freq="7h")
    chart = await draw_frame(notebook, pd.DataFrame({"t": days}), x={"field": "t", "time_unit": unit})
    assert sum(count for (count,) in values(chart, "y")) == 100
    assert {label for (label,) in values(chart, "x")} <= set(chart.spec["encoding"]["x"]["scale"]["domain"])


async def test_dates_at_the_ends_of_time_with_zones_as_text_and_as_dates(notebook: Notebook) -> None:
    ends = pd.to_datetime(["1677-09-22", "2262-04-10"])
    assert len(values(await draw_frame(notebook, pd.DataFrame({"t": ends}), x="t"), "x")) == 2
    zoned = pd.to_datetime(["2026-01-01 00:30"]).tz_localize("Europe/Berlin")
    chart = await draw_frame(notebook, pd.DataFrame({"t": zoned}), x={"field": "t", "time_unit": "day"})
    assert values(chart, "x") == [("2026-01-01",)] and "t (Europe/Berlin) (day)" in chart.words
    texts = pd.DataFrame({"t": ["2026-01-03", "2026-01-09", "soon", None]})
    chart = await draw_frame(notebook, texts, x={"field": "t", "time_unit": "month"})
    assert values(chart, "x", "y") == [("Jan 2026", 2)]
    assert (
        "1 value of t are no dates and left out" in chart.words and "1 row without t left out" in chart.words
    )
    dates = pd.DataFrame({"t": [dt.date(2026, 1, 3), dt.date(2026, 2, 3)], "v": [1, 2]})
    assert len(values(await draw_frame(notebook, dates, mark="line", x="t", y="v"), "x")) == 2


async def test_too_many_buckets_become_coarser_ones_and_that_is_said(notebook: Notebook) -> None:
    days = pd.date_range("2000-01-01", "2020-01-01", freq="D")
    chart = await draw_frame(notebook, pd.DataFrame({"t": days}), x={"field": "t", "time_unit": "day"})
    assert "t is grouped by month: by day there would be too many" in chart.words
    assert sum(count for (count,) in values(chart, "y")) == len(days)


async def test_one_row_is_drawn_and_no_row_is_an_error_that_says_so(notebook: Notebook) -> None:
    one = ORDERS.head(1)
    for mark in ("bar", "line", "point", "area", "boxplot"):
        chart = await draw_frame(notebook, one, mark=mark, x="product", y="amount")
        assert len(values(chart, "x")) == 1
    assert len(values(await draw_frame(notebook, one, mark="histogram", x="amount"), "x")) == 1
    with pytest.raises(ActionError, match="there are no rows to draw"):
        await draw_frame(notebook, ORDERS.head(0), x="product", y="amount")
    empty = pd.DataFrame({"v": [math.nan, math.nan]})
    with pytest.raises(ActionError, match="all values of v are missing"):
        await draw_frame(notebook, empty, mark="boxplot", y="v")


async def test_many_colors_and_facets_keep_to_their_bounds(notebook: Notebook) -> None:
    frame = pd.DataFrame({"c": [f"c{n % 30}" for n in range(300)], "g": [f"g{n % 3}" for n in range(300)]})
    chart = await draw_frame(notebook, frame, x="g", color="c")
    assert len({color for (color,) in values(chart, "color")}) == 11
    assert sum(count for (count,) in values(chart, "y")) == 300
    panels = await draw_frame(notebook, frame, x="g", column="c")
    assert len({panel for (panel,) in values(panels, "column")}) == 12
    assert "the other 18 are left out" in panels.words


# The renderer


async def test_nothing_is_asked_of_the_network(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a connection was opened"))
    chart = await draw(notebook, **MONTHLY)
    assert "http" not in chart.svg.replace("http://www.w3.org/", "")
    assert "font-face" not in chart.svg and "url(http" not in chart.svg


async def test_a_chart_whose_time_is_up_ends_its_process_and_the_next_one_is_drawn(
    notebook: Notebook,
) -> None:
    caller = notebook.caller(lambda services: categories(services, seconds=0.000_001))
    with pytest.raises(ActionError, match="stopped after"):
        await caller.call("draw", data="orders", mark="bar", **MONTHLY)
    assert len(values(await draw(notebook, **MONTHLY), "x")) == 3


async def test_a_process_that_was_killed_is_said_and_started_again(notebook: Notebook) -> None:
    child = chart_child(notebook.children)
    await draw(notebook, **MONTHLY)
    first = child.pid
    child.kill()
    await asyncio.to_thread(child.close)
    assert len(values(await draw(notebook, **MONTHLY), "x")) == 3
    assert child.pid not in (None, first)


# By hand


async def test_the_result_has_spec_picture_code_and_rows(notebook: Notebook) -> None:
    chart = await draw(notebook, **MONTHLY)
    assert chart.spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert chart.df.to_dict("list") == {"x": ["Jan 2026", "Feb 2026", "Apr 2026"], "y": [510, 1050, 240]}
    assert chart.svg.startswith("<svg ") and chart.title == "sum of amount by day (month)"


@pytest.mark.parametrize(
    "args",
    [
        MONTHLY,
        {"mark": "histogram", "x": {"field": "amount", "bin": 4}},
        {"mark": "point", "x": "amount", "y": "amount", "color": "product"},
        {"mark": "boxplot", "x": "product", "y": "amount"},
        {
            "y": "region",
            "x": {"field": "amount", "aggregate": "mean"},
            "color": "product",
            "title": 'a "b" \\',
        },
        {"data": "orders.csv", **MONTHLY},
    ],
)
async def test_the_code_for_altair_makes_the_same_chart(
    notebook: Notebook, args: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import altair

    chart = await draw(notebook, **args)
    monkeypatch.chdir(notebook.root)
    *lines, last = chart.altair.rstrip("\n").split("\n")
    code = compile("\n".join([*lines, f"drawn = {last}"]), "<altair>", "exec")
    names: dict[str, Any] = {"orders": ORDERS}
    exec(code, names)
    with altair.data_transformers.enable("default", consolidate_datasets=False):
        spec = names["drawn"].to_dict()
    shown = chart.spec
    assert {name: shown[name] for name in ("mark", "encoding", "layer") if name in shown} == {
        name: spec[name] for name in ("mark", "encoding", "layer") if name in spec
    }
    rows = [{key: row[key] for key in sorted(row)} for row in spec["data"]["values"]]
    key = lambda row: json.dumps(row, sort_keys=True, default=float)  # noqa: E731
    assert sorted(rows, key=key) == sorted(shown["data"]["values"], key=key)
