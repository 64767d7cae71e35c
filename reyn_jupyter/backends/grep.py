"""Search for a regular expression, line by line, in linear time.

Invariant: RE2 does the matching, so no pattern can run away; every answer is bounded (results, characters a
line, bytes a block), and what was left out is counted. Files are read as bytes: text in an old encoding is
searched too, and shown with replacement characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from reyn_jupyter.backends.lines import BLOCK, Check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINE_CHARACTERS = 400  # of a matching line; the rest is cut, around the match
_BEFORE = 100  # characters kept before a match that lies past the cut
_PROGRAM_BYTES = 8 << 20  # what RE2 may spend on one pattern


class PatternError(ValueError):
    """The text is no pattern; the message says why."""


@dataclass(frozen=True)
class Hit:
    """One matching line: its number from 1, its text (clipped), and whether something was cut from it."""

    line: int
    text: str
    cut: bool


class Pattern:
    """A compiled pattern.

    Args:
        pattern: RE2 syntax: like Python's `re` without backreferences and look-around.
        case_sensitive: whether letter case counts.
        clean: applied to a line before it is cut (it takes secrets out, and half a secret is none any more).

    Raises:
        PatternError: with RE2's own reason.
    """

    def __init__(self, pattern: str, case_sensitive: bool = True, clean: Callable[[str], str] = str) -> None:
        import re2

        self._clean = clean

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _PROGRAM_BYTES
        options.case_sensitive = case_sensitive
        try:
            encoded = pattern.encode()
            self._line: Any = re2.compile(encoded, options)
            # A whole block at once tells quickly that no line of it matches, unless the pattern speaks of the
            # text's own edges, which a block has elsewhere than a line.
            edges = re.search(rb"\\[Az]|\(\?[a-zA-Z]*-", encoded)
            self._block: Any = None if edges else re2.compile(b"(?m)" + encoded, options)
        except (re2.error, UnicodeEncodeError) as error:
            reason = error.args[0] if error.args else error
            text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)
            raise PatternError(text) from error

    def hits(self, file: BinaryIO, check: Check) -> Iterator[Hit]:
        """The matching lines of a file from where it stands, in order."""
        number, last = 1, 0
        while block := file.read(BLOCK):
            check()
            if not block.endswith(b"\n"):
                block += file.readline(BLOCK)
            plain = block.replace(b"\r\n", b"\n")
            if self._block is None or self._block.search(plain):
                for index, line in enumerate(plain.removesuffix(b"\n").split(b"\n")):
                    found = self._line.search(line)
                    if found and number + index != last:
                        last = number + index
                        yield _hit(last, line, found.start(), self._clean)
            number += block.count(b"\n")


def _hit(number: int, line: bytes, start: int, clean: Callable[[str], str]) -> Hit:
    text = clean(line.decode("utf-8", "replace"))
    if len(text) <= LINE_CHARACTERS:
        return Hit(number, text, False)
    at = len(line[:start].decode("utf-8", "replace"))
    begin = 0 if at < LINE_CHARACTERS - _BEFORE else min(at - _BEFORE, len(text) - LINE_CHARACTERS)
    end = begin + LINE_CHARACTERS
    return Hit(number, f"{'…' * (begin > 0)}{text[begin:end]}{'…' * (end < len(text))}", True)
