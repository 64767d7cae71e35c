"""Consent in JupyterLab and Notebook 7: the question is below its cell, on every page, and nothing is blocked by it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_support import LabPage
from tests.browser.test_lab import SAYS

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
ASK = "%%reyn\nwrite it"
WAITING = re.compile("waiting for you")
# A press that was meant for something else, as soon as the button is there.
HASTY = """(wanted) => new MutationObserver((_, observer) => {
    const buttons = [...document.querySelectorAll(".r-approval button")];
    const button = buttons.find((each) => each.textContent.startsWith(wanted));
    if (button) (observer.disconnect(), button.click(), (window.hasty = true));
  }).observe(document.body, { childList: true, subtree: true })"""


def card_at(lab: LabPage, index: int) -> Locator:
    return cell_at(lab, index).get_by_role("group", name="Consent for file__write")


def cell_at(lab: LabPage, index: int) -> Locator:
    return lab.notebook.locator(".jp-Cell").nth(index)


def shown_at(lab: LabPage, index: int) -> Locator:
    """Return the card of a cell's run."""
    return cell_at(lab, index).locator(".jp-OutputArea .reyn-output")


def toast(lab: LabPage) -> Locator:
    return lab.page.locator(".Toastify__toast").filter(has_text="waits for you")


def idle(lab: LabPage) -> None:
    """Wait until no cell runs: a kernel calls itself idle too after it answered a page in the middle of a cell."""
    lab.until("panel.content.widgets.every((each) => each.model.executionState !== 'running')")


def written(lab: LabPage, name: str) -> bool:
    return (lab.server.root / name).exists()


def test_a_cell_asks_in_its_card_and_a_press_answers(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('pressed.txt', 'hello\\n'), 'Written.')", ASK).run(0, 1)
    lab.page.evaluate(HASTY, "Allow once")
    lab.start(2)
    card = card_at(lab, 2)
    expect(card.locator(".r-add")).to_contain_text("+hello")
    expect(card.get_by_role("button", name="Deny")).to_be_focused()
    expect(cell_at(lab, 2).locator(".r-approval")).to_have_count(1)
    expect(toast(lab)).to_contain_text(lab.name)
    expect(shown_at(lab, 2).locator(".r-top").first).to_contain_text("waiting for you")
    expect(lab.page.locator(".jp-Stdin-input")).to_have_count(0)
    expect(lab.page).to_have_title(WAITING)
    lab.page.wait_for_function("window.hasty")
    assert not written(lab, "pressed.txt")
    lab.rest()
    card.get_by_role("button", name="Allow once").click()
    expect(shown_at(lab, 2)).to_contain_text("Written.")
    expect(lab.page).not_to_have_title(WAITING)
    expect(card).to_have_count(0)
    idle(lab)
    assert written(lab, "pressed.txt")
    outputs = lab.script("return panel.content.widgets[2].model.outputs.length")
    assert outputs == 1


def test_the_keyboard_alone_reads_decides_later_and_answers(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('keys.txt', 'hello\\n'), 'Written.')", ASK).run(0, 1).start(2)
    card = card_at(lab, 2)
    expect(card.get_by_role("button", name="Deny")).to_be_focused()
    lab.page.keyboard.press("Escape")
    expect(card).to_contain_text("Not decided. The run waits for you.")
    expect(card.get_by_role("button", name="Deny")).not_to_be_focused()
    assert not written(lab, "keys.txt")
    card.get_by_role("region", name="What file__write would do").focus()
    lab.page.keyboard.press("Tab")
    expect(card.get_by_role("button", name="Allow once")).to_be_focused()
    lab.rest()
    lab.page.keyboard.press("Enter")
    expect(shown_at(lab, 2)).to_contain_text("Written.")
    idle(lab)
    assert written(lab, "keys.txt")
    assert lab.cells == 3  # Enter and Escape were the card's, not the notebook's


def test_enter_on_what_has_the_focus_denies(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('denied.txt', 'hello\\n'), 'Not written.')", ASK).run(0, 1).start(2)
    expect(card_at(lab, 2).get_by_role("button", name="Deny")).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(shown_at(lab, 2)).to_contain_text("Not written.")
    idle(lab)
    assert not written(lab, "denied.txt")


def test_a_long_question_in_a_cell_is_read_to_its_end_before_always_is_offered(lab: LabPage) -> None:
    content = "".join(f"line {number}\n" for number in range(150))
    lab.open(SAYS, f"says(write('long.txt', {content!r}), 'Written.')", ASK).run(0, 1).start(2)
    card = card_at(lab, 2)
    always = card.get_by_role("button", name="Always for file__write(write:long.txt)")
    expect(card).to_contain_text("+line 90")
    expect(always).to_have_count(0)
    card.get_by_role("button", name="Show the rest").click()
    expect(card).to_contain_text("+line 149")
    assert card.locator(".r-add").filter(has_text="+line 90").count() == 1
    lab.rest()
    always.click()
    expect(shown_at(lab, 2)).to_contain_text("Written.")
    idle(lab)
    assert (lab.server.root / "long.txt").read_text() == content
    lab.run_code("reyn.session().parts.approvals.clear()")


def test_whoever_types_in_another_cell_goes_on_there(lab: LabPage) -> None:
    gate, path = lab.server.gate()
    lab.open(
        SAYS,
        "says(write('typing.txt', 'hello\\n'), 'Written.')",
        f"{gate}\nget_ipython().run_cell_magic('reyn', '', 'write it')",
        "# notes",
    ).run(0, 1)
    lab.start(2)
    lab.notebook.locator(".jp-Cell .cm-content").nth(3).click()
    path.write_text("")
    expect(card_at(lab, 2)).to_be_visible()
    lab.page.keyboard.type(" go on")
    assert "go on" in lab.source(3)
    card_at(lab, 2).get_by_role("button", name="Deny").click()
    idle(lab)
    assert not written(lab, "typing.txt")


