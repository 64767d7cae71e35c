"""Documents cut into passages: short enough to be embedded whole, and cut where the text itself pauses.

Invariants: a passage lies within one section, so that its headings and its place are true; put together, the passages
of a section are its text but for blank ends; cutting takes one pass, however long a line is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.corpora.document import COUNTED, Document, DocumentSection, Unit
from reyn_jupyter.support.encoding import clean

LONGEST = 1_000  # characters: what a small embedding model reads of a text, about 250 tokens
SHORTEST = LONGEST // 3  # before which no pause is looked for
MOST = 10_000  # passages of one document
PAUSES = ("\n\n", "\n", ". ", " ")  # the better ones first


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that can be found.

    Attributes:
        text: as it stands there, without secrets.
        heading: the headings that it stands under.
        unit: what its place counts.
        first, last: the place of its first and of its last line.
        facts: what else is known of it.
    """

    text: str
    heading: tuple[str, ...] = ()
    unit: Unit = "line"
    first: int = 1
    last: int = 1
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def embedded(self) -> str:
        """Return the text that is embedded: the headings stand for what the passage itself does not repeat."""
        return embedded_text(self.heading, self.text)

    @property
    def digest(self) -> str:
        """Return SHA-256, in hex, of the text that is embedded: equal ones share a vector."""
        return hashlib.sha256(self.embedded.encode()).hexdigest()


def embedded_text(heading: tuple[str, ...], text: str) -> str:
    """Return what is embedded of a passage.

    >>> embedded_text(("Guide", "Prices"), "Ten a month.")
    'Guide › Prices\\nTen a month.'
    """
    return clean(f"{' › '.join(heading)}\n{text}" if heading else text)


def passages_of(document: Document) -> tuple[list[Passage], bool]:
    """Return the passages of a document, and whether it has more of them than are kept."""
    found: list[Passage] = []
    for section in document.sections:
        for passage in cut(section):
            if len(found) >= MOST:
                return found, True
            found.append(passage)
    return found, False


def cut(section: DocumentSection) -> Iterator[Passage]:
    """Yield the passages of a section.

    >>> [each.first for each in cut(DocumentSection("a" * 900 + "\\n" + "b" * 900, first=7))]
    [7, 8]
    """
    text, counted = section.text, section.unit in COUNTED
    start, line, end = 0, section.first, len(text.rstrip())
    while start < end:
        stop = end if end - start <= LONGEST else start + _pause(text[start : start + LONGEST])
        piece = text[start:stop]
        body = piece.strip("\n").rstrip()
        if body.strip():
            above = piece[: len(piece) - len(piece.lstrip("\n"))].count("\n") if counted else 0
            first = line + above
            last = first + (body.count("\n") if counted else 0)
            yield Passage(body, section.heading, section.unit, first, last, section.facts)
        line += piece.count("\n") if counted else 0
        start = stop


def _pause(window: str) -> int:
    """Return after how many characters of a window that is too small a text is cut best."""
    for pause in PAUSES:
        at = window.rfind(pause, SHORTEST)
        if at >= 0:
            return at + len(pause)
    return len(window)
