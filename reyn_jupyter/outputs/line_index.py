"""Find where the lines of a text begin, without keeping every line.

Invariant: the line rule. A line ends at ``\\n``, one ``\\r`` before it is dropped, and a final newline makes no extra
line; nothing else separates lines. The index holds, for every 64 KiB, how many newlines came before: counting is as
fast as memory, and any line is found by one bisection and one block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from reyn_jupyter.outputs.byte_source import BLOCK, ByteSource, blocks

CHUNK = 1 << 16


def count_lines(text: str) -> int:
    """Return how many lines a text has.

    >>> count_lines("a\\r\\nb\\n"), count_lines("a\\u2028b")
    (2, 1)
    """
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def first_lines(text: str, number: int) -> list[str]:
    lines: list[str] = []
    start = 0
    while len(lines) < number and start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        lines.append(text[start:end].removesuffix("\r"))
        start = end + 1
    return lines


def last_lines(text: str, number: int) -> list[str]:
    lines: list[str] = []
    end = len(text) - text.endswith("\n")
    while len(lines) < number and end >= 0 and text:
        start = text.rfind("\n", 0, end) + 1
        lines.append(text[start:end].removesuffix("\r"))
        end = start - 1
    return lines[::-1]


@dataclass(frozen=True)
class LineIndex:
    """Offsets of lines: `before[i]` newlines lie before byte ``i * CHUNK``."""

    count: int
    size: int
    before: array[int]

    def offset(self, source: ByteSource, line: int) -> int:
        """The offset at which a line begins, counted from 0; the size when it lies past the end."""
        if line <= 0:
            return 0
        if line >= self.count:
            return self.size
        chunk = bisect_left(self.before, line) - 1
        block = source.read(chunk * CHUNK, CHUNK)
        rest = block.split(b"\n", line - self.before[chunk])[-1]
        return chunk * CHUNK + len(block) - len(rest)

    def line_at(self, source: ByteSource, offset: int) -> int:
        """The line, counted from 0, that holds the byte at `offset`."""
        chunk = min(offset // CHUNK, len(self.before) - 1)
        if chunk < 0:
            return 0
        return self.before[chunk] + source.read(chunk * CHUNK, offset - chunk * CHUNK).count(b"\n")


class LineCounter:
    """Builds a `LineIndex` from the bytes as they pass by."""

    def __init__(self) -> None:
        self._before: array[int] = array("Q")
        self._pending = b""
        self._newlines = 0
        self._size = 0
        self._last = b""

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        self._last = data[-1:] or self._last
        data = self._pending + data if self._pending else data
        whole = len(data) - len(data) % CHUNK
        for start in range(0, whole, CHUNK):
            self._before.append(self._newlines)
            self._newlines += data.count(b"\n", start, start + CHUNK)
        self._pending = data[whole:]

    def finish(self) -> LineIndex:
        if self._pending:
            self._before.append(self._newlines)
            self._newlines += self._pending.count(b"\n")
        open_line = self._size > 0 and self._last != b"\n"
        return LineIndex(self._newlines + open_line, self._size, self._before)


def index_lines(pieces: Iterable[bytes]) -> LineIndex:
    counter = LineCounter()
    for piece in pieces:
        counter.feed(piece)
    return counter.finish()


def read_lines(
    source: ByteSource, index: LineIndex, first: int, stop: int, room: int
) -> tuple[bytes, int, int]:
    """The raw bytes of whole lines ``first … stop-1`` (from 0) that fit into `room` bytes.

    Returns:
        the bytes without the last newline, how many lines they are, and the offset at which the next line begins.
        When not even one line fits, its beginning comes back with 0 lines.
    """
    start = index.offset(source, first)
    raw = source.read(start, room + 2)
    wanted = max(0, min(stop, index.count) - first)
    end = lines = 0
    while lines < wanted:
        newline = raw.find(b"\n", end)
        if newline < 0:
            if start + len(raw) < index.size or len(raw) > room:
                break
            newline = len(raw)
        if newline - raw.startswith(b"\r", newline - 1) > room and lines == 0:
            break
        if newline > room and lines:
            break
        end, lines = newline + 1, lines + 1
    if not lines:
        return raw[:room], 0, start
    return raw[: end - 1], lines, min(start + end, index.size)


def file_lines(source: ByteSource) -> LineIndex:
    """The index of a whole source, read once from beginning to end."""
    assert BLOCK % CHUNK == 0
    return index_lines(blocks(source))
