"""Texts, vectors and files that nobody vouches for: search goes on, bounded, and says what it left out."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from reyn_jupyter.search import build_lock
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.search.action_records import Record, RecordError
from reyn_jupyter.search.coverage import CoverageCache
from reyn_jupyter.search.database import NAME
from reyn_jupyter.search.embedders.local import LocalEmbedder
from reyn_jupyter.search.embedding_texts import texts_of
from reyn_jupyter.search.index_builder import LOCK, build
from reyn_jupyter.search.ranking.index import Index
from reyn_jupyter.search.ranking.vocabulary import LONGEST_EMBEDDED
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.files.locks import try_lock
from tests.catalog.samples import of_size
from tests.search.action_indexes import ENGINE, LITTLE, LOCAL, built, configured, found, run
from tests.search.embedding_server import EmbeddingServer
from tests.support.processes import child


class Letters:
    """Vectors of how often each letter stands in a text; `spoiled` texts get what is no number."""

    key, dimension = "letters", 26

    def __init__(self, spoiled: str = "") -> None:
        self.spoiled, self.asked = spoiled, 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += len(texts)
        rows = np.array(
            [[1 + text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], np.float32
        )
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for row, text in zip(rows, texts, strict=True):
            if self.spoiled and self.spoiled in text:
                row[5] = np.nan
        return rows


RECORDS = tuple(Record(name, name, f"Does {name} things.") for name in ("alpha", "bravo", "charlie", "delta"))


# Texts


@pytest.mark.parametrize(
    "record",
    [
        Record("1", "x" * 5_000_000, "a name of megabytes"),
        Record("1", "word " * 1_000_000, "a name of a million words"),
        Record("1", "read", "again " * 2_000_000),
        Record("1", "read", "", {"properties": {f"p{n}": {} for n in range(200_000)}}),
        Record("1", "read", "", {"properties": {"p" * 5_000_000: {"description": "x" * 5_000_000}}}),
        Record("1", "a\0b\ud800", "\0\udfff" * 1_000_000),
    ],
    ids=["long name", "words in a name", "long text", "many parameters", "long parameter", "no encoding"],
)
def test_a_huge_record_costs_what_a_long_one_does(record: Record) -> None:
    assert all(0 < len(text) <= LONGEST_EMBEDDED for text in texts_of(record))
    index = Index([record, Record("2", "other")])
    assert [hit for hit, _ in index.search("other")] == ["2"]


def test_parameters_nested_without_end_are_refused_by_name() -> None:
    nested: dict[str, object] = {}
    for _ in range(50_000):
        nested = {"items": nested}
    with pytest.raises(RecordError, match="'deep': its parameters are no JSON"):
        _ = Record("deep", "deep", "", nested).digest


def test_a_long_request_is_remembered_by_what_is_read_of_it() -> None:
    embedder = Letters()
    index = Index(RECORDS, embedder.embed([record.name for record in RECORDS]), embedder)
    before = embedder.asked
    for end in ("one", "two", "three"):
        assert index.answer("alpha " * 10_000 + end).hits
    assert embedder.asked == before + 1


def test_words_of_texts_that_are_gone_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reyn_jupyter.search.ranking.lexical.SPARE", 200)
    index = Index(RECORDS)
    for step in range(100):
        changed = Record("live", "live", " ".join(f"state{step}x{n}" for n in range(20)))
        index = index.updated([*RECORDS, changed])
        assert [hit for hit, _ in index.search(f"state{step}x7")] == ["live"]
        assert len(index._lexical.vocabulary) < 400
    assert index.search("bravo things") == Index([*RECORDS, changed]).search("bravo things")


def test_a_record_that_moves_to_another_category_is_called_by_its_new_one() -> None:
    index = Index([Record("1", "run", category="tools"), Record("2", "exec")])
    moved = [Record("1", "run", category="exec"), Record("2", "exec")]
    updated = index.updated(moved)
    for asked in ("exec__run", "run exec", "tools__run"):
        assert updated.search(asked) == Index(moved).search(asked), asked


# Vectors


def test_a_vector_that_holds_no_number_counts_as_none() -> None:
    embedder = Letters()
    vectors = embedder.embed([record.name for record in RECORDS])
    vectors[2, 7] = np.nan
    vectors[3, 0] = np.inf
    index = Index(RECORDS, vectors, embedder)
    assert index.vectors_held == 2
    found = index.search("bravo")
    assert found[0][0] == "bravo" and len(found) == 4 and all(0 <= score <= 1 for _, score in found)


def test_what_a_model_cannot_embed_is_left_without_a_vector() -> None:
    store, records = VectorStore(None), {record.digest: record for record in RECORDS}
    local = LocalEmbedder("letters", 26, lambda: Letters("charlie"), None)
    run(build(store, local, records))
    assert store.counts()["letters#" + next(iter(store.counts())).partition("#")[2]] == 3
    assert store.verify().faults == ()


def test_a_request_that_a_model_cannot_embed_is_an_error_and_not_an_empty_answer() -> None:
    embedder = Letters("qq")
    index = Index(RECORDS, embedder.embed([record.name for record in RECORDS]), embedder)
    with pytest.raises(ValueError, match="no finite numbers"):
        index.search("qq alpha")
    assert index.search("alpha")[0][0] == "alpha"


def test_a_provider_whose_vectors_grew_is_told_and_search_goes_by_words(tmp_path: Path) -> None:
    with EmbeddingServer() as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k" * 20}
        settings = configured("mine", mine="openai/text-embedding-3-small")
        run(ActionEmbeddingIndex(settings, tmp_path, wait=ENGINE.wait, environ=environ).build(LITTLE))
        other = ActionEmbeddingIndex(settings, tmp_path, wait=ENGINE.wait, environ=environ)
        server.script(
            lambda body: {
                "object": "list",
                "model": "m",
                "data": [
                    {"object": "embedding", "index": n, "embedding": [1.0, 2.0, 3.0]}
                    for n in range(len(body["input"]))
                ],
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }
        )
        answer = found(other, LITTLE, "currency")
        assert answer.ranking == "lexical" and answer.hits[0][0].name.entry == "convert_currency"
        assert "3 numbers" in answer.note and "embeddings clear" in answer.note


# Files and other processes


FULL = """
    import resource, sys
    from pathlib import Path
    import reyn_jupyter.search.coverage as coverage
    from tests.search.action_indexes import LITTLE, LOCAL, found, run
    from reyn_jupyter.search.action_index import ActionEmbeddingIndex

    coverage.MAPPED = 0
    index = ActionEmbeddingIndex(LOCAL, Path(sys.argv[1]))
    run(index.look(LITTLE))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    print(found(index, LITTLE, "convert money").ranking)
