"""What a result leaves in the history: the thresholds, the three formats, and what must never happen again."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING

import pytest

from reyn_jupyter.outputs.content import OutputPolicy, Text
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.error_payloads import deliver_error
from reyn_jupyter.outputs.inspect import inspect
from reyn_jupyter.outputs.selectors import SelectorError

if TYPE_CHECKING:
    from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
    from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore


async def test_800_bytes_go_inline_and_801_are_stored(files: FsBlobStore) -> None:
    inline = await deliver("x" * 800, store=files)
    assert (inline.text, inline.blob, files.list()) == ("x" * 800, None, ())

    stored = await deliver("x" * 801, store=files)
    assert stored.blob is not None
    assert uuid.UUID(stored.blob).version == 7
    assert stored.text.startswith(f"[blob:{stored.blob}] text | 1 lines\n── head ──\nxxx")
    assert (files.folder / f"{stored.blob}.txt").stat().st_size == 801


async def test_bytes_count_and_not_characters(store: LocalBlobStore) -> None:
    assert (await deliver("漢" * 266, store=store)).blob is None
    assert (await deliver("漢" * 267, store=store)).blob is not None


async def test_a_text_shows_its_first_five_and_last_three_lines(store: LocalBlobStore) -> None:
    delivered = await deliver("\n".join(f"line {number}" for number in range(1, 201)), store=store)
    assert delivered.text == (
        f"[blob:{delivered.blob}] text | 200 lines\n"
        "── head ──\nline 1\nline 2\nline 3\nline 4\nline 5\n"
        "── tail ──\nline 198\nline 199\nline 200"
    )


async def test_an_array_shows_the_schema_of_its_first_element_and_two_elements(store: LocalBlobStore) -> None:
    delivered = await deliver([{"id": number, "name": f"n{number}"} for number in range(60)], store=store)
    assert delivered.text == (
        f"[blob:{delivered.blob}] json_array | 60 entries\n"
        "── schema ──\nid: number\nname: string\n"
        '── head ──\n{"id":0,"name":"n0"}\n{"id":1,"name":"n1"}'
    )
    assert delivered.content_kind == "json_array"


async def test_an_object_shows_every_key_with_type_and_size(store: LocalBlobStore) -> None:
    value = {"results": [1] * 400, "name": "n", "big": "b" * 60, "none": None, "ok": True, "inner": {"a": 1}}
    delivered = await deliver(value, store=store)
    assert delivered.text == (
        f"[blob:{delivered.blob}] json_object | 6 keys\n── keys ──\n"
        "results: array(400)\nname: string\nbig: string(60)\nnone: null\nok: bool\ninner: object(1)"
    )


async def test_selectors_pick_parts_and_wrong_ones_are_argument_errors(store: LocalBlobStore) -> None:
    numbers = await store.store(await _structured(list(range(20))))
    assert (await inspect(store, numbers, "slice:3..8")).splitlines()[0] == "[3,4,5,6,7]"
    thing = await store.store(await _structured({"results": [1], "total": 1}))
    with pytest.raises(SelectorError, match="results"):
        await inspect(store, thing, "key:nope")
    for wrong in ("lines:0-5", "lines:9-3", "slice:5..2", "foo:1", "key:"):
        with pytest.raises(SelectorError) as caught:
            await inspect(store, thing, wrong)
        assert "lines:20-50" in caught.value.hint
        assert "key:<name>" in str(caught.value)


async def _structured(value: object) -> object:
    from reyn_jupyter.outputs.convert import to_content

    return to_content(value)


async def test_200_concurrent_stores_get_distinct_ids_in_creation_order(store: LocalBlobStore) -> None:
    ids = [store.put(Text(str(number))).id for number in range(50)]
    ids += await asyncio.gather(*(store.store(Text(str(number))) for number in range(200)))
    assert len(set(ids)) == 250
    assert ids[:50] == sorted(ids[:50])
    assert sorted(ids) == [info.id for info in store.list()]
    by_age = [info.id for info in sorted(store.list(), key=lambda info: (info.created, info.id))]
    assert max(ids[:50]) < min(ids[50:])
    assert set(by_age) == set(ids)


class TestWhatOnceWentWrong:
    """Each of these was a defect of the design's first implementation."""

    @pytest.mark.parametrize("limit", range(100, 140))
    async def test_a_cut_never_falls_inside_a_character(self, store: LocalBlobStore, limit: int) -> None:
        delivered = await deliver("é漢🙂" * 300, store=store, policy=OutputPolicy(summary_bytes=limit))
        assert len(delivered.text.encode()) <= limit
        assert "�" not in delivered.text

    async def test_a_long_head_does_not_swallow_the_tail(self, store: LocalBlobStore) -> None:
        delivered = await deliver("\n".join(["h" * 900] * 6 + ["the end"]), store=store)
        assert delivered.text.endswith("\nthe end")

    async def test_json_in_a_string_is_recognised(self, store: LocalBlobStore) -> None:
        array = await deliver(json.dumps(list(range(400))), store=store)
        thing = await deliver(json.dumps({"a": "x" * 900}), store=store)
        assert (array.content_kind, thing.content_kind) == ("json_array", "json_object")

    async def test_an_error_is_bounded_like_a_result(self, store: LocalBlobStore) -> None:
        delivered = await deliver_error(RuntimeError("x" * 2_000_000), store=store, hint="Try less.")
        answer = json.loads(delivered.text)
        assert answer["error"].startswith("RuntimeError: xxx")
        assert len(delivered.text.encode()) < 500
        assert store.describe(answer["blob"]).size == 2_000_014

    async def test_what_inspect_answers_is_not_stored_again(self, store: LocalBlobStore) -> None:
        blob = await store.store(Text("line\n" * 50_000))
        answer = await inspect(store, blob, "lines:1-1000")
        assert 400 < len(answer.encode()) <= 8192
        assert len(store.list()) == 1

    async def test_garbage_is_collected(self, store: LocalBlobStore) -> None:
        for number in range(5):
            await store.store(Text("x" * 100), run=f"run{number}")
        assert len(store.gc(max_bytes=250).removed) == 3
        assert [info.run for info in store.list()] == ["run3", "run4"]

    async def test_the_bound_is_on_by_default(self, store: LocalBlobStore) -> None:
        assert len((await deliver("x" * 125_000, store=store)).text.encode()) <= 400
