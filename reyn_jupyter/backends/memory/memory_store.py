"""The memories of a workspace: files in two layers, each with a mechanically kept ``MEMORY.md``.

Invariants:

- The files are the truth and the index follows from them. ``MEMORY.md`` is written from a listing and checked against
  a listing made after the write, so with any number of kernels the last index written names exactly the memories that
  are there. A damaged file is reported and hides no other.
- Nothing outside ``<root>/.reyn/memory`` is read or written: a link in the way is refused.
- A file that the person's sessions did not write, and that they have not trusted, is held back: it is none of theirs.
- A file is parsed once for each state of it, so that a listing of thousands costs a look at each.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reyn_jupyter.backends.memory.memory_format import (
    BODY_BYTES,
    LAYERS,
    Memory,
    MemoryLayer,
    MemoryStoreError,
    check_slug,
    content_mark,
    named_files,
    parse,
    render,
    render_index,
)
from reyn_jupyter.guard.own_memories import EveryMemory, MemoryOwnership, memory_digest
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.front_matter import FRONT_MATTER_BYTES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path

EXCERPT = 1_500  # characters of a memory's text that searches read
WHOSE = "it came with the folder, or was changed outside of a session, and the person has not trusted it"
HOW_TO_TRUST = "The person can look at it with %reyn memory held, and take it as theirs with %reyn trust."


@dataclass(frozen=True)
class MemoryFacts:
    """What is known of a memory without its text.

    Attributes:
        memory: it, its text cut after `EXCERPT` characters.
        size: bytes of its file. `changed`: when that was written, in seconds since the epoch.
        digest: of its file. `content`: of what an import would compare.
        files: what it names that reads as a path of the workspace.
    """

    memory: Memory
    size: int
    changed: float
    digest: str
    content: str
    files: tuple[str, ...] = ()

    @property
    def layer(self) -> MemoryLayer:
        return self.memory.layer

    @property
    def slug(self) -> str:
        return self.memory.slug


@dataclass(frozen=True)
class DamagedMemory:
    """A file of a layer that is no memory, and why."""

    layer: MemoryLayer
    file: str
    problem: str


@dataclass(frozen=True)
class MemoryListing:
    """What lies in the folder of memories: those of the person, files that are none, and what they have not trusted."""

    memories: tuple[MemoryFacts, ...] = ()
    damaged: tuple[DamagedMemory, ...] = ()
    held_back: tuple[MemoryFacts, ...] = ()


INDEX = "MEMORY.md"
_INDEX_ATTEMPTS = 20


class MemoryStore:
    """The memories of one workspace.

    Args:
        root: the workspace folder, no link in its path; the memories lie under ``.reyn/memory/shared`` and
            ``.reyn/memory/agent``.
        durable: see `Workspace`.
        own: says which files are memories of the person's; all of them where None.

    Example:
        >>> store = MemoryStore(root)                                                      # doctest: +SKIP
        >>> store.remember(Memory("shared", "style", "Style", "How code is written here",
        ...                       "feedback", "Full words, no abbreviations."))            # doctest: +SKIP
        False
        >>> store.read("style").body                                                       # doctest: +SKIP
        'Full words, no abbreviations.'
    """

    def __init__(self, root: Path, *, durable: bool = True, own: MemoryOwnership | None = None) -> None:
        self._folders = {layer: PlainFolder(root, ".reyn", "memory", layer) for layer in LAYERS}
        self._durable = durable
        self._own = own or EveryMemory()
        self._places = tuple(os.fspath(folder.path) for folder in self._folders.values())
        self._lock = threading.Lock()
        self._parsed: dict[tuple[MemoryLayer, str], tuple[_Stamp, MemoryFacts | DamagedMemory]] = {}

    def path(self, layer: MemoryLayer, slug: str) -> str:
        """Return where a memory lies, from the workspace root."""
        return f".reyn/memory/{layer}/{slug}.md"

    def revision(self) -> tuple[Hashable, ...]:
        """A value that moves whenever a memory appears, changes, goes or is trusted: one stat a file, nothing is read.

        The first parts are the files of each layer, none where it has none.
        """
        files = tuple(frozenset(_stamps(place).items()) for place in self._places)
        return (*files, self._own.stamp) if any(files) else files

    def memories(
        self, layer: MemoryLayer | None = None
    ) -> tuple[tuple[MemoryFacts, ...], tuple[DamagedMemory, ...]]:
        """Return the memories of a layer, or of both, by layer and slug; and the files that are none."""
        listing = self.listing(layer)
        return listing.memories, listing.damaged

    def listing(self, layer: MemoryLayer | None = None) -> MemoryListing:
        """Return all that lies in a layer, or in both, by layer and slug."""
        own: list[MemoryFacts] = []
        held_back: list[MemoryFacts] = []
        damaged: list[DamagedMemory] = []
        for each in LAYERS if layer is None else (layer,):
            for found in self._looked_at(each):
                if isinstance(found, DamagedMemory):
                    damaged.append(found)
                elif self._own.holds(found.digest):
                    own.append(found)
                else:
                    held_back.append(found)
        return MemoryListing(tuple(own), tuple(damaged), tuple(held_back))

    def _looked_at(self, layer: MemoryLayer) -> list[MemoryFacts | DamagedMemory]:
        """Return what each file of a layer is; one that did not change since it was parsed is not opened."""
        place = os.fspath(self._folders[layer].path)
        stamps = _stamps(place)
        names = sorted(stamps) if self._is_plain(layer) else []
        with self._lock:
            known = self._parsed
        found: dict[tuple[MemoryLayer, str], tuple[_Stamp, MemoryFacts | DamagedMemory]] = {}
        for name in names:
            before = known.get((layer, name))
            stamp = stamps[name]
            found[layer, name] = (
                before
                if before is not None and before[0] == stamp
                else (stamp, self._parse(layer, name, stamp))
            )
        with self._lock:
            others = {key: each for key, each in self._parsed.items() if key[0] != layer}
            self._parsed = {**others, **found}
        return [each for _, each in found.values()]

    def _is_plain(self, layer: MemoryLayer) -> bool:
        try:
            self._folders[layer].check()
        except OSError:
            return False
        return True

    def _parse(self, layer: MemoryLayer, name: str, stamp: _Stamp) -> MemoryFacts | DamagedMemory:
        try:
            memory, digest, size = self._load(layer, name.removesuffix(".md"))
        except MemoryStoreError as error:
            return DamagedMemory(layer, name, str(error))
        files = named_files(f"{memory.description}\n{memory.body}")
        short = replace(memory, body=memory.body[:EXCERPT])
        return MemoryFacts(short, size, stamp[1] / 1e9, digest, content_mark(memory), files)

    def trust(self, digests: Sequence[str]) -> None:
        """Take files with these hashes as the user's own. Raises MemoryStoreError: that cannot be kept."""
        self._take(digests)

    def content(self, facts: MemoryFacts) -> bytes | None:
        """Return the bytes of a memory's file; None if they are not those of the facts any more."""
        try:
            data = _read(self._folder(facts.layer), f"{facts.slug}.md")
        except MemoryStoreError:
            return None
        return data if memory_digest(data) == facts.digest else None

    def _take(self, digests: Sequence[str]) -> None:
        try:
            self._own.add(digests)
        except StateError as error:
            raise MemoryStoreError(f"whose memories these are could not be kept: {error}") from None

    def read(self, slug: str, layer: MemoryLayer | None = None) -> Memory:
        """One memory; without a layer the shared one, else the agent's own.

        Raises:
            MemoryStoreError: there is none, its file is damaged, or it is held back.
        """
        check_slug(slug)
        for each in LAYERS if layer is None else (layer,):
            if self._exists(each, slug):
                memory, digest, _ = self._load(each, slug)
                if not self._own.holds(digest):
                    raise MemoryStoreError(f"the memory {slug!r} is held back: {WHOSE}", HOW_TO_TRUST)
                return memory
        where = f"the {layer} layer" if layer else "either layer"
        raise MemoryStoreError(f"there is no memory {slug!r} in {where}", self._known(layer))

    def remember(self, memory: Memory) -> bool:
        """Write a memory, over an older one of the same layer and slug.

        Returns:
            Whether an older one was replaced.

        Raises:
            MemoryStoreError: a wrong slug, an empty line, a body over 64 KiB, a folder that takes no files.
        """
        return self.remember_all([memory]) == [True]

    def remember_all(self, memories: Sequence[Memory]) -> list[bool]:
        """Write memories as `remember` does, and their indexes once; return which replaced an older one.

        Raises:
            MemoryStoreError: one of them is none, and nothing was written; or one could not be written, and those
                before it are there.
        """
        texts = [render(memory).encode() for memory in memories]
        self._take([memory_digest(text) for text in texts])
        replaced: list[bool] = []
        layers = {memory.layer for memory in memories}
        try:
            for memory, text in zip(memories, texts, strict=True):
                folder = self._folder(memory.layer)
                replaced.append(self._exists(memory.layer, memory.slug))
                with _told(f"the memory {memory.slug!r} cannot be written"):
                    folder.replace(f"{memory.slug}.md", text, durable=self._durable)
        finally:
            if replaced:
                for layer in layers:
                    with _told(f"the index of the {layer} layer cannot be written"):
                        self._index(layer)
        return replaced

    def forget(self, layer: MemoryLayer, slug: str) -> None:
        """Remove a memory. Raises MemoryStoreError when there is none, or when its folder is read-only."""
        check_slug(slug)
        with _told(f"the memory {slug!r} cannot be removed"):
            try:
                self._folder(layer).remove(f"{slug}.md")
            except FileNotFoundError:
                message = f"there is no memory {slug!r} in the {layer} layer"
                raise MemoryStoreError(message, self._known(layer)) from None
            self._index(layer)

    def _folder(self, layer: MemoryLayer) -> PlainFolder:
        folder = self._folders[layer]
        try:
            folder.check()
        except OSError:
            raise MemoryStoreError(
                f"the memory folder .reyn/memory/{layer} is reached through a link or a file, so it is not used",
                "Put a plain folder in its place.",
            ) from None
        return folder

    def _files(self, layer: MemoryLayer) -> list[str]:
        """Return the names of all that may be memories, links and pipes among them."""
        files, others = self._folders[layer].entries()
        names = (name for name in (*files, *others) if name.endswith(".md") and not name.startswith("."))
        return sorted(name for name in names if name != INDEX)

    def _exists(self, layer: MemoryLayer, slug: str) -> bool:
        return self._folder(layer).holds(f"{slug}.md")

    def _known(self, layer: MemoryLayer | None) -> str:
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

    def _load(self, layer: MemoryLayer, slug: str) -> tuple[Memory, str, int]:
        """Return a memory, the digest of its file, and its bytes."""
        check_slug(slug)
        data = _read(self._folder(layer), f"{slug}.md")
        return parse(layer, slug, _decoded(data, f"{slug}.md")), memory_digest(data), len(data)

    def _index(self, layer: MemoryLayer) -> None:
        place = os.fspath(self._folders[layer].path)
        for _ in range(_INDEX_ATTEMPTS):
            read = _stamps(place)
            text = render_index(layer, (each.memory for each in self.memories(layer)[0]))
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


_Stamp = tuple[int, int, int]


def _stamps(folder: str) -> dict[str, _Stamp]:
    """Return what tells one state of each file of a folder from another.

    It runs at every turn, so it does not ask about links on the way.
    """
    stamps = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".md") and entry.name != INDEX and not entry.name.startswith("."):
                status = entry.stat(follow_symlinks=False)
                stamps[entry.name] = (status.st_ino, status.st_mtime_ns, status.st_size)
    return stamps


def _read(folder: PlainFolder, name: str) -> bytes:
    limit = BODY_BYTES + FRONT_MATTER_BYTES
    try:
        return folder.read(name, limit)
    except OSError as error:
        raise MemoryStoreError(f"{name} cannot be read: {_reason(error, limit)}") from error


def _decoded(data: bytes, name: str) -> str:
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
