"""The data grid in a page: a million rows, by mouse and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, expect

import reyn_jupyter as reyn
from reyn_jupyter.notebook.serving.viewed_frames import PREFIX, VIEWED
from reyn_jupyter.outputs.content import Structured
from reyn_jupyter.outputs.frames.records import to_structured
from reyn_jupyter.sessions.current import SESSION_ID
from reyn_jupyter.sessions.session import Session
from tests.browser.browser_support import Bare, bare
from tests.notebook.render.samples import HOSTILE

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
ROWS = 1_000_000


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(root=tmp_path_factory.mktemp("grid"), store="memory")


def stored(session: Session, frame: pd.DataFrame) -> str:
    """The blob of a frame, put into the session's store without the detour over an action."""
    store: Any = session.parts.services.blobs
    return str(store.put(to_structured(frame), action="table__query").id)


@pytest.fixture(scope="module")
def million(session: Session) -> str:
    """A million records of one value: encoding a frame of that size would take most of the time of these tests."""
    store: Any = session.parts.services.blobs
    return str(store.put(Structured([{"id": n} for n in range(ROWS)]), action="table__query").id)


@pytest.fixture(scope="module", params=["numbered rows", "named index", "MultiIndex"])
def orders(session: Session, request: pytest.FixtureRequest) -> str:
    rows = np.arange(3000)
    frame = pd.DataFrame(
        {
            "order": rows,
            "amount": (rows * 7919 % 1000) / 8,
            "region": np.array(["north", "south", None], dtype=object)[rows % 3],
            "note": ["a long note " * 30 + str(n) for n in rows],
        }
    )
    if request.param == "named index":
        frame.index = pd.Index(rows[::-1], name="serial")
    elif request.param == "MultiIndex":
        frame.index = pd.MultiIndex.from_arrays([rows % 7, rows[::-1]], names=["week", "serial"])
    return stored(session, frame)


@contextmanager
def grid(
    browser: Browser, session: Session, blob: str, theme: str = "light", *, shadow: bool = False
) -> Iterator[Bare]:
    in_memory = {"type": "frame", "frame": blob}
    snapshot = {
        "protocol": 1,
        "session": SESSION_ID,
        "view": {"kind": "blob", "title": blob, "badges": [], "facts": [], "blocks": [], "knob": ""},
        "live": in_memory if blob.startswith(PREFIX) else {"type": "blob", "blob": blob, "selector": None},
    }
    with bare(browser, session, snapshot, theme, shadow=shadow) as shown:
        expect(shown.page.get_by_role("grid")).to_be_visible()
        expect(shown.page.get_by_role("gridcell").first).not_to_have_text("…")
        yield shown
        assert shown.complaints == [] and shown.elsewhere == []


def status(shown: Bare) -> Any:
    return shown.page.locator(".r-status")


def head(shown: Bare, name: str) -> Any:
    return shown.page.get_by_role("columnheader", name=re.compile(rf"^{name}\b"))


def column(shown: Bare, name: str) -> Any:
    """The cells in sight of one column."""
    return shown.page.locator(f"tbody [aria-colindex='{head(shown, name).get_attribute('aria-colindex')}']")


def cells(shown: Bare, name: str) -> list[str]:
    return column(shown, name).all_inner_texts()


def test_the_last_of_a_million_rows_is_reached_by_scrolling_and_by_its_number(
    browser: Browser, session: Session, million: str
) -> None:
    with grid(browser, session, million) as shown:
        expect(status(shown)).to_contain_text("1,000,000 rows × 1 column · rows 1–")
        shown.page.locator(".r-port").evaluate("port => (port.scrollTop = port.scrollHeight)")
        last = shown.page.locator("tr[aria-rowindex='1000001']")
        expect(last).to_be_in_viewport()
        expect(last).to_contain_text("999999")
        expect(status(shown)).to_contain_text("1,000,000")
        shown.page.get_by_label("Go to row").fill("500000")
        shown.page.keyboard.press("Enter")
        expect(shown.page.locator("tr[aria-rowindex='500001']")).to_contain_text("499999")
        drawn = shown.page.locator("tbody tr").count()
        assert drawn < 60
        assert shown.page.get_by_role("grid").get_attribute("aria-rowcount") == "1000001"


