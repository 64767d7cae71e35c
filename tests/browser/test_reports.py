"""A report and the card of a run as people see them: nothing cut off, nothing jumps, all of it without a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import reyn_jupyter
from reyn_jupyter import Session
from reyn_jupyter.evaluation.results.report import Report
from reyn_jupyter.evaluation.results.report import report as report_of
from reyn_jupyter.evaluation.run.progress import Progress
from reyn_jupyter.evaluation.statistics.rates import rate
from reyn_jupyter.notebook import assets
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.render.blocks import Fold, Section
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from tests.browser.browser_support import STATIC
from tests.browser.drawing import Drawing, drawing
from tests.browser.test_export import opened
from tests.notebook.render.study_samples import nine

NAMES = [f"variant-{number}" for number in range(9)]
FIRST = Progress(
    done=0, total=720, running=2, seconds=0.1, rate=0.0, eta=None, usd=0.0, tokens=0, calls=0,
    sources=dict.fromkeys(NAMES, "simulated"),
)  # fmt: skip


@cache
def report() -> Report:
    """Nine variants, so that every part of a report is there."""
    return report_of(nine())


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawing]:
    with drawing(browser, Session(tmp_path_factory.mktemp("reports")), exported=True) as made:
        yield made
        assert made.shown.complaints == [] and made.shown.elsewhere == []


@pytest.mark.parametrize("width", [360, 700, 1400])
def test_a_report_fits_its_page_and_scrolls_down_with_it_alone(page: Drawing, width: int) -> None:
    page.page.set_viewport_size({"width": width, "height": 900})
    page.show(view(report()))
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    inner = """[...document.querySelectorAll(".r-scroll")].filter((each) => each.checkVisibility()
      && each.scrollHeight > each.clientHeight + 1).map((each) => each.textContent.slice(0, 80))"""
    assert page.page.evaluate(inner) == [], "boxes that scroll within the page"
    check = page.page.locator(".r-sec tbody th", has_text="tokens").first
    check.evaluate("(each) => { each.closest('.r-scroll').scrollLeft = 10000 }")
    name, card = check.bounding_box(), page.page.locator(".reyn-view").first.bounding_box()
    assert name and card and name["x"] >= card["x"], "what a row is called stays in sight"


def test_what_a_row_is_called_stands_above_its_drawing_on_a_narrow_page(page: Drawing) -> None:
    for width, above in ((420, True), (1100, False)):
        page.page.set_viewport_size({"width": width, "height": 900})
        page.show(view(report()))
        row = page.page.locator(".r-chart tbody tr").first
        name, drawn, words = (row.locator(part).bounding_box() for part in ("th", "svg", "td:last-child"))
        assert name and drawn and words
        assert (name["y"] + name["height"] <= drawn["y"] + 1) is above
        assert drawn["width"] >= 150 and abs(words["y"] - drawn["y"]) < 40 and words["x"] > drawn["x"]
        axis = page.page.locator(".r-chart tfoot svg").first.bounding_box()
        assert (
            axis and axis["x"] == pytest.approx(drawn["x"]) and axis["width"] == pytest.approx(drawn["width"])
        )


@pytest.mark.parametrize("width", [600, 1100])
def test_the_card_of_a_run_keeps_its_height_while_it_goes_on(page: Drawing, width: int) -> None:
    page.page.set_viewport_size({"width": width, "height": 900})
    page.show(view(FIRST))
    card = page.page.locator(".reyn-view").first
    before = card.bounding_box()
    some = {name: rate({f"s{n}": {0: float(n < 3)} for n in range(8)}) for name in NAMES[:4]}
    later = replace(FIRST, done=310, running=4, rate=31.4, eta=(12.0, 14.4), tokens=18_000, seconds=9.9)
    for estimates in (some, some | dict.fromkeys(NAMES, some[NAMES[0]])):
        page.update(view(replace(later, estimates=estimates)))
        after = card.bounding_box()
        assert before and after and after["height"] == before["height"]
    expect(page.page.get_by_text("38 % (9 to 76)", exact=True).first).to_be_visible()


def test_failed_trials_stand_side_by_side_under_what_was_asked(page: Drawing) -> None:
    page.page.set_viewport_size({"width": 1100, "height": 900})
    made = view(report())
    (section,) = (each for each in made.blocks if isinstance(each, Section) and "Failures" in each.title)
    page.show(replace(made, blocks=(section,)))
    fold = page.page.locator("details").first
    fold.locator("summary").focus()
    page.page.keyboard.press("Enter")
    asked = fold.get_by_text("What do the notes say?").bounding_box()
    left, right = (fold.locator(".r-pair > .r-sec").nth(side).bounding_box() for side in (0, 1))
    assert asked and left and right
    assert asked["y"] < left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]


@pytest.mark.parametrize("script", [True, False])
def test_an_exported_report_is_whole_without_a_kernel(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: bool
) -> None:
    monkeypatch.setattr(assets, "STATIC", STATIC)
    reyn_jupyter.export(tmp_path / "report.html", report())
    with opened(browser, tmp_path / "report.html", script) as shown:
        text = shown.page.locator("main").inner_text()
        for block in view(report()).blocks:
            if isinstance(block, Section):
                assert block.title in text
            elif isinstance(block, Fold):
                assert "".join(span.text for span in block.title) in text
        assert "left out" not in text and report().finding in text
        expect(shown.page.locator(".r-chart .r-track").first).to_be_visible()
        assert not shown.elsewhere and (not script or shown.complaints == [])


def test_a_report_in_a_notebook_holds_all_its_parts() -> None:
    kept = to_snapshot(view(report()), "s")["view"]["blocks"]
    assert [each["type"] for each in kept] == [each.type for each in view(report()).blocks]
