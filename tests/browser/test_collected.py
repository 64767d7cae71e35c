"""A blob that is collected while it is open: what was fetched stays, and the rest says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.render.blocks import Notice, View
from reyn_jupyter.notebook.serving.protocol import LiveBlob
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.outputs.content import Structured, Text
from reyn_jupyter.sessions.current import SESSION_ID
from tests.browser.browser_support import bare


@contextmanager
def open_then_collected(browser: Browser, root: Path, value: Any, seen: str) -> Iterator[Page]:
    """The page of a blob after its first window is there and its files are not."""
    session = Session(root)
    store: Any = session.parts.services.blobs
    blob = store.put(Text(value) if isinstance(value, str) else Structured(value)).id
    made = to_snapshot(View("blob", blob, blocks=(Notice("saved"),)), SESSION_ID, LiveBlob(blob=blob))
    with bare(browser, session, made) as shown:
        expect(shown.page.locator("#host")).to_contain_text(seen)
        session.collect_blobs(max_age_days=0, keep=[])
        assert not list(store.list())
        yield shown.page
        expect(shown.page.locator("#host")).to_contain_text(seen)
        assert shown.complaints == [] and shown.elsewhere == []


def told(page: Page) -> None:
    expect(
        page.locator("#host").get_by_text("collected").or_(page.get_by_text("removed")).first
    ).to_be_visible()


def test_a_table(browser: Browser, tmp_path: Path) -> None:
    rows = [{"name": f"row {number}", "number": number} for number in range(5000)]
    with open_then_collected(browser, tmp_path, rows, "row 3") as page:
        page.get_by_role("columnheader", name="number").first.click()
        told(page)


def test_a_tree(browser: Browser, tmp_path: Path) -> None:
    value = {"first": {str(number): ["x" * 50] * 3 for number in range(300)}, "second": 2}
    with open_then_collected(browser, tmp_path, value, "second") as page:
        page.get_by_role("treeitem").filter(has_text="first").first.click()
        page.keyboard.press("ArrowRight")
        told(page)


def test_a_text(browser: Browser, tmp_path: Path) -> None:
    lines = "\n".join(f"line {number}" for number in range(9000))
    with open_then_collected(browser, tmp_path, lines, "line 3") as page:
        page.get_by_role("searchbox").first.fill("line 8123")
        page.get_by_role("searchbox").first.press("Enter")
        told(page)
