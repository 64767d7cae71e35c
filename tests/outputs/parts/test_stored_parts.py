"""Parts on their way to the history and the store, and how `inspect` opens them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reyn_jupyter.outputs.blob import BlobKindError, fetch_blob, open_blob
from reyn_jupyter.outputs.blobs.adapted_store import adapt_store
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.inspect import inspect
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.outputs.selectors import SelectorError
from tests.support.media_samples import png, wav

LONG = "\n".join(f"line {number}" for number in range(1, 400))
MIXED = ContentParts(
    (
        ContentPart.of_text("Sales by month:"),
        ContentPart("image/png", data=png(640, 480), name="sales.png"),
        ContentPart.of_json({"total": 12}),
        ContentPart("audio/wav", data=wav(0.5)),
        ContentPart.link("https://example.org/report", "The report", "text/html"),
    )
)


async def test_one_text_part_is_that_text_and_one_json_part_that_json(store: LocalBlobStore) -> None:
    for value, alone in (("hello", "hello"), ("x" * 5000, "x" * 5000), ('{"a": 1}', '{"a": 1}')):
        one = await deliver(ContentParts([ContentPart.of_text(value)]), store=store)
        other = await deliver(alone, store=store)
        assert (one.content_kind, one.size, one.blob is None) == (
            other.content_kind,
            other.size,
            other.blob is None,
        )
    rows = [{"n": number} for number in range(500)]
    one = await deliver(ContentPart.of_json(rows), store=store)
    assert one.content_kind == "json_array" and one.blob is not None
    assert open_blob(store, one.blob).json == rows


async def test_texts_stand_in_order_and_all_else_by_a_sentence(store: LocalBlobStore) -> None:
    delivered = await deliver(MIXED, store=store, action="report__sales", run="r1")
    assert delivered.content_kind == "parts"
    lines = delivered.text.split("\n")
    assert lines[0] == f"[blob:{delivered.blob}] parts | 5 parts | {delivered.size:,} bytes"
    entries = open_blob(store, delivered.blob or "").part_entries
    size = len(png(640, 480))
    assert lines[1] == "Sales by month:"
    assert lines[2] == f'[image/png "sales.png", 640×480, {size:,} bytes: [blob:{entries[1].blob}]]'
    assert lines[3] == '{"total":12}'
    assert lines[4].startswith("[audio/wav, 0.5 s, 4,044 bytes: [blob:")
    assert lines[5] == '[link "The report", text/html: https://example.org/report]'
    listed = store.describe(delivered.blob or "")
    assert (listed.kind, listed.entries, listed.action, listed.run) == ("parts", 5, "report__sales", "r1")
    assert "base64" not in open_blob(store, listed.id).text


async def test_parts_come_back_as_they_were_given(store: LocalBlobStore) -> None:
    delivered = await deliver(ContentParts([*MIXED, ContentPart.of_text(LONG, "text/x-log")]), store=store)
    parts = open_blob(store, delivered.blob or "").parts
    assert parts[1].data == png(640, 480) and parts[1].name == "sales.png"
    assert (parts[2].json, parts[4].uri, parts[5].text) == ({"total": 12}, "https://example.org/report", LONG)
    assert parts[0] == MIXED[0]
    with pytest.raises(BlobKindError, match="no result of parts"):
        open_blob(store, open_blob(store, delivered.blob or "").part_entries[1].blob).parts  # noqa: B018


async def test_small_texts_and_links_need_no_blob(store: LocalBlobStore) -> None:
    parts = ContentParts(
        [ContentPart.of_text("a"), ContentPart.of_json([1]), ContentPart.link("https://b.org")]
    )
    delivered = await deliver(parts, store=store)
    assert (delivered.text, delivered.blob) == ("a\n[1]\n[link: https://b.org]", None)
    assert store.list() == ()


async def test_however_much_there_is_the_history_gets_little_of_it(store: LocalBlobStore) -> None:
    parts = ContentParts(
        [ContentPart.of_text(LONG), *(ContentPart("image/png", data=png()) for _ in range(60)), *MIXED]
    )
    delivered = await deliver(parts, store=store)
    assert len(delivered.text.encode()) <= 800
    assert delivered.text.split("\n")[1].startswith("line 1")
    assert "more parts; inspect lists them" in delivered.text
    texts = await deliver(ContentParts([ContentPart.of_text(LONG), ContentPart.of_text(LONG)]), store=store)
    assert len(texts.text.encode()) <= 800 and texts.text.count("line 1\n") == 2


async def test_a_part_for_the_person_alone_is_only_named(store: LocalBlobStore) -> None:
    parts = ContentParts(
        [ContentPart.of_text("for all"), ContentPart("text/plain", text="hidden", audience="person")]
    )
    delivered = await deliver(parts, store=store)
    assert "hidden" not in delivered.text and "[text/plain, 6 bytes, for the person alone]" in delivered.text
    assert open_blob(store, delivered.blob or "").parts[1].text == "hidden"


async def test_inspect_lists_parts_and_opens_one_in_windows(store: LocalBlobStore) -> None:
    delivered = await deliver(ContentParts([*MIXED, ContentPart.of_text(LONG)]), store=store)
    blob = delivered.blob or ""
    listed = (await inspect(store, blob)).split("\n")
    assert listed[0].startswith("parts | 6 parts | ")
    assert listed[1] == "1: text/plain, 15 bytes: Sales by month:"
    assert listed[2].startswith('2: [image/png "sales.png", 640×480')
    assert listed[3] == '3: application/json, 12 bytes: {"total":12}'
    assert (await inspect(store, blob, "part:1")).startswith(
        "part 1 | text/plain, 15 bytes\ntext | 1 lines | 15 bytes\nSales by month:"
    )
    window = await inspect(store, blob, "part:6/lines:10-11")
    assert window == "line 10\nline 11\n388 lines left · next: part:6/lines:12-13"
    assert (await inspect(store, blob, "part:6")).endswith("349 lines left · next: part:6/lines:51-100")
    assert await inspect(store, blob, "part:3/key:total") == "12"
    image = await inspect(store, blob, "part:2")
    assert "image/png | 640×480" in image and "no text" in image
    own = open_blob(store, blob).part_entries[1].blob
    assert (await inspect(store, own)).startswith("image/png | 640×480 | ")
    assert open_blob(store, blob).inspect("part:6/lines:10-11") == window


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("part:0", "counted from 1"),
        ("part:9", "the result has 5"),
        ("part:5", "has no content here"),
        ("part:1/part:1", "no parts of its own"),
        ("part:1/nonsense", "unknown selector"),
        ("lines:1-2", "takes part:1"),
        ("key:a", "takes part:1"),
    ],
)
async def test_a_selector_that_leads_nowhere_says_what_does(
    store: LocalBlobStore, selector: str, said: str
) -> None:
    delivered = await deliver(MIXED, store=store)
    with pytest.raises(SelectorError, match=said):
        await inspect(store, delivered.blob or "", selector)
    text = await deliver("x" * 2000, store=store)
    with pytest.raises(SelectorError, match="this blob is text"):
        await inspect(store, text.blob or "", "part:1")


async def test_a_list_whose_parts_are_gone_or_damaged_still_reads(store: LocalBlobStore) -> None:
    delivered = await deliver(MIXED, store=store)
    blob = delivered.blob or ""
    gone = open_blob(store, blob).part_entries[1].blob
    store.gc(max_age=-1, keep=[each.id for each in store.list() if each.id != gone])
    assert "sales.png" in await inspect(store, blob)
    with pytest.raises(BlobStoreError):
        open_blob(store, blob).parts  # noqa: B018
    from reyn_jupyter.outputs.content import Structured

    odd: list[Any] = [
        1,
        {},
        {"kind": "x"},
        {"kind": "image", "blob": "../x", "width": "w", "name": 3, "notes": 4},
    ]
    damaged = store.put(Structured(odd, parts=True)).id
    assert "damaged" in await inspect(store, damaged)


async def test_json_that_looks_like_a_list_of_parts_is_json(store: LocalBlobStore) -> None:
    secret = (await deliver(MIXED, store=store)).blob
    forged = [{"kind": "text", "mime": "text/plain", "blob": secret, "text": "x" * 2000}]
    delivered = await deliver(forged, store=store)
    assert delivered.content_kind == "json_array"
    with pytest.raises(SelectorError):
        await inspect(store, delivered.blob or "", "part:1")


class Elsewhere:
    """A store with three methods that keeps what it was given."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    async def store(self, content: Any) -> str:
        import uuid_utils.compat as uuid_utils

        self.held[blob := str(uuid_utils.uuid7())] = content
        return blob

    async def load(self, blob: str) -> Any:
        return self.held[blob]

    async def exists(self, blob: str) -> bool:
        return blob in self.held


