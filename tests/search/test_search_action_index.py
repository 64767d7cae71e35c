"""The search of a session's catalog: what it covers, when it is offered, and what it does without a model or a disk."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog.catalog_samples import of_size, published, schema, skill_category
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from search.embedding_server import EmbeddingServer, Failure

from reyn_jupyter.catalog.action import Category, Entry
from reyn_jupyter.catalog.search import Found, search_answer
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.models.seam import ModelError
from reyn_jupyter.runtime.engine import Engine
from reyn_jupyter.search.action_index import ActionEmbeddingIndex, EmbeddingClassError
from reyn_jupyter.search.database import NAME

ENGINE = Engine()
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
LITTLE = CatalogSnapshot.build(
    [skill_category()],
    {
        "skill": [
            Entry("post_letter", "Sends a message by electronic mail.", schema("to")),
            Entry("convert_currency", "Converts an amount between currencies.", schema("amount")),
            Entry("weather", "Forecast for a place.", schema("place")),
        ]
    },
)


def configured(name: str | None, **classes: str) -> Callable[[], Settings]:
    made = Settings.model_validate(
        {
            "action_retrieval": {"embedding_class": name},
            "embedding": {"classes": {"local-mini": "sentence-transformers/all-MiniLM-L6-v2", **classes}},
        }
    )
    return lambda: made


WORDS, LOCAL = configured(None), configured("local-mini")


def run(work: Any) -> Any:
    return ENGINE.run(work)


def found(
    index: ActionEmbeddingIndex, snapshot: CatalogSnapshot, query: str, *options: Any, **named: Any
) -> Found:
    made: Found = run(index.find(snapshot, query, *options, **named))
    return made


def names(answer: Found) -> list[str]:
    return [action.name.text for action, _ in answer.hits]


def built(settings: Callable[[], Settings] = LOCAL, folder: Path | None = None) -> ActionEmbeddingIndex:
    index = ActionEmbeddingIndex(settings, folder)
    run(index.build(LITTLE))
    return index


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


def test_it_is_offered_as_soon_as_an_action_has_a_vector() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)
    assert not index.offered and index.hint is not None and "local-mini" in index.hint["reason"]
    run(index.build(LITTLE))
    assert index.offered and index.vectors == 3 and index.hint is None


def test_meaning_finds_what_no_word_does() -> None:
    index = built()
    answer = found(index, LITTLE, "write an e-mail to my colleague")
    assert answer.ranking == "hybrid" and names(answer)[0] == "skill__post_letter"


def test_opting_out_and_in_again_is_a_matter_of_the_settings() -> None:
    chosen = {"now": LOCAL}
    index = ActionEmbeddingIndex(lambda: chosen["now"](), None)
    run(index.build(LITTLE))
    chosen["now"] = WORDS
    assert not index.offered and found(index, LITTLE, "mail").ranking == "lexical"
    assert index.hint is not None and "null" in index.hint["reason"]
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
    assert other.offered, "an index that was built before is offered at once"
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


# The background


def test_a_first_turn_waits_a_moment_for_a_small_catalog() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)

    async def turn() -> bool:
        await index.ready(LITTLE, 20.0)
        return index.offered

    assert run(turn())


def test_it_does_not_wait_for_a_large_one() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)

    async def turn() -> tuple[int, str]:
        await index.ready(of_size(300), 60.0)
        early = index.vectors
        assert index.offered
        answer = await index.find(of_size(300), "report")
        work = index._work
        assert work is not None and work.going_on
        work.task.cancel()
        await asyncio.wait([work.task])
        return early, answer.ranking

    early, _ = run(turn())
    assert early < 300


def test_a_build_ends_with_the_session_that_began_it() -> None:
    async def turn() -> bool:
        index = ActionEmbeddingIndex(LOCAL, None)
        index.begin(of_size(2_000))
        work = index._work
        assert work is not None
        await work.seen.wait()
        del index
        gc.collect()
        await asyncio.wait([work.task], timeout=20)
        return work.task.done()

    assert run(turn())


def test_a_build_in_the_background_goes_on_to_the_snapshot_that_came_meanwhile() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)
    later = LITTLE.replace("skill", [Entry("water_plants", "Irrigates the greenhouse.", schema())])

    async def turn() -> int:
        index.begin(LITTLE)
        index.begin(later)
        work = index._work
        assert work is not None
        await work.task
        return index.vectors

    assert run(turn()) == 1 and found(index, later, "irrigation").ranking == "hybrid"


# A provider


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def hosted(
    running: EmbeddingServer, tmp_path: Path
) -> tuple[EmbeddingServer, Callable[[], ActionEmbeddingIndex]]:
    running.requests.clear()
    running._script.clear()
    environ = {"OPENAI_BASE_URL": running.url, "OPENAI_API_KEY": "k" * 20}
    settings = configured("light", light="openai/text-embedding-3-small")
    return running, lambda: ActionEmbeddingIndex(settings, tmp_path, wait=ENGINE.wait, environ=environ)


def test_a_paid_class_is_built_only_on_demand(
    hosted: tuple[EmbeddingServer, Callable[[], ActionEmbeddingIndex]],
) -> None:
    server, make = hosted
    index = make()

    async def turn() -> None:
        await index.ready(LITTLE, 0.5)
        index.begin(LITTLE)
        await asyncio.sleep(0.1)

    run(turn())
    assert found(index, LITTLE, "mail").ranking == "lexical" and not server.requests
    assert not index.offered and index.hint is not None and "embeddings build" in index.hint["reason"]
    assert run(index.build(LITTLE)) == 3
    assert index.offered and found(index, LITTLE, "electronic mail").ranking == "hybrid"
    spent = index.state().spent
    assert spent is not None and spent.tokens > 0 and make().offered


def test_a_query_that_the_provider_refuses_is_ranked_by_words_and_says_so(
    hosted: tuple[EmbeddingServer, Callable[[], ActionEmbeddingIndex]],
) -> None:
    server, make = hosted
    index = make()
    run(index.build(LITTLE))
    server.script(Failure(401))
    answer = found(index, LITTLE, "electronic mail")
    assert answer.ranking == "lexical" and names(answer)[0] == "skill__post_letter"
    assert "refused the key" in answer.note and any("refused" in note for note in index.state().notes)
    assert found(index, LITTLE, "electronic mail").ranking == "hybrid" and index.state().notes == ()


def test_what_a_provider_gave_before_it_failed_is_kept(
    hosted: tuple[EmbeddingServer, Callable[[], ActionEmbeddingIndex]],
) -> None:
    server, make = hosted
    many = of_size(150)
    server.script(lambda body: _answer(body), lambda body: _answer(body), Failure(401))
    with pytest.raises(ModelError, match="refused the key"):
        run(make().build(many))
    again = make()
    assert again.offered
    kept = sum(again._store.counts().values())
    assert 0 < kept < len(many) and run(again.build(many)) == len(many) - kept
    assert again.vectors == len(many)


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    from search.embedding_server import answer

    return answer(body)


def test_a_class_swap_builds_anew_and_drops_the_old_vectors(
    hosted: tuple[EmbeddingServer, Callable[[], ActionEmbeddingIndex]], tmp_path: Path
) -> None:
    _, make = hosted
    local = built(folder=tmp_path)
    assert len(local._store.counts()) == 1
    index = make()
    assert not index.offered and found(index, LITTLE, "mail").ranking == "lexical"
    assert local.offered, "until the new index is complete the old one stays"
    run(index.build(LITTLE))
    assert [key.startswith("litellm:") for key in index._store.counts()] == [True]


# What goes wrong


@pytest.mark.parametrize("name", [None, "lokal-mini"])
def test_there_is_nothing_to_build_where_no_class_is_in_force(name: str | None) -> None:
    with pytest.raises(EmbeddingClassError) as caught:
        run(ActionEmbeddingIndex(configured(name), None).build(LITTLE))
    assert "local-mini" in caught.value.hint


def test_a_disk_that_cannot_be_written_leaves_search_in_memory_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    index = built(folder=tmp_path / "state")
    assert index.offered and found(index, LITTLE, "mail").ranking == "hybrid"
    state = index.state()
    assert state.place == "memory" and any("kept in memory" in note for note in state.notes)


def test_a_damaged_index_is_built_afresh_and_says_so(tmp_path: Path) -> None:
    built(folder=tmp_path)._store.close()
    (tmp_path / NAME).write_bytes(os.urandom(50_000))
    index = ActionEmbeddingIndex(LOCAL, tmp_path)
    assert not index.offered and found(index, LITTLE, "mail").ranking == "lexical"
    run(index.build(LITTLE))
    assert index.offered and found(index, LITTLE, "mail").ranking == "hybrid"
    assert any("built afresh" in note for note in index.state().notes)


def test_clearing_hides_search_again(tmp_path: Path) -> None:
    index = built(folder=tmp_path)
    assert run(index.clear()) == 3
    assert not index.offered and found(index, LITTLE, "mail").ranking == "lexical"


# The answer


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
    category = Category("skill", "Runs.", (), skill_category().resources, visible=lambda: seen["now"])
    entries = {"skill": [Entry("weather", "Forecast for a place.", schema())]}
    index = ActionEmbeddingIndex(WORDS, None)
    assert found(index, CatalogSnapshot.build([category], entries), "weather").hits == ()
    seen["now"] = True
    assert names(found(index, CatalogSnapshot.build([category], entries), "weather")) == ["skill__weather"]
