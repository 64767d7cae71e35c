"""What people see of a chart: an image that is drawn, readable in both themes, with figures behind a fold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from reyn_jupyter import Session, export
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.serving.protocol import LiveTrace
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.current import SESSION_ID
from tests.browser.browser_support import THEMES, bare
from tests.browser.test_html import document

HOSTILE = "<img src=x onerror=window.__pwned=1>"
# The lightest and the darkest colour of a screenshot's part, and whether its middle is coloured, read from its pixels.
CONTRAST = """async (coded) => {
  const image = new Image(); image.src = `data:image/png;base64,${coded}`; await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const light = (v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const counts = new Map();
  const { data } = context.getImageData(0, 0, image.width, image.height);
  for (let i = 0; i < data.length; i += 4) {
    const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const common = [...counts].sort((a, b) => b[1] - a[1]).map(([key]) => key.split(',').map(Number));
  const bright = ([r, g, b]) => .2126 * light(r) + .7152 * light(g) + .0722 * light(b);
  const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  const ground = bright(common[0]);
  return [ground, ratio(bright(common[1]), ground), Math.max(...common.map((each) => ratio(bright(each), ground)))];
}"""


@pytest.fixture
def session(workspace: Path) -> Iterator[Session]:
    days = pd.to_datetime(["2026-01-05", "2026-02-01", "2026-02-14", "2026-03-02"])
    orders = pd.DataFrame({"day": days, "amount": [510, 700, 350, 240], "who": ["a", HOSTILE, "b", "a"]})
    made = Session(workspace, namespace={"orders": orders})
    yield made
    made.close()


MONTHLY = {"data": "orders", "mark": "bar", "x": {"field": "day", "time_unit": "month"}, "y": "amount"}


def run_of(session: Session, arguments: object = MONTHLY) -> Trace:
    model = ScriptedModel(call("invoke_action", action_name="chart__draw", args=arguments), "Here it is.")
    return session.ask("plot amount per month", model=model)


# The colours of a picture's corner and of the view beside it, in a screenshot that begins 8 px before the picture.
GROUNDS = """async (coded) => {
  const image = new Image(); image.src = `data:image/png;base64,${coded}`; await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const at = (x) => [...context.getImageData(x, image.height - 2, 1, 1).data].slice(0, 3);
  return [at(2), at(image.width - 2)];
}"""


def grounds(page: Page) -> list[list[int]]:
    """The colour of the view left of a picture, and that of the picture's own ground."""
    box = page.locator(".r-picture img").first.bounding_box()
    assert box is not None
    clip = {"x": box["x"] - 8, "y": box["y"], "width": 12, "height": 4}
    import base64

    coded = base64.b64encode(page.screenshot(clip=clip)).decode()  # type: ignore[arg-type]
    return list(page.evaluate(GROUNDS, coded))


def drawn(page: Page) -> list[float]:
    image = page.locator(".r-picture img").first
    expect(image).to_be_visible()
    width = image.evaluate("async (each) => { await each.decode(); return each.naturalWidth; }")
    assert width > 100
    import base64

    return list(page.evaluate(CONTRAST, base64.b64encode(image.screenshot()).decode()))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [900, 1400])
def test_a_card_and_a_result_show_a_chart_in_both_themes(
    browser: Browser, session: Session, tmp_path: Path, theme: str, width: int
) -> None:
    trace, result = run_of(session), session.invoke_action("chart__draw", MONTHLY)
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked: list[str] = []
    page.on("request", lambda each: None if each.url.startswith("data:") else asked.append(each.url))
    page.set_content(document([to_html(view(trace)), to_html(view(result))], THEMES[theme]))
    page.evaluate(f"document.body.dataset.jpThemeLight = '{str(theme == 'light').lower()}'")
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    ground, mark, text = drawn(page)
    assert (ground > 0.9) == (theme == "light") and (ground < 0.1) == (theme == "dark")
    assert mark >= 3 and text >= 4.5
    view_ground, picture_ground = grounds(page)
    assert view_ground == picture_ground
    expect(page.locator(".r-picture img")).to_have_count(2)
    name = page.locator(".r-picture img").first.get_attribute("alt") or ""
    assert name.startswith("Bar chart: mean of amount by day (month), 3 bars, highest Feb 2026 525")
    expect(page.get_by_role("cell", name="525").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and asked == []
    page.screenshot(path=tmp_path / f"chart-{theme}-{width}.png", full_page=True)
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_live_viewer_draws_the_same_and_loads_nothing(
    browser: Browser, session: Session, tmp_path: Path, theme: str
) -> None:
    trace = run_of(session)
    result = session.invoke_action("chart__draw", MONTHLY)
    for snapshot in (
        to_snapshot(view(trace), SESSION_ID, LiveTrace(run=trace.run)),
        to_snapshot(view(result), SESSION_ID),
    ):
        with bare(browser, session, snapshot, theme) as opened:
            page = opened.page
            if snapshot["live"] is not None:
                page.locator("summary", has_text="Details").click()
                page.get_by_role("option").filter(has_text="chart__draw").click()
            ground, mark, text = drawn(page)
            assert (ground > 0.9) == (theme == "light") and mark >= 3 and text >= 4.5
            page.locator("summary").filter(has_text="As a table").first.click()
            expect(page.get_by_role("cell", name="525").first).to_be_visible()
            page.screenshot(path=tmp_path / f"live-{theme}.png", full_page=True)
            assert opened.elsewhere == []
            assert [each for each in opened.complaints if "favicon" not in each] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chart_of_an_exported_page_follows_the_reader_s_theme(
    browser: Browser, session: Session, tmp_path: Path, theme: Literal["light", "dark"]
) -> None:
    export(tmp_path / "page.html", run_of(session))
    page = browser.new_page(viewport={"width": 1000, "height": 900}, color_scheme=theme)
    page.goto((tmp_path / "page.html").as_uri())
    ground, mark, text = drawn(page)
    assert (ground > 0.9) == (theme == "light") and mark >= 3 and text >= 4.5
    view_ground, picture_ground = grounds(page)
    assert view_ground == picture_ground
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_plan_s_graph_lies_on_the_ground_of_its_view(
    browser: Browser, session: Session, tmp_path: Path, theme: str
) -> None:
    plan = session.workflows.plan("unpack photos.zip and make thumbnails of the images")
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_content(document([to_html(view(plan))], THEMES[theme]))
    page.evaluate(f"document.body.dataset.jpThemeLight = '{str(theme == 'light').lower()}'")
    _, _, text = drawn(page)
    assert text >= 4.5
    view_ground, picture_ground = grounds(page)
    assert view_ground == picture_ground
    page.screenshot(path=tmp_path / f"plan-{theme}.png", full_page=True)
    page.close()


def test_names_and_values_in_a_picture_run_nothing(browser: Browser, session: Session) -> None:
    result = session.invoke_action(
        "chart__draw", {"data": "orders", "mark": "bar", "x": "who", "y": "amount", "title": HOSTILE}
    )
    page = browser.new_page()
    page.set_content(document([to_html(view(result))]))
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    drawn(page)
    assert page.evaluate("window.__pwned") is None
    expect(page.locator(".reyn-view img:not(.r-picture img)")).to_have_count(0)
    page.goto("about:blank")
    page.set_content(result.value.svg)  # not how it is shown: as markup of the page itself
    page.locator("svg").wait_for()
    assert page.evaluate("window.__pwned") is None
    page.close()
