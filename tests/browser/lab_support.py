"""JupyterLab and Notebook 7 in a real browser: one server a test session, with folders of its own, serves both.

Pages are driven through the application's own commands and sessions, not through its menus. What the console
complains about and every request that leaves the machine is kept.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Locator, Page

import reyn_jupyter
from tests.support.waiting import until

# REYN_LABEXTENSION tries a build that lies elsewhere.
BUILD = Path(os.environ.get("REYN_LABEXTENSION") or Path(reyn_jupyter.__file__).parent / "labextension")
PATIENCE = 60_000  # ms
LONGEST = 300_000  # ms that a cell may run; one that asks a question would run for ever
FLAGS = (
    "--no-browser",
    "--LabApp.expose_app_in_browser=True",
    "--JupyterNotebookApp.expose_app_in_browser=True",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.collaborative=False",
    "--ServerApp.allow_root=True",
    "--ServerApp.disable_check_xsrf=False",
    "--ServerApp.port=0",  # a free one, which the server names in its runtime folder
)
# What the applications complain about by themselves, with or without this extension.
NOISE = re.compile(
    r"Canceled future for \w+ message before replies were done"  # a kernel that is restarted or shut down
    r"|the server responded with a status of 404"  # a session looked up after its kernel went
    r"|Comm not found for comm id"  # ipywidgets: the end of its own comm of one page is told to the other, too
    r"|reading 'changed'"  # JupyterLab: an output that had a tab of its own is closed with its notebook
    r"|reading 'schema'"  # Notebook 7: its shortcuts hear of settings before those are there
    r"|Command 'filebrowser:open-path' not registered"  # Notebook 7: it has none on this page, and calls it
)

Application = Literal["lab", "notebook"]


class JupyterServer:
    """A Jupyter server in a temporary place.

    Attributes:
        root: the folder that it serves, where kernels start.
        url: its address.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self._notebooks, self._gates = count(1), count(1)
        (self.root / "data").mkdir(parents=True)
        (self.root / "notes.txt").write_text("first line\nsecond line\nthird line\n")
        (self.root / "data" / "orders.csv").write_text(ORDERS)
        extensions = folder / "share" / "labextensions"
        extensions.mkdir(parents=True)
        (extensions / "reyn-jupyter").symlink_to(BUILD, target_is_directory=True)
        quiet = folder / "settings" / "@jupyterlab" / "apputils-extension"
        quiet.mkdir(parents=True)
        (quiet / "notification.jupyterlab-settings").write_text(
            '{"fetchNews": "false", "checkForUpdates": false}'
        )
        self.token = secrets.token_hex(16)
        self._log = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", *FLAGS),
                *(f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.root}"),
            ],
            env={**os.environ, **_folders(folder), "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
            cwd=self.root,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        named = folder / "runtime" / f"jpserver-{self._process.pid}.json"
        try:
            until(lambda: self._ended or (named.exists() and named.stat().st_size), 180)
            self.url = f"http://127.0.0.1:{json.loads(named.read_text())['port']}"
            until(lambda: self._ended or self._answers, 180)
            assert not self._ended
        except Exception as error:
            self.stop()
            said = (folder / "server.log").read_text()[-3000:]
            raise RuntimeError(f"JupyterLab did not start:\n{said}") from error

    def write(self, cells: Sequence[str | dict[str, Any]], **metadata: Any) -> str:
        """Put a notebook into the workspace and give its name. A cell is its code, or the whole of it."""
        name = f"notebook-{next(self._notebooks)}.ipynb"
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        made = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": kernel, **metadata},
            "cells": [_cell(each, number) for number, each in enumerate(cells)],
        }
        (self.root / name).write_text(json.dumps(made))
        return name

    def gate(self) -> tuple[str, Path]:
        """The code of a cell that runs until a file is there, and the file."""
        path = self.root / f"gate-{next(self._gates)}"
        return f"import pathlib, time\nwhile not pathlib.Path({path.name!r}).exists(): time.sleep(0.05)", path

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    @property
    def _ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/api?token={self.token}", timeout=10):
                return True
        except (URLError, OSError):
            return False


