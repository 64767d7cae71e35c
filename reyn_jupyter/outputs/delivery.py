"""The one choke point between a handler's value and the history.

Invariant: with a store, no delivery passes `OutputPolicy.inline_bytes` unless it is a summary of at most
`summary_bytes`; the bytes of an image or a sound are in none; and no delivery raises, whatever the value or the store
does. A store that fails leaves a bounded preview that says "not stored". Without a store everything goes inline, in
full: that was the session's choice.

Example::

    delivered = await deliver(frame, store=store, action="table__query", run=run_id)
    history.append(delivered.text)      # "[blob:0197…] json_array | 1000 entries | 1000×4 …"
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from reyn_jupyter.outputs.blobs.blob_writer import kind_of, pieces
from reyn_jupyter.outputs.blobs.random_access import is_local, read_handed_over
from reyn_jupyter.outputs.content import (
    DEFAULT_POLICY,
    BlobStore,
    Content,
    FileContent,
    Inline,
    OutputPolicy,
    Stored,
    Structured,
    Text,
    ToolOutput,
)
from reyn_jupyter.outputs.convert import ValueTooLargeError, to_content, type_name
from reyn_jupyter.outputs.parts.content_parts import (
    CheckedPart,
    ContentParts,
    check_parts,
    lone_value,
)
from reyn_jupyter.outputs.parts.stored_parts import bare_entry, described_parts, store_parts
from reyn_jupyter.outputs.summary import Mask, summarize, to_text, unmasked
from reyn_jupyter.support.encoding import clean, clip, utf8
from reyn_jupyter.support.text import count

SMALL_VALUES = (
    20_000  # values, and twenty times as many characters, that are converted on the caller's thread
)
LOOKED_THROUGH = 1 << 17  # characters of a text that are masked on the caller's thread
_REASON_BYTES = 120


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of a call as it was delivered.

    Attributes:
        text: exactly what the history holds.
        blob: the id of the stored content, None when it went inline or could not be stored.
        content_kind: "text", "json_array", "json_object", "json_value" or "parts".
        size: bytes of the whole content.
        frame: what restores the table whose records `text` holds, None where it holds none.
    """

    text: str
    blob: str | None
    content_kind: str
    size: int
    frame: dict[str, Any] | None = None


def _decide(
    value: object, policy: OutputPolicy, budget: int | None, mask: Mask = unmasked
) -> tuple[ToolOutput, str]:
    """The output, and the kind of its content."""
    kind = type(value)  # never isinstance: that asks the value for its __class__
    if issubclass(kind, Stored):
        own = cast("Stored", value)
        content = to_content(own.content, budget=budget)
        return Stored(clip(mask(str(own.summary)), policy.summary_bytes), content), kind_of(content)
    content = to_content(
        Text(cast("Inline", value).text) if issubclass(kind, Inline) else value, budget=budget
    )
    if isinstance(content, FileContent):
        return _decide_file(content, policy, budget, mask)
    text = _short_text(content, policy.inline_bytes)
    if text is not None:
        return Inline(text, _frame_of(content)), kind_of(content)
    if budget is not None and isinstance(content, Text) and len(content.text) > LOOKED_THROUGH:
        raise ValueTooLargeError
    return Stored(summarize(content, policy, mask=mask), content), kind_of(content)


def _decide_file(
    content: FileContent, policy: OutputPolicy, budget: int | None, mask: Mask
) -> tuple[ToolOutput, str]:
    if content.path.lstat().st_size <= policy.inline_bytes:
        held = read_handed_over(content)
        text = _short_text(held, policy.inline_bytes)
        if text is not None:
            _consume(content)
            return Inline(text), kind_of(held)
    if budget is not None:
        raise ValueTooLargeError
    return Stored(summarize(content, policy, mask=mask), content), kind_of(content)


def _short_text(content: Text | Structured, limit: int) -> str | None:
    """The content's text when it is at most `limit` bytes, else None; long content is never written out for this."""
    if isinstance(content, Structured) and content.source is None:
        if not isinstance(content.value, list | dict | str | int | float | None) or _surely_long(
            content.value, limit
        ):
            return None
        text = to_text(content.value)
    else:
        text = content.text if isinstance(content, Text) else str(content.source)
    if len(text) > limit:
        return None
    text = clean(text)
    return text if text.isascii() or len(text.encode()) <= limit else None


def _frame_of(content: Content) -> dict[str, Any] | None:
    return content.frame if isinstance(content, Structured) else None


def _surely_long(value: object, limit: int) -> bool:
    return isinstance(value, list | dict) and len(value) > limit


