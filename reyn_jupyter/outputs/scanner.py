"""Brackets and commas outside strings, at the speed of memory.

Invariant: what is reported is exact for every valid JSON text, wherever it is cut into chunks. Bit operations over
64-byte words tell what lies inside strings: the prefix-xor over quotes of Langdale and Lemire, "Parsing gigabytes of
JSON per second", done with NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
