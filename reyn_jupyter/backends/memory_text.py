"""A memory as text: front matter between ``---`` lines, then the body, and the lines of a layer's index.

Invariant: ``parse(layer, slug, render(memory)) == memory`` for every memory whose name and description are one
line each; a text that is no memory is refused with the reason, quickly, whatever it holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast, get_args

Layer = Literal["shared", "agent"]
MemoryType = Literal["user", "feedback", "project", "reference"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
MEMORY_TYPES: tuple[MemoryType, ...] = get_args(MemoryType)

SLUG_PATTERN = "^[a-z0-9]+(?:[_-][a-z0-9]+)*$"  # no dot: a dotted name is free to mean a layer
SLUG_LENGTH = 64  # characters
NAME_LENGTH = 120  # characters
DESCRIPTION_LENGTH = 300  # characters
BODY_BYTES = 64 * 1024

_SLUG = re.compile(SLUG_PATTERN)
_LINES = {"name": NAME_LENGTH, "description": DESCRIPTION_LENGTH}
FRONT_MATTER_BYTES = 8 * 1024
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_DEEPEST = 4  # levels of front matter


class MemoryStoreError(Exception):
    """A memory could not be kept, read or forgotten. `hint` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Memory:
    """One memory. `name` and `description` are one line each; `body` is Markdown, at most 64 KiB."""

    layer: Layer
    slug: str
    name: str
    description: str
    type: MemoryType
    body: str


@dataclass(frozen=True)
class DamagedMemory:
    """A file of a layer that is no memory, and why."""

    layer: Layer
    file: str
    problem: str


def check_slug(slug: str) -> None:
    """Raises MemoryStoreError when the text is no slug."""
    # "memory" would be the index itself where file names do not tell upper from lower case.
    if len(slug) > SLUG_LENGTH or not _SLUG.fullmatch(slug) or slug == "memory":
        raise MemoryStoreError(
            f"{slug[:80]!r} is no slug",
            f"A slug has 1 to {SLUG_LENGTH} characters: lower-case letters and digits, with single - or _ "
            "between them, e.g. report-style.",
        )


def parse(layer: Layer, slug: str, text: str) -> Memory:
    """The memory that a file's text is. Raises MemoryStoreError."""
    import yaml

    match = _FRONT_MATTER.match(text)
    if match is None or len(match[1].encode()) > FRONT_MATTER_BYTES:
        raise MemoryStoreError(f"{slug}.md does not begin with front matter (--- … ---)")
    try:
        front = yaml.load(match[1], _shallow_loader())  # noqa: S506 - it is a safe loader
    except (yaml.YAMLError, ValueError) as error:
        raise MemoryStoreError(f"the front matter of {slug}.md is no YAML: {str(error)[:200]}") from error
    if not isinstance(front, dict):
        raise MemoryStoreError(f"the front matter of {slug}.md holds no keys")
    fields = {key: front.get(key) for key in ("name", "description", "type")}
    missing = [key for key, value in fields.items() if not isinstance(value, str) or not value.strip()]
    if missing:
        raise MemoryStoreError(f"the front matter of {slug}.md lacks a text for {', '.join(missing)}")
    if fields["type"] not in MEMORY_TYPES:
        raise MemoryStoreError(f"the type of {slug}.md is none of {', '.join(MEMORY_TYPES)}")
    name, description = (_one_line(str(fields[key]), limit) for key, limit in _LINES.items())
    return Memory(layer, slug, name, description, cast("MemoryType", fields["type"]), text[match.end() :])


@cache
def _shallow_loader() -> Any:
    import yaml

    class ShallowLoader(yaml.SafeLoader):
        """A safe loader that gives up on deep nesting, which would cost it seconds."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.depth > _DEEPEST:
                raise yaml.YAMLError("it is nested too deeply")
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return ShallowLoader


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def render(memory: Memory) -> str:
    """The text of a memory's file. Raises MemoryStoreError for what must not be kept."""
    import yaml

    check_slug(memory.slug)
    front = {
        "name": _one_line(memory.name, NAME_LENGTH),
        "description": _one_line(memory.description, DESCRIPTION_LENGTH),
        "type": memory.type,
    }
    empty = [key for key, value in front.items() if not value]
    if empty:
        raise MemoryStoreError(f"the {' and the '.join(empty)} of a memory must not be empty")
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


def render_index(layer: Layer, memories: tuple[Memory, ...]) -> str:
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
