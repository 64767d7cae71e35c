"""One blob, open for reading in parts: the common ground of `inspect` and of the person's `Blob`.

Invariant: nothing here reads more of a blob than was asked for, apart from building its index once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import TracebackType

from reyn_jupyter.outputs.blobs.manifest import BlobInfo
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore
from reyn_jupyter.outputs.byte_source import ByteSource, MaskedSource
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.outputs.json_index import JsonIndex
from reyn_jupyter.outputs.line_index import LineIndex, file_lines, read_lines
from reyn_jupyter.support.encoding import boundary

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[^\s"]++|\s++', re.DOTALL)


class BlobView:
    """A context manager over a stored blob's bytes and index.

    Args:
        store: a store of this machine.
        info: the blob's manifest.
        mask: covers what may not be shown, see `byte_source.MaskedSource`; None shows everything.
    """

    def __init__(
        self, store: LocalBlobStore, info: BlobInfo, mask: Callable[[str], str] | None = None
    ) -> None:
        self._store = store
        self.info = info
        opened = store.open(info.id)
        self.source: ByteSource = opened if mask is None else MaskedSource(opened, mask)
        self._lines: LineIndex | None = None
        self._json: JsonIndex | None = None

    def __enter__(self) -> BlobView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.source.close()

    @property
    def lines(self) -> LineIndex:
        """The line index; of JSON that keeps its line breaks it is counted anew."""
        if self._lines is None:
            index = None if self.info.is_json else self._store.index(self.info.id)
            self._lines = index if isinstance(index, LineIndex) else file_lines(self.source)
        return self._lines

    @property
    def json(self) -> JsonIndex:
        """The index of the top level. Raises BlobStoreError when the JSON is damaged."""
        if self._json is None:
            index = self._store.index(self.info.id)
            if not isinstance(index, JsonIndex):
                raise BlobStoreError(f"blob {self.info.id} is no JSON")
            self._json = index
        return self._json

    def read_lines(self, first: int, stop: int, room: int) -> tuple[str, int, int]:
        """Whole lines ``first … stop-1`` (from 0) that fit into `room` bytes, joined by newlines.

        Returns:
            their text, how many they are, and where the next one begins. When not one fits: its beginning, 0, and the
            offset of the cut.
        """
        raw, lines, position = read_lines(self.source, self.lines, first, stop, room)
        if not lines:
            raw = raw[: boundary(raw, len(raw) - 1)] if len(raw) > 4 else raw
            text, used = decoded_within(raw, room)
            return text, 0, position + used
        text = raw.decode(errors="replace").replace("\r\n", "\n").removesuffix("\r")
        while lines > 1 and len(text.encode()) > room:
            raw, lines, position = read_lines(
                self.source, self.lines, first, first + max(1, lines // 2), room
            )
            text = raw.decode(errors="replace").replace("\r\n", "\n").removesuffix("\r")
        if len(text.encode()) > room:
            start = self.lines.offset(self.source, first)
            text, used = decoded_within(raw, room)
            return text, 0, start + used
        return text, lines, position

    def written(self, start: int, end: int, room: int) -> tuple[str, int]:
        """A JSON value without white space between its parts, in at most `room` bytes, and the offset reached."""
        room = max(0, room)
        if not self.info.source:
            return self.read_bytes(start, end, room)
        parts: list[bytes] = []
        position = start
        while position < end:
            block = self.source.read(position, min(4 * room + 4096, end - position))
            for token in _TOKEN.finditer(block):
                piece = b"" if token[0].isspace() else token[0]
                cut_off = token.end() == len(block) and position + token.end() < end
                if cut_off and token.start() and not token[0].isspace():
                    block = block[: token.start()]
                    break
                if len(piece) > room:
                    kept, used = decoded_within(piece[: boundary(piece, room)], room)
                    return b"".join(parts).decode(errors="replace") + kept, position + token.start() + used
                parts.append(piece)
                room -= len(piece)
            position += len(block)
        return b"".join(parts).decode(errors="replace"), end

    def read_bytes(self, start: int, end: int, room: int) -> tuple[str, int]:
        """The text between two offsets, both moved back to code-point boundaries, in at most `room` bytes.

        Returns:
            the text and the offset reached, from which to go on.
        """
        begin = max(0, start - 3)
        raw = self.source.read(begin, min(end - begin, room + 3) + 4)
        left = boundary(raw, start - begin) if raw else 0
        stop = min(end - begin, left + room)
        right = len(raw) if begin + len(raw) >= self.info.size and stop >= len(raw) else boundary(raw, stop)
        if right <= left and end > start:
            right = next((at for at in range(left + 1, len(raw)) if raw[at] & 0xC0 != 0x80), len(raw))
            if right - left > room:
                return "", begin + left
        text, used = decoded_within(raw[left:right], room)
        return text, begin + left + used


def decoded_within(raw: bytes, room: int) -> tuple[str, int]:
    """Bytes as text of at most `room` bytes, and how many of them that took: what is no UTF-8 grows when replaced."""
    text = raw.decode(errors="replace")
    while (size := len(text.encode())) > room and raw:
        raw = raw[: boundary(raw, max(0, min(len(raw) - 1, len(raw) * room // size)))]
        text = raw.decode(errors="replace")
    return text, len(raw)
