"""The ways to show a table in JupyterLab that are measured beside each other: their code, and how a person drives them.

Every cell shows the same `frame`; nothing here measures. The last key or click of a function starts the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

COLUMNS = ("amount", "code", "pieces")  # to sort by, one after another

# pandas 3.1 moved a private module that buckaroo imports; without this it shows no row of a table with strings.
_BUCKAROO = """
import importlib.util, sys, types, warnings
import buckaroo
buckaroo.disable()
warnings.filterwarnings("ignore", module="buckaroo")
if importlib.util.find_spec("pandas._libs.json") is None:
    from pandas.io.json import ujson_dumps
    sys.modules["pandas._libs.json"] = types.SimpleNamespace(ujson_dumps=ujson_dumps)
"""
_OURS = """
%load_ext reyn_jupyter
import reyn_jupyter as reyn
@reyn.action
def the_frame() -> object:
    "The frame of this round."
    return frame
"""
_STORE = """
begin = time.perf_counter()
table = reyn.session().invoke_action("function__the_frame").blob
print(time.perf_counter() - begin)
gc.collect()
"""


@dataclass(frozen=True)
class Peer:
    """One way to show a table.

    Attributes:
        package: its distribution.
        show: the cell that is timed; it shows `frame`.
        before: code run once, whose output stays in the page.
        store: code run before each showing; prints the seconds it took.
        within: where all its rows are, when it shows the first of them elsewhere before.
        rows: a script that says how many rows there are to reach; all, when None.
        down, up: brings the last and the first row into sight; None where not all rows are there.
        sort: sorts by a column as a person does.
        most: the most rows that it can be measured with, in a JupyterLab of its own; None: all, beside the others.
    """

    name: str
    package: str
    show: str
    before: str = ""
    store: str = ""
    within: str = ""
    rows: str | None = None
    down: str | Callable[[Page], None] = ""
    up: str | Callable[[Page], None] = ""
    sort: Callable[[Page, str], None] | None = None
    most: int | None = None


def _cell_click(page: Page, x: float, y: float, within: str) -> None:
    box = page.locator(within).last.bounding_box()
    if box is not None:
        page.mouse.click(box["x"] + x, box["y"] + y)


def _in_grid(*keys: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        _cell_click(page, 150, 60, ".jp-OutputArea .r-grid .r-port")
        for each in keys:
            page.keyboard.press(each)

    return act


def _sort_grid(page: Page, column: str) -> None:
    page.locator(".r-grid [role=columnheader] .r-name", has_text=column).click()


def _on_canvas(keys: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        _cell_click(page, 150, 60, ".jp-OutputArea canvas")
        page.keyboard.press(keys)

    return act


def _sort_canvas(page: Page, column: str) -> None:
    """By the menu of the column's heading; headings are 64 px wide, the first is that of the index."""
    place = ("name", *COLUMNS).index(column) + 1
    _cell_click(page, 64 * (place + 1) - 10, 10, ".jp-OutputArea canvas")
    page.locator(".lm-Menu-item", has_text="Sort Ascending").click()


def _on_itables(button: str) -> Callable[[Page], None]:
    return lambda page: page.locator(f".jp-OutputArea .dt-paging-button.{button}").click()


def _sort_itables(page: Page, column: str) -> None:
    page.locator(".jp-OutputArea th", has_text=column).locator(".dt-column-order").first.click()


def _sort_buckaroo(page: Page, column: str) -> None:
    page.locator(".jp-OutputArea .ag-header-cell-text", has_text=column).first.click()


def _scroll_buckaroo(to: str) -> str:
    return (
        "for (const each of document.querySelectorAll('.jp-OutputArea .ag-body-viewport')) "
        f"each.scrollTop = {to};"
    )


PEERS = (
    Peer(
        "reyn-jupyter, a stored blob",
        "reyn-jupyter",
        "table",
        before=_OURS,
        store=_STORE,
        within=".jp-OutputArea .r-grid [role=grid]",
        down=_in_grid("Control+End", "Home"),
        up=_in_grid("Control+Home"),
        sort=_sort_grid,
    ),
    Peer(
        "buckaroo",
        "buckaroo",
        "buckaroo.BuckarooInfiniteWidget(frame)",
        before=_BUCKAROO,
        down=_scroll_buckaroo("each.scrollHeight"),
        up=_scroll_buckaroo("0"),
        sort=_sort_buckaroo,
    ),
    Peer(
        "ipydatagrid",
        "ipydatagrid",
        "ipydatagrid.DataGrid(frame)",
        before="import ipydatagrid",
        down=_on_canvas("Control+ArrowDown"),
        up=_on_canvas("Control+ArrowUp"),
        sort=_sort_canvas,
    ),
    Peer(
        "itables",
        "itables",
        "itables.show(frame)",
        before="import itables\nitables.init_notebook_mode(all_interactive=False)",
        rows="document.querySelector('.jp-OutputArea .dt-info').textContent.match(/of ([\\d,]+) entries/)[1]",
    ),
    Peer(
        "itables, maxBytes=0",
        "itables",
        "itables.show(frame, maxBytes=0)",
        before="import itables\nitables.init_notebook_mode(all_interactive=False)",
        rows="document.querySelector('.jp-OutputArea .dt-info').textContent.match(/of ([\\d,]+) entries/)[1]",
        down=_on_itables("last"),
        up=_on_itables("first"),
        sort=_sort_itables,
        most=100_000,
    ),
    Peer(
        "pandas, df",
        "pandas",
        "with pd.option_context('display.max_rows', 10): display(frame)",
        rows="document.querySelectorAll('.jp-OutputArea tbody tr').length - 1",
    ),
    Peer(
        "pandas, df.head(1000)",
        "pandas",
        "with pd.option_context('display.max_rows', 1000): display(frame.head(1000))",
        rows="document.querySelectorAll('.jp-OutputArea tbody tr').length",
    ),
)
