"""Numbered lines of a blob, a search through them, and the rest of a line that is too long to show at once.

Invariants: the line rule is that of `outputs.line_index`; an answer is bounded in lines and in each line's length;
secrets are covered in the bytes themselves (`MaskedSource`) before anything is cut, so no window has a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pydantic import Field

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.notebook.serving.operations.blob_operations import BlobReading, reading
from reyn_jupyter.outputs.byte_source import BLOCK, ByteSource, MaskedSource
from reyn_jupyter.outputs.grep import grep
from reyn_jupyter.outputs.line_index import LineIndex
from reyn_jupyter.outputs.selectors import SelectorError
from reyn_jupyter.support.encoding import boundary
from reyn_jupyter.support.text import count

WINDOW = 500
SHOWN = 1000  # characters of a line in a window
PIECE = 1 << 16  # bytes of a long line at once
APART = 1 << 12  # bytes between two matches of one line
FOUND = 1000
_LOOKED = SHOWN * 4 + 4  # bytes that hold as many characters


class ReadLines(WireMessage):
    """Ask for the lines `first` to `first + count - 1`, counted from 1."""

    blob: str
    first: int = Field(default=1, ge=1)
    count: int = Field(default=200, ge=1, le=WINDOW)


class TextLine(WireMessage):
    """Carry one line; `more` says how much of it is left out, "" for nothing."""

    text: str
    more: str


class LineWindow(WireMessage):
    first: int
    total: int
    lines: tuple[TextLine, ...]


class FindLines(WireMessage):
    """Search from byte `start` on; `regex` takes the text as a regular expression (RE2)."""

    blob: str
    text: str = Field(min_length=1, max_length=1000)
    start: int = Field(default=0, ge=0)
    ignore_case: bool = True
    regex: bool = False
    limit: int = Field(default=FOUND, ge=1, le=FOUND)


class LineMatch(WireMessage):
    """Place one match; `offset` counts bytes in the line."""

    line: int
    offset: int


class LineMatches(WireMessage):
    """List matches; `next` is the byte to search on from, None at the end."""

    matches: tuple[LineMatch, ...]
    next: int | None


class WholeLine(WireMessage):
    """Ask for a piece of one line, from byte `offset` of it."""

    blob: str
    line: int = Field(ge=1)
    offset: int = Field(default=0, ge=0)


class LinePiece(WireMessage):
    """Carry a piece of a line. `caption` names the piece; `previous` and `next` are offsets, None at either end."""

    line: int
    offset: int
    text: str
    caption: str
    previous: int | None
    next: int | None


class LocateByte(WireMessage):
    blob: str
    byte: int = Field(ge=0)


class LinePlace(WireMessage):
    line: int
    offset: int


class _Text:
    """The lines of one blob, open in a thread."""

    def __init__(self, context: OperationContext, at: BlobReading) -> None:
        self.plain = at.view.source
        self.shown: ByteSource = MaskedSource(self.plain, context.session.parts.services.redactor.masked)
        self.index: LineIndex = at.kept.get(("lines", at.info.id), lambda: at.view.lines)
        self.look = context.look

    def start(self, line: int) -> int:
        return self.index.offset(self.plain, line - 1)

    def window(self, first: int, count: int) -> tuple[TextLine, ...]:
        """Return every line cut to size, however long: of a long one only its beginning is read."""
        stop = min(first + count, self.index.count + 1)
        texts: list[str] = []
        sizes: list[int] = []
        start = self.start(first)
        for line in range(first, stop):
            raw = self.shown.read(start, _LOOKED)
            newline = raw.find(b"\n")
            whole = newline >= 0 or start + len(raw) >= self.plain.size
            size = newline if newline >= 0 else len(raw) if whole else self._size(start, line)
            kept = raw[:size] if whole else raw[: boundary(raw, len(raw) - 4)]
            texts.append((kept.removesuffix(b"\r") if whole else kept).decode(errors="replace"))
            sizes.append(size)
            start += size + 1
        shown = self.look.lines(texts, SHOWN)
        if len(shown) != len(texts):  # what is secret spans lines: one by one keeps the numbers true
            shown = tuple(self.look.text(text, SHOWN) for text in texts)
        return tuple(
            TextLine(text=text, more=self._more(text, size)) for text, size in zip(shown, sizes, strict=True)
        )

    def _size(self, start: int, line: int) -> int:
        following = self.start(line + 1)
        newline = following < self.plain.size or self.plain.read(following - 1, 1) == b"\n"
        return following - start - newline

    @staticmethod
    def _more(text: str, size: int) -> str:
        return f"{formatting.size(size)} in all" if len(text) == SHOWN and text.endswith("…") else ""

    def piece(self, line: int, offset: int) -> LinePiece:
        if line > self.index.count:
            raise OperationError(
                f"There is no line {line:,}: the text has {count(self.index.count, 'line')}."
            )
        start = self.start(line)
        size = self._size(start, line)
        offset = min(offset, max(0, size - 1))
        around = self.shown.read(start + max(0, offset - 3), PIECE + 10)
        left = boundary(around, min(3, offset))
        offset = max(0, offset - 3) + left
        room = min(PIECE, size - offset)
        raw = around[left : left + room if offset + room >= size else boundary(around, left + room)]
        reached = offset + len(raw)
        return LinePiece(
            line=line,
            offset=offset,
            text=self.look.text(raw.decode(errors="replace"), PIECE),
            caption=f"Line {line:,}, bytes {offset:,} to {reached:,} of {size:,}",
            previous=max(0, offset - PIECE) if offset else None,
            next=reached if reached < size else None,
        )

    def matches(self, wanted: FindLines) -> Iterator[tuple[int, int]]:
        """Return matches as (line, absolute byte), in order, in one line at least `APART` bytes apart."""
        if wanted.regex:
            for match in grep(self.plain, wanted.text):
                at = self.start(match.line) if match.offset is None else match.offset
                if at >= wanted.start:
                    yield match.line, at
            return
        yield from self._plain_matches(wanted)

    def _plain_matches(self, wanted: FindLines) -> Iterator[tuple[int, int]]:
        pattern = _compiled(wanted.text, wanted.ignore_case)
        overlap = 4 * len(wanted.text) + 8
        begin = wanted.start
        line = self.index.line_at(self.plain, begin) + 1
        place = 0
        while begin < self.plain.size:
            block = self.plain.read(begin, BLOCK + overlap)
            counted = 0
            while (found := pattern.search(block, place)) and (at := found.start()) < BLOCK:
                line += block.count(b"\n", counted, at)
                counted = at
                yield line, begin + at
                newline = block.find(b"\n", at, at + APART)
                place = newline + 1 if newline >= 0 else at + APART
            line += block.count(b"\n", counted, BLOCK)
            begin += BLOCK
            place = max(0, place - BLOCK)


def _compiled(text: str, ignore_case: bool) -> Any:
    """Return a literal text as a pattern over bytes: the same letters, large or small, in every script."""
    import re2

    options = re2.Options()
    options.log_errors = False
    literal = re2.escape(text.encode("utf-8", "replace").decode())
    return re2.compile(f"{'(?i)' if ignore_case else ''}{literal}".encode(), options)


async def window(context: OperationContext, arguments: ReadLines) -> LineWindow:
    def work(at: BlobReading) -> LineWindow:
        text = _Text(context, at)
        return LineWindow(
            first=arguments.first,
            total=text.index.count,
            lines=text.window(arguments.first, arguments.count),
        )

    return await reading(context, arguments.blob, work, "counting lines")


async def find(context: OperationContext, arguments: FindLines) -> LineMatches:
    def work(at: BlobReading) -> LineMatches:
        text = _Text(context, at)
        found = list(islice(text.matches(arguments), arguments.limit + 1))
        shown = found[: arguments.limit]
        matches = tuple(LineMatch(line=line, offset=byte - text.start(line)) for line, byte in shown)
        return LineMatches(matches=matches, next=found[-1][1] if len(found) > len(shown) else None)

    try:
        return await reading(context, arguments.blob, work, "searching")
    except SelectorError as error:
        raise OperationError(context.look.line(str(error), 300), error.hint) from None


async def whole(context: OperationContext, arguments: WholeLine) -> LinePiece:
    def work(at: BlobReading) -> LinePiece:
        return _Text(context, at).piece(arguments.line, arguments.offset)

    return await reading(context, arguments.blob, work, "reading the line")


async def at_byte(context: OperationContext, arguments: LocateByte) -> LinePlace:
    """Return the line that holds a byte; past the end, the last one."""

    def work(at: BlobReading) -> LinePlace:
        text = _Text(context, at)
        byte = min(arguments.byte, max(0, text.plain.size - 1))
        line = min(text.index.line_at(text.plain, byte) + 1, max(1, text.index.count))
        return LinePlace(line=line, offset=byte - text.start(line))

    return await reading(context, arguments.blob, work, "looking for the place")


OPERATIONS = (
    ServedOperation("lines.window", ReadLines, LineWindow, window),
    ServedOperation("lines.find", FindLines, LineMatches, find),
    ServedOperation("lines.whole", WholeLine, LinePiece, whole),
    ServedOperation("lines.at", LocateByte, LinePlace, at_byte),
)
