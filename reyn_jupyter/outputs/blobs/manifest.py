"""The manifest of a stored blob: what is known of it without opening it.

Invariant: a manifest is one small JSON object beside its blob. A reader that finds none, or a torn one, still knows
the blob's kind and size from the file itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

from reyn_jupyter.outputs.blobs.ids import canonical_id
from reyn_jupyter.outputs.frames.frame_info import is_frame_info
from reyn_jupyter.support.files.plain_files import is_moment, parse_json

BlobKind = Literal["text", "json_array", "json_object", "json_value", "bytes", "parts"]
SUFFIXES: dict[str, str] = {"text": ".txt", "bytes": ".bin"}
COUNTED = {
    "text": "lines",
    "json_array": "entries",
    "json_object": "keys",
    "bytes": "lines",
    "parts": "parts",
}


@dataclass(frozen=True)
class BlobInfo:
    """A manifest.

    Attributes:
        id: the blob.
        kind: what it holds.
        size: bytes.
        entries: lines of a text, elements of an array, keys of an object; None when nobody counted.
        sha256: of the bytes, in hex; "" when the manifest was lost.
        created: seconds since the epoch.
        action: the tool or action that gave it.
        run: the run in which it was stored.
        frame: what restores a table from the records (`frames`).
        source: the JSON came as text and is kept as it was written, lines included.
    """

    id: str
    kind: BlobKind
    size: int
    entries: int | None = None
    sha256: str = ""
    created: float = 0.0
    action: str | None = None
    run: str | None = None
    frame: dict[str, Any] | None = None
    source: bool = False

    @property
    def is_json(self) -> bool:
        """Return whether it is a JSON value of the action's; the list of a result's parts is none."""
        return self.kind.startswith("json")

    @property
    def has_lines(self) -> bool:
        """True if `lines:` makes sense: texts, raw bytes and JSON that keeps its own line breaks."""
        return self.kind != "parts" and (not self.is_json or self.source)

    @property
    def counted(self) -> str:
        """The unit of `entries`: lines, entries or keys."""
        return COUNTED.get(self.kind, "entries")

    @property
    def shape(self) -> tuple[int, int] | None:
        return (int(self.frame["rows"]), int(self.frame["cols"])) if self.frame else None

    @property
    def headline(self) -> str:
        """Kind and count as summaries write them: ``json_array | 60 entries``, with the shape of a frame."""
        return headline(self.kind, self.entries, self.frame)

    def manifest(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":")).encode()

    @classmethod
    def from_manifest(cls, raw: bytes, blob_id: str) -> BlobInfo:
        """Read a manifest. Raises ValueError when it is torn or belongs to another blob."""
        try:
            info = cls(**parse_json(raw))
        except TypeError as problem:
            raise ValueError(str(problem)) from None
        sound = _is_sound(info) and (info.frame is None or is_frame_info(info.frame, info.size))
        if not sound or canonical_id(info.id) != blob_id:
            raise ValueError(f"not the manifest of {blob_id}")
        return info


KINDS = ("text", "json_array", "json_object", "json_value", "bytes", "parts")


def _is_sound(info: BlobInfo) -> bool:
    texts = all(text is None or isinstance(text, str) for text in (info.action, info.run))
    counts = all(_is_count(count) for count in (info.size, 0 if info.entries is None else info.entries))
    known = isinstance(info.sha256, str) and isinstance(info.source, bool) and info.kind in KINDS
    return texts and counts and known and is_moment(info.created)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 63


def headline(kind: str, entries: int | None, frame: dict[str, Any] | None = None) -> str:
    counted = "" if entries is None or kind not in COUNTED else f" | {entries} {COUNTED[kind]}"
    return f"{kind}{counted}" + (f" | {frame['rows']}×{frame['cols']}" if frame else "")


@dataclass(frozen=True)
class GcResult:
    """The blobs that a garbage collection removed."""

    removed: tuple[str, ...]
    size: int

    @classmethod
    def of(cls, infos: Sequence[BlobInfo]) -> GcResult:
        """Return the result of removing these blobs."""
        return cls(tuple(info.id for info in infos), sum(info.size for info in infos))


def collectable(
    infos: Iterable[BlobInfo],
    *,
    max_age: float | timedelta | None,
    max_bytes: int | None,
    keep: Callable[[BlobInfo], bool],
) -> list[BlobInfo]:
    """Return which blobs go: those older than `max_age` seconds, then the oldest until the rest fits `max_bytes`."""
    age, now = max_age.total_seconds() if isinstance(max_age, timedelta) else max_age, time.time()
    listed = sorted(infos, key=lambda info: (info.created, info.id))
    total = sum(info.size for info in listed)
    removed = []
    for info in listed:
        old = age is not None and now - info.created > age
        over = max_bytes is not None and total > max_bytes
        if (old or over) and not keep(info):
            removed.append(info)
            total -= info.size
    return removed