def test_presses_that_come_faster_than_the_kernel_answers_all_count(
    browser: Browser, session: Session, orders: str
) -> None:
    with grid(browser, session, orders) as shown:
        head(shown, "amount").dblclick()
        expect(head(shown, "amount")).to_have_attribute("aria-sort", "descending")


def test_a_press_on_a_heading_counts_though_another_answer_comes_meanwhile(
    browser: Browser, session: Session, orders: str
) -> None:
    with grid(browser, session, orders) as shown:
        head(shown, "region").hover()
        shown.page.mouse.down()
        head(shown, "amount").evaluate("heading => heading.click()")
        expect(head(shown, "amount")).to_have_attribute("aria-sort", "ascending")
        shown.page.mouse.up()
        expect(head(shown, "region")).to_have_attribute("aria-sort", "ascending")


def test_a_number_that_is_typed_while_an_answer_comes_stays(
    browser: Browser, session: Session, orders: str
) -> None:
    with grid(browser, session, orders) as shown:
        row = shown.page.get_by_label("Go to row")
        shown.server.hold("frame.rows")
        head(shown, "amount").click()
        row.focus()
        shown.page.keyboard.type("10")
        shown.requests()
        shown.server.release("frame.rows")
        expect(head(shown, "amount")).to_have_attribute("aria-sort", "ascending")
        shown.page.keyboard.type("0")
        expect(row).to_have_value("100")
        shown.page.keyboard.press("Enter")
        expect(shown.page.locator("tr[aria-rowindex='101']")).to_be_in_viewport()


def test_headings_sort_one_way_the_other_way_and_not_at_all(
    browser: Browser, session: Session, orders: str
) -> None:
    with grid(browser, session, orders) as shown:
        head(shown, "amount").click()
        expect(head(shown, "amount")).to_have_attribute("aria-sort", "ascending")
        first = [float(text) for text in cells(shown, "amount")]
        assert first == sorted(first)
        head(shown, "amount").click()
        expect(head(shown, "amount")).to_have_attribute("aria-sort", "descending")
        expect(column(shown, "amount").first).to_have_text("124.875")
        head(shown, "region").click(modifiers=["Shift"])
        expect(status(shown)).to_contain_text("sorted by amount ↓, region ↑")
        head(shown, "amount").click()
        expect(head(shown, "amount")).to_have_attribute("aria-sort", "none")
        expect(column(shown, "order").first).to_have_text("0")


def test_a_filter_shows_what_matches_with_figures_beside_it(
    browser: Browser, session: Session, orders: str
) -> None:
    with grid(browser, session, orders) as shown:
        head(shown, "region").get_by_role("button").click()
        menu = shown.page.get_by_role("dialog")
        expect(menu).to_contain_text("missing")
        expect(menu).to_contain_text("1,000")
        menu.get_by_role("textbox").fill("nor")
        shown.page.keyboard.press("Enter")
        expect(status(shown)).to_contain_text("1,000 match region contains nor")
        assert set(cells(shown, "region")) == {"north"}
        shown.page.get_by_role("button", name="Clear filters").click()
        expect(status(shown)).not_to_contain_text("match")
        head(shown, "amount").get_by_role("button").click()
        expect(menu.get_by_role("img")).to_be_visible()
        menu.get_by_role("textbox").fill("many")
        shown.page.keyboard.press("Enter")
        expect(shown.page.get_by_role("alert")).to_contain_text("'many' is no number")
        assert cells(shown, "order")[0] == "0", "what was shown stays"


