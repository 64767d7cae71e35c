"""Several indexes in one store: each drops what nobody needs any more, and never what a neighbour stands on."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.search.database import NAME
from reyn_jupyter.search.vector_store import VectorStore
from tests.search.test_vector_store import batch, digest
from tests.support.processes import started


@pytest.fixture(autouse=True)
def no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reyn_jupyter.search.vector_store._SPARE", 0)


def held(store: VectorStore, key: str, *seeds: int) -> bool:
    return store.find_digests(key, map(digest, seeds)) == {digest(seed) for seed in seeds}


def test_an_index_leaves_the_vectors_of_its_neighbours_under_another_model_and_under_its_own() -> None:
    store = VectorStore(None)
    for index, key, seeds in (("papers", "large", (1, 2)), ("notes", "mini", tuple(range(10, 30)))):
        store.claim(index, key, map(digest, seeds))
        store.add(key, batch(*seeds))
        store.keep_only(index, key, set(map(digest, seeds)))
    store.claim("actions", "mini", [digest(3)])
    store.add("mini", batch(3))
    store.keep_only("actions", "mini", {digest(3)})
    assert held(store, "large", 1, 2) and held(store, "mini", 3, *range(10, 30))


def test_what_an_index_is_about_to_add_is_kept_before_its_build_is_complete() -> None:
    store = VectorStore(None)
    store.claim("papers", "large", map(digest, (1, 2)))
    store.add("large", batch(1))
    store.keep_only("actions", "mini", set())
    assert held(store, "large", 1)
    store.add("large", batch(2))
    store.keep_only("papers", "large", {digest(1), digest(2)})
    assert held(store, "large", 1, 2)


def test_what_the_last_index_let_go_of_goes() -> None:
    store = VectorStore(None)
    for index in ("papers", "notes"):
        store.claim(index, "mini", [digest(1)])
    store.add("mini", batch(1))
    store.drop_index("papers")
    store.keep_only("actions", "large", set())
    assert held(store, "mini", 1)
    store.keep_only("notes", "large", set())
    assert store.counts() == {}


def test_a_store_of_the_first_format_is_taken_over(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add("mini", batch(1, 2))
    store.close()
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.executescript("DROP TABLE uses; DROP TABLE indexes; PRAGMA user_version = 1")
    again = VectorStore(tmp_path)
    assert held(again, "mini", 1, 2)
    again.keep_only("actions", "mini", {digest(1), digest(2)})
    assert held(again, "mini", 1, 2) and (tmp_path / NAME).is_file()


STEP = st.tuples(
    st.sampled_from(["actions", "papers", "notes"]),
    st.sampled_from(["mini", "large"]),
    st.sets(st.integers(0, 9), max_size=6),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, max_size=25), st.randoms(use_true_random=False))
def test_in_any_interleaving_every_index_has_all_that_it_built(
    steps: list[tuple[str, str, set[int]]], chance: random.Random
) -> None:
    """Each build is three steps (claim, add, keep); those of different indexes come in any order between each other."""
    store = VectorStore(None)
    builds: dict[str, list[tuple[str, str, set[int]]]] = {}
    for index, key, seeds in steps:
        builds.setdefault(index, []).extend((verb, key, seeds) for verb in ("claim", "add", "keep"))
    stands_on: dict[str, tuple[str, set[int]]] = {}
    while builds:
        index = chance.choice(sorted(builds))
        verb, key, seeds = builds[index].pop(0)
        if not builds[index]:
            del builds[index]
        if verb == "claim":
            store.claim(index, key, map(digest, seeds))
        elif verb == "add":
            missing = [seed for seed in seeds if not held(store, key, seed)]
            store.add(key, batch(*missing))
        else:
            store.keep_only(index, key, set(map(digest, seeds)))
            stands_on[index] = (key, seeds)
        for built_key, built in stands_on.values():
            assert held(store, built_key, *built)
    assert store.verify().faults == ()


BUILDS = """
    import sys
    from pathlib import Path
    import reyn_jupyter.search.vector_store as module
    from tests.search.test_vector_store import batch, digest

    module._SPARE = 0
    folder, index, key, first = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    store = module.VectorStore(folder)
    for number in range(40):
        seeds = range(first + number, first + number + 5)
        live = list(map(digest, seeds))
        store.claim(index, key, live)
        known = store.find_digests(key, live)
        store.add(key, {name: row for name, row in batch(*seeds).items() if name not in known})
        store.keep_only(index, key, set(live))
        assert store.find_digests(key, live) == set(live), number
    print("whole")
"""


def test_two_processes_that_build_at_once_keep_each_others_vectors(tmp_path: Path) -> None:
    work = (("papers", "mini", "0"), ("notes", "mini", "20"), ("actions", "large", "0"))
    processes = [started(BUILDS, str(tmp_path), *each) for each in work]
    for process in processes:
        said, errors = process.communicate(timeout=300)
        assert said.strip() == "whole", errors
    assert VectorStore(tmp_path).verify().faults == ()
