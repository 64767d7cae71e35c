"""The action table, the schema card, and the tables and cards of everything else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from html import unescape

import pytest

from reyn_jupyter.catalog.discovery.search_results import Found, search_answer
from reyn_jupyter.notebook.render import formatting, to_html, to_text, view
from reyn_jupyter.notebook.render.formatting import money, seconds, size
from reyn_jupyter.sessions.result_objects import ActionCard, ActionTable, Card, Table
from tests.notebook.render.samples import NOW, Reader, card, row

PAGE = {"items": [], "total": 26, "next_offset": 20, "categories": {"file": 7, "table": 1}}


def text_of(shown: object) -> str:
    return to_text(view(shown, now=NOW))


def page_of(shown: object) -> Reader:
    return Reader(to_html(view(shown, now=NOW)))


def test_an_action_shows_what_it_does_needs_touches_and_how_often_it_ran() -> None:
    text = text_of(
        ActionTable(PAGE, (row(), row("file__write", purity="write", permission="ask", uses=0, last_ms=None)))
    )
    assert "1.2" in text or "1.3" in text
    for words in ("file__read", "Read a file.", "path*, offset", "read", "allow", "write", "ask", "–"):
        assert words in text
    assert "* is a required argument" in text


def test_counts_by_category_and_the_line_for_the_next_page_are_there() -> None:
    text = text_of(ActionTable(PAGE, (row(),), query="file"))
    assert "1 of 26 actions · file 7 · table 1" in text
    assert "Next page: %reyn list --filter file --offset 20" in text
    narrowed = {**PAGE, "items": [{"qualified_name": "file__read", "input_schema": {}}]}
    assert "%reyn list file table --offset 20" in text_of(ActionTable(narrowed, (row(),)))
    assert "Next page" not in text_of(ActionTable({"items": [], "total": 1}, (row(),)))


def test_a_search_shows_scores_and_says_when_nothing_fits_well() -> None:
    found = ActionTable(
        {"total": 1, "weak": True, "nearest_categories": ["table"]}, (row(score=0.314),), "search", "moon"
    )
    text = text_of(found)
    assert "Actions for “moon”" in text and "0.31" in text
    assert "Nothing here fits well" in text and "Nearest categories: table." in text
    assert "[weak]" in text.splitlines()[0] and text.index("score") < text.index("category")


def test_a_weak_answer_without_a_hit_still_names_the_nearest_categories() -> None:
    payload = search_answer(Found((), weak=True, nearest_categories=("table", "file")))
    text = text_of(ActionTable(payload, (), "search", "moon"))
    assert "[weak]" in text and "Nothing here fits. Nearest categories: table, file." in text
    assert "these are only the nearest" not in text and "No action has these words" not in text


def test_no_hit_says_what_to_do() -> None:
    assert "%reyn list shows all of them." in text_of(ActionTable({"items": [], "total": 0}))


def test_a_listing_without_an_index_says_how_to_get_one() -> None:
    hint = {"reason": "Search has no index.", "install": "pip install x", "status": "%reyn embeddings status"}
    text = text_of(ActionTable({**PAGE, "search": hint}, (row(),)))
    assert "Search has no index." in text and "pip install x · %reyn embeddings status" in text


def test_an_error_shows_suggestions_redirects_and_the_hint() -> None:
    error = {
        "error": "Unknown category 'mcp.tool'.",
        "redirects": {"mcp.tool": "mcp"},
        "suggestions": ["mcp"],
        "hint": "See %reyn.",
    }
    text = text_of(ActionTable(error))
    assert "✗ Unknown category 'mcp.tool'." in text
    assert "Did you mean mcp? Renamed: mcp.tool → mcp. See %reyn." in text


def test_a_schema_card_lists_parameters_nested_ones_too() -> None:
    text = text_of(card())
    assert "rag_operation__recall  [read]  [allowed]" in text
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "string" in lines["query"] and "yes" in lines["query"] and "What to look for." in lines["query"]
    assert "integer 1–50" in lines["top_k"] and lines["top_k"].endswith(" 5")
    assert 'array of "user" | "project"' in lines["kinds"]
    assert "yes" in lines["filters.date"] and "string" in lines["filters.date.from"]
    assert "Call it: %reyn invoke rag_operation__recall query=…" in text
    assert "target tool  recall" in text


def test_a_schema_that_contains_itself_or_is_none_still_ends() -> None:
    loop = {"properties": {"child": {"$ref": "#"}}}
    assert "child.child.child" in text_of(ActionCard({"qualified_name": "a__b", "input_schema": loop}))
    for schema in ({}, None, "x", {"properties": []}, {"properties": {"a": True}}, {"$ref": "#/nowhere"},
                   {"properties": {"a": {"enum": [], "anyOf": ["x"], "items": 3, "minimum": "x"}}}):  # fmt: skip
        assert text_of(ActionCard({"qualified_name": "a__b", "input_schema": schema}))


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_numbers_bytes_times_and_states_read_as_what_they_mean() -> None:
    rows = ({"id": "0198c0de-aaaa-7000-8000-000000000001", "size": 18231, "entries": 1234567, "created": NOW - 180,
             "seconds": 0.0123, "cost": 0.0031, "ok": False, "status": "lost", "nothing": None},)  # fmt: skip
    text = text_of(Table("blobs", rows, "Stored blobs", "%reyn inspect ID shows one"))
    for words in (
        "000000000001",
        "18.2 KB",
        "1,234,567",
        "2026-09-21 16:10:20 UTC+2",
    ):
        assert words in text
    page = page_of(Table("blobs", rows))
    assert "12 ms" in page.text and "$0.0031" in page.text and "✗ failed" in page.text
    assert {"class": "r-right"} in [attributes for tag, attributes in page.tags if tag == "td"]


@pytest.mark.usefixtures("in_berlin")
def test_a_time_is_absolute_and_local_so_that_it_stays_true_in_a_saved_notebook() -> None:
    text = text_of(
        Table("runs", ({"run": "a", "time": "2026-09-21T14:10:20+00:00"}, {"run": "b", "time": "soon"}))
    )
    assert "2026-09-21 16:10:20 UTC+2" in text and "soon" in text and "ago" not in text


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("UTC", "14:10:20 UTC"), ("Asia/Kolkata", "19:40:20 UTC+5:30"), ("America/New_York", "10:10:20 UTC-4")],
)
def test_a_time_names_the_zone_of_the_kernel(zone: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert formatting.moment(NOW - 180) == f"2026-09-21 {shown}"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_search_without_an_index_says_so() -> None:
    found = ActionTable({"total": 1, "ranking": "lexical"}, (row(score=0.5),), "search", "read")
    assert "Ranked by words alone" in text_of(found)


def test_figures_keep_to_a_digit_that_matters() -> None:
    assert [size(n) for n in (0, 1, 999, 1000, 999_949, 99_960, 1e6, 3.4e9)] == [
        "0 bytes", "1 byte", "999 bytes", "1.0 KB", "1.0 MB", "100 KB", "1.0 MB", "3.4 GB",
    ]  # fmt: skip
    assert [seconds(n) for n in (0.0004, 0.012, 1.239, 125, 7322)] == [
        "0.4 ms",
        "12 ms",
        "1.24 s",
        "2 min 5 s",
        "2 h 2 min",
    ]
    assert [money(n) for n in (0, 0.00001, 0.0031, 12.5)] == ["$0", "< $0.0001", "$0.0031", "$12.50"]


def test_an_empty_table_says_so() -> None:
    assert (
        text_of(Table("runs", (), "Runs", "Ask something with %%reyn."))
        == "Runs\nNothing here yet.\nAsk something with %%reyn."
    )


def test_scores_have_two_digits_and_a_column_of_nothing_but_zeros_is_left_out() -> None:
    rows = ({"name": "a", "score": 0.4095, "inner": 0}, {"name": "b", "score": 1.0, "inner": 0})
    text = text_of(Table("tools", rows))
    assert "0.41" in text and "1.00" in text and "0.4095" not in text and "inner" not in text
    assert "inner" in text_of(Table("runs", ({"name": "a", "inner": 2}, *rows)))


def test_a_card_has_facts_sections_and_lines_to_try() -> None:
    status = Card(
        "status",
        "reyn 0.1",
        (("model", "offline"),),
        (("Held back", ("models", "stores")),),
        ("%reyn list", "%reyn search x"),
    )
    text = text_of(status)
    assert text.splitlines()[:3] == ["reyn 0.1", "model  offline", "Held back"]
    assert "%reyn search x" in text
    assert "<code>%reyn list</code>" in unescape(to_html(view(status)))


def test_tables_are_real_tables_with_row_headers_and_a_keyboard_can_scroll_them() -> None:
    tags = page_of(ActionTable(PAGE, (row(),))).tags
    assert ("th", {"scope": "row"}) in tags
    assert any(
        attributes.get("tabindex") == "0" and attributes.get("role") == "region" for _, attributes in tags
    )
    assert tags[0][1]["aria-label"] == "actions: Actions"