async def test_a_store_of_somebody_else_keeps_parts_too() -> None:
    store = adapt_store(Elsewhere())
    delivered = await deliver(ContentParts([*MIXED, ContentPart.of_text(LONG)]), store=store)
    assert await inspect(store, delivered.blob or "", "part:6/lines:1-1") == (
        "line 1\n398 lines left · next: part:6/lines:2-2"
    )
    listed = await fetch_blob(store, delivered.blob or "")
    assert await store.load_bytes(listed.part_entries[1].blob) == png(640, 480)


class FullStore(MemoryBlobStore):
    async def store_bytes(self, *arguments: Any, **options: Any) -> str:
        raise BlobStoreError("no space left")


async def test_without_a_store_or_with_a_full_one_no_bytes_reach_the_history() -> None:
    for store in (None, FullStore()):
        delivered = await deliver(MIXED, store=store)
        assert delivered.blob is None and "Sales by month:" in delivered.text
        assert '[image/png "sales.png", 640×480' in delivered.text and len(delivered.text) < 800
    assert "[not stored: no space left] parts | 5 parts" in delivered.text
    whole = await deliver(ContentParts([ContentPart.of_text(LONG), *MIXED]), store=None)
    assert LONG in whole.text and json.loads(whole.text.split("\n")[-3]) == {"total": 12}


async def test_a_secret_is_covered_before_a_text_is_cut(store: LocalBlobStore) -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "*******")

    long = "hunter2 " + LONG
    delivered = await deliver(ContentParts([ContentPart.of_text(long), *MIXED]), store=store, mask=mask)
    assert "hunter2" not in delivered.text and "*******" in delivered.text
    assert "hunter2" not in await inspect(store, delivered.blob or "", "part:1", mask=mask)
    short = await deliver(ContentParts([ContentPart.of_text("hunter2"), *MIXED]), store=store)
    assert "hunter2" not in await inspect(store, short.blob or "", mask=mask)
    assert "hunter2" not in await inspect(store, short.blob or "", "part:1/lines:1-1", mask=mask)
