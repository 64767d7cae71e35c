"""The line in a terminal that says how far something is."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import pytest

from reyn_jupyter.support.terminal_line import TerminalLine


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
