"""Parts in a blob store: a list of them, small texts in it, everything else in a blob of its own.

Invariant: the list is a blob of the kind "parts", which nothing but `store_parts` makes; it holds no bytes of images
or sounds. Whoever reads one takes nothing in it for granted: what is damaged or gone is said, and its neighbours are
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError, canonical_id
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore, content_of
from reyn_jupyter.outputs.content import (
    BlobStore,
    BlobStoreError,
    JsonValue,
    OutputPolicy,
    Structured,
    Text,
)
from reyn_jupyter.outputs.parts.content_parts import (
    Audience,
    CheckedPart,
    ContentPart,
    ContentParts,
    PartKind,
    clean_name,
)
from reyn_jupyter.outputs.parts.media_type import UNKNOWN, clean_mime
from reyn_jupyter.outputs.summary import share_room, to_text
from reyn_jupyter.support.encoding import ELLIPSIS, clip, compact

KEPT_INSIDE = 800  # bytes: a text or a JSON value of more has a blob of its own
LIST_BYTES = 1 << 20  # a list of more than this was not written here
_LEAST_TEXT = 40  # bytes of a text that are worth showing


@dataclass(frozen=True)
class PartEntry:
    """One part as the list describes it.

    Attributes:
        size: bytes of what it holds.
        text, value: what a small text or JSON part holds.
        blob: the blob that holds it; "" for a small part, a link, and one that could not be stored.
        sha256: of the bytes of a text, an image, a sound or other bytes.
    """

    kind: PartKind
    mime: str = UNKNOWN
    name: str = ""
    size: int = 0
    text: str = ""
    value: JsonValue = None
    blob: str = ""
    uri: str = ""
    sha256: str = ""
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    audience: Audience = "all"
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> str:
        """Return its type, name and size in words: ``image/png "sales.png", 640×480, 12,345 bytes``."""
        facts = [self.mime + (f' "{self.name}"' if self.name else "")]
        if self.width and self.height:
            facts.append(f"{self.width}×{self.height}")
        if self.seconds:
            facts.append(f"{self.seconds:,.1f} s")
        if self.kind not in ("link", "omitted"):
            facts.append(f"{self.size:,} bytes")
        return ", ".join(facts)

    @property
    def placeholder(self) -> str:
        """Return the sentence that stands for the part where it cannot be shown itself."""
        said = f"; {'; '.join(self.notes)}" if self.notes else ""
        if self.kind == "omitted":
            return f"[a part was left out{said}]"
        if self.kind == "link":
            named = f' "{self.name}"' if self.name else ""
            return f"[link{named}{f', {self.mime}' if self.mime else ''}: {self.uri}{said}]"
        origin = f", from {self.uri}" if self.uri else ""
        whom = ", for the person alone" if self.audience == "person" else ""
        held = f": [blob:{self.blob}]" if self.blob else ""
        return f"[{self.facts}{origin}{whom}{said}{held}]"

    @property
    def is_read(self) -> bool:
        """Return whether a model reads the part itself, as text."""
        return self.kind in ("text", "json") and self.audience != "person"

    @property
    def record(self) -> dict[str, Any]:
        """Return it as plain JSON; what is as usual is left out."""
        pairs = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return {name: list(held) if name == "notes" else held for name, held, usual in pairs if held != usual}


def entry_of(record: object) -> PartEntry:
    """Return an entry from its record; what is no such record is an omitted part that says so."""
    if not isinstance(record, Mapping) or record.get("kind") not in get_args(PartKind):
        return PartEntry("omitted", notes=("its entry in the list is damaged",))
    found = {each.name: record.get(each.name) for each in fields(PartEntry)}
    seconds, audience = found["seconds"], found["audience"]
    notes = found["notes"] if isinstance(found["notes"], list) else []
    kind: PartKind = record["kind"]
    try:
        blob = canonical_id(_string(found["blob"])) if found["blob"] else ""
    except InvalidBlobIdError:
        blob = ""
    return PartEntry(
        kind,
        clean_mime(found["mime"]) or ("" if kind == "link" else UNKNOWN),
        clean_name(found["name"]),
        _count(found["size"]),
        _string(found["text"]),
        found["value"],
        blob,
        _string(found["uri"]),
        _string(found["sha256"]),
        _count(found["width"]),
        _count(found["height"]),
        float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e9 else 0.0,
        audience if audience in ("person", "model") else "all",
        tuple(_string(each) for each in notes[:20]),
    )


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def bare_entry(part: CheckedPart) -> PartEntry:
    """Return the entry of a part that is in no blob yet."""
    held = {
        each.name: getattr(part, each.name)
        for each in fields(PartEntry)
        if each.name not in ("blob", "text", "value")
    }
    return PartEntry(**held, text=part.text, value=part.value)


async def store_parts(
    parts: Sequence[CheckedPart], store: BlobStore, *, action: str | None, run: str | None
) -> tuple[str, tuple[PartEntry, ...]]:
    """Store each part, then the list of them.

    Returns:
        The id of the list, and its entries.

    Raises:
        BlobStoreError: the store could not take one.
    """
    entries = []
    for part in parts:
        entry = bare_entry(part)
        if part.kind in ("image", "audio", "bytes"):
            entry = replace(entry, blob=await store.store_bytes(part.data, action=action, run=run))
        elif part.kind in ("text", "json") and part.size > KEPT_INSIDE:
            content = Text(part.text) if part.kind == "text" else Structured(part.value)
            blob = await store.store(content, action=action, run=run)
            entry = replace(entry, text="", value=None, blob=blob)
        entries.append(entry)
    listed = Structured([entry.record for entry in entries], parts=True)
    return await store.store(listed, action=action, run=run), tuple(entries)


def described_parts(
    entries: Sequence[PartEntry],
    checked: Sequence[CheckedPart],
    policy: OutputPolicy,
    header: str = "",
    mask: Callable[[str], str] = str,
) -> str | None:
    """Return what the history holds of parts: texts as they are, a sentence for each of the others.

    Args:
        entries, checked: the same parts, as they are stored and as they were given.
        header: the first line, for parts that are stored; without one everything has to fit.
        mask: covers what may not be shown, before anything is cut.

    Returns:
        At most `policy.inline_bytes` bytes; None where there is no header and not everything fits.
    """
    pairs = zip(entries, checked, strict=True)
    lines = [_whole(entry, part, None if header else policy.inline_bytes) for entry, part in pairs]
    known = [line for line in lines if line is not None]
    whole = "\n".join([*([header] if header else []), *known])
    if len(known) == len(lines) and len(whole.encode()) <= policy.inline_bytes:
        return whole
    if not header:
        return None
    return _shortened(entries, checked, policy.inline_bytes, header, mask)


def _whole(entry: PartEntry, part: CheckedPart, limit: int | None) -> str | None:
    """Return all that stands for a part; None for a text that is longer than what fits anyway."""
    if not entry.is_read:
        return entry.placeholder
    if entry.size > (limit if limit is not None else KEPT_INSIDE):
        return None
    return part.text if entry.kind == "text" else compact(part.value)


def _shortened(
    entries: Sequence[PartEntry],
    checked: Sequence[CheckedPart],
    limit: int,
    header: str,
    mask: Callable[[str], str],
) -> str:
    """Return header, sentences and the beginnings of texts, which share what is left; what does not fit is counted."""
    room = limit - len(header.encode()) - len(_more(len(entries)).encode()) - 1
    texts = {
        place: mask((part.text if part.kind == "text" else to_text(part.value))[: limit * 8])[: limit * 4]
        for place, part in enumerate(checked)
        if entries[place].is_read
    }
    texts = dict(list(texts.items())[: max(1, room // (2 * _LEAST_TEXT))])
    needed = sum(len(text.encode()) + 1 for text in texts.values())
    others = [clip(mask(entry.placeholder), limit // 2) for entry in entries if not entry.is_read]
    for_texts = min(needed, max(room // 2, room - sum(len(line.encode()) + 1 for line in others)))
    left, kept = room - for_texts, 0
    for line in others:
        left -= len(line.encode()) + 1
        if left < 0:
            break
        kept += 1
    shares = iter(share_room(list(texts.values()), for_texts))
    shown = iter(others[:kept])
    lines = [
        (next(shares) if place in texts else None) if entry.is_read else next(shown, None)
        for place, entry in enumerate(entries)
    ]
    missing = lines.count(None)
    ends = [_more(missing)] if missing else []
    return clip("\n".join([header, *(line for line in lines if line is not None), *ends]), limit)


def _more(number: int) -> str:
    return f"{ELLIPSIS} {number} more parts; inspect lists them"


def read_entries(store: LocalBlobStore, blob_id: str) -> tuple[PartEntry, ...]:
    """Return what a stored list describes, by ordinary calls.

    Raises:
        BlobNotFoundError, BlobStoreError: there is no such blob, or it is no list of parts.
    """
    info = store.describe(blob_id)
    if info.kind != "parts" or info.size > LIST_BYTES:
        raise BlobStoreError(f"blob {blob_id} is {info.kind}, no list of parts")
    source = store.open(blob_id)
    try:
        raw = source.read(0, source.size)
    finally:
        source.close()
    return entries_in(content_of(raw, info))


def entries_in(content: object) -> tuple[PartEntry, ...]:
    """Return the entries of a loaded list. Raises BlobStoreError where it is none."""
    if not isinstance(content, Structured) or not content.parts or not isinstance(content.value, list):
        raise BlobStoreError("it is no list of parts")
    return tuple(entry_of(record) for record in content.value)


def read_part(store: LocalBlobStore, entry: PartEntry) -> ContentPart:
    """Return a part with all that it holds. Raises BlobNotFoundError, BlobStoreError."""
    own: dict[str, Any] = {"uri": entry.uri or None, "name": entry.name, "audience": entry.audience}
    if entry.kind in ("link", "omitted"):
        said = entry.uri if entry.kind == "link" else ""
        return ContentPart(entry.mime, **{**own, "uri": said})
    if not entry.blob:
        if entry.kind == "text":
            return ContentPart(entry.mime, text=entry.text, **own)
        return ContentPart(entry.mime, json=entry.value, **own)
    info = store.describe(entry.blob)
    source = store.open(entry.blob)
    try:
        raw = source.read(0, source.size)
    finally:
        source.close()
    if entry.kind == "text":
        return ContentPart(entry.mime, text=raw.decode(errors="replace"), **own)
    if entry.kind == "json":
        content = content_of(raw, info)
        value = content.value if isinstance(content, Structured) else None
        return ContentPart(entry.mime, json=value, **own)
    return ContentPart(entry.mime, data=raw, **own)


def read_parts(store: LocalBlobStore, blob_id: str) -> ContentParts:
    """Return the parts of a stored result, whole. Raises BlobNotFoundError, BlobStoreError."""
    return ContentParts([read_part(store, entry) for entry in read_entries(store, blob_id)])
