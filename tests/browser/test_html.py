"""In a real Chromium: nothing in a view runs or loads, and eye and keyboard can read it in light and in dark."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page

from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.runtime.record.events import ActionProgressed
from reyn_jupyter.sessions.result_objects import ActionTable, Card, Result, Table
from tests.notebook.render.samples import (
    BLOB,
    HOSTILE,
    NOW,
    call,
    card,
    every_kind,
    invoked,
    row,
    running,
    trace,
)

# JupyterLab's own values of the variables that the style reads.
JUPYTERLAB = {
    "light": "--jp-layout-color0:white;--jp-ui-font-color1:rgba(0,0,0,.87);--jp-success-color1:#388e3c;"
    "--jp-error-color1:#d32f2f;--jp-warn-color1:#f57c00;--jp-brand-color1:#1976d2;--jp-content-link-color:#1565c0",
    "dark": "--jp-layout-color0:#111;--jp-ui-font-color1:rgba(255,255,255,1);--jp-success-color1:#4caf50;"
    "--jp-error-color1:#f44336;--jp-warn-color1:#ff9800;--jp-brand-color1:#2196f3;--jp-content-link-color:#64b5f6",
}

# The contrast of every visible text with what is painted behind it (WCAG 2.1), worst first.
CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const painted = (below, colour) => {
    canvas.fillStyle = `rgb(${below})`; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const behind = (element) => element === null ? [255, 255, 255]
    : painted(behind(element.parentElement), getComputedStyle(element).backgroundColor);
  const light = (rgb) => rgb.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const found = [];
  for (const element of document.querySelectorAll('.reyn-view *')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.tagName === 'STYLE') continue;
    const below = behind(element), text = painted(below, getComputedStyle(element).color);
    const [high, low] = [light(below), light(text)].sort((a, b) => b - a);
    const where = `${element.tagName}.${element.className}: ${element.textContent.slice(0, 40)}`;
    found.push([(high + .05) / (low + .05), where]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""


def samples() -> list[str]:
    frame = pd.DataFrame(
        {"region": ["north", "南", None], "value": [81.2, 40.115, None], "when": pd.Timestamp("2024-01-01")}
    )
    actions = (
        row(),
        row("file__write", purity="write", permission="ask"),
        row("exec__run", purity="exec", permission="deny"),
    )
    run = trace(
        call(1, "table__query", invoked("table__query", sql="select region, avg(value) from orders group by 1"),
             blob=BLOB, content_kind="json_array", size=18231, flags=("decoded",)),
        call(2, None, invoked("fiel__read"), ok=False, error="Unknown action 'fiel__read'", problem="unknown"),
        call(3, "file__edit", invoked("file__edit", path="a.md", old_string="none\nend", new_string="81.20\nend"),
             changes=({"path": "a.md", "previous_blob": BLOB, "sha256": "f"},), decision=("allowed", "person", None)),
        call(4, "exec__run", invoked("exec__run"), ok=False, error="Denied.", decision=("denied", "nobody", None)),
        answer="# Orders\n\nThe mean is **4**, see [the docs](https://docs.example/x) and `table__query`.\n\n"
        "| region | mean |\n|:--|--:|\n| north | 81.2 |\n\n> some have no region\n\n```sql\nselect 1\n```",
        turn=3, history_tokens=1240, mandates=("list before you invoke",),
    )  # fmt: skip
    page = {"items": [], "total": 26, "next_offset": 20, "categories": {"file": 7, "exec": 1}}
    shown = [
        run,
        running(
            [
                *call(1, "file__read", invoked("file__read", path="a"))[:1],
                ActionProgressed(call="c1", at=NOW, message="line 12 of a long one", done=12, total=40),
            ]
        ),
        ActionTable(page, actions),
        card(),
        Result("table__query", "x", frame),
        Result("web__fetch", "x", {"title": "A page", "links": [{"href": "x", "n": 2**60}], "none": None}),
        Card(
            "status",
            "reyn-jupyter",
            (("model", "offline"),),
            (("Held back", ("models.standard",)),),
            ("%reyn list",),
        ),
        ActionTable({"error": "Unknown category 'fiel'.", "suggestions": ["file"]}),
    ]
    return [
        to_html(view(each, tail="The mean" if place == 1 else None, now=NOW))
        for place, each in enumerate(shown)
    ]


def document(cards: list[str], root: str = "") -> str:
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>views</title>'
    return f'{head}<body style="{root}">{"<hr>".join(cards)}'


def opened(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")


def test_no_script_runs_and_nothing_is_requested(browser: Browser, tmp_path: Path) -> None:
    cards = [
        to_html(view(shown, tail=text if name == "live" else None))
        for text in HOSTILE
        for name, shown in every_kind(text).items()
    ]
    file = tmp_path / "hostile.html"
    file.write_text(document(cards), encoding="utf-8")
    page = browser.new_page()
    requested: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda request: request.url.startswith("data:") or requested.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(file.as_uri())
    opened(page)
    page.mouse.move(200, 200)
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert requested == [file.as_uri()] and dialogs == []
    assert (
        page.locator(
            "script, iframe, img:not(.r-media > img), svg, math, object, embed, form, link, meta[http-equiv]"
        ).count()
        == 0
    )
    assert page.locator(".reyn-view").count() == len(cards)
    assert page.evaluate("[...document.styleSheets].every(sheet => sheet.cssRules.length <= 5)")
    page.close()


@pytest.mark.parametrize("host", ["plain", "jupyterlab"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_in_both_themes(
    browser: Browser, tmp_path: Path, theme: str, host: str
) -> None:
    other = {"light": "dark", "dark": "light"}[theme]
    # In JupyterLab the page's theme counts, not the system's.
    page = browser.new_page(
        color_scheme=theme if host == "plain" else other, viewport={"width": 1000, "height": 900}
    )
    root = JUPYTERLAB[theme] if host == "jupyterlab" else ""
    page.set_content(document(samples(), root))
    page.screenshot(path=tmp_path / f"{host}-{theme}.png", full_page=True)
    opened(page)
    ratio, where = page.evaluate(CONTRAST)[0]
    assert ratio >= 4.5, where
    dark = page.evaluate("getComputedStyle(document.querySelector('.reyn-view')).backgroundColor")
    assert (sum(map(int, dark[4:-1].split(","))) < 200) == (theme == "dark")
    page.close()


def test_a_view_fits_a_narrow_column_and_a_keyboard_opens_its_steps(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 420, "height": 900})
    page.set_content(document(samples()))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    fold = page.locator("details.r-fold:not([open]) > summary").first
    fold.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.r-fold").first.evaluate("details => details.open")
    assert page.get_by_role("table").first.is_visible()
    assert page.get_by_role("columnheader", name="mean").first.is_visible()
    page.close()


def test_the_note_of_a_long_table_is_in_sight_wherever_it_is_scrolled_to(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_content(document([to_html(view(ActionTable({"total": 40}, (row(),) * 40)))]))
    table, note = page.get_by_role("region", name="table"), page.get_by_text("* is a required argument")
    for place in ("0", "each.scrollHeight"):
        table.evaluate(f"(each) => {{ each.scrollTop = {place} }}")
        box, text = table.bounding_box(), note.bounding_box()
        assert box is not None and text is not None
        assert box["y"] <= text["y"] and text["y"] + text["height"] <= box["y"] + box["height"]
    page.close()


def test_a_table_that_goes_on_to_the_right_is_shaded_there_until_its_end_is_in_sight(
    browser: Browser,
) -> None:
    page = browser.new_page(viewport={"width": 600, "height": 900})
    rows = ({f"column {n}": "x" * 40 for n in range(8)},) * 8
    page.set_content(document([to_html(view(Table("runs", rows)))]))
    table = page.get_by_role("region", name="table")
    shades = []
    for place in ("0", "each.scrollWidth"):
        table.evaluate(f"(each) => {{ each.scrollLeft = {place} }}")
        box = table.bounding_box()
        assert box is not None
        edge = FloatRect(x=box["x"] + box["width"] - 4, y=box["y"] + 40, width=2, height=100)
        picture = Image.open(BytesIO(page.screenshot(clip=edge))).convert("L")
        shades.append(int(np.asarray(picture).max()))
    assert shades[0] < shades[1]
    page.close()


def test_it_reads_well_where_a_host_strips_style_and_classes(browser: Browser) -> None:
    page = browser.new_page(java_script_enabled=True)
    page.set_content(document(samples()))
    page.evaluate(
        """() => { document.querySelectorAll('style').forEach(style => style.remove());
        document.querySelectorAll('[class]').forEach(element => element.removeAttribute('class')); }"""
    )
    opened(page)
    text = page.locator("body").inner_text()
    assert "✓ made changes not a language model" in text and "1.20 s · $0 · sent nothing" in text
    assert "- none\n+ 81.20" in text
    page.close()