@dataclass
class LabPage:
    """One page of an application, with at most one notebook open in it.

    Attributes:
        page: the Playwright page.
        complaints: errors of the console, and uncaught ones.
        elsewhere: addresses asked for that are not this server's.
        sent: messages to kernels, each with its whole text.
    """

    page: Page
    server: JupyterServer
    application: Application
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    name: str = ""

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda each: self._complain(each.text) if each.type == "error" else None)
        self.page.on("pageerror", lambda error: self._complain(str(error)))
        self.page.on("request", lambda each: self._asked(each.url))
        self.page.on("websocket", lambda line: line.on("framesent", self._note))

    def open(self, *cells: str | dict[str, Any]) -> LabPage:
        """Open a new notebook with these cells, and wait for its kernel."""
        return self.show(self.server.write(cells))

    def show(self, name: str, *, kernel: bool = True) -> LabPage:
        """Open a notebook that is there."""
        self.name = name
        if self.application == "notebook":
            self._go(f"/notebooks/{name}")
        elif "/lab" in self.page.url:
            self.command("docmanager:open", path=name)
        else:
            self._go(f"/lab/tree/{name}?reset")
        self.until("panel?.context.isReady")
        if kernel:
            self.until("panel.sessionContext.session?.kernel?.status === 'idle'")
        return self

    def command(self, name: str, **arguments: Any) -> None:
        """Run a command of the application, to its end."""
        run = "async ([name, arguments]) => { await window.jupyterapp.commands.execute(name, arguments) }"
        self.page.evaluate(run, [name, arguments])

    def run(self, *indexes: int) -> LabPage:
        """Run cells one after another, each to its end; all of them when none is named."""
        for index in indexes or range(self.cells):
            self._run(index, "await")
        return self

    def start(self, index: int) -> LabPage:
        """Run a cell without waiting for its end."""
        self._run(index, "void")
        return self

    def run_code(self, code: str) -> None:
        """Run code in the notebook's kernel without a cell."""
        run = "await panel.sessionContext.session.kernel.requestExecute({ code: given }).done"
        self.script(run, code)

    def output(self, index: int) -> Locator:
        """What stands under a cell."""
        return self.notebook.locator(".jp-Cell").nth(index).locator(".jp-OutputArea-output")

    @property
    def notebook(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    @property
    def cells(self) -> int:
        found: int = self.script("return panel.content.widgets.length")
        return found

    def source(self, index: int) -> str:
        """The code of a cell."""
        read = "return panel.content.widgets[given].model.sharedModel.getSource()"
        text: str = self.script(read, index)
        return text

    def active_source(self) -> str:
        text: str = self.script("return panel.content.activeCell.model.sharedModel.getSource()")
        return text

    def executed(self, index: int) -> bool:
        done: bool = self.script("return panel.content.widgets[given].model.executionCount !== null", index)
        return done

    def set_theme(self, theme: Literal["JupyterLab Light", "JupyterLab Dark"]) -> None:
        self.command("apputils:change-theme", theme=theme)
        light = "true" if theme == "JupyterLab Light" else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")
        # A second change while the splash screen of the first fades away makes JupyterLab take it out twice.
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def set(self, plugin: str, raw: str) -> None:
        """Save a plugin's settings as the person would, and load the page again, which reads them."""
        save = (
            "async ([plugin, raw]) => { await window.jupyterapp.serviceManager.settings.save(plugin, raw) }"
        )
        self.page.evaluate(save, [plugin, raw])
        self.reload()

    def restart_kernel(self) -> None:
        """A new kernel under the same notebook."""
        self.script("await panel.sessionContext.session.kernel.restart()")
        self.until("panel.sessionContext.session?.kernel?.status === 'idle'")

    def shutdown_kernel(self) -> None:
        self.script("await panel.sessionContext.shutdown()")

    def save(self) -> None:
        """Save this notebook: the application's own command saves the widget in focus, or nothing, without a word."""
        self.script("await panel.context.save()")

    def reload(self, *, kernel: bool = True) -> LabPage:
        """Load the page again, with the same notebook."""
        if self.application == "lab":
            # Without the notebook in the address: JupyterLab would open that at its leisure, also when it was closed.
            self._go("/lab?reset")
        else:
            self.page.reload()
            self._ready()
        return self.show(self.name, kernel=kernel)

    def close(self) -> None:
        """Close the notebook and end its kernel, without questions."""
        if not self.name:
            return
        self.shutdown_kernel()
        self.script("panel.context.model.dirty = false")
        if self.application == "lab":
            self.script("panel.dispose()")
        self.name = ""

    def _go(self, path: str) -> None:
        separator = "&" if "?" in path else "?"
        self.page.goto(f"{self.server.url}{path}{separator}token={self.server.token}")
        self._ready()

    def _ready(self) -> None:
        self.page.wait_for_function("window.jupyterapp !== undefined")
        self.page.evaluate("async () => { await window.jupyterapp.restored }")

    def _run(self, index: int, how: str) -> None:
        self.script(
            f"""window.jupyterapp.shell.activateById(panel.id);
            panel.content.activeCellIndex = given;
            panel.content.deselectAll();
            const over = window.jupyterapp.commands.execute("notebook:run-cell");
            const late = (done, failed) => setTimeout(() => failed(new Error("the cell still runs")), {LONGEST});
            {how} Promise.race([over, new Promise(late)]);""",
            index,
        )

    def rest(self) -> None:
        """Let pass, by the page's own clock, the half second in which a dialog takes a press for a mistake."""
        self.page.evaluate("() => new Promise((done) => setTimeout(done, 700))")

    def script(self, what: str, given: Any = None) -> Any:
        """Run a piece of script that knows `panel`, the notebook's."""
        return self.page.evaluate(f"async ([name, given]) => {{ {_PANEL} {what} }}", [self.name, given])

    def until(self, condition: str) -> None:
        """Wait for a condition in script, in which `panel` is the notebook's."""
        self.page.wait_for_function(f"(name) => {{ {_PANEL} return {condition}; }}", arg=self.name)

    def _complain(self, text: str) -> None:
        if not NOISE.search(text):
            self.complaints.append(text)

    def _note(self, frame: str | bytes) -> None:
        self.sent.append(frame if isinstance(frame, str) else frame.decode(errors="replace"))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.server.url, "data:", "blob:")):
            self.elsewhere.append(url)


