"""Bringing the index up to date: interrupted, killed, twice at once, on a full and on a read-only disk."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reyn_jupyter import search
from reyn_jupyter.runtime.engine import Engine, publisher
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.search import build_listener, index_builder
from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.build_lock import build_lock
from reyn_jupyter.search.database import IndexStoreError
from reyn_jupyter.search.embedders.local import LocalEmbedder
from reyn_jupyter.search.index_builder import FIRST_BATCH, build, holder, store_key
from reyn_jupyter.search.index_state import BuildHolder, BuildProgress, BusyError
from reyn_jupyter.search.vector_store import VectorStore
from reyn_jupyter.support.files.plain_files import PlainFolder
from tests.support.waiting import PATIENCE, awaited


class Paced:
    """Vectors from a hash of the text: so many batches, and those after them once they may go on."""

    key, dimension = "paced", 16

    def __init__(self, most: int | None = None) -> None:
        self.most, self.begun, self.idle = most, 0, True
        self.go_on = threading.Event()
        self.texts: list[str] = []

    def embed(self, texts: Any) -> np.ndarray:
        self.idle = False
        self.begun += 1
        if self.most is not None and self.begun > self.most:
            assert self.go_on.wait(PATIENCE)
        self.idle = True
        self.texts += texts
        rows = np.stack(
            [np.random.default_rng(abs(hash(text)) % 2**32).standard_normal(16) for text in texts]
        )
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def embedder(paced: Paced) -> LocalEmbedder:
    return LocalEmbedder(paced.key, paced.dimension, lambda: paced, None)


def records(count: int) -> dict[str, Record]:
    made = [Record(str(number), f"action_{number}", f"Does number {number}.") for number in range(count)]
    return {record.digest: record for record in made}


async def test_only_what_is_missing_is_embedded_in_batches_with_progress(tmp_path: Path) -> None:
    store, paced, told = VectorStore(tmp_path), Paced(), list[BuildProgress]()
    assert await build(store, embedder(paced), records(20)) == 20
    first = len(paced.texts)
    assert await build(store, embedder(paced), records(50), tell=told.append) == 30
    assert len(paced.texts) - first == 2 * 30
    assert [progress.done for progress in told] == [0, FIRST_BATCH, FIRST_BATCH + LocalEmbedder.batch, 30]
    assert {progress.total for progress in told} == {30}
    assert told[0].rate is None and told[0].seconds_left is None
    assert told[-1].rate and "30 of 30 actions" in str(told[-1])
    assert store.verify().faults == () and store.verify().vectors == 50


class SlowToLoad(Paced):
    """Is loaded when its first text comes, which takes half a second."""

    def embed(self, texts: Any) -> np.ndarray:
        if not self.texts:
            time.sleep(0.5)
        return super().embed(texts)


async def test_a_model_that_is_being_loaded_is_told_every_other_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_builder, "BEAT", 0.05)
    told: list[BuildProgress] = []
    light = SlowToLoad()
    slow = LocalEmbedder(light.key, light.dimension, lambda: time.sleep(0.5) or light, None)  # type: ignore[arg-type]
    await build(VectorStore(tmp_path), slow, records(20), tell=told.append)
    before = [progress for progress in told if not progress.done]
    assert len(before) >= 4 and str(before[0]) == "0 of 20 actions: loading the embedding model"
    assert before[-1].seconds > before[0].seconds and before[-1].rate is None
    assert told[-1].done == 20 and told[-1].doing == ""
    await asyncio.sleep(0.2)
    assert told[-1].done == 20, "it says nothing more once the build is over"


def test_records_are_embedded_with_progress_and_it_is_shown_where_nobody_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_builder, "BEAT", 0.05)
    told: list[BuildProgress] = []
    given = [{"id": str(number), "name": f"action_{number}"} for number in range(40)]
    light = SlowToLoad()
    slow = LocalEmbedder(light.key, light.dimension, lambda: light, None)
    search.build(given, slow, on_progress=told.append)
    assert len([progress for progress in told if not progress.done]) >= 4
    assert list(dict.fromkeys(progress.done for progress in told)) == [0, 4, 20, 36, 40]
    assert "40 of 40 records" in str(told[-1])

    class Listener:
        done, ended = 0, 0

        def __call__(self, progress: BuildProgress) -> None:
            self.done = progress.done

        def end(self) -> None:
            self.ended += 1

    heard = Listener()
    build_listener.listen_with(lambda: heard)
    try:
        search.build(given, embedder(Paced()))
        assert (heard.done, heard.ended) == (40, 1)
    finally:
        build_listener.listen_with(None)


def test_an_interrupt_ends_a_build_over_records_at_once_however_long_a_batch_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_builder, "BEAT", 0.05)
    paced = Paced(0)

    def interrupt(progress: BuildProgress) -> None:
        if paced.begun:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.build([{"id": "1", "name": "read_file"}], embedder(paced), on_progress=interrupt)
    assert not paced.idle
    paced.go_on.set()


def test_the_store_of_an_index_is_closed_where_the_end_of_its_display_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Listener:
        def __call__(self, progress: BuildProgress) -> None: ...

        def end(self) -> None:
            raise KeyboardInterrupt

    closed: list[VectorStore] = []
    monkeypatch.setattr(VectorStore, "close", lambda self: closed.append(self))
    build_listener.listen_with(Listener)
    try:
        with pytest.raises(KeyboardInterrupt):
            search.build([{"id": "1", "name": "read_file"}], embedder(Paced()), store=tmp_path)
    finally:
        build_listener.listen_with(None)
    assert len(closed) == 1


def test_records_are_embedded_where_there_is_no_error_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    light = SlowToLoad()
    slow = LocalEmbedder(light.key, light.dimension, lambda: light, None)
    assert search.build([{"id": "1", "name": "read_file"}], slow).vectors_held == 1


IN_A_THREAD = """
import threading, time
import numpy as np
from reyn_jupyter import search
from reyn_jupyter.search.embedders.embedder import Embedder

