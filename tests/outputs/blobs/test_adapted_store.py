"""Stores of somebody else: three methods are enough, and what is missing is said when the session is made."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.outputs.blobs.adapted_store import AdaptedBlobStore, adapt_store
from reyn_jupyter.outputs.blobs.ids import new_blob_id
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import BlobNotFoundError, BlobStoreError, Content, FileContent, Text
from reyn_jupyter.sessions.session import Session


class ThreeMethods:
    """A store with nothing but the three methods of the design, whose ids are UUIDs and not texts."""

    def __init__(self) -> None:
        self.contents: dict[uuid.UUID, Content] = {}

    async def store(self, content: Content) -> uuid.UUID:
        made = uuid.UUID(new_blob_id())
        self.contents[made] = content
        return made

    async def load(self, blob_id: uuid.UUID) -> Content:
        return self.contents[blob_id]

    async def exists(self, blob_id: uuid.UUID) -> bool:
        return blob_id in self.contents


def test_a_session_over_three_methods_stores_results_and_undoes_writes(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("line\n" * 2_000)
    (tmp_path / "old.bin").write_bytes(b"\xff\x00before")
    store = ThreeMethods()
    session = Session(tmp_path, store=store)  # type: ignore[arg-type]
    result = session.invoke_action("file__read", {"path": "big.txt"})
    assert result.error is None and str(result.payload).startswith("[blob:")
    assert result.blob is not None and result.blob.text.count("line\n") == 2_000
    written = session.invoke_action("file__write", {"path": "old.bin", "content": "after"})
    assert written.error is None and (tmp_path / "old.bin").read_text() == "after"
    session.undo()
    assert (tmp_path / "old.bin").read_bytes() == b"\xff\x00before"
    assert len(store.contents) >= 2


def test_a_store_that_lacks_a_method_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    class Half:
        async def store(self, content: Content) -> str:
            return new_blob_id()

    for given, said in (
        (Half(), "it lacks load, exists"),
        (ThreeMethods, "make one of it"),
        (7, "it lacks store"),
    ):
        with pytest.raises(ValueError, match=said):
            Session(tmp_path, store=given)  # type: ignore[arg-type]


def test_a_whole_store_is_taken_as_it_is() -> None:
    whole = MemoryBlobStore()
    assert adapt_store(whole) is whole


async def test_a_file_handed_over_is_stored_as_text_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "handed.txt"
    path.write_text("hello")
    store = adapt_store(ThreeMethods())
    blob = await store.store(FileContent(path), action="a__b", run="r")
    assert await store.load(blob) == Text("hello") and not path.exists()
    assert await store.load_bytes(blob) == b"hello"


async def test_failures_of_the_other_store_come_out_as_store_errors() -> None:
    class Rude(ThreeMethods):
        answer: Any = "not-a-uuid"

        async def store(self, content: Content) -> Any:
            if self.answer is None:
                raise ConnectionError("gone")
            return self.answer

    rude = Rude()
    store = AdaptedBlobStore(rude)
    with pytest.raises(BlobStoreError, match="no UUID"):
        await store.store(Text("x"))
    rude.answer = None
    with pytest.raises(BlobStoreError, match="ConnectionError: gone"):
        await store.store(Text("x"))
    with pytest.raises(BlobNotFoundError):
        await store.load(new_blob_id())
