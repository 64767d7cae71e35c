"""Bytes of a page or a file as text.

Source: the WHATWG Encoding Standard for what a label means ("latin1" is windows-1252), by the library webencodings; the
order of BOM, label and `meta` is the HTML standard's.
"""

from __future__ import annotations

import re
from typing import Any

_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_PRESCAN = 1024
_LABEL = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_SAMPLE = 64 << 10  # bytes that a guess looks at


def charset_of(content_type: str) -> str:
    """Return the label that a Content-Type names; "" where it names none.

    >>> charset_of('text/html; charset="ISO-8859-1"')
    'ISO-8859-1'
    """
    found = _LABEL.search(content_type)
    return found[1] if found else ""


def decode_text(data: bytes, label: str = "", *, html: bool = False) -> str:
    """Return bytes as text: by their byte order mark, the label, what a page says of itself, or a guess.

    Args:
        label: what a server calls the encoding; one that is unknown is passed over.
        html: look for a `meta` element.

    Example:
        >>> decode_text("Grüße".encode("latin-1"), "iso-8859-1")
        'Grüße'
    """
    import webencodings

    known = webencodings.lookup(label) if label else None
    if known is None and html and (meta := _META.search(data[:_PRESCAN])):
        known = webencodings.lookup(meta[1].decode("ascii"))
        if known is not None and known.name.startswith("utf-16"):
            known = webencodings.UTF8  # a page that could be read so far is not in it
    if known is None:
        known = webencodings.UTF8 if _is_utf8(data) else _guess(data)
    text: str = webencodings.decode(data, known)[0]
    return text


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _guess(data: bytes) -> Any:
    import webencodings
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    found = webencodings.lookup(best.encoding.replace("_", "-")) if best is not None else None
    return found or webencodings.lookup("windows-1252")
