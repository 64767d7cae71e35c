"""The images and sounds of a result, for a model that takes them.

Invariant: what cannot be had any more, is too large for providers or is not for the model stays the sentence in the
text; nothing raises. No part for the person alone leaves the kernel here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from reyn_jupyter.models.base import Attachment, Medium
from reyn_jupyter.models.providers.attachments import is_sendable
from reyn_jupyter.outputs.content import BlobStore
from reyn_jupyter.outputs.parts.stored_parts import PartEntry, entries_in
from reyn_jupyter.runtime.run import Outcome

MOST_ATTACHED = 8  # of one result


async def attachments_of(
    outcome: Outcome, store: BlobStore | None, media: Collection[Medium], redact: Callable[[str], str]
) -> tuple[Attachment, ...]:
    """Return the images and sounds of a result that a model takes, in their order.

    Args:
        outcome: of a call that ran now, or whose answer came from a record.
        store: holds its parts; None keeps none.
        media: what the model takes beside text.
        redact: takes secrets out of names.
    """
    if store is None or not media or outcome.blob is None or outcome.content_kind != "parts":
        return ()
    found: list[Attachment] = []
    try:
        entries = entries_in(await store.load(outcome.blob))
        for entry in entries:
            if len(found) < MOST_ATTACHED and _is_seen(entry, media):
                found.append(await _attachment(entry, store, redact))
    except Exception:  # noqa: BLE001 - a store may fail in ways of its own, and the text says what is missing
        return tuple(found)
    return tuple(found)


def _is_seen(entry: PartEntry, media: Collection[Medium]) -> bool:
    wanted = entry.kind in media and entry.audience != "person" and bool(entry.blob)
    return wanted and is_sendable(entry.mime, entry.size, entry.width, entry.height)


async def _attachment(entry: PartEntry, store: BlobStore, redact: Callable[[str], str]) -> Attachment:
    return Attachment(
        entry.mime,
        entry.sha256,
        entry.size,
        entry.blob,
        redact(entry.name),
        entry.width,
        entry.height,
        entry.seconds,
        await store.load_bytes(entry.blob),
    )
