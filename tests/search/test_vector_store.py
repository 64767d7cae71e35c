"""The store of vectors: whole after a kill, shared between processes, and clear about a file that it cannot use."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.search.database import FORMAT, NAME, IndexStoreError
from reyn_jupyter.search.vector_store import VectorStore


def digest(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()


def vector(seed: int, dimension: int = 8) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return made / np.linalg.norm(made)


def batch(*seeds: int, dimension: int = 8) -> dict[str, np.ndarray]:
    return {digest(seed): vector(seed, dimension) for seed in seeds}


def contents(store: VectorStore, key: str, *seeds: int) -> dict[str, np.ndarray]:
    return {
        name: row
        for names, rows in store.read(key, map(digest, seeds))
        for name, row in zip(names, rows, strict=True)
    }


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VectorStore:
    return VectorStore(tmp_path / "state" if request.param == "disk" else None)


def test_a_vector_comes_back_as_it_went_in(store: VectorStore) -> None:
    store.add("model", batch(1, 2))
    found = contents(store, "model", 1, 2, 3)
    assert found.keys() == {digest(1), digest(2)}
    assert all(np.array_equal(found[digest(seed)], vector(seed)) for seed in (1, 2))
    assert store.find_digests("model", map(digest, (1, 3))) == {digest(1)}
    assert store.dimension("model") == 8 and store.dimension("other") is None


def test_keys_do_not_see_each_other(store: VectorStore) -> None:
    store.add("one", batch(1))
    store.add("two", batch(2, dimension=4))
    assert store.find_digests("two", [digest(1)]) == set()
    assert store.counts() == {"one": 1, "two": 1}


def test_to_look_makes_no_file(tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "state")
    assert store.counts() == {} and store.find_digests("model", [digest(1)]) == set() and store.clear() == 0
    assert store.verify().vectors == 0 and store.size == 0
    assert list(tmp_path.iterdir()) == []


def test_no_text_is_kept(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add("model", {digest("Reads the salaries."): vector(1)})
    store.close()
    assert b"salaries" not in (tmp_path / NAME).read_bytes()


def test_another_number_of_dimensions_is_refused_and_nothing_of_the_batch_is_kept(store: VectorStore) -> None:
    store.add("model", batch(1))
    with pytest.raises(IndexStoreError, match="vectors of 4 numbers, and those kept before have 8") as caught:
        store.add("model", batch(2, dimension=4))
    assert "clear" in caught.value.hint
    with pytest.raises(IndexStoreError):
        store.add("model", {**batch(3), **batch(4, dimension=4)})
    assert store.counts() == {"model": 1}


def test_the_vectors_of_other_keys_go_when_a_build_is_complete(store: VectorStore) -> None:
    store.add("old", batch(1, 2))
    store.add("new", batch(1, dimension=4))
    store.keep_only("actions", "new", {digest(1)})
    assert store.counts() == {"new": 1}


def test_vectors_of_texts_that_are_gone_stay_for_a_while_and_not_for_ever(
    store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reyn_jupyter.search.vector_store._SPARE", 4)
    store.add("model", batch(*range(6)))
    store.keep_only("actions", "model", {digest(0)})
    assert store.counts() == {"model": 6}
    store.add("model", batch(*range(6, 12)))
    store.keep_only("actions", "model", {digest(0)})
    kept = store.find_digests("model", map(digest, range(12)))
    assert len(kept) == 6 and digest(0) in kept and digest(11) in kept and digest(1) not in kept


def test_clear_gives_the_room_back(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add("model", batch(*range(2_000), dimension=384))
    assert store.size > 2_000 * 384 * 4
    assert store.clear() == 2_000
    assert store.size < 300_000 and store.counts() == {}


@given(st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=8))
def test_whatever_is_added_in_whatever_order_the_last_word_holds(batches: list[list[int]]) -> None:
    store = VectorStore(None)
    expected: dict[str, np.ndarray] = {}
    for number, seeds in enumerate(batches):
        made = {digest(seed): vector(seed + 100 * number) for seed in seeds}
        store.add("model", made)
        expected |= made
    found = contents(store, "model", *range(41))
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert store.verify().faults == ()


def test_verify_names_what_is_wrong(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add("model", batch(1, 2, 3))
    assert store.verify().faults == () and store.verify().vectors == 3
    other = sqlite3.connect(tmp_path / NAME)
    other.execute("UPDATE vectors SET vector = ? WHERE digest = ?", (b"short", bytes.fromhex(digest(1))))
    long = (3 * vector(2)).tobytes()
    other.execute("UPDATE vectors SET vector = ? WHERE digest = ?", (long, bytes.fromhex(digest(2))))
    other.commit()
    other.close()
    assert sorted(fault.partition(": ")[2] for fault in store.verify().faults) == [
        "5 bytes",
        "not of length 1",
    ]


# A file that cannot be used


@pytest.mark.parametrize("damage", ["not a database at all" * 100, "\0" * 20_000])
def test_a_damaged_file_is_set_aside_and_built_anew(tmp_path: Path, damage: str) -> None:
    (tmp_path / NAME).write_text(damage)
    store = VectorStore(tmp_path)
    store.add("model", batch(1))
    assert store.find_digests("model", [digest(1)]) == {digest(1)}
    assert "could not be read" in store.note and "built afresh" in store.note
    aside = [file for file in tmp_path.iterdir() if ".damaged-" in file.name]
    assert [file.read_text() for file in aside] == [damage]


def test_damage_that_shows_late_is_told_once_and_then_made_good(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add("model", batch(*range(600), dimension=384))
    store.close()
    content = bytearray((tmp_path / NAME).read_bytes())
    content[16_384:] = os.urandom(len(content) - 16_384)
    (tmp_path / NAME).write_bytes(bytes(content))
    for file in (f"{NAME}-wal", f"{NAME}-shm"):
        (tmp_path / file).unlink(missing_ok=True)
    store = VectorStore(tmp_path)
    with pytest.raises(IndexStoreError, match="was damaged"):
        store.find_digests("model", map(digest, range(600)))
    store.add("model", batch(1))
    assert store.counts() == {"model": 1}


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / NAME)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(IndexStoreError, match="another program"):
        VectorStore(tmp_path).add("model", batch(1))
    assert (tmp_path / NAME).read_bytes() == before
    other.close()


def test_a_newer_format_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    VectorStore(tmp_path).add("model", batch(1))
    other = sqlite3.connect(tmp_path / NAME)
    other.execute(f"PRAGMA user_version = {FORMAT.version + 1}")
    other.close()
    with pytest.raises(IndexStoreError, match=f"newer reyn-jupyter .format {FORMAT.version + 1}") as caught:
        VectorStore(tmp_path).counts()
    assert "Update reyn-jupyter" in caught.value.hint


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    with pytest.raises(IndexStoreError, match="state") as caught:
        VectorStore(tmp_path / "state").add("model", batch(1))
    assert caught.value.hint


# Processes

WRITES = """
    import sys
    from pathlib import Path
    import numpy as np
    from reyn_jupyter.search.vector_store import VectorStore
    import hashlib

    store, number = VectorStore(Path(sys.argv[1])), int(sys.argv[2])
    for step in range(10_000):
        rows = np.random.default_rng(step).standard_normal((16, 384)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        names = [hashlib.sha256(f"{number}-{step}-{row}".encode()).hexdigest() for row in range(16)]
        store.add("model", dict(zip(names, rows)))
        print(step, flush=True)
        if step == int(sys.argv[3]):
            break
"""


def writer(folder: Path, number: int, steps: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITES), str(folder), str(number), str(steps)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def test_after_a_kill_every_batch_that_was_finished_is_whole(tmp_path: Path) -> None:
    done = -1
    for number in range(3):
        process = writer(tmp_path, number, 9_999)
        assert process.stdout is not None
        for line in process.stdout:
            done = int(line)
            if done >= 7 + number:
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        process.stdout.close()
        store = VectorStore(tmp_path)
        found = store.verify()
        assert found.faults == () and found.vectors % 16 == 0
        names = [digest(f"{number}-{step}-{row}") for step in range(done + 1) for row in range(16)]
        assert store.find_digests("model", names) == set(names)
        store.close()


def test_two_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    processes = [writer(tmp_path, number, 30) for number in range(2)]
    for process in processes:
        process.communicate(timeout=600)
        assert process.returncode == 0
    store = VectorStore(tmp_path)
    assert store.counts() == {"model": 2 * 31 * 16} and store.verify().faults == ()


def test_a_new_index_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = VectorStore(tmp_path)
        store.add("model", {digest("a"): vector(1)})
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes.pop(NAME) == 0o600
    assert set(modes.values()) <= {0o600}
