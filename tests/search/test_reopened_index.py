"""An index that is opened again answers exactly as the one that was built, and is there before it is asked for."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.search.coverage import CoverageCache
from reyn_jupyter.search.embedders.local import LocalEmbedder
from reyn_jupyter.search.index_builder import build, store_key
from reyn_jupyter.search.ranking.index import SearchAnswer
from reyn_jupyter.search.vector_store import VectorStore
from tests.catalog.samples import of_size, schema, skill_category
from tests.search.action_indexes import LITTLE, LOCAL, built, found, names, run
from tests.support.processes import started

WORDS = ["read", "write", "file", "sales", "region", "translate", "letter", "weather", "forecast", "amount"]


class Letters:
    """Vectors of how often each letter stands in a text."""

    key, dimension = "letters", 26

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.array(
            [[1 + text.lower().count(chr(97 + n)) for n in range(26)] for text in texts], np.float32
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


EMBEDDER = LocalEmbedder("letters", 26, Letters, None)
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("_".join)
CATALOGS = st.dictionaries(NAMES, SENTENCES, max_size=9)


def snapshot(entries: dict[str, str]) -> CatalogSnapshot:
    made = [Entry(name, text, schema("path")) for name, text in entries.items()]
    return CatalogSnapshot.build([skill_category()], {"skill": made})


def answers(store: VectorStore, of: CatalogSnapshot, queries: Sequence[str]) -> list[SearchAnswer]:
    covering = CoverageCache(lambda: store, lambda error: pytest.fail(str(error)))
    index = covering.index(covering.bring(of, store_key(EMBEDDER)), EMBEDDER)
    return [index.answer(query) for query in queries]


@pytest.mark.parametrize(
    ("mapped", "sparse"), [(0, 8), (10**9, 8), (0, 0)], ids=["file", "memory", "looked up"]
)
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(CATALOGS, CATALOGS, st.lists(SENTENCES, min_size=1, max_size=4))
def test_an_index_opened_again_answers_as_the_one_that_was_built(
    monkeypatch: pytest.MonkeyPatch,
    mapped: int,
    sparse: int,
    some: dict[str, str],
    others: dict[str, str],
    queries: list[str],
) -> None:
    monkeypatch.setattr("reyn_jupyter.search.coverage.MAPPED", mapped)
    monkeypatch.setattr("reyn_jupyter.search.vector_store._SPARSE", sparse)
    with tempfile.TemporaryDirectory() as folder:
        store = VectorStore(Path(folder))
        for entries in (some, others):  # what is left of the first stays in the file
            records = CoverageCache(lambda: store, lambda error: None).bring(snapshot(entries), None).records
            run(build(store, EMBEDDER, {record.digest: record for record in records}))
        memory = VectorStore(None)
        run(build(memory, EMBEDDER, {record.digest: record for record in records}))
        fresh = answers(memory, snapshot(others), queries)
        store.close()
        assert answers(VectorStore(Path(folder)), snapshot(others), queries) == fresh


def test_reading_from_end_to_end_finds_what_looking_up_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = VectorStore(tmp_path)
    digests = [f"{number:064x}" for number in range(5_000)]
    rows = np.random.default_rng(0).standard_normal((5_000, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for key in ("one", "two"):
        for first in range(0, 5_000, 700):
            store.add(key, dict(zip(digests[first : first + 700], rows[first : first + 700], strict=False)))
    store.add(
        "one", dict(zip(digests[:9], rows[100:109], strict=False))
    )  # replaced: they stand at the end now
    wanted = [*digests[::2], f"{9_999:064x}"]
    found = []
    for sparse in (10**9, 0):
        monkeypatch.setattr("reyn_jupyter.search.vector_store._SPARSE", sparse)
        pieces = list(store.read("one", wanted))
        found.append(
            {name: tuple(row) for part, held in pieces for name, row in zip(part, held.tolist(), strict=True)}
        )
        assert store.find_digests("one", wanted) == set(digests[::2]) == found[-1].keys()
        assert store.find_digests("three", wanted) == store.find_digests("one", ()) == set()
    assert found[0] == found[1] and found[0][digests[0]] == tuple(rows[100].tolist())


def test_the_index_of_a_session_is_made_in_the_background_and_not_by_its_first_search(tmp_path: Path) -> None:
    built(folder=tmp_path)._store.close()
    index = ActionEmbeddingIndex(LOCAL, tmp_path)

    async def turn() -> None:
        await index.ready(LITTLE, 60.0)
        assert index._work is not None
        await index._work.task

    run(turn())
    covered = index._covering.now
    assert covered is not None and covered.index is not None and covered.indexed == 3
    made = covered.index
    assert found(index, LITTLE, "convert money").ranking == "hybrid" and covered.index is made


def test_what_changes_while_the_index_is_prepared_is_built_too(tmp_path: Path) -> None:
    built(folder=tmp_path)._store.close()
    index = ActionEmbeddingIndex(LOCAL, tmp_path)
    later = LITTLE.replace("skill", [Entry("water_plants", "Irrigates the greenhouse.", schema())])
    held = threading.Event()
    prepare = index.prepare

    def slow() -> None:
        held.wait(60)
        prepare()

    index.prepare = slow  # type: ignore[method-assign]

    async def turn() -> int:
        await index.ready(LITTLE, 60.0)
        index.begin(later)
        held.set()
        assert index._work is not None
        await index._work.task
        return index.vectors

    assert run(turn()) == 1 and names(found(index, later, "irrigation")) == ["skill__water_plants"]


@pytest.mark.parametrize("value", [1e30, 0.0, float("nan"), float("inf")])
def test_a_vector_that_broke_on_the_disk_misleads_nobody_and_is_made_again(
    tmp_path: Path, value: float
) -> None:
    import sqlite3

    index = built(folder=tmp_path)
    expected = found(index, LITTLE, "convert money")
    index._store.close()
    db = sqlite3.connect(tmp_path / "actions.sqlite")
    broken = np.full(384, value, np.float32).tobytes()
    db.execute("UPDATE vectors SET vector = ? WHERE rowid = 1", (broken,))
    db.commit()
    db.close()
    again = ActionEmbeddingIndex(LOCAL, tmp_path)
    assert names(found(again, LITTLE, "convert money"))[0] == "skill__convert_currency" and again.vectors == 2
    assert run(again.build(LITTLE)) == 1 and again._store.verify().faults == ()
    assert found(again, LITTLE, "convert money") == expected


SEARCHES = """
    import sys
    from pathlib import Path
    from tests.catalog.samples import of_size
    from tests.search.action_indexes import LOCAL, run
    from reyn_jupyter.search.action_index import ActionEmbeddingIndex

    index = ActionEmbeddingIndex(LOCAL, Path(sys.argv[1]))
    print(run(index.build(of_size(60))), flush=True)
"""


def test_two_kernels_build_while_a_third_searches(tmp_path: Path) -> None:
    catalog = of_size(60)
    builders = [started(SEARCHES, str(tmp_path)) for _ in range(2)]
    third, seen = ActionEmbeddingIndex(LOCAL, tmp_path), []
    while any(builder.poll() is None for builder in builders):
        answer = found(third, catalog, "report about region")
        run(third.look(catalog))
        seen.append(third.vectors)
        assert answer.hits and third.state().place != "memory"
    ends = [builder.communicate()[0].strip() for builder in builders]
    assert sorted(ends) == ["0", str(len(catalog))]
    third._covering.grew()
    assert found(third, catalog, "report about region").ranking == "hybrid" and third.vectors == len(catalog)
