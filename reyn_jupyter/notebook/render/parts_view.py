"""The parts of a result as blocks: an image as an image, a sound with controls, JSON as a tree, a link as text.
The three parts of a chart are one picture with its words.

Invariants: nothing is loaded and no link is followed. An image is drawn only where its bytes, as they are now, say that
they are one and how large: a list or a blob may have been written by somebody else. SVG and HTML stay text. A view
holds a bounded number of bytes of images and sounds; what passes it is named, with what gives all of it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.backends.charts.chart_result import StoredChart, is_chart
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Block,
    Code,
    Commands,
    Lines,
    Media,
    Notice,
    Paragraph,
    Section,
    Span,
)
from reyn_jupyter.notebook.render.chart_view import chart_blocks
from reyn_jupyter.notebook.render.hosts.markdown_reader import link_address, link_destination
from reyn_jupyter.notebook.render.text_blocks import text_lines
from reyn_jupyter.notebook.render.tree_view import tree
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError
from reyn_jupyter.outputs.blobs.random_access import is_local
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.outputs.parts.content_parts import (
    MAX_PIXELS,
    MAX_SIDE,
    URI_BYTES,
    ContentPart,
    ContentParts,
    check_parts,
)
from reyn_jupyter.outputs.parts.media_type import media_facts
from reyn_jupyter.outputs.parts.stored_parts import PartEntry, bare_entry, read_entries, read_part

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.run_steps import Call
    from reyn_jupyter.runtime.record.trace import Trace

MEDIA_BYTES = 1 << 20  # of images, sounds and charts in one view
_PARSED = 1 << 20  # bytes of a stored text or JSON part that are read for a view

ReadPart = Callable[[PartEntry], ContentPart | None]


class MediaRoom:
    """The bytes of images and sounds that one view may still hold."""

    def __init__(self, room: int = MEDIA_BYTES) -> None:
        self._room = room

    def take(self, size: int) -> bool:
        """Return whether so many bytes fit, and count them if they do."""
        fits = 0 < size <= self._room
        self._room -= size if fits else 0
        return fits


def given_parts(parts: ContentParts, look: Look, knob: str) -> tuple[Block, ...]:
    """Return the parts that a handler gave, as blocks."""
    checked = check_parts(parts, lambda text: look.text(text, len(text)))
    entries = [bare_entry(part) for part in checked]
    data = {id(entry): part.data for entry, part in zip(entries, checked, strict=True)}
    room = MediaRoom()
    if (chart := StoredChart.of_parts(parts.parts)) is not None:
        return chart_blocks(chart, look, room.take)
    blocks: list[Block] = []
    for place, entry in enumerate(entries):
        blocks += _part_blocks(
            entry, lambda each: ContentPart(each.mime, data=data[id(each)]), place, look, knob, room
        )
    return tuple(blocks)


def stored_parts(
    store: object, blob_id: str, look: Look, knob: str, room: MediaRoom, number: int | None = None
) -> tuple[Block, ...]:
    """Return the parts of a stored result, as blocks; none where the store cannot be read in place.

    Args:
        number: which part (1-based); all of them when None.

    Raises:
        BlobStoreError: the list is gone or damaged.
    """
    if not is_local(store):
        return ()
    local = store

    def read(entry: PartEntry) -> ContentPart | None:
        try:
            return read_part(local, entry)
        except (BlobStoreError, InvalidBlobIdError, OSError):
            return None

    entries = read_entries(local, blob_id)
    if number is None and is_chart([entry.mime for entry in entries]):
        chart = StoredChart.of_parts([part for entry in entries if (part := read(entry)) is not None])
        if chart is not None:
            return chart_blocks(chart, look, room.take)
    blocks: list[Block] = []
    for place, entry in enumerate(entries):
        if number in (None, place + 1):
            blocks += _part_blocks(entry, read, place, look, knob, room)
    return tuple(blocks)


def call_parts(call: Call, trace: Trace, look: Look, room: MediaRoom) -> tuple[Block, ...]:
    """Return what a call gave beside text: its images, sounds, JSON values and links.

    The texts stand in what came back. While the run goes on, its card is drawn many times a second, so that nothing is
    read for it.
    """
    finished = call.finished
    if finished is None or finished.content_kind != "parts" or finished.blob is None or trace.blobs is None:
        return ()
    if trace.ended is None:
        return (Notice("Images and sounds are shown when the run has ended.", "muted"),)
    try:
        blocks = stored_parts(trace.blobs, finished.blob, look, "trace.parts", room)
    except (BlobStoreError, InvalidBlobIdError, OSError):
        return (Notice("The parts of this result are gone: the blob was collected.", "muted"),)
    shown = tuple(block for block in blocks if not isinstance(block, Lines | Code))
    return (Section("parts", shown),) if shown else ()


def stored_media(data: bytes, name: str, look: Look, knob: str, room: MediaRoom) -> tuple[Block, ...]:
    """Return a blob of bytes as the image or the sound that it is; none where it is neither."""
    facts = media_facts(data)
    if facts.mime is None:
        return ()
    entry = PartEntry(
        "audio" if facts.mime.startswith("audio/") else "image",
        facts.mime,
        name,
        len(data),
        width=facts.width,
        height=facts.height,
        seconds=facts.seconds,
    )
    return _media(entry, lambda _: ContentPart(entry.mime, data=data), 0, look, knob, room)


def _part_blocks(
    entry: PartEntry, read: ReadPart, place: int, look: Look, knob: str, room: MediaRoom
) -> Sequence[Block]:
    own = f"{knob}[{place}]"
    if entry.kind == "link":
        return (_link(entry, look), *_notes(entry, look))
    if entry.kind in ("image", "audio"):
        return (*_media(entry, read, place, look, own, room), *_notes(entry, look))
    if entry.kind in ("text", "json"):
        return (*_named(entry, look), *_readable(entry, read, look, own), *_notes(entry, look))
    return (Notice(look.line(entry.placeholder, 400), "muted"), *_inspect(entry))


def _notes(entry: PartEntry, look: Look) -> tuple[Block, ...]:
    return tuple(Notice(look.line(note, 300), "warn") for note in entry.notes[:4])


def _named(entry: PartEntry, look: Look) -> tuple[Block, ...]:
    """Return the line over a text that has a name, an origin or a type of its own."""
    plain = entry.mime in ("text/plain", "application/json")
    said = [entry.name, "" if plain else entry.mime, f"from {entry.uri}" if entry.uri else ""]
    line = " · ".join(each for each in said if each)
    return (Paragraph((Span(look.line(line, 300), ("muted",)),)),) if line else ()


def _inspect(entry: PartEntry) -> tuple[Block, ...]:
    return (Commands((f"%reyn inspect {entry.blob}",), "stored"),) if entry.blob else ()


def _readable(entry: PartEntry, read: ReadPart, look: Look, knob: str) -> tuple[Block, ...]:
    if entry.blob and entry.size > _PARSED:
        return (
            Notice(look.line(f"{entry.facts}: too long to be shown here", 300), "muted"),
            *_inspect(entry),
        )
    text, value = entry.text, entry.value
    if entry.blob:
        part = read(entry)
        if part is None:
            return (_gone(entry, look),)
        text, value = part.text or "", part.json
    shown: Block = (
        text_lines(text, look, f"{knob}.text") if entry.kind == "text" else _json(value, look, knob)
    )
    return (shown, *_inspect(entry))


def _json(value: object, look: Look, knob: str) -> Block:
    if isinstance(value, dict | list):
        return tree(value, look, f"{knob}.json")
    return Code(look.compact(value))


def _gone(entry: PartEntry, look: Look) -> Notice:
    return Notice(look.line(f"{entry.facts}: its blob is gone or cannot be read", 300), "muted")


def _link(entry: PartEntry, look: Look) -> Paragraph:
    """Return a link with the host that it really leads to; an address that is none of the web's stays text."""
    # As it is shown: an address that held a secret leads nowhere.
    address = link_address(look.line(entry.uri, URI_BYTES))
    name = look.line(entry.name or entry.uri, 200)
    beside = f" ({look.line(link_destination(entry.uri), 120)}{f', {entry.mime}' if entry.mime else ''})"
    return Paragraph((Span(name, (), address), Span(beside, ("muted",))))


