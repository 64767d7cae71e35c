"""Errors, guides and sessions without a store: each has its own bound, and nothing raises."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.outputs.test_convert import json_values

if TYPE_CHECKING:
    from pathlib import Path

from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import BlobStoreError, FileContent, Inline, OutputPolicy, Stored, Text
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.error_payloads import bound_guide, deliver_error
from reyn_jupyter.support.encoding import compact


class FailingStore(MemoryBlobStore):
    async def store(self, *arguments: Any, **options: Any) -> str:
        raise BlobStoreError("no space left " + "x" * 10_000)


class RudeStore(MemoryBlobStore):
    async def store(self, *arguments: Any, **options: Any) -> str:
        raise ZeroDivisionError


async def test_without_a_store_everything_goes_inline_in_full() -> None:
    text = await deliver("x" * 100_000, store=None)
    assert (text.text, text.blob, text.size) == ("x" * 100_000, None, 100_000)
    value = list(range(50_000))
    assert json.loads((await deliver(value, store=None)).text) == value
    frame = pd.DataFrame({"a": range(300_000)})
    assert len(json.loads((await deliver(frame, store=None)).text)) == 300_000
    assert (await deliver(Stored("short", Text("the whole")), store=None)).text == "the whole"
    error = await deliver_error(ValueError("y" * 5000), store=None)
    assert json.loads(error.text)["error"] == "ValueError: " + "y" * 5000


@pytest.mark.parametrize("store", [FailingStore(), RudeStore()])
async def test_a_store_that_fails_leaves_a_bounded_preview(store: MemoryBlobStore) -> None:
    delivered = await deliver("\n".join(["first"] * 500), store=store)
    assert delivered.text.startswith("[not stored: ")
    assert "── head ──\nfirst" in delivered.text
    assert len(delivered.text.encode()) <= 400
    error = await deliver_error("z" * 5000, kind="OSError", store=store, hint="Try again.")
    answer = json.loads(error.text)
    assert (answer["blob"], answer["hint"]) == (None, "Try again. The whole text was not stored.")
    assert len(error.text) < 600


async def test_a_handed_over_file_is_gone_afterwards_whoever_took_it(tmp_path: Path) -> None:
    path = tmp_path / "spooled"
    for store, start in (
        (FailingStore(), "[not stored: "),
        (None, "long\nlong"),
        (MemoryBlobStore(), "[blob:"),
    ):
        path.write_text("long\n" * 500)
        assert (await deliver(FileContent(path), store=store)).text.startswith(start)
        assert not path.exists()


async def test_an_explicit_inline_is_bounded_too() -> None:
    store = MemoryBlobStore()
    assert (await deliver(Inline("short"), store=store)).text == "short"
    assert (await deliver(Inline("[" + "1," * 500 + "1]"), store=store)).content_kind == "text"


async def test_short_errors_are_whole_and_middling_ones_clipped() -> None:
    store = MemoryBlobStore()
    short = await deliver_error(KeyError("a"), store=store, hint="Give b.")
    assert json.loads(short.text) == {"error": "KeyError: 'a'", "hint": "Give b.", "blob": None}
    middling = json.loads((await deliver_error(ValueError("é" * 300), store=store)).text)
    assert len(middling["error"].encode()) <= len("ValueError: ") + 300
    assert middling["blob"] is None
    assert store.list() == ()


async def test_an_exception_that_cannot_be_printed_is_still_an_error() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    error = await deliver_error(BrokenError(), store=MemoryBlobStore())
    assert json.loads(error.text)["error"].startswith("BrokenError: ")


async def test_the_policy_is_configurable() -> None:
    store = MemoryBlobStore()
    policy = OutputPolicy(inline_bytes=10, summary_bytes=120, head_lines=1, tail_lines=1)
    delivered = await deliver("a\nb\nc\nd\ne\nf\n", store=store, policy=policy)
    assert delivered.text == f"[blob:{delivered.blob}] text | 6 lines\n── head ──\na\n── tail ──\nf"


async def test_large_values_do_not_hold_the_loop() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticker = asyncio.create_task(tick())
    for count in (60_000, 240_000, 960_000):  # as many as take a while, on a fast machine too
        before = ticks
        await deliver([{"id": number, "text": "x" * 50} for number in range(count)], store=MemoryBlobStore())
        if ticks - before > 3:
            break
    ticker.cancel()
    assert ticks - before > 3


def test_a_guide_that_fits_is_left_alone() -> None:
    payload = {"items": [{"qualified_name": "file__read"}], "total": 1}
    assert bound_guide(payload) == payload


def test_error_and_hint_stay_whole_and_the_rest_gives_way() -> None:
    payload = {
        "error": f"Unknown action '{'n' * 5000}'",
        "reason": "r" * 9000,
        "suggestions": [f"suggestion {number}" for number in range(2000)],
        "hint": "h" * 900,
    }
    bounded = bound_guide(payload)
    assert len(compact(bounded).encode()) <= 8192
    assert bounded["hint"] == payload["hint"]
    assert bounded["error"].startswith("Unknown action 'nnn")
    assert len(bounded["error"].encode()) < 230
    assert bounded["suggestions"][:2] == ["suggestion 0", "suggestion 1"]
    assert "8192" in bounded["clipped"]
    assert list(bounded)[:2] == ["error", "reason"]


@given(
    some.dictionaries(some.sampled_from(["error", "hint", "items", "a", "b"]), json_values),
    some.integers(250, 600),
)
def test_a_guide_never_passes_its_bound(payload: dict[str, Any], limit: int) -> None:
    wide = {**payload, "items": [payload] * 30}
    assert len(compact(bound_guide(wide, limit)).encode()) <= limit


@pytest.mark.parametrize(
    "payload", ["x" * 9000, ["y" * 100] * 900, {"error": "e" * 20_000, "hint": "h" * 20_000}]
)
def test_every_kind_of_guide_is_bounded(payload: Any) -> None:
    bounded = bound_guide(payload)
    assert type(bounded) is type(payload)
    assert len((bounded if isinstance(bounded, str) else compact(bounded)).encode()) <= 8192
