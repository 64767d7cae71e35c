"""A JSON document as a tree: one page of children at a time, never parsed as a whole.

Invariants: a step costs the index of the one value that it enters, which is kept (`IndexCache`) within a bound; nothing
recurses, so depth costs no stack; a child is named by its position, so that neither a key of megabytes nor one that
stands twice is ambiguous.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from cachetools import LRUCache

from reyn_jupyter.outputs import json_index
from reyn_jupyter.outputs.byte_source import ByteSource
from reyn_jupyter.outputs.json_index import (
    COMMA,
    JsonIndex,
    Scanner,
    elements,
    find_member,
    index_json,
    read_member,
)
from reyn_jupyter.outputs.line_index import LineIndex

Index = TypeVar("Index", JsonIndex, LineIndex)
KEPT_FROM = 1 << 14  # bytes; smaller values are indexed again whenever they are opened
ROOM = 64_000_000
_MEMBER_BYTES = 200  # what one entry of a table of keys takes, roughly


class PathError(LookupError):
    """A path leads nowhere. `walked` is how many of its steps do."""

    def __init__(self, message: str, walked: int) -> None:
        super().__init__(message)
        self.walked = walked


class IndexCache:
    """Indexes of blobs and of values in them, the least recently used ones let go. Safe from several threads.

    Args:
        room: how many bytes they may take, roughly.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._kept: LRUCache[Hashable, Any] = LRUCache(room, getsizeof=_weight)
        self._lock = threading.Lock()

    def get(self, key: Hashable, build: Callable[[], Index]) -> Index:
        """The index under a key, built when it is not there."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                return cast("Index", found)
        built = build()
        with self._lock, suppress(ValueError):  # one that is larger than all the room is not kept
            self._kept[key] = built
        return built

    @property
    def used(self) -> int:
        """Bytes, roughly."""
        return int(self._kept.currsize)


def _weight(index: JsonIndex | LineIndex) -> int:
    if isinstance(index, LineIndex):
        return 100 + 8 * len(index.before)
    keys = sum(_MEMBER_BYTES + len(member.key) for member in index.members or ())
    return 300 + 17 * len(index.before) + keys


@dataclass(frozen=True, slots=True)
class Child:
    """A value in its container.

    Attributes:
        position: its number there, from 0, in objects too.
        key: its name in an object, None in an array.
        start, end: where it lies in the document.
        inner: how many elements it has if it is a container and that is known already, else -1.
    """

    position: int
    key: str | None
    start: int
    end: int
    inner: int = -1


class JsonTree:
    """One document.

    Args:
        source: its bytes.
        name: what its indexes are kept under, beside their offset.
        top: gives the index of the whole.
        kept: where indexes are kept.
    """

    def __init__(self, source: ByteSource, name: str, top: Callable[[], JsonIndex], kept: IndexCache) -> None:
        self.source = source
        self._name = (name, source.size)
        self._kept = kept
        self.top = kept.get((self._name, -1), top)

    def root(self) -> Child:
        return Child(0, None, self.top.start, self.top.end, self.top.count)

    def index(self, value: Child) -> JsonIndex:
        """The index of one value. Raises NotJsonError."""
        start, end = value.start, value.end
        if (start, end) == (self.top.start, self.top.end):
            return self.top
        if end - start < KEPT_FROM:
            return index_json(self.source, start, end)
        return self._kept.get((self._name, start, end), lambda: index_json(self.source, start, end))

    def children(self, index: JsonIndex, first: int, stop: int) -> Iterator[Child]:
        """Children number ``first … stop-1``."""
        if index.members is not None:
            for number, member in enumerate(index.members[first:stop], first):
                yield Child(number, member.key, member.start, member.end, member.inner)
            return
        for number, (start, end) in enumerate(elements(self.source, index, first, stop), first):
            if index.kind == "json_array":
                yield Child(number, None, start, end)
            else:
                yield Child(number, *read_member(self.source, start, end))

    def walk(self, path: Sequence[str | int]) -> list[Child]:
        """The values along a path, the root first: a text names a key (or, in an array, a number), a number a position.

        Raises:
            PathError: there is nothing.
        """
        found = [self.root()]
        for number, step in enumerate(path):
            child = self._step(self.index(found[-1]), step)
            if child is None:
                raise PathError(f"there is no {str(step)[:80]!r} at step {number + 1} of the path", number)
            found.append(child)
        return found

    def _step(self, index: JsonIndex, step: str | int) -> Child | None:
        if index.kind == "json_object" and isinstance(step, str):
            member = find_member(self.source, index, step)
            return None if member is None else self._at(index, member.start)
        if isinstance(step, str):
            step = int(step) if step.isascii() and step.isdigit() and len(step) < 19 else -1
        return next(self.children(index, step, step + 1), None) if 0 <= step < index.count else None

    def way_to(self, offset: int) -> list[Child]:
        """The values that hold the byte at `offset`, the root first; the last one's key may be what holds it."""
        found = [self.root()]
        while found[-1].start <= offset:
            index = self.index(found[-1])
            child = self._at(index, offset) if index.count else None
            if child is None:
                break
            found.append(child)
        return found

    def _at(self, index: JsonIndex, offset: int) -> Child | None:
        """The child whose value or key holds a byte."""
        if index.members is not None:
            behind = (
                (member.end, number) for number, member in enumerate(index.members) if member.end > offset
            )
            number = min(behind, default=(0, -1))[1]
        else:
            import numpy as np

            chunk = min((offset - index.start) // json_index.CHUNK, len(index.before) - 1)
            begin = index.start + chunk * json_index.CHUNK
            data = self.source.read(begin, offset - begin)
            _, marks, depths = Scanner(index.depths[chunk], index.flags[chunk]).feed(data)
            number = index.before[chunk] + int(np.count_nonzero((marks == COMMA) & (depths == 1)))
        return next(self.children(index, number, number + 1), None) if number >= 0 else None
