"""A person who is new to it finds an action, understands it, runs it, and takes its large result into pandas.

By roles and labels alone, as somebody who reads the page does. Screenshots of the way lie in build/screenshots.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab_support import LabPage

REPOSITORY = Path(__file__).parents[2]
AXE = REPOSITORY / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = REPOSITORY / "build" / "screenshots"
SERIOUS = """async (where) => (await axe.run(where, {resultTypes: ["violations"]})).violations
  .filter((each) => ["serious", "critical"].includes(each.impact))
  .map((each) => `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3)}`)"""

LOAD = '''%load_ext reyn_jupyter
import pandas as pd
import reyn_jupyter as reyn

@reyn.action(purity="pure")
def orders(rows: int, region: str = "north") -> pd.DataFrame:
    """Make up orders of one region.

    Args:
        rows: how many of them.
        region: where they were made.
    """
    made = [{"order": number, "region": region, "amount": number * 7919 % 10_007 / 4} for number in range(rows)]
    return pd.DataFrame(made)'''

LARGEST = max(number * 7919 % 10_007 for number in range(3000)) / 4


class Way:
    """Keeps a picture of each step, in both themes."""

    def __init__(self, lab: LabPage) -> None:
        self.lab = lab
        self.steps = 0

    def look(self, name: str, where: Locator) -> None:
        """No serious finding of axe in what was reached, in either theme; a screenshot of each."""
        self.steps += 1
        page = self.lab.page
        page.evaluate(AXE.read_text())
        for theme in ("Dark", "Light"):
            self.lab.set_theme(f"JupyterLab {theme}")
            expect(page.locator("#jupyterlab-splash")).to_have_count(0)
            where.evaluate("(element) => element.setAttribute('data-looked-at', '')")
            page.screenshot(path=SCREENSHOTS / f"journey-{self.steps}-{name}-{theme.lower()}.png")
            assert page.evaluate(SERIOUS, "[data-looked-at]") == [], f"{name}, {theme}"
            where.evaluate("(element) => element.removeAttribute('data-looked-at')")


@pytest.fixture
def way(lab: LabPage) -> Way:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return Way(lab)


def opened_result(page: Page) -> Locator:
    """The blob in the tab that was opened for it."""
    return page.get_by_role("group", name="Blob function__orders")


def test_a_newcomer_finds_runs_opens_sorts_and_takes_a_result_into_pandas(lab: LabPage, way: Way) -> None:
    page = lab.open(LOAD, "%reyn explore").run().page
    catalog = page.get_by_role("group", name="Catalog")
    expect(catalog.get_by_role("grid", name="Actions")).to_contain_text("file__read")
    way.look("catalog", catalog)

    # Finds it by typing, and opens it by Enter.
    search = catalog.get_by_role("searchbox", name="Search actions")
    search.click()
    page.keyboard.type("orders region")
    expect(catalog.get_by_role("row", name=re.compile("function__orders"))).to_be_visible()
    expect(catalog.get_by_text("1 of", exact=False).first).to_be_visible()
    page.keyboard.press("Enter")

    # Its arguments: what they are, which one is needed, what is filled in.
    action = catalog.get_by_role("region", name="function__orders")
    expect(action).to_contain_text("Make up orders of one region.")
    rows, region = action.get_by_label(re.compile("^rows")), action.get_by_label(re.compile("^region"))
    expect(rows).to_have_attribute("aria-required", "true")
    expect(rows).to_have_accessible_description(re.compile("how many of them"))
    expect(region).to_have_attribute("placeholder", "north")
    way.look("action", catalog)

    # What is wrong is said at its field, and nothing runs.
    action.get_by_role("button", name="Invoke").click()
    expect(rows).to_have_attribute("aria-invalid", "true")
    expect(rows).to_be_focused()
    way.look("wrong", catalog)

    expect(rows).to_be_focused()
    page.keyboard.type("3000")
    expect(rows).to_have_value("3000")
    action.get_by_role("button", name="Invoke").click()
    expect(action.get_by_role("group", name="result: function__orders")).to_contain_text("ok")
    way.look("result", catalog)

    # The large result in a tab of its own; a click on a heading sorts all of it.
    action.get_by_role("button", name="Open the blob").click()
    result = opened_result(page)
    grid = result.get_by_role("grid", name="Rows")
    amount = grid.get_by_role("columnheader", name=re.compile("^amount"))
    amount.click()
    expect(amount).to_have_attribute("aria-sort", "ascending")
    amount.click()
    expect(amount).to_have_attribute("aria-sort", "descending")
    largest = grid.get_by_role("row").nth(1).get_by_role("gridcell")
    expect(largest.last).to_have_text(f"{LARGEST:.2f}")
    shown = largest.all_inner_texts()
    way.look("sorted", result)

    # Into pandas: the line goes into a new cell, which is not run; run, it gives the same rows.
    result.get_by_role("button", name="Take into pandas").click()
    code = result.get_by_role("dialog", name="Take into pandas")
    expect(code).to_contain_text("sort_values")
    way.look("take", result)
    code.get_by_role("button", name=re.compile("^Insert cell")).click()
    lab.until("panel.content.widgets.length === 3")
    assert "reyn.session().blob(" in lab.source(2) and not lab.executed(2)
    lab.run(2)
    first = lab.output(2).get_by_role("row").nth(1).locator("td")
    expect(first.first).to_be_visible()
    assert [float(text) if text[0].isdigit() else text for text in first.all_inner_texts()] == [
        float(text) if text[0].isdigit() else text for text in shown
    ]
    way.look("pandas", lab.output(2))
    lab.script("[...window.jupyterapp.shell.widgets('main')].find((each) => !each.context).close()")
