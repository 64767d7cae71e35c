"""Charts say in words what they draw, keep to their axis and to the size of a display."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from reyn_jupyter.notebook.render.blocks import Block, Interval, Intervals, Notice, Point, Scatter, View
from reyn_jupyter.notebook.render.charts import place_points, share
from reyn_jupyter.notebook.render.hosts.html import HTML_BYTES, to_html
from reyn_jupyter.notebook.render.hosts.markdown_writer import to_markdown
from reyn_jupyter.notebook.render.hosts.plain_text import TEXT_BYTES, to_text
from reyn_jupyter.notebook.serving.view_json import SNAPSHOT_BYTES, json_size, to_snapshot
from tests.notebook.render.chart_samples import (
    COSTS,
    DIFFERENCES,
    PAIR,
    RATES,
    SAMPLES,
    hostile,
    intervals,
    sample,
    scatters,
)

_NUMBER = re.compile(r"-?\d+(\.\d\d?)?%?")
_DRAWN = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"}


class Elements(HTMLParser):
    """Every element's name and attributes; an element that is not closed fails."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def shown(*blocks: Block) -> View:
    return View("comparison", "b against a", (), (), blocks, ".df")


def test_a_chart_in_text_has_its_marks_in_forty_cells_and_its_words_beside_them() -> None:
    lines = to_text(shown(replace(RATES, more=""))).splitlines()
    assert lines[1] == "lists first"
    assert lines[2] == "base         ░░░░░░░░░░├───●─○─┤                       36 % (26 to 47); 90 trials"
    assert lines[5] == "one trial    ●                                         0 %"
    assert lines[6].strip() == "┴─────────┴─────────┴────────┴─────────┴"
    assert lines[7].split() == ["0", "%", "25", "%", "50", "%", "75", "%", "100", "%"]
    assert lines[8] == "the mark: the true rate"


def test_a_difference_in_text_stands_on_its_line_at_zero() -> None:
    lines = to_text(shown(DIFFERENCES)).splitlines()
    assert lines[2].startswith("b − a                      ┊   ├──────○●─────┤"), lines[2]
    assert lines[3].index("├") < lines[3].index("●") < lines[3].index("┤")


def test_what_lies_beyond_the_axis_has_a_mark_and_words_in_every_host() -> None:
    text, html = to_text(shown(DIFFERENCES)), to_html(shown(DIFFERENCES))
    far, below = (
        next(line for line in text.splitlines() if line.startswith(name)) for name in ("far", "below")
    )
    assert "◂" in far and "▸" in far and far.endswith("+90 (−90 to +120), beyond the axis")
    assert "◂" in below and "▸" in below
    assert html.count("<td>+90 (−90 to +120), beyond the axis</td>") == 1
    assert html.count("◂") == 2 and html.count("▸") == 2
    assert 'class="r-estimate"' not in html[html.index("far:") : html.index("below:")]


def test_every_row_is_named_and_said_beside_its_drawing() -> None:
    html = to_html(shown(RATES))
    for row in RATES.rows:
        assert f'role="img" aria-label="{row.label}: {row.text}"' in html
        assert f"<td>{row.text}</td>" in html


def test_a_row_without_an_interval_is_drawn_by_its_estimate_alone() -> None:
    found = Elements(to_html(shown(replace(RATES, rows=RATES.rows[3:])))).found
    names = [attributes.get("class") for name, attributes in found if name in ("line", "rect", "circle")]
    assert names[:2] == ["r-fill", "r-estimate"] and set(names[2:]) == {"r-frame"}


def test_a_row_without_an_estimate_has_its_words_alone() -> None:
    row = Interval("failing", "no graded trial", None, detail="2 missing")
    made = shown(replace(RATES, rows=(RATES.rows[0], row), more=""))
    html, text = to_html(made), to_text(made)
    track = html[html.index('aria-label="failing') : html.index("no graded trial</td>")]
    assert "<line" not in track and "<rect" not in track and "beyond" not in html
    (line,) = (line for line in text.splitlines() if line.startswith("failing"))
    assert line.split(None, 1)[1] == "no graded trial; 2 missing"


def test_figures_that_stand_in_a_table_beside_a_drawing_are_not_said_again() -> None:
    made = shown(replace(COSTS, figures=False))
    for drawn in (to_text(made), to_markdown(made)):
        assert COSTS.points[0].text not in drawn and "left out" not in drawn and "cut here" not in drawn
    html = to_html(made)
    assert "r-point" in html and "In figures" not in html and "the table below has the figures" in html


def test_the_labels_of_points_lie_neither_over_each_other_nor_over_points() -> None:
    at = place_points(COSTS)
    labels = [each.label for each in at]
    assert [label[3] if label else None for label in labels] == [
        "base", "twin of base", "a variant whose name is lon…", "変種", "beyond",
    ]  # fmt: skip
    crowd = replace(COSTS, points=tuple(Point(f"variant {n}", "", 1000.0, 0.5) for n in range(40)))
    places = [each.label[:3] for each in place_points(crowd) if each.label]
    assert 2 < len(places) < 40 and len(set(places)) == len(places)
    assert all(f">variant {n}</th>" in to_html(shown(crowd)) for n in range(40))