def test_an_interrupt_takes_the_question_away(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('stopped.txt', 'hello\\n'), 'Written.')", ASK).run(0, 1).start(2)
    expect(card_at(lab, 2)).to_be_visible()
    lab.command("notebook:interrupt-kernel")
    expect(shown_at(lab, 2)).to_contain_text("interrupted")
    expect(card_at(lab, 2)).to_have_count(0)
    expect(lab.page).not_to_have_title(WAITING)
    idle(lab)
    assert not written(lab, "stopped.txt")


def test_a_saved_question_is_not_asked(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('saved.txt', 'hello\\n'), 'Written.')", ASK).run(0, 1).start(2)
    expect(card_at(lab, 2)).to_be_visible()
    expect(shown_at(lab, 2).locator(".reyn-view").first).to_be_visible()
    lab.save()
    lab.shutdown_kernel()
    name = lab.name
    lab.script("panel.context.model.dirty = false; panel.dispose()")
    lab.show(name)
    expect(shown_at(lab, 2).locator(".reyn-view").first).to_be_visible()
    expect(card_at(lab, 2)).to_have_count(0)
    expect(lab.page).not_to_have_title(WAITING)


def test_a_background_run_asks_in_its_card_and_blocks_nothing(lab: LabPage) -> None:
    lab.open(
        SAYS,
        "says(write('allowed.txt', 'x'), 'Written.', write('denied.txt', 'x'), 'Not written.')",
        "allowed = %reyn ask --bg write it",
        "denied = %reyn ask --bg write it again",
        "print('the lab goes on')",
    ).run(0, 1, 2)
    card = card_at(lab, 2)
    expect(card).to_contain_text("allowed.txt")
    expect(toast(lab)).to_contain_text(lab.name)
    expect(lab.page).to_have_title(WAITING)
    expect(lab.page.locator(".jp-Dialog")).to_have_count(0)
    lab.run(4)
    expect(lab.output(4)).to_contain_text("the lab goes on")
    lab.rest()
    card.get_by_role("button", name="Allow once").click()
    expect(shown_at(lab, 2)).to_contain_text("Written.")
    expect(toast(lab)).to_have_count(0)
    expect(lab.page).not_to_have_title(WAITING)
    assert (lab.server.root / "allowed.txt").read_text() == "x"
    lab.run(3)
    expect(card_at(lab, 3)).to_contain_text("denied.txt")
    card_at(lab, 3).get_by_role("button", name="Deny").click()
    expect(shown_at(lab, 3)).to_contain_text("Not written.")
    assert not written(lab, "denied.txt")


def test_a_notification_leads_to_the_card_and_dismissing_it_decides_nothing(lab: LabPage) -> None:
    filler = [{"cell_type": "markdown", "source": "text\n\n" * 60, "metadata": {}} for _ in range(3)]
    lab.open(
        SAYS,
        "says(write('led.txt', 'x'), 'Written.', write('led.txt', 'y'), 'Written again.')",
        "run = %reyn ask --bg write it",
        *filler,
        "again = %reyn ask --bg write it",
    ).run(0, 1, 2)
    expect(toast(lab)).to_be_visible()
    lab.script("panel.content.activeCellIndex = 5; await panel.content.scrollToItem(5)")
    toast(lab).get_by_role("button", name="Show the question").click()
    card = card_at(lab, 2)
    expect(card).to_be_in_viewport()
    expect(card.get_by_role("button", name="Deny")).to_be_focused()
    expect(toast(lab)).to_have_count(0)
    lab.until("panel.sessionContext.session.kernel.status === 'idle'")
    lab.rest()
    card.get_by_role("button", name="Allow once").click()
    expect(shown_at(lab, 2)).to_contain_text("Written.")
    assert (lab.server.root / "led.txt").read_text() == "x"


def test_a_question_without_a_card_is_shown_alone_and_escape_leaves_it(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('alone.txt', 'x'), 'Written.')", "run = %reyn ask --bg write it").run(0, 1, 2)
    expect(card_at(lab, 2)).to_be_visible()
    lab.script("panel.content.activeCellIndex = 2")
    lab.command("notebook:delete-cell")
    toast(lab).get_by_role("button", name="Show the question").click()
    dialog = lab.page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("alone.txt")
    expect(dialog.get_by_role("button", name="Deny")).to_be_focused()
    lab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    lab.run_code("pending = len(run.pending)")
    expect(lab.page).to_have_title(WAITING)
    lab.run_code("run.answer(run.pending[0].id, 'deny')")
    expect(lab.page).not_to_have_title(WAITING)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_question_in_a_card_has_no_barrier(lab: LabPage, theme: str) -> None:
    lab.open(SAYS, "says(write('axe.txt', 'hello\\n'), 'Written.')", ASK).run(0, 1)
    lab.set_theme(theme)  # type: ignore[arg-type]
    lab.start(2)
    expect(card_at(lab, 2)).to_be_visible()
    lab.page.evaluate(AXE.read_text())
    found = lab.page.evaluate("axe.run('.jp-OutputArea-output .reyn-view')")["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
    card_at(lab, 2).get_by_role("button", name="Deny").click()
    idle(lab)
    lab.set_theme("JupyterLab Light")
