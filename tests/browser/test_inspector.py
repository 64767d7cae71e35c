"""The blob inspector in a browser, over real blobs of a real session: tree, text, keyboard, bad input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.render.blocks import Notice, View
from reyn_jupyter.notebook.serving.protocol import LiveBlob
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.outputs.blob import open_blob
from reyn_jupyter.outputs.content import FileContent, Structured, Text
from reyn_jupyter.sessions.current import SESSION_ID
from reyn_jupyter.support.sanitize import visible
from tests.browser.browser_support import Bare, bare
from tests.notebook.render.samples import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable


AXE = Path(__file__).parents[2] / "labextension/node_modules/axe-core/axe.min.js"
SERIOUS = """async () => (await axe.run('#host', {resultTypes: ['violations']})).violations
  .filter((each) => ['serious', 'critical'].includes(each.impact))
  .map((each) => `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3)}`)"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("inspector"))


@pytest.fixture
def keep(session: Session, tmp_path: Path) -> Callable[..., str]:
    """Stores a value, a text, or a JSON text just as it is written."""

    def put(value: Any, written: bool = False) -> str:
        store: Any = session.parts.services.blobs
        if written:
            path = tmp_path / "handed-over.json"
            path.write_text(value)
            return str(store.put(FileContent(path, kind="json")).id)
        return str(store.put(Text(value) if isinstance(value, str) else Structured(value)).id)

    return put


@contextmanager
def inspected(
    browser: Browser, session: Session, blob: str, selector: str | None = None, theme: str = "light"
) -> Iterator[Bare]:
    """The inspector of one blob, opened; nothing may complain and nothing may be asked of another host."""
    made = View("blob", blob, blocks=(Notice("what the snapshot shows"),))
    live = LiveBlob(blob=blob, selector=selector)
    with bare(browser, session, to_snapshot(made, SESSION_ID, live), theme) as shown:
        yield shown
        assert shown.complaints == []
        assert shown.elsewhere == []
        assert not shown.page.evaluate("window.ran")


def items(page: Page) -> list[str]:
    return [text.replace("⌄", "").replace("›", "") for text in page.get_by_role("treeitem").all_inner_texts()]


def item(page: Page, text: str) -> Any:
    return page.get_by_role("treeitem").filter(has_text=text)


def test_a_tree_is_walked_with_the_keyboard_alone(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    blob = keep({"name": "x", "list": [10, {"deep": True}], "end": None})
    with inspected(browser, session, blob) as shown:
        page = shown.page
        expect(page.get_by_role("treeitem")).to_have_count(4)
        assert items(page) == ["3 keys", 'name: "x"', "list: 2 items", "end: null"]
        expect(page.get_by_role("tree")).to_have_attribute("aria-activedescendant", re.compile(".+-0"))
        page.get_by_role("tree").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        expect(item(page, "list")).to_have_attribute("aria-expanded", "true")
        expect(item(page, "deep")).to_have_count(0)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("End")
        expect(page.locator(".r-node[aria-selected=true]")).to_have_text("end: null")
        for key in ("ArrowUp", "Enter"):
            page.keyboard.press(key)
        expect(item(page, "deep: true")).to_have_attribute("aria-level", "4")
        expect(item(page, "deep: true")).to_have_attribute("aria-setsize", "1")
        page.keyboard.press("ArrowDown")
        expect(page.locator(".r-where")).to_have_text('["list"][1]["deep"]')
        for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
            page.keyboard.press(key)
        expect(page.locator(".r-node[aria-selected=true]")).to_have_text("›list: 2 items")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("treeitem")).to_have_count(1)


