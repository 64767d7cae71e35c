"""A person's handle: the content for ordinary code, and heads that read a bounded part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reyn_jupyter.outputs.blob import BlobKindError, open_blob
from reyn_jupyter.outputs.content import FileContent, Structured, Text
from reyn_jupyter.outputs.convert import to_content

if TYPE_CHECKING:
    from pathlib import Path

    from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
    from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore


async def test_a_text_has_text_and_lines(store: LocalBlobStore) -> None:
    blob = open_blob(store, await store.store(Text("a\r\nb\n" + "漢" * 900), action="file__read", run="run1"))
    assert blob.text == "a\r\nb\n" + "漢" * 900
    assert (blob.kind, blob.entries, blob.action, blob.run, blob.shape) == (
        "text",
        3,
        "file__read",
        "run1",
        None,
    )
    assert blob.head_lines(5)[:2] == ["a", "b"]
    assert len(blob.head_lines(5)[2].encode()) <= 500
    assert blob.created.tzinfo is not None
    for wrong in ("json", "df"):
        with pytest.raises(BlobKindError, match="text"):
            getattr(blob, wrong)
    with pytest.raises(BlobKindError):
        blob.head_rows(1)


async def test_an_array_has_rows(store: LocalBlobStore) -> None:
    rows = [{"id": number} for number in range(1000)] + ["x" * 100_000]
    blob = open_blob(store, await store.store(Structured(rows)))
    assert blob.json == rows
    assert blob.head_rows(2) == rows[:2]
    assert blob.head_rows(2000)[-1] == "string(100000)"
    assert blob.inspect("slice:0..1").startswith('[{"id":0}]\n')


async def test_an_object_has_keys_with_labels_and_small_values(store: LocalBlobStore) -> None:
    blob = open_blob(store, await store.store(Structured({"rows": [0] * 100_000, "n": 1, "none": None})))
    heads = blob.head_keys(9)
    assert [(line.key, line.label, line.value, line.cut) for line in heads] == [
        ("rows", "array(100000)", None, True),
        ("n", "number", 1, False),
        ("none", "null", None, False),
    ]


def test_a_file_blob_has_a_path(files: FsBlobStore) -> None:
    blob = open_blob(files, files.put(Text("x")).id)
    assert blob.path is not None
    assert blob.path.read_text() == "x"
    assert str(files.folder) not in repr(blob)


def test_the_head_of_a_large_file_reads_little(files: FsBlobStore, tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "large.json"
    path.write_text("[" + ",".join(['{"id": 1, "text": "' + "x" * 1000 + '"}'] * 20_000) + "]")
    blob = open_blob(files, files.put(FileContent(path, kind="json")).id)
    blob.head_rows(1)
    tracemalloc.start()
    assert len(blob.head_rows(50)) == 50
    blob.inspect("slice:15000..15002")
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


def test_a_json_text_keeps_its_text(store: LocalBlobStore) -> None:
    source = '[1.10,\n {"a": "\\u00e9"}]'
    blob = open_blob(store, store.put(to_content(source)).id)
    assert (blob.text, blob.json) == (source, [1.1, {"a": "é"}])
