"""What a handler returns where its result is not one text or value: parts, each with a MIME type.

Invariant: what a handler builds here is taken as it is and may be hostile, since it comes from servers; `check_parts`
is the border. Behind it a part has a MIME type that is one, a name without hidden characters, no more bytes than the
bounds say, and an image or a sound is what its first bytes say. Nothing raises there: what had to be changed or left
out is said in `notes`. The content model is that of the Model Context Protocol (text, image, audio, resource link,
embedded resource, audience); nothing of its SDK is imported.

Example::

    return ContentParts((
        ContentPart.of_text("The sales by month:"),
        ContentPart("image/png", data=png, name="sales.png"),
    ))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, Literal, cast

from reyn_jupyter.outputs.content import JsonValue, Structured
from reyn_jupyter.outputs.convert import to_content, type_name
from reyn_jupyter.outputs.parts.media_type import UNKNOWN, clean_mime, media_facts
from reyn_jupyter.support.encoding import clean, clip, utf8
from reyn_jupyter.support.sanitize import printable

MAX_PARTS = 64
MAX_PART_BYTES = 32 << 20
MAX_TOTAL_BYTES = 64 << 20
MAX_PIXELS = 64_000_000  # an image of more is never drawn nor sent: a few KB of it may unpack to gigabytes
MAX_SIDE = 16_384
NAME_BYTES = 120
URI_BYTES = 2_000
LOOKED_THROUGH = 8_000  # characters of a name or an address

# What is read as text though its type does not begin so. SVG may hold scripts and unpack to anything: nothing draws it.
_WRITTEN = frozenset({"image/svg+xml", "application/json", "application/xml", "application/yaml"})

PartKind = Literal["text", "json", "image", "audio", "link", "bytes", "omitted"]
Audience = Literal["all", "person", "model"]
Mask = Callable[[str], str]


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True)
class ContentPart:
    """One part of a result, as a handler gives it.

    Attributes:
        mime: its MIME type, as "image/png".
        text, data, json: what it holds: one of them, or none for a link.
        uri: where it comes from, or what a link leads to. It is shown, never fetched.
        name: what people call it; the alternative text of an image.
        audience: for whom it is: with "person" the model is told that the part is there, and no more.

    Raises:
        ValueError: it holds more than one thing, or nothing.
    """

    mime: str
    text: str | None = None
    data: bytes | None = None
    json: JsonValue = ABSENT
    uri: str | None = None
    name: str = ""
    audience: Audience = "all"

    def __post_init__(self) -> None:
        held = [self.text is not None, self.data is not None, self.json is not ABSENT]
        if sum(held) > 1 or not (any(held) or self.uri is not None):
            raise ValueError("a part holds one of text, data and json, or a uri alone for a link")

    @classmethod
    def of_text(cls, text: str, mime: str = "text/plain", name: str = "") -> ContentPart:
        return cls(mime, text=text, name=name)

    @classmethod
    def of_json(cls, value: JsonValue, name: str = "") -> ContentPart:
        return cls("application/json", json=value, name=name)

    @classmethod
    def link(cls, uri: str, name: str = "", mime: str = "") -> ContentPart:
        return cls(mime, uri=uri, name=name)

    def __repr__(self) -> str:
        held = "data" if self.data is not None else "text" if self.text is not None else "json"
        what = "link" if self.data is None and self.text is None and self.json is ABSENT else held
        size = f", {len(self.data)} bytes" if issubclass(type(self.data), bytes) and self.data else ""
        return f"ContentPart({clip(str(self.mime), 80)!r}, {what}{size})"


@dataclass(frozen=True)
class ContentParts:
    """The parts of a result, in their order. One text part alone is delivered as that text, one JSON part as JSON."""

    parts: tuple[ContentPart, ...]

    def __init__(self, parts: Sequence[ContentPart]) -> None:
        object.__setattr__(self, "parts", tuple(parts))
        wrong = next((part for part in self.parts if not issubclass(type(part), ContentPart)), None)
        if wrong is not None:
            raise ValueError(f"parts are ContentPart objects, not {type_name(wrong)}")

    def __iter__(self) -> Iterator[ContentPart]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: int) -> ContentPart:
        return self.parts[index]


def given_parts(value: ContentParts) -> tuple[ContentPart, ...]:
    """Return the parts that an object really holds, whatever a class of the handler's answers for them."""
    try:
        held = object.__getattribute__(value, "parts")
    except AttributeError:
        return ()
    kept = tuple.__iter__(held) if issubclass(type(held), tuple) else iter(())
    return tuple(part for part in kept if type(part) is ContentPart)


def lone_value(value: object) -> object:
    """Return the text or the JSON value of a result that is one such part for everybody; anything else as it is.

    A part by itself is a result of one part.
    """
    if issubclass(type(value), ContentPart):
        value = ContentParts((cast("ContentPart", value),))
    if not issubclass(type(value), ContentParts):
        return value
    parts = given_parts(cast("ContentParts", value))
    if len(parts) != 1 or parts[0].audience != "all" or parts[0].uri is not None:
        return value
    [part] = parts
    if part.json is not ABSENT:
        return part.json
    plain = clean_mime(part.mime) in ("text/plain", "application/json")
    return part.text if issubclass(type(part.text), str) and plain else value


@dataclass(frozen=True)
class CheckedPart:
    """A part behind the border.

    Attributes:
        kind: how it is treated; "omitted" is one that was left out, for the reason in `notes`.
        size: bytes of what it holds.
        value: the JSON value of a "json" part.
        notes: what was changed, in sentences.
    """

    kind: PartKind
    mime: str
    name: str = ""
    size: int = 0
    text: str = ""
    data: bytes = b""
    value: JsonValue = None
    uri: str = ""
    sha256: str = ""
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    audience: Audience = "all"
    notes: tuple[str, ...] = ()


