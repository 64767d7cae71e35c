"""A press on a heading sorts the column below it: frames with every kind of index, in each place that shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from reyn_jupyter.notebook.displays.mimebundle import live_of
from reyn_jupyter.notebook.export import export
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.result_objects import Result
from reyn_jupyter.sessions.session import Session
from tests.browser.browser_support import Bare, bare
from tests.browser.lab_support import LabPage
from tests.browser.test_export import opened

# Every column has an order of its own, so that a press that sorts another one is seen.
AMOUNTS = [(number * 37) % 101 - 50 for number in range(101)]
PLACES = [f"place {(number * 53) % 101:03}" for number in range(101)]
DAYS = pd.date_range("2024-01-01", periods=101)
TALL = pd.DataFrame({"amount": AMOUNTS, "place": PLACES, "day": DAYS[::-1]})
FRAMES = {
    "numbered rows": TALL,
    "named index": TALL.set_axis(pd.Index([(n * 71) % 101 for n in range(101)], name="customer")),
    "unnamed texts": TALL.set_axis([f"row {(n * 29) % 101:03}" for n in range(101)]),
    "named range": TALL.rename_axis("number"),
    "MultiIndex": TALL.set_axis(
        pd.MultiIndex.from_arrays(
            [[f"region {(n * 11) % 7}" for n in range(101)], [(n * 83) % 101 for n in range(101)]],
            names=["region", "n"],
        )
    ),
    "five levels": TALL.set_axis(
        pd.MultiIndex.from_arrays([[(n * k) % 101 for n in range(101)] for k in (3, 5, 7, 9, 13)])
    ),
}
COLUMNS = ("amount", "place", "day")


@pytest.fixture
def session(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(current, "_current", [])
    return current.session()


def stored(session: Session, frame: pd.DataFrame) -> Result:
    """The result of an action that returns a frame."""

    def give() -> pd.DataFrame:
        return frame

    session.action(give)
    return session.invoke_action("function__give")


def query(session: Session, frame: pd.DataFrame) -> Result:
    """The result of a query."""
    frame.to_csv("tall.csv", index=False)
    return session.invoke_action(
        "table__query", {"sql": "select * from tall", "sources": {"tall": "tall.csv"}}
    )


RESULTS = dict.fromkeys(FRAMES, stored) | {"query": query}


@contextmanager
def shown_result(browser: Browser, session: Session, result: Result, **options: Any) -> Iterator[Bare]:
    snapshot = to_snapshot(view(result), current.SESSION_ID, live_of(result))
    with bare(browser, session, snapshot, **options) as shown:
        yield shown
        assert shown.complaints == [] and shown.elsewhere == []


def result_of(session: Session, kind: str) -> Result:
    result = RESULTS[kind](session, FRAMES.get(kind, TALL))
    assert result.error is None and result.blob is not None, result.payload
    return result


def head(page: Page, name: str) -> Locator:
    return page.get_by_role("columnheader", name=re.compile(rf"^{name}\b"))


def column(page: Page, name: str) -> Locator:
    """The cells in sight of a column of the grid."""
    place = head(page, name).get_attribute("data-place")
    return page.locator(f"tbody [data-place='{place}']")


def first_rows(name: str, *, descending: bool = False) -> list[str]:
    values = sorted(TALL[name].tolist(), reverse=descending)[:3]
    return [str(each)[:10] if name == "day" else str(each) for each in values]


@pytest.mark.parametrize("kind", RESULTS)
def test_a_press_sorts_the_column_below_it(browser: Browser, session: Session, kind: str) -> None:
    with shown_result(browser, session, result_of(session, kind)) as shown:
        page = shown.page
        expect(page.locator(".r-status")).to_contain_text(re.compile(r"^101 rows × \d columns · rows 1–"))
        for name in COLUMNS:
            for order in ("ascending", "descending"):
                head(page, name).click()
                expect(head(page, name)).to_have_attribute("aria-sort", order)
                wanted = first_rows(name, descending=order == "descending")
                expect(column(page, name).first).to_have_text(wanted[0])
                assert column(page, name).all_inner_texts()[:3] == wanted
                expect(page.locator(".r-status")).to_contain_text(f"sorted by {name}")


@pytest.mark.parametrize("kind", RESULTS)
def test_a_press_before_the_kernel_has_answered_sorts_the_same_column(
    browser: Browser, session: Session, kind: str
) -> None:
    result = result_of(session, kind)
    snapshot = to_snapshot(view(result), current.SESSION_ID, live_of(result))
    with bare(browser, session, snapshot, hold=("frame.open",)) as shown:
        page = shown.page
        expect(page.get_by_role("grid")).to_be_visible()
        expect(page.locator(".r-status")).not_to_contain_text("rows 1–")
        head(page, "amount").click()
        shown.server.release("frame.open")
        expect(head(page, "amount")).to_have_attribute("aria-sort", "ascending")
        expect(column(page, "amount").first).to_have_text("-50")
        head(page, "place").get_by_role("button").click()
        expect(page.get_by_role("dialog", name="Column place")).to_contain_text("place 000")


@pytest.mark.parametrize("kind", RESULTS)
def test_a_snapshot_without_its_kernel_sorts_its_own_rows(
    browser: Browser, session: Session, kind: str
) -> None:
    result = result_of(session, kind)
    snapshot = {**to_snapshot(view(result), "of an earlier kernel"), "live": None}
    with bare(browser, session, snapshot) as shown:
        page = shown.page
        names = page.locator("thead tr > *").all_inner_texts()
        for name in COLUMNS:
            page.get_by_role("button", name=name, exact=True).click()
            place = next(at for at, each in enumerate(names) if each.startswith(name))
            drawn = page.locator(f"tbody tr > :nth-child({place + 1})").all_inner_texts()
            wanted = sorted(TALL[name].tolist()[:20])
            assert drawn == [str(each)[:10] if name == "day" else str(each) for each in wanted]


@pytest.mark.parametrize("kind", RESULTS)
def test_an_exported_page_sorts_the_rows_that_it_holds(browser: Browser, session: Session, kind: str) -> None:
    export("page.html", result_of(session, kind))
    with opened(browser, Path("page.html").absolute()) as shown:
        page = shown.page
        expect(page.locator(".r-status")).to_contain_text("rows 1–")
        for name in COLUMNS:
            for order in ("ascending", "descending"):
                head(page, name).click()
                expect(head(page, name)).to_have_attribute("aria-sort", order)
                wanted = first_rows(name, descending=order == "descending")
                assert column(page, name).all_inner_texts()[:3] == wanted
        head(page, "day").click()
        expect(head(page, "day")).to_have_attribute("aria-sort", "none")
        assert column(page, "amount").first.inner_text() == str(AMOUNTS[0])
        assert shown.complaints == [] and shown.elsewhere == []


def test_an_exported_page_that_holds_a_part_sorts_that_and_says_so(
    browser: Browser, session: Session
) -> None:
    numbers = [None if n % 50 == 3 else (n * 37) % 3001 for n in range(3000)]
    frame = pd.DataFrame({"amount": pd.array(numbers, dtype="Int64"), "group": [n % 2 for n in range(3000)]})
    export("page.html", stored(session, frame))
    with opened(browser, Path("page.html").absolute()) as shown:
        page = shown.page
        expect(page.locator(".r-status")).to_contain_text("3,000 rows × 2 columns")
        expect(page.locator(".r-status")).to_contain_text("the first 200 are in this page")
        head(page, "amount").click()
        expect(page.locator(".r-status")).to_contain_text("sorted by amount ↑ among themselves")
        present = sorted(each for each in numbers[:200] if each is not None)
        assert column(page, "amount").all_inner_texts()[:5] == [str(each) for each in present[:5]]
        head(page, "amount").click()
        expect(head(page, "amount")).to_have_attribute("aria-sort", "descending")
        assert column(page, "amount").all_inner_texts()[:5] == [str(each) for each in present[:-6:-1]]
        page.locator(".r-port").evaluate("port => (port.scrollTop = port.scrollHeight)")
        expect(column(page, "amount").last).to_have_text("<NA>")
        assert shown.complaints == [] and shown.elsewhere == []


@pytest.mark.parametrize("kind", ["numbered rows", "named index", "MultiIndex"])
def test_in_jupyterlab_a_press_sorts_the_column_below_it(lab: LabPage, kind: str) -> None:
    table = ", ".join(
        f"{name}={TALL[name].astype(str).tolist() if name == 'day' else TALL[name].tolist()}"
        for name in COLUMNS
    )
    index = {
        "numbered rows": "",
        "named index": ".rename_axis('customer').iloc[::-1]",
        "MultiIndex": ".assign(n=range(101), m=range(0, 202, 2)).set_index(['n', 'm'])",
    }[kind]
    made = f"""%load_ext reyn_jupyter
import pandas as pd
import reyn_jupyter as reyn

@reyn.action
def give() -> pd.DataFrame:
    return pd.DataFrame(dict({table})){index}"""
    lab.open(made, "%reyn invoke function__give").run()
    grid = lab.output(1)
    expect(grid.locator(".r-status")).to_contain_text("101 rows × 3 columns · rows 1–")
    for name in COLUMNS:
        grid.get_by_role("columnheader", name=re.compile(rf"^{name}\b")).click()
        expect(grid.locator(".r-status")).to_contain_text(f"sorted by {name} ↑")
        place = grid.get_by_role("columnheader", name=re.compile(rf"^{name}\b")).get_attribute("data-place")
        expect(grid.locator(f"tbody [data-place='{place}']").first).to_have_text(first_rows(name)[0])
