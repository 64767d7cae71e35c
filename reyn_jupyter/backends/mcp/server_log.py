"""What a server wrote on its standard error, on its standard output beside the protocol, and sent as log messages.

Invariant: bounded in lines and in bytes of a line, whatever is written; what is read has no secrets and no hidden
characters. It is made so where it is read, so that a flood costs little.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from itertools import takewhile

from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

MOST_LINES = 200
LONGEST_LINE = 500  # characters
# What an older server of the SDK for Python writes, in about a hundred lines, when a newer protocol is asked for first:
# it says nothing of the server, and would push out all that does.
_COMPLAINT = re.compile(
    r"[A-Za-z]\w*(?:\.[\w-]+)+"
    r"|(?:Input should be|Field required|Extra inputs|Value error).*\[type=.*"
    r"|For further information visit https://errors\.pydantic\.dev/\S*"
)
_COMPLAINT_HEAD = re.compile(r"\bFailed to validate request: \d")
_LEVEL = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b"
)  # begins another message among lines that Rich breaks
_PROBE = "input_value='server/discover'"
OLDER = "[reyn] It does not know the newest protocol, which it was asked for first; the older one is spoken."
# A line that names the error that ended a program. In many programs it is not the last line.
_ERROR = re.compile(r"\b(?:\w*(?:Error|Exception)|error|fatal|panic): |\b(?:ERROR|FATAL)\b|\bpanicked at ")
_LOOKED_BACK = 60  # lines in which it is looked for
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
        self._complaint = 0  # lines of a complaint that may be about the probe, so far the last ones
        self._is_about_probe = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, oldest first."""
        return tuple(map(self._shown, self._lines))

    @property
    def last_line(self) -> str:
        """The newest line; an empty text where there is none."""
        last = next((each for each in reversed(self._lines) if each != OLDER), None)
        return "" if last is None else self._shown(last)

    @property
    def last_error(self) -> str:
        """The newest line of this start that names an error, else the newest one; an empty text where there is none."""
        of_this_start = list(
            takewhile(
                lambda line: not line.startswith("[reyn] "),
                (line for line in reversed(self._lines) if line != OLDER),
            )
        )[:_LOOKED_BACK]
        for number, line in enumerate(of_this_start):
            if _ERROR.search(line):
                goes_on = line.endswith(":") and number > 0
                return self._shown(f"{line} {of_this_start[number - 1]}" if goes_on else line)
        return self._shown(of_this_start[0]) if of_this_start else ""

    def add(self, line: str) -> None:
        """Add a line; one without anything to see is not kept."""
        text = line[:_PENDING].strip()
        if text and not self._complains(text, goes_on=line[0].isspace()):
            self._lines.append(text)
            self._changed()

    def _complains(self, text: str, *, goes_on: bool) -> bool:
        """Return whether a line belongs to a complaint about the probe for a newer protocol: it gets one line.

        Args:
            goes_on: the line is indented, as those are into which Rich breaks a long one.
        """
        begins = _COMPLAINT_HEAD.search(text) is not None
        belongs = begins or _COMPLAINT.fullmatch(text) is not None
        belongs = belongs or (goes_on and self._complaint > 0 and _LEVEL.match(text) is None)
        if begins or not belongs:
            self._complaint, self._is_about_probe = 0, False
        if not belongs:
            return False
        if not self._is_about_probe and _PROBE in text:
            self._is_about_probe = True
            for _ in range(min(self._complaint, len(self._lines))):
                self._lines.pop()
            self._lines.append(OLDER)
        self._complaint += 1
        return self._is_about_probe

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
