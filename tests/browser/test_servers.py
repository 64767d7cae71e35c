"""The MCP servers in the side panel of JupyterLab: real servers, added, watched, restarted and dropped there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab_support import LabPage
from tests.browser.test_home import AXE, opened
from tests.browser.test_lab import LOAD
from tests.support.mcp_servers import PROGRAM, REAL

TIME = f"{REAL}/bin/mcp-server-time --local-timezone=UTC"
HOSTILE = '<img src=x onerror="window.pwned=1">\u202e'
NARROW = "window.jupyterapp.shell._hsplitPanel.setRelativeSizes([300, 1100, 0])"


class Servers:
    """The person's file of servers, which all kernels of the Jupyter server read."""

    def __init__(self, lab: LabPage) -> None:
        self._path = lab.server.root.parent / "reyn-config" / "mcp.json"

    def write(self, **entries: Mapping[str, Any]) -> None:
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(json.dumps({"mcpServers": entries}))

    @property
    def entries(self) -> dict[str, Any]:
        found: dict[str, Any] = (
            json.loads(self._path.read_text())["mcpServers"] if self._path.exists() else {}
        )
        return found

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)


@pytest.fixture
def servers(lab: LabPage) -> Iterator[Servers]:
    made = Servers(lab)
    yield made
    made.clear()
    (lab.server.root / ".mcp.json").unlink(missing_ok=True)


