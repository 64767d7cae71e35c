"""What a person did to a table or a card outlives its being drawn again: sorting, folds, focus, selection."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd
import pytest
from playwright.sync_api import Browser, expect

from reyn_jupyter import Session
from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.render.blocks import Cell, Code, Column, Commands, Fold, Grid, Span, View
from reyn_jupyter.sessions.result_objects import Result, Table
from tests.browser.drawing import Drawing, drawing
from tests.notebook.render.samples import call, every_kind, invoked, running, trace


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


HUGE = 9_007_199_254_740_992  # from here on a float does not hold every integer


@pytest.mark.parametrize(
    ("column", "values", "ascending"),
    [
        ("n", [10, 9, 1200, -3], ["-3", "9", "10", "1,200"]),
        ("bytes", [1200, 812, 3_100_000, 1], ["1 byte", "812 bytes", "1.2 KB", "3.1 MB"]),
        ("seconds", [125, 1.24, 0.04, 3720], ["40 ms", "1.24 s", "2 min 5 s", "1 h 2 min"]),
        ("cost", [0.31, None, 0.00001, 12], ["< $0.0001", "$0.3100", "$12.00", "–"]),
        ("n", [HUGE + 1, HUGE, 1], ["1", f"{HUGE:,}", f"{HUGE + 1:,}"]),
        ("n", [10**400, 3.5, -(10**400)], ["<int of about 401 digits>", "3.5", "<int of about 401 digits>"]),
        ("at", ["2026-01-31T12:00:05Z", "2025-01-01T00:00:00Z"], ["2025-01-01 00:00:00 UTC", "12:00:05 UTC"]),
        ("word", ["run-10", "run-9", "Run-1"], ["Run-1", "run-9", "run-10"]),
        ("word", ["1.2.10", "1.2.9"], ["1.2.9", "1.2.10"]),
        ("word", ["b", None, "a", ""], ["a", "b", "–", "–"]),
        ("mixed", ["b", 10, "a", 9], ["9", "10", "a", "b"]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_a_click_on_a_heading_sorts_by_value_a_second_turns_it_round_and_a_third_restores(
    page: Drawing, column: str, values: list[object], ascending: list[str]
) -> None:
    page.show(
        view(Table("things", tuple({"place": place, column: value} for place, value in enumerate(values))))
    )
    cells = page.page.locator("#host tbody td")
    before = cells.all_inner_texts()
    heading = page.page.get_by_role("columnheader", name=column)
    expect(heading).to_have_attribute("aria-sort", "none")
    heading.get_by_role("button").click()
    expect(cells).to_have_text([re.compile(f"{re.escape(text)}$") for text in ascending])
    expect(heading).to_have_attribute("aria-sort", "ascending")
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    there = [text for text in ascending if text != "–"]
    descending = [*reversed(there), *ascending[len(there) :]]
    expect(cells).to_have_text([re.compile(f"{re.escape(text)}$") for text in descending])
    heading.get_by_role("button").press("Enter")
    assert cells.all_inner_texts() == before


def test_a_frame_and_an_answer_in_markdown_sort_by_value_too(page: Drawing) -> None:
    days = [pd.Timedelta(days=10), pd.Timedelta(days=9), pd.NaT]
    page.show(view(Result("f", "x", pd.DataFrame({"took": days, "n": [2.0, -11.5, None]}))))
    page.page.get_by_role("columnheader", name="took").get_by_role("button").click()
    expect(page.page.locator("#host tbody td:nth-child(2)")).to_have_text(
        [re.compile("^9 d"), re.compile("^10 d"), "NaT"]
    )
    page.page.get_by_role("columnheader", name="n").last.get_by_role("button").click()
    expect(page.page.locator("#host tbody td:nth-child(3)")).to_have_text(["-11.5", "2.0", "NaN"])
    page.show(view(trace(answer="| what | price |\n|--|--|\n| a | $1,200 |\n| b | $-3.50 |\n| c | |")))
    page.page.get_by_role("columnheader", name="price").get_by_role("button").click()
    expect(page.page.locator("#host td:nth-child(2)")).to_have_text(["$-3.50", "$1,200", ""])


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


def test_a_sign_that_streams_in_in_pieces_is_drawn_as_one(page: Drawing) -> None:
    page.show(View("x", "x", blocks=(Code("by \U0001f469"),)))
    page.update(View("x", "x", blocks=(Code("by \U0001f469\u200d\U0001f4bb"),)))
    expect(page.page.locator("#host pre")).to_have_text("by \U0001f469\u200d\U0001f4bb")


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
