"""A question of consent belongs to the kernel's session: no reload, second page or dead kernel loses it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.lab_support import JupyterServer, LabPage
from tests.browser.test_consent import ASK, WAITING, card_at, cell_at, idle, shown_at, toast, written
from tests.browser.test_lab import SAYS
from tests.support.waiting import until

AFTER = "print('the next cell ran')"


def says(name: str, content: str = "hello\\n") -> str:
    return f"says(write({name!r}, {content!r}), 'Done with it.')"


def panel_card(lab: LabPage) -> Locator:
    lab.command("reyn:home")
    return lab.page.locator(".reyn-panel").get_by_role("group", name="Consent for file__write")


def run_all(lab: LabPage) -> None:
    lab.script(
        "window.jupyterapp.shell.activateById(panel.id);"
        "void window.jupyterapp.commands.execute('notebook:run-all-cells');"
    )


def buttons(card: Locator) -> Locator:
    return card.locator(".r-answers button")


@pytest.fixture
def other_page(browser: Browser, jupyter_server: JupyterServer) -> Iterator[LabPage]:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    yield LabPage(page, jupyter_server, "lab")
    page.close()


def test_a_question_is_there_again_after_a_reload(lab: LabPage) -> None:
    lab.open(SAYS, says("reloaded.txt"), ASK, AFTER).run(0, 1)
    lab.save()
    run_all(lab)
    expect(card_at(lab, 2)).to_be_visible()
    for _ in range(2):
        lab.reload(kernel=False)
        expect(card_at(lab, 2)).to_contain_text("+hello")
        expect(toast(lab)).to_contain_text(lab.name)
        expect(lab.page).to_have_title(WAITING)
    expect(panel_card(lab)).to_contain_text("+hello")
    lab.rest()
    card_at(lab, 2).get_by_role("button", name="Allow once").click()
    until(lambda: written(lab, "reloaded.txt"))
    expect(card_at(lab, 2)).to_have_count(0)
    expect(panel_card(lab)).to_have_count(0)
    expect(toast(lab)).to_have_count(0)
    idle(lab)


def test_every_page_shows_a_question_and_one_answer_counts(lab: LabPage, other_page: LabPage) -> None:
    lab.open(SAYS, says("two.txt"), ASK).run(0, 1)
    lab.save()
    lab.start(2)
    expect(card_at(lab, 2)).to_be_visible()
    other_page.show(lab.name, kernel=False)
    expect(card_at(other_page, 2)).to_contain_text("+hello")
    other_page.rest()
    card_at(other_page, 2).get_by_role("button", name="Deny").click()
    expect(cell_at(lab, 2)).to_contain_text("Answered elsewhere: Denied.")
    expect(card_at(lab, 2)).to_have_count(0)
    expect(shown_at(lab, 2)).to_contain_text("denied")
    assert not written(lab, "two.txt")
    idle(lab)


def test_two_pages_that_answer_at_once_give_one_answer(lab: LabPage, other_page: LabPage) -> None:
    lab.open(SAYS, says("race.txt"), ASK).run(0, 1)
    lab.save()
    lab.start(2)
    other_page.show(lab.name, kernel=False)
    for page in (lab, other_page):
        expect(card_at(page, 2)).to_be_visible()
    other_page.rest()
    press = """(name) => [...document.querySelectorAll('.jp-Cell .r-answers button')]
        .find((each) => each.textContent.startsWith(name)).click()"""
    lab.page.evaluate(press, "Allow once")
    other_page.page.evaluate(press, "Deny")
    for page in (lab, other_page):
        expect(card_at(page, 2)).to_have_count(0)
    idle(lab)
    allowed = written(lab, "race.txt")
    assert ("denied" in shown_at(lab, 2).inner_text()) is not allowed


def test_run_all_on_a_fresh_kernel_asks_with_buttons(lab: LabPage) -> None:
    lab.open(SAYS, says("fresh.txt"), ASK, AFTER)
    run_all(lab)
    card = card_at(lab, 2)
    expect(card.get_by_role("button", name="Allow once")).to_be_visible()
    expect(lab.page.locator(".jp-Stdin-input")).to_have_count(0)
    expect(lab.page).to_have_title(WAITING)
    expect(toast(lab)).to_be_visible()
    lab.rest()
    card.get_by_role("button", name="Allow once").click()
    expect(lab.output(3)).to_contain_text("the next cell ran")
    assert written(lab, "fresh.txt")
    lab.restart_kernel()
    (lab.server.root / "fresh.txt").unlink()
    run_all(lab)
    expect(card_at(lab, 2).get_by_role("button", name="Deny")).to_be_visible()
    lab.rest()
    card_at(lab, 2).get_by_role("button", name="Deny").click()
    idle(lab)
    assert not written(lab, "fresh.txt")


def test_a_killed_kernel_takes_the_buttons_and_says_so(lab: LabPage) -> None:
    lab.open(SAYS, f"import os\n{says('killed.txt')}\nprint(os.getpid())", ASK).run(0, 1)
    pid = int(lab.output(1).first.inner_text())
    lab.start(2)
    card, in_panel = card_at(lab, 2), panel_card(lab)
    expect(card).to_be_visible()
    expect(in_panel).to_be_visible()
    os.kill(pid, signal.SIGKILL)
    for each in (card, in_panel):
        expect(each).to_contain_text("The kernel ended before an answer")
        expect(each).to_contain_text("nothing was changed")
        expect(buttons(each)).to_have_count(0)
    expect(lab.page).not_to_have_title(WAITING)
    expect(toast(lab)).to_have_count(0)
    idle(lab)
    assert not written(lab, "killed.txt")
    lab.page.locator(".jp-Dialog button").filter(has_text="Ok").click()  # JupyterLab says it as well


def test_without_a_page_a_question_is_denied_in_time_and_the_next_cell_runs(
    lab: LabPage, other_page: LabPage
) -> None:
    gate, path = lab.server.gate()
    mark = "import pathlib; pathlib.Path('after.txt').write_text(str(reyn.session().trace('last').calls[-1]))"
    other_page.open(
        SAYS, "%reyn config permissions.question_seconds 1", says("alone.txt"), f"{gate}", ASK, AFTER, mark
    ).run(0, 1, 2)
    other_page.start(3)
    for index in (4, 5, 6):
        other_page.start(index)
    other_page.page.goto("about:blank")
    path.write_text("")
    after = lab.server.root / "after.txt"
    until(lambda: after.exists() and after.read_text() != "")  # it is made, then written
    assert "nobody answered in time" in after.read_text()
    assert not written(other_page, "alone.txt")


def test_the_panel_works_while_a_cell_waits(lab: LabPage) -> None:
    lab.open(SAYS, says("panel.txt"), ASK).run(0, 1).start(2)
    card = panel_card(lab)
    expect(card).to_contain_text("+hello")
    panel = lab.page.locator(".reyn-panel")
    panel.get_by_role("searchbox").first.fill("read a file")
    expect(panel).to_contain_text("file__read")
    lab.rest()
    card.get_by_role("button", name="Allow once").click()
    expect(shown_at(lab, 2)).to_contain_text("Done with it.")
    assert written(lab, "panel.txt")
    idle(lab)


@pytest.mark.parametrize("content", ["'line\\n' * 2_000", "'x' * 10_000", "'short'"])
def test_the_answers_are_in_sight_whatever_the_length(lab: LabPage, content: str) -> None:
    lab.page.set_viewport_size({"width": 1000, "height": 900})
    try:
        lab.open(SAYS, f"says(write('long.txt', {content}), 'Done.')", ASK).run(0, 1).start(2)
        in_cell = card_at(lab, 2)
        for find in (lambda: in_cell, lambda: panel_card(lab)):
            card = find()
            for name in ("Allow once", "Deny"):
                button = card.get_by_role("button", name=name)
                expect(button).to_be_in_viewport(ratio=1)
                box = button.bounding_box()
                assert box is not None and box["y"] >= 0 and box["y"] + box["height"] <= 900
        in_cell.get_by_role("button", name="Deny").click()
        idle(lab)
    finally:
        lab.page.set_viewport_size({"width": 1400, "height": 1000})
