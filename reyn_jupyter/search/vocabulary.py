"""The tokens of records by number, read once for each record.

Invariant: a vocabulary only grows, so indexes may share one, and tokens read for one index serve the next.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from reyn_jupyter.search.tokens import compound, runs, tokens_of

if TYPE_CHECKING:
    from reyn_jupyter.search.records import Record

LONGEST_TEXT = 8_000  # characters of a field that are indexed
DEEPEST = 6  # levels of a schema that are read
_LAST_PART = re.compile(r"(?:.*(?:__|[.:/]))?(.*)", re.DOTALL)


@dataclass(frozen=True)
class Tokens:
    """The token numbers of one record.

    Attributes:
        numbers: of its four fields, one after the other.
        lengths: tokens of the name, the description, the names of parameters, their descriptions.
        forms: the sets of tokens that its name is made of, whole and without what qualifies it.
    """

    numbers: array[int]
    lengths: tuple[int, int, int, int]
    forms: tuple[tuple[int, ...], ...]


class Vocabulary:
    """Tokens by number, and the numbers of every run met so far."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._of_run: dict[str, tuple[int, ...]] = {}
        self._parts_of_run: dict[str, tuple[int, ...]] = {}  # the same without the compound as a whole
        self._growing = threading.Lock()

    def read(self, record: Record) -> Tokens:
        """The tokens of a record, field by field."""
        numbers, lengths = array("i"), []
        known = self._of_run
        with self._growing:
            for text in (record.name, record.description, *parameter_texts(record.parameters)):
                before = len(numbers)
                found = runs(text[:LONGEST_TEXT])
                try:
                    parts = [known[run] for run in found]
                except KeyError:
                    parts = [self._learn(run) for run in found]
                numbers.extend(chain.from_iterable(parts))
                lengths.append(len(numbers) - before)
            forms = dict.fromkeys(self._form(form) for form in names_of(record))
        return Tokens(numbers, (lengths[0], lengths[1], lengths[2], lengths[3]), tuple(forms))

    def tokens_of(self, run: str) -> tuple[str, ...]:
        """What a run is looked up by: its stems, and a compound as a whole."""
        whole = compound(run)
        return (*tokens_of(run), whole) if whole else tokens_of(run)

    def form_of(self, text: str) -> tuple[int, ...] | None:
        """The set of tokens that a name is made of; None where one of them is unknown."""
        found = [self.numbers.get(token) for run in runs(text) for token in tokens_of(run)]
        known = {number for number in found if number is not None}
        return tuple(sorted(known)) if found and None not in found else None

    def _learn(self, run: str) -> tuple[int, ...]:
        numbers = self.numbers
        if run in self._of_run:
            return self._of_run[run]
        found = tuple(numbers.setdefault(token, len(numbers)) for token in self.tokens_of(run))
        self._of_run[run] = found
        self._parts_of_run[run] = found if compound(run) is None else found[:-1]
        return found

    def _form(self, text: str) -> tuple[int, ...]:
        found: set[int] = set()
        for run in runs(text):
            if run not in self._parts_of_run:
                self._learn(run)
            found.update(self._parts_of_run[run])
        return tuple(sorted(found))


def names_of(record: Record) -> tuple[str, ...]:
    """What a record may be called: its name, the same without what qualifies it, and qualified by its category.

    >>> from reyn_jupyter.search.records import Record
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
    """The names of all parameters, and their descriptions."""
    found = list(_parameters(schema, 0))
    return " ".join(name for name, _ in found), " ".join(text for _, text in found if text)


def _parameters(schema: object, depth: int) -> Iterator[tuple[str, str]]:
    if depth >= DEEPEST or not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        text = part.get("description") if isinstance(part, Mapping) else None
        yield str(name), text if isinstance(text, str) else ""
        if isinstance(part, Mapping) and ("properties" in part or "items" in part):
            yield from _parameters(part, depth + 1)
    if "items" in schema:
        yield from _parameters(schema["items"], depth + 1)