class Ones(Embedder):
    key, dimension = "ones", 2
    def embed(self, texts):
        return np.ones((len(texts), 2), np.float32)

def work():
    time.sleep(0.5)
    print(search.build([{"id": "1", "name": "read_file"}], Ones("ones")))

threading.Thread(target=work).start()
"""


def test_a_build_in_a_thread_goes_on_after_the_last_line_of_a_script() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_THREAD], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout == "Index(1 record, by words and meaning)\n", done.stderr


async def test_an_interrupt_keeps_what_was_built_and_the_next_build_goes_on(tmp_path: Path) -> None:
    store, paced = VectorStore(tmp_path), Paced(2)
    told: list[BuildProgress] = []
    task = asyncio.create_task(build(store, embedder(paced), records(400), tell=told.append))
    await awaited(lambda: told and told[-1].done)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    paced.go_on.set()
    await awaited(lambda: paced.idle)  # the batch that was under way in its thread
    kept = store.counts()[store_key(embedder(paced))]
    assert told[-1].done <= kept < 400 and store.verify().faults == ()
    assert 0 < await build(store, embedder(paced), records(400)) <= 400 - kept
    assert store.counts() == {store_key(embedder(paced)): 400}


def test_an_interrupt_of_the_person_ends_a_build_and_keeps_what_there_was(tmp_path: Path) -> None:
    engine, paced = Engine(), Paced(2)

    async def work() -> None:
        tell = publisher()
        assert tell is not None
        await build(VectorStore(tmp_path), embedder(paced), records(1_000), tell=tell)

    seen: list[int] = []

    def hear(event: object) -> None:
        if isinstance(event, BuildProgress) and event.done and not seen:
            seen.append(event.done)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        engine.run(work(), hear)
    paced.go_on.set()
    assert seen[0] <= sum(VectorStore(tmp_path).counts().values()) < 1_000


# Other processes

BUILDS = """
    import asyncio, sys, time
    from pathlib import Path
    import numpy as np
    from reyn_jupyter.search.index_builder import build
    from reyn_jupyter.search.embedders.local import LocalEmbedder
    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.vector_store import VectorStore

    class Paced:
        key, dimension = "paced", 16
        begun = 0
        def embed(self, texts):
            Paced.begun += 1
            while Paced.begun > int(sys.argv[3]) and not (Path(sys.argv[1]) / "go-on").exists():
                time.sleep(0.01)
            rows = np.random.default_rng(0).standard_normal((len(texts), 16)).astype(np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def tell(progress):
        print(progress.done, progress.waiting_for.pid if progress.waiting_for else "", flush=True)

    made = [Record(str(n), f"action_{n}", f"Does number {n}.") for n in range(int(sys.argv[2]))]
    records = {record.digest: record for record in made}
    embedder = LocalEmbedder("paced", 16, Paced, None)
    added = asyncio.run(build(VectorStore(Path(sys.argv[1])), embedder, records, tell=tell))
    print("added", added, flush=True)
"""


def builder(folder: Path, count: int, batches: int) -> subprocess.Popen[str]:
    """Start a process that embeds so many batches, and the others once there is a file `go-on` in the folder."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BUILDS), *map(str, (folder, count, batches))],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def line_with(process: subprocess.Popen[str], wanted: Any) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if wanted(line):
            return line
    raise AssertionError("it ended before that")


def done(line: str) -> int:
    return int(line.split()[0])


async def test_a_build_that_was_killed_leaves_a_usable_index_and_the_next_goes_on(tmp_path: Path) -> None:
    process = builder(tmp_path, 400, 5)
    reached = done(line_with(process, lambda line: done(line) >= 3 * LocalEmbedder.batch))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    store = VectorStore(tmp_path)
    found = store.verify()
    assert (
        found.faults == () and found.vectors >= reached and found.vectors % LocalEmbedder.batch == FIRST_BATCH
    )
    assert holder(store) is None, "the lock went with the process"
    assert await build(store, embedder(Paced()), records(400)) == 400 - found.vectors


async def test_a_second_builder_is_told_who_builds_and_waits_or_goes_on_without(tmp_path: Path) -> None:
    process = builder(tmp_path, 200, 1)
    line_with(process, lambda line: done(line) > 0)
    store, told = VectorStore(tmp_path), list[BuildProgress]()

    def hear(progress: BuildProgress) -> None:
        told.append(progress)
        (tmp_path / "go-on").touch()

    assert holder(store) == BuildHolder(process.pid, pytest.approx(time.time(), abs=60))
    with pytest.raises(BusyError, match=f"process {process.pid}, since") as caught:
        await build(store, embedder(Paced()), records(200), wait=False)
    assert caught.value.holder.pid == process.pid
    assert await build(store, embedder(Paced()), records(200), tell=hear) == 0
    assert told[0].waiting_for is not None and str(process.pid) in str(told[0])
    process.communicate()
    assert holder(store) is None


async def test_the_time_of_a_build_begins_when_another_one_is_waited_for_no_longer(tmp_path: Path) -> None:
    store, told = VectorStore(tmp_path), list[BuildProgress]()
    async with build_lock(PlainFolder(tmp_path), index_builder.LOCK, True, lambda holder: None):
        waiting = asyncio.create_task(build(store, embedder(Paced()), records(4), tell=told.append))
        await awaited(lambda: told)
        await asyncio.sleep(0.5)
    assert await waiting == 4
    assert told[0].waiting_for is not None and told[1].seconds < 0.5


def test_two_processes_that_build_at_once_do_the_work_once(tmp_path: Path) -> None:
    processes = [builder(tmp_path, 100, 1) for _ in range(2)]
    for process in processes:  # one has begun, and the other says by its number that it waits for that
        line_with(process, lambda line: done(line) > 0 or len(line.split()) == 2)
    (tmp_path / "go-on").touch()
    ends = [process.communicate(timeout=300)[0].splitlines()[-1] for process in processes]
    assert sorted(ends) == ["added 0", "added 100"]
    found = VectorStore(tmp_path).verify()
    assert found.vectors == 100 and found.faults == ()


# Disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True
    ).returncode:
        pytest.skip("a file system of its own cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


async def test_a_disk_that_fills_up_ends_the_build_and_keeps_what_there_was(small_disk: Path) -> None:
    class Wide(Paced):
        dimension = 384

        def embed(self, texts: Any) -> np.ndarray:
            return np.full((len(texts), 384), 384**-0.5, np.float32)

    wide = Wide()
    store = VectorStore(small_disk)
    with pytest.raises(IndexStoreError, match=r"full|space|I/O") as caught:
        await build(store, LocalEmbedder("wide", 384, lambda: wide, None), records(2_000))
    assert caught.value.hint
    store.close()
    found = VectorStore(small_disk).verify()
    assert 0 < found.vectors < 2_000 and found.faults == ()


async def test_in_a_folder_that_is_read_only_what_is_there_serves(small_disk: Path) -> None:
    state = small_disk / "state"
    store = VectorStore(state)
    await build(store, embedder(Paced()), records(10))
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    held = VectorStore(state)
    assert len(held.find_digests(store_key(embedder(Paced())), records(10))) == 10
    with pytest.raises(IndexStoreError) as caught:
        await build(held, embedder(Paced()), records(20))
    assert "writable" in caught.value.hint


async def test_a_lock_that_says_nothing_does_not_keep_anybody_out(tmp_path: Path) -> None:
    (tmp_path / "actions.lock").write_text(json.dumps({"pid": 1, "since": 0}))
    store = VectorStore(tmp_path)
    assert holder(store) is None
    assert await build(store, embedder(Paced()), records(3), wait=False) == 3
