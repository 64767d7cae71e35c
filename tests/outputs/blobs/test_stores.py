"""The stores: round trips, durability, privacy, killed writers, full and read-only disks, two kernels, collection."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings

from reyn_jupyter.outputs.blob import open_blob
from reyn_jupyter.outputs.blobs.file_store import STALE_SECONDS, FsBlobStore
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError, canonical_id, new_blob_id
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import (
    BlobNotFoundError,
    BlobStoreError,
    FileContent,
    Structured,
    Text,
)
from reyn_jupyter.outputs.convert import to_content
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.inspect import inspect
from tests.outputs.test_convert import json_values
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore


async def test_content_comes_back_as_it_went_in(store: LocalBlobStore) -> None:
    source = '{"a": [1.10, "é"],\r\n "b": null}'
    for content in (
        Text("a\r\nb\u2028漢"),
        Text(""),
        Structured({"b": 1, "a": [None, 2**53 + 1]}),
        to_content(source),
    ):
        blob = await store.store(content, action="file__read", run="run1")
        assert await store.load(blob) == content
        assert await store.exists(blob)
    assert (await store.load_bytes(blob)).decode() == source


@settings(suppress_health_check=list(HealthCheck), max_examples=40)
@given(json_values)
def test_json_comes_back_as_it_went_in(value: Any) -> None:
    store = MemoryBlobStore()
    assert open_blob(store, store.put(Structured({"it": value})).id).json == {"it": value}


async def test_large_structures_are_written_in_blocks(store: LocalBlobStore) -> None:
    for value in (
        [{"id": number} for number in range(2500)],
        {f"k{number}": number for number in range(2500)},
    ):
        blob = await store.store(Structured(value))
        assert (await store.load(blob)).value == value  # type: ignore[union-attr]
        assert await store.load_bytes(blob) == json.dumps(value, separators=(",", ":")).encode()


async def test_raw_bytes_come_back_exactly(store: LocalBlobStore) -> None:
    data = bytes(range(256)) * 3
    blob = await store.store_bytes(data, action="file__write", run="run1")
    assert await store.load_bytes(blob) == data
    assert store.describe(blob).kind == "bytes"
    assert "�" in await inspect(store, blob)


async def test_the_manifest_tells_what_a_blob_is(store: LocalBlobStore) -> None:
    blob = await store.store(Text("a\nb\n"), action="file__read", run="run1")
    info = store.describe(blob)
    assert (info.kind, info.entries, info.counted, info.size) == ("text", 2, "lines", 4)
    assert (info.action, info.run) == ("file__read", "run1")
    assert info.sha256 == "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"
    assert abs(info.created - time.time()) < 60
    assert store.list() == (info,)


async def test_unknown_and_impossible_ids(store: LocalBlobStore, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises(BlobNotFoundError):
        await store.load(new_blob_id())
    for smuggled in (
        "../secret",
        "../../etc/passwd",
        "/etc/passwd",
        "",
        "x" * 36,
        "..%2fsecret",
        "a\x00b",
        "０" * 32,
    ):
        with pytest.raises(InvalidBlobIdError):
            await store.exists(smuggled)
        with pytest.raises(InvalidBlobIdError):
            await inspect(store, smuggled)


async def test_ids_are_compared_in_canonical_form(store: LocalBlobStore) -> None:
    blob = await store.store(Text("x"))
    for written in (blob.upper(), blob.replace("-", ""), f"[blob:{blob}]", f" blob:{blob} "):
        assert canonical_id(written) == blob
        assert await store.exists(written)


def test_ids_sort_in_creation_order() -> None:
    ids = [new_blob_id() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert {uuid.UUID(blob).version for blob in ids} == {7}


async def test_files_are_private_and_flat(files: FsBlobStore) -> None:
    text = await files.store(Text("x\n" * 600_000))
    thing = await files.store(Structured({"a": 1}))
    names = {path.name for path in files.folder.iterdir()}
    assert names == {f"{text}.txt", f"{text}.meta.json", f"{text}.idx", f"{thing}.json", f"{thing}.meta.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.folder.iterdir()} == {0o600}
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700


async def test_links_and_special_files_are_no_blobs(files: FsBlobStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    await files.store(Text("x"))
    link, pipe = new_blob_id(), new_blob_id()
    (files.folder / f"{link}.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(files.folder / f"{pipe}.txt")
    for blob in (link, pipe):
        with pytest.raises(BlobNotFoundError):
            await inspect(files, blob)
    assert len(files.list()) == 1


async def test_a_lost_or_torn_manifest_leaves_a_readable_blob(files: FsBlobStore) -> None:
    blob = await files.store(Structured([1, 2]))
    for torn in (b"", b"{", b"[]", b'{"id":1}', b"[" * 100_000):
        (files.folder / f"{blob}.meta.json").write_bytes(torn)
        assert (files.describe(blob).kind, files.describe(blob).size) == ("json_array", 5)
    (files.folder / f"{blob}.meta.json").unlink()
    assert (await inspect(files, blob, "slice:0..1")).startswith("[1]\n")
    assert abs(files.describe(blob).created - time.time()) < 60


async def test_a_torn_index_is_built_again(files: FsBlobStore) -> None:
    blob = await files.store(Text("".join(f"line {number}\n" for number in range(200_000))))
    for torn in (b"", b"nonsense", (files.folder / f"{blob}.idx").read_bytes()[:-8]):
        (files.folder / f"{blob}.idx").write_bytes(torn)
        assert (await inspect(files, blob, "lines:150000-150000")).startswith("line 149999\n")


async def test_a_handed_over_file_is_moved(store: LocalBlobStore, tmp_path: Path) -> None:
    path = tmp_path / "made by a tool"
    path.write_text("a\nb\n" * 1000)
    delivered = await deliver(FileContent(path), store=store, action="tool__run")
    assert not path.exists()
    assert (delivered.content_kind, delivered.size) == ("text", 4000)
    assert await store.load(str(delivered.blob)) == Text("a\nb\n" * 1000)
    path.write_text('{\n "rows": [1, 2]\n}')
    blob = await store.store(FileContent(path, kind="json"))
    assert (store.describe(blob).kind, store.describe(blob).entries) == ("json_object", 1)
    assert (await inspect(store, blob, "key:rows")) == "[1,2]"
    path.write_text('{"rows": [1, 2')
    assert store.describe(await store.store(FileContent(path, kind="json"))).kind == "text"
    path.write_text("tiny")
    assert (await deliver(FileContent(path), store=store)).text == "tiny"
    assert not path.exists()


async def test_what_is_no_plain_file_is_not_taken_over(store: LocalBlobStore, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("t")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for path in (tmp_path / "link", tmp_path, tmp_path / "absent"):
        with pytest.raises(BlobStoreError):
            await store.store(FileContent(path))
    assert (tmp_path / "target").read_text() == "t"


async def test_a_file_from_another_disk_is_copied_and_then_gone(files: FsBlobStore, tmp_path: Path) -> None:
    path = tmp_path / "linked twice"
    path.write_text("x" * 1000)
    (tmp_path / "other name").hardlink_to(path)
    blob = await files.store(FileContent(path))
    assert (files.describe(blob).size, path.exists(), (tmp_path / "other name").read_text()) == (
        1000,
        False,
        "x" * 1000,
    )


def test_collection_by_age_by_size_and_what_a_run_keeps(store: LocalBlobStore) -> None:
    ids = [store.put(Text("x" * 100), run=run).id for run in ("a", "b", "a", "c")]
    assert store.gc(max_age=timedelta(hours=1)).removed == ()
    assert store.gc(max_bytes=0, keep=["a", ids[3]]).removed == (ids[1],)
    assert store.gc(max_age=-1.0, keep={"c"}).removed == (ids[0], ids[2])
    assert [info.id for info in store.list()] == [ids[3]]
    assert store.gc(max_bytes=0).size == 100
    assert store.list() == ()


async def test_collection_takes_away_what_killed_writers_left(files: FsBlobStore) -> None:
    blob = await files.store(Text("x" * 2_000_000))
    fresh = files.folder / f".{new_blob_id()}.1.tmp"
    stale, orphan = files.folder / f".{new_blob_id()}.2.tmp", files.folder / f"{new_blob_id()}.meta.json"
    foreign = files.folder / "notes.tmp.txt"
    for path in (fresh, stale, orphan, foreign):
        path.write_text("x")
        if path != fresh:
            os.utime(path, (time.time() - 2 * STALE_SECONDS,) * 2)
    files.gc()
    assert (fresh.exists(), stale.exists(), orphan.exists(), foreign.exists()) == (True, False, False, True)
    assert (files.folder / f"{blob}.idx").exists()
    files.gc(max_bytes=0)
    assert {path.name for path in files.folder.iterdir()} == {fresh.name, foreign.name}


def test_a_blob_whose_run_is_unknown_stays_while_runs_are_kept(files: FsBlobStore) -> None:
    blob = files.put(Text("x"), run="a").id
    (files.folder / f"{blob}.meta.json").unlink()
    assert files.gc(max_age=-1.0, keep=["some run"]).removed == ()
    assert files.gc(max_age=-1.0).removed == (blob,)


WRITER = """
import sys
from reyn_jupyter.outputs.content import Structured, Text
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
store = FsBlobStore(sys.argv[1])
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    store.put(Text(f"{number}\\n" * 300_000) if number % 2 else Structured([number] * 2000), run=sys.argv[3])
"""


def _writer(folder: Path, number: int, run: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(number), run], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _assert_whole(store: FsBlobStore) -> None:
    for info in store.list():
        blob = open_blob(store, info.id)
        if info.kind == "text":
            lines = blob.text.splitlines()
            assert len(lines) == info.entries == 300_000
            assert len(set(lines)) == 1
        else:
            assert len(blob.json) == info.entries == 2000


def test_a_killed_writer_leaves_whole_blobs_only(tmp_path: Path) -> None:
    store = FsBlobStore(tmp_path / "blobs")
    for wait in (0.05, 0.11, 0.17, 0.23):
        process = _writer(store.folder, 10_000, "killed")
        time.sleep(wait)
        until(lambda wait=wait: wait < 0.2 or store.list())  # type: ignore[misc]
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
    assert store.list()
    _assert_whole(store)


def test_two_kernels_write_one_folder(tmp_path: Path) -> None:
    store = FsBlobStore(tmp_path / "blobs")
    writers = [_writer(store.folder, 12, run) for run in ("first", "second")]
    for process in writers:
        assert process.wait(300) == 0
        process.stdout.close()  # type: ignore[union-attr]
    assert sorted(info.run or "" for info in store.list()) == ["first"] * 12 + ["second"] * 12
    _assert_whole(store)


FULL_DISK = """
import asyncio, resource, signal, sys
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
delivered = asyncio.run(deliver("line\\n" * 100_000, store=FsBlobStore(sys.argv[1])))
assert delivered.blob is None and delivered.size == 500_000
print(delivered.text)
"""


def test_a_full_disk_gives_a_preview_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "blobs")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(
        "[not stored: could not store a blob in blobs/: File too large] text | 100000 lines\n"
    )
    assert len(done.stdout.encode()) <= 401
    assert list((tmp_path / "blobs").iterdir()) == []


@pytest.mark.parametrize("value", ["x" * 5000, {"a": "x" * 5000}, list(range(5000))])
async def test_a_store_that_cannot_be_written_gives_a_preview(tmp_path: Path, value: object) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    delivered = await deliver(value, store=FsBlobStore(tmp_path / "blobs"))
    assert delivered.blob is None
    assert delivered.text.startswith("[not stored: ")
    assert len(delivered.text.encode()) <= 400
    assert delivered.size >= 5000
    with pytest.raises(BlobStoreError, match="could not store"):
        await FsBlobStore(tmp_path / "blobs").store(Text("x"))


class ForeignStore:
    """A store of someone else: the least that `BlobStore` asks for."""

    def __init__(self) -> None:
        self.contents: dict[str, Any] = {}

    async def store(self, content: Any, *, action: str | None = None, run: str | None = None) -> str:
        blob = new_blob_id()
        self.contents[blob] = content
        return blob

    async def load(self, blob_id: str) -> Any:
        if blob_id not in self.contents:
            raise BlobNotFoundError(blob_id)
        return self.contents[blob_id]

    async def exists(self, blob_id: str) -> bool:
        return blob_id in self.contents


async def test_a_foreign_store_needs_no_more_than_the_protocol() -> None:
    from reyn_jupyter.outputs.blob import fetch_blob

    store: Any = ForeignStore()
    delivered = await deliver([{"id": number} for number in range(300)], store=store)
    assert (delivered.content_kind, delivered.size) == ("json_array", 3191)
    assert (await inspect(store, str(delivered.blob), "slice:7..8")).startswith('[{"id":7}]\n')
    assert len((await fetch_blob(store, str(delivered.blob))).df) == 300
    with pytest.raises(TypeError, match="fetch_blob"):
        open_blob(store, str(delivered.blob))
    with pytest.raises(BlobNotFoundError):
        await inspect(store, new_blob_id())
