"""What a person did to a table or a card outlives its being drawn again: sorting, folds, focus, selection."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
from browser.drawing import Drawing, drawing
from playwright.sync_api import Browser, expect
from render_samples import call, every_kind, invoked, running

from reyn_jupyter import Session
from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.render.model import Cell, Code, Column, Commands, Fold, Grid, Span, View
from reyn_jupyter.runtime.results import Result

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawing]:
    with drawing(browser, Session(tmp_path_factory.mktemp("views"))) as made:
        yield made


def shown(name: str, text: str) -> View:
    return view(every_kind(text)[name], tail=text if name == "live" else None)


def table(*columns: tuple[str, list[str]], more: str = "") -> View:
    names = tuple(Column(name, header=place == 0) for place, (name, _) in enumerate(columns))
    rows = tuple(
        tuple(Cell(text) for text in row) for row in zip(*(cells for _, cells in columns), strict=True)
    )
    return View("table", "Rows", blocks=(Grid("", names, rows, more),))


@pytest.mark.parametrize(
    ("cells", "ascending"),
    [
        (["10", "9", "1,200", "-3"], ["-3", "9", "10", "1,200"]),
        (["1.2 KB", "812 bytes", "3.1 MB", "1 byte"], ["1 byte", "812 bytes", "1.2 KB", "3.1 MB"]),
        (["2 min 5 s", "1.24 s", "40 ms", "1 h 2 min"], ["40 ms", "1.24 s", "2 min 5 s", "1 h 2 min"]),
        (["$0.31", "–", "< $0.0001", "$12.00"], ["< $0.0001", "$0.31", "$12.00", "–"]),
        (["9007199254740993", "9007199254740992", "1"], ["1", "9007199254740992", "9007199254740993"]),
        (["3 s ago · 2026-01-31 12:00:05 UTC", "2025-01-01"], ["2025-01-01", "3 s ago · 2026-01-31 12:00:05 UTC"]),
        (["run-10", "run-9", "Run-1"], ["Run-1", "run-9", "run-10"]),
        (["1.2.10", "1.2.9"], ["1.2.9", "1.2.10"]),
        (["b", "NaN", "a", ""], ["a", "b", "NaN", ""]),
    ],
    ids=lambda cells: cells[0],
)  # fmt: skip
def test_a_click_on_a_heading_sorts_by_value_a_second_turns_it_round_and_a_third_restores(
    page: Drawing, cells: list[str], ascending: list[str]
) -> None:
    page.show(table(("name", [str(place) for place in range(len(cells))]), ("value", cells)))
    column = page.page.locator("#host tbody td")
    heading = page.page.get_by_role("columnheader", name="value")
    expect(heading).to_have_attribute("aria-sort", "none")
    heading.get_by_role("button").click()
    expect(column).to_have_text(ascending)
    expect(heading).to_have_attribute("aria-sort", "ascending")
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    last = [text for text in reversed(ascending) if text not in ("–", "NaN", "")]
    assert column.all_inner_texts()[: len(last)] == last
    heading.get_by_role("button").press("Enter")
    expect(column).to_have_text(cells)


def test_sorting_a_table_that_shows_a_part_says_that_it_is_a_part(page: Drawing) -> None:
    page.show(view(Result("f", "x", pd.DataFrame({"n": range(5000), "s": ["word"] * 5000}))))
    page.page.get_by_role("button", name="n", exact=True).click()
    expect(page.page.locator("#host .r-more")).to_contain_text("These are the first 20 of 5,000 rows")
    expect(page.page.locator("#host .r-more")).to_contain_text("sorted among themselves")
    assert page.page.locator("#host tbody tr").count() == 20


SELECT = "(each, end) => getSelection().setBaseAndExtent(each.firstChild, 0, each.firstChild, end)"
CLOSE = "() => { for (const fold of document.querySelectorAll('#host details')) fold.open = false; }"


def step(number: int, words: str, is_open: bool = False) -> Fold:
    rows = tuple((Cell(f"row {place}"), Cell(str(place))) for place in range(40))
    inner = (Code(words), Grid("", (Column("name"), Column("n")), rows), Commands((f"%reyn trace {number}",)))
    return Fold((Span(f"step {number}"),), blocks=inner, open=is_open)


def card(*steps: Fold, title: str = "Running", facts: tuple[str, ...] = ()) -> View:
    return View("trace", title, facts=facts, blocks=steps)


def test_what_the_person_opened_scrolled_focused_and_selected_outlives_an_update(page: Drawing) -> None:
    page.show(card(step(1, "first words"), step(2, "more")))
    folds = page.page.locator("#host details")
    folds.first.locator("summary").click()
    folds.first.locator(".r-scroll").evaluate(
        "(each) => { each.style.maxHeight = '80px'; each.scrollTop = 60; }"
    )
    folds.first.locator("button", has_text="name").click()
    folds.first.locator("pre").evaluate(SELECT, 5)
    page.page.evaluate("() => { window.first = document.querySelector('#host details'); }")
    for number in range(3, 8):
        steps = [
            step(place, "first words" if place == 1 else f"more of {number}") for place in range(1, number)
        ]
        page.update(card(*steps, facts=(f"{number} s",)))
    assert folds.count() == 6
    expect(folds.first).to_have_attribute("open", "")
    state = page.page.evaluate(
        """() => ({ same: document.querySelector('#host details') === window.first,
          scrolled: window.first.querySelector('.r-scroll').scrollTop, selected: String(getSelection()),
          focused: document.activeElement.textContent, sorted: window.first.querySelector('th').ariaSort })"""
    )
    assert state == {
        "same": True,
        "scrolled": 60,
        "selected": "first",
        "focused": "name",
        "sorted": "ascending",
    }


def test_a_part_that_changes_keeps_its_sorting_and_focus(page: Drawing) -> None:
    page.show(table(("name", ["b", "a"]), ("n", ["1", "2"])))
    page.page.get_by_role("button", name="name").click()
    page.update(table(("name", ["b", "a", "0"]), ("n", ["1", "2", "3"])))
    expect(page.page.locator("#host tbody th")).to_have_text(["0", "a", "b"])
    expect(page.page.get_by_role("button", name="name")).to_be_focused()


def test_text_that_streams_in_is_added_without_losing_a_selection(page: Drawing) -> None:
    page.show(View("x", "x", blocks=(Code("one two"),)))
    page.page.locator("#host pre").evaluate(
        "(each) => getSelection().setBaseAndExtent(each.firstChild, 0, each.firstChild, 3)"
    )
    page.update(View("x", "x", blocks=(Code("one two three"),)))
    expect(page.page.locator("#host pre")).to_have_text("one two three")
    assert page.page.evaluate("() => String(getSelection())") == "one"


def test_a_fold_follows_its_run_until_the_person_touches_it(page: Drawing) -> None:
    page.show(card(step(1, "x", is_open=True), step(2, "x", is_open=True)))
    page.page.locator("#host summary").nth(1).click()
    page.update(card(step(1, "y"), step(2, "y", is_open=True)))
    opened = page.page.locator("#host details").evaluate_all("(all) => all.map((each) => each.open)")
    assert opened == [False, False]


def test_the_branches_of_a_tree_stay_open(page: Drawing) -> None:
    def made(n: int) -> View:
        return view(Result("f", "x", {"a": {"b": {"c": {"deep": n}}}, "n": {"k": [{"z": n}]}}))

    page.show(made(1))
    page.page.locator("#host summary", has_text="n").last.click()
    opened = "(all) => all.filter((each) => each.open).length"
    before = page.page.locator("#host details").evaluate_all(opened)
    page.update(made(2))
    assert page.page.locator("#host details").evaluate_all(opened) == before


def test_whatever_came_before_an_update_draws_what_a_fresh_page_would(page: Drawing) -> None:
    states = [
        view(running(*[call(i, "file__read", invoked("file__read", path="a" * i), "o") for i in range(n)]), tail=tail)
        for n, tail in ((0, None), (1, "Some"), (2, "Some *more*"), (4, "Some *more* text\n\n- a"), (1, "x"))
    ]  # fmt: skip
    states += [shown(name, "words") for name in ("trace", "card", "table", "result tree", "search", "trace")]
    page.show(states[0])
    for made in states:
        page.update(made)
        page.page.evaluate(CLOSE)
        assert page.outline().replace(" open=", "") == page.outline_of(to_html(made)).replace(" open=", "")
