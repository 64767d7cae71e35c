"""The files that a trial begins with, from the short forms that a suite's data writes them in.

Invariant: a template is plain text, path → text; equal data gives equal texts in every process.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from reyn_jupyter.backends.files.file_edits import positions
from reyn_jupyter.backends.memory.memory_format import LAYERS, Memory, MemoryStoreError, MemoryType, render

MEMORY_FOLDER = ".reyn/memory"
_PLACE = re.compile(r"\{n(?::0(\d))?\}|\{([^{}|]*(?:\|[^{}|]*)+)\}")


class Written(BaseModel):
    """The base of what people write: an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LongText(Written):
    """A long file in a few words: `line`, `count` times, between `before` and `after`.

    Attributes:
        before, after: what stands before and after the lines.
        line: one line; ``{n}`` is its number from 1, ``{n:03}`` the same with zeros, ``{a|b|c}`` each in turn.
        count: how many lines.
        other: number → the line that stands there instead ("except" in the data).

    Example:
        >>> LongText(line="{n} {odd|even}", count=3, **{"except": {3: "end"}}).text
        '1 odd\\n2 even\\nend\\n'
    """

    before: str = ""
    line: str
    count: int = Field(ge=1, le=100_000)
    other: Mapping[int, str] = Field(default_factory=dict, alias="except")
    after: str = ""

    @property
    def text(self) -> str:
        lines = (
            self.other.get(number) or _fill_number(self.line, number) for number in range(1, self.count + 1)
        )
        return self.before + "".join(f"{line}\n" for line in lines) + self.after


class Note(Written):
    """A memory that is there from the beginning; see the category `memory_operation` for its fields."""

    name: str
    description: str
    type: MemoryType
    body: str
    layer: Literal["shared", "agent"] = "shared"


class Edit(Written):
    """One replacement in a file: `old` once, or with `all` wherever it stands, becomes `new`.

    To take text out, quote what stands beside it too: an empty text among accepted values means "may be left out".
    """

    path: str
    old: str = Field(min_length=1)
    new: str = Field(min_length=1)
    all: bool = False


FileText = str | LongText


def template(files: Mapping[str, FileText], memories: Mapping[str, Note]) -> dict[str, str]:
    """Return the texts of a template. Raises ValueError for a path or a memory that cannot be."""
    texts = {_check_path(path): text if isinstance(text, str) else text.text for path, text in files.items()}
    for slug, note in memories.items():
        memory = Memory(note.layer, slug, note.name, note.description, note.type, note.body)
        try:
            texts[f"{MEMORY_FOLDER}/{note.layer}/{slug}.md"] = render(memory)
        except MemoryStoreError as error:
            raise ValueError(f"the memory {slug!r} cannot be: {error}") from error
    return texts


def memory_entries(workspace: Mapping[str, str]) -> set[str]:
    """Return the entries of `memory_entry` that a template brings."""
    slugs = {
        layer: {
            posixpath.basename(path).removesuffix(".md")
            for path in workspace
            if posixpath.dirname(path) == f"{MEMORY_FOLDER}/{layer}"
        }
        for layer in LAYERS
    }
    own = {f"agent.{slug}" if slug in slugs["shared"] else slug for slug in slugs["agent"]}
    return slugs["shared"] | own


def apply_edits(text: str, edits: tuple[Edit, ...]) -> tuple[str, Edit]:
    """Return a file's text after its edits, and one edit that does the same at once.

    Raises:
        ValueError: a text to replace is not there, stands there more than once without `all`, or overlaps another.

    Example:
        >>> two = (Edit(path="f", old="1", new="2"), Edit(path="f", old="3", new="4"))
        >>> edited("a1 b3 c", two)[1].old
        '1 b3'
    """
    places: list[tuple[int, int, str]] = []
    for edit in edits:
        found = positions(text, edit.old)
        if len(found) != 1 and not (edit.all and found):
            raise ValueError(
                f"{edit.old!r} stands {len(found)} times in {edit.path}; quote a text that stands there once, "
                "or set all"
            )
        places += [(at, at + len(edit.old), edit.new) for at in found]
    places.sort()
    for (_, end, _), (begin, _, _) in pairwise(places):
        if begin < end:
            raise ValueError(f"two edits of {edits[0].path} overlap at {text[begin:end]!r}; make them one")
    after, last = "", places[0][0]
    for begin, end, new in places:
        after += text[last:begin] + new
        last = end
    changed = text[: places[0][0]] + after + text[last:]
    if len(edits) == 1:
        return changed, edits[0]
    return changed, Edit(path=edits[0].path, old=text[places[0][0] : last], new=after)


def _fill_number(line: str, number: int) -> str:
    def put(match: re.Match[str]) -> str:
        if match[2] is not None:
            choices = match[2].split("|")
            return choices[(number - 1) % len(choices)]
        return str(number).zfill(int(match[1] or 0))

    return _PLACE.sub(put, line)


def _check_path(path: str) -> str:
    if path != posixpath.normpath(path) or path.startswith(("/", "..")) or path == ".":
        raise ValueError(f"{path!r} is no path inside a workspace; write it relative, like data/orders.csv")
    return path