@pytest.fixture(scope="session")
def jupyter_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    started = JupyterServer(tmp_path_factory.mktemp("jupyter"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def lab_page(browser: Browser, jupyter_server: JupyterServer) -> Iterator[LabPage]:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    yield LabPage(page, jupyter_server, "lab")
    page.close()


@pytest.fixture
def lab(lab_page: LabPage) -> Iterator[LabPage]:
    """JupyterLab, without a notebook. At the end nothing may have been complained about, or fetched from elsewhere."""
    lab_page.complaints.clear()
    yield lab_page
    lab_page.close()
    assert not lab_page.complaints, lab_page.complaints
    assert not lab_page.elsewhere, lab_page.elsewhere


@pytest.fixture
def notebook7(browser: Browser, jupyter_server: JupyterServer) -> Iterator[LabPage]:
    """A page of Notebook 7, under the same conditions."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    opened = LabPage(page, jupyter_server, "notebook")
    yield opened
    opened.close()
    page.close()
    assert not opened.complaints, opened.complaints
    assert not opened.elsewhere, opened.elsewhere


ORDERS = "region,value\n" + "".join(f"north,{number}\nsouth,{2 * number}\n" for number in range(300))

# The panel of the notebook with a name; in JupyterLab it stands among others.
_PANEL = """const panel = [...window.jupyterapp.shell.widgets("main")].find((each) => each.context?.path === name);"""


def _cell(given: str | dict[str, Any], number: int) -> dict[str, Any]:
    code = {
        "cell_type": "code",
        "id": f"cell-{number}",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    return {**code, "source": given} if isinstance(given, str) else {**code, **given}


def _folders(folder: Path) -> dict[str, str]:
    own = {
        "HOME": "home",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_PATH": "share",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "REYN_STATE_DIR": "reyn-state",
        "REYN_CONFIG_DIR": "reyn-config",
    }
    return {name: str(folder / where) for name, where in own.items()}