def test_any_child_of_a_million_is_a_few_clicks_away(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    with inspected(browser, session, keep(list(range(1_000_000))), "slice:0..5") as shown:
        page = shown.page
        expect(item(page, "0: 0").first).to_be_visible()
        assert page.get_by_role("treeitem").count() < 60
        tree = page.get_by_role("tree")
        tree.focus()
        page.keyboard.press("End")
        item(page, "990,000 … 999,999").click()
        expect(item(page, "990,000 … 990,099")).to_be_visible()
        page.keyboard.press("End")
        item(page, "999,900 … 999,999").click()
        expect(item(page, "999900: 999900")).to_be_visible()
        page.keyboard.press("End")
        expect(page.locator(".r-where")).to_have_text("[999999]")


def test_a_selector_opens_the_way_to_the_value(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    blob = keep({"a": [{"b": number} for number in range(500)]})
    with inspected(browser, session, blob, "path:/a/321/b") as shown:
        expect(shown.page.locator(".r-node[aria-selected=true]")).to_have_text("b: 321")
        expect(shown.page.locator(".r-where")).to_have_text('["a"][321]["b"]')
    with inspected(browser, session, blob, "path:/a/321/c") as shown:
        expect(shown.page.get_by_text("'c' at step 3")).to_be_visible()
        expect(shown.page.locator(".r-where")).to_have_text('["a"][321]')


def test_a_search_in_the_tree_opens_what_it_finds(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    blob = keep({"outer": [{"title": "Zürich"}] * 2 + ["other"], "zürich": 1})
    with inspected(browser, session, blob) as shown:
        page = shown.page
        expect(item(page, "outer")).to_be_visible()
        page.get_by_role("tree").press("/")
        page.keyboard.type("ZÜRICH")
        for where in ('["outer"][0]["title"]', '["outer"][1]["title"]', '["zürich"]'):
            page.keyboard.press("Enter")
            expect(page.locator(".r-where")).to_have_text(where)
        page.keyboard.press("Enter")
        expect(page.get_by_text("No more; Enter starts again")).to_be_visible()


def test_ten_thousand_levels_stay_usable(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    with inspected(browser, session, keep("[" * 10_000 + "]" * 10_000, written=True)) as shown:
        page = shown.page
        expect(page.get_by_role("treeitem")).to_have_count(2)
        page.get_by_role("tree").focus()
        page.keyboard.press("End")
        for level in range(3, 40):
            page.keyboard.press("ArrowRight")
            expect(page.locator(f".r-node[aria-level='{level}']")).to_be_visible()
            page.keyboard.press("ArrowDown")
        box = page.locator(".r-node[aria-selected=true] .r-twist").bounding_box()
        assert box is not None
        assert box["x"] < 600


def test_a_key_and_a_text_of_megabytes_are_cut_and_shown_in_the_text(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    with inspected(browser, session, keep({"k" * 10_000_000: 1, "t": "é" * 1_000_000 + "END"})) as shown:
        page = shown.page
        expect(item(page, "kkk…: 1")).to_be_visible()
        item(page, "(2.0 MB in all)").click()
        page.get_by_role("button", name="In text").click()
        expect(page.get_by_role("tab", name="Text")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_text(re.compile(r"Line 1, bytes 10,000,01\d to"))).to_be_visible()
        expect(page.locator(".r-long pre")).to_contain_text('"ééé')
        page.get_by_role("button", name="Later").click()
        expect(page.get_by_text(re.compile(r"Line 1, bytes 10,06\d,\d+ to"))).to_be_visible()


def test_a_text_is_paged_searched_and_marked(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    text = "".join(
        f"line {number}{' Needle' if number % 1000 == 0 else ''}\n" for number in range(1, 100_001)
    )
    with inspected(browser, session, keep(text), "lines:50000-50010") as shown:
        page = shown.page
        expect(page.get_by_text("line 50000 Needle")).to_be_visible()
        assert page.locator(".r-numbered").count() < 60
        expect(page.get_by_role("tablist")).to_be_hidden()
        page.get_by_label("Go to line").fill("99999")
        page.keyboard.press("Enter")
        expect(page.get_by_text("99,999line 99999", exact=True)).to_be_visible()
        page.get_by_role("region", name="Text, 100,000 lines").press("/")
        page.keyboard.type("needle")
        page.keyboard.press("Enter")
        expect(page.get_by_text("100 of 100")).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.get_by_text("1 of 100", exact=True)).to_be_visible()
        expect(page.locator(".r-hit mark")).to_have_text("Needle")
        expect(page.locator(".r-hit .r-no")).to_have_text("1,000")
        page.keyboard.press("Shift+Enter")
        expect(page.locator(".r-hit .r-no")).to_have_text("100,000")
        page.get_by_label("Search the text").fill("absent")
        page.keyboard.press("Enter")
        expect(page.get_by_text("no match")).to_be_visible()


def test_a_search_is_of_what_the_field_holds_however_late_its_matches_come(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    text = "".join(f"line {number}{' first' if number % 2 else ' second'}\n" for number in range(9))
    with inspected(browser, session, keep(text)) as shown:
        page, server = shown.page, shown.server
        field = page.get_by_label("Search the text")
        for presses, words, count in ((2, "first", 4), (1, "second", 5)):
            server.hold("lines.find")
            for other in ("line", words):  # the first one's matches are on their way when the field changes
                field.fill(other)
                for _ in range(presses):
                    field.press("Enter")
            shown.requests()
            server.release("lines.find")
            expect(page.get_by_text(f"of {count}", exact=False)).to_have_text(re.compile(rf"^\d of {count}$"))
            expect(page.locator(".r-hit mark")).to_have_text(words)


def test_a_reason_is_said_once_however_many_requests_fail_for_it(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    blob = keep("".join(f"line {number}\n" for number in range(10_000)))
    with inspected(browser, session, blob) as shown:
        page = shown.page
        expect(page.get_by_text("2line 1", exact=True)).to_be_visible()
        store: Any = session.parts.services.blobs
        path = store.path(blob)
        away = path.rename(path.with_suffix(".away"))
        for line in (3000, 6000, 9000):
            page.get_by_label("Go to line").fill(str(line))
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("was collected")
            shown.requests()
        expect(page.get_by_role("alert")).to_have_count(1)
        away.rename(path)
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(page.get_by_text("9,000line 8999", exact=True)).to_be_visible()


def test_a_regular_expression_that_makes_no_sense_says_so(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    with inspected(browser, session, keep("alpha 1\nbeta\n"), r"grep:\w+ \d") as shown:
        page = shown.page
        expect(page.locator(".r-hit mark")).to_have_text("alpha 1")
        page.get_by_label("Search the text").fill("(")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("not a usable pattern")
        page.get_by_role("button", name="Dismiss").click()
        expect(page.get_by_text("alpha 1")).to_be_visible()


def test_hostile_texts_are_shown_as_what_they_are(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    with inspected(browser, session, keep({text: [text, {text: text}] for text in HOSTILE})) as shown:
        page = shown.page
        expect(page.get_by_role("treeitem")).to_have_count(len(HOSTILE) + 1)
        page.get_by_role("tree").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("*")
        expect(page.get_by_role("treeitem").nth(3)).to_be_visible()
        expect(page.locator(".r-key").filter(has_text=visible(HOSTILE[0])).first).to_be_visible()
        page.get_by_role("tab", name="Text").click()
        expect(page.locator(".r-numbered").first).to_contain_text("window.ran=1")
    everything = "\n".join(HOSTILE)
    with inspected(browser, session, keep(everything)) as shown:
        expect(shown.page.locator(".r-numbered").first).to_contain_text(HOSTILE[0])
        texts = "\n".join(shown.page.locator(".r-numbered").all_inner_texts())
        assert visible(HOSTILE[2]) in texts
        assert "\u202e" not in texts
        assert "\x1b" not in texts


def test_a_collected_blob_keeps_its_snapshot_and_says_what_to_do(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    blob = keep([1, 2, 3])
    store: Any = session.parts.services.blobs
    store.path(blob).unlink()
    with inspected(browser, session, blob) as shown:
        expect(shown.page.get_by_role("alert")).to_contain_text("was collected")
        expect(shown.page.get_by_role("alert")).to_contain_text("Run the action again")
        expect(shown.page.get_by_text("what the snapshot shows")).to_be_visible()
        shown.page.get_by_role("button", name="Dismiss").click()
        expect(shown.page.get_by_role("alert")).to_have_count(0)
        expect(shown.page.get_by_text("what the snapshot shows")).to_be_visible()


def test_a_request_without_an_answer_can_be_cancelled_and_loses_nothing(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    with inspected(browser, session, keep({"a": [{"b": 1}], "c": 2})) as shown:
        page = shown.page
        expect(item(page, "a: 1 item")).to_be_visible()
        shown.server.silent.set()
        item(page, "a: 1 item").click()
        expect(page.get_by_text("loading …")).to_be_visible()
        expect(page.get_by_role("tree")).to_have_attribute("aria-busy", "true")
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("loading …")).to_have_count(0)
        expect(item(page, "c: 2")).to_be_visible()
        assert shown.requests()[-1]["type"] == "cancel"
        shown.server.silent.clear()
        item(page, "a: 1 item").click()
        expect(item(page, "0: 1 key")).to_be_visible()


def test_the_tabs_are_walked_with_arrows_and_keep_their_place(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    with inspected(browser, session, keep({"a": {"b": 1}})) as shown:
        page = shown.page
        item(page, "a: 1 key").click()
        expect(item(page, "b: 1")).to_be_visible()
        page.get_by_role("tab", name="Tree").focus()
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name="Text")).to_be_focused()
        expect(page.get_by_role("tabpanel")).to_contain_text('{"a":{"b":1}}')
        page.keyboard.press("ArrowRight")
        expect(item(page, "b: 1")).to_be_visible()


def test_the_snapshot_and_the_live_header_say_the_same(
    browser: Browser, session: Session, keep: Callable[..., str]
) -> None:
    blob = keep({"a": 1})
    store: Any = session.parts.services.blobs
    static = view(open_blob(store, blob))
    with inspected(browser, session, blob) as shown:
        expect(shown.page.get_by_role("heading")).to_have_text(static.title)
        facts = shown.page.locator(".r-facts").inner_text().split(" · ")
        assert facts[:3] == list(static.facts[:3])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_inspector_has_no_serious_finding_of_axe(
    browser: Browser, session: Session, keep: Callable[..., str], theme: str
) -> None:
    with inspected(browser, session, keep({"a": [1, {"b": None}], "t": "x" * 5000}), theme=theme) as shown:
        page = shown.page
        expect(item(page, "a: 2 items")).to_be_visible()
        page.get_by_text("About this blob").click()
        item(page, "a: 2 items").click()
        expect(item(page, "0: 1")).to_be_visible()
        page.evaluate(AXE.read_text())
        assert page.evaluate(SERIOUS) == []
        page.get_by_role("tab", name="Text").click()
        page.get_by_role("button", name="show all").click()
        page.get_by_label("Search the text").fill("x")
        page.keyboard.press("Enter")
        expect(page.locator("mark").first).to_be_visible()
        assert page.evaluate(SERIOUS) == []
