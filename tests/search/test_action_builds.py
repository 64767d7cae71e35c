"""The index of a session: built in the background or on demand, by a provider too, and what may go wrong with it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.catalog.discovery.search_results import Found
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.search.active_class import EmbeddingClassError
from reyn_jupyter.search.database import NAME
from reyn_jupyter.search.embedders.embedder import Embedder
from reyn_jupyter.search.embedders.embedding_classes import EMBEDDERS
from reyn_jupyter.search.embedders.packaged import PackagedMiniLM
from tests.catalog.samples import of_size, schema
from tests.search.action_indexes import ENGINE, LITTLE, LOCAL, built, configured, found, names, run
from tests.search.embedding_server import EmbeddingServer, Failure
from tests.support.waiting import PATIENCE

# The background


def test_a_search_waits_for_all_of_a_small_catalog() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)
    run(index.ready(LITTLE, 120.0))
    answer = found(index, LITTLE, "mail")
    assert (index.vectors, answer.ranking, answer.note) == (len(LITTLE), "hybrid", "")


def test_it_waits_for_what_came_while_a_build_was_under_way() -> None:
    index = ActionEmbeddingIndex(LOCAL, None)
    later = LITTLE.replace("skill", [Entry("water_plants", "Irrigates the greenhouse.", schema())])

    async def turns() -> Found:
        await asyncio.gather(index.ready(LITTLE, 120.0), index.ready(later, 120.0))
        return await index.find(later, "irrigation")

    answer = run(turns())
    assert (names(answer), answer.ranking, index.vectors) == (["skill__water_plants"], "hybrid", 1)


def test_what_comes_as_a_build_finds_nothing_more_to_do_is_built_too(monkeypatch: pytest.MonkeyPatch) -> None:
    index = ActionEmbeddingIndex(LOCAL, None)
    later = LITTLE.replace("skill", [Entry("water_plants", "Irrigates the greenhouse.", schema())])
    looked, came = threading.Event(), threading.Event()
    todo = index.todo

    def slow(after: int) -> object:
        found = todo(after)
        if found is None and not looked.is_set():
            looked.set()
            assert came.wait(60)
        return found

    monkeypatch.setattr(index, "todo", slow)

    async def turns() -> Found:
        await index.ready(LITTLE, 120.0)
        await asyncio.to_thread(looked.wait, 60)
        index.begin(later)
        came.set()
        await index.ready(later, 120.0)
        return await index.find(later, "irrigation")

    answer = run(turns())
    assert (names(answer), answer.ranking, answer.note) == (["skill__water_plants"], "hybrid", "")


class Held(Embedder):
    """A local embedder that gives no vector before it may."""

    key, dimension = "held", 2
    may = threading.Event()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        assert self.may.wait(60)
        return np.full((len(texts), 2), 0.5**0.5, np.float32)


def test_a_search_that_would_wait_too_long_is_answered_by_words_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(EMBEDDERS, "held/", f"{__name__}:{Held.__name__}")
    index = ActionEmbeddingIndex(configured("held", held="held/back"), None)

    async def turn() -> Found:
        await index.ready(LITTLE, 0.0)
        return await index.find(LITTLE, "mail")

    answer = run(turn())
    assert index.offered and names(answer)[0] == "skill__post_letter"
    assert answer.ranking == "lexical" and "Ranked by words alone" in answer.note
    Held.may.set()
    run(index.clear())


def test_it_does_not_wait_for_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first batch is embedded, and the query, which is one text; the second batch is held."""
    index = ActionEmbeddingIndex(LOCAL, None)
    embed, go_on, batches = PackagedMiniLM.embed, threading.Event(), list[int]()

    def held(model: PackagedMiniLM, texts: Sequence[str]) -> Any:
        if len(texts) > 1:
            batches.append(len(texts))
            assert len(batches) == 1 or go_on.wait(PATIENCE)
        return embed(model, texts)

    monkeypatch.setattr(PackagedMiniLM, "embed", held)

    async def turn() -> tuple[int, Found]:
        await index.ready(of_size(300), 60.0)
        early = index.vectors
        answer = await index.find(of_size(300), "report")
        work = index._work
        assert work is not None and work.going_on
        work.task.cancel()
        go_on.set()
        await asyncio.wait([work.task])
        return early, answer

    early, answer = run(turn())
    assert early < 300 and answer.ranking == "hybrid" and "still being built" in answer.note


def test_a_build_ends_with_the_session_that_began_it() -> None:
    async def turn() -> bool:
        index = ActionEmbeddingIndex(LOCAL, None)
        index.begin(of_size(2_000))
        work = index._work
        assert work is not None
        await work.wait(1)
        del index
        gc.collect()
        await asyncio.wait([work.task], timeout=120)
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
    from tests.search.embedding_server import answer

    return answer(body)


def test_a_class_swap_builds_anew_and_drops_the_old_vectors(
    hosted: tuple[EmbeddingServer, Callable[[], ActionEmbeddingIndex]], tmp_path: Path
) -> None:
    _, make = hosted
    local = built(folder=tmp_path)
    assert len(local._store.counts()) == 1
    index = make()
    assert not index.offered and found(index, LITTLE, "mail").ranking == "lexical"
    assert local.vectors, "until the new index is complete the old one stays"
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
    assert not index.vectors and found(index, LITTLE, "mail").ranking == "lexical"
    run(index.build(LITTLE))
    assert index.vectors and found(index, LITTLE, "mail").ranking == "hybrid"
    assert any("built afresh" in note for note in index.state().notes)


def test_after_clearing_words_alone_rank(tmp_path: Path) -> None:
    index = built(folder=tmp_path)
    assert run(index.clear()) == 3
    assert not index.vectors and found(index, LITTLE, "mail").ranking == "lexical"
