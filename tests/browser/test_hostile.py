"""Every text that the kernel sends to a live view is hostile: nothing runs, loads, hides, or becomes markup.

Beside what really can stand in a catalog, a blob or a run, each text of each answer is made hostile on its way to the
page, so that no field is left out: headings, facts, hints, captions, errors, notes of progress, events.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.render.blocks import Notice, View
from reyn_jupyter.notebook.serving.protocol import (
    AnswerChoice,
    ApprovalAsked,
    Live,
    LiveBlob,
    LiveCatalog,
    LiveDiff,
    LiveTrace,
    QuestionLine,
    Snapshot,
)
from reyn_jupyter.outputs.content import Structured, Text
from reyn_jupyter.sessions.current import SESSION_ID
from tests.browser.browser_support import Bare, Served, bare
from tests.browser.run_samples import two_runs
from tests.browser.test_trace import waiting_for_consent
from tests.notebook.render.samples import HOSTILE
from tests.support.waiting import until

# What is no text to show: what a message or a block is, how it is drawn, and what is asked for next.
STRUCTURE = {"type", "kind", "tone", "tones", "pane", "panes", "marks", "face", "align", "id", "run", "blob", "live",
             "a", "b", "session", "revision", "code", "value_kind", "items_kind"}  # fmt: skip
HIDDEN = set("\x1b\u202e\u2066\u200b\ufeff\x9b\x00")
TEXT = " ".join(HOSTILE).encode("utf-8", "replace").decode()


def spoiled(value: Any, key: str = "", text: str = TEXT) -> Any:
    """A message with every text in it made hostile, except where that would make it another message."""
    if key in STRUCTURE:
        return value
    if isinstance(value, str):
        return "javascript:window.ran=1" if key == "href" else f"{value}{text}"
    if isinstance(value, dict):
        return {name: spoiled(each, name, text) for name, each in value.items()}
    return [spoiled(each, key, text) for each in value] if isinstance(value, list) else value


@pytest.fixture
def hostile_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose every answer, error and event is hostile, but for the code of the views and who it is."""
    put = Served._put

    def spoil(server: Served, message: dict[str, Any]) -> None:
        value = message.get("value", {})
        if not {"session", "code"} & set(value):
            message = {**spoiled({key: message[key] for key in message if key != "event"}), **events(message)}
        put(server, message)

    monkeypatch.setattr(Served, "_put", spoil)


def events(message: dict[str, Any]) -> dict[str, Any]:
    event = message.get("event")
    return {"event": {**spoiled(event), "name": event["name"]}} if event else {}


# In one look each: an answer that comes meanwhile may draw anew what was there a moment ago.
PRESS = """(found) => found.filter((each) => each.checkVisibility() && !each.disabled).forEach((each) =>
  each.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true })))"""
FOCUS = "(found) => { found[0]?.focus(); found[0]?.select(); return found[0]?.type; }"


def clicked_through(page: Page) -> None:
    """Whatever can be pressed is pressed, what can be filled in is filled in."""
    for role in ("row", "option", "treeitem", "tab", "columnheader", "button"):
        found = page.locator("#host").get_by_role(role)  # type: ignore[arg-type]
        for place in range(min(found.count(), 7)):
            found.nth(place).evaluate_all(PRESS)
            page.wait_for_timeout(30)
    fields = page.locator("#host input:visible:not([type=checkbox]), #host textarea:visible")
    for place in range(min(fields.count(), 4)):
        kind = fields.nth(place).evaluate_all(FOCUS)
        page.keyboard.type("7" if kind == "number" else "window")
        page.keyboard.press("Enter")
        page.wait_for_timeout(100)


