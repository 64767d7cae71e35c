"""The side panel in JupyterLab: a question, its answer, runs, results and actions of the notebook that is active."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_support import LabPage
from tests.browser.test_lab import LOAD, SAYS, close_tab

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
WAITS = """
@reyn.action
def wait() -> str:
    'Wait for a file.'
    import pathlib, time
    while not pathlib.Path('go').exists():
        time.sleep(0.05)
    return 'over'
"""
# An older one answers the panel only when the function that it runs has returned.
beside = pytest.mark.skipif(
    int(version("ipykernel").split(".")[0]) < 7, reason="ipykernel 7 is the first with subshells"
)
HOSTILE = '<img src=x onerror="window.pwned=1">\u202e'


def opened(lab: LabPage) -> Locator:
    lab.command("reyn:home")
    return lab.page.get_by_role("region", name="Reyn", exact=True)


def question(panel: Locator) -> Locator:
    return panel.get_by_role("textbox", name="Question")


def answer(panel: Locator) -> Locator:
    return panel.get_by_role("region", name="Answer")


def runs(panel: Locator) -> Locator:
    return panel.get_by_role("list", name="Recent runs").get_by_role("button")


def test_a_question_is_answered_in_the_panel_and_put_into_the_notebook_with_its_answer(lab: LabPage) -> None:
    lab.open(SAYS, "says('Four regions.')").run()
    panel = opened(lab)
    expect(question(panel)).to_be_focused()
    lab.page.keyboard.type("how many regions?")
    lab.page.keyboard.press("Enter")
    expect(answer(panel)).to_contain_text("Four regions.")
    expect(answer(panel)).to_contain_text("how many regions?")
    expect(question(panel)).to_have_value("")
    assert lab.cells == 2
    panel.get_by_role("button", name="Put into the notebook").click()
    lab.until("panel.content.widgets.length === 3")
    assert lab.source(2) == "%%reyn\nhow many regions?"
    assert not lab.executed(2)
    expect(lab.output(2)).to_contain_text("Four regions.")
    expect(runs(panel).first).to_contain_text("how many regions?")


@beside
def test_what_is_typed_stays_while_the_answer_to_the_last_question_arrives(lab: LabPage) -> None:
    (lab.server.root / "go").unlink(missing_ok=True)
    lab.open(f"{SAYS}{WAITS}\nsays(call('function__wait'), 'It is over.')").run()
    panel = opened(lab)
    field = question(panel)
    field.fill("wait for it")
    field.press("Enter")
    expect(answer(panel)).to_contain_text("under way")
    expect(field).to_have_value("")
    field.type("and then")
    field.press("Shift+Enter")  # Enter alone would ask
    lab.page.keyboard.type("what ")
    lab.page.keyboard.type("happens")
    field.evaluate("(each) => each.setSelectionRange(3, 3)")
    (lab.server.root / "go").touch()
    expect(answer(panel)).to_contain_text("It is over.")
    expect(answer(panel)).not_to_contain_text("under way")
    expect(field).to_be_focused()
    lab.page.keyboard.type(" also")
    expect(field).to_have_value(re.compile(r"^and also then.*happens$", re.DOTALL))


def test_each_notebook_keeps_its_question_and_its_answer(lab: LabPage) -> None:
    lab.open(SAYS, "says('First.')").run()
    first = lab.name
    panel = opened(lab)
    question(panel).fill("one?")
    question(panel).press("Enter")
    expect(answer(panel)).to_contain_text("First.")
    question(panel).fill("half a quest")
    lab.open("1")
    expect(panel).to_contain_text(lab.name)
    expect(panel).to_contain_text("not loaded")
    expect(question(panel)).to_have_count(0)
    lab.close()
    lab.script(
        "window.jupyterapp.shell.activateById([...window.jupyterapp.shell.widgets('main')]"
        ".find((each) => each.context?.path === given).id)",
        first,
    )
    lab.name = first
    expect(question(panel)).to_have_value("half a quest")
    expect(answer(panel)).to_contain_text("First.")


def test_a_question_that_a_busy_kernel_has_not_taken_is_asked_once_through_other_notebooks(
    lab: LabPage,
) -> None:
    gate, path = lab.server.gate()
    lab.open(f"{SAYS}\nsays('First.', 'Twice.')", gate).run(0)
    first = lab.name
    panel = opened(lab)
    lab.start(1)
    question(panel).fill("asked once?")
    question(panel).press("Enter")
    lab.open("1")
    expect(panel).to_contain_text(lab.name)
    lab.close()
    lab.script(
        "window.jupyterapp.shell.activateById([...window.jupyterapp.shell.widgets('main')]"
        ".find((each) => each.context?.path === given).id)",
        first,
    )
    lab.name = first
    expect(panel.get_by_role("button", name="Ask", exact=True)).to_be_disabled()
    question(panel).press("Enter")
    path.write_text("")
    expect(answer(panel)).to_contain_text("First.")
    expect(question(panel)).to_have_value("")
    expect(runs(panel).filter(has_text="asked once?")).to_have_count(1)


@beside
def test_a_restart_in_the_middle_loses_no_question_and_says_what_to_do(lab: LabPage) -> None:
    (lab.server.root / "go").unlink(missing_ok=True)
    lab.open(f"{SAYS}{WAITS}\nsays(call('function__wait'), 'It is over.')", LOAD).run(0)
    panel = opened(lab)
    question(panel).fill("wait for it")
    question(panel).press("Enter")
    expect(answer(panel)).to_contain_text("under way")
    question(panel).fill("half a quest")
    lab.restart_kernel()
    expect(panel.get_by_role("button", name="Insert %load_ext")).to_be_visible()
    expect(question(panel)).to_have_value("half a quest")
    question(panel).press("Enter")
    expect(panel.get_by_role("form", name="Ask").get_by_role("alert")).to_contain_text("not loaded")
    expect(question(panel)).to_have_value("half a quest")
    lab.run(1)
    expect(panel.get_by_role("button", name="Insert %load_ext")).to_have_count(0)
    expect(answer(panel)).to_contain_text("cut off")
    expect(question(panel)).to_have_value("half a quest")


def test_without_a_kernel_one_button_says_what_to_do(lab: LabPage) -> None:
    lab.open(LOAD).run()
    panel = opened(lab)
    expect(question(panel)).to_be_visible()
    lab.shutdown_kernel()
    expect(panel.get_by_role("button", name="Choose a kernel")).to_be_visible()
    lab.close()
    expect(panel).to_contain_text("Open a notebook")
    expect(panel.get_by_role("button", name="New notebook")).to_be_visible()


def test_a_run_and_a_stored_result_open_in_a_tab_once(lab: LabPage) -> None:
    lab.open(
        f"{SAYS}\n@reyn.action\ndef figures() -> object:\n    'All figures.'\n"
        "    return [{'figure': n} for n in range(5000)]\nsays('Four regions.')",
        "%reyn invoke function__figures",
        "%reyn ask how many regions are there?",
    ).run(0)
    panel = opened(lab)
    expect(panel.get_by_role("rowheader").first).to_be_visible()
    lab.run(1, 2)  # what cells do is seen without a press
    expect(runs(panel).first).to_contain_text("how many regions are there?")
    tabs = lab.page.locator(".reyn-tab")
    for _ in range(2):
        runs(panel).first.click()
        expect(tabs).to_have_count(1)
        expect(tabs).to_contain_text("Four regions.")
    close_tab(lab)
    panel.get_by_text("Stored results", exact=True).click()
    panel.get_by_role("list", name="Stored results").get_by_role("button").first.click()
    expect(tabs.get_by_role("grid")).to_have_attribute("aria-rowcount", "5001")
    close_tab(lab)


def test_the_lists_are_walked_through_by_keys(lab: LabPage) -> None:
    lab.open(
        SAYS, "says('One.', 'Two.', 'Three.')", "%reyn ask one", "%reyn ask two", "%reyn ask three"
    ).run()
    panel = opened(lab)
    expect(runs(panel).nth(2)).to_contain_text("one")
    question(panel).focus()
    lab.page.keyboard.press("Tab")
    expect(panel.get_by_role("button", name="Ask", exact=True)).to_be_focused()
    runs(panel).first.focus()
    lab.page.keyboard.press("ArrowDown")
    expect(runs(panel).nth(1)).to_be_focused()
    lab.run_code("1")  # the lists are read anew
    lab.page.keyboard.press("ArrowDown")
    expect(runs(panel).nth(2)).to_be_focused()
    lab.page.keyboard.press("Home")
    expect(runs(panel).first).to_be_focused()


def test_consent_is_given_in_the_panel(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('from-the-panel.txt', 'x'), 'Written.')").run()
    panel = opened(lab)
    question(panel).fill("write it")
    question(panel).press("Enter")
    asked = panel.get_by_role("group", name="Consent for file__write")
    expect(asked).to_contain_text("from-the-panel.txt")
    expect(asked).to_have_count(1)  # in the answer's card, and not a second time among what waits
    lab.rest()
    asked.get_by_role("button", name="Allow once").click()
    expect(answer(panel)).to_contain_text("Written.")
    assert (lab.server.root / "from-the-panel.txt").read_text() == "x"


def test_a_question_of_another_run_waits_in_the_panel_and_is_answered_there(lab: LabPage) -> None:
    lab.open(SAYS, "says(write('of-a-cell.txt', 'x'), 'Written.')", "%%reyn --bg\nwrite it").run()
    panel = opened(lab)
    waiting = panel.get_by_role("region", name="Waiting for you")
    expect(waiting).to_contain_text("of-a-cell.txt")
    lab.rest()
    waiting.get_by_role("button", name="Allow once").click()
    expect(waiting.get_by_role("button", name="Allow once")).to_have_count(0)
    expect(runs(panel).first).to_contain_text("write it")
    lab.until("panel.sessionContext.session?.kernel?.status === 'idle'")
    expect(lab.output(2)).to_contain_text("Written.")
    assert (lab.server.root / "of-a-cell.txt").read_text() == "x"


def test_what_the_kernel_says_is_shown_as_text(lab: LabPage) -> None:
    lab.open(SAYS, f"says({HOSTILE!r}, {HOSTILE!r})").run()
    panel = opened(lab)
    question(panel).fill(HOSTILE)
    question(panel).press("Enter")
    expect(runs(panel).first).to_contain_text("<img src=x")
    expect(answer(panel).locator(".r-body")).to_contain_text("<img src=x")
    expect(runs(panel).first).to_contain_text("⟨U+202E⟩")
    panel.get_by_role("button", name="Put into the notebook").click()
    lab.until("panel.content.widgets.length === 3")
    expect(lab.output(2)).to_contain_text("<img src=x")
    assert lab.page.evaluate("window.pwned") is None


def test_the_catalog_is_grouped_harmless_first_and_searched_by_meaning(lab: LabPage) -> None:
    lab.open(LOAD).run()
    panel = opened(lab)
    groups = panel.locator(".r-group strong")
    expect(groups.first).to_be_visible()
    assert "memory_operation" not in groups.first.inner_text()
    lab.command("reyn:explore")
    search = panel.get_by_role("searchbox", name="Search actions")
    expect(search).to_be_focused()
    lab.page.keyboard.type("take notes so I do not forget")
    expect(panel.get_by_role("rowheader").first).to_contain_text("memory_operation__")
    expect(panel.get_by_text("best first")).to_be_visible()
    expect(groups).to_have_count(0)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing_serious_in_the_panel(lab: LabPage, theme: str) -> None:
    lab.open(SAYS, "says('Four regions.')").run()
    lab.set_theme(theme)  # type: ignore[arg-type]
    panel = opened(lab)
    question(panel).fill("how many regions?")
    question(panel).press("Enter")
    expect(answer(panel)).to_contain_text("Four regions.")
    expect(panel.get_by_role("rowheader").first).to_be_visible()
    lab.page.add_script_tag(path=str(AXE))
    found = lab.page.evaluate("axe.run('#reyn-jupyter-catalog')")["violations"]
    lab.set_theme("JupyterLab Light")
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


def test_all_commands_of_the_palette_begin_with_the_name(lab: LabPage) -> None:
    labels = lab.page.evaluate(
        "window.jupyterapp.commands.listCommands().filter((id) => id.startsWith('reyn:'))"
        ".map((id) => window.jupyterapp.commands.label(id))"
    )
    assert len(labels) >= 4 and all(label.startswith("Reyn: ") for label in labels)
