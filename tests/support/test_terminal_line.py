"""The line of what goes on in a terminal: broken streams end nothing, and names of a cloned suite stay text."""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import suppress

import pytest

from reyn_jupyter.support.terminal_line import TerminalLine

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\u202eb\u200b"


class _Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_that_is_shown_reaches_a_terminal_as_a_control_character(terminal: bool) -> None:
    stream = _Stream(terminal)
    line = TerminalLine(stream, first=0.0)
    line.show(f"so far {HOSTILE} 50 %\nnext", f"so far {HOSTILE} 50 %")
    line.end(f"ended: {HOSTILE}\nin two lines")
    own = stream.getvalue().replace("\r\x1b[K", "")
    assert re.findall(r"[^\x20-\x7e\u2400-\u24ff⟨⟩\n]", own) == []
    assert own.endswith("\nin two lines\n") and own.count("\n") == (2 if terminal else 3)


def test_a_stream_that_is_missing_closed_or_broken_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    reading, writing = os.pipe()
    os.close(reading)
    broken = os.fdopen(writing, "w", buffering=1)
    for stream in (None, closed, broken):
        monkeypatch.setattr(sys, "stderr", stream)
        line = TerminalLine(first=0.0)
        line.show("3 of 9 actions")
        line.end("done")
    with suppress(OSError):
        broken.close()