def test_the_keyboard_goes_everywhere(browser: Browser, session: Session, orders: str) -> None:
    with grid(browser, session, orders) as shown:
        page = shown.page

        def focused() -> tuple[str | None, str | None]:
            at = page.locator("table :focus")
            return at.get_attribute("data-row"), at.get_attribute("aria-colindex")

        order, amount, _, note = (
            head(shown, name).get_attribute("aria-colindex") for name in ("order", "amount", "region", "note")
        )
        page.locator("tbody tr").first.locator("td").first.click()
        page.locator("table [tabindex='0']").focus()
        assert focused() == ("0", order)
        for key, expected in (
            ("ArrowDown", ("1", order)),
            ("ArrowRight", ("1", amount)),
            ("End", ("1", note)),
            ("Home", ("1", "1")),
            ("Control+End", ("2999", note)),
            ("PageUp", None),
            ("Control+Home", ("0", "1")),
            *(("ArrowRight", ("0", str(place))) for place in range(2, int(order or 0) + 1)),
            ("ArrowUp", ("-1", order)),
        ):
            page.keyboard.press(key)
            assert expected is None or focused() == expected, key
        page.keyboard.press("Enter")
        expect(head(shown, "order")).to_have_attribute("aria-sort", "ascending")
        page.keyboard.press("Alt+ArrowDown")
        expect(page.get_by_role("dialog").get_by_role("textbox")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        assert focused() == ("-1", order)


def test_a_cut_cell_is_shown_and_copied_whole(browser: Browser, session: Session, orders: str) -> None:
    with grid(browser, session, orders) as shown:
        page = shown.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("tbody tr").nth(2).locator("td").last.click()
        page.locator("table [tabindex='0']").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Row 3")
        expect(dialog.locator("pre")).to_have_text("a long note " * 30 + "2")
        page.keyboard.press("Escape")
        page.keyboard.press("Control+c")
        expect(status(shown)).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == "a long note " * 30 + "2"


def test_the_way_into_pandas_is_code_for_the_rows_shown(
    browser: Browser, session: Session, orders: str
) -> None:
    with grid(browser, session, orders) as shown:
        head(shown, "amount").click()
        expect(head(shown, "amount")).to_have_attribute("aria-sort", "ascending")
        shown.page.get_by_role("button", name="Take into pandas").click()
        code = shown.page.get_by_role("dialog").locator("pre")
        expect(code).to_contain_text(f"df = reyn.session().blob('{orders}').df")
        expect(code).to_contain_text("df.sort_values('amount', kind=\"stable\")")


def test_ten_thousand_columns_come_page_by_page(browser: Browser, session: Session) -> None:
    blob = stored(session, pd.DataFrame(np.arange(30_000).reshape(3, 10_000)))
    with grid(browser, session, blob) as shown:
        assert shown.page.get_by_role("grid").get_attribute("aria-colcount") == "10001"
        shown.page.get_by_label("Go to column", exact=True).first.fill("9999")
        shown.page.keyboard.press("Enter")
        expect(head(shown, "9998")).to_be_visible()
        expect(shown.page.locator("tbody [aria-colindex='10000']").last).to_have_text("29998")
        assert shown.page.locator("tbody td").count() == 120


def test_hostile_texts_do_no_harm_as_cells_and_as_headings(browser: Browser, session: Session) -> None:
    # As objects: where pyarrow is installed, pandas would else make strings of its own, which hold no half of a letter.
    names = pd.Index(HOSTILE, dtype=object)
    blob = stored(session, pd.DataFrame([HOSTILE] * 30, columns=names, dtype=object))
    with grid(browser, session, blob) as shown:
        assert shown.page.evaluate("window.ran") is None
        texts = shown.page.locator("tbody tr").first.inner_text()
        assert "<script>" in texts and "\u202e" not in texts and "⟨U+202E⟩" in texts


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_assistive_technology(
    browser: Browser, session: Session, orders: str, theme: str
) -> None:
    with grid(browser, session, orders, theme) as shown:
        head(shown, "amount").get_by_role("button").click()
        expect(shown.page.get_by_role("dialog").get_by_role("img")).to_be_visible()
        shown.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = shown.page.evaluate("axe.run('#host').then(result => result.violations)")
        serious = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found
                   if each["impact"] in ("serious", "critical")]  # fmt: skip
        assert serious == []


