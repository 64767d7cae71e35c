"""The first screen of a report, as somebody who decides sees it: in both themes, narrow and wide, by eye and by ear."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from reyn_jupyter import Session
from reyn_jupyter.evaluation.results.report import Report
from reyn_jupyter.evaluation.results.report import report as report_of
from reyn_jupyter.evaluation.statistics.glossary import terms_in
from reyn_jupyter.notebook.render import view
from tests.browser.drawing import Drawing, drawing
from tests.evaluation.trial_set_support import evidence, mixed, trial

AXE = Path(__file__).parents[2] / "labextension/node_modules/axe-core/axe.min.js"


@cache
def report() -> Report:
    """Two variants that are close: one finishes 18 of 100 tasks, the other 11, at twice the price."""
    failing = [
        trial(name, f"s{n:03}", 0, n < lists, answer="The notes say hello." if first <= n < last else "No idea.",
              cost=cost)
        for name, lists, (first, last), cost in (("B", 60, (0, 11), 0.001), ("A", 20, (2, 20), 0.002))
        for n in range(100)
    ]  # fmt: skip
    return report_of(evidence({"B": {}, "A": {}}, more=failing))


@pytest.fixture(scope="module", params=["light", "dark"])
def page(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Drawing]:
    with drawing(browser, Session(tmp_path_factory.mktemp("decide")), request.param, exported=True) as made:
        yield made
        assert made.shown.complaints == [] and made.shown.elsewhere == []


@pytest.mark.parametrize("width", [360, 900, 1400])
def test_the_finding_the_chart_and_what_to_use_stand_before_any_term_of_statistics(
    page: Drawing, width: int
) -> None:
    page.page.set_viewport_size({"width": width, "height": 1000})
    page.show(view(report()))
    card = page.page.locator(".reyn-view").first
    expect(
        card.get_by_text("A finishes 18 of 100 tasks, B 11; too close to call", exact=False).first
    ).to_be_visible()
    chart = card.locator(".r-scatter svg").first
    expect(chart.locator("circle")).to_have_count(2)
    boxes = [each.bounding_box() for each in (chart, card.get_by_text("What to use", exact=True).first)]
    assert boxes[0] and boxes[1] and boxes[0]["y"] < boxes[1]["y"]
    if width == 900:
        assert boxes[1]["y"] < 1000, "what to use is on the first screen"
    assert terms_in(card.inner_text()) == ()
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [360, 900])
def test_axe_finds_nothing_serious_with_the_statistics_open_and_shut(page: Drawing, width: int) -> None:
    page.page.set_viewport_size({"width": width, "height": 1000})
    page.show(view(report()))
    page.page.add_script_tag(path=str(AXE))
    for _ in range(2):
        found = page.page.evaluate("axe.run('#host', { resultTypes: ['violations'] })")["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == []
        page.page.locator("summary", has_text="The statistics").first.click()


def test_a_press_of_a_key_opens_the_statistics_with_the_sentence_of_each_term(page: Drawing) -> None:
    page.page.set_viewport_size({"width": 900, "height": 1000})
    page.show(view(report()))
    fold = page.page.locator("details", has=page.page.locator("summary", has_text="The statistics")).first
    sentence = fold.get_by_text("A pair that one variant passes and the other fails", exact=False)
    expect(sentence).to_be_hidden()
    fold.locator("summary").first.focus()
    page.page.keyboard.press("Enter")
    expect(sentence).to_be_visible()
    expect(fold.get_by_text("Armitage, McPherson and Rowe", exact=False).first).to_be_visible()


def test_the_chart_has_a_name_and_its_figures_stand_in_a_table(page: Drawing) -> None:
    page.show(view(report()))
    chart = page.page.locator(".r-scatter svg[role=img]").first
    label = chart.get_attribute("aria-label") or ""
    assert "task done against cost per trial, 2 points; the table below has the figures" in label
    cells = page.page.locator(".r-sec", has_text="Cost against success").first.locator("tbody tr")
    assert [row.split() for row in cells.all_inner_texts()] == [
        ["B", "11", "%", "(6", "to", "19)", "1,200", "$0.0010", "$0.0091", "3.0", "2.00", "s"],
        ["A", "18", "%", "(11", "to", "27)", "1,200", "$0.0020", "$0.0111", "3.0", "2.00", "s"],
    ]


def test_names_of_variants_are_text_in_every_part_of_the_screen(page: Drawing) -> None:
    name = "<img src=x onerror=window.hit=1>"
    page.show(view(report_of(evidence({name: mixed(3, 30), "b": mixed(20, 30)}))))
    assert page.page.locator(".reyn-view img").count() == 0 and page.page.evaluate("window.hit") is None
    expect(page.page.get_by_text(name, exact=False).first).to_be_visible()
