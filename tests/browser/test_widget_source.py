"""A view over a widget's channel: late, busy, closed and foreign kernels, and two views of one model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import reyn_jupyter as reyn
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.serving.protocol import LiveCatalog
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from tests.browser.browser_support import STATIC

PAGE = """<!doctype html><html lang="en"><body><div id="one"></div><div id="two"></div></body></html>"""
HOST = """async ([source, snapshot]) => {
  const listeners = {};
  window.sent = [];
  window.hear = (name, ...given) => (listeners[name] ?? []).slice().forEach((each) => each(...given));
  window.model = {
    get: () => snapshot, set() {}, save_changes() {},
    on: (name, listener) => (listeners[name] ??= []).push(listener),
    off: (name, listener) => (listeners[name] = (listeners[name] ?? []).filter((each) => each !== listener)),
    send: (message) => window.sent.push(message),
  };
  window.listening = () => Object.values(listeners).flat().length;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const widget = (await import(url)).default;
  window.open_ = (id) => widget.render({ model: window.model, el: document.getElementById(id) });
  window.close_ = window.open_("one");
}"""


class Hosted:
    """A page with the explorer in it, whose kernel is this test."""

    def __init__(self, page: Page, session: str) -> None:
        self.page, self.session = page, session
        self.status: Locator = page.locator("#one .r-state")

    def sent(self, op: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate("window.sent")
        return [each for each in found if each.get("op") == op]

    def answer(self, number: int, value: dict[str, Any]) -> None:
        self.page.evaluate(
            "(m) => hear('msg:custom', m, [])", {"type": "answer", "id": number, "value": value}
        )

    def welcome(self, session: str | None = None, number: int | None = None) -> None:
        value = {"protocol": 1, "session": session or self.session, "version": "0", "versions": {}}
        self.answer(number or self.sent("hello")[-1]["id"], value)

    def live(self) -> None:
        """The view asks for more than a greeting."""
        self.page.wait_for_function("() => window.sent.some((each) => each.op && each.op !== 'hello')")


@pytest.fixture
def hosted(browser: Browser, workspace: Path) -> Iterator[Hosted]:
    found = reyn.Session(workspace).explore()
    snapshot = to_snapshot(view(found), "the session", LiveCatalog())
    page = browser.new_page()
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # else the page's time goes on by itself, and a test that is slow hears more
    page.set_content(PAGE)
    page.evaluate(HOST, [(STATIC / "widget.js").read_text("utf-8"), json.loads(json.dumps(snapshot))])
    yield Hosted(page, "the session")
    page.close()


def test_hello_is_said_again_until_the_kernel_hears_it(hosted: Hosted) -> None:
    assert len(hosted.sent("hello")) == 1
    hosted.page.clock.run_for(3500)
    said = hosted.sent("hello")
    assert len(said) == 3 and len({each["id"] for each in said}) == 3
    hosted.welcome(number=said[0]["id"])
    hosted.live()
    hosted.page.clock.run_for(20_000)
    assert len(hosted.sent("hello")) == 3


def test_a_kernel_that_never_answers_leaves_the_snapshot_and_a_late_answer_wakes_it(hosted: Hosted) -> None:
    hosted.page.clock.run_for(400)
    expect(hosted.status).to_contain_text("Kernel busy")
    hosted.page.clock.run_for(20_000)
    expect(hosted.status).to_contain_text("The kernel does not answer")
    expect(hosted.page.locator("#one")).to_contain_text("file__read")
    hosted.welcome()
    hosted.live()
    expect(hosted.status).to_be_hidden()


def test_a_request_without_an_answer_shows_that_the_kernel_is_busy(hosted: Hosted) -> None:
    hosted.welcome()
    hosted.live()
    hosted.page.clock.run_for(400)
    expect(hosted.status).to_contain_text("Kernel busy")
    hosted.page.evaluate(
        "() => hear('msg:custom', {type: 'event', event: {name: 'catalog', revision: 'x'}}, [])"
    )
    expect(hosted.status).to_be_hidden()


@pytest.mark.parametrize("event", ["comm:close", "destroy", "comm_live_update"])
def test_a_closed_comm_is_said_and_what_is_shown_stays(hosted: Hosted, event: str) -> None:
    hosted.welcome()
    hosted.live()
    hosted.page.evaluate(f"() => hear('{event}')")
    expect(hosted.status).to_contain_text("what is shown stays")
    hosted.welcome()
    expect(hosted.status).to_be_hidden()


def test_a_snapshot_of_an_earlier_session_is_not_gone_on_with(hosted: Hosted) -> None:
    hosted.welcome("another session")
    expect(hosted.status).to_contain_text("another session of the kernel")
    assert not [each for each in hosted.page.evaluate("window.sent") if each.get("op") != "hello"]


def test_a_kernel_of_another_version_says_what_to_do(hosted: Hosted) -> None:
    number = hosted.sent("hello")[0]["id"]
    failed = {
        "type": "error",
        "id": number,
        "code": "protocol",
        "message": "the versions of the protocol differ",
    }
    hosted.page.evaluate("(m) => hear('msg:custom', m, [])", {**failed, "hint": "Install the same one."})
    expect(hosted.status).to_contain_text("differ. Install the same one.")


def test_two_views_of_one_model_take_only_their_own_answers(hosted: Hosted) -> None:
    hosted.page.evaluate("() => { open_('two') }")
    first, second = hosted.sent("hello")
    assert first["id"] != second["id"]
    hosted.welcome(number=second["id"])
    hosted.live()
    hosted.page.clock.run_for(400)
    expect(hosted.status).to_contain_text("Kernel busy")


def test_a_closed_view_leaves_no_listener(hosted: Hosted) -> None:
    assert hosted.page.evaluate("listening()") > 0
    hosted.page.evaluate("() => close_()")
    assert hosted.page.evaluate("listening()") == 0
    before = len(hosted.page.evaluate("window.sent"))
    hosted.page.clock.run_for(20_000)
    assert len(hosted.page.evaluate("window.sent")) == before
