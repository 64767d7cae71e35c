"""The selectors of `inspect`: a small language, parsed strictly.

Invariant: a selector is either understood in exactly one way or refused with what is accepted.

======================  ==================================================
``lines:20-50``         lines, 1-based, both ends included
``lines:20-``           from line 20 on
``lines:-20``           the last 20 lines
``slice:3..8``          elements, 0-based, end excluded
``slice:3..``           from element 3 on
``key:results``         one key, the rest of the text verbatim
``path:/a/0/b``         RFC 6901 JSON Pointer
``bytes:8192..16384``   bytes, moved to code-point boundaries
``grep:<regex>``        lines that match, with their numbers (RE2 syntax)
``part:2``              the second part of a result of parts, 1-based
``part:2/lines:20-50``  a selector within that part
======================  ==================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from reyn_jupyter.support.encoding import clip

ACCEPTED = (
    "lines:20-50, lines:20-, lines:-20, slice:3..8, slice:3.., "
    "key:<name>, path:/a/0/b, bytes:0..8192, grep:<regex>, part:2"
)
_LINES = re.compile(r"([0-9]{1,18})-([0-9]{1,18})?")
_LAST = re.compile(r"-([0-9]{1,18})")
_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})?")
_PART = re.compile(r"([0-9]{1,18})(?:/(.*))?", re.DOTALL)
_ESCAPE = re.compile(r"~(?![01])")
LONGEST = 4096


class SelectorError(ValueError):
    """A selector that is wrong, or wrong for this blob. `hint` says what to give instead."""

    def __init__(self, message: str, hint: str = f"Accepted: {ACCEPTED}.") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class LinesSelector:
    """Lines `first` to `last` (1-based, included); `last` None means to the end."""

    first: int
    last: int | None


@dataclass(frozen=True)
class LastLinesSelector:
    number: int


@dataclass(frozen=True)
class SliceSelector:
    """Elements `start` to before `stop` (0-based); `stop` None means to the end."""

    start: int
    stop: int | None


@dataclass(frozen=True)
class KeySelector:
    key: str


@dataclass(frozen=True)
class PointerSelector:
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class BytesSelector:
    start: int
    stop: int | None


@dataclass(frozen=True)
class GrepSelector:
    pattern: str


@dataclass(frozen=True)
class PartSelector:
    """Part `number` (1-based) of a result of parts, and the selector within it, None for all of it."""

    number: int
    within: str | None


Selector = (
    LinesSelector
    | LastLinesSelector
    | SliceSelector
    | KeySelector
    | PointerSelector
    | BytesSelector
    | GrepSelector
    | PartSelector
)


def parse_selector(text: str) -> Selector:
    """Read a selector.

    Raises:
        SelectorError: it says what is wrong and what is accepted.

    >>> parse_selector("lines:20-50")
    Lines(first=20, last=50)
    >>> parse_selector("key:a:b")
    Key(key='a:b')
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise SelectorError(f"a selector is a text of at most {LONGEST} characters")
    name, colon, rest = text.lstrip().partition(":")
    if not colon or name not in _READERS:
        raise SelectorError(f"unknown selector {clip(text, 200)!r}")
    return _READERS[name](rest)


def _wrong(name: str, rest: str, why: str) -> SelectorError:
    return SelectorError(f"{name}:{clip(rest, 200)} is no selector: {why}")


def _lines(rest: str) -> Selector:
    rest = rest.strip()
    if last := _LAST.fullmatch(rest):
        if int(last[1]) == 0:
            raise _wrong("lines", rest, "give at least one line, e.g. lines:-20")
        return LastLinesSelector(int(last[1]))
    found = _LINES.fullmatch(rest)
    if not found:
        raise _wrong("lines", rest, "write lines:20-50, lines:20- or lines:-20")
    first, stop = int(found[1]), int(found[2]) if found[2] else None
    if first < 1:
        raise _wrong("lines", rest, "lines are counted from 1")
    if stop is not None and stop < first:
        raise _wrong("lines", rest, "the end lies before the start")
    return LinesSelector(first, stop)


def _range(name: str, rest: str) -> tuple[int, int | None]:
    found = _RANGE.fullmatch(rest.strip())
    if not found:
        raise _wrong(name, rest, f"write {name}:3..8 or {name}:3.., counted from 0")
    start, stop = int(found[1]), int(found[2]) if found[2] else None
    if stop is not None and stop < start:
        raise _wrong(name, rest, "the end lies before the start")
    return start, stop


def _key(rest: str) -> Selector:
    if not rest:
        raise _wrong("key", rest, "name a key, e.g. key:results (path:/ is the empty key)")
    return KeySelector(rest)


def _pointer(rest: str) -> Selector:
    if rest and not rest.startswith("/"):
        raise _wrong("path", rest, "a JSON Pointer begins with /, e.g. path:/a/0/b")
    if _ESCAPE.search(rest):
        raise _wrong("path", rest, "write ~0 for ~ and ~1 for / inside a name")
    return PointerSelector(
        tuple(token.replace("~1", "/").replace("~0", "~") for token in rest.split("/")[1:])
    )


def _grep(rest: str) -> Selector:
    if not rest:
        raise _wrong("grep", rest, "give a regular expression, e.g. grep:error")
    return GrepSelector(rest)


def _part(rest: str) -> Selector:
    found = _PART.fullmatch(rest.strip())
    if not found or int(found[1]) < 1:
        raise _wrong("part", rest, "write part:2 or part:2/lines:20-50, parts are counted from 1")
    if found[2] is not None and isinstance(parse_selector(found[2]), PartSelector):
        raise _wrong("part", rest, "a part has no parts of its own")
    return PartSelector(int(found[1]), found[2])


_READERS: dict[str, Callable[[str], Selector]] = {
    "lines": _lines,
    "slice": lambda rest: SliceSelector(*_range("slice", rest)),
    "key": _key,
    "path": _pointer,
    "bytes": lambda rest: BytesSelector(*_range("bytes", rest)),
    "grep": _grep,
    "part": _part,
}
