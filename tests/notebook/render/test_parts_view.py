"""Parts as blocks: bounded, checked again where they are drawn, and words wherever something is missing."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter import Session
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Block, Media, Notice
from reyn_jupyter.notebook.render.hosts.html import HTML_BYTES
from reyn_jupyter.notebook.render.parts_view import MEDIA_BYTES, MediaRoom, given_parts, stored_parts
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.view_json import SNAPSHOT_BYTES, json_size, to_snapshot
from reyn_jupyter.outputs.blob import open_blob
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import Structured
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.result_objects import Result
from tests.support.media_samples import png, png_bomb, wav
from tests.support.report_category import PLOT, report_category


def drawn(blocks: tuple[Block, ...]) -> list[Media]:
    return [block for block in blocks if isinstance(block, Media)]


def said(blocks: tuple[Block, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Notice))


def noisy(size: int) -> bytes:
    """A PNG whose file is so large; what stands after its end is nobody's business."""
    return png(20, 10) + bytes(size)


def test_a_view_holds_so_many_bytes_and_names_the_others() -> None:
    half = MEDIA_BYTES // 2 - 2000
    parts = ContentParts([ContentPart("image/png", data=noisy(half), name=f"{n}.png") for n in range(4)])
    shown = view(Result("x", "", parts))
    assert [each.alt for each in drawn(shown.blocks)] == ["0.png", "1.png"]
    assert "3.png · image/png · 20×10" in said(shown.blocks)
    assert "left out to keep this view small; all of it: result.value[3].data" in said(shown.blocks)


