"""Read the metadata at the beginning of a GGUF file.

Invariant: only the header is read. A header that cannot be read is llama.cpp's to refuse, since it says more about it.
Source: the GGUF specification of ggml, versions 2 and 3.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"
CHAT_TEMPLATE = b"tokenizer.chat_template"
# Bytes of a value, by its type.
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_LONGEST_KEY = 1 << 16  # bytes, by the specification
_MOST_STRINGS = 10_000_000  # in an array; no vocabulary comes near it


class _HeaderError(Exception):
    """The header ends early or is of an unknown form."""


def lacks_chat_template(file: Path) -> bool:
    """Return whether a GGUF file has no chat template, or an empty one.

    Args:
        file: The path of the file.

    Returns:
        False also if the header cannot be read.
    """
    try:
        with file.open("rb") as content:
            return not _has_template(content, file.stat().st_size)
    except (_HeaderError, OSError):
        return False


def _has_template(content: BinaryIO, size: int) -> bool:
    magic, version, _, pairs = struct.unpack("<4sIQQ", _read(content, 24))
    if magic != MAGIC or version not in (2, 3):
        raise _HeaderError
    for _ in range(pairs):
        key = _read(content, _length(content, _LONGEST_KEY))
        kind = _number(content, "<I")
        if key == CHAT_TEMPLATE and kind == _STRING:
            return bool(content.read(min(_length(content, size), _LONGEST_KEY)).strip())
        _skip(content, kind, size)
    return False


def _skip(content: BinaryIO, kind: int, size: int) -> None:
    """Skip one value; an array of strings, of which a vocabulary has many, string by string."""
    if kind == _ARRAY:
        kind, count = _number(content, "<I"), _length(content, size)
        if kind != _STRING:
            content.seek(_width(kind) * count, 1)
            return
        if count > _MOST_STRINGS:
            raise _HeaderError
        for _ in range(count):
            content.seek(_length(content, size), 1)
    else:
        content.seek(_length(content, size) if kind == _STRING else _width(kind), 1)


def _width(kind: int) -> int:
    if kind not in _SIZES:
        raise _HeaderError
    return _SIZES[kind]


def _length(content: BinaryIO, most: int) -> int:
    """Return a length, which cannot be more than the file has bytes."""
    length = _number(content, "<Q")
    if length > most:
        raise _HeaderError
    return length


def _number(content: BinaryIO, form: str) -> int:
    (number,) = struct.unpack(form, _read(content, struct.calcsize(form)))
    return int(number)


def _read(content: BinaryIO, count: int) -> bytes:
    found = content.read(count)
    if len(found) < count:
        raise _HeaderError
    return found
