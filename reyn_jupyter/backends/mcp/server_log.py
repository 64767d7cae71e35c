"""What a server wrote on its standard error, on its standard output beside the protocol, and sent as log messages.

Invariant: bounded in lines and in bytes of a line, whatever is written; what is read has no secrets and no hidden
characters. It is made so where it is read, so that a flood costs little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

MOST_LINES = 200
LONGEST_LINE = 500  # characters
_PENDING = 4_000  # bytes of a line that has not ended; the rest of it is not kept


class ServerLog:
    """The last lines of one server.

    Args:
        mask: covers what may not be shown.
        changed: told whenever there are new lines.

    Example:
        >>> log = ServerLog()
        >>> log.feed(b"started\\nlistening on \\x1b[1mport")
        >>> log.end(); log.lines
        ('started', 'listening on ␛[1mport')
    """

    def __init__(self, mask: Callable[[str], str] = str, changed: Callable[[], None] = lambda: None) -> None:
        self._mask = mask
        self._changed = changed
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._pending = b""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, oldest first."""
        return tuple(map(self._shown, self._lines))

    @property
    def last_line(self) -> str:
        """The newest line; an empty text where there is none."""
        return self._shown(self._lines[-1]) if self._lines else ""

    def add(self, line: str) -> None:
        """Add a line; one without anything to see is not kept."""
        if text := line[:_PENDING].strip():
            self._lines.append(text)
            self._changed()

    def _shown(self, line: str) -> str:
        return shorten(visible(self._mask(line)).replace("\n", " "), LONGEST_LINE)

    def feed(self, data: bytes) -> None:
        """Add the next bytes of a stream of lines."""
        *ended, rest = data.split(b"\n")
        # Of a flood only what would be kept is looked at.
        for number, line in enumerate(ended[-MOST_LINES:]):
            whole = self._pending + line if number == 0 and len(ended) <= MOST_LINES else line
            self.add(whole[:_PENDING].decode("utf-8", "replace"))
        self._pending = ((b"" if ended else self._pending) + rest)[:_PENDING]

    def end(self) -> None:
        """Add what stands after the last end of a line."""
        pending, self._pending = self._pending, b""
        self.add(pending.decode("utf-8", "replace"))
