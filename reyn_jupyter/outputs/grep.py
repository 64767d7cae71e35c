"""Searching a text of any size by a regular expression that cannot run away.

Invariant: time grows with the length of the text, whatever the pattern (RE2), and memory with one block. A match
never spans lines; a line is the one of `lines`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.outputs.byte_source import ByteSource
from reyn_jupyter.outputs.selectors import SelectorError
from reyn_jupyter.support.encoding import boundary

LINE_BYTES = 400  # longer lines are shown around the match
AROUND = 120
LONGEST_PATTERN = 1000
_BLOCK = 1 << 20
_ANCHORED = re.compile(
    r"\\[Az]|\(\?[a-zA-Z]*-"
)  # these see a line differently from the block that it lies in


@dataclass(frozen=True)
class Match:
    """A line that matches: its number from 1, its text or the part around the match, and that part's offset."""

    line: int
    text: str
    offset: int | None


def compile_pattern(pattern: str) -> Any:
    """A linear-time pattern. Raises SelectorError when it is none."""
    import re2

    if len(pattern) > LONGEST_PATTERN:
        raise SelectorError(
            f"the pattern is longer than {LONGEST_PATTERN} characters", "Give a shorter pattern."
        )
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?m:{pattern})", options)
    except (re2.error, UnicodeError) as problem:
        reason = problem.args[0] if problem.args else problem
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise SelectorError(
            f"not a usable pattern: {reason[:200]}",
            "Patterns are RE2: no look-around and no back-references; escape . ( [ with a backslash.",
        ) from None


def grep(source: ByteSource, pattern: str) -> Iterator[Match]:
    """Every matching line, in order; a line that is longer than a block is searched block by block."""
    compiled = compile_pattern(pattern)
    by_block = not _ANCHORED.search(pattern)
    offset, line = 0, 1
    while offset < source.size:
        block = _whole_lines(source, offset)
        if not by_block or compiled.search(block.decode(errors="replace").replace("\r\n", "\n")):
            yield from _matches(compiled, block, offset, line)
        line += block.count(b"\n")
        offset += len(block)


def _whole_lines(source: ByteSource, offset: int) -> bytes:
    block = source.read(offset, _BLOCK)
    if offset + len(block) >= source.size:
        return block
    newline = block.rfind(b"\n")
    return block[: newline + 1] if newline >= 0 else block[: boundary(block, len(block) - 1)] or block


def _matches(compiled: Any, block: bytes, offset: int, line: int) -> Iterator[Match]:
    start = 0
    for raw in block.removesuffix(b"\n").split(b"\n"):
        shown = raw.removesuffix(b"\r")
        text = shown.decode(errors="replace")
        if len(shown) <= LINE_BYTES:
            if compiled.search(text):
                yield Match(line, text, None)
        else:
            yield from _around(compiled, text, line, offset + start)
        start += len(raw) + 1
        line += 1


def _around(compiled: Any, text: str, line: int, offset: int) -> Iterator[Match]:
    """The places in a long line; matches that the last shown part covers already are passed over."""
    covered = -1
    for found in compiled.finditer(text):
        if found.start() <= covered:
            continue
        left, right = max(0, found.start() - AROUND), min(len(text), found.start() + AROUND)
        part = text[left:right].replace("\n", " ")
        shown = f"{'…' if left else ''}{part}{'…' if right < len(text) else ''}"
        yield Match(line, shown, offset + len(text[:left].encode()))
        covered = right
