"""The line of what goes on in a terminal: a name in it, as of a variant of a cloned suite, stays text."""

from __future__ import annotations

import io
import re

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
