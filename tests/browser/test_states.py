"""Where a display stands: its kernel there, busy, foreign, gone; and the buttons beside ready lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.render.blocks import Commands, Notice, View
from reyn_jupyter.notebook.serving.prefetch import record_answers
from reyn_jupyter.notebook.serving.protocol import LiveBlob, LiveTrace
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.current import SESSION_ID
from tests.browser.browser_support import open_details
from tests.browser.drawing import Drawing, drawing
from tests.browser.run_samples import snapshot, two_runs
from tests.notebook.render.samples import every_kind


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawing]:
    with drawing(browser, Session(tmp_path_factory.mktemp("views"))) as made:
        yield made


def shown(name: str, text: str) -> View:
    return view(every_kind(text)[name], tail=text if name == "live" else None)


def test_a_ready_line_is_copied_and_says_so_to_screen_readers(page: Drawing) -> None:
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.show(View("x", "x", blocks=(Commands(("%reyn runs", "%reyn\u202eblobs")),)))
    page.page.get_by_role("button", name="Copy %reyn runs").click()
    expect(page.page.locator("#host [role=status].r-said")).to_have_text("Copied")
    assert page.page.evaluate("() => navigator.clipboard.readText()") == "%reyn runs"
    page.page.get_by_role("button", name="Copy %reyn⟨U+202E⟩blobs").click()
    page.page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('⟨U+202E⟩')")


def live(title: str = "A blob") -> dict[str, Any]:
    return to_snapshot(
        View("blob", title, blocks=(Notice("what was saved"),)), SESSION_ID, LiveBlob(blob="b")
    )


def refuse(page: Drawing, code: str, message: str, hint: str = "") -> None:
    """The kernel answers the first request with an error."""
    failed = {"type": "error", "code": code, "message": message, "hint": hint}
    page.page.evaluate("(failed) => window.shown.receive({ ...failed, id: window.shown.sent[0].id })", failed)


def test_a_display_of_another_session_shows_its_snapshot_with_a_line_that_says_why(page: Drawing) -> None:
    page.show(live())
    welcome(page, "other")
    expect(page.page.get_by_role("status")).to_contain_text("run the cell again to go on")
    expect(page.page.locator("#host")).to_contain_text("what was saved")


def test_a_kernel_without_the_extension_offers_the_line_that_loads_it(page: Drawing) -> None:
    page.show(live())
    refuse(page, "unknown", "the kernel knows no target")
    expect(page.page.get_by_role("status")).to_contain_text("%load_ext reyn_jupyter")
    expect(page.page.get_by_role("button", name="Copy %load_ext reyn_jupyter")).to_be_visible()


def test_two_versions_that_do_not_understand_each_other_are_both_named(page: Drawing) -> None:
    page.show(live())
    refuse(page, "protocol", "the view speaks version 1 of the protocol, the kernel 2", "Install the same.")
    status = page.page.get_by_role("status")
    expect(status).to_contain_text("version 1 of the protocol, the kernel 2. Install the same.")
    assert "%load_ext" not in status.inner_text()


def welcome(page: Drawing, session: str) -> None:
    """The kernel answers the last hello."""
    value = {"protocol": 1, "session": session, "version": "", "versions": {}}
    page.page.evaluate(
        """(value) => {
          const hello = window.shown.sent.findLast((each) => each.op === "hello");
          window.shown.receive({ type: "answer", id: hello.id, value });
        }""",
        value,
    )


def test_what_a_live_view_shows_stays_when_the_kernel_goes_with_a_line_above_it(page: Drawing) -> None:
    page.show(live())
    welcome(page, SESSION_ID)
    page.page.wait_for_function("() => window.shown.sent.some((each) => each.op === 'blob.open')")
    page.page.evaluate("() => window.shown.heard['comm:close']()")
    status = page.page.locator("#host .r-state")
    expect(status).to_have_text("The kernel is gone; what is shown stays as it was.")
    assert page.page.evaluate("() => window.shown.el.firstElementChild.matches('.r-state')")
    expect(page.page.locator("#host")).to_contain_text("what was saved")
    welcome(page, SESSION_ID)
    expect(status).to_be_hidden()


def test_another_snapshot_of_a_live_display_is_gone_on_with_only_when_it_names_something_else(
    page: Drawing,
) -> None:
    page.show(live())
    welcome(page, SESSION_ID)
    opens = "() => window.shown.sent.filter((each) => each.op === 'blob.open').map((each) => each.args.blob)"
    page.page.wait_for_function(f"{opens[6:]}.length === 1")
    page.update(live("The same blob"))
    page.update({**live(), "live": {"type": "blob", "blob": "c", "selector": None}})
    page.page.wait_for_function(f"{opens[6:]}.length === 2")
    assert page.page.evaluate(opens) == ["b", "c"]


def test_another_object_is_opened_though_the_kernel_never_answered_for_the_first(page: Drawing) -> None:
    page.show(live())
    welcome(page, SESSION_ID)
    expect(page.page.locator("#host .r-state")).to_contain_text("Kernel busy")
    page.update({**live(), "live": {"type": "blob", "blob": "c", "selector": None}})
    page.page.wait_for_function("() => window.shown.sent.some((each) => each.args?.blob === 'c')")


def test_the_card_of_a_run_that_ends_meanwhile_keeps_what_the_person_chose(
    page: Drawing, tmp_path: Path
) -> None:
    session, run, _ = two_runs(tmp_path)
    answers = ENGINE.run(record_answers(session, LiveTrace(run=run.run)))
    page.page.evaluate(
        "(answers) => { window.answers = answers; }",
        {key.split()[0]: value for key, value in answers.items()},
    )
    page.show(snapshot(run, LiveTrace(run=run.run, running=True)))
    welcome(page, SESSION_ID)
    open_details(page.page)
    page.page.get_by_role("option").nth(2).click()
    page.page.evaluate("() => { window.drawn = document.querySelector('#host .r-trace'); }")
    page.update(snapshot(run, LiveTrace(run=run.run, running=False)))
    chosen = page.page.get_by_role("option", selected=True)
    expect(chosen).to_have_text(page.page.get_by_role("option").nth(2).inner_text(), use_inner_text=True)
    assert page.page.evaluate("() => window.drawn.isConnected")
    assert len(page.page.evaluate("() => window.shown.sent.filter((each) => each.op === 'trace.open')")) == 1


def test_closing_a_display_takes_out_everything(page: Drawing) -> None:
    page.show(live())
    page.page.evaluate("() => window.shown.end()")
    assert page.page.evaluate("() => window.shown.el.childNodes.length") == 0


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_words_keep_their_contrast_in_both_themes(browser: Browser, tmp_path: Path, theme: str) -> None:
    axe = (Path(__file__).parents[2] / "labextension/node_modules/axe-core/axe.min.js").read_text()
    with drawing(browser, Session(tmp_path), theme) as made:
        made.page.evaluate(axe)
        for name in ("trace", "table", "card", "result tree", "status", "list error"):
            made.show(shown(name, "words"))
            found = made.page.evaluate(
                "async () => (await axe.run('#host', {resultTypes: ['violations']})).violations"
                ".filter((each) => ['serious', 'critical'].includes(each.impact))"
                ".map((each) => [each.id, each.nodes[0].html])"
            )
            assert found == [], name