def _media(
    entry: PartEntry, read: ReadPart, place: int, look: Look, knob: str, room: MediaRoom
) -> tuple[Block, ...]:
    facts = [entry.mime]
    if entry.width and entry.height:
        facts.append(f"{entry.width}×{entry.height}")
    if entry.seconds:
        facts.append(formatting.seconds(entry.seconds))
    facts.append(formatting.size(entry.size))
    name = look.line(entry.name, 120)
    caption = " · ".join([*([name] if name else []), *facts])
    if not room.take(entry.size):
        said = f"{caption}: left out to keep this view small; all of it: {knob}.data"
        return (Notice(said, "muted"), *_inspect(entry))
    part = read(entry)
    if part is None or part.data is None:
        return (_gone(entry, look),)
    found = media_facts(part.data)
    is_image = entry.kind == "image"
    drawn = found.mime == entry.mime and (not is_image or _is_drawable(found.width, found.height))
    if not drawn or len(part.data) != entry.size:
        return (Notice(f"{caption}: its bytes are not what the record says", "warn"), *_inspect(entry))
    alt = name or f"{'image' if is_image else 'sound'} {place + 1} of this result"
    coded = base64.b64encode(part.data).decode()
    return (Media(entry.mime, coded, alt, caption, found.width, found.height),)


def _is_drawable(width: int, height: int) -> bool:
    return 0 < width * height <= MAX_PIXELS and max(width, height) <= MAX_SIDE
