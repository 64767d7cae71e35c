"""Content on its way to the disk: its bytes in pieces, and what is counted while they pass.

Invariant: large content is never joined in memory. A piece is at most a few megabytes unless it was one string from
the start.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reyn_jupyter.outputs.blobs.manifest import BlobKind
from reyn_jupyter.outputs.content import Content, FileContent, Structured, Text
from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.outputs.json_index import JsonIndex, Member
from reyn_jupyter.outputs.line_index import LineCounter, LineIndex
from reyn_jupyter.support.encoding import compact, utf8
from reyn_jupyter.support.files.plain_files import parse_json

INDEX_FROM = 1 << 20  # bytes; smaller blobs are indexed in passing whenever they are read
_BLOCK_ITEMS = 1000
_TEXT_BLOCK = 1 << 20
_FORMAT = 1

Index = LineIndex | JsonIndex


def kind_of(content: Content) -> BlobKind:
    if isinstance(content, Text):
        return "text"
    if isinstance(content, FileContent):
        return "text" if content.kind == "text" else "json_array"
    if content.parts:
        return "parts"
    if isinstance(content.value, dict):
        return "json_object"
    return (
        "json_value"
        if content.value is None or isinstance(content.value, str | int | float)
        else "json_array"
    )


def entries_of(content: Text | Structured) -> int | None:
    """Elements or keys of a structure; None for what is counted while it is written."""
    if isinstance(content, Text) or kind_of(content) == "json_value":
        return None
    return len(content.value)


def pieces(content: Text | Structured) -> Iterator[bytes]:
    """The bytes that are stored for content: text as UTF-8, a structure as compact JSON or as its source."""
    if isinstance(content, Text):
        yield from _text_pieces(content.text)
    elif content.source is not None:
        yield from _text_pieces(content.source)
    elif hasattr(content.value, "blocks"):
        yield from _array_pieces(content.value.blocks())
    elif isinstance(content.value, list) and len(content.value) > _BLOCK_ITEMS:
        value = content.value
        yield from _array_pieces(value[at : at + _BLOCK_ITEMS] for at in range(0, len(value), _BLOCK_ITEMS))
    elif isinstance(content.value, dict) and len(content.value) > _BLOCK_ITEMS:
        yield from _object_pieces(content.value)
    else:
        yield _json(content.value)


def _text_pieces(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _TEXT_BLOCK):
        yield utf8(text[start : start + _TEXT_BLOCK])


def _array_pieces(blocks: Iterable[list[Any]]) -> Iterator[bytes]:
    opening = b"["
    for block in blocks:
        yield opening + _json(block)[1:-1]
        opening = b","
    yield b"[]" if opening == b"[" else b"]"


def _object_pieces(value: dict[str, Any]) -> Iterator[bytes]:
    opening, pairs = b"{", iter(value.items())
    while block := dict(islice(pairs, _BLOCK_ITEMS)):
        yield opening + _json(block)[1:-1]
        opening = b","
    yield b"}"


def _json(value: Any) -> bytes:
    try:
        return compact(value).encode()
    except (ValueError, TypeError, RecursionError):
        return compact(to_json(value)).encode()


@dataclass(frozen=True)
class ContentSurvey:
    """The facts gathered while the bytes passed: their number, their hash, and the lines when they were counted."""

    size: int
    sha256: str
    lines: LineIndex | None


def survey(parts: Iterable[bytes], write: Any, *, count_lines: bool) -> ContentSurvey:
    """Hand every piece to `write` while hashing and counting it."""
    digest = hashlib.sha256()
    counter = LineCounter() if count_lines else None
    size = 0
    for part in parts:
        write(part)
        digest.update(part)
        size += len(part)
        if counter:
            counter.feed(part)
    return ContentSurvey(size, digest.hexdigest(), counter.finish() if counter else None)


def dump_index(index: Index, size: int) -> bytes:
    """An index as bytes: one line of JSON, then the offsets as little-endian integers."""
    if isinstance(index, LineIndex):
        head: dict[str, Any] = {"kind": "lines", "count": index.count, "arrays": [["Q", len(index.before)]]}
        arrays = [index.before]
    else:
        arrays = [index.before, index.depths, index.flags]
        rows = None if index.members is None else [[m.key, m.start, m.end, m.inner] for m in index.members]
        head = {
            "kind": index.kind, "count": index.count, "start": index.start, "end": index.end, "members": rows,
            "arrays": [[numbers.typecode, len(numbers)] for numbers in arrays],
        }  # fmt: skip
    line = json.dumps({"format": _FORMAT, "size": size, **head}, separators=(",", ":"))
    return line.encode() + b"\n" + b"".join(_little(numbers) for numbers in arrays)


def load_index(raw: bytes, size: int) -> Index:
    """Read an index again. Raises ValueError when it is torn, of another format or of another blob."""
    line, _, rest = raw.partition(b"\n")
    try:
        head = parse_json(line)
        if head["format"] != _FORMAT or head["size"] != size:
            raise ValueError("an index of something else")
        arrays: list[array[int]] = []
        for typecode, length in head["arrays"]:
            numbers: array[int] = array(typecode)
            if not isinstance(length, int) or not 0 <= length <= len(rest):
                raise ValueError("a torn index")
            used = length * numbers.itemsize
            numbers.frombytes(rest[:used])
            if len(numbers) != length:
                raise ValueError("a torn index")
            arrays.append(_native(numbers))
            rest = rest[used:]
        if head["kind"] == "lines":
            return LineIndex(head["count"], size, arrays[0])
        rows = head["members"]
        members = None if rows is None else tuple(Member(*row) for row in rows)
        return JsonIndex(
            head["kind"], head["start"], head["end"], head["count"], arrays[0], arrays[1], arrays[2], members
        )
    except (KeyError, IndexError, TypeError) as problem:
        raise ValueError(f"a torn index: {problem}") from None


def _native(numbers: array[int]) -> array[int]:
    import sys

    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _little(numbers: array[int]) -> bytes:
    return _native(array(numbers.typecode, numbers)).tobytes()
