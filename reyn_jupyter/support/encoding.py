"""Text and JSON as bytes, and cutting them.

Invariant: what leaves this module is valid UTF-8. A lone surrogate (Python allows them, UTF-8 does not) becomes
U+FFFD in text and stays an escape in JSON; a cut falls between code points, never inside one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from reyn_jupyter.support.sanitize import printable

ELLIPSIS = "…"
QUOTED_BYTES = 200  # of a name that somebody else chose, in an answer
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be encoded.

    >>> clean("caf\\ud800")
    'caf\ufffd'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def utf8(text: str) -> bytes:
    """Return the text in UTF-8, lone surrogates replaced."""
    return clean(text).encode()


def compact(value: Any) -> str:
    """Return a plain JSON value as compact text: no spaces, non-ASCII as it is, key order kept.

    Raises:
        ValueError: a number that JSON does not have.
        TypeError: no JSON value.

    >>> compact({"b": [1, None], "a": "漢"})
    '{"b":[1,null],"a":"漢"}'
    """
    text = _encoder.encode(value)
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def clip(text: str, limit: int) -> str:
    """Return the text in at most `limit` bytes; when it is cut, an ellipsis ends it.

    >>> clip("漢字漢字", 9)
    '漢字…'
    """
    if limit <= 0:
        return ""
    head = clean(text[: limit + 1])
    encoded = head.encode()
    if len(encoded) <= limit and len(head) == len(text):
        return head
    if len(encoded) <= limit and len(text) <= limit + 1:
        return head
    room = limit - len(ELLIPSIS.encode())
    if room < 0:
        return encoded[:limit].decode(errors="ignore")
    return encoded[:room].decode(errors="ignore") + ELLIPSIS


def clip_line(text: str, limit: int = QUOTED_BYTES) -> str:
    """Return text in at most `limit` bytes of UTF-8, on one line, its hidden characters shown.

    >>> clip_line("a" * 300, 10), clip_line("a\\nb")
    ('aaaaaaa…', 'a␊b')
    """
    return clip(printable(text[: limit + 1]), limit)


def one_line(text: str) -> str:
    """Return a name on one line: as it is, or as a JSON string where it holds control characters or is blank.

    >>> one_line("id"), one_line("a\\nb")
    ('id', '"a\\\\nb"')
    """
    if text and text == text.strip() and not _CONTROL.search(text):
        return clean(text)
    return clean(json.dumps(text[:1000], ensure_ascii=False))


def boundary(raw: bytes, position: int) -> int:
    """Return `position` moved back to the start of the code point that it falls into.

    >>> boundary("a漢".encode(), 2)
    1
    """
    if position >= len(raw):
        return len(raw)
    start = position
    while start > 0 and position - start < 3 and raw[start] & 0xC0 == 0x80:
        start -= 1
    return start if raw[start] & 0xC0 != 0x80 else position