def test_the_rest_of_a_view_keeps_its_bounds_and_the_data_comes_whole() -> None:
    data = noisy(MEDIA_BYTES // 3)
    long = ContentPart.of_json([{"n": number, "text": "x" * 300} for number in range(900)])
    parts = ContentParts([long, ContentPart("image/png", data=data, name="a.png"), long])
    shown = view(Result("x", "", parts))
    coded = base64.b64encode(data).decode()
    html = to_html(shown)
    assert html.count(coded) == 1 and "\x00" not in html
    assert len(html) - len(coded) <= HTML_BYTES
    snapshot = to_snapshot(shown, "s")
    assert [block["data"] for block in snapshot["view"]["blocks"] if block["type"] == "media"] == [coded]
    assert json_size(snapshot) - len(coded) <= SNAPSHOT_BYTES


@pytest.mark.parametrize(
    ("data", "claims"),
    [
        (b"<svg onload=alert(1)>", {"mime": "image/png", "width": 2, "height": 2}),
        (png_bomb(), {"mime": "image/png", "width": 2, "height": 2}),
        (png(), {"mime": "image/gif", "width": 4, "height": 3}),
        (png(), {"mime": "image/svg+xml", "width": 4, "height": 3}),
        (png(), {"mime": 'image/png" onerror="x', "width": 4, "height": 3}),
        (wav(), {"mime": "image/png", "width": 4, "height": 3}),
    ],
)
def test_a_list_that_somebody_else_wrote_draws_nothing_that_is_no_image(
    data: bytes, claims: dict[str, Any]
) -> None:
    store = MemoryBlobStore()
    blob = _stored(store, data)
    record = {"kind": "image", "size": len(data), "name": "a.png", "blob": blob, **claims}
    listed = store.put(Structured([record], parts=True)).id
    blocks = stored_parts(store, listed, Look(), "blob.parts", MediaRoom())
    assert drawn(blocks) == [] and "not what the record says" in said(blocks)


def _stored(store: MemoryBlobStore, data: bytes) -> str:
    import asyncio

    return asyncio.run(store.store_bytes(data))


def test_a_media_block_is_of_a_drawn_type_or_none() -> None:
    for mime, data in (
        ("image/svg+xml", "AA=="),
        ("text/html", "AA=="),
        ("image/png", '"><script>'),
        ("image/png", ""),
    ):
        with pytest.raises(ValueError, match="neither drawn nor played"):
            Media(mime, data, "alt")


async def test_parts_whose_blobs_are_gone_are_named() -> None:
    store = MemoryBlobStore()
    parts = ContentParts(
        [ContentPart("image/png", data=png(), name="a.png"), ContentPart.of_text("x\n" * 2000, name="log")]
    )
    delivered = await deliver(parts, store=store)
    blob = open_blob(store, delivered.blob or "")
    assert len(drawn(view(blob).blocks)) == 1
    store.gc(max_age=-1, keep=[blob.id])
    blocks = view(blob).blocks
    assert drawn(blocks) == []
    assert said(blocks).count("its blob is gone or cannot be read") == 2


def test_a_link_that_held_a_secret_leads_nowhere() -> None:
    look = Look(redact=lambda text: text.replace("hunter2", "[redacted]"))
    parts = ContentParts([ContentPart.link("https://a.example/?key=hunter2", "hunter2")])
    made = view(Result("x", "", parts), redact=look.text)
    shown = json.dumps(to_snapshot(made, "s"))
    assert given_parts(parts, look, "x") and "hunter2" not in to_text(made)
    assert "hunter2" not in json.dumps([str(block) for block in given_parts(parts, look, "x")])
    assert "a.example" in shown


@pytest.mark.parametrize(
    "address",
    [
        r"https://evil.example\@good.example/report",  # a browser ends the host at the backslash
        r"https://evil.example:443\@good.example",
        "https://evil.example\\\\@good.example",
        "https://good.example:99999999/",
    ],
)
def test_an_address_that_readers_take_for_two_hosts_is_no_link(address: str) -> None:
    made = view(Result("x", "", ContentParts([ContentPart.link(address, "The report")])))
    assert "href" not in to_html(made) and '"href": "http' not in json.dumps(to_snapshot(made, "s"))


def test_the_host_beside_a_link_is_the_one_that_a_browser_goes_to() -> None:
    parts = ContentParts([
        ContentPart.link(r"https://evil.example\.good.example/", "one"),
        ContentPart.link("https://good.example@EVIL.example./", "two"),
        ContentPart.link("https://раураl.example/", "three"),
    ])  # fmt: skip
    said = to_text(view(Result("x", "", parts)))
    assert said.count(" (evil.example)") == 2 and " (xn--" in said


def test_inspecting_a_part_shows_it(workspace: Path) -> None:
    session = Session(workspace, store="memory", categories=(report_category(),))
    result = session.invoke_action("report__sales")
    assert result.blob is not None
    whole = view(session.inspect(result.blob.id))
    assert len(drawn(whole.blocks)) == 2
    one = view(session.inspect(result.blob.id, "part:2"))
    assert [each.alt for each in drawn(one.blocks)] == ["sales.png"]
    image = result.blob.part_entries[1].blob
    assert len(drawn(view(session.inspect(image)).blocks)) == 1
    assert drawn(view(session.inspect(image, "bytes:0..8")).blocks) == []
    assert "several parts" in to_text(view(session.blobs))


def test_the_card_says_that_an_image_went_to_the_model_and_a_request_shows_it(workspace: Path) -> None:
    from reyn_jupyter.notebook.render.trace.step_details import part

    session = Session(workspace, store="memory", categories=(report_category(),))
    model = ScriptedModel(
        call("invoke_action", action_name="report__picture", args={}),
        "Red.",
        media=frozenset({"image"}),
        host="models.example",
    )
    trace = session.ask("what colour?", model=model)
    assert trace.sent.contents[0]["bytes"] > len(PLOT)
    shown = json.dumps(
        to_snapshot(part(trace, "m2", Look(), lambda _: None).request, "s"), ensure_ascii=False
    )
    assert "sent with it: image/png 320×200" in shown
    running = Trace.from_events(trace.events[:-1], trace.blobs)
    assert "base64" not in to_html(view(running, tail=""))
