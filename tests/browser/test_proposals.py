"""The notebook as actions in JupyterLab: a copy of its cells, proposed cells, Python after a yes."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.lab_support import LabPage
from tests.browser.test_lab import SAYS
from tests.support.waiting import until

PROPOSE = """says(
    call("invoke_action", action_name="notebook__list_cells", args={}),
    call("invoke_action", action_name="notebook__propose_cell", args={"source": "proposed = 1 / 0"}),
    call("invoke_action", action_name="notebook__propose_cell",
         args={"source": "A *text* with a < b", "kind": "markdown"}),
    "Done.",
)"""
READ = """print(*(each["content"] for each in reyn.session().parts.model.requests[-1].wire["messages"]
        if each["role"] == "tool"))"""


COPY = "__import__('reyn_jupyter.runtime.access.live_notebook', fromlist=['x']).LIVE_NOTEBOOK.now is not None"
ASK = """const kernel = panel.sessionContext.session.kernel;
const reply = await kernel.requestExecute({ code: "", user_expressions: { there: given } }).done;
return reply.content.user_expressions.there.data["text/plain"];"""


def connected(lab: LabPage) -> None:
    """Load the extension, and wait until the kernel has its first copy of the notebook."""
    lab.run(0)
    until(lambda: lab.script(ASK, COPY) == "True")


def test_a_proposed_cell_appears_below_the_one_that_runs_and_is_taken_out_again(lab: LabPage) -> None:
    lab.open(SAYS, PROPOSE, "%%reyn --approve all\npropose", "last = 'typed by hand'", READ, "%reyn undo")
    connected(lab)
    lab.run(1, 2)
    lab.until("panel.content.widgets.length === 8")
    assert (lab.source(3), lab.source(4)) == ("proposed = 1 / 0", "A *text* with a < b")
    assert lab.source(5) == "last = 'typed by hand'"
    assert not lab.executed(3)
    lab.run(6)
    expect(lab.output(6)).to_contain_text("the open notebook")
    expect(lab.output(6)).to_contain_text("typed by hand")
    lab.run(7)
    lab.until("panel.content.widgets.length === 6")
    assert lab.source(3) == "last = 'typed by hand'"


def test_a_second_view_of_a_notebook_takes_the_place_of_the_first_when_that_is_closed(lab: LabPage) -> None:
    lab.open(SAYS, PROPOSE, "%%reyn --approve all\npropose", READ)
    connected(lab)
    lab.command("docmanager:clone")
    lab.script("panel.dispose()")
    lab.script(
        "panel.content.widgets[3].model.sharedModel.setSource(given)", f"# typed in the second view\n{READ}"
    )
    lab.run(1, 2)
    lab.until("panel.content.widgets.length === 6")
    assert lab.source(3) == "proposed = 1 / 0"
    lab.run(5)
    expect(lab.output(5)).to_contain_text("typed in the second view")


def test_a_proposed_cell_that_was_changed_stays(lab: LabPage) -> None:
    lab.open(SAYS, PROPOSE, "%%reyn --approve all\npropose", "%reyn undo")
    connected(lab)
    lab.run(1, 2)
    lab.until("panel.content.widgets.length === 6")
    lab.script("panel.content.widgets[3].model.sharedModel.setSource('mine = 1')")
    lab.run(5)
    lab.until("panel.content.widgets.length === 5")
    expect(lab.output(4).last).to_contain_text("you have changed it since")
    assert lab.source(3) == "mine = 1"


def test_python_runs_after_a_yes_to_the_code_that_is_shown(lab: LabPage) -> None:
    code = "doubled = price * 2\\ndoubled"
    lab.open(
        SAYS,
        "%reyn python on",
        f"price = 21\nsays(call('invoke_action', action_name='python__run', args={{'code': '{code}'}}), 'Done.')",
        "%%reyn\ndouble it",
        "doubled",
        "%reyn undo",
        "'doubled' in globals()",
    )
    lab.run(0, 1, 2).start(3)
    asked = lab.notebook.get_by_role("group", name="Consent for python__run")
    expect(asked).to_contain_text("doubled = price * 2")
    lab.rest()
    asked.get_by_role("button", name="Allow once").click()
    expect(lab.output(3).filter(has_text="Done.").first).to_be_visible()
    lab.run(4)
    expect(lab.output(4)).to_have_text("42")
    lab.run(5, 6)
    expect(lab.output(6)).to_have_text("False")
