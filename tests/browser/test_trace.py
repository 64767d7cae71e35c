"""The viewer of runs in a bare page, as any widget host shows it: steps, requests, comparing, consent."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from reyn_jupyter import Session
from reyn_jupyter.models.scripted import call
from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.notebook.serving.protocol import (
    ApprovalSettled,
    LiveDiff,
    LiveTrace,
    RunChanged,
)
from reyn_jupyter.notebook.serving.question_messages import approval_asked
from reyn_jupyter.runtime.questions.approval_queue import OpenQuestion
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.runtime.questions.question_detail import DetailLine, QuestionDetail
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.runs.background_run import BackgroundRun
from tests.browser.browser_support import Bare, bare, open_details
from tests.browser.run_samples import invoke, scripted, snapshot, two_runs
from tests.notebook.render.samples import HOSTILE
from tests.support.waiting import PATIENCE

SERIOUS = """async () => (await axe.run('#host', {resultTypes: ['violations']})).violations
  .filter((each) => ['serious', 'critical'].includes(each.impact)).map((each) => [each.id, each.nodes[0].html])"""
AXE = Path(__file__).parents[2] / "labextension/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Trace, Trace]:
    return two_runs(tmp_path_factory.mktemp("runs"))


def test_the_answer_is_read_before_the_details_which_are_a_press_away(
    browser: Browser, runs: tuple[Session, Trace, Trace]
) -> None:
    session, run, _ = runs
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run))) as made:
        page = made.page
        expect(page.get_by_role("button", name="Compare with")).to_be_hidden()
        expect(page.locator("summary", has_text="Details")).to_be_visible()
        assert "list_actions" not in page.locator("#host").inner_text()
        open_details(made.page)
        expect(page.get_by_role("button", name="Compare with")).to_be_visible()
        assert made.complaints == []


@pytest.fixture
def shown(browser: Browser, runs: tuple[Session, Trace, Trace]) -> Iterator[Bare]:
    """The first run, opened; whatever a test does, the page must not complain nor leave the machine."""
    session, run, _ = runs
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run))) as made:
        open_details(made.page)
        yield made
        assert made.complaints == [] and made.elsewhere == []


def test_the_answer_and_the_steps_are_there_and_what_failed_is_looked_at_first(shown: Bare) -> None:
    page = shown.page
    expect(page.locator(".r-body").first).to_contain_text("It holds three lines.")
    expect(page.get_by_role("option")).to_have_count(10)
    expect(page.get_by_role("option", selected=True)).to_contain_text("file__raed")
    expect(page.get_by_role("region", name="request and response")).to_contain_text(
        "Unknown action 'file__raed'"
    )


def test_the_keyboard_goes_through_the_steps(shown: Bare) -> None:
    page = shown.page
    steps = page.get_by_role("listbox", name="Steps")
    steps.focus()
    page.keyboard.press("Home")
    request = page.get_by_role("region", name="Request", exact=True)
    expect(request).to_contain_text("How many lines has notes.txt?")
    expect(request).to_contain_text("4 tools offered")
    expect(page.get_by_role("region", name="Response", exact=True)).to_contain_text("asks for list_actions")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_contain_text("file__read")
    expect(page.get_by_role("region", name="Response", exact=True)).to_contain_text("second line")
    assert steps.get_attribute("aria-activedescendant") == page.locator("[aria-selected=true]").get_attribute(
        "id"
    )
    page.keyboard.press("End")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Step 5")


def test_a_step_that_cannot_be_shown_leaves_no_other_under_its_name_and_its_error_goes_with_it(
    shown: Bare,
) -> None:
    page, server = shown.page, shown.server
    response = page.get_by_role("region", name="Response", exact=True)
    expect(response).to_contain_text("Unknown action 'file__raed'")
    server.hold("trace.part")
    page.get_by_role("listbox", name="Steps").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Step 5")
    page.wait_for_timeout(200)  # until the choice has settled
    shown.requests()
    [asked] = server.held.pop("trace.part")
    broken = {"type": "error", "id": asked["id"], "code": "failed", "message": "It broke.", "hint": ""}
    server.outgoing.put(broken)
    expect(page.get_by_role("alert")).to_contain_text("It broke.")
    expect(response).to_be_empty()
    page.get_by_role("option").filter(has_text="file__raed").first.click()
    expect(response).to_contain_text("Unknown action 'file__raed'")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_slash_filters_and_says_how_many_are_left(shown: Bare) -> None:
    page = shown.page
    page.get_by_role("listbox", name="Steps").focus()
    page.keyboard.press("/")
    page.keyboard.type("write")
    expect(page.get_by_role("option")).to_have_count(1)
    expect(page.get_by_text("1 of 10")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("region", name="Response", exact=True)).to_contain_text("new.txt created, +2 −0")


def test_another_run_is_chosen_and_compared_and_left_again(shown: Bare) -> None:
    page = shown.page
    page.get_by_role("button", name="Compare with").click()
    expect(page.get_by_role("combobox", name="The run to compare with")).to_contain_text(
        "How many lines has it?"
    )
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("listbox", name="Calls")).to_be_visible()
    expect(page.get_by_role("listbox", name="Steps")).to_be_hidden()
    page.get_by_role("button", name="Back to the run").click()
    expect(page.get_by_role("listbox", name="Steps")).to_be_visible()
    expect(page.get_by_role("listbox", name="Calls")).to_have_count(0)


def test_screen_readers_hear_the_structure(shown: Bare) -> None:
    expect(shown.page.locator("#host")).to_match_aria_snapshot("""
      - 'group "trace: scripted"':
        - heading "scripted" [level=3]
        - group:
          - button "Compare with …"
          - listbox "Steps":
            - option /Step 1 ✓ replied/
            - option /list_actions ✓ ok/
          - 'region "file__raed: request and response"':
            - region "Request"
            - region "Response"
    """)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_views_pass_the_accessibility_check_in_both_themes(
    browser: Browser, runs: tuple[Session, Trace, Trace], theme: str
) -> None:
    session, a, b = runs
    for made, ready in (
        (snapshot(a, LiveTrace(run=a.run)), ".r-detail .r-sec > *"),
        (snapshot(session.diff(a.run, b.run), LiveDiff(a=a.run, b=b.run)), ".r-two >> nth=1"),
    ):
        with bare(browser, session, made, theme) as shown:
            if made["live"]["type"] == "trace":
                open_details(shown.page)
            shown.page.locator(ready).first.wait_for()
            shown.page.evaluate(AXE.read_text())
            assert shown.page.evaluate(SERIOUS) == []


def test_a_diff_says_what_differs_between_the_chosen_calls(
    browser: Browser, runs: tuple[Session, Trace, Trace]
) -> None:
    session, a, b = runs
    made = snapshot(session.diff(a.run, b.run), LiveDiff(a=a.run, b=b.run))
    with bare(browser, session, made) as shown:
        page = shown.page
        expect(page.get_by_role("option", selected=True)).to_contain_text("other arguments")
        pair = page.get_by_role("region", name="The chosen calls, side by side")
        expect(pair).to_contain_text("beta")
        expect(pair.get_by_role("region", name="a: file__write")).to_contain_text("allowed by --approve")
        expect(pair.get_by_role("region", name="b: file__write")).to_be_visible()
        expect(page.locator(".r-part").last).to_contain_text("I think")
        page.get_by_role("listbox", name="Calls").focus()
        page.keyboard.press("Home")
        expect(pair.get_by_role("region", name="b: no such call")).to_be_visible()
        assert shown.complaints == []


def test_three_hundred_calls_are_listed_in_a_window(browser: Browser, tmp_path: Path) -> None:
    session = scripted(
        tmp_path, [invoke("file__read", path="notes.txt", offset=1 + n % 3) for n in range(300)], "Done."
    )
    run = session.ask("read it often", max_steps=400)
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run))) as shown:
        page = shown.page
        open_details(shown.page)
        steps = page.get_by_role("listbox", name="Steps")
        expect(page.get_by_role("option").first).to_have_attribute("aria-setsize", "302")
        assert page.get_by_role("option").count() < 60
        steps.focus()
        page.keyboard.press("End")
        last = page.get_by_role("option", selected=True)
        expect(last).to_have_attribute("aria-posinset", "302")
        expect(last).to_be_in_viewport()
        assert shown.complaints == []


def test_nothing_that_a_run_holds_becomes_markup_or_leaves_the_machine(
    browser: Browser, tmp_path: Path
) -> None:
    everything = "\n\n".join(HOSTILE)
    written = everything.encode("utf-8", "replace").decode()
    calls = [invoke("file__write", path="h.txt", content=written)]
    calls += [call("invoke_action", action_name=text, args={text: text}) for text in HOSTILE]
    calls += [call(text, x=text) for text in HOSTILE[:3]]
    session = scripted(tmp_path, calls, everything, call("list_actions", filter=everything), everything + "!")
    a, b = session.ask(everything, approve="all"), session.ask(everything + "?", new=True)
    for made in (
        snapshot(a, LiveTrace(run=a.run)),
        snapshot(session.diff(a.run, b.run), LiveDiff(a=a.run, b=b.run)),
    ):
        with bare(browser, session, made) as shown:
            page = shown.page
            if made["live"]["type"] == "trace":
                open_details(shown.page)
            page.locator(".r-side .r-sec > *").first.wait_for()
            page.get_by_role("listbox").focus()
            page.keyboard.press("Home")
            for _ in range(len(calls) + 2):
                page.keyboard.press("ArrowDown")
                page.wait_for_timeout(80)
            assert page.evaluate("() => window.ran") is None
            assert page.locator("#host :is(script, img, iframe, svg, math, [href^=javascript])").count() == 0
            assert not set(page.locator("#host").inner_text()) & set("\x1b\u202e\u2066\u200b\ufeff\x9b")
            assert shown.elsewhere == [] and shown.complaints == []


def test_a_run_that_is_gone_says_so_and_can_be_tried_again(browser: Browser, tmp_path: Path) -> None:
    session = scripted(tmp_path, "Hello.")
    run = session.ask("hi")
    made = snapshot(run, LiveTrace(run="no-such-run"))
    with bare(browser, session, made) as shown:
        expect(shown.page.get_by_role("alert")).to_contain_text("no run has 'no-such-run' in its id")
        expect(shown.page.get_by_role("alert")).to_contain_text("%reyn runs")
        expect(shown.page.get_by_role("button", name="Try again")).to_be_visible()


@contextmanager
def going_on(browser: Browser, root: Path) -> Iterator[tuple[Bare, BackgroundRun, threading.Event]]:
    """A run that reads a file once the event is set, and then thinks until it is stopped, in its viewer."""
    go_on, never = threading.Event(), asyncio.Event()

    async def waits(_request: object) -> object:
        await asyncio.to_thread(go_on.wait, 120)
        return invoke("file__read", path="notes.txt")

    async def thinks(_request: object) -> str:
        await never.wait()
        return "never said"

    session = scripted(root, waits, thinks)
    run = session.start("read, then think for long")
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run_id, running=True))) as shown:
        yield shown, run, go_on
        assert shown.complaints == []


def test_a_run_that_goes_on_grows_under_the_choice_and_is_stopped_by_the_button(
    browser: Browser, tmp_path: Path
) -> None:
    with going_on(browser, tmp_path) as (shown, background, go_on):
        page = shown.page
        open_details(shown.page)
        chosen = page.get_by_role("option", selected=True)
        expect(chosen).to_contain_text("… waiting")
        page.get_by_role("listbox", name="Steps").focus()
        page.keyboard.press("Home")
        go_on.set()
        for _ in range(12):  # words of it keep coming, faster than it is looked at
            shown.server.hub.tell(RunChanged(run=background.run_id, ended=False))
            page.wait_for_timeout(100)
        expect(page.get_by_role("option")).to_have_count(3)
        expect(chosen).to_contain_text("Step 1 ✓ replied")
        expect(page.get_by_role("region", name="Response", exact=True)).to_contain_text(
            "asks for invoke_action"
        )
        page.get_by_role("button", name="Stop").click()
        background.result(timeout=60)
        expect(page.locator(".r-top").first).to_contain_text("interrupted")
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        expect(chosen).to_contain_text("Step 1")


def test_a_run_that_goes_on_is_shown_by_a_kernel_that_is_slower_than_its_events_too(
    browser: Browser, tmp_path: Path
) -> None:
    with going_on(browser, tmp_path) as (shown, background, go_on):
        open_details(shown.page)
        expect(shown.page.get_by_role("option", selected=True)).to_contain_text("… waiting")
        shown.server.slow = 0.6  # more than what makes it a busy kernel, and more than lies between two looks
        go_on.set()
        end = time.monotonic() + PATIENCE
        while shown.page.get_by_role("option").count() != 3:
            assert time.monotonic() < end, "the run's other steps were never shown"
            shown.server.hub.tell(RunChanged(run=background.run_id, ended=False))
            shown.page.wait_for_timeout(100)
        shown.server.slow = 0.0
        background.cancel()
        expect(shown.page.locator(".r-top").first).to_contain_text("interrupted")


def consent(shown: Bare) -> Locator:
    return shown.page.get_by_role("group", name="Consent for file__write")


def answers(shown: Bare) -> list[str]:
    return [each["args"]["answer"] for each in shown.requests() if each.get("op") == "approval.answer"]


@contextmanager
def waiting_for_consent(browser: Browser, root: Path, content: str) -> Iterator[tuple[Bare, BackgroundRun]]:
    """A background run that wants to write a file, in its viewer."""
    session = scripted(root, invoke("file__write", path="new.txt", content=content), "Done.")
    run = session.start("write it", waits=True)
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run_id, running=True))) as shown:
        yield shown, run
        run.cancel()
        assert shown.complaints == []


# Presses the button of a name as soon as it appears, before anybody could have meant it.
HASTY = """(wanted) => new MutationObserver((_, observer) => {
    const buttons = [...document.querySelectorAll(".r-approval button")];
    const button = buttons.find((each) => each.textContent.startsWith(wanted));
    if (button) (observer.disconnect(), button.click(), (window.hasty = true));
  }).observe(document.body, { childList: true, subtree: true })"""


def test_a_question_shows_what_would_happen_and_escape_decides_later(
    browser: Browser, tmp_path: Path
) -> None:
    with waiting_for_consent(browser, tmp_path, "<b>one</b>\u202e\n--- two\n") as (shown, run):
        card = consent(shown)
        expect(card).to_contain_text("file__write asks for consent to:")
        expect(card.locator(".r-add").first).to_contain_text("+<b>one</b>")
        expect(card.get_by_role("button", name="Deny")).to_be_focused()
        shown.page.keyboard.press("Escape")
        expect(card).to_contain_text("Not decided. The run waits for you.")
        expect(card.get_by_role("button", name="Deny")).not_to_be_focused()
        assert answers(shown) == [] and len(run.pending) == 1
        card.get_by_role("button", name="Deny").press("Enter")
        expect(card).to_have_count(0)
        assert answers(shown) == ["deny"]
        run.result(timeout=60)
    assert not (tmp_path / "new.txt").exists()


def test_a_press_in_haste_allows_nothing(browser: Browser, tmp_path: Path) -> None:
    with waiting_for_consent(browser, tmp_path, "one\n") as (shown, run):
        expect(consent(shown)).to_be_visible()
        shown.page.evaluate(HASTY, "Allow twice")
        hub = shown.server.hub
        detail = QuestionDetail((DetailLine("effect", "write new.txt"),))
        waiting = OpenQuestion("q", Question("file__delete", detail, (), run.run_id), 0.0)
        asked = approval_asked(waiting, AnswerKey())
        once = asked.choices[0].model_copy(update={"label": "Allow twice"})
        hub.tell(asked.model_copy(update={"choices": (once, *asked.choices[1:])}))
        shown.page.wait_for_function("window.hasty")
        card = shown.page.get_by_role("group", name="Consent for file__delete")
        expect(card.get_by_role("button")).to_have_count(2)  # no pattern, no "always"
        hub.tell(ApprovalSettled(id="q"))
        expect(card).to_have_count(0)
        assert answers(shown) == []


def test_a_viewer_shows_the_questions_of_its_own_run_alone(browser: Browser, tmp_path: Path) -> None:
    with waiting_for_consent(browser, tmp_path, "one\n") as (shown, run):
        expect(consent(shown)).to_be_visible()
        expect(shown.page.locator(".r-trace .r-top").first).to_contain_text("waiting for you")
        detail = QuestionDetail((DetailLine("effect", "write new.txt"),))
        for number, of in enumerate((None, "another run", run.run_id)):
            waiting = OpenQuestion(f"q{number}", Question("file__delete", detail, (), of), 0.0)
            shown.server.hub.tell(approval_asked(waiting, AnswerKey()))
        others = shown.page.get_by_role("group", name="Consent for file__delete")
        expect(others).to_have_count(1)
        expect(others).to_have_attribute("data-question", "q2")


def test_a_deliberate_press_allows_it_once(browser: Browser, tmp_path: Path) -> None:
    with waiting_for_consent(browser, tmp_path, "one\n") as (shown, run):
        consent(shown).wait_for()
        shown.page.wait_for_timeout(600)
        consent(shown).get_by_role("button", name="Allow once").click()
        run.result(timeout=60)
        assert answers(shown) == ["once"]
    assert (tmp_path / "new.txt").read_text() == "one\n"


def test_a_long_question_is_read_to_its_end_before_always_is_offered(
    browser: Browser, tmp_path: Path
) -> None:
    content = "".join(f"line {number}\n" for number in range(150)) + "x" * 700 + "\u3164end\n"
    with waiting_for_consent(browser, tmp_path, content) as (shown, run):
        card = consent(shown)
        detail = card.get_by_role("region", name="What file__write would do")
        always = card.get_by_role("button", name="Always for file__write(write:new.txt)")
        expect(detail).to_contain_text("+line 90")
        expect(detail).not_to_contain_text("+line 140")
        expect(always).to_be_hidden()
        shown.page.evaluate(HASTY, "Always")  # in haste: it has only just come under the pointer
        card.get_by_role("button", name="Show the rest").click()
        expect(detail).to_contain_text("+line 149")
        expect(detail).to_contain_text("⟨U+3164⟩end")
        expect(card.get_by_role("button", name="Show the rest")).to_have_count(0)
        assert detail.evaluate(
            "(each) => each.scrollWidth <= each.clientWidth"
        )  # a long line is not out of sight
        shown.page.wait_for_function("window.hasty")
        expect(always).to_be_enabled()
        assert answers(shown) == []
        shown.page.wait_for_timeout(600)
        always.click()
        run.result(timeout=60)
        assert answers(shown) == ["always"]
    assert (tmp_path / "new.txt").read_text() == content


def test_a_question_that_is_answered_elsewhere_goes_away(browser: Browser, tmp_path: Path) -> None:
    with waiting_for_consent(browser, tmp_path, "one\n") as (shown, run):
        expect(consent(shown)).to_be_visible()
        run.answer(run.pending[0].id, "deny")
        expect(consent(shown)).to_have_count(0)
        assert answers(shown) == []


def test_what_a_step_stored_is_inspected_below_it_where_there_are_no_tabs(
    browser: Browser, tmp_path: Path
) -> None:
    session = scripted(tmp_path, invoke("file__read", path="long.txt"), "Read.")
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(20_000)))
    run = session.ask("read it", approve="all")
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run))) as shown:
        open_details(shown.page)
        shown.page.get_by_role("option").filter(has_text="file__read").click()
        button = shown.page.get_by_role("button", name="Inspect the blob")
        button.click()
        expect(shown.page.locator(".r-inspector")).to_contain_text("line 3")
        expect(button).to_have_attribute("aria-expanded", "true")
        button.click()
        expect(shown.page.locator(".r-inspector")).to_have_count(0)
        shown.page.get_by_role("option").first.click()
        expect(button).to_have_count(0)
        assert shown.complaints == [] and shown.elsewhere == []


def test_a_button_under_the_answer_opens_what_it_holds_and_stays_where_it_is(
    browser: Browser, runs: tuple[Session, Trace, Trace]
) -> None:
    session, run, _ = runs
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run))) as made:
        page = made.page
        page.locator(".r-trace").wait_for()  # the live view, in the place of the snapshot
        again = page.locator("summary", has_text="Ask again")
        before = again.bounding_box()
        again.click()
        expect(page.get_by_text("%%reyn\nHow many lines has notes.txt?")).to_be_visible()
        assert again.bounding_box() == before
        page.locator("summary", has_text="Insert as code").click()
        expect(page.get_by_text("session.invoke_action").first).to_be_visible()
        expect(page.get_by_text("%%reyn\nHow many lines has notes.txt?")).to_be_hidden()
        assert made.complaints == []


def test_the_chart_button_draws_the_table_of_the_answer_in_the_kernel(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("region,amount\nnorth,10\nsouth,30\nnorth,20\n")
    sql = "SELECT region, SUM(amount) AS total FROM orders GROUP BY region ORDER BY region"
    session = scripted(tmp_path, invoke("table__query", sql=sql, sources={"orders": "orders.csv"}), "Here.")
    run = session.ask("total by region", approve="all")
    with bare(browser, session, snapshot(run, LiveTrace(run=run.run))) as made:
        page = made.page
        page.locator("summary", has_text="Chart").click()
        picture = page.locator(".r-tool[open] img")
        picture.wait_for(timeout=120_000)
        assert picture.evaluate("async (each) => { await each.decode(); return each.naturalWidth > 100; }")
        expect(page.locator(".r-tool[open]")).to_contain_text("As a table")
        assert made.complaints == [] and made.elsewhere == []
