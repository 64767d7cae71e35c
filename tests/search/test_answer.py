"""What a search gives to a model and a person: what a call takes, in few bytes, and the way on when nothing fits."""

from __future__ import annotations

from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.catalog.discovery.search_results import Found, search_answer
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from tests.catalog.samples import schema, skill_category
from tests.search.action_indexes import LITTLE, WORDS, built, found


def test_an_answer_carries_what_it_takes_to_invoke() -> None:
    payload = search_answer(found(built(), LITTLE, "convert currencies"))
    best = payload["items"][0]
    assert list(best) == ["qualified_name", "description", "input_schema", "score"]
    assert best["qualified_name"] == "skill__convert_currency"
    assert best["input_schema"] == dict(schema("amount"))
    assert payload["total"] == len(payload["items"])


def test_a_weak_answer_says_so_and_where_to_look() -> None:
    hits = found(built(), LITTLE, "convert currencies").hits
    payload = search_answer(Found(hits, True, ("skill",)))
    assert payload["items"] and payload["weak"] is True and payload["nearest_categories"] == ["skill"]
    assert "list_actions" in payload["hint"]
    assert "weak" not in search_answer(Found(hits))


def test_what_nothing_fits_and_no_word_of_which_is_known_is_answered_with_the_way_on() -> None:
    payload = search_answer(found(ActionEmbeddingIndex(WORDS, None), LITTLE, "zxqwv"))
    assert payload["items"] == [] and payload["total"] == 0 and "list_actions" in payload["hint"]


def test_an_answer_keeps_to_its_bytes_and_says_what_it_left_out() -> None:
    long = [Entry(f"report_{n}", f"Report {n}. " + "words " * 200, schema("topic")) for n in range(10)]
    snapshot = CatalogSnapshot.build([skill_category()], {"skill": long})
    answer = found(ActionEmbeddingIndex(WORDS, None), snapshot, "report")
    payload = search_answer(answer, 4_000)
    assert 0 < len(payload["items"]) < payload["total"] == 10 and "4,000 bytes" in payload["note"]
