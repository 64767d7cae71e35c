"""Memories as Markdown with front matter: one memory a text, and the index of many.

Invariant: ``parse(layer, slug, render(memory)) == memory`` for every memory whose name and description are one line
each; a text that is no memory is refused with the reason, quickly, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from reyn_jupyter.guard.own_memories import memory_digest
from reyn_jupyter.support.front_matter import split_front_matter
from reyn_jupyter.support.text import shorten

MemoryLayer = Literal["shared", "agent"]
MemoryType = Literal["user", "feedback", "project", "reference"]
LAYERS: tuple[MemoryLayer, ...] = get_args(MemoryLayer)
MEMORY_TYPES: tuple[MemoryType, ...] = get_args(MemoryType)

SLUG_PATTERN = "^[a-z0-9]+(?:[_-][a-z0-9]+)*$"  # no dot: a dotted name is free to mean a layer
SLUG_LENGTH = 64  # characters
NAME_LENGTH = 120  # characters
DESCRIPTION_LENGTH = 300  # characters
BODY_BYTES = 64 * 1024

_SLUG = re.compile(SLUG_PATTERN)
_LINES = {"name": NAME_LENGTH, "description": DESCRIPTION_LENGTH}
_MOST_ORIGINS = 20
_LONGEST_ORIGIN = 200
_NAMED_FILE = re.compile(
    r"`([^`\s]{1,200})`|\]\(([^)\s]{1,200})\)"
    r"|(?<![\w/:.@-])((?:[\w.-]{1,80}/){1,8}[\w.-]{1,80}\.\w{1,8})\b"
)
_MOST_NAMED = 20  # files that a memory names


class MemoryStoreError(Exception):
    """A memory could not be kept, read or forgotten. `hint` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Memory:
    """One memory. `name` and `description` are one line each; `body` is Markdown, at most 64 KiB.

    Attributes:
        origins: where texts of others came from that the model had read when it was remembered.
        source: the file that it was imported from; `imported` is the mark of what was imported then.
    """

    layer: MemoryLayer
    slug: str
    name: str
    description: str
    type: MemoryType
    body: str
    origins: tuple[str, ...] = ()
    source: str = ""
    imported: str = ""


def check_slug(slug: str) -> None:
    """Raises MemoryStoreError when the text is no slug."""
    # "memory" would be the index itself where file names do not tell upper from lower case.
    if len(slug) > SLUG_LENGTH or not _SLUG.fullmatch(slug) or slug == "memory":
        raise MemoryStoreError(
            f"{slug[:80]!r} is no slug",
            f"A slug has 1 to {SLUG_LENGTH} characters: lower-case letters and digits, with single - or _ "
            "between them.",
        )


def parse(layer: MemoryLayer, slug: str, text: str) -> Memory:
    """The memory that a file's text is. Raises MemoryStoreError."""
    front, body, problem = split_front_matter(text)
    if problem:
        raise MemoryStoreError(f"the front matter of {slug}.md cannot be read: {problem}")
    if not front:
        raise MemoryStoreError(f"{slug}.md does not begin with front matter (--- … ---)")
    fields = {key: front.get(key) for key in ("name", "description", "type")}
    missing = [key for key, value in fields.items() if not isinstance(value, str) or not value.strip()]
    if missing:
        raise MemoryStoreError(f"the front matter of {slug}.md lacks a text for {', '.join(missing)}")
    if fields["type"] not in MEMORY_TYPES:
        raise MemoryStoreError(f"the type of {slug}.md is none of {', '.join(MEMORY_TYPES)}")
    name, description = (one_line(str(fields[key]), limit) for key, limit in _LINES.items())
    kind = cast("MemoryType", fields["type"])
    found = front.get("from")
    origins = found[:_MOST_ORIGINS] if isinstance(found, list) else []
    told = tuple(one_line(each, _LONGEST_ORIGIN) for each in origins if isinstance(each, str))
    source, imported = (str(front.get(key) or "")[:1000] for key in ("source", "imported"))
    return Memory(layer, slug, name, description, kind, body, tuple(filter(None, told)), source, imported)


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most so many characters."""
    return shorten(" ".join(text.split()), limit)


def render(memory: Memory) -> str:
    """The text of a memory's file. Raises MemoryStoreError for what must not be kept."""
    import yaml

    check_slug(memory.slug)
    front = {
        "name": one_line(memory.name, NAME_LENGTH),
        "description": one_line(memory.description, DESCRIPTION_LENGTH),
        "type": memory.type,
    }
    empty = [key for key, value in front.items() if not value]
    if empty:
        raise MemoryStoreError(f"the {' and the '.join(empty)} of a memory must not be empty")
    origins = list(dict.fromkeys(one_line(each, _LONGEST_ORIGIN) for each in memory.origins))
    more: dict[str, Any] = {
        "from": origins[:_MOST_ORIGINS],
        "source": memory.source,
        "imported": memory.imported,
    }
    front |= {key: value for key, value in more.items() if value}
    try:
        size = len(memory.body.encode())
        dumped = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=10_000)
        text = f"---\n{dumped}---\n{memory.body}"
        text.encode()
    except UnicodeEncodeError as error:
        raise MemoryStoreError(
            "the text holds half of a surrogate pair, which no UTF-8 file can keep"
        ) from error
    if size > BODY_BYTES:
        raise MemoryStoreError(
            f"the body has {size} bytes; a memory holds at most {BODY_BYTES}",
            "Remember the gist, and keep the whole text in a workspace file that the memory names.",
        )
    return text


def content_mark(memory: Memory) -> str:
    """Return what tells whether a memory says what an import wrote: of its name, its description and its text."""
    parts = (memory.name, memory.description, memory.type, memory.body)
    return memory_digest("\0".join(parts).encode("utf-8", "replace"))


def named_files(text: str) -> tuple[str, ...]:
    """Return what reads as a path of the workspace in a text: in backticks, as a link, or with a slash and an ending.

    >>> named_files("Run `scripts/run.py`, see [this](docs/a.md) and src/b.py; not https://x.org/c.md or `list`.")
    ('scripts/run.py', 'docs/a.md', 'src/b.py')
    """
    found: dict[str, None] = {}
    for match in _NAMED_FILE.finditer(text[:BODY_BYTES]):
        name = next(filter(None, match.groups())).removeprefix("./").partition("#")[0]
        ending = name.rpartition("/")[2].rpartition(".")
        is_path = bool(ending[0]) and ending[2].isalnum() and not ending[2].isdigit() and "//" not in name
        if (
            is_path
            and not name.startswith(("/", "~", "..", "-"))
            and not set(name) & set("*?<>$(){}:,;=\"'|")
        ):
            found[name] = None
        if len(found) == _MOST_NAMED:
            break
    return tuple(found)


def render_index(layer: MemoryLayer, memories: Iterable[Memory]) -> str:
    """The text of a layer's ``MEMORY.md``."""
    lines = [
        f"# Memory: {layer}",
        "",
        "Kept mechanically from the files beside it; edits here are overwritten.",
        "",
    ]
    lines += [f"- [{_escaped(m.name)}]({m.slug}.md) ({m.type}): {_escaped(m.description)}" for m in memories]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([\\\[\]<>`*_])", r"\\\1", text)
