"""JupyterLab and what means no good, or is not there any more: hostile displays and questions, a kernel that is killed,
another version of the protocol on either side, a display of an older version."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.displays.mime import mime_type
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.serving.protocol import LiveCatalog
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.sessions.current import SESSION_ID
from tests.browser.browser_support import open_details
from tests.browser.lab_support import LabPage
from tests.notebook.render.samples import HOSTILE, every_kind

LOAD = "%load_ext reyn_jupyter"
TEXT = " ".join(HOSTILE).encode("utf-8", "replace").decode()
HIDDEN = set("\x1b\u202e\u2066\u200b\ufeff\x9b")
MARKUP = (
    ".reyn-view :is(script, img:not(.r-media > img), iframe, math, object, embed, base, "
    "[href^=javascript], [onload], [onerror])"
)


def displayed(snapshot: dict[str, Any], mime: str) -> dict[str, Any]:
    """A code cell as a notebook keeps it, with one display."""
    output = {
        "output_type": "display_data",
        "metadata": {},
        "data": {mime: snapshot, "text/plain": "as text"},
    }
    return {"source": "", "outputs": [output], "execution_count": 1}


def harmless(lab: LabPage, view: str = ".reyn-view") -> None:
    assert lab.page.evaluate("window.ran") is None
    assert lab.page.locator(MARKUP).count() == 0
    assert not HIDDEN & set("".join(lab.page.locator(view).all_inner_texts()))


def test_nothing_hostile_in_a_saved_notebook_becomes_markup(lab: LabPage) -> None:
    cells = []
    for name, each in every_kind(TEXT).items():
        made = view(each, tail=TEXT if name == "live" else None)
        cells.append(displayed(to_snapshot(made, TEXT), mime_type(each)))
    lab.show(lab.server.write(cells))
    for index in range(len(cells)):
        lab.script("await panel.content.scrollToItem(given)", index)
        expect(lab.output(index).locator(".reyn-view").first).to_contain_text("window.ran=1")
        harmless(lab)


def test_a_hostile_question_is_text_in_the_card_and_in_the_notification(lab: LabPage) -> None:
    lab.open(
        f"""{LOAD}
import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
path = "<img src=x onerror=window.ran=1>\\u202e.txt"
write = call("invoke_action", action_name="file__write", args={{"path": path, "content": {TEXT.replace(chr(0), "")!r}}})
reyn.session().parts.model = ScriptedModel(write, "Done.")""",
        "background = %reyn ask --bg write it",
    ).run()
    card = lab.output(1).get_by_role("group", name="Consent for")
    expect(card).to_contain_text("<img src=x onerror=window.ran=1>")
    expect(card).to_contain_text("<svg onload=window.ran=1>")
    expect(lab.page.locator(".Toastify__toast")).to_contain_text("waits for you")
    harmless(lab, ".r-approval, .Toastify")
    card.get_by_role("button", name="Deny").click()
    expect(card).to_have_count(0)


@pytest.mark.parametrize("session", [None, "", 0, True], ids=repr)
def test_a_saved_output_that_names_no_session_does_not_go_live(lab: LabPage, session: object) -> None:
    saved = to_snapshot(view(Session(lab.server.root).explore()), SESSION_ID, LiveCatalog(query="file"))
    lab.show(
        lab.server.write(
            [LOAD, displayed({**saved, "session": session}, "application/vnd.reyn.actions+json")]
        )
    )
    lab.run(0)
    expect(lab.output(1).locator(".r-state")).to_contain_text("another session of the kernel")
    expect(lab.output(1).get_by_role("searchbox")).to_have_count(0)


def test_a_kernel_that_is_killed_loses_nothing_and_the_next_one_is_another_session(lab: LabPage) -> None:
    lab.open(LOAD, "%reyn explore", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)").run(0, 1)
    explorer = lab.output(1)
    expect(explorer.get_by_role("grid")).to_contain_text("file__read")
    lab.start(2)
    caption = explorer.locator(".r-state")
    expect(caption).to_be_visible()
    expect(explorer.get_by_text("file__read", exact=True)).to_be_visible()
    notice = lab.page.locator(".jp-Dialog")  # JupyterLab's own, that the kernel has restarted
    expect(notice).to_contain_text("restart", ignore_case=True)
    notice.get_by_role("button", name="Ok").click()
    expect(caption).to_contain_text("not loaded")
    lab.until("panel.sessionContext.session?.kernel?.status === 'idle'")
    lab.run(0)
    expect(caption).to_contain_text("another session")
    expect(explorer.get_by_text("file__read", exact=True)).to_be_visible()


@pytest.mark.parametrize("spoken", [0, 2], ids=["older kernel", "newer kernel"])
def test_a_kernel_of_another_protocol_version_is_named_and_the_snapshot_stays(
    lab: LabPage, spoken: int
) -> None:
    lab.open(
        f"import reyn_jupyter.notebook.serving.connection as connection\nconnection.PROTOCOL = {spoken}",
        LOAD,
        "%reyn explore",
    ).run()
    shown = lab.output(2)
    expect(shown.get_by_text("file__read", exact=True)).to_be_visible()
    caption = shown.locator(".r-state")
    expect(caption).to_contain_text(f"version 1 of the protocol, the kernel {spoken}")
    expect(caption).to_contain_text("Install the same reyn-jupyter")
    expect(caption.get_by_role("button")).to_have_count(0)


@pytest.mark.parametrize("protocol", [0, 2, 99])
def test_a_saved_display_of_another_protocol_version_still_shows(lab: LabPage, protocol: int) -> None:
    shown = every_kind("words")["list"]
    made = view(shown)
    snapshot = {**to_snapshot(made, "s"), "protocol": protocol}
    lab.show(lab.server.write([displayed(snapshot, mime_type(shown))]))
    expect(lab.output(0)).to_contain_text("words")
    newer = lab.output(0).get_by_text("newer reyn-jupyter")
    expect(newer).to_have_count(1 if protocol > 1 else 0)


def test_an_interrupted_question_keeps_what_it_did_and_opens(lab: LabPage) -> None:
    lab.open(
        f"""{LOAD}
import asyncio, reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call

async def never(request):
    await asyncio.sleep(600)

reyn.session().parts.model = ScriptedModel(call("list_actions"), never)""",
        "%%reyn\nwhat is there?",
        "%reyn trace",
    ).run(0)
    lab.start(1)
    expect(lab.output(1).first).to_contain_text("list_actions")
    lab.command("notebook:interrupt-kernel")
    lab.until("panel.sessionContext.session?.kernel?.status === 'idle'")
    expect(lab.output(1).first).to_contain_text("You interrupted this run")
    lab.run(2)
    open_details(lab.output(2))
    expect(lab.output(2).get_by_role("listbox")).to_contain_text("list_actions")