def check_parts(parts: ContentParts, mask: Mask = str) -> tuple[CheckedPart, ...]:
    """Return the parts within the bounds, with what had to be changed said beside them. Never raises.

    Args:
        mask: covers what may not be shown in a name or an address, before it is cut.
    """
    given = given_parts(parts)
    checked, total = [], 0
    for part in given[:MAX_PARTS]:
        made = _checked(part, mask)
        if total + made.size > MAX_TOTAL_BYTES:
            made = _omitted(
                made, f"it passes the {MAX_TOTAL_BYTES >> 20} MiB that all parts may have together"
            )
        total += made.size
        checked.append(made)
    if len(given) > MAX_PARTS:
        why = f"{len(given) - MAX_PARTS:,} more parts were left out: a result has at most {MAX_PARTS}"
        checked.append(CheckedPart("omitted", UNKNOWN, notes=(why,)))
    return tuple(checked)


def clean_name(name: object, mask: Mask = str) -> str:
    """Return a name on one line without hidden characters, in at most 120 bytes."""
    return _clean(name, mask, NAME_BYTES)


def _clean(text: object, mask: Mask, limit: int) -> str:
    if not issubclass(type(text), str):
        return ""
    return clip(printable(mask(clean(str.__str__(cast("str", text))[:LOOKED_THROUGH]))).strip(), limit)


def _checked(part: ContentPart, mask: Mask) -> CheckedPart:
    try:
        return _by_content(part, mask)
    except Exception as problem:  # noqa: BLE001 - a hostile value may raise anything at all
        return CheckedPart("omitted", UNKNOWN, notes=(f"it could not be read: {type_name(problem)}",))


def _by_content(part: ContentPart, mask: Mask) -> CheckedPart:
    mime, notes = _mime(part, mask)
    audience: Audience = part.audience if part.audience in ("person", "model") else "all"
    base = CheckedPart(
        "link",
        mime,
        clean_name(part.name, mask),
        uri=_clean(part.uri, mask, URI_BYTES),
        audience=audience,
        notes=notes,
    )
    if part.json is not ABSENT:
        content = to_content(Structured(part.json))
        value = content.value if isinstance(content, Structured) else str(content)
        return replace(base, kind="json", value=value, size=_json_size(value))
    if part.data is not None:
        return _binary(base, part.data)
    if part.text is None:
        return base
    if not issubclass(type(part.text), str):
        return _omitted(base, f"its text is {type_name(part.text)}, not a string")
    text = clean(str.__str__(part.text))
    size = len(utf8(text))
    if size > MAX_PART_BYTES:
        return _omitted(base, _too_large(size))
    return replace(base, kind="text", text=text, size=size, sha256=sha256(utf8(text)).hexdigest())


def _binary(base: CheckedPart, held: Any) -> CheckedPart:
    if not issubclass(type(held), bytes | bytearray | memoryview):
        return _omitted(base, f"its data is {type_name(held)}, not bytes")
    size = memoryview(held).nbytes
    if size > MAX_PART_BYTES:
        return _omitted(base, _too_large(size))
    data = bytes(held)
    facts = media_facts(data)
    base = replace(base, kind="bytes", data=data, size=size, sha256=sha256(data).hexdigest())
    family = base.mime.partition("/")[0]
    if family == "text" or base.mime in _WRITTEN:
        return _as_text(base)
    if family not in ("image", "audio"):
        return base
    if facts.mime is None or facts.mime.partition("/")[0] != family:
        why = f"it was said to be {base.mime}, and its bytes are not"
        return replace(base, mime=UNKNOWN, notes=(*base.notes, why))
    if facts.mime != base.mime:
        why = f"it was said to be {base.mime}, and is {facts.mime}"
        base = replace(base, mime=facts.mime, notes=(*base.notes, why))
    base = replace(base, width=facts.width, height=facts.height, seconds=facts.seconds)
    if family == "audio":
        return replace(base, kind="audio")
    if not facts.pixels:
        return replace(base, notes=(*base.notes, "its header does not say how large it is drawn"))
    if facts.pixels > MAX_PIXELS or max(facts.width, facts.height) > MAX_SIDE:
        return replace(base, notes=(*base.notes, f"{facts.width}×{facts.height} is too large to be drawn"))
    return replace(base, kind="image")


def _as_text(part: CheckedPart) -> CheckedPart:
    """Return bytes of a type that is written text as that text; as they are where they are no UTF-8."""
    try:
        return replace(part, kind="text", text=part.data.decode(), data=b"")
    except UnicodeDecodeError:
        return replace(part, notes=(*part.notes, "it is no UTF-8"))


def _mime(part: ContentPart, mask: Mask) -> tuple[str, tuple[str, ...]]:
    if part.mime == "" and part.data is None:
        plain = "application/json" if part.json is not ABSENT else "text/plain"
        return (plain if part.text is not None or part.json is not ABSENT else ""), ()
    mime = clean_mime(part.mime)
    if mime is None:
        return UNKNOWN, (f"its type was given as {clean_name(part.mime, mask)!r}, which is no MIME type",)
    return mime, ()


def _json_size(value: JsonValue) -> int:
    from reyn_jupyter.outputs.blobs.blob_writer import pieces

    return sum(len(piece) for piece in pieces(Structured(value)))


def _too_large(size: int) -> str:
    return f"it has {size:,} bytes, and a part may have {MAX_PART_BYTES >> 20} MiB"


def _omitted(part: CheckedPart, why: str) -> CheckedPart:
    return CheckedPart("omitted", part.mime, part.name, audience=part.audience, notes=(*part.notes, why))