def test_a_kernel_that_falls_silent_loses_nothing_that_is_shown(
    browser: Browser, session: Session, million: str
) -> None:
    with grid(browser, session, million) as shown:
        shown.server.silent.set()
        shown.page.locator(".r-port").evaluate("port => (port.scrollTop = 250000)")
        expect(shown.page.locator("tbody tr").nth(12)).to_contain_text("…")
        shown.page.locator(".r-port").evaluate("port => (port.scrollTop = 0)")
        expect(shown.page.locator("tr[aria-rowindex='2']")).to_contain_text("0")


def bars(shown: Bare, name: str) -> Any:
    return head(shown, name).locator("[data-bar]")


def test_a_frame_in_memory_is_sorted_and_filtered_by_its_heads(browser: Browser, session: Session) -> None:
    rows = np.arange(1200)
    frame = pd.DataFrame(
        {"number": rows[::-1], "region": np.array(["north", "south", "east"])[rows % 3]},
        index=pd.MultiIndex.from_arrays([rows % 7, rows], names=["week", "serial"]),
    )
    with grid(browser, session, VIEWED.hold(reyn.view(frame, name="big"))) as shown:
        expect(bars(shown, "number")).to_have_count(10)
        expect(bars(shown, "region")).to_have_count(3)
        head(shown, "number").locator("bdi").click()
        expect(column(shown, "number").first).to_have_text("0")
        bars(shown, "region").nth(1).click()
        expect(status(shown)).to_contain_text("400 match region = south")
        assert set(cells(shown, "region")) == {"south"}
        bars(shown, "number").first.click()
        expect(status(shown)).to_contain_text("40 match")
        assert max(map(int, cells(shown, "number"))) < 120
        shown.page.get_by_role("button", name="Clear filters").click()
        expect(status(shown)).to_contain_text("1,200 rows × 2 columns")


def test_the_menu_of_a_column_shows_and_keeps_both_ends_of_a_range(
    browser: Browser, session: Session
) -> None:
    frame = pd.DataFrame({"number": range(1001)})
    with grid(browser, session, VIEWED.hold(reyn.view(frame, name="numbers"))) as shown:
        bars(shown, "number").nth(1).click()
        expect(status(shown)).to_contain_text("100 match number ≥ 100, number < 200")
        head(shown, "number").get_by_role("button").click()
        menu = shown.page.get_by_role("dialog")
        ends = menu.get_by_role("textbox")
        assert [each.input_value() for each in ends.all()] == ["100", "200"]
        ends.last.fill("110")
        shown.page.keyboard.press("Enter")
        expect(status(shown)).to_contain_text("10 match number ≥ 100, number < 110")
        head(shown, "number").get_by_role("button").click()
        menu.get_by_role("button", name="Clear").click()
        expect(status(shown)).not_to_contain_text("match")


def test_the_bars_of_a_stored_table_filter_it_too(browser: Browser, session: Session, orders: str) -> None:
    with grid(browser, session, orders) as shown:
        bars(shown, "region").first.click()
        expect(status(shown)).to_contain_text("1,000 match")
        expect(head(shown, "region")).to_have_attribute("aria-sort", "none")


def test_the_keyboard_keeps_its_place_in_a_shadow_tree(
    browser: Browser, session: Session, million: str
) -> None:
    with grid(browser, session, million, shadow=True) as shown:
        page = shown.page
        first = page.get_by_role("gridcell", name="0", exact=True).last
        first.click()
        page.keyboard.press("Control+End")
        expect(page.get_by_role("gridcell", name=f"{ROWS - 1}", exact=True)).to_be_focused()
        page.keyboard.press("Control+Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Alt+ArrowDown")
        menu = page.get_by_role("dialog")
        expect(menu).to_be_visible()
        page.keyboard.press("Escape")
        expect(menu).to_be_hidden()
        assert page.evaluate("document.querySelector('#host').shadowRoot.activeElement?.dataset.row") == "-1"
