"""Read a part of a stored blob, as the model sees it.

Invariants: an answer never passes its cap in bytes, is never stored again, and costs memory in proportion to the cap,
not to the blob. With a selector the selected content comes first, untouched, as many whole lines or elements as fit;
one last line says what is left and which selector comes next. Where the cap cuts inside a line or a value, that next
selector is ``bytes:``, so nothing is unreachable.

Example::

    await inspect(store, "0197f9a2-…", "lines:51-100")
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore, as_local_store
from reyn_jupyter.outputs.blobs.manifest import BlobInfo, headline
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore, content_of
from reyn_jupyter.outputs.blobs.reader import BlobView
from reyn_jupyter.outputs.content import DEFAULT_POLICY, BlobStore, BlobStoreError, Structured, Text
from reyn_jupyter.outputs.grep import grep
from reyn_jupyter.outputs.json_index import (
    JsonIndex,
    Member,
    elements,
    find_member,
    index_json,
    label_at,
    members,
)
from reyn_jupyter.outputs.parts.media_type import media_facts
from reyn_jupyter.outputs.parts.stored_parts import PartEntry, entries_in, read_entries
from reyn_jupyter.outputs.selectors import (
    BytesSelector,
    GrepSelector,
    KeySelector,
    LastLinesSelector,
    LinesSelector,
    PartSelector,
    PointerSelector,
    Selector,
    SelectorError,
    SliceSelector,
    parse_selector,
)
from reyn_jupyter.outputs.summary import to_text
from reyn_jupyter.support.encoding import clip, one_line
from reyn_jupyter.support.text import count

DIRECT_BYTES = 1 << 16  # smaller blobs are read on the caller's thread
KEYS_SHOWN = 800  # bytes of key names in an error


async def inspect(
    store: BlobStore,
    blob_id: str,
    selector: str | None = None,
    *,
    cap: int = DEFAULT_POLICY.answer_bytes,
    mask: Callable[[str], str] | None = None,
) -> str:
    """A part of a blob.

    Args:
        store: where the blob lies; one that cannot be read in parts is asked for the whole content.
        blob_id: the id, also as ``[blob:<id>]``.
        selector: see `selectors`; None gives kind, size and the leading part.
        cap: the most bytes of the answer.
        mask: covers what may not be shown, before anything is selected or cut: from a text to one of as many bytes.

    Raises:
        InvalidBlobIdError: the id is no UUID; nothing was touched.
        SelectorError: the selector is wrong, or wrong for this kind of blob; `hint` says which is right.
        BlobNotFoundError, BlobStoreError: the store does not have it or cannot read it.
    """
    local, wanted = await as_local_store(store, blob_id)
    info = local.describe(wanted)
    parsed = _parsed(selector, info)
    if isinstance(parsed, PartSelector):
        entry = _entry(local, info, parsed)
        held = _own_store(entry)
        if held is None:
            text = await inspect(store, entry.blob, parsed.within, cap=cap - PART_BYTES, mask=mask)
        else:
            text = await inspect(*held, parsed.within, cap=cap - PART_BYTES, mask=mask)
        return _of_part(entry, parsed, text, mask)
    if info.size <= DIRECT_BYTES and not isinstance(parsed, GrepSelector):
        return _answer(local, info, parsed, cap, mask)
    return await asyncio.to_thread(_answer, local, info, parsed, cap, mask)


def inspect_now(
    store: LocalBlobStore,
    blob_id: str,
    selector: str | None = None,
    *,
    cap: int = DEFAULT_POLICY.answer_bytes,
) -> str:
    """`inspect`, as an ordinary call on a store of this machine."""
    info = store.describe(blob_id)
    parsed = _parsed(selector, info)
    if isinstance(parsed, PartSelector):
        entry = _entry(store, info, parsed)
        held = _own_store(entry) or (store, entry.blob)
        return _of_part(entry, parsed, inspect_now(*held, parsed.within, cap=cap - PART_BYTES))
    return _answer(store, info, parsed, cap)


def _entry(store: LocalBlobStore, info: BlobInfo, selector: PartSelector) -> PartEntry:
    """Return the part that is meant. Raises SelectorError where there is none that can be opened."""
    if info.kind != "parts":
        kind = _right(info.kind, info)
        raise SelectorError(f"part: does not fit: this blob is {info.kind} and takes {kind}", f"Use {kind}.")
    entries = read_entries(store, info.id)
    if selector.number > len(entries):
        raise SelectorError(
            f"there is no part {selector.number}: the result has {len(entries)}",
            f"Give a number from 1 to {len(entries)}.",
        )
    entry = entries[selector.number - 1]
    if not entry.blob and entry.kind not in ("text", "json"):
        raise SelectorError(
            f"part {selector.number} has no content here: {entry.placeholder}", "Go on without it."
        )
    return entry


def _own_store(entry: PartEntry) -> tuple[LocalBlobStore, str] | None:
    """Return a small part in a store of its own, so that it is read like any other; None where it has a blob."""
    if entry.blob:
        return None
    held = MemoryBlobStore()
    return held, held.put(Text(entry.text) if entry.kind == "text" else Structured(entry.value)).id


_FOLLOWING = re.compile(r"(?<= · next: )(?=\S+\Z)")


def _of_part(
    entry: PartEntry, selector: PartSelector, text: str, mask: Callable[[str], str] | None = None
) -> str:
    """Return an answer about a part under a line that says which, its next selector leading into the same part."""
    facts = clip((mask or str)(entry.facts), PART_BYTES // 2)
    head = f"part {selector.number} | {facts}\n" if selector.within is None else ""
    return head + _FOLLOWING.sub(f"part:{selector.number}/", text)


def _parsed(selector: str | None, info: BlobInfo) -> Selector | None:
    try:
        return None if selector is None else parse_selector(selector)
    except SelectorError as wrong:
        takes = f"this blob is {info.kind} and takes {_right(info.kind, info)}"
        raise SelectorError(f"{wrong}; {takes}", wrong.hint) from None


def _answer(
    store: LocalBlobStore,
    info: BlobInfo,
    selector: Selector | None,
    cap: int,
    mask: Callable[[str], str] | None = None,
) -> str:
    try:
        with BlobView(store, info, mask) as view:
            answer = overview(view, cap) if selector is None else _SELECT[type(selector)](view, selector, cap)
    except SelectorError:
        raise
    except (ValueError, OSError) as problem:
        raise BlobStoreError(f"blob {info.id} is damaged ({problem}); bytes:0..8192 still reads it") from None
    return clip(answer, cap)


def _select_lines(view: BlobView, selector: LinesSelector, cap: int) -> str:
    _needs_lines(view)
    return lines_from(view, selector.first - 1, selector.last, cap)


def _select_last_lines(view: BlobView, selector: LastLinesSelector, cap: int) -> str:
    _needs_lines(view)
    count = view.lines.count
    return lines_from(view, max(0, count - selector.number), count, cap)


def _needs_lines(view: BlobView) -> None:
    if not view.info.has_lines:
        raise _wrong_kind(view, "lines:")


def _select_slice(view: BlobView, selector: SliceSelector, cap: int) -> str:
    if not view.info.is_json or view.json.kind != "json_array":
        raise _wrong_kind(view, "slice:")
    return elements_from(view, selector.start, selector.stop, cap)


def _select_key(view: BlobView, selector: KeySelector, cap: int) -> str:
    if not view.info.is_json or view.json.kind != "json_object":
        raise _wrong_kind(view, "key:")
    member = find_member(view.source, view.json, selector.key)
    if member is None:
        raise _no_key(view, view.json, selector.key)
    return value_at(view, member.start, member.end, cap)


def _no_key(view: BlobView, index: JsonIndex, key: str, place: str = "") -> SelectorError:
    """The error for a missing key: which keys there are, bounded."""
    shown, room = [], KEYS_SHOWN
    for member in islice(members(view.source, index), KEYS_SHOWN):
        name = clip(one_line(member.key), 200)
        room -= len(name.encode()) + 2
        if room < 0:
            break
        shown.append(name)
    more = index.count - len(shown)
    known = f"{', '.join(shown)}{f' and {more} more' if more else ''}" or "none"
    return SelectorError(f"no key {clip(key, 200)!r}{place}; keys: {known}", "Give one of these keys.")


def _select_pointer(view: BlobView, selector: PointerSelector, cap: int) -> str:
    if not view.info.is_json:
        raise _wrong_kind(view, "path:")
    index, walked = view.json, ""
    start, end = index.start, index.end
    for number, token in enumerate(selector.tokens):
        if number:
            index = index_json(view.source, start, end)
        start, end = _step(view, index, token, walked or "/")
        walked = f"{walked}/{clip(token, 100)}"
    return value_at(view, start, end, cap)


def _step(view: BlobView, index: JsonIndex, token: str, walked: str) -> tuple[int, int]:
    """From a value to one of its parts."""
    if index.kind == "json_object":
        member = find_member(view.source, index, token)
        if member is None:
            raise _no_key(view, index, token, f" at {clip(walked, 400)}")
        return member.start, member.end
    if index.kind == "json_array":
        number = int(token) if token.isascii() and token.isdigit() and len(token) < 19 else -1
        if 0 <= number < index.count and str(number) == token:
            return next(iter(elements(view.source, index, number, number + 1)))
        hint = f"Give a number from 0 to {index.count - 1}." if index.count else "The array is empty."
        raise SelectorError(f"no element {clip(token, 200)!r} in the array at {clip(walked, 400)}", hint)
    raise SelectorError(
        f"{clip(token, 200)!r} leads nowhere: the value at {clip(walked, 400)} is a plain value",
        "Drop the last part of the path.",
    )


def _select_bytes(view: BlobView, selector: BytesSelector, cap: int) -> str:
    size = view.info.size
    if selector.start >= size and selector.start:
        return f"no byte {selector.start}: the blob has {size} bytes"
    stop = size if selector.stop is None else min(selector.stop, size)
    text, reached = view.read_bytes(selector.start, stop, cap - TRAILER)
    asked = cap - TRAILER if selector.stop is None else min(selector.stop - selector.start, cap - TRAILER)
    return f"{text}\n{left(size - reached, 'bytes', f'bytes:{reached}..{reached + max(asked, 1)}')}"


def _select_grep(view: BlobView, selector: GrepSelector, cap: int) -> str:
    lines: list[str] = []
    room, last = cap - TRAILER, 0
    for match in grep(view.source, selector.pattern):
        place = "" if match.offset is None else f" (byte {match.offset})"
        line = f"{match.line}{place}: {match.text}"
        room -= len(line.encode()) + 1
        if room < 0:
            narrower = (
                "a narrower pattern shows fewer"
                if not view.info.has_lines
                else f"next: lines:{match.line}-{match.line + 49}"
            )
            return "\n".join([*lines, f"more matches from line {match.line} on · {narrower}"])
        lines.append(line)
        last = match.line
    if not lines:
        return f"no line matches {clip(selector.pattern, 200)!r}"
    return "\n".join([*lines, f"0 matches left after line {last}"])


def _wrong_kind(view: BlobView, given: str) -> SelectorError:
    kind = view.json.kind if view.info.is_json else view.info.kind
    right = _right(kind, view.info)
    return SelectorError(f"{given} does not fit: this blob is {kind} and takes {right}", f"Use {right}.")


def _right(kind: str, info: BlobInfo) -> str:
    """The selectors for a kind; JSON that keeps its line breaks takes lines too."""
    return f"lines:20-50, {_RIGHT[kind]}" if info.is_json and info.has_lines else _RIGHT[kind]


_RIGHT = {
    "parts": "part:1, part:1/lines:20-50, or no selector for the list",
    "text": "lines:20-50, lines:20-, lines:-20, grep:<regex> or bytes:0..8192",
    "bytes": "bytes:0..8192, lines:20-50 or grep:<regex>",
    "json_array": "slice:3..8, path:/0, grep:<regex> or bytes:0..8192",
    "json_object": "key:<name>, path:/a/0/b, grep:<regex> or bytes:0..8192",
    "json_value": "bytes:0..8192",
}
_SELECT: dict[type, Callable[[BlobView, Any, int], str]] = {
    LinesSelector: _select_lines,
    LastLinesSelector: _select_last_lines,
    SliceSelector: _select_slice,
    KeySelector: _select_key,
    PointerSelector: _select_pointer,
    BytesSelector: _select_bytes,
    GrepSelector: _select_grep,
}


LEADING_LINES, LEADING_ELEMENTS, LEADING_VALUES = 50, 5, 3
MEDIA_HEAD = 1 << 16  # bytes of an image or a sound that are looked at
PART_HEAD = 120  # bytes of a text in a list of parts
PART_BYTES = 400  # bytes kept for what is said of a part around its content
TRAILER = 192  # bytes kept for the last line


def overview(view: BlobView, cap: int) -> str:
    """Kind and size, then the leading part: 50 lines, 5 elements, or all keys with types and the first 3 values."""
    info = view.info
    if info.kind == "parts":
        return _list_parts(view, cap)
    if info.kind == "bytes":
        facts = media_facts(view.source.read(0, MEDIA_HEAD))
        if facts.mime is not None:
            size = f" | {facts.width}×{facts.height}" if facts.pixels else ""
            return f"{facts.mime}{size} | {info.size} bytes\nIt is no text; bytes:0..64 reads it as it is."
    if info.is_json:
        described = headline(view.json.kind, view.json.count, info.frame)
    else:
        described = headline(info.kind, view.lines.count)
    header = f"{described} | {info.size} bytes"
    room = cap - len(header.encode()) - 1
    if not info.is_json:
        leading = lines_from(view, 0, LEADING_LINES, room)
    elif view.json.kind == "json_object":
        leading = _leading_keys(view, view.json, room)
    elif view.json.kind == "json_array":
        leading = _leading_elements(view, room)
    else:
        leading = value_at(view, view.json.start, view.json.end, room)
    return f"{header}\n{leading}"


def _list_parts(view: BlobView, cap: int) -> str:
    """Return one line a part: its number, what it is, and how a text begins."""
    entries = entries_in(content_of(view.source.read(0, view.source.size), view.info))
    lines = [f"parts | {count(len(entries), 'part')} | {sum(entry.size for entry in entries):,} bytes"]
    room = cap - TRAILER - len(lines[0])
    for number, entry in enumerate(entries, 1):
        line = f"{number}: {_part_line(entry)}"
        room -= len(line.encode()) + 1
        if room < 0:
            lines.append(f"… {len(entries) - number + 1} more parts · part:{number} opens the next one")
            break
        lines.append(line)
    return "\n".join([*lines, "part:1 opens the first, part:1/lines:20-50 or part:1/key:name a part of it"])


def _part_line(entry: PartEntry) -> str:
    if entry.kind not in ("text", "json"):
        return entry.placeholder
    said = entry.text if entry.kind == "text" else to_text(entry.value) if not entry.blob else ""
    begins = f": {one_line(clip(said.strip(), PART_HEAD))}" if said.strip() else ""
    return entry.facts + (f" [blob:{entry.blob}]" if entry.blob else "") + begins


def left(number: int, unit: str, following: str = "") -> str:
    """The last line of an answer.

    >>> left(150, "lines", "lines:51-100")
    '150 lines left · next: lines:51-100'
    """
    return f"{number} {unit} left" + (f" · next: {following}" if number and following else "")


def _cut(view: BlobView, position: int, cap: int) -> str:
    """The last line where the cap cut inside a line or value: the bytes from there on."""
    return left(view.info.size - position, "bytes", f"bytes:{position}..{position + cap - TRAILER}")


def lines_from(view: BlobView, first: int, stop: int | None, cap: int) -> str:
    """Lines ``first … stop-1`` (0-based); None stands for the end. The next page is as long as the one asked for."""
    count = view.lines.count
    if first >= count:
        return f"no line {first + 1}: the text has {count} lines"
    shown, lines, position = view.read_lines(
        first, count if stop is None else min(stop, count), cap - TRAILER
    )
    if not lines:
        return f"{shown}\n{_cut(view, position, cap)}"
    following = first + lines
    end = "" if stop is None else str(following + stop - first)
    return f"{shown}\n{left(count - following, 'lines', f'lines:{following + 1}-{end}')}"


def _fitting(view: BlobView, first: int, stop: int, room: int) -> tuple[list[str], int]:
    """Elements as text while they fit; when not even the first does, its beginning, and where it was cut (else -1)."""
    shown: list[str] = []
    for start, end in elements(view.source, view.json, first, stop):
        text, reached = view.written(start, end, room)
        if reached < end:
            return (shown, -1) if shown else ([text], reached)
        shown.append(text)
        room -= len(text.encode()) + 1
    return shown, -1


def _leading_elements(view: BlobView, cap: int) -> str:
    shown, cut = _fitting(view, 0, LEADING_ELEMENTS, cap - TRAILER)
    if cut >= 0:
        return f"{shown[0]}\n{_cut(view, cut, cap)}"
    following = len(shown)
    remaining = left(
        view.json.count - following, "entries", f"slice:{following}..{following + LEADING_ELEMENTS}"
    )
    return "\n".join([*shown, remaining])


def elements_from(view: BlobView, first: int, stop: int | None, cap: int) -> str:
    """Elements ``first … stop-1`` as one array; None stands for the end. Pages follow as for lines."""
    count = view.json.count
    shown, cut = _fitting(view, first, count if stop is None else stop, cap - TRAILER - 2)
    if cut >= 0:
        return f"[{shown[0]}\n{_cut(view, cut, cap)}"
    if first >= count and first:
        return f"[]\nno element {first}: the array has {count} entries"
    following = first + len(shown)
    end = "" if stop is None else str(following + max(1, stop - first))
    return f"[{','.join(shown)}]\n{left(count - following, 'entries', f'slice:{following}..{end}')}"


def value_at(view: BlobView, start: int, end: int, cap: int) -> str:
    """One value, whole when it fits; else its beginning and the bytes that come next."""
    text, reached = view.written(start, end, cap)
    if reached >= end:
        return text
    text, reached = view.written(start, end, cap - TRAILER)
    following = f"bytes:{reached}..{min(end, reached + cap - TRAILER)}"
    return f"{text}\n{left(end - reached, 'bytes of this value', following)}"


def _leading_keys(view: BlobView, index: JsonIndex, cap: int) -> str:
    """All keys with their types, as many as fit into half of the room, then the first values."""
    lines = ["── keys ──"]
    first: list[Member] = []
    room = (cap - TRAILER) // 2
    for number, member in enumerate(members(view.source, index)):
        line = f"{_name(member)}: {label_at(view.source, member.start, member.end, member.inner)}"
        room -= len(line.encode()) + 1
        if room < 0:
            following = f"bytes:{member.start}..{member.start + cap // 2}"
            lines.append(f"… {index.count - number} keys omitted · next: {following}")
            break
        lines.append(line)
        if len(first) <= LEADING_VALUES:
            first.append(member)
    lines.append("── values ──")
    return "\n".join([*lines, *_leading_values(view, index, first, cap - len("\n".join(lines).encode()) - 1)])


def _leading_values(view: BlobView, index: JsonIndex, first: list[Member], cap: int) -> list[str]:
    lines: list[str] = []
    room = cap - TRAILER
    for number, member in enumerate(first[:LEADING_VALUES]):
        name = f"{_name(member)}: "
        text, reached = view.written(member.start, member.end, max(0, room - len(name.encode())))
        lines.append(name + text)
        room -= len(lines[-1].encode()) + 1
        if reached < member.end:
            following = f"bytes:{reached}..{member.end}"
            cut = left(member.end - reached, "bytes of this value", following)
            return [*lines, f"{left(index.count - number - 1, 'values')}, {cut}"]
    following = _key_selector(first[LEADING_VALUES]) if len(first) > LEADING_VALUES else ""
    return [*lines, left(max(0, index.count - LEADING_VALUES), "values", following)]


def _name(member: Member) -> str:
    return clip(one_line(member.key), 200)


def _key_selector(member: Member) -> str:
    plain = len(member.key.encode("utf-8", "replace")) <= 100 and one_line(member.key) == member.key
    return f"key:{member.key}" if plain else f"bytes:{member.start}..{member.end}"