def test_the_style_of_charts_travels_with_charts_alone() -> None:
    assert ".r-track" not in to_html(shown(Notice("no chart")))
    for name in SAMPLES:
        assert ".r-track" in to_html(sample(name))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused_where_a_chart_is_made(number: float) -> None:
    with pytest.raises(ValueError, match=r"the row: (nan|-?inf) cannot be drawn; give None"):
        Interval("the row", "", number)
    with pytest.raises(ValueError, match="cannot be drawn"):
        Interval("", "", 0.0, number)
    with pytest.raises(ValueError, match="cannot be drawn"):
        Point("", "", 0.0, number)
    with pytest.raises(ValueError, match="cannot be drawn"):
        Intervals("", (), (0.0, number))
    with pytest.raises(ValueError, match="cannot be drawn"):
        Intervals("", (), (0.0, 1.0), zero=number)


@pytest.mark.parametrize("axis", [(1.0, 1.0), (1.0, 0.0)])
def test_an_axis_without_length_is_refused(axis: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="from a smaller to a larger value"):
        Intervals("", (), axis)
    with pytest.raises(ValueError, match="from a smaller to a larger value"):
        Scatter("", (), "x", "y", (0.0, 1.0), axis)


def test_many_rows_keep_to_the_size_and_the_rest_is_announced() -> None:
    rows = tuple(replace(RATES.rows[0], label=f"variant {n}") for n in range(2000))
    many = shown(replace(RATES, rows=rows))
    html, text, snapshot = to_html(many), to_text(many), to_snapshot(many, "s")
    assert (
        len(html.encode()) <= HTML_BYTES
        and "of these 2,000 rows left out" in html
        and "; all of it: .df" in html
    )
    assert ">variant 0<" in html and "r-axis" in html
    assert len(text.encode()) <= TEXT_BYTES and "cut here; all of it: .df" in text
    assert json_size(snapshot) <= SNAPSHOT_BYTES
    kept = snapshot["view"]["blocks"][0]
    assert len(kept["rows"]) > 50 and "of these 2,000 rows left out" in kept["more"]


def test_many_points_become_a_table_that_keeps_to_the_size() -> None:
    many = shown(replace(COSTS, points=tuple(Point(f"v{n}", "36 %", float(n), 0.5) for n in range(3000))))
    html, snapshot = to_html(many), to_snapshot(many, "s")
    assert len(html.encode()) <= HTML_BYTES and "of these 3,000 rows left out" in html
    assert json_size(snapshot) <= SNAPSHOT_BYTES
    assert "of these 3,000 points left out" in json.dumps(snapshot)


def test_each_side_of_a_pair_is_cut_by_itself() -> None:
    rows = tuple(replace(RATES.rows[0], label=f"variant {n}") for n in range(500))
    many = shown(replace(PAIR, right_blocks=(replace(RATES, rows=rows),)))
    for made in (to_html(many), to_text(many), json.dumps(to_snapshot(many, "s"))):
        assert "listed, then read" in made and "variant 0" in made
    assert json_size(to_snapshot(many, "s")) <= SNAPSHOT_BYTES


def test_both_sides_of_a_pair_stand_under_their_headings_in_text() -> None:
    text = to_text(shown(PAIR))
    assert (
        text.index("base\n") < text.index("  passed") < text.index("explicit-3x\n") < text.index("✗ failed")
    )


def check(view: View) -> None:
    html, text, snapshot = to_html(view), to_text(view), to_snapshot(view, "s")
    assert len(html.encode()) <= HTML_BYTES and len(text.encode()) <= TEXT_BYTES
    assert json.loads(json.dumps(snapshot, allow_nan=False)) == snapshot
    for name, attributes in Elements(html).found:
        assert name not in ("script", "b")
        for key in _DRAWN & attributes.keys():
            assert _NUMBER.fullmatch(attributes[key]), (name, key, attributes[key])


@settings(max_examples=60)
@given(intervals)
def test_any_chart_of_intervals_is_drawn_with_finite_places(chart: Intervals) -> None:
    check(shown(chart))
    for row in chart.rows:
        assert row.estimate is None or 0.0 <= share(row.estimate, chart.axis) <= 1.0


@settings(max_examples=60)
@given(scatters)
def test_any_chart_of_points_is_drawn_within_its_frame(chart: Scatter) -> None:
    check(shown(chart))
    assert all(44 <= each.x <= 468 and 24 <= each.high <= 188 for each in place_points(chart))


def test_hostile_texts_stay_texts() -> None:
    check(shown(hostile()))
