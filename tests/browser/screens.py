"""Pictures of what people see, for people to look at: `make screens` writes them to `screenshots/`.

Each scene runs in JupyterLab with a real kernel, in the light and the dark theme, 900 and 1,400 pixels wide. Nothing is
compared: Chromium and fonts change, and whether a page is good a person says.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

from tests.browser.browser_support import CHROMIUM, FLAGS
from tests.browser.lab_support import JupyterServer, LabPage

FOLDER = Path("screenshots")
WIDTHS = (900, 1400)
THEMES: tuple[Literal["JupyterLab Light", "JupyterLab Dark"], ...] = ("JupyterLab Light", "JupyterLab Dark")

FRAME = """%load_ext reyn_jupyter
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
orders = pd.DataFrame({
    "order": range(500), "day": pd.date_range("2026-01-01", periods=500, freq="8h"),
    "region": rng.choice(["north", "south", "east"], 500), "product": rng.choice(["tea", "milk", "rye"], 500),
    "amount": rng.normal(30, 5, 500).round(2)})"""


@dataclass(frozen=True)
class Scene:
    """One picture.

    Attributes:
        cells: those that run before it is taken, all of them.
        prepare: presses what is to be open in it.
        asks: the last cell is not run before, since it waits for the person.
        alone: the last cell is taken once more by itself, as README shows it.
    """

    name: str
    cells: tuple[str, ...]
    prepare: Callable[[LabPage], None] = lambda page: None
    asks: bool = False
    alone: bool = False


def _press(*labels: str) -> Callable[[LabPage], None]:
    def press(page: LabPage) -> None:
        for label in labels:
            page.notebook.locator("summary").get_by_text(label, exact=True).last.click()
            page.page.wait_for_timeout(600)

    return press


DESK = (
    (
        "%load_ext reyn_jupyter\nimport shutil\nfrom importlib.resources import files\n"
        'shutil.copytree(str(files("reyn_jupyter") / "docs"), "manual", dirs_exist_ok=True)'
    ),
    "%reyn config action_retrieval.embedding_class none",
    "%reyn corpora index manual manual/web.md manual/outputs.md",
)
TOOL = (
    "%load_ext reyn_jupyter\n%reyn config action_retrieval.embedding_class none",
    (
        "%%reyn tool net_price --permission network:rates.example.org\n"
        "import urllib.request\n\n"
        "def execute(params):\n"
        '    """Return the price without tax."""\n'
        '    rate = params.get("rate", 0.19)\n'
        '    return {"net": round(params["amount"] / (1 + rate), 2)}'
    ),
    "%reyn invoke dynamic_tool__net_price amount=119",
)
MAKES = (
    "from reyn_jupyter.models.scripted import ScriptedModel, call\n"
    "import reyn_jupyter as reyn\n"
    'code = "import shutil, urllib.request\\n\\ndef execute(params):\\n    # copy and fetch\\n    '
    "shutil.copy(params['a'], '/tmp/b')\\n    return urllib.request.urlopen(params['url']).read().decode()\\n\"\n"
    'args = {"name": "fetcher", "description": "Fetch a page and keep a file", "code": code, '
    '"permissions": ["network:example.org"]}\n'
    'model = ScriptedModel(call("invoke_action", action_name="dynamic_tool_operation__create", args=args), "Done.")\n'
    'reyn.session().ask("make a tool that fetches a page", model=model)'
)
SHOP = (
    "%load_ext reyn_jupyter\nimport zipfile\nfrom pathlib import Path\nfrom PIL import Image\n"
    'Path("sales.csv").write_text("product,amount\\ntea,4.2\\n")\n'
    'Path("about.html").write_text("<h1>About us</h1>")\n'
    'Image.new("RGB", (300, 200), "seagreen").save("shelf.png")\n'
    'zipfile.ZipFile("photos.zip", "w").write("shelf.png")'
)
BROKEN_COSTS = 'Path("costs.csv").write_text("amount\\n1\\n", encoding="utf-16")'
ERRANDS = (
    "unpack photos.zip and make thumbnails of the images, convert sales.csv to Parquet, "
    "and convert about.html to Markdown"
)
FOOTAGE = (
    "download https://youtu.be/dQw4w9WgXcQ, put it into "
    "https://drive.google.com/drive/folders/1AbCdEfGhIjKlMnOpQrStUvWxYz012345. Then run tg.scrape"
)
PEER = (
    (
        "%reyn config peers.checker.description looks claims up in the manual\n"
        "%reyn config peers.checker.categories [rag_corpus]"
    ),
    "%%reyn --max-steps 12\ncall agent.peer__checker with request='what does manual say about large results?'",
)


def _leave_open(page: LabPage) -> None:
    """Run the last cell until it asks for consent."""
    page.start(page.cells - 1)
    page.notebook.get_by_role("button", name="Allow once").wait_for()


def _to_the_end(page: LabPage) -> None:
    """Go to the last rows of the last table."""
    table = page.notebook.get_by_role("grid").last
    table.evaluate("element => { element.parentElement.scrollTop = 1e9; }")
    page.page.wait_for_timeout(800)


_EVAL = "%reyn eval mandates -m simulator --variants generic-1x,explicit-3x,gate -n 12"


def _ask_in_the_panel(page: LabPage) -> None:
    page.command("reyn:home")
    panel = page.page.get_by_role("region", name="Reyn", exact=True)
    question = panel.get_by_role("textbox", name="Question")
    question.fill("how many orders are there per region?")
    question.press("Enter")
    panel.get_by_role("button", name="Put into the notebook").wait_for()
    question.fill("and the mean amount")


SCENES = (
    Scene("answer", (FRAME, "%%reyn\nwhat is the mean amount by product in orders?")),
    Scene("answer_table", (FRAME, "%%reyn\nwhat is the mean amount by product in orders?"), _press("Table")),
    Scene("answer_query", (FRAME, "%%reyn\nwhat is the mean amount by product in orders?"), _press("Query")),
    Scene(
        "answer_details", (FRAME, "%%reyn\nwhat is the mean amount by product in orders?"), _press("Details")
    ),
    Scene("answer_long", (FRAME, "%%reyn\nfirst 200 rows of orders"), _press("Table")),
    Scene("view", (FRAME, "%reyn view orders"), _to_the_end),
    Scene(
        "chart",
        (
            FRAME,
            "%reyn invoke chart__draw data=orders mark=bar x=region y=amount",
            "%%reyn\nplot amount per month in orders",
        ),
        alone=True,
    ),
    Scene("consent", (FRAME, '%%reyn\nwrite "restock tea" to ideas.txt'), _leave_open, asks=True),
    Scene("undo", (FRAME, '%%reyn --approve all\nwrite "restock tea" to ideas.txt', "%reyn undo")),
    Scene("declined", (FRAME, "%%reyn\nwho will win the election?")),
    Scene("status", (FRAME, "%reyn")),
    Scene("list", (FRAME, "%reyn list")),
    Scene("explore", (FRAME, "%reyn explore")),
    Scene(
        "home",
        (
            FRAME,
            "%%reyn\nwhat is the mean amount by product in orders?",
            "%reyn ask first 200 rows of orders",
        ),
        _ask_in_the_panel,
    ),
    Scene("corpus", (*DESK, "%%reyn\nwhat does manual say about a page that redirects to another host?")),
    Scene("passages", (*DESK, '%reyn corpora manual "what may a page do?"')),
    Scene("peer", (*DESK, *PEER), _press("Details")),
    Scene("tool", TOOL),
    Scene("tools", (*TOOL, "%reyn tools", "%reyn tools net_price")),
    Scene("tool_consent", (TOOL[0], MAKES), prepare=_leave_open, asks=True),
    Scene("peers", (*DESK, *PEER, "%reyn peers")),
    Scene("plan", (SHOP, f'%reyn plan "{ERRANDS}"')),
    Scene("dispatch", (SHOP, f'%reyn dispatch "{ERRANDS}"')),
    Scene(
        "dispatch_fails", (SHOP, BROKEN_COSTS, '%reyn dispatch "convert sales.csv and costs.csv to Parquet"')
    ),
    Scene("gaps", (SHOP, f'%reyn plan "{FOOTAGE}"')),
    Scene("report", ("%load_ext reyn_jupyter", _EVAL)),
)


def main() -> None:
    wanted = sys.argv[1:]
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = JupyterServer(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            for scene in SCENES:
                if not wanted or scene.name in wanted:
                    _take(scene, server, browser)
        finally:
            browser.close()
            server.stop()


def _take(scene: Scene, server: JupyterServer, browser: Browser) -> None:
    for width in WIDTHS:
        with browser.new_context(viewport={"width": width, "height": 1000}) as context:
            page = LabPage(context.new_page(), server, "lab")
            page.open(*scene.cells).run(*range(len(scene.cells) - scene.asks))
            page.page.wait_for_timeout(1500)
            scene.prepare(page)
            for theme in THEMES:
                page.set_theme(theme)
                page.page.wait_for_timeout(800)
                path = FOLDER / f"{scene.name}_{width}_{theme.removeprefix('JupyterLab ').lower()}.png"
                page.page.screenshot(path=path)
                print(path)
                if scene.alone:
                    cell = page.notebook.locator(".jp-Cell").nth(len(scene.cells) - 1)
                    cell.screenshot(path=path.with_stem(f"{path.stem}_cell"))


if __name__ == "__main__":
    main()
