"""Charts in a page: the drawing of Python, place for place, readable in both themes and on a narrow page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from playwright.sync_api import Browser, expect

from reyn_jupyter import Session, Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.render.blocks import Intervals, Scatter, View
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from tests.browser.drawing import Drawing, drawing
from tests.notebook.render.chart_samples import SAMPLES, intervals, sample, scatters

AXE = Path(__file__).parents[2] / "labextension/node_modules/axe-core/axe.min.js"
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", params=["light", "dark"])
def page(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Drawing]:
    with drawing(browser, Session(tmp_path_factory.mktemp("charts")), request.param, exported=True) as made:
        yield made
        assert made.shown.complaints == [] and made.shown.elsewhere == []


@cache
def report() -> View:
    """The report of a small study of a simulated model."""
    study = Study(None, suite="mandates")
    study.run(
        Variant("base", model="simulator"), Variant("reinforced", model="simulator", reinforcement=3), n=12
    )
    return view(study.report())


@pytest.mark.parametrize("name", SAMPLES)
def test_both_hosts_draw_the_same_chart(page: Drawing, name: str) -> None:
    page.show(sample(name))
    assert page.outline() == page.outline_of(to_html(sample(name)))


def test_both_hosts_draw_every_part_of_a_report_alike(page: Drawing) -> None:
    assert any(isinstance(block, Intervals) for block in report().blocks)
    for block in report().blocks:  # each by itself, so that no host has to leave anything out
        made = replace(report(), blocks=(block,))
        page.show(made)
        assert page.outline() == page.outline_of(to_html(made))


@given(intervals | scatters)
@FEW
def test_both_hosts_draw_the_same_places_of_any_chart(page: Drawing, chart: Intervals | Scatter) -> None:
    made = View("report", "Report", (), (), (chart,))
    page.show(made)
    assert page.outline() == page.outline_of(to_html(made))


@pytest.mark.parametrize("width", [1000, 360])
@pytest.mark.parametrize("name", ["rates", "differences", "costs", "side by side", "report"])
def test_axe_finds_nothing_serious_in_a_chart(page: Drawing, name: str, width: int) -> None:
    page.page.set_viewport_size({"width": width, "height": 900})
    page.show(report() if name == "report" else sample(name))
    page.page.add_script_tag(path=str(AXE))
    found = page.page.evaluate("axe.run('#host', { resultTypes: ['violations'] })")["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == []


def test_a_narrow_page_keeps_the_words_in_sight_and_columns_under_each_other(page: Drawing) -> None:
    page.page.set_viewport_size({"width": 340, "height": 900})
    page.show(sample("side by side"))
    for text in ("36 % (26 to 47)", "12 more variants: .df"):
        expect(page.page.get_by_text(text, exact=True)).to_be_in_viewport()
    left, right = (page.page.locator(".r-pair > .r-sec").nth(side).bounding_box() for side in (0, 1))
    assert left and right and right["y"] >= left["y"] + left["height"] and right["x"] == left["x"]
    drawn = page.page.locator(".r-track").first.bounding_box()
    assert drawn and drawn["width"] >= 80
    page.page.set_viewport_size({"width": 1000, "height": 900})
    left, right = (page.page.locator(".r-pair > .r-sec").nth(side).bounding_box() for side in (0, 1))
    assert left and right and right["y"] == left["y"] and right["x"] > left["x"]


def test_what_is_drawn_of_a_row_can_be_told_from_the_page_behind_it(page: Drawing) -> None:
    """Contrast of what is drawn, which axe does not measure: at least 3 to 1."""
    page.show(sample("differences"))
    contrast = """([part, name]) => {
      const paint = (colour) => {
        const canvas = document.createElement("canvas").getContext("2d");
        canvas.fillStyle = getComputedStyle(document.body).backgroundColor;
        canvas.fillRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => {
          const share = value / 255;
          return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      return [...document.querySelectorAll(part)].map((each) => {
        const [one, two] = [paint(getComputedStyle(each)[name]), paint("transparent")].sort((a, b) => b - a);
        return (one + 0.05) / (two + 0.05);
      });
    }"""
    for part, name in (
        (".r-range", "stroke"),
        (".r-estimate", "stroke"),
        (".r-zero", "stroke"),
        ("svg text", "fill"),
    ):
        found = page.page.evaluate(contrast, [part, name])
        assert found and min(found) >= 3.0, (part, found)


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": None},
        {"axis": [0, 0]},
        {"axis": []},
        {"axis": ["a", 1]},
        {"rows": [{}]},
        {"ticks": [["x", "y"]]},
        {"points": 3},
        {"left_blocks": 1},
    ],
    ids=str,
)
def test_a_damaged_chart_is_named_and_its_neighbours_stay(page: Drawing, damage: dict[str, Any]) -> None:
    for name in ("rates", "costs", "side by side"):
        made: dict[str, Any] = to_snapshot(sample(name), "s")
        block = made["view"]["blocks"][0]
        if not damage.keys() & block.keys():
            continue
        good = {"type": "notice", "text": "still here", "tone": "info", "hint": ""}
        made["view"]["blocks"] = [{**block, **damage}, good]
        page.show(made)
        text = page.page.locator("#host").inner_text()
        assert "still here" in text and "could not be drawn" in text
        assert "NaN" not in page.page.locator("#host").inner_html()


def test_a_chart_that_goes_on_is_drawn_again_in_its_place(page: Drawing) -> None:
    page.show(sample("bare"))
    before = sample("bare")
    (chart,) = before.blocks
    assert isinstance(chart, Intervals)
    row = replace(chart.rows[0], text="70 %", estimate=0.7)
    page.update(replace(before, blocks=(replace(chart, rows=(row,)),)))
    assert page.page.locator(".r-fill").get_attribute("width") == "70%"
    expect(page.page.get_by_text("70 %", exact=True)).to_be_visible()
