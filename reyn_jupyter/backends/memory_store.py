"""Memories as Markdown files with front matter, in two layers, each with a mechanically kept ``MEMORY.md``.

Invariants:

- The files are the truth and the index follows from them. ``MEMORY.md`` is written from a listing and checked against
  a listing made after the write, so with any number of kernels the last index written names exactly the memories that
  are there. A damaged file is reported and hides no other.
- ``parse(layer, slug, render(memory)) == memory`` for every memory whose name and description are one line each; a
  text that is no memory is refused with the reason, quickly, whatever it holds.
- Nothing outside ``<root>/.reyn/memory`` is read or written: a link in the way is refused.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path


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
    return shorten(" ".join(text.split()), limit)


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


INDEX = "MEMORY.md"
_INDEX_ATTEMPTS = 20


class MemoryStore:
    """The memories of one workspace.

    Args:
        root: the workspace folder, no link in its path; the memories lie under ``.reyn/memory/shared`` and
            ``.reyn/memory/agent``.
        durable: see `Workspace`.

    Example:
        >>> store = MemoryStore(root)                                                      # doctest: +SKIP
        >>> store.remember(Memory("shared", "style", "Style", "How code is written here",
        ...                       "feedback", "Full words, no abbreviations."))            # doctest: +SKIP
        False
        >>> store.read("style").body                                                       # doctest: +SKIP
        'Full words, no abbreviations.'
    """

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        self._folders = {layer: PlainFolder(root, ".reyn", "memory", layer) for layer in LAYERS}
        self._durable = durable
        self._places = tuple(os.fspath(folder.path) for folder in self._folders.values())

    def path(self, layer: Layer, slug: str) -> str:
        """Return where a memory lies, from the workspace root."""
        return f".reyn/memory/{layer}/{slug}.md"

    def revision(self) -> tuple[Hashable, ...]:
        """A value that moves whenever a memory appears, changes or goes: one stat a file, nothing is read."""
        return tuple(map(_stamps, self._places))

    def memories(self, layer: Layer | None = None) -> tuple[tuple[Memory, ...], tuple[DamagedMemory, ...]]:
        """The memories of a layer, or of both, by layer and slug; and the files that are none."""
        memories: list[Memory] = []
        damaged: list[DamagedMemory] = []
        for each in LAYERS if layer is None else (layer,):
            for name in self._files(each):
                try:
                    memories.append(self._load(each, name.removesuffix(".md")))
                except MemoryStoreError as error:
                    damaged.append(DamagedMemory(each, name, str(error)))
        return tuple(memories), tuple(damaged)

    def read(self, slug: str, layer: Layer | None = None) -> Memory:
        """One memory; without a layer the shared one, else the agent's own.

        Raises:
            MemoryStoreError: there is none, or its file is damaged.
        """
        check_slug(slug)
        for each in LAYERS if layer is None else (layer,):
            if self._exists(each, slug):
                return self._load(each, slug)
        where = f"the {layer} layer" if layer else "either layer"
        raise MemoryStoreError(f"there is no memory {slug!r} in {where}", self._known(layer))

    def remember(self, memory: Memory) -> bool:
        """Write a memory, over an older one of the same layer and slug.

        Returns:
            Whether an older one was replaced.

        Raises:
            MemoryStoreError: a wrong slug, an empty line, a body over 64 KiB, a folder that takes no files.
        """
        text = render(memory)
        folder = self._folder(memory.layer)
        replaced = self._exists(memory.layer, memory.slug)
        with _told(f"the memory {memory.slug!r} cannot be written"):
            folder.replace(f"{memory.slug}.md", text.encode(), durable=self._durable)
            self._index(memory.layer)
        return replaced

    def forget(self, layer: Layer, slug: str) -> None:
        """Remove a memory. Raises MemoryStoreError when there is none, or when its folder is read-only."""
        check_slug(slug)
        with _told(f"the memory {slug!r} cannot be removed"):
            try:
                self._folder(layer).remove(f"{slug}.md")
            except FileNotFoundError:
                message = f"there is no memory {slug!r} in the {layer} layer"
                raise MemoryStoreError(message, self._known(layer)) from None
            self._index(layer)

    def _folder(self, layer: Layer) -> PlainFolder:
        folder = self._folders[layer]
        try:
            folder.check()
        except OSError:
            raise MemoryStoreError(
                f"the memory folder .reyn/memory/{layer} is reached through a link or a file, so it is not used",
                "Put a plain folder in its place.",
            ) from None
        return folder

    def _files(self, layer: Layer) -> list[str]:
        """Return the names of all that may be memories, links and pipes among them."""
        files, others = self._folders[layer].entries()
        names = (name for name in (*files, *others) if name.endswith(".md") and not name.startswith("."))
        return sorted(name for name in names if name != INDEX)

    def _exists(self, layer: Layer, slug: str) -> bool:
        return self._folder(layer).holds(f"{slug}.md")

    def _known(self, layer: Layer | None) -> str:
        slugs = sorted(
            {
                name.removesuffix(".md")
                for each in LAYERS
                if layer in (None, each)
                for name in self._files(each)
            }
        )
        if not slugs:
            return "Nothing is remembered there yet."
        more = f" and {len(slugs) - 20} more" if len(slugs) > 20 else ""
        return f"There are: {', '.join(slugs[:20])}{more}."

    def _load(self, layer: Layer, slug: str) -> Memory:
        check_slug(slug)
        return parse(layer, slug, _read(self._folder(layer), f"{slug}.md"))

    def _index(self, layer: Layer) -> None:
        place = os.fspath(self._folders[layer].path)
        for _ in range(_INDEX_ATTEMPTS):
            read = _stamps(place)
            text = render_index(layer, self.memories(layer)[0])
            self._folder(layer).replace(INDEX, text.encode(), durable=self._durable)
            if _stamps(place) == read:  # no other writer was faster
                return


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MemoryStoreError(
            f"{what}: {error.strerror or type(error).__name__}",
            "Check the rights and the free space of .reyn/memory.",
        ) from error


def _stamps(folder: str) -> frozenset[tuple[str, int, int, int]]:
    """Return what tells one state of a folder from another. It runs at every turn, so it does not ask about links."""
    stamps = set()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".md") and entry.name != INDEX:
                status = entry.stat(follow_symlinks=False)
                stamps.add((entry.name, status.st_ino, status.st_mtime_ns, status.st_size))
    return frozenset(stamps)


def _read(folder: PlainFolder, name: str) -> str:
    limit = BODY_BYTES + FRONT_MATTER_BYTES
    try:
        data = folder.read(name, limit)
    except OSError as error:
        raise MemoryStoreError(f"{name} cannot be read: {_reason(error, limit)}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MemoryStoreError(f"{name} is not UTF-8 (byte {error.start})") from error


def _reason(error: OSError, limit: int) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link"
    if error.errno == errno.EINVAL:
        return "it is no ordinary file"
    if error.errno == errno.EFBIG:
        return f"it is larger than {limit} bytes"
    return error.strerror or type(error).__name__