async def deliver(
    value: object,
    *,
    store: BlobStore | None,
    policy: OutputPolicy = DEFAULT_POLICY,
    action: str | None = None,
    run: str | None = None,
    mask: Mask = unmasked,
) -> Delivery:
    """Bring a handler's value into the history: inline when it is small, else stored with a summary.

    Args:
        value: whatever the handler returned.
        store: where large content goes; None puts everything inline, in full.
        policy: the bounds.
        action: the qualified name, for the blob's manifest.
        run: the run's id, for the blob's manifest.
        mask: covers what may not be shown in a summary, before it is cut; what is stored, or goes inline, is whole.
    """
    value = lone_value(value)
    if issubclass(type(value), ContentParts):
        return await _deliver_parts(cast("ContentParts", value), store, policy, action, run, mask)
    try:
        output, kind = _decide(value, policy, SMALL_VALUES, mask)
    except ValueTooLargeError:
        output, kind = await _in_thread(value, policy, mask)
    except Exception as problem:  # noqa: BLE001 - a hostile value or a file that went away
        output, kind = _unreadable(value, problem), "text"
    if isinstance(output, Inline):
        return Delivery(output.text, None, kind, len(output.text.encode()), output.frame)
    if store is None:
        return await asyncio.to_thread(_in_full, output.content)
    return await _store(output, store, policy, action, run, mask)


async def _deliver_parts(
    parts: ContentParts,
    store: BlobStore | None,
    policy: OutputPolicy,
    action: str | None,
    run: str | None,
    mask: Mask,
) -> Delivery:
    """Bring parts into the history: texts alone inline where they are small, anything else stored and described."""
    checked = await asyncio.to_thread(check_parts, parts, mask)
    size = sum(part.size for part in checked)
    bare = [bare_entry(part) for part in checked]
    if all(entry.is_read or entry.kind in ("link", "omitted") for entry in bare):
        text = described_parts(bare, checked, policy)
        if text is not None:
            return Delivery(text, None, "parts", size)
    if store is None:
        return Delivery(_parts_in_full(checked), None, "parts", size)
    counted = f"parts | {count(len(checked), 'part')} | {size:,} bytes"
    try:
        blob_id, entries = await store_parts(checked, store, action=action, run=run)
    except Exception as problem:  # noqa: BLE001 - a store that fails must not end the turn
        header = f"[not stored: {clip(mask(str(problem)), _REASON_BYTES)}] {counted}"
        return Delivery(described_parts(bare, checked, policy, header, mask) or header, None, "parts", size)
    header = f"[blob:{blob_id}] {counted}"
    return Delivery(described_parts(entries, checked, policy, header, mask) or header, blob_id, "parts", size)


def _parts_in_full(checked: Sequence[CheckedPart]) -> str:
    """Return texts in full and a sentence for each other part, which a session without a store does not keep."""
    entries = [bare_entry(part) for part in checked]
    return "\n".join(
        (entry.text if entry.kind == "text" else to_text(entry.value)) if entry.is_read else entry.placeholder
        for entry in entries
    )


async def _in_thread(value: object, policy: OutputPolicy, mask: Mask) -> tuple[ToolOutput, str]:
    try:
        return await asyncio.to_thread(_decide, value, policy, None, mask)
    except Exception as problem:  # noqa: BLE001 - see deliver
        return _unreadable(value, problem), "text"


def _unreadable(value: object, problem: Exception) -> Inline:
    return Inline(f"{type_name(value)} could not be read: {type_name(problem)}")


def _in_full(content: Content) -> Delivery:
    try:
        held = read_handed_over(content) if isinstance(content, FileContent) else content
        text = b"".join(pieces(held)).decode()
    except (OSError, RecursionError, MemoryError) as problem:
        return Delivery(_unreadable(content, RuntimeError(type_name(problem))).text, None, "text", 0)
    _consume(content)
    return Delivery(text, None, kind_of(held), len(text.encode()), _frame_of(held))


async def _store(
    output: Stored, store: BlobStore, policy: OutputPolicy, action: str | None, run: str | None, mask: Mask
) -> Delivery:
    content = output.content
    try:
        if isinstance(content, Structured) and not is_local(store) and hasattr(content.value, "blocks"):
            content = replace(content, value=await asyncio.to_thread(list, content.value))
        blob_id = await store.store(content, action=action, run=run)
        info = store.describe(blob_id) if is_local(store) else None
        kind, size = (
            (info.kind, info.size) if info else (kind_of(content), await asyncio.to_thread(_measure, content))
        )
        return Delivery(clip(f"[blob:{blob_id}] {output.summary}", policy.summary_bytes), blob_id, kind, size)
    except Exception as problem:  # noqa: BLE001 - a store that fails must not end the turn
        prefix = f"[not stored: {clip(mask(str(problem)), _REASON_BYTES)}] "
        return await asyncio.to_thread(_preview, output, prefix, policy, mask)


def _preview(output: Stored, prefix: str, policy: OutputPolicy, mask: Mask) -> Delivery:
    """The summary again, with the reason where the blob's id would stand."""
    content = output.content
    try:
        body = summarize(content, policy, prefix=len(utf8(prefix)), mask=mask)
    except Exception:  # noqa: BLE001 - the file may have gone with the store
        body = output.summary
    delivered = Delivery(clip(prefix + body, policy.summary_bytes), None, kind_of(content), _measure(content))
    _consume(content)
    return delivered


def _consume(content: Content) -> None:
    """A handed-over file is ours, so it goes even when no store took it."""
    if isinstance(content, FileContent):
        with suppress(OSError):
            content.path.unlink()


def _measure(content: Content) -> int:
    try:
        if isinstance(content, FileContent):
            return content.path.stat().st_size
        return sum(len(piece) for piece in pieces(content))
    except (OSError, RecursionError):
        return 0
