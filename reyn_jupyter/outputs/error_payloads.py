"""The texts that a model reads to find its way, and when something failed.

Listings, descriptions and catalog errors are never stored: an answer that must be inspected cannot guide anybody. Each
is bounded instead. What a handler raised is no guide: its first bytes are shown, and a long text is stored.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from reyn_jupyter.outputs.content import DEFAULT_POLICY, BlobStore, OutputPolicy, Text
from reyn_jupyter.outputs.convert import to_json, type_name
from reyn_jupyter.outputs.delivery import LOOKED_THROUGH, Delivery
from reyn_jupyter.outputs.summary import Mask, unmasked
from reyn_jupyter.support.encoding import clean, clip, compact, utf8

SHOWN_ERROR = 300  # bytes of a handler's error that the history holds
NAME_BYTES = 200  # bytes of a name that an error quotes
HINT_BYTES = 600
_QUOTED = re.compile(r"(['\"`])((?:(?!\1).){50,})\1", re.DOTALL)
_WHOLE = ("error", "hint")
_CUT = "clipped"


async def deliver_error(
    error: BaseException | str,
    *,
    store: BlobStore | None,
    kind: str | None = None,
    hint: str = "",
    code: str | None = None,
    policy: OutputPolicy = DEFAULT_POLICY,
    action: str | None = None,
    run: str | None = None,
    mask: Mask = unmasked,
) -> Delivery:
    """Return what a handler raised, as ``{"error": "<Type>: <first 300 bytes>", "hint", "blob": id or null}``.

    Args:
        error: the exception, or its text.
        store: takes the whole text when it is longer than `policy.inline_bytes`; None shows it in full.
        kind: the exception's type name; taken from the exception when it is None.
        hint: what to do next.
        code: the kind of error for programs; a member of the answer where there is one.
        policy, action, run, mask: as for `delivery.deliver`.
    """
    kind = clip(kind or type_name(error), 100) if kind or isinstance(error, BaseException) else ""
    message = _message(error)
    whole = f"{kind}: {message}" if kind else message
    shown = mask(message) if len(message) <= LOOKED_THROUGH else await asyncio.to_thread(mask, message)
    size, blob, hint = len(utf8(whole)), None, mask(hint)
    if store is not None:
        shown = clip(shown, SHOWN_ERROR)
        hint = clip(hint, HINT_BYTES)
        if size > policy.inline_bytes:
            try:
                blob = await store.store(Text(whole), action=action, run=run)
            except Exception:  # noqa: BLE001 - a store that fails must not end the turn
                hint = f"{hint} The whole text was not stored.".strip()
    answer = {"error": f"{kind}: {shown}" if kind else shown, "hint": hint, "blob": blob}
    if code is not None:
        answer["code"] = code
    return Delivery(compact(answer), blob, "text", size)


def _message(error: BaseException | str) -> str:
    if isinstance(error, str):
        return clean(error)
    try:
        return clean(str(error))
    except Exception:  # noqa: BLE001 - an exception may have a __str__ that fails
        return "the error has no readable text"


def clip_name(name: str) -> str:
    """A name as an error may quote it: at most 200 bytes."""
    return clip(name, NAME_BYTES)


def bound_guide(payload: Any, limit: int = DEFAULT_POLICY.answer_bytes) -> Any:
    """Bound what guides the model, so that its compact JSON takes at most `limit` bytes.

    `error` and `hint` stay whole, except that a name quoted in them is clipped to 200 bytes. Of everything else the
    largest parts are shortened: lists lose their end, long texts are clipped. The member `clipped` then says so.

    Args:
        payload: a dict (a listing, a description, an error), a list, or a text.
        limit: bytes of UTF-8.

    Returns:
        the payload itself when it fits, else a shortened copy of the same type.

    >>> bound_guide({"error": "no such action", "suggestions": ["x" * 40] * 9}, 150)["suggestions"]
    ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx']
    """
    if isinstance(payload, str):
        return clip(payload, limit)
    payload = _quotes_clipped(payload)
    try:
        size = _size(payload)
    except (TypeError, ValueError, RecursionError):
        payload = to_json(payload)
        size = _size(payload)
    if size <= limit:
        return payload
    if not isinstance(payload, dict):
        return _shrunk(payload, limit)
    whole = {key: payload[key] for key in _WHOLE if isinstance(payload.get(key), str)}
    note = {_CUT: f"cut to {limit} bytes; ask for less, or for the next page"}
    room = limit - _size({**whole, **note}) - 1
    if room < 0:
        share = (limit - 100) // 2
        return {key: clip(text, max(0, share // 2)) for key, text in whole.items()}
    rest = _shrunk({key: item for key, item in payload.items() if key not in whole}, room)
    return {**{key: whole.get(key, rest.get(key)) for key in payload if key in whole or key in rest}, **note}


def _quotes_clipped(payload: Any) -> Any:
    if not isinstance(payload, dict):
        return payload
    clipped = {
        key: _QUOTED.sub(lambda found: found[1] + clip_name(found[2]) + found[1], payload[key])
        for key in _WHOLE
        if isinstance(payload.get(key), str) and len(payload[key]) > NAME_BYTES // 4
    }
    return {**payload, **clipped} if clipped else payload


def _size(value: Any) -> int:
    return len(compact(value).encode())


def _shrunk(value: Any, room: int) -> Any:
    """A copy of a JSON value whose compact text takes at most `room` bytes (a few bytes are always needed)."""
    if _size(value) <= room:
        return value
    if isinstance(value, str):
        return _shrunk_text(value, room)
    if isinstance(value, list):
        return _shrunk_list(value, room)
    if isinstance(value, dict):
        return _shrunk_dict(value, room)
    return None


def _shrunk_text(text: str, room: int) -> str:
    limit = room - 2
    while limit > 0:
        shorter = clip(text, limit)
        excess = _size(shorter) - room
        if excess <= 0:
            return shorter
        limit -= max(1, excess // 2 if excess < limit else limit // 2)
    return ""


def _shrunk_list(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    left = room - 2
    for item in items:
        size = _size(item) + 1
        if size > left + 1:
            break
        kept.append(item)
        left -= size
    if not kept and items and room > 80:
        return [_shrunk(items[0], room - 2)]
    return kept


def _shrunk_dict(members: dict[str, Any], room: int) -> dict[str, Any]:
    """Give small members what they need and share the rest among the large ones."""
    overhead = {key: _size(key) + 2 for key in members}
    sizes = {key: _size(item) for key, item in members.items()}
    left, granted = room - 2, {}
    for number, key in enumerate(sorted(members, key=lambda name: sizes[name] + overhead[name])):
        fair = left // (len(members) - number) - overhead[key]
        granted[key] = min(sizes[key], fair)
        left -= min(max(granted[key], 0) + overhead[key], left)
    return {key: _shrunk(item, granted[key]) for key, item in members.items() if granted[key] >= 4}
