"""A person's search, and the index of actions in a session's hands."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.search.active_class import EmbeddingClassError
from reyn_jupyter.search.index_state import BuildProgress

OFF = {"action_retrieval": {"embedding_class": None}}
INDEX = Path(".reyn") / "state" / "actions.sqlite"


@pytest.fixture(scope="module", autouse=True)
def warmed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first session of a process embeds the built-in actions; how long that takes is not what is tested."""
    reyn.Session(tmp_path_factory.mktemp("first"), store="memory").build_embeddings()


def first(found: Any) -> str:
    return str(found.payload["items"][0]["qualified_name"])


def test_meaning_ranks_from_the_first_search_on_and_stays_on_disk(workspace: Path) -> None:
    found = reyn.Session(workspace).search_actions("amend part of a document")
    assert found.payload["ranking"] == "hybrid" and first(found) in ("file__edit", "file__write")
    assert (workspace / INDEX).is_file() and (workspace / ".reyn" / ".gitignore").is_file()
    assert reyn.Session(workspace).embeddings.data["vectors"] > 10


def test_without_a_class_words_rank_and_it_says_so(workspace: Path) -> None:
    found = reyn.Session(workspace, config=OFF).search_actions("read a file")
    assert found.payload["ranking"] == "lexical" and len(found) > 0
    assert not (workspace / INDEX).exists()


def test_a_session_without_a_store_leaves_nothing_on_disk(workspace: Path) -> None:
    for store in ("memory", None):
        session = reyn.Session(workspace, store=store)
        assert session.search_actions("amend part of a document").payload["ranking"] == "hybrid"
        assert session.embeddings.data["place"] == "memory"
    assert not (workspace / ".reyn").exists()


def test_what_a_person_finds_is_whole_and_knows_what_it_would_take(workspace: Path) -> None:
    found = reyn.Session(workspace).search_actions("look for words in the text of files", limit=3)
    assert [row["qualified_name"] for row in found.rows] == [
        item["qualified_name"] for item in found.payload["items"]
    ]
    assert len(found) == 3 and found.rows[0]["score"] is not None and found.rows[0]["permission"]


def test_a_function_that_was_registered_just_now_is_found(workspace: Path) -> None:
    session = reyn.Session(workspace)
    session.search_actions("read")

    @session.action
    def water_plants(litres: int) -> str:
        """Irrigates the greenhouse."""
        return f"{litres} l"

    assert first(session.search_actions("irrigate the greenhouse")) == "function__water_plants"
    assert first(session.search_actions("give the tomatoes something to drink")) == "function__water_plants"


def test_building_reports_its_progress_and_says_what_it_did(workspace: Path) -> None:
    session, told = reyn.Session(workspace), list[Any]()
    card = session.build_embeddings(on_event=told.append)
    progress = [event for event in told if isinstance(event, BuildProgress)]
    assert progress[-1].done == progress[-1].total == card.data["added"] == card.data["vectors"]
    assert session.build_embeddings().data["added"] == 0


def test_status_says_who_serves_and_clear_starts_afresh(workspace: Path) -> None:
    session = reyn.Session(workspace)
    assert session.embeddings.data["vectors"] == 0
    session.build_embeddings()
    facts = dict(session.embeddings.facts)
    assert facts["served by"].startswith(("packaged weights", "sentence-transformers"))
    assert str(INDEX) in facts["kept in"]
    assert session.clear_embeddings().data["dropped"] > 10
    assert session.embeddings.data["vectors"] == 0


def test_an_index_that_another_program_put_there_is_left_alone_and_search_goes_on(workspace: Path) -> None:
    (workspace / INDEX).parent.mkdir(parents=True)
    other = sqlite3.connect(workspace / INDEX)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    before = (workspace / INDEX).read_bytes()
    session = reyn.Session(workspace)
    assert session.search_actions("amend part of a document").payload["ranking"] == "hybrid"
    sections = dict(session.embeddings.sections)
    assert "another program" in sections["Notes"][0] and "in memory" in sections["Notes"][0]
    assert (workspace / INDEX).read_bytes() == before


def test_a_class_that_is_misspelt_is_named_wherever_one_looks(workspace: Path) -> None:
    session = reyn.Session(workspace, config={"action_retrieval": {"embedding_class": "local_mini"}})
    assert session.search_actions("read a file").payload["ranking"] == "lexical"
    with pytest.raises(EmbeddingClassError, match="local_mini") as caught:
        session.build_embeddings()
    assert "'local-mini'" in caught.value.hint
    for card in (session.embeddings, session.status):
        assert "local_mini" in str(card)


def test_sessions_of_one_process_share_what_was_embedded(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        session = reyn.Session(tmp_path / name)
        assert session.search_actions("amend part of a document").payload["ranking"] == "hybrid"
