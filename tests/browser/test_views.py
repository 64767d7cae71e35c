"""The views that TypeScript draws: the HTML of Python, word for word, with what a page without a script cannot do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.render.blocks import View
from reyn_jupyter.sessions.result_objects import Result
from reyn_jupyter.support.sanitize import visible
from tests.browser.drawing import Drawing, drawing
from tests.notebook.render.samples import HOSTILE, every_kind

KINDS = tuple(every_kind("x"))
FRAMES = {
    "duplicate and odd columns": pd.DataFrame([[1, 2, 3]], columns=["a", "a", 7]),
    "several levels": pd.DataFrame(
        {("x", "y"): [1, 2], ("x", "z"): [3, 4]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    ),
    "missing": pd.DataFrame(
        {"f": [1.5, np.nan], "o": [None, "x"], "t": [pd.NaT, pd.Timestamp("2024-01-01")]}
    ),
    "large integers": pd.DataFrame({"n": [2**53 + 1, 2**63 - 1], "o": [10**30, -(10**400)]}),
    "many columns": pd.DataFrame(np.zeros((3, 10_000))),
    "many rows": pd.DataFrame({"n": range(5000), "s": ["word"] * 5000}),
    "nested": pd.DataFrame({"o": [{"a": [1, {"b": None}]}, [1, "two"]]}),
    "the edges of time": pd.DataFrame({"d": pd.Series([date.min, date.max], dtype=object)}),
    "mixed": pd.DataFrame({"m": [1, "two", 3.0, (4, 5), 1 + 2j, b"x"]}),
    "hidden letters": pd.DataFrame({"\x1b[31m\u202e": ["\n\t\r", "<b>"]}),
    "empty": pd.DataFrame({"a": []}),
}


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawing]:
    with drawing(browser, Session(tmp_path_factory.mktemp("views"))) as made:
        yield made


def shown(name: str, text: str) -> View:
    return view(every_kind(text)[name], tail=text if name == "live" else None)


@pytest.mark.parametrize("name", KINDS)
def test_both_hosts_draw_the_same_elements_with_the_same_words(page: Drawing, name: str) -> None:
    made = shown(name, "Some *words* of\na [link](https://example.org/a) & <b>")
    page.show(made)
    assert page.outline() == page.outline_of(to_html(made))


@pytest.mark.parametrize("name", FRAMES)
def test_both_hosts_draw_the_same_cells_of_any_frame(page: Drawing, name: str) -> None:
    made = view(Result("f", "x", FRAMES[name]))
    page.show(made)
    assert page.outline() == page.outline_of(to_html(made))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_hostile_runs_loads_or_becomes_an_element(page: Drawing, text: str) -> None:
    for name in KINDS:
        made = shown(name, text)
        page.show(made)
        assert page.outline() == page.outline_of(to_html(made)), name
    tags = page.page.evaluate(
        "() => [...new Set([...document.querySelectorAll('#host *')].map((each) => each.localName))]"
    )
    assert not set(tags) & {"script", "img", "iframe", "svg", "math", "style", "link", "object", "form"}
    assert page.page.evaluate("() => window.ran") is None
    assert page.shown.elsewhere == [] and page.shown.complaints == []


def test_a_link_that_is_no_web_address_stays_text(page: Drawing) -> None:
    spans = [
        {"text": f"to {place}", "marks": [], "href": href}
        for place, href in enumerate(("javascript:window.ran=1", "data:text/html,x", " https://a.example", "HTTPS://b.example/\u202e"))
    ]  # fmt: skip
    page.show(snapshot_of({"type": "paragraph", "spans": spans}))
    links = page.page.locator("#host a")
    assert links.count() == 1
    assert links.get_attribute("href") == "HTTPS://b.example/⟨U+202E⟩"
    assert links.get_attribute("rel") == "noopener noreferrer nofollow"


ODD = (range(0x3200), range(0xD7F0, 0x10000), range(0x10000, 0x110000, 4099), range(0xDFFF0, 0xE1000))


def test_every_character_is_shown_or_hidden_as_python_does_it(page: Drawing) -> None:
    codes = [code for codes in ODD for code in codes if code not in (10, 13)]
    texts = page.page.evaluate(
        """(codes) => {
          const text = (code) => ({ type: "code", text: `${String.fromCodePoint(code)} `, label: "", more: "" });
          const view = { kind: "x", title: "", badges: [], facts: [], blocks: codes.map(text), knob: "" };
          window.draw({ protocol: 1, session: "s", live: null, view });
          return JSON.stringify([...document.querySelectorAll("#host pre")].map((each) => each.firstChild.data));
        }""",
        codes,
    )
    assert json.loads(texts) == [f"{visible(chr(code))} " for code in codes]


def snapshot_of(*blocks: Any, **given: Any) -> dict[str, Any]:
    """A snapshot written by hand, as a foreign or damaged notebook might hold it."""
    shape = {"kind": "x", "title": "By hand", "badges": [], "facts": [], "blocks": list(blocks), "knob": ""}
    return {"protocol": 1, "session": "s", "view": shape, "live": None, **given}


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        5,
        "text",
        [],
        {},
        {"view": None},
        {"view": {"blocks": 3}},
        {"protocol": "x", "view": {"title": {}}},
    ],
    ids=str,
)
def test_a_damaged_snapshot_says_so(page: Drawing, damaged: Any) -> None:
    page.show(damaged)
    expect(page.page.locator("#host")).to_contain_text("nothing that can be shown. Run its cell again")
    assert page.shown.complaints == []


def test_an_unknown_or_broken_part_is_named_and_its_neighbours_are_shown(page: Drawing) -> None:
    good = {"type": "notice", "text": "still here", "tone": "info", "hint": ""}
    broken = [
        {"type": "hologram"},
        {"type": "grid"},
        {"type": "fold", "title": 3},
        None,
        "words",
        {"type": "tree", "root": None},
    ]
    page.show(snapshot_of(*broken, good))
    text = page.page.locator("#host").inner_text()
    assert "“hologram” is not known" in text and "“grid” could not be drawn" in text and "still here" in text
    page.update(snapshot_of(*reversed(broken), good))
    assert "still here" in page.page.locator("#host").inner_text()
    assert page.shown.complaints == []


def test_a_snapshot_of_a_newer_protocol_names_both_versions(page: Drawing) -> None:
    page.show(snapshot_of({"type": "rule"}, protocol=99))
    expect(page.page.locator("#host")).to_contain_text("version 99 of the protocol; this page knows 1")
    expect(page.page.locator("#host")).to_contain_text("By hand")
