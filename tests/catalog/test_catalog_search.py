from __future__ import annotations

import pytest
from catalog_samples import of_size, published, schema, skill_category
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.catalog.search import search_lexical
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.text import words

SPEAKING = CatalogSnapshot.build(
    [skill_category()],
    {
        "skill": [
            Entry("salesReport", "Sums the orders of a quarter by region.", schema("quarter")),
            Entry("売上集計", "四半期の売上を地域別に集計する。", schema()),
            Entry("отчёт", "Собирает продажи по регионам за квартал.", schema()),
            Entry("translate_text", "Translates a text into another language.", schema("target_language")),
            Entry("text", "Nothing else.", schema()),
        ]
    },
)


def found(query: str, snapshot: CatalogSnapshot = SPEAKING, **arguments: object) -> list[str]:
    return [action.name.entry for action, _ in search_lexical(snapshot, query, **arguments)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("sales", "salesReport"),
        ("quarterly orders by region", "salesReport"),
        ("translat", "translate_text"),
        ("target language", "translate_text"),
        ("売上", "売上集計"),
        ("地域別", "売上集計"),
        ("продажи", "отчёт"),
        ("ОТЧЁТ", "отчёт"),
        ("ｓａｌｅｓ", "salesReport"),
        ("text", "text"),
        ("skill__translate_text", "translate_text"),
        ("translate text skill", "translate_text"),
    ],
)
def test_words_in_any_script_find_the_action(query: str, best: str) -> None:
    assert found(query)[0] == best


def test_an_exact_name_stands_first_with_the_highest_score() -> None:
    ranked = search_lexical(published(), "file__read")
    assert ranked[0][0].name.text == "file__read"
    assert ranked[0][1] > ranked[1][1]
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)


def test_one_category_can_be_searched_alone() -> None:
    hits = search_lexical(published(), "read", ["reyn_source"])
    assert {action.name.category for action, _ in hits} == {"reyn_source"}
    assert search_lexical(published(), "read", ["nowhere"]) == []


def test_hidden_actions_are_not_found() -> None:
    assert all(
        action.name.category != "exec" for action, _ in search_lexical(published(None), "run argv sandbox")
    )
    assert search_lexical(published("bubblewrap"), "run")[0][0].name.text == "exec__run"


def test_no_hit_is_an_empty_list() -> None:
    assert found("zzzz") == found("") == found("!!!") == []
    assert search_lexical(CatalogSnapshot.build([], {}), "x") == []


def test_the_limit_holds() -> None:
    assert len(search_lexical(of_size(100), "report", limit=7)) == 7
    assert search_lexical(of_size(5), "report", limit=0) == []


def test_a_replaced_slice_is_searched_as_it_is_now() -> None:
    before = published()
    assert search_lexical(before, "meetings")
    after = before.replace("rag_corpus", [Entry("mails", "Old mails.", schema("query"))])
    assert search_lexical(after, "mails")[0][0].name.entry == "mails"
    assert search_lexical(after, "meetings") == []


@given(st.text())
def test_any_query_is_answered(query: str) -> None:
    search_lexical(SPEAKING, query)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("mcp__call_tool", ["mcp", "call", "tool"]),
        ("parseHTTPResponse2", ["parse", "http", "response", "2"]),
        ("rag-corpus.Meetings", ["rag", "corpus", "meetings"]),
        ("café_größe", ["café", "grösse"]),
        ("売上report", ["売上", "report"]),
        ("売上高", ["売上", "上高"]),
        ("Отчёт2024", ["отчёт", "2024"]),
    ],
)
def test_words_are_split_as_people_read_them(text: str, split: list[str]) -> None:
    assert words(text) == split
