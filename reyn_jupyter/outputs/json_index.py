"""Find where the elements of a JSON array or object lie, without parsing.

Invariant: positions are exact for every valid JSON text, whatever its strings hold and wherever it is cut into chunks.
For every 256 KiB the state at its beginning is kept, so that any element is found by one bisection and a scan of one
chunk. Bit operations over 64-byte words tell what lies inside strings: the prefix-xor over quotes of Langdale and
Lemire, "Parsing gigabytes of JSON per second", done with NumPy.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.outputs.byte_source import ByteSource
from reyn_jupyter.support.encoding import compact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


CHUNK = 1 << 18
KEYS_KEPT = 10_000  # objects with more keys are searched, not tabulated
KEY_BYTES_KEPT = 1 << 20
LABEL_BYTES = 1 << 24  # strings longer than this are labelled with their length as written
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SPACE = b" \t\r\n"

JsonKind = Literal["json_array", "json_object", "json_value"]


class NotJsonError(ValueError):
    """The bytes are no JSON document: brackets or strings are left open, or something follows the end."""


@dataclass(frozen=True, slots=True)
class Member:
    """One key of an object: where its value lies, and how many elements the value has when it is a container."""

    key: str
    start: int
    end: int
    inner: int


@dataclass(frozen=True)
class JsonIndex:
    """The top level of one JSON value.

    Attributes:
        kind: what the value is.
        start, end: from its first byte to past its last.
        count: elements or keys.
        before, depths, flags: for every chunk from `start` on, the top-level commas before it, the depth, and
            whether it begins in a string (1) or after a backslash (2).
        members: the keys of an object in order, None when there are too many.
    """

    kind: JsonKind
    start: int
    end: int
    count: int
    before: array[int] = field(default_factory=lambda: array("Q"))
    depths: array[int] = field(default_factory=lambda: array("Q"))
    flags: array[int] = field(default_factory=lambda: array("B"))
    members: tuple[Member, ...] | None = None


def first_byte(source: ByteSource, start: int, end: int) -> int:
    """The offset of the first byte that is no white space; `end` when there is none."""
    while start < end:
        block = source.read(start, min(4096, end - start))
        rest = block.lstrip(_SPACE)
        if rest:
            return start + len(block) - len(rest)
        start += len(block) or 1
    return end


def _last_byte(source: ByteSource, start: int, end: int) -> int:
    """The offset past the last byte that is no white space."""
    while end > start:
        size = min(4096, end - start)
        rest = source.read(end - size, size).rstrip(_SPACE)
        if rest:
            return end - size + len(rest)
        end -= size
    return start


class _IndexBuilder:
    """Collects one index while the chunks of its value pass by."""

    def __init__(self, tabulate: bool) -> None:
        self.before: array[int] = array("Q")
        self.depths: array[int] = array("Q")
        self.flags: array[int] = array("B")
        self.commas = 0
        self.separators: list[int] | None = [] if tabulate else None
        self.inner_commas: list[int] = []
        self._inner = 0
        self.close: int | None = None

    def chunk(self, scanner: Scanner, data: bytes, offset: int) -> None:
        import numpy as np

        self.before.append(self.commas)
        self.depths.append(scanner.depth)
        self.flags.append(scanner.flags)
        positions, found, depths = scanner.feed(data)
        closing = np.flatnonzero((depths == 0) & (found != COMMA))
        if len(closing):
            last = int(closing[0])
            self.close = offset + int(positions[last])
            positions, found, depths = positions[:last], found[:last], depths[:last]
        comma = found == COMMA
        top = np.flatnonzero(comma & (depths == 1))
        self.commas += len(top)
        if self.separators is None:
            return
        if self.commas > KEYS_KEPT:
            self.separators = None
            return
        inner = np.flatnonzero(comma & (depths == 2))
        self.separators.extend((positions[top] + offset).tolist())
        self.inner_commas.extend((np.searchsorted(inner, top) + self._inner).tolist())
        self._inner += len(inner)

    @property
    def inner_total(self) -> int:
        return self._inner


def index_json(source: ByteSource, start: int = 0, end: int | None = None) -> JsonIndex:
    """Index the JSON value between two offsets.

    Raises:
        NotJsonError: no complete JSON value, or more than one.
    """
    end = _last_byte(source, start, source.size if end is None else end)
    start = first_byte(source, start, end)
    opener = source.read(start, 1)
    if opener not in (b"[", b"{") or start >= end:
        if start >= end:
            raise NotJsonError("the text is empty")
        return JsonIndex("json_value", start, end, 0)
    builder, scanner = _IndexBuilder(tabulate=opener == b"{"), Scanner()
    offset = start
    while offset < end and builder.close is None:
        data = source.read(offset, min(CHUNK, end - offset))
        builder.chunk(scanner, data, offset)
        offset += len(data)
    if builder.close is None:
        raise NotJsonError("a bracket or a string is left open")
    if builder.close + 1 != end:
        raise NotJsonError(f"something follows the end of the value at byte {builder.close + 1}")
    empty = first_byte(source, start + 1, end) == builder.close
    count = 0 if empty else builder.commas + 1
    kind: JsonKind = "json_array" if opener == b"[" else "json_object"
    index = JsonIndex(kind, start, end, count, builder.before, builder.depths, builder.flags)
    if kind == "json_array" or builder.separators is None:
        return index
    members = _tabulate(source, index, builder) if count else ()
    return JsonIndex(
        kind,
        start,
        end,
        count if members is None else len(members),
        index.before,
        index.depths,
        index.flags,
        members,
    )


def _tabulate(source: ByteSource, index: JsonIndex, builder: _IndexBuilder) -> tuple[Member, ...] | None:
    """The table of keys; the last of equal keys wins, as everywhere in JSON."""
    edges = [index.start, *(builder.separators or []), index.end - 1]
    inner = [0, *builder.inner_commas, builder.inner_total]
    table: dict[str, Member] = {}
    kept = 0
    for number in range(len(edges) - 1):
        key, start, end = read_member(source, edges[number] + 1, edges[number + 1])
        kept += len(key)
        if kept > KEY_BYTES_KEPT:
            return None
        commas = inner[number + 1] - inner[number]
        table[key] = Member(key, start, end, commas + (not _is_empty(source, start, end)))
    return tuple(table.values())


def _is_empty(source: ByteSource, start: int, end: int) -> bool:
    return source.read(first_byte(source, start + 1, end), 1) in (b"]", b"}", b"")


def read_member(source: ByteSource, start: int, end: int) -> tuple[str, int, int]:
    """One ``"key": value`` between two separators: the key, and where its value begins and ends."""
    start = first_byte(source, start, end)
    size = 4096
    while True:
        found = _STRING.match(source.read(start, min(size, end - start)))
        if found or size >= end - start:
            break
        size *= 8
    if found is None:
        raise NotJsonError(f"no key at byte {start}")
    colon = first_byte(source, start + found.end(), end)
    if source.read(colon, 1) != b":":
        raise NotJsonError(f"no colon at byte {colon}")
    value = first_byte(source, colon + 1, end)
    return str(json.loads(found[0])), value, _last_byte(source, value, end)


def separators(source: ByteSource, index: JsonIndex, first: int) -> Iterator[int]:
    """The offsets between elements from number `first` on: 0 is the opening bracket, `count` the closing one."""
    import numpy as np

    if first == 0:
        yield index.start
    number = max(first, 1)
    if number < index.count:
        chunk = bisect_left(index.before, number) - 1
        seen = index.before[chunk]
        scanner = Scanner(index.depths[chunk], index.flags[chunk])
        for offset in range(index.start + chunk * CHUNK, index.end - 1, CHUNK):
            data = source.read(offset, min(CHUNK, index.end - 1 - offset))
            positions, found, depths = scanner.feed(data)
            top = positions[np.flatnonzero((found == COMMA) & (depths == 1))] + offset
            skip = max(0, number - 1 - seen)
            yield from top[skip:].tolist()
            seen += len(top)
            number = max(number, seen + 1)
    yield index.end - 1


def elements(source: ByteSource, index: JsonIndex, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Return where elements ``first … stop-1`` begin and end, white space left out."""
    stop = min(stop, index.count)
    if first >= stop:
        return
    edges = separators(source, index, first)
    left = next(edges, -1)
    for number in range(first, stop):
        right = next(edges, -1)
        if right < left:
            raise NotJsonError(f"element {number} is not where the index has it")
        start = first_byte(source, left + 1, right)
        yield start, _last_byte(source, start, right)
        left = right