"""


def test_a_disk_without_room_for_the_mapped_vectors_leaves_them_in_memory(tmp_path: Path) -> None:
    built(folder=tmp_path)
    ended = child(FULL, str(tmp_path))
    assert ended.stdout.strip() == "hybrid", ended.stderr


def test_a_row_cut_short_is_embedded_again(tmp_path: Path) -> None:
    index = built(folder=tmp_path)
    index._store.close()
    db = sqlite3.connect(tmp_path / NAME)
    db.execute("UPDATE vectors SET vector = substr(vector, 1, 100) WHERE rowid = 2")
    db.commit()
    db.close()
    again = ActionEmbeddingIndex(LOCAL, tmp_path)
    assert found(again, LITTLE, "convert money").ranking == "hybrid" and again.vectors == 2
    assert run(again.build(LITTLE)) == 1 and again.vectors == 3
    assert again._store.verify().faults == ()


def test_a_file_that_breaks_while_it_is_in_use_is_not_taken_for_an_index(tmp_path: Path) -> None:
    built(folder=tmp_path)._store.close()
    index = ActionEmbeddingIndex(LOCAL, tmp_path)
    run(index.look(LITTLE))
    assert index.vectors == 3
    index._store.close()
    (tmp_path / NAME).write_bytes(os.urandom(50_000))
    answer = found(index, LITTLE, "currencies")
    assert answer.ranking == "lexical" and answer.hits[0][0].name.entry == "convert_currency"
    assert index.vectors == 0
    run(index.build(LITTLE))
    assert found(index, LITTLE, "currencies").ranking == "hybrid" and index.vectors == 3


def test_vectors_that_are_stored_during_a_look_are_seen_by_the_next_one() -> None:
    snapshot = of_size(3)

    class Growing(VectorStore):
        def find_digests(self, key: str, digests: object) -> set[str]:
            wanted = list(digests)  # type: ignore[call-overload]
            before = super().find_digests(key, wanted)
            if not before:  # the last batch of a build arrives now
                self.add(key, dict.fromkeys(wanted, np.array([1.0, 0.0], np.float32)))
                covering.grew()
            return before

    store = Growing(None)
    covering = CoverageCache(lambda: store, lambda error: None)
    covering.bring(snapshot, "key")
    assert covering.bring(snapshot, "key").vectors == len(snapshot)


def test_a_look_at_the_lock_does_not_keep_a_build_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = {record.digest: record for record in RECORDS}
    store = VectorStore(tmp_path)
    local = LocalEmbedder("letters", 26, Letters, None)
    descriptor = os.open(tmp_path / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # as `holder` does in another process
    tries: list[bool] = []

    def tried(own: int, **options: bool) -> bool:
        tries.append(try_lock(own, **options))
        if not tries[-1]:
            os.close(descriptor)  # the other one has looked
        return tries[-1]

    monkeypatch.setattr(build_lock, "try_lock", tried)
    assert run(build(store, local, records, wait=False)) == 4 and tries == [False, True]
