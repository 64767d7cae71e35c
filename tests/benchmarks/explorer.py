"""The catalog explorer with 10,000 actions: what a key stroke in its search costs, beside plainer tables.

Words are typed a key at a time, each key after the frame that showed the last one. "Work" is what the page is busy with
for a key: its listeners, and the frame with the rows it leads to, laid out and painted. "Painted" runs from the key to
the end of that frame, so that waiting for the screen is in it. The words are taken out again by one key, which counts.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from reyn_jupyter.catalog.action import Category, Entry, Purity, Resources, Tool
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.serving.protocol import LiveCatalog, Snapshot
from reyn_jupyter.sessions.current import SESSION_ID
from reyn_jupyter.sessions.session import Session
from tests.browser.browser_support import CHROMIUM, FLAGS, bare

ACTIONS = 10_000
LIMIT = 16.0  # milliseconds of work a key
WORDS = ("invoice", "send mail", "report sales 2", "archive contract", "zebra", "read __ order 99")
VERBS = ("send", "read", "archive", "approve", "export", "cancel", "merge", "report", "split", "sign")
NOUNS = ("invoice", "contract", "mail", "order", "refund", "parcel", "salary", "ticket", "sales", "budget")

PROBE = """
() => {
  let key, due;
  const after = (call) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = call;
    port2.postMessage(0);
  };
  const changes = new MutationObserver(() => { if (key) key.changed = true; });
  changes.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
  // The first callback of the frame, since it is asked for before the page's own listeners run.
  const frame = () => {
    const begin = performance.now();
    after(() => {
      const now = performance.now();
      key.work += now - begin;
      if (!key.changed && now - key.at < 1000) return requestAnimationFrame(frame);
      due([key.changed ? key.work : null, now - key.at]);
    });
  };
  addEventListener("keydown", (event) => { key = { at: event.timeStamp, work: 0, changed: false }; }, true);
  addEventListener("input", () => {
    key.begin = performance.now();
    requestAnimationFrame(frame);
  }, true);
  addEventListener("input", () => { key.work += performance.now() - key.begin; });
  window.next = () => { window.painted = new Promise((resolve) => { due = resolve; }); };
}
"""

PLAIN = """
([columns, rows]) => {
  document.body.innerHTML =
    "<input type=search><div style='height:800px;overflow:auto'><table><tbody></tbody></table></div>";
  const body = document.querySelector("tbody");
  const lines = rows.map((row) => {
    const line = body.insertRow();
    for (const text of row) line.insertCell().textContent = text;
    return [line, row.join(" ").toLowerCase()];
  });
  document.querySelector("input").addEventListener("input", ({ target }) => {
    const words = target.value.toLowerCase().split(/\\s+/);
    for (const [line, text] of lines) line.hidden = !words.every((word) => text.includes(word));
  });
}
"""

DATATABLES = """
async ([columns, rows, bundle]) => {
  document.body.innerHTML = "<table></table>";
  const address = URL.createObjectURL(new Blob([bundle], { type: "text/javascript" }));
  const { default: DataTable } = await import(address);
  new DataTable(document.querySelector("table"), {
    data: rows, columns: columns.map((title) => ({ title })), pageLength: 25, searchDelay: 0, order: [],
  });
}
"""


async def _nothing(arguments: dict[str, object], context: object) -> object:
    return None


def categories() -> list[Category]:
    """Ten categories that together have the actions."""

    def category(number: int) -> Category:
        async def entries() -> list[Entry]:
            return [
                Entry(
                    f"{VERBS[each % 10]}_{NOUNS[each // 10 % 10]}_{each:04}",
                    f"{VERBS[each % 10].capitalize()} the {NOUNS[each // 10 % 10]} of customer {each}.",
                    {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]},
                )
                for each in range(ACTIONS // len(NOUNS))
            ]

        run = Resources(
            Tool("run", _nothing, Purity.PURE), lambda entry, arguments: arguments, "run it", entries
        )
        return Category(f"desk{number}", f"What the desk for {NOUNS[number]} does.", (), run)

    return [category(number) for number in range(len(NOUNS))]


@contextmanager
def _explorer(browser: Browser, session: Session) -> Iterator[Page]:
    shown = session.explore()
    snapshot = Snapshot(session=SESSION_ID, view=view(shown), live=LiveCatalog())
    with bare(browser, session, snapshot.model_dump(mode="json")) as made:
        made.page.get_by_text(f"{ACTIONS:,} actions", exact=True).wait_for(timeout=60_000)
        made.page.wait_for_timeout(500)
        yield made.page


@contextmanager
def _table(browser: Browser, script: str, given: list[object]) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    try:
        page.evaluate(script, given)
        yield page
    finally:
        page.close()


def typed(page: Page) -> list[tuple[float, float]]:
    """Milliseconds of work, and until painted, of every key that changed what is shown."""
    page.evaluate(PROBE)
    page.locator("input[type=search]").click()
    found = []
    for words in ("warm up", *WORDS):
        keys = [*words, "Backspace"]
        for place, key in enumerate(keys):
            page.evaluate("() => next()")
            if place == len(words):
                page.keyboard.press("Control+a")
            page.keyboard.press("Space" if key == " " else key)
            work, painted = page.evaluate("() => painted")
            if work is not None and words != "warm up":
                found.append((work, painted))
            page.wait_for_timeout(30)
    return found


def _line(name: str, figures: list[tuple[float, float]]) -> None:
    def three(values: list[float]) -> str:
        ordered = sorted(values)
        p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
        return f"{statistics.median(ordered):8.1f}{p95:8.1f}{ordered[-1]:8.1f}"

    work, painted = (list(each) for each in zip(*figures, strict=True))
    kept = sum(each <= LIMIT for each in work)
    print(f"{name:<34}{three(work)}   {three(painted)}   {kept} of {len(work)}")


def main() -> None:
    """Print milliseconds a key: median, 95th percentile and most, of the work and until painted."""
    if not Path(CHROMIUM).exists():
        print(f"{CHROMIUM} is missing; install it with: make browser")
        return
    heads = f"{'work':>8}{'p95':>8}{'most':>8}   {'painted':>8}{'p95':>8}{'most':>8}"
    print(f"{f'{ACTIONS:,} actions, median ms a key':<34}{heads}   work ≤ {LIMIT:.0f} ms")
    with tempfile.TemporaryDirectory(prefix="reyn-explorer-") as name, sync_playwright() as playwright:
        session = Session(name, categories=categories(), namespace={})
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        actions = (action for part in session.catalog.visible for action in part.actions)
        rows = [[each.name.text, each.name.category, each.description] for each in actions]
        columns = ["name", "category", "description"]
        with _explorer(browser, session) as page:
            _line("the explorer", typed(page))
        with _table(browser, PLAIN, [columns, rows]) as page:
            _line("all rows in the page, filtered", typed(page))
        if (found := find_spec("itables")) is not None and found.origin is not None:
            bundle = (Path(found.origin).parent / "html" / "dt_bundle.js").read_text(encoding="utf-8")
            with _table(browser, DATATABLES, [columns, rows, bundle]) as page:
                _line("DataTables (itables), 25 a page", typed(page))
        browser.close()


if __name__ == "__main__":
    main()