def members(source: ByteSource, index: JsonIndex) -> Iterator[Member]:
    """The keys of an object in order, read as they come when there is no table."""
    if index.members is not None:
        yield from index.members
        return
    for start, end in elements(source, index, 0, index.count):
        key, value, value_end = read_member(source, start, end)
        yield Member(key, value, value_end, -1)


def find_member(source: ByteSource, index: JsonIndex, key: str) -> Member | None:
    """One key of an object, or None. Without a table, chunks that do not hold the key's text are passed over."""
    if index.members is not None:
        return next((member for member in index.members if member.key == key), None)
    needle = compact(key).encode()
    for chunk in range(len(index.before)):
        offset = index.start + chunk * CHUNK
        data = source.read(offset, min(CHUNK + len(needle) + 64, index.end - offset))
        if needle in data:
            place = _after_separator(data, needle, _separators_of(data, index, chunk))
            if place is not None:
                end = next(
                    edge for edge in separators(source, index, index.before[chunk]) if edge > offset + place
                )
                name, value, value_end = read_member(source, offset + place, end)
                return Member(name, value, value_end, -1)
    return next((member for member in members(source, index) if member.key == key), None)


def _separators_of(data: bytes, index: JsonIndex, chunk: int) -> set[int]:
    """The top-level separators of one chunk, counted from its beginning."""
    positions, found, depths = Scanner(index.depths[chunk], index.flags[chunk]).feed(data[:CHUNK])
    top = {int(position) for position in positions[(found == COMMA) & (depths == 1)]}
    return top | {0} if chunk == 0 else top


