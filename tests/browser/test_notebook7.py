"""The same extension in Notebook 7."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.lab_support import LabPage


def test_displays_are_drawn_and_live_and_the_panel_opens(notebook7: LabPage) -> None:
    notebook7.open("%load_ext reyn_jupyter", "%reyn list file", "%reyn explore").run()
    expect(notebook7.output(1).locator(".reyn-view").first).to_contain_text("file__read")
    explorer = notebook7.output(2)
    explorer.get_by_role("searchbox", name="Search actions").fill("grep")
    expect(explorer.get_by_text("file__grep")).to_be_visible()
    expect(explorer.get_by_text("file__delete")).to_have_count(0)
    notebook7.command("reyn:explore")
    panel = notebook7.page.get_by_role("region", name="Reyn", exact=True)
    expect(panel.get_by_text("file__read", exact=True)).to_be_visible()
    ask = panel.get_by_role("button", name="Ask", exact=True)
    edge = panel.evaluate("each => each.parentElement.getBoundingClientRect().right")
    assert ask.evaluate("each => each.getBoundingClientRect().right") <= edge, (
        "the panel is as wide as its room"
    )
