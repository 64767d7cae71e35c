"""Views of several hosts on one page: each looks as it does by itself, whichever came first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from reyn_jupyter.evaluation.results.report import report as report_of
from reyn_jupyter.notebook.displays.mimebundle import live_of
from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.session import Session
from tests.browser.browser_support import bare
from tests.browser.lab_support import LabPage
from tests.notebook.render.study_samples import nine

# What changes of the look of any element, or of what is drawn before it, when the sheets count in the reverse order.
CHANGES = """async () => {
  for (const link of document.querySelectorAll("link[rel=stylesheet]")) { // one that moves would be loaded again
    const sheet = document.createElement("style");
    sheet.textContent = await (await fetch(link.href)).text();
    link.replaceWith(sheet);
  }
  const all = [...document.querySelectorAll(".reyn-view, .reyn-view *:not(style)")];
  const elements = all.filter((element) => element.checkVisibility()); // what is folded away has no size yet
  const look = (element) => ["", "::before"].map((pseudo) => {
    const style = getComputedStyle(element, pseudo);
    const names = [...style].filter((name) => !name.startsWith("--")); // a variable is seen where it is used
    return names.map((name) => `${name}: ${style.getPropertyValue(name)}`);
  }).flat();
  const before = elements.map(look);
  const sheets = [...document.querySelectorAll("style")];
  document.head.append(...sheets.reverse());
  const found = elements.flatMap((element, place) => {
    const after = look(element);
    const moved = before[place].flatMap((old, at) => (old === after[at] ? [] : [`${old} → ${after[at]}`]));
    const name = `${element.localName}.${element.getAttribute("class")}`;
    return moved.length ? [`${name}: ${moved.slice(0, 4).join("; ")}`] : [];
  });
  return { sheets: sheets.length, found: [...new Set(found)].slice(0, 20) };
}"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(current, "_current", [])
    return current.session()


def table(session: Session) -> Any:
    def give() -> pd.DataFrame:
        return pd.DataFrame({"amount": range(300), "place": [f"place {n}" for n in range(300)]})

    session.action(give)
    return session.invoke_action("function__give")


def document(session: Session) -> Any:
    def write() -> dict[str, Any]:
        return {"items": [{"name": f"item {n}", "text": "long " * 20} for n in range(100)]}

    session.action(write)
    return session.invoke_action("function__write")


def explorer(session: Session) -> Any:
    return session.explore()


def run(session: Session) -> Any:
    session.invoke_action("file__list", {"path": "."})
    return session.runs[0]


LIVE: dict[str, Callable[[Session], Any]] = {
    "table": table,
    "document": document,
    "explorer": explorer,
    "run": run,
}
READY = {
    "table": "[role=grid] td",
    "document": "[role=treeitem]",
    "explorer": "[role=grid] td",
    "run": ".r-head",
}


@pytest.mark.parametrize("name", LIVE)
def test_the_order_of_the_sheets_changes_no_look(browser: Browser, session: Session, name: str) -> None:
    shown = LIVE[name](session)
    snapshot = to_snapshot(view(shown), current.SESSION_ID, live_of(shown))
    with bare(browser, session, snapshot) as page:
        expect(page.page.locator(f"#host {READY[name]}").first).to_be_visible()
        report = view(report_of(nine()))
        page.page.evaluate(
            "html => document.getElementById('host').insertAdjacentHTML('afterend', html)",
            to_html(replace(report, blocks=report.blocks[:6])),
        )
        widths = chart_widths(page.page)
        assert min(widths) > 300
        changes = page.page.evaluate(CHANGES)
        assert changes["sheets"] >= 2
        assert "\n".join(changes["found"]) == ""
        assert chart_widths(page.page) == widths


def chart_widths(page: Page) -> list[float]:
    """How wide each drawing of a chart is that is in sight."""
    found: list[float] = page.evaluate(
        """() => [...document.querySelectorAll(".r-chart .r-track")].filter((each) => each.checkVisibility())
          .map((each) => each.getBoundingClientRect().width)"""
    )
    return found


REPORT = """%load_ext reyn_jupyter
from reyn_jupyter import Study, Variant

def report():
    study = Study(None, suite="mandates")
    return study.run(Variant("base", model="simulator"), n=4) and study.report()"""
WIDGET = """import reyn_jupyter as reyn
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.serving.protocol import LiveCatalog
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.notebook.displays.widget import LiveWidget
from reyn_jupyter.sessions import current

LiveWidget(to_snapshot(view(reyn.session().explore()), current.SESSION_ID, LiveCatalog(query="")))"""


@pytest.mark.parametrize(
    "cells", [("report()", WIDGET), (WIDGET, "report()")], ids=["report first", "widget first"]
)
def test_a_report_keeps_its_charts_beside_a_widget_and_another_notebook(
    lab: LabPage, cells: tuple[str, str]
) -> None:
    other = lab.open(REPORT, "report()").run().name
    lab.save()
    mine = lab.open(REPORT, *cells).run().name
    report, widget = lab.output(1 + cells.index("report()")), lab.output(1 + cells.index(WIDGET))
    expect(widget.get_by_role("grid")).to_contain_text("file__read")
    expect(report.locator(".r-track").first).to_be_visible()
    assert min(chart_widths(lab.page)) > 150
    lab.save()
    lab.reload()
    expect(widget.get_by_role("grid")).to_contain_text("file__read")
    expect(report.locator(".r-track").first).to_be_visible()
    assert min(chart_widths(lab.page)) > 150
    lab.show(other)
    expect(lab.output(1).locator(".r-track").first).to_be_visible()
    assert min(chart_widths(lab.page)) > 150
    lab.close()
    lab.name = mine
