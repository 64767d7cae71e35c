"""What people see of a result of parts: an image is drawn, a sound has controls, hostile parts are text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from reyn_jupyter import Session
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.hosts.markdown_writer import to_markdown
from reyn_jupyter.notebook.render.hosts.page import PageEntry, to_page
from reyn_jupyter.notebook.serving.prefetch import record_answers
from reyn_jupyter.notebook.serving.protocol import Live, LiveBlob, LiveTrace
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.current import SESSION_ID
from tests.browser.browser_support import THEMES, bare, open_details
from tests.browser.test_html import CONTRAST, document
from tests.support.report_category import report_category

DRAWN = "(image) => image.complete && [image.naturalWidth, image.naturalHeight].join()"
LENGTH = """(sound) => sound.readyState ? sound.duration
  : new Promise((done) => { sound.onloadedmetadata = () => done(sound.duration); })"""


@pytest.fixture
def session(workspace: Path) -> Iterator[Session]:
    made = Session(workspace, categories=(report_category(),))
    yield made
    made.close()


def run_of(session: Session, *names: str) -> Trace:
    calls = [call("invoke_action", action_name=f"report__{name}", args={}) for name in names]
    return session.ask("how are the sales?", model=ScriptedModel(calls, "A rise in May."))


def seen(page: Page | Locator, images: int = 1, sounds: int = 1) -> None:
    """Images are drawn in their own size, sounds can be played, and both are named for who does not see them."""
    drawn, played = page.locator(".r-media img"), page.locator(".r-media audio")
    expect(drawn).to_have_count(images)
    expect(played).to_have_count(sounds)
    for place in range(images):
        assert drawn.nth(place).evaluate(
            f"async (each) => {{ await each.decode(); return ({DRAWN})(each); }}"
        ) == ("320,200")
        assert drawn.nth(place).get_attribute("alt")
        box = drawn.nth(place).bounding_box()
        assert box is not None and 0 < box["height"] <= 420 and 0 < box["width"] <= 640
    for place in range(sounds):
        expect(played.nth(place)).to_have_attribute("controls", "")
        assert played.nth(place).evaluate(LENGTH) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_card_and_a_result_show_what_came_back_in_both_themes(
    browser: Browser, session: Session, tmp_path: Path, theme: str
) -> None:
    trace, result = run_of(session, "sales"), session.invoke_action("report__sales")
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_content(document([to_html(view(trace)), to_html(view(result))], THEMES[theme]))
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    seen(page, 2, 2)
    expect(page.get_by_role("img", name="sales.png").first).to_be_visible()
    expect(page.get_by_role("link", name="The whole report").first).to_have_attribute(
        "href", "https://example.org/report?id=7"
    )
    expect(page.locator(".reyn-view").first).to_contain_text("(example.org, text/html)")
    expect(page.locator(".r-tree").first).to_contain_text("total: 12")
    page.screenshot(path=tmp_path / f"content-{theme}.png", full_page=True)
    ratio, where = page.evaluate(CONTRAST)[0]
    assert ratio >= 4.5, where
    page.close()


def test_an_open_call_with_an_image_is_open_in_the_card_and_a_running_one_reads_nothing(
    browser: Browser, session: Session
) -> None:
    trace = run_of(session, "sales")
    page = browser.new_page()
    page.set_content(document([to_html(view(trace))]))
    expect(page.get_by_role("img", name="sales.png")).to_be_visible()
    running = Trace.from_events(trace.events[:-1], trace.blobs)
    page.set_content(document([to_html(view(running, tail=""))]))
    expect(page.locator(".r-media")).to_have_count(0)
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_inspector_and_the_viewer_of_runs_show_them_live(
    browser: Browser, session: Session, tmp_path: Path, theme: str
) -> None:
    trace = run_of(session, "sales")
    blob = trace.calls[0].finished.blob  # type: ignore[union-attr]
    assert blob is not None
    image = session.blob(blob).part_entries[1].blob
    lives: list[tuple[str, Any, Live, int]] = [
        ("parts", session.blob(blob), LiveBlob(blob=blob), 1),
        ("image", session.blob(image), LiveBlob(blob=image), 0),
        ("run", trace, LiveTrace(run=trace.run), 1),
    ]
    for name, shown, live, sounds in lives:
        with bare(browser, session, to_snapshot(view(shown), SESSION_ID, live), theme) as opened:
            page = opened.page
            if name == "run":
                open_details(page)
                page.get_by_role("option").filter(has_text="report__sales").click()
            else:
                expect(page.locator(".r-inspector")).to_be_visible()
            expect(page.locator(".r-media img").first).to_be_visible()
            seen(page.locator(".r-detail") if name == "run" else page, 1, sounds)
            page.screenshot(path=tmp_path / f"live-{name}-{theme}.png", full_page=True)
            assert opened.elsewhere == []
            assert [each for each in opened.complaints if "favicon" not in each] == []


def harmless(page: Page, asked: list[str]) -> None:
    page.wait_for_timeout(300)
    assert page.evaluate("window.__pwned") is None
    assert [url for url in asked if "evil" in url or "example" in url] == []
    markup = ":is(script, svg, iframe, object, embed, base, img:not(.r-media > img), [onload], [onerror])"
    assert page.locator(f".reyn-view {markup}").count() == 0
    for place in range((links := page.locator(".reyn-view a")).count()):
        assert (links.nth(place).get_attribute("href") or "").startswith(("https://", "http://"))
    for place in range((images := page.locator(".r-media img")).count()):
        assert (images.nth(place).get_attribute("src") or "").startswith("data:image/png;base64,")


def test_hostile_parts_are_text_and_run_load_and_unpack_nothing(
    browser: Browser, session: Session, tmp_path: Path
) -> None:
    result, trace = session.invoke_action("report__hostile"), run_of(session, "hostile")
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_content(document([to_html(view(result)), to_html(view(trace))]))
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    harmless(page, asked)
    first = page.locator(".reyn-view").first
    expect(first.locator(".r-media img")).to_have_count(1)
    expect(first).to_contain_text("<script>window.__pwned=1</script>")
    expect(first).to_contain_text('<svg xmlns="http://www.w3.org/2000/svg" onload')
    expect(first).to_contain_text("it was said to be image/png, and its bytes are not")
    expect(first).to_contain_text("60000×60000 is too large to be drawn")
    expect(first.locator("a")).to_have_count(1)
    expect(first).to_contain_text("(evil.example)")
    page.close()

    live = LiveTrace(run=trace.run)
    with bare(browser, session, to_snapshot(view(trace), SESSION_ID, live)) as opened:
        open_details(opened.page)
        opened.page.get_by_role("option").filter(has_text="report__hostile").click()
        expect(opened.page.locator(".r-detail .r-media img")).to_have_count(1)
        harmless(opened.page, opened.elsewhere)
    assert result.blob is not None
    parts = LiveBlob(blob=result.blob.id)
    with bare(browser, session, to_snapshot(view(result.blob), SESSION_ID, parts)) as opened:
        expect(opened.page.locator(".r-inspector .r-media img")).to_have_count(1)
        harmless(opened.page, opened.elsewhere)


def test_a_block_of_another_type_is_named_and_not_drawn(browser: Browser, session: Session) -> None:
    snapshot = to_snapshot(view(session.invoke_action("report__picture")), SESSION_ID, None)
    [media] = [block for block in snapshot["view"]["blocks"] if block["type"] == "media"]
    for change in (
        {"mime": "image/svg+xml"},
        {"mime": "text/html"},
        {"mime": 'image/png"onerror="window.__pwned=1'},
        {"data": 'PHN2Zz4=" onerror="window.__pwned=1'},
        {"data": "javascript:window.__pwned=1"},
    ):
        spoiled = {**snapshot, "view": {**snapshot["view"], "blocks": [{**media, **change}]}}
        with bare(browser, session, spoiled) as opened:
            expect(opened.page.locator(".reyn-view").first).to_contain_text("could not be drawn")
            harmless(opened.page, opened.elsewhere)
            assert opened.page.locator("img, audio").count() == 0


async def _exported(session: Session, trace: Trace) -> str:
    live = LiveTrace(run=trace.run)
    answers = await record_answers(session, live)
    made = view(trace)
    entry = PageEntry(to_snapshot(made, SESSION_ID, live), to_html(made), answers)
    return to_page("A run", [entry], "")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_an_exported_page_draws_them_without_kernel_network_or_script(
    browser: Browser, session: Session, tmp_path: Path, script: bool
) -> None:
    trace = run_of(session, "sales")
    file = tmp_path / "run.html"
    with ThreadPoolExecutor() as elsewhere:  # Playwright's loop runs in this thread
        file.write_text(elsewhere.submit(asyncio.run, _exported(session, trace)).result(), encoding="utf-8")
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda each: said.append(each.text))
    page.goto(file.as_uri())
    if script:
        seen(page)  # under the answer
        open_details(page)
        page.get_by_role("option").filter(has_text="report__sales").click()
        seen(page.locator(".r-detail"))
    else:
        expect(page.get_by_role("img", name="sales.png")).to_be_visible()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == [] and said == []
    context.close()


def test_terminals_and_github_get_words(session: Session) -> None:
    trace = run_of(session, "sales")
    for shown in (trace, session.invoke_action("report__sales")):
        made = view(shown)
        text, markdown = to_text(made), to_markdown(made)
        for written in (text, markdown):
            assert "base64" not in written and len(written) < 10_000
        assert "sales.png · image/png · 320×200" in text
        assert "sales.png · image/png" in markdown
        assert "The whole report <https://example.org/report?id=7> (example.org, text/html)" in text