def harmless(shown: Bare) -> None:
    page = shown.page
    page.wait_for_timeout(200)
    assert page.evaluate("() => window.ran") is None
    markup = (
        "#host :is(script, img:not(.r-media > img), iframe, math, object, embed, base, "
        "[href^=javascript], [onload], [onerror])"
    )
    assert [
        each.evaluate("(node) => node.outerHTML.slice(0, 200)") for each in page.locator(markup).all()
    ] == []
    seen = page.evaluate(
        """() => document.querySelector("#host").innerText + " " + [...document.querySelectorAll("#host *")]
          .flatMap((node) => ["title", "aria-label", "placeholder"].map((name) => node.getAttribute(name) ?? ""))
          .join(" ")"""
    )
    at = next((place for place, letter in enumerate(seen) if letter in HIDDEN), None)
    assert at is None, repr(seen[max(0, at - 300) : at + 40])
    assert shown.elsewhere == []
    assert [each for each in shown.complaints if "favicon" not in each] == []


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, dict[str, Live]]:
    """A session with an object of every live kind."""
    session, a, b = two_runs(tmp_path_factory.mktemp("hostile"))
    store: Any = session.parts.services.blobs

    def framed() -> Any:
        return pd.DataFrame({text: [text] * 30 for text in HOSTILE[:5]} | {"n": range(30)})

    session.action(framed)
    stored = session.invoke_action("function__framed", {})
    assert stored.blob is not None
    lives: dict[str, Live] = {
        "explorer": LiveCatalog(query=""),
        "grid": LiveBlob(blob=stored.blob.id),
        "tree": LiveBlob(blob=store.put(Structured({text: [text, {text: text}] for text in HOSTILE})).id),
        "text": LiveBlob(blob=store.put(Text("\n".join(HOSTILE) * 50)).id, selector="lines:1-9"),
        "trace": LiveTrace(run=a.run),
        "diff": LiveDiff(a=a.run, b=b.run),
        "gone blob": LiveBlob(blob="0198c0de-aaaa-7000-8000-000000000001"),
        "gone run": LiveTrace(run=HOSTILE[1]),
    }
    return session, lives


KINDS = ("explorer", "grid", "tree", "text", "trace", "diff", "gone blob", "gone run")


@pytest.mark.parametrize("kind", KINDS)
def test_a_live_view_shows_whatever_a_kernel_says_as_text(
    browser: Browser, world: tuple[Session, dict[str, Live]], hostile_kernel: None, kind: str
) -> None:
    session, lives = world
    snapshot = Snapshot(
        session=SESSION_ID, view=View("blob", TEXT, blocks=(Notice(TEXT),)), live=lives[kind]
    ).model_dump(mode="json")
    with bare(browser, session, snapshot) as shown:
        page = shown.page
        page.wait_for_function("() => document.querySelector('#host').innerText.includes('window.ran')")
        until(lambda: len({each.get("op") for each in shown.requests()}) >= 3)
        page.wait_for_timeout(600)
        harmless(shown)
        clicked_through(page)
        harmless(shown)
        asked = {each["op"] for each in shown.requests() if each.get("op")}
        assert len(asked) >= 3, asked  # hello, the module, and what the view is about


def test_a_question_about_consent_shows_whatever_it_names_as_text(browser: Browser, tmp_path: Path) -> None:
    with waiting_for_consent(browser, tmp_path, "x") as (shown, run):
        expect(shown.page.get_by_role("group", name="Consent for file__write")).to_be_visible()
        lines = tuple(
            QuestionLine(kind=kind, text=TEXT, continued=False) for kind in ("effect", "note", "added")
        )
        deny = AnswerChoice(answer="deny", label=TEXT, hint=TEXT, outcome=TEXT, allows=False, secret=TEXT)
        shown.server.hub.tell(
            ApprovalAsked(
                id="q", action=TEXT, heading=TEXT, title=TEXT, region=TEXT, lines=lines, total=3, choices=(deny,),
                run=run.run_id,
            )
        )  # fmt: skip
        card = shown.page.locator("[data-question=q]")
        expect(card).to_contain_text("<script>window.ran=1</script>")
        harmless(shown)


def test_a_call_from_a_view_without_an_extension_is_asked_for_above_it(
    browser: Browser, world: tuple[Session, dict[str, Live]]
) -> None:
    session, lives = world
    snapshot = Snapshot(session=SESSION_ID, view=view(session.explore()), live=lives["explorer"])
    with bare(browser, session, snapshot.model_dump(mode="json")) as shown:
        page = shown.page
        page.get_by_role("searchbox").fill("file__write")
        page.get_by_role("searchbox").press("Enter")
        page.get_by_role("textbox", name="path").fill("<img src=x onerror=window.ran=1>.txt")
        page.get_by_role("textbox", name="content").fill(HOSTILE[2])
        page.get_by_role("button", name="Invoke").click()
        card = page.get_by_role("group", name="Consent for file__write")
        expect(card).to_contain_text("<img src=x onerror=window.ran=1>.txt")
        harmless(shown)
        page.wait_for_timeout(600)
        card.get_by_role("button", name="Deny").click()
        expect(page.locator(".r-result")).to_contain_text("Denied")
        expect(card).to_have_count(0)
