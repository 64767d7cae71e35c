"""The tokens of records by number: every run of letters is read once, many texts at a time.

Invariant: a vocabulary only grows, so indexes may share one, and what was read for one index serves the next.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reyn_jupyter.search.ranking.tokens import compound, runs, tokens_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record

    Numbers = NDArray[np.int32]

LONGEST_TEXT = 8_000  # characters of a field that are indexed
LONGEST_EMBEDDED = 2_000  # characters of a text that are embedded; embedders read a few hundred words
DEEPEST = 6  # levels of a schema that are read
_LAST_PART = re.compile(r"(?:.*(?:__|[.:/]))?(.*)", re.DOTALL)
_END = "\x80"  # between two texts: not in ASCII, and no letter
_KEPT = {*map(ord, _END), *(code for code in range(128) if chr(code).isalnum())}
_BREAKS = bytes(code if code in _KEPT else 0x20 for code in range(256))


class Vocabulary:
    """Tokens by number, and the numbers of every run met so far."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._runs = _Runs(self._learn)
        self._tokens: dict[int, tuple[str, ...]] = {}  # of each run
        self._spans = array(
            "i"
        )  # of each run: where its tokens begin, how many are its parts, how many there are
        self._flat = array("i")  # the token numbers of every run, one run after the other
        self._growing = threading.Lock()
        self._runs[_END]  # the first run of all, without tokens

    def __len__(self) -> int:
        return len(self.numbers)

    def read(self, texts: Sequence[str], *, names: bool = False) -> tuple[Numbers, Numbers]:
        """Return the token numbers of all texts, one text after the other, and how many each text has.

        Args:
            names: read them as names: a compound is then its parts, without the word that it is as a whole.
        """
        split = f" {_END} ".join(_cleaned(texts)).split()
        with self._growing:
            read = np.fromiter(map(self._runs.__getitem__, split), np.int32, len(split))
            first, *counted = np.array(self._spans).reshape(-1, 3).T
            flat = np.array(self._flat)
        counts = counted[0 if names else 1][read]
        before = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        ends = np.append(np.flatnonzero(read == 0), len(read))[: len(texts)]
        numbers = flat[np.repeat(first[read] - before[:-1], counts) + np.arange(before[-1])]
        return numbers, np.diff(before[ends], prepend=0).astype(np.int32)

    def tokens_of(self, run: str) -> tuple[str, ...]:
        """Return the stems that a run is looked up by, and a compound as a whole."""
        known = self._runs.get(run)
        if known:
            return self._tokens[known]
        whole = compound(run)
        return (*tokens_of(run), whole) if whole else tokens_of(run)

    def form_of(self, text: str) -> tuple[int, ...] | None:
        """Return the set of tokens that a name is made of; None where one of them is unknown."""
        found = [self.numbers.get(token) for run in runs(text) for token in tokens_of(run)]
        known = {number for number in found if number is not None}
        return tuple(sorted(known)) if found and None not in found else None

    def _learn(self, run: str) -> int:
        """Number a run. What an interrupt between two lines leaves behind, nothing refers to."""
        parts = () if run == _END else tokens_of(run)
        whole = None if run == _END else compound(run)
        tokens = (*parts, whole) if whole else parts
        numbers = [self.numbers.setdefault(token, len(self.numbers)) for token in tokens]
        start, number = len(self._flat), len(self._spans) // 3
        self._flat.extend(numbers)
        self._tokens[number] = tokens
        self._spans.extend((start, len(parts), len(numbers)))
        return number


class _Runs(dict[str, int]):
    """Runs by number; one that is met for the first time is learned."""

    def __init__(self, learn: Any) -> None:
        super().__init__()
        self._learn = learn

    def __missing__(self, run: str) -> int:
        self[run] = number = self._learn(run)
        return int(number)


def _cleaned(texts: Sequence[str]) -> list[str]:
    """Return each text as its runs with blanks between: all that is ASCII at once, anything else by itself."""
    plain = _END.join(text[:LONGEST_TEXT] if text.isascii() else "" for text in texts)
    cleaned = plain.encode("latin-1").translate(_BREAKS).decode("latin-1").split(_END)
    for place, text in enumerate(texts):
        if not text.isascii():
            cleaned[place] = " ".join(runs(text[:LONGEST_TEXT]))
    return cleaned


def names_of(record: Record) -> tuple[str, ...]:
    """Return the names a record may have: its own, that without its qualifier, and that with its category.

    >>> from reyn_jupyter.search.action_records import Record
    >>> names_of(Record("1", "mcp__git.commit", category="tools"))
    ('mcp__git.commit', 'git.commit', 'commit', 'tools__mcp__git.commit')
    """
    name = record.name.strip()
    found = {name: None, name.partition("__")[2]: None}
    last = _LAST_PART.fullmatch(name)
    if last is not None:
        found[last.group(1)] = None
    if record.category and not name.startswith(f"{record.category}__"):
        found[f"{record.category}__{name}"] = None
    return tuple(form for form in found if form)


def parameter_texts(schema: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of all parameters, and their descriptions."""
    names: list[str] = []
    texts: list[str] = []
    _gather(schema, 0, names, texts)
    return " ".join(names), " ".join(texts)


def _gather(schema: object, depth: int, names: list[str], texts: list[str]) -> None:
    if depth >= DEEPEST or not isinstance(schema, (dict, Mapping)):  # the first is told ten times as fast
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, (dict, Mapping)) else ():
        names.append(str(name))
        if isinstance(part, (dict, Mapping)):
            text = part.get("description")
            if text and isinstance(text, str):
                texts.append(text)
            if "properties" in part or "items" in part:
                _gather(part, depth + 1, names, texts)
    if "items" in schema:
        _gather(schema["items"], depth + 1, names, texts)
