"""Blob ids: UUID version 7, canonical lower-case text.

Invariant: ids made in one process sort in the order in which they were made, whatever the clock does. An id that
comes from outside is parsed as a UUID before anything else sees it, so that no path travels in one.
"""

from __future__ import annotations

import re
import threading
import uuid

from reyn_jupyter.support.encoding import clip

_WRITTEN = re.compile(r"\s*(?:\[?blob:)?([0-9A-Za-z-]{32,36})\]?\s*")
_lock = threading.Lock()
_last = 0


class InvalidBlobIdError(ValueError):
    """Text that cannot be a blob id, whatever the store holds."""

    def __init__(self, text: object) -> None:
        shown = clip(text, 200) if isinstance(text, str) else type(text).__name__
        super().__init__(f"{shown!r} is no blob id")
        self.hint = "A blob id is the UUID that a summary shows as [blob:<id>]; give that text."


def new_blob_id() -> str:
    """A fresh id, greater than every id made before in this process (RFC 9562, UUID version 7)."""
    global _last
    from uuid_utils.compat import uuid7

    with _lock:
        _last = max(uuid7().int, _last + 1)
        return str(uuid.UUID(int=_last))


def canonical_id(text: object) -> str:
    """The id in canonical form; ``[blob:<id>]`` as a summary shows it is taken too.

    Raises:
        InvalidBlobIdError: the text is no UUID.

    >>> canonical_id("[blob:0197F9A2-7C1B-7E3C-8A55-3B0F8E1D2C4A]")
    '0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a'
    """
    blob_id = _parse(text)
    if blob_id is None:
        raise InvalidBlobIdError(text)
    return blob_id


def is_blob_id(text: object) -> bool:
    """Return whether `canonical_id` takes the text, whatever the store holds.

    >>> is_blob_id("orders.csv"), is_blob_id("[blob:0197F9A2-7C1B-7E3C-8A55-3B0F8E1D2C4A]")
    (False, True)
    """
    return _parse(text) is not None


def _parse(text: object) -> str | None:
    written = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    try:
        return str(uuid.UUID(written[1])) if written is not None else None
    except ValueError:
        return None
