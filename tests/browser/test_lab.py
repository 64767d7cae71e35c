"""The extension in JupyterLab: what is drawn, what is live, and what stays when the kernel goes."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.browser_support import open_details
from tests.browser.lab_support import LabPage

LOAD = "%load_ext reyn_jupyter"
SAYS = f"""{LOAD}
import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call

def says(*steps, **options):
    reyn.session().parts.model = ScriptedModel(*steps, **options)

def write(path, content):
    return call("invoke_action", action_name="file__write", args={{"path": path, "content": content}})
"""

# JupyterLab hides its page for a frame when the theme changes; here until the browser has taken the focus away.
HIDE_LONGER = """() => {
  const { shell } = window.jupyterapp, show = shell.show.bind(shell);
  window.focusesLost = 0;
  shell.show = () => {
    if (document.activeElement !== document.body) return requestAnimationFrame(shell.show);
    window.focusesLost += 1;
    show();
  };
}"""


# The words of an element that stand on more than one line.
BROKEN_WORDS = r"""(element) => {
  const found = [], walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (const word of node.data.matchAll(/[^\s-]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) found.push(word[0]);
    }
  return found;
}"""


def search(within: Locator) -> Locator:
    return within.get_by_role("searchbox", name="Search actions")


def caption(within: Locator) -> Locator:
    return within.locator(".r-state")


def test_a_display_is_drawn_by_the_extension_in_both_themes(lab: LabPage) -> None:
    lab.open(LOAD, "%reyn list file").run()
    shown = lab.output(1).locator(".reyn-view")
    expect(lab.output(1)).to_have_class(re.compile("reyn-output"))
    expect(shown.first).to_contain_text("file__read")
    expect(lab.output(1).locator(".jp-RenderedHTMLCommon")).to_have_count(0)
    background = "(element) => getComputedStyle(element).backgroundColor"
    light = shown.first.evaluate(background)
    lab.set_theme("JupyterLab Dark")
    assert shown.first.evaluate(background) != light
    lab.set_theme("JupyterLab Light")


def test_an_error_keeps_its_words_whole_and_breaks_only_what_is_longer_than_a_line(lab: LabPage) -> None:
    sentence = "an establishment of considerable circumference " * 12
    lab.open(
        f"from reyn_jupyter.support.user_errors import UserError\nraise UserError({sentence!r} + 'x' * 400)"
    ).start(0)
    shown = lab.output(0).locator("pre")
    expect(shown).to_contain_text("circumference")
    assert shown.evaluate(BROKEN_WORDS) == ["x" * 400]
    assert shown.evaluate("(element) => element.scrollWidth <= element.clientWidth")


def test_a_change_of_theme_leaves_focus_caret_and_selection_in_the_view(lab: LabPage) -> None:
    page = lab.open(LOAD, "%reyn explore").run().page
    lab.command("reyn:explore")
    panel = page.get_by_role("region", name="Reyn", exact=True)
    for within in (lab.output(1), panel):
        field = search(within)
        field.fill("file read")
        field.evaluate("(each) => each.setSelectionRange(5, 9)")
        page.evaluate(HIDE_LONGER)
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            lab.set_theme(theme)
            expect(field).to_be_focused()
        assert page.evaluate("() => delete window.jupyterapp.shell.show && window.focusesLost") == 2
        page.keyboard.type("write")
        expect(field).to_have_value("file write")


def test_a_change_of_theme_leaves_a_table_at_the_rows_that_it_was_scrolled_to(lab: LabPage) -> None:
    lab.open(
        LOAD, "import pandas as pd\nnumbers = pd.DataFrame({'n': range(500)})", "%reyn view numbers"
    ).run()
    table = lab.output(2).get_by_role("grid")
    figures = lab.output(2).locator(".r-status").last
    expect(figures).to_contain_text("rows 1–")
    table.evaluate("(element) => { element.parentElement.scrollTop = 1e6; }")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        expect(figures).to_contain_text("–500")
        expect(table.get_by_role("gridcell", name="499", exact=True).last).to_be_in_viewport()
        lab.set_theme(theme)
    expect(figures).to_contain_text("–500")
    expect(table.get_by_role("gridcell", name="499", exact=True).last).to_be_in_viewport()


def test_the_explorer_keeps_its_keys_and_puts_code_into_a_new_cell_without_running_it(lab: LabPage) -> None:
    lab.open(LOAD, "%reyn explore", "after = 1").run(0, 1)
    explorer = lab.output(1)
    search(explorer).fill("grep")
    expect(explorer.get_by_text("file__grep")).to_be_visible()
    expect(explorer.get_by_text("file__delete")).to_have_count(0)
    explorer.get_by_text("file__grep").click()
    for key in ("d", "d", "a", "m"):  # a notebook would delete the cell, and add another
        lab.page.keyboard.press(key)
    assert lab.cells == 3
    explorer.get_by_role("button", name=re.compile("Insert cell")).click()
    lab.until("panel.content.widgets.length === 4")
    assert lab.source(2).startswith("%reyn invoke file__grep")
    assert not lab.executed(2)


def test_an_output_taken_to_a_tab_of_its_own_is_live_there_too(lab: LabPage) -> None:
    lab.open(LOAD, "%reyn explore").run()
    expect(lab.output(1).get_by_role("grid")).to_contain_text("file__read")
    lab.script("panel.content.activeCellIndex = 1")
    lab.command("notebook:create-output-view")
    tab = lab.page.locator(".jp-LinkedOutputView")
    search(tab).fill("grep")
    expect(tab.get_by_text("file__grep")).to_be_visible()
    expect(tab.get_by_text("file__delete")).to_have_count(0)
    expect(lab.output(1).get_by_text("file__delete")).to_have_count(1)
    close_tab(lab)


def test_what_is_shown_stays_when_the_kernel_goes_and_says_so(lab: LabPage) -> None:
    lab.open(LOAD, "%reyn explore").run()
    explorer = lab.output(1)
    expect(explorer.get_by_text("file__read", exact=True)).to_be_visible()
    expect(search(explorer)).to_be_visible()
    lab.shutdown_kernel()
    expect(caption(explorer)).to_contain_text("The kernel is gone")
    expect(explorer.get_by_text("file__read", exact=True)).to_be_visible()


def test_after_a_restart_a_display_of_the_earlier_session_is_foreign(lab: LabPage) -> None:
    lab.open(LOAD, "%reyn explore", "%reyn explore").run(0, 1)
    expect(lab.output(1).get_by_role("grid")).to_contain_text("file__read")
    lab.restart_kernel()
    expect(caption(lab.output(1))).to_contain_text("not loaded")
    lab.run(0, 2)
    expect(search(lab.output(2))).to_be_visible()
    expect(caption(lab.output(2))).to_be_hidden()
    expect(caption(lab.output(1))).to_contain_text("another session")
    expect(lab.output(1).get_by_text("file__read", exact=True)).to_be_visible()


def test_a_reopened_notebook_shows_its_snapshots_and_offers_to_load_the_extension(lab: LabPage) -> None:
    lab.open("1", "%reyn explore")
    lab.run_code(LOAD)
    lab.run(1)
    expect(search(lab.output(1))).to_be_visible()
    lab.save()
    lab.shutdown_kernel()
    lab.reload()
    expect(lab.output(1).get_by_text("file__read", exact=True)).to_be_visible()
    expect(caption(lab.output(1))).to_contain_text("not loaded in this kernel")
    insert = lab.output(1).get_by_role("button", name=LOAD)
    insert.click()
    expect(insert).to_have_text("Inserted")
    expect(insert).to_have_text("Insert %load_ext")
    assert lab.source(2) == LOAD
    assert not lab.executed(2)
    lab.run(2)
    expect(caption(lab.output(1))).to_contain_text("another session")


@pytest.mark.parametrize("again", ["restart", "restart and load", "reopen"])
def test_a_run_that_its_kernel_did_not_survive_is_said_to_be_cut_off(lab: LabPage, again: str) -> None:
    wait = """@reyn.action