def _after_separator(data: bytes, needle: bytes, edges: set[int]) -> int | None:
    """Return where the needle stands as a key, that is right after a separator."""
    place = data.find(needle)
    while place >= 0:
        edge = place - 1
        while edge > 0 and data[edge] in _SPACE:
            edge -= 1
        if edge in edges:
            return place
        place = data.find(needle, place + 1)
    return None


def label_at(source: ByteSource, start: int, end: int, inner: int = -1) -> str:
    """The type label of the JSON value between two offsets, as `convert.label_of` gives it for a parsed one."""
    first = source.read(start, 1)
    if first in (b"[", b"{"):
        if inner < 0:
            inner = index_json(source, start, end).count
        if first == b"{" and inner == 1 and _is_tag(source.read(start, min(40, end - start))):
            return "number"
        return f"array({inner})" if first == b"[" else f"object({inner})"
    if first == b'"':
        size = end - start - 2
        if size <= LABEL_BYTES:
            size = len(json.loads(source.read(start, end - start)).encode("utf-8", "surrogatepass"))
        return "string" if size <= 50 else f"string({size})"
    return {b"t": "bool", b"f": "bool", b"n": "null"}.get(first, "number")


def _is_tag(raw: bytes) -> bool:
    return raw.lstrip(b"{ \t\r\n").startswith(b'"$number"')


def parse_at(source: ByteSource, start: int, end: int) -> Any:
    """The JSON value between two offsets, parsed."""
    return json.loads(source.read(start, end - start))


COMMA = 0x2C
_QUOTE, _BACKSLASH, _BLANK = 0x22, 0x5C, 0x20


class Scanner:
    """Walks over JSON bytes chunk by chunk and reports brackets and commas outside strings."""

    def __init__(self, depth: int = 0, flags: int = 0) -> None:
        import numpy as np

        self.depth = depth
        self.inside = bool(flags & 1)
        self.escaped = bool(flags & 2)
        self._shifts = [np.uint64(shift) for shift in (1, 2, 4, 8, 16, 32)]
        self._steps = np.zeros(256, np.int64)
        self._steps[[0x5B, 0x7B]] = 1
        self._steps[[0x5D, 0x7D]] = -1

    @property
    def flags(self) -> int:
        return self.inside + 2 * self.escaped

    def feed(self, chunk: bytes) -> tuple[NDArray[np.intp], NDArray[np.uint8], NDArray[np.int64]]:
        """Positions in the chunk, the characters there, and the depth after each."""
        import numpy as np

        text = self._without_escapes(chunk)
        inside = self._inside(text)
        low = text | np.uint8(0x20)
        marks = (low == 0x7B) | (low == 0x7D) | (text == COMMA)
        outside = np.packbits(marks, bitorder="little").view(np.uint64) & ~inside
        positions = np.flatnonzero(np.unpackbits(outside.view(np.uint8), bitorder="little").view(np.bool_))
        found = text[positions]
        depths = np.cumsum(self._steps[found])
        depths += self.depth
        if len(depths):
            self.depth = int(depths[-1])
        return positions, found, depths

    def _without_escapes(self, chunk: bytes) -> NDArray[np.uint8]:
        """The chunk, filled up to whole words, with every escaped quote blanked out."""
        import numpy as np

        text = np.frombuffer(chunk + b" " * (-len(chunk) % 64), np.uint8)
        if not self.escaped and b"\\" not in chunk:
            return text
        text = text.copy()
        if self.escaped:
            text[0] = _BLANK
            self.escaped = False
        slashes = np.flatnonzero(text == _BACKSLASH)
        if len(slashes):
            order = np.arange(len(slashes))
            begins = np.diff(slashes, prepend=-2) != 1
            escaping = slashes[(order - np.maximum.accumulate(np.where(begins, order, 0))) % 2 == 0]
            self.escaped = bool(len(escaping)) and int(escaping[-1]) == len(chunk) - 1
            after = escaping[: len(escaping) - self.escaped] + 1
            text[after[text[after] == _QUOTE]] = _BLANK
        return text

    def _inside(self, text: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """One bit a byte: whether it lies in a string (the opening quote counts, the closing one does not)."""
        import numpy as np

        words = np.packbits(text == _QUOTE, bitorder="little").view(np.uint64)
        for shift in self._shifts:
            words = words ^ (words << shift)
        odd = (words >> np.uint64(63)).astype(np.uint8)
        open_after = np.bitwise_xor.accumulate(odd) ^ np.uint8(self.inside)
        open_before = np.empty_like(open_after)
        if len(open_after):
            open_before[0] = self.inside
            open_before[1:] = open_after[:-1]
            self.inside = bool(open_after[-1])
        flipped: NDArray[np.uint64] = words ^ (np.uint64(0) - open_before.astype(np.uint64))
        return flipped
