"""Between the snapshot and the live view: nothing that is shown is taken away, whatever the kernel does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.serving.protocol import Live, LiveBlob, LiveCatalog, LiveDiff, LiveTrace
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.outputs.content import Structured, Text
from reyn_jupyter.outputs.frames.records import to_structured
from reyn_jupyter.sessions.current import SESSION_ID
from tests.browser.browser_support import Bare, bare, open_details
from tests.browser.run_samples import snapshot, two_runs

# Notes every moment at which the words are not on the page, before the next frame is drawn.
WATCH = """(words) => {
  window.gone = [];
  const look = () => { if (!document.body.innerText.includes(words)) window.gone.push(document.body.innerText); };
  look();
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true,
    attributes: true });
}"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("opening"))


@pytest.fixture(scope="module")
def store(session: Session) -> Callable[[Any], Any]:
    kept: Any = session.parts.services.blobs

    def put(value: Any) -> Any:
        if isinstance(value, pd.DataFrame):
            content = to_structured(value)
        else:
            content = Text(value) if isinstance(value, str) else Structured(value)
        return session.blob(str(kept.put(content).id))

    return put


@contextmanager
def slow(browser: Browser, session: Session, saved: dict[str, Any], words: str) -> Iterator[Bare]:
    """A page whose kernel is silent at first; the words have to be there from the first moment on."""
    with bare(browser, session, saved, silent=True) as shown:
        shown.page.evaluate(WATCH, words)
        yield shown
        assert shown.page.evaluate("window.gone") == []
        assert shown.complaints == []


def saved_of(shown: Any, live: Live) -> dict[str, Any]:
    return to_snapshot(view(shown), SESSION_ID, live)


def rows(count: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": [f"row {number}" for number in range(count)],
            "value": [number / 4 for number in range(count)],
        }
    )


def test_the_first_rows_of_a_table_stay_from_the_snapshot_to_the_live_grid(
    browser: Browser, session: Session, store: Callable[[Any], Any]
) -> None:
    blob = store(rows(1_000))
    with slow(browser, session, saved_of(blob, LiveBlob(blob=blob.id)), "row 0") as shown:
        expect(shown.page.get_by_role("cell", name="row 0", exact=True)).to_be_visible()
        shown.server.silent.clear()
        expect(shown.page.get_by_role("grid")).to_have_attribute("aria-rowcount", "1001")
        expect(shown.page.get_by_role("gridcell", name="row 0", exact=True)).to_be_visible()


def test_a_grid_shows_the_snapshot_s_rows_while_the_kernel_has_not_sent_any(
    browser: Browser, session: Session, store: Callable[[Any], Any]
) -> None:
    blob = store(rows(1_000))
    with slow(browser, session, saved_of(blob, LiveBlob(blob=blob.id)), "row 0") as shown:
        shown.server.mute.add("frame.open")
        shown.server.silent.clear()
        page = shown.page
        expect(page.get_by_role("gridcell", name="row 0", exact=True)).to_be_visible()
        expect(page.locator(".r-status").first).to_contain_text("1,000 rows × 2 columns")
        expect(page.get_by_text("Waiting for the kernel")).to_be_visible()


@pytest.mark.parametrize(
    ("value", "words"),
    [({"first key": 1, "second": [1, 2, 3]}, "first key"), ("line one\nline two\n" * 50, "line two")],
    ids=["tree", "text"],
)
def test_a_tree_and_a_text_stay_too(
    browser: Browser, session: Session, store: Callable[[Any], Any], value: Any, words: str
) -> None:
    blob = store(value)
    with slow(browser, session, saved_of(blob, LiveBlob(blob=blob.id)), words) as shown:
        shown.server.silent.clear()
        live = shown.page.get_by_role("tree").or_(shown.page.get_by_label("Text, "))
        expect(live.first).to_contain_text(words)
        expect(shown.page.locator(".r-lines, details")).to_have_count(1)  # About this blob


def test_the_catalog_stays_until_the_explorer_has_it(browser: Browser, session: Session) -> None:
    with slow(browser, session, saved_of(session.explore(""), LiveCatalog()), "file__read") as shown:
        shown.server.mute.add("catalog.page")
        shown.server.silent.clear()
        expect(shown.page.get_by_text("Waiting for the kernel")).to_be_visible()
        expect(shown.page.get_by_role("searchbox")).to_have_count(0)


def test_a_run_stays_when_it_cannot_be_opened_and_can_be_tried_again(
    browser: Browser, tmp_path: Path
) -> None:
    session, run, _ = two_runs(tmp_path)
    saved = snapshot(run, LiveTrace(run="20200101T000000-nothing"))
    with slow(browser, session, saved, "It holds three lines.") as shown:
        shown.server.silent.clear()
        alert = shown.page.get_by_role("alert")
        expect(alert).to_contain_text("%reyn runs lists")
        alert.get_by_role("button", name="Try again").click()
        expect(alert).to_contain_text("%reyn runs lists")


def test_a_run_and_a_comparison_stay_until_they_are_live(browser: Browser, tmp_path: Path) -> None:
    session, run, other = two_runs(tmp_path)
    with slow(browser, session, snapshot(run, LiveTrace(run=run.run)), "It holds three lines.") as shown:
        shown.server.silent.clear()
        open_details(shown.page)
        expect(shown.page.get_by_role("listbox", name="Steps")).to_be_visible()
    diff = session.diff(run.run, other.run)
    with slow(browser, session, saved_of(diff, LiveDiff(a=run.run, b=other.run)), "prompt") as shown:
        shown.server.silent.clear()
        expect(shown.page.get_by_role("listbox", name="Calls")).to_be_visible()
