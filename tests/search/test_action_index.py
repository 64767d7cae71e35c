"""The search of a session's catalog: what it covers, and when it is offered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Category, Entry
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.search.database import NAME
from tests.catalog.samples import of_size, published, schema, skill_category
from tests.search.action_indexes import LITTLE, LOCAL, SPEAKING, WORDS, built, configured, found, names, run

# Words alone


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("sales", "salesReport"),
        ("quarterly orders by region", "salesReport"),
        ("translate", "translate_text"),
        ("target language", "translate_text"),
        ("売上", "売上集計"),
        ("地域別", "売上集計"),
        ("продажи", "отчёт"),
        ("ОТЧЁТ", "отчёт"),
        ("ｓａｌｅｓ", "salesReport"),
        ("text", "text"),
        ("skill__translate_text", "translate_text"),
        ("translateText", "translate_text"),
    ],
)
def test_words_in_any_script_find_the_action_without_any_model(query: str, best: str) -> None:
    answer = found(ActionEmbeddingIndex(WORDS, None), SPEAKING, query)
    assert answer.hits[0][0].name.entry == best and answer.ranking == "lexical"


def test_one_category_can_be_searched_alone() -> None:
    index = ActionEmbeddingIndex(WORDS, None)
    hits = found(index, published(), "read", 10, ["reyn_source"]).hits
    assert {action.name.category for action, _ in hits} == {"reyn_source"}


@pytest.mark.parametrize("settings", [WORDS, LOCAL])
def test_hidden_actions_are_in_no_answer(settings: Callable[[], Settings]) -> None:
    index = ActionEmbeddingIndex(settings, None)
    hidden, shown = published(None), published("bubblewrap")
    if settings is LOCAL:
        run(index.build(shown))
        assert found(index, shown, "run argv").ranking == "hybrid"
    for query in ("exec__run", "run argv sandbox", "run a command"):
        assert not [name for name in names(found(index, hidden, query, 100)) if name.startswith("exec")]
    assert names(found(index, shown, "exec__run"))[0] == "exec__run"


def test_an_empty_catalog_and_a_limit_of_few() -> None:
    index = ActionEmbeddingIndex(WORDS, None)
    assert found(index, CatalogSnapshot.build([], {}), "x").hits == ()
    assert len(found(index, of_size(100), "report", 7).hits) == 7


@hypothesis_settings(max_examples=40)
@given(st.text())
def test_any_text_is_a_query(query: str) -> None:
    answer = found(ActionEmbeddingIndex(WORDS, None), SPEAKING, query)
    scores = [score for _, score in answer.hits]
    assert scores == sorted(scores, reverse=True)


# Meaning


def test_it_is_offered_before_any_action_has_a_vector_where_a_model_lies_on_this_machine() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)
    assert index.offered and index.vectors == 0 and index.hint is None
    run(index.build(LITTLE))
    assert index.offered and index.vectors == 3 and index.hint is None


def test_it_is_hidden_where_the_model_does_not_lie_on_this_machine(tmp_path: Path) -> None:
    index = ActionEmbeddingIndex(configured("mine", mine=f"sentence-transformers/{tmp_path}/none"), None)
    assert not index.offered and index.hint is not None
    run(index.ready(LITTLE, 60.0))
    assert not index.offered and found(index, LITTLE, "mail").ranking == "lexical"


def test_meaning_finds_what_no_word_does() -> None:
    index = built()
    answer = found(index, LITTLE, "write an e-mail to my colleague")
    assert answer.ranking == "hybrid" and names(answer)[0] == "skill__post_letter"


@pytest.mark.parametrize(
    ("settings", "reason", "remedy"),
    [
        (configured("local-mimi"), "no embedding class 'local-mimi'", "Did you mean 'local-mini'?"),
        (configured("light", light="openai/text-embedding-3-small"), "needs a key", "OPENAI_API_KEY"),
    ],
)
def test_the_hint_says_what_is_really_wrong_and_installs_nothing_for_it(
    settings: Callable[[], Settings], reason: str, remedy: str
) -> None:
    hint = ActionEmbeddingIndex(settings, None, environ={}).hint
    assert hint is not None and "install" not in hint
    assert reason in hint["reason"] and remedy in hint["hint"]


def test_opting_out_and_in_again_is_a_matter_of_the_settings() -> None:
    chosen = {"now": LOCAL}
    index = ActionEmbeddingIndex(lambda: chosen["now"](), None)
    run(index.build(LITTLE))
    chosen["now"] = WORDS
    assert not index.offered and found(index, LITTLE, "mail").ranking == "lexical"
    assert index.hint is not None and "null" in index.hint["reason"] and "install" not in index.hint
    chosen["now"] = LOCAL
    assert found(index, LITTLE, "mail").ranking == "hybrid" and index.offered


def test_what_has_no_vector_yet_is_found_by_its_words() -> None:
    index = built()
    more = LITTLE.replace(
        "skill",
        [
            Entry("post_letter", "Sends a message by electronic mail.", schema("to")),
            Entry("water_plants", "Irrigates the greenhouse.", schema()),
        ],
    )
    answer = found(index, more, "irrigate the greenhouse")
    assert names(answer)[0] == "skill__water_plants" and answer.ranking == "hybrid"
    assert index.vectors == 1


def test_only_what_is_new_is_embedded_and_a_name_that_comes_back_finds_its_vector(tmp_path: Path) -> None:
    index = built(folder=tmp_path)
    renamed = LITTLE.replace("skill", [Entry("forecast", "Forecast for a place.", schema("place"))])
    assert run(index.build(renamed)) == 1
    assert run(index.build(LITTLE)) == 0
    assert run(ActionEmbeddingIndex(LOCAL, tmp_path).build(LITTLE)) == 0


def test_equal_actions_of_different_sessions_share_their_vectors(tmp_path: Path) -> None:
    built(folder=tmp_path)
    other = ActionEmbeddingIndex(LOCAL, tmp_path)
    assert other.vectors, "an index that was built before serves at once"
    assert found(other, LITTLE, "mail").ranking == "hybrid" and other.vectors == 3


def test_a_large_index_is_mapped_from_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    index = built(folder=tmp_path)
    plain = found(index, LITTLE, "convert money").hits
    monkeypatch.setattr("reyn_jupyter.search.coverage.MAPPED", 0)
    other = ActionEmbeddingIndex(LOCAL, tmp_path)
    assert found(other, LITTLE, "convert money").hits == plain
    matrix = other._covering._matrix
    assert matrix is not None and isinstance(matrix[2], np.memmap)
    assert sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith(NAME)) == [
        "actions.lock"
    ]


# What moves


def test_records_follow_the_snapshot_slice_by_slice() -> None:
    index = ActionEmbeddingIndex(WORDS, None)
    before = published()
    assert found(index, before, "meetings").hits
    kept = dict(index._covering._slices)
    after = before.replace("rag_corpus", [Entry("mails", "Old mails.", schema("query"))])
    assert found(index, after, "mails").hits[0][0].name.entry == "mails"
    moved = {name for name, held in index._covering._slices.items() if held is not kept.get(name)}
    assert moved == {"rag_corpus"}


def test_a_category_that_becomes_visible_is_found(tmp_path: Path) -> None:
    seen = {"now": False}
    category = Category(
        "skill", "Runs.", (), skill_category().resources, hidden=lambda: None if seen["now"] else "no"
    )
    entries = {"skill": [Entry("weather", "Forecast for a place.", schema())]}
    index = ActionEmbeddingIndex(WORDS, None)
    assert found(index, CatalogSnapshot.build([category], entries), "weather").hits == ()
    seen["now"] = True
    assert names(found(index, CatalogSnapshot.build([category], entries), "weather")) == ["skill__weather"]