def lab_program(**options: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-I", "-S", str(PROGRAM), json.dumps(options)]}


def row(panel: Locator, name: str) -> Locator:
    return panel.locator(f'[data-server="{name}"]')


def call(lab: LabPage, tool: str, **args: Any) -> None:
    """Call a tool in the kernel, without a cell."""
    given = {"tool": tool, "tool_args": args}
    lab.run_code(f"import reyn_jupyter as reyn; reyn.session().invoke_action('mcp__call_tool', {given!r})")


def test_a_server_is_added_looked_at_and_dropped_by_the_keyboard_alone(
    lab: LabPage, servers: Servers
) -> None:
    lab.open(LOAD, "%reyn mcp").run(0)
    panel, keys = opened(lab), lab.page.keyboard
    expect(panel.get_by_text("No MCP server yet: add one here")).to_be_visible()
    panel.get_by_role("button", name="Add a server").focus()
    keys.press("Enter")
    expect(panel.get_by_role("textbox", name="Name")).to_be_focused()
    keys.type("time")
    keys.press("Tab")
    keys.type(TIME)
    keys.press("Enter")
    asked = panel.get_by_role("group", name="Consent for %reyn mcp add time")
    expect(asked.get_by_role("button", name="Deny")).to_be_focused()
    expect(asked).to_contain_text(TIME)
    expect(asked).to_contain_text("with your rights, without a sandbox")
    expect(asked).to_be_in_viewport()
    assert servers.entries == {} and lab.page.locator(".Toastify__toast").count() == 0
    lab.rest()
    keys.press("Shift+Tab")
    keys.press("Enter")
    time = row(panel, "time")
    expect(time).to_contain_text("ready")
    expect(time).to_contain_text("2 tools")
    assert servers.entries["time"]["args"] == ["--local-timezone=UTC"]
    expect(panel.get_by_role("button", name="Add a server")).to_be_focused()

    lab.run(1)  # the table says the same
    expect(lab.output(1)).to_contain_text("ready")
    call(lab, "time__get_current_time", timezone="Asia/Tokyo")
    expect(time).to_contain_text("1 call · p50 ")
    time.locator("summary").focus()
    keys.press("Enter")
    expect(time).to_contain_text("isolation")
    keys.press("Tab")
    expect(panel.get_by_role("button", name="Log time")).to_be_focused()
    keys.press("Enter")
    expect(panel.get_by_role("button", name="Hide log time")).to_be_focused()

    drop = panel.get_by_role("button", name="Drop … time")
    asked = panel.get_by_role("group", name="Consent for %reyn mcp drop time")
    drop.focus()
    keys.press("Enter")
    expect(asked.get_by_role("button", name="Deny")).to_be_focused()
    keys.press("Enter")
    expect(time.get_by_role("alert")).to_contain_text("you said no")
    expect(time.locator("summary")).to_be_focused()
    expect(asked).to_have_count(0)
    drop.focus()
    keys.press("Enter")
    expect(asked.get_by_role("button", name="Deny")).to_be_focused()
    lab.rest()
    keys.press("Shift+Tab")
    keys.press("Enter")
    expect(time).to_have_count(0)
    expect(panel.get_by_text("No MCP server yet: add one here")).to_be_visible()
    assert servers.entries == {}


def test_what_becomes_of_a_server_is_seen_without_a_press(
    lab: LabPage, servers: Servers, tmp_path: Path
) -> None:
    servers.write(lab=lab_program(gate=str(tmp_path / "gate")))
    lab.open(LOAD).run()
    panel = opened(lab)
    mine = row(panel, "lab")
    expect(mine).to_contain_text("starting")
    mine.locator("summary").click()
    (tmp_path / "gate").touch()
    expect(mine).to_contain_text("ready")
    tools = int(mine.locator(".r-entry-facts").inner_text().split(" ")[0])
    call(lab, "lab__grow", text="A trick.")
    expect(mine).to_contain_text(f"{tools + 1} tools")
    panel.get_by_role("button", name="Log lab").click()
    call(lab, "lab__log", text=HOSTILE)
    expect(mine.get_by_role("region", name="Log of lab")).to_contain_text("<img src=x")
    expect(mine.get_by_role("region", name="Log of lab")).to_contain_text("⟨U+202E⟩")
    expect(mine.locator("dl")).to_contain_text("<img src=x")
    assert lab.page.evaluate("window.pwned") is None
    call(lab, "lab__crash")
    expect(mine).to_contain_text("1 error")
    expect(mine).to_contain_text("Its program ended")
    assert mine.get_attribute("open") is not None
    panel.get_by_role("button", name="Start lab").click()
    expect(mine).to_contain_text("ready")
    servers.clear()
    call(lab, "lab__echo", text="on")  # the file is read again
    expect(mine).to_have_count(0)


def test_what_asks_at_a_prompt_is_put_into_a_cell(lab: LabPage, servers: Servers) -> None:
    servers.write(git={"command": "git-server", "env": {"TOKEN": "${input:TOKEN}"}})
    cloned = {"cloned": lab_program()}
    (lab.server.root / ".mcp.json").write_text(json.dumps({"mcpServers": cloned}))
    lab.open(LOAD).run()
    panel = opened(lab)
    expect(row(panel, "git")).to_contain_text("blocked")
    row(panel, "git").locator("summary").click()
    panel.get_by_role("button", name="Give TOKEN … git").click()
    assert lab.active_source() == "%reyn mcp secret git TOKEN"
    row(panel, "cloned").locator("summary").click()
    expect(row(panel, "cloned")).to_contain_text("is not trusted")
    expect(panel.get_by_role("button", name="Start cloned")).to_have_count(0)
    panel.get_by_role("button", name="Trust … cloned").click()
    assert lab.active_source() == "%reyn trust"
    at = lab.script("return panel.content.activeCellIndex")
    assert not lab.executed(at)
    lab.start(at)
    asked = panel.get_by_role("group", name="Consent for %reyn trust")
    expect(asked).to_contain_text("mcp_program.py")
    lab.rest()
    asked.get_by_role("button", name="Allow once").click()
    expect(lab.output(at).first).to_contain_text("mcp_program.py")
    expect(row(panel, "cloned")).to_contain_text("ready")


def test_a_command_that_cannot_run_stays_to_be_corrected(lab: LabPage, servers: Servers) -> None:
    lab.open(LOAD).run()
    panel = opened(lab)
    panel.get_by_role("button", name="Add a server").click()
    name = panel.get_by_role("textbox", name="Name")
    command = panel.get_by_role("textbox", name="Command or address")
    name.fill("a")
    command.fill("cd x && my-server")
    command.press("Enter")
    form = panel.get_by_role("form", name="Add an MCP server")
    expect(form.get_by_role("alert")).to_contain_text("No shell reads the line")
    expect(command).to_have_value("cd x && my-server")
    command.fill("/no/such/server --fast")
    command.press("Enter")
    asked = panel.get_by_role("group", name="Consent for %reyn mcp add a")
    expect(asked).to_contain_text("/no/such/server is not installed")
    asked.get_by_role("button", name="Deny").click()
    expect(form.get_by_role("alert")).to_contain_text("Nothing was changed")
    expect(command).to_have_value("/no/such/server --fast")
    command.press("Escape")
    expect(form).to_be_hidden()
    expect(panel.get_by_role("button", name="Add a server")).to_be_focused()
    assert servers.entries == {}


def test_axe_finds_nothing_serious_and_nothing_is_cut_at_300_pixels(lab: LabPage, servers: Servers) -> None:
    lab.page.set_viewport_size({"width": 1400, "height": 1600})
    long = "a-very-long-name.of-a-server.that-nobody-would-type.but-a-registry-gives"[:63]
    servers.write(
        **{long: {"command": "x" * 200, "disabled": True}, "sick": lab_program(dies=4), "lab": lab_program()}
    )
    lab.open(LOAD).run()
    panel = opened(lab)
    lab.script(NARROW)
    expect(row(panel, "lab")).to_contain_text("ready")
    for name in (long, "sick", "lab"):
        row(panel, name).locator("summary").click()
    panel.get_by_role("button", name="Add a server").click()
    lab.page.add_script_tag(path=str(AXE))
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        lab.set_theme(theme)  # type: ignore[arg-type]
        expect(panel.get_by_role("button", name="Drop … sick")).to_be_visible()
        found = lab.page.evaluate("axe.run('#reyn-jupyter-catalog')")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    lab.set_theme("JupyterLab Light")
    wide = panel.locator(".r-server-part, .r-server-part :not(pre *)").evaluate_all(
        "(all) => all.filter((each) => each.getBoundingClientRect().right > "
        "each.closest('.reyn-panel').getBoundingClientRect().right + 1).map((each) => each.outerHTML.slice(0, 80))"
    )
    assert wide == []
    lab.page.set_viewport_size({"width": 1400, "height": 1000})