def wait() -> str:
    while True:
        time.sleep(0.05)
"""
    lab.open(f"import time\n{SAYS}\n{wait}\nsays(call('function__wait'))", "%%reyn\nwait for it", LOAD).run(0)
    lab.start(1)
    card = lab.output(1)
    expect(card).to_contain_text("running")
    expect(card).to_contain_text("nterrupt the cell")
    lab.save()
    if again == "reopen":
        lab.shutdown_kernel()
        lab.reload(kernel=False)
    else:
        lab.restart_kernel()
    if again == "restart and load":
        lab.run(2)
    expect(card).to_contain_text("cut off")
    expect(card).to_contain_text("wait for it")
    expect(card).not_to_contain_text("nterrupt the cell")
    expect(card).not_to_contain_text("… running")
    # A notebook that is closed while its kernel starts makes JupyterLab stumble.
    lab.until("panel.sessionContext.session?.kernel?.status === 'idle'")


def test_a_kernel_with_subshells_answers_beside_a_cell_that_runs(lab: LabPage) -> None:
    beside = int(version("ipykernel").split(".")[0]) >= 7  # an older one answers when the cell has ended
    waits, go_on = lab.server.gate()
    lab.open(LOAD, "%reyn explore", waits).run(0, 1)
    explorer = lab.output(1)
    expect(explorer.get_by_role("grid")).to_contain_text("file__read")
    lab.start(2)
    explorer.get_by_text("file__read", exact=True).click()
    if not beside:
        go_on.touch()
    expect(explorer.get_by_role("button", name=re.compile("Insert cell"))).to_be_visible()
    assert lab.executed(2) is not beside
    go_on.touch()


def test_a_kernel_whose_cells_wait_is_asked_once_and_complains_of_nothing(lab: LabPage) -> None:
    lab.open(LOAD, "import gc, time\ntime.sleep(12)", "gc.collect()", "%reyn list file")
    lab.sent.clear()
    lab.script("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    lab.until("panel.content.widgets[0].model.executionCount !== null")
    expect(lab.output(3)).to_contain_text("file__read")
    expect(caption(lab.output(3))).to_be_hidden()
    openings = [each for each in lab.sent if '"comm_open"' in each and '"reyn.v1"' in each]
    assert len(openings) == 1
    said = lab.script("return panel.content.widgets.map((cell) => cell.model.outputs.toJSON()).flat()")
    assert not [each for each in said if each.get("name") == "stderr"]


def test_a_run_opens_in_the_trace_viewer(lab: LabPage) -> None:
    lab.open(SAYS, "says(call('list_actions'), 'Counted.')", "%reyn ask what is there?").run()
    viewer = lab.output(2)
    expect(caption(viewer)).to_be_hidden()
    expect(viewer).to_contain_text("Counted.")
    expect(viewer).to_contain_text("list_actions")


def test_a_stored_result_opens_in_a_tab_of_its_own_from_the_explorer_and_from_a_run(lab: LabPage) -> None:
    lab.open(
        f"{SAYS}\n@reyn.action\ndef figures() -> object:\n    'All figures.'\n"
        "    return [{'figure': n} for n in range(5000)]",
        "%reyn explore",
        "says(call('invoke_action', action_name='function__figures', args={}), 'Done.')",
        "%reyn ask which figures are there?",
    ).run(0, 1)
    explorer = lab.output(1)
    search(explorer).fill("figures")
    explorer.get_by_text("function__figures", exact=True).click()
    explorer.get_by_role("button", name="Invoke").click()
    explorer.get_by_role("button", name="Open the blob").click()
    tab = lab.page.locator(".reyn-tab")
    expect(tab.get_by_role("grid")).to_have_attribute("aria-rowcount", "5001")
    expect(explorer.locator(".r-inspector")).to_have_count(0)
    close_tab(lab)
    lab.run(2, 3)
    open_details(lab.output(3))
    steps = lab.output(3).get_by_role("option")
    steps.filter(has_text="function__figures").click()
    lab.output(3).get_by_role("button", name="Inspect the blob").click()
    expect(tab.get_by_role("grid")).to_have_attribute("aria-rowcount", "5001")
    close_tab(lab)


def close_tab(lab: LabPage) -> None:
    """Close the tab beside the notebook, as its cross does."""
    beside = ".jp-LinkedOutputView, .reyn-tab"
    lab.script(
        "for (const each of [...window.jupyterapp.shell.widgets('main')])"
        f" if (each.node.matches('{beside}') || each.node.querySelector('{beside}')) each.close()"
    )
    lab.until(f"!document.querySelector('{beside}')")


def test_two_views_of_one_stored_table_sort_each_by_itself(lab: LabPage) -> None:
    lab.open(
        f"{LOAD}\nimport reyn_jupyter as reyn, pandas\n"
        "@reyn.action\ndef figures() -> object:\n"
        "    'All figures.'\n    return pandas.DataFrame({'figure': range(5000)})",
        "stored = %reyn invoke function__figures",
        "stored.blob",
        "stored.blob",
    ).run()
    one, other = lab.output(2).get_by_role("grid"), lab.output(3).get_by_role("grid")
    header = one.get_by_role("columnheader").filter(has_text="figure")
    header.click()
    expect(header).to_have_attribute("aria-sort", "ascending")
    header.click()
    expect(header).to_have_attribute("aria-sort", "descending")
    expect(one).to_contain_text("4999")
    expect(other).to_contain_text("12")
    expect(other.get_by_role("gridcell", name="4999", exact=True)).to_have_count(0)


def test_the_panel_shows_the_catalog_of_the_notebook_that_is_active(lab: LabPage) -> None:
    lab.open(LOAD, "1")
    lab.command("reyn:explore")
    panel = lab.page.get_by_role("region", name="Reyn", exact=True)
    expect(panel).to_contain_text(lab.name)
    expect(panel).to_contain_text("not loaded")
    panel.get_by_role("button", name="Insert %load_ext").click()
    assert lab.source(1) == LOAD and not lab.executed(1)
    lab.run(1)
    expect(panel.get_by_text("file__read", exact=True)).to_be_visible()
    lab.close()
    expect(panel).to_contain_text("Open a notebook")
    lab.command("filebrowser:activate")


def test_commands_put_code_into_a_new_cell_and_run_nothing(lab: LabPage) -> None:
    lab.open("first = 1", "last = 2")
    for command, code in {
        "reyn:load-extension": LOAD,
        "reyn:ask": "%%reyn\n",
        "reyn:last-run": "%reyn trace",
    }.items():
        lab.command(command)
        assert lab.active_source() == code
    assert lab.cells == 5
    assert not any(lab.executed(index) for index in range(5))


def test_a_display_that_holds_anything_else_is_shown_as_what_it_is(lab: LabPage) -> None:
    hostile = "'<img src=x onerror=\"window.pwned=1\">'"
    view = f"dict(kind='card', title={hostile}, badges=[], facts=[], blocks=[], knob='')"
    kind = "'application/vnd.reyn.status+json'"
    shown = f"dict(protocol=1, session='x', live=None, view={view})"
    lab.open(
        f"display({{{kind}: {shown}, 'text/plain': 'text'}}, raw=True)",
        f"display({{{kind}: {{'protocol': 'x', 'view': 7}}, 'text/plain': 'text'}}, raw=True)",
        f"display({{{kind}: [1, 2], 'text/plain': 'text'}}, raw=True)",
    ).run()
    expect(lab.output(0)).to_contain_text('<img src=x onerror="window.pwned=1">')
    for index in (1, 2):
        expect(lab.output(index)).to_contain_text("nothing that can be shown")
    assert lab.page.evaluate("window.pwned") is None


def test_the_settings_take_the_panel_away_and_bring_it_back(lab: LabPage) -> None:
    lab.open("1")
    panel = lab.page.locator("#reyn-jupyter-catalog")
    expect(panel).to_have_count(1)
    lab.set("reyn-jupyter:plugin", '{"catalogPanel": false}')
    expect(panel).to_have_count(0)
    lab.set("reyn-jupyter:plugin", "{}")
    expect(panel).to_have_count(1)
