"""What a document is once it was read: sections of text, each with its place and the headings that it stands under.

Invariant: a section is text alone, and its place can be looked up in the document: a line, a row, a page, a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Unit = Literal["line", "row", "page", "slide", "cell", "section"]
UNITS: tuple[Unit, ...] = ("line", "row", "page", "slide", "cell", "section")
COUNTED = frozenset({"line", "row"})  # in which each line of a section's text is one more
DEEPEST = 12  # headings of a path that are kept
LONGEST_HEADING = 120  # characters
# Size, times of change in nanoseconds (of the content and of the file's own entry) and number of a file: no two states
# of a file have the same, and a copy on another machine has another.
Stamp = tuple[int, int, int, int]


class UnreadableError(Exception):
    """A file that cannot become a document; the message is the reason, the end of a sentence that names the file."""


@dataclass(frozen=True)
class DocumentSection:
    """A piece of a document.

    Attributes:
        text: what it says.
        heading: the headings that it stands under, the outermost first.
        unit: what its place counts.
        first: the place of its first line, from 1.
        facts: what else is known of it, to filter by.
    """

    text: str
    heading: tuple[str, ...] = ()
    unit: Unit = "line"
    first: int = 1
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """A document that was read.

    Attributes:
        kind: "markdown", "text", "code", "notebook", "html", "pdf", "word", "slides", "sheet" or "frame".
        sections: in their order.
        facts: what is known of all of it, to filter by: a language, a title, what its front matter says.
        note: what was left out, in a few words; empty for nothing.
    """

    kind: str
    sections: tuple[DocumentSection, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


def headings(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path of headings, each on one line and neither too many nor too long.

    >>> headings(("Guide ", "", "a\\n b"))
    ('Guide', 'a b')
    """
    found = (" ".join(heading.split())[:LONGEST_HEADING] for heading in path)
    return tuple(heading for heading in found if heading)[:DEEPEST]


def as_markdown(document: Document) -> str:
    """Return a document as Markdown: a heading where the path of headings changes, and one for each page and slide.

    >>> pages = (DocumentSection("one", unit="page"), DocumentSection("two", unit="page", first=2))
    >>> as_markdown(Document("pdf", pages)).splitlines()
    ['## Page 1', '', 'one', '', '## Page 2', '', 'two']
    """
    parts: list[str] = []
    above: tuple[str, ...] = ()
    for section in document.sections:
        if section.unit in ("page", "slide"):
            named = ": ".join((f"{section.unit.title()} {section.first}", *section.heading[:1]))
            parts.append(f"## {named}")
        else:
            same = next(
                (
                    at
                    for at, (one, other) in enumerate(zip(above, section.heading, strict=False))
                    if one != other
                ),
                min(len(above), len(section.heading)),
            )
            parts += [
                f"{'#' * min(depth, 6)} {name}"
                for depth, name in enumerate(section.heading, 1)
                if depth > same
            ]
            above = section.heading
        parts.append(section.text.strip("\n"))
    return "\n\n".join(parts)
