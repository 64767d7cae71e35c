"""The catalog explorer in a bare page: search, sort, keys, the form, a call, the ready line, hostile texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.serving.protocol import (
    CatalogChanged,
    LiveCatalog,
    RunChanged,
    Snapshot,
    ViewEvent,
    ViewFailure,
)
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.runtime.questions.question_detail import QuestionDetail
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.current import SESSION_ID
from reyn_jupyter.sessions.session import Session
from tests.browser.browser_support import Bare, bare
from tests.support.waiting import until

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "description": "How much, in cents."},
        "note": {"type": "string", "default": "none"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object"},
        "mode": {"enum": ["fast", "slow"]},
        "dry": {"type": "boolean", "default": False},
    },
    "required": ["amount"],
}


async def give_back(arguments: dict[str, Any], context: object) -> object:
    return arguments


async def give_much(arguments: dict[str, Any], context: object) -> object:
    return [{"number": number, "text": "word " * 20} for number in range(3_000)]


def tasks(count: int) -> list[Entry]:
    return [
        Entry(f"task_{number:05}", f"Task number {number}.", {"type": "object"}) for number in range(count)
    ]


def payments(entries: list[Entry]) -> list[Category]:
    """Operations of one category, and live entries of another as they are when it is asked."""
    back, much = Tool("pay", give_back, Purity.PURE), Tool("report", give_much, Purity.READ)

    async def named() -> list[Entry]:
        return entries

    operations = (
        Operation("send", "Send money to somebody.", SCHEMA, back),
        Operation("report", "Everything that was sent.", {"type": "object"}, much),
    )
    run = Resources(Tool("run", give_back, Purity.UNKNOWN), lambda entry, args: args, "run it", named)
    return [
        Category("payment", "Moves money around.", operations),
        Category("skill", "Runs what was written down.", (), run, revision=lambda: len(entries)),
    ]


@contextmanager
def exploring(
    browser: Browser, session: Session, theme: str = "light", query: str = "", width: int = 1100
) -> Iterator[Bare]:
    shown = session.explore(query)
    snapshot = Snapshot(session=SESSION_ID, view=view(shown), live=LiveCatalog(query=query)).model_dump(
        mode="json"
    )
    with bare(browser, session, snapshot, theme) as made:
        made.page.set_viewport_size({"width": width, "height": 900})
        expect(made.page.get_by_role("searchbox")).to_be_visible()
        expect(made.page.get_by_role("row").nth(1)).to_be_visible()
        yield made
        assert made.complaints == [] and made.elsewhere == []


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path, categories=payments(tasks(40)), namespace={})


def names(page: Page) -> list[str]:
    return page.get_by_role("rowheader").all_inner_texts()


def opened(page: Page, name: str) -> None:
    page.get_by_role("searchbox").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Invoke")).to_be_visible()


def test_typing_narrows_the_table_to_actions_with_all_words(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        expect(page.get_by_text("42 actions")).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="all").focus()
        page.keyboard.press("/")
        page.keyboard.type("MONEY send")
        expect(page.get_by_text("1 of 42 actions")).to_be_visible()
        assert names(page) == ["payment__send"]
        page.keyboard.press("Escape")
        expect(page.get_by_text("42 actions", exact=True)).to_be_visible()


def test_without_a_search_actions_stand_by_category_the_harmless_ones_first(
    browser: Browser, session: Session
) -> None:
    with exploring(browser, session) as shown:
        groups = shown.page.locator(".r-group")
        expect(groups.first).to_have_text("payment 2 actions")
        assert names(shown.page)[:3] == ["payment__send", "payment__report", "skill__task_00000"]
        groups.first.click()
        expect(shown.page.get_by_role("button", name="Invoke")).to_have_count(0)


def test_several_words_are_ranked_as_a_search_ranks_them(browser: Browser, session: Session) -> None:
    wanted = "please transfer some money for me"
    best = session.search_actions(f"{wanted} now").rows[0]["qualified_name"]
    with exploring(browser, session) as shown:
        page = shown.page
        search = page.get_by_role("searchbox")
        shown.server.hold("catalog.search")
        search.fill(wanted)
        until(lambda: shown.server.held["catalog.search"])
        search.press("End")
        page.keyboard.type(" now")  # while the answer is on its way
        shown.requests()
        shown.server.release("catalog.search")
        expect(page.get_by_text("best first")).to_be_visible()
        expect(search).to_have_value(f"{wanted} now")
        assert names(page)[0] == best
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name=best)).to_be_visible()


def test_a_category_shows_its_sentence_and_its_actions(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        page.get_by_role("button", name="payment 2").click()
        expect(page.get_by_text("Moves money around.")).to_be_visible()
        expect(page.get_by_text("2 of 42 actions")).to_be_visible()
        assert names(page) == ["payment__send", "payment__report"]  # the harmless one first
        page.get_by_role("button", name="payment 2").click()
        expect(page.get_by_text("42 actions", exact=True)).to_be_visible()


def test_it_opens_with_the_words_of_its_query(browser: Browser, session: Session) -> None:
    with exploring(browser, session, query="task 00007") as shown:
        expect(shown.page.get_by_role("searchbox")).to_have_value("task 00007")
        assert names(shown.page) == ["skill__task_00007"]


def test_a_heading_sorts_and_unsorts(browser: Browser, session: Session) -> None:
    session.invoke_action("payment__report")
    with exploring(browser, session) as shown:
        page = shown.page
        heading = page.get_by_role("columnheader", name="uses")
        heading.get_by_role("button").click()
        expect(heading).to_have_attribute("aria-sort", "descending")
        assert names(page)[0] == "payment__report"
        action = page.get_by_role("columnheader", name="action")
        action.get_by_role("button").click()
        action.get_by_role("button").click()
        expect(action).to_have_attribute("aria-sort", "descending")
        assert names(page)[0] == "skill__task_00039"
        action.get_by_role("button").click()
        expect(action).to_have_attribute("aria-sort", "none")


def test_keys_move_through_rows_and_open_one(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        page.get_by_role("searchbox").press("ArrowDown")
        table = page.get_by_role("grid")
        expect(table).to_be_focused()
        for key in ("ArrowDown", "End", "ArrowUp", "PageUp", "Home", "ArrowDown"):
            page.keyboard.press(key)
            current = page.locator(f"#{table.get_attribute('aria-activedescendant')}")
            expect(current).to_have_attribute("aria-selected", "true")
            expect(current).to_be_in_viewport()
        page.keyboard.press("End")
        expect(page.get_by_role("row", selected=True)).to_contain_text("skill__task_00039")
        expect(table).to_have_attribute("aria-rowcount", "45")  # with the names of both categories
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="payment__report")).to_be_visible()
        page.get_by_role("button", name="Close").click()
        expect(table).to_be_focused()


def test_an_action_that_opens_is_read_out_and_escape_leaves_it_with_what_was_typed(
    browser: Browser, session: Session
) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        page.get_by_role("searchbox").fill("payment__send")
        page.keyboard.press("Enter")
        expect(page.locator(".r-said")).to_have_text("payment__send is open")
        opened = page.get_by_role("region", name="payment__send")
        field = opened.get_by_role("textbox", name="tags")
        field.fill("typed")
        field.press("Escape")
        expect(opened).to_be_hidden()
        expect(page.get_by_role("grid")).to_be_focused()
        page.keyboard.press("Enter")
        expect(field).to_have_value("typed")


def test_a_form_is_filled_in_corrected_and_run(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        opened(page, "payment__send")
        amount = page.get_by_role("spinbutton", name="amount")
        expect(amount).to_have_attribute("aria-required", "true")
        page.get_by_role("textbox", name="options").fill("{broken")
        page.get_by_role("button", name="Invoke").click()
        options = page.get_by_role("textbox", name="options")
        expect(options).to_have_attribute("aria-invalid", "true")
        expect(options).to_have_accessible_description(re.compile("is no JSON"))
        options.fill('{"deep": [9007199254740993]}')
        amount.fill("0")
        page.get_by_role("button", name="Invoke").click()
        expect(amount).to_have_attribute("aria-invalid", "true")
        expect(amount).to_be_focused()
        expect(options).to_have_attribute("aria-invalid", "false")
        amount.fill("1152921504606846977")
        page.get_by_role("textbox", name="tags").fill("a\nb")
        page.get_by_role("combobox", name="mode").select_option("slow")
        amount.press("Enter")
        result = page.locator(".r-result")
        expect(result.get_by_text("✓ ok")).to_be_visible()
        expect(result).to_contain_text("1152921504606846977")
        expect(result).to_contain_text("9007199254740993")
        expect(amount).to_have_attribute("aria-invalid", "false")
        row = page.get_by_role("row", selected=True)
        expect(row).to_contain_text("payment__send")
        assert session.trace().calls[-1].resolved.inner == {
            "amount": 1152921504606846977, "tags": ["a", "b"], "options": {"deep": [9007199254740993]}, "mode": "slow",
        }  # fmt: skip


def test_the_ready_line_is_shown_and_copied(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        opened(page, "payment__send")
        page.get_by_role("spinbutton", name="amount").fill("5")
        page.get_by_role("textbox", name="note").fill("it's for two")
        page.get_by_role("button", name="Copy as %reyn").click()
        line = '%reyn invoke payment__send amount=5 note="it\'s for two"'
        expect(page.get_by_text(line)).to_be_visible()
        expect(page.get_by_text("Copied").first).to_be_attached()
        assert page.evaluate("navigator.clipboard.readText()") == line
        assert len(session.runs) == 0


def test_forms_and_results_stay_while_others_are_opened(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        opened(page, "payment__send")
        page.get_by_role("spinbutton", name="amount").fill("5")
        opened(page, "task_00003")
        expect(page.get_by_role("region", name="skill__task_00003")).to_be_visible()
        opened(page, "payment__send")
        expect(page.get_by_role("spinbutton", name="amount")).to_have_value("5")


def test_new_actions_appear_and_what_was_typed_stays(browser: Browser, tmp_path: Path) -> None:
    entries = tasks(3)
    session = Session(tmp_path, categories=payments(entries), namespace={})
    with exploring(browser, session) as shown:
        page = shown.page
        opened(page, "payment__send")
        page.get_by_role("spinbutton", name="amount").fill("5")
        page.get_by_role("searchbox").fill("send")
        assert names(page) == ["payment__send"]
        entries.append(Entry("letter_send", "Send a letter.", {}))
        shown.server.connection.send(ViewEvent(event=CatalogChanged(revision="another")))
        expect(page.get_by_role("rowheader", name="skill__letter_send")).to_be_visible()
        expect(page.get_by_role("button", name="skill 4")).to_be_visible()
        expect(page.get_by_role("searchbox")).to_have_value("send")
        expect(page.get_by_role("spinbutton", name="amount")).to_have_value("5")
        expect(page.get_by_role("row", selected=True)).to_contain_text("payment__send")


@pytest.mark.parametrize(
    ("button", "op"), [("Invoke", "catalog.invoke"), ("Copy as %reyn", "catalog.command")]
)
def test_what_is_typed_while_an_answer_arrives_goes_on_where_it_is_typed(
    browser: Browser, session: Session, button: str, op: str
) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        opened(page, "payment__send")
        options, note = (page.get_by_role("textbox", name=name) for name in ("options", "note"))
        options.fill("{broken")
        for field in (note, page.get_by_role("searchbox")):
            shown.server.hold(op)
            page.get_by_role("button", name=button).click()
            expect(options).to_have_attribute("aria-invalid", "false")
            field.fill("")
            page.keyboard.type("pay ")
            shown.requests()
            shown.server.release(op)
            expect(options).to_have_attribute("aria-invalid", "true")
            page.keyboard.type("two")
            expect(field).to_have_value("pay two")
        expect(options).to_have_value("{broken")


def test_a_fault_in_the_field_that_is_typed_on_takes_nobody_elsewhere(
    browser: Browser, session: Session
) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        opened(page, "payment__send")
        amount, note = page.get_by_role("spinbutton", name="amount"), page.get_by_role("textbox", name="note")
        shown.server.hold("catalog.invoke")
        note.press("Enter")
        page.keyboard.type("for ")
        shown.requests()
        shown.server.release("catalog.invoke")
        expect(amount).to_have_attribute("aria-invalid", "true")
        page.keyboard.type("two")
        expect(note).to_have_value("for two")
        note.press("Enter")
        expect(amount).to_be_focused()


def test_a_call_is_stopped_by_its_button_and_not_by_enter_in_a_field(
    browser: Browser, session: Session
) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        opened(page, "payment__send")
        amount, result = page.get_by_role("spinbutton", name="amount"), page.locator(".r-result")
        for key in ("Enter", "Control+Enter"):
            shown.server.hold("catalog.invoke")
            amount.fill("5")
            amount.press("Enter")
            expect(page.get_by_role("button", name="Stop")).to_be_visible()
            amount.fill("6")
            amount.press(key)
            shown.requests()
            shown.server.release("catalog.invoke")
            expect(result.get_by_text("✓ ok")).to_be_visible()
            expect(amount).to_have_value("6")
        assert [
            call.resolved.inner for run in session.runs.rows for call in session.trace(run["run"]).calls
        ] == [{"amount": 5}] * 2
        shown.server.hold("catalog.invoke")
        page.get_by_role("button", name="Invoke").click()
        page.get_by_role("button", name="Stop").click()
        expect(result).to_contain_text("Stopped.")
        expect(page.get_by_role("button", name="Invoke")).to_be_visible()


def test_a_question_takes_the_focus_from_nobody_who_types(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page = shown.page
        opened(page, "payment__send")
        note = page.get_by_role("textbox", name="note")
        note.focus()
        question = ENGINE.start(shown.server.hub.ask(Question("other", QuestionDetail(()), ())))
        expect(page.get_by_role("group", name="Consent for other")).to_be_visible()
        page.keyboard.type("for two")
        expect(note).to_have_value("for two")
        question.cancel()


def test_a_new_catalog_leaves_keys_clicks_and_the_place_where_they_were(
    browser: Browser, tmp_path: Path
) -> None:
    entries = tasks(400)
    session = Session(tmp_path, categories=payments(entries), namespace={})
    with exploring(browser, session) as shown:
        page = shown.page
        table = page.locator(".r-scroll.r-pick")
        table.evaluate("(each) => (each.scrollTop = 6000)")
        row = page.get_by_role("row").filter(has_text="skill__task_00200")
        box = row.bounding_box()
        assert box is not None
        page.get_by_role("button", name="payment 2").focus()
        page.mouse.move(box["x"] + 40, box["y"] + 10)
        page.mouse.down()
        page.get_by_role("button", name="payment 2").focus()
        entries.append(Entry("zebra", "Feed it.", {}))
        shown.server.connection.send(ViewEvent(event=CatalogChanged(revision="another")))
        expect(page.get_by_text("403 actions", exact=True)).to_be_visible()
        assert table.evaluate("(each) => each.scrollTop") == 6000
        page.mouse.up()
        expect(page.get_by_role("region", name="skill__task_00200")).to_be_visible()
        expect(page.get_by_role("button", name="payment 2")).to_be_focused()
        page.keyboard.press("/")
        page.keyboard.type("money")
        expect(page.get_by_role("searchbox")).to_have_value("money")


@pytest.mark.parametrize(
    "event",
    [RunChanged(run="another", ended=True), CatalogChanged(revision="another")],
    ids=lambda event: event.name,
)
def test_a_catalog_that_comes_late_takes_no_focus_caret_selection_or_open_choice(
    browser: Browser, tmp_path: Path, event: RunChanged | CatalogChanged
) -> None:
    entries = tasks(40)
    session = Session(tmp_path, categories=payments(entries), namespace={})
    with exploring(browser, session) as shown:
        page, server = shown.page, shown.server
        opened(page, "payment__send")
        search, tags = page.get_by_role("searchbox"), page.get_by_role("textbox", name="tags")
        amount = page.get_by_role("spinbutton", name="amount")
        mode = page.get_by_role("combobox", name="mode")
        search.fill("")
        tags.fill("first second")

        @contextmanager
        def reloading() -> Iterator[None]:
            """The catalog is asked for before what is done inside, and its answer comes after it."""
            entries.append(Entry(f"also_{len(entries)}", "It came later.", {}))
            server.hold("catalog.page")
            server.connection.send(ViewEvent(event=event))
            until(lambda: server.held["catalog.page"])
            yield
            server.release("catalog.page")
            expect(page.get_by_role("button", name=f"skill {len(entries)}")).to_be_visible()

        with reloading():
            tags.evaluate("(each) => { each.focus(); each.setSelectionRange(6, 12) }")
        page.keyboard.type("third")
        expect(tags).to_have_value("first third")
        with reloading():
            amount.focus()
            page.keyboard.type("12")
        page.keyboard.type("34")
        expect(amount).to_have_value("1234")
        with reloading():
            search.evaluate("(each) => { each.focus(); each.value = 'as'; each.setSelectionRange(1, 1) }")
            page.keyboard.type("l")
        page.keyboard.type("l")
        expect(search).to_have_value("alls")
        search.fill("")
        with reloading():
            mode.focus()
            page.keyboard.press("Space")
            assert mode.evaluate("(each) => each.matches(':open')")
        assert mode.evaluate("(each) => each.matches(':open')")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(mode.get_by_role("option", name="fast")).to_have_js_property("selected", True)
        with reloading():
            page.get_by_role("button", name="payment 2").focus()
        expect(page.get_by_role("button", name="payment 2")).to_be_focused()
        heading = page.get_by_role("columnheader", name="effect").get_by_role("button")
        with reloading():
            heading.focus()
        expect(heading).to_be_focused()


def test_a_row_that_moves_stays_selected_and_takes_the_click_that_was_begun_on_it(
    browser: Browser, tmp_path: Path
) -> None:
    entries = tasks(3)
    session = Session(tmp_path, categories=payments(entries), namespace={})
    with exploring(browser, session) as shown:
        page = shown.page
        row = page.get_by_role("row").filter(has_text="skill__task_00002")
        name = row.get_by_role("rowheader")
        name.evaluate("(each) => getSelection().selectAllChildren(each)")
        entries.insert(0, Entry("aardvark", "It comes first.", {}))
        shown.server.connection.send(ViewEvent(event=CatalogChanged(revision="another")))
        expect(page.get_by_text("6 actions", exact=True)).to_be_visible()
        assert page.evaluate("getSelection().toString()") == "skill__task_00002"
        expect(row).to_have_attribute("aria-rowindex", "9")
        page.evaluate("getSelection().removeAllRanges()")
        row.click()
        expect(page.get_by_role("region", name="skill__task_00002")).to_be_visible()
        expect(row).to_have_attribute("aria-selected", "true")


def test_trying_again_leaves_the_keyboard_in_the_explorer(browser: Browser, session: Session) -> None:
    with exploring(browser, session) as shown:
        page, server = shown.page, shown.server
        server.hold("catalog.page")
        server.connection.send(ViewEvent(event=CatalogChanged(revision="another")))
        until(lambda: server.held["catalog.page"])
        (asked,) = server.held.pop("catalog.page")
        server.connection.send(ViewFailure(id=asked["id"], code="failed", message="no luck"))
        again = page.get_by_role("button", name="Try again")
        again.focus()
        again.press("Enter")
        expect(again).to_have_count(0)
        expect(page.get_by_role("grid", name="Actions")).to_be_focused()


def test_ten_thousand_actions_are_there_and_few_rows_are_drawn(browser: Browser, tmp_path: Path) -> None:
    session = Session(tmp_path, categories=payments(tasks(10_000)), namespace={})
    with exploring(browser, session) as shown:
        page = shown.page
        expect(page.get_by_text("10,002 actions", exact=True)).to_be_visible()
        assert len(names(page)) < 60
        page.get_by_role("searchbox").press("ArrowDown")
        page.keyboard.press("End")
        expect(page.get_by_role("rowheader", name="skill__task_09999")).to_be_visible()
        page.get_by_role("searchbox").fill("task 0777")
        expect(page.get_by_text("11 of 10,002 actions")).to_be_visible()


@pytest.mark.parametrize("width", [300, 700])
def test_nothing_is_wider_than_a_side_panel(browser: Browser, session: Session, width: int) -> None:
    with exploring(browser, session, width=width) as shown:
        page = shown.page
        opened(page, "payment__send")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect(page.get_by_role("spinbutton", name="amount")).to_be_visible()


def test_hostile_texts_are_shown_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    from tests.notebook.render.samples import HOSTILE

    operations = []
    for number, hostile in enumerate(HOSTILE):
        text = hostile.encode("utf-8", "replace").decode()
        rule = {"type": "string", "description": text, "default": text}
        schema = {
            "type": "object",
            "properties": {text: rule, "choice": {"enum": [text, "b"]}},
            "required": [text],
        }
        operations.append(
            Operation(f"h{number}", hostile, schema, Tool(f"h{number}", give_back, Purity.PURE))
        )
    entries = [Entry(re.sub(r"[\x00-\x1f\x7f-\x9f\ud800]", "", text), text, {}) for text in HOSTILE]

    async def named() -> list[Entry]:
        return entries

    run = Resources(Tool("run", give_back, Purity.PURE), lambda entry, args: args, "run it", named)
    categories = [Category("odd", HOSTILE[0], tuple(operations)), Category("live", HOSTILE[2], (), run)]
    session = Session(tmp_path, categories=categories, namespace={})
    with exploring(browser, session) as shown:
        page = shown.page
        for number in range(len(HOSTILE)):
            opened(page, f"odd__h{number}")
            page.get_by_role("combobox", name="choice").select_option(index=1)
            page.get_by_role("button", name="Invoke").click()
            expect(page.locator(".r-result").get_by_text("✗ failed")).to_be_visible()
        page.get_by_role("searchbox").fill("live")
        page.get_by_role("searchbox").press("Enter")
        expect(page.get_by_role("region", name=re.compile("live__"))).to_be_visible()
        assert page.evaluate("window.ran") is None
        assert page.locator("#host :is(script, img, iframe, svg, math, a[href^=javascript])").count() == 0
        assert not re.search("[\u202e\u2066\u200b\x1b]", page.inner_text("#host"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_is_found_by_axe(browser: Browser, session: Session, theme: str) -> None:
    with exploring(browser, session, theme) as shown:
        page = shown.page
        page.add_script_tag(path=AXE)
        opened(page, "payment__send")
        page.get_by_role("button", name="Invoke").click()
        expect(page.locator(".r-result").get_by_text("✗ failed")).to_be_visible()
        page.get_by_role("searchbox").fill("")
        for width in (1100, 320):
            page.set_viewport_size({"width": width, "height": 1400})
            page.wait_for_function("document.querySelectorAll('tbody tr').length > 3")
            found = page.evaluate("axe.run('#host')")["violations"]
            assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
