"""Memories as Markdown files with front matter, in two layers, each with a mechanically kept ``MEMORY.md``.

Invariant: the files are the truth and the index follows from them. ``MEMORY.md`` is written from a listing
and checked against a listing made after the write, so with any number of kernels the last index written
names exactly the memories that are there. A damaged file is reported and hides no other. Nothing outside
``<root>/.reyn/memory`` is read or written: a link in the way is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from reyn_jupyter.backends.memory_text import (
    BODY_BYTES,
    FRONT_MATTER_BYTES,
    LAYERS,
    DamagedMemory,
    Layer,
    Memory,
    MemoryStoreError,
    check_slug,
    parse,
    render,
    render_index,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path

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
        self._base = root / ".reyn" / "memory"
        self._durable = durable
        self._places = tuple(os.fspath(self._base / layer) for layer in LAYERS)

    def path(self, layer: Layer, slug: str) -> str:
        """Where a memory lies, from the workspace root."""
        return f".reyn/memory/{layer}/{slug}.md"

    def revision(self) -> tuple[Hashable, ...]:
        """A value that moves whenever a memory appears, changes or goes: one stat a file, nothing is read."""
        return tuple(map(_stamps, self._places))

    def memories(self, layer: Layer | None = None) -> tuple[tuple[Memory, ...], tuple[DamagedMemory, ...]]:
        """The memories of a layer, or of both, by layer and slug; and the files that are none."""
        memories: list[Memory] = []
        damaged: list[DamagedMemory] = []
        for each in LAYERS if layer is None else (layer,):
            for entry in self._files(each):
                try:
                    memories.append(self._load(each, entry.name.removesuffix(".md")))
                except MemoryStoreError as error:
                    damaged.append(DamagedMemory(each, entry.name, str(error)))
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
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._replace(folder / f"{memory.slug}.md", text)
            self._index(memory.layer)
        return replaced

    def forget(self, layer: Layer, slug: str) -> None:
        """Remove a memory. Raises MemoryStoreError when there is none, or when its folder is read-only."""
        check_slug(slug)
        with _told(f"the memory {slug!r} cannot be removed"):
            try:
                (self._folder(layer) / f"{slug}.md").unlink()
            except FileNotFoundError:
                message = f"there is no memory {slug!r} in the {layer} layer"
                raise MemoryStoreError(message, self._known(layer)) from None
            self._index(layer)

    def _folder(self, layer: Layer) -> Path:
        folder = self._base / layer
        if folder.resolve() != folder:
            raise MemoryStoreError(
                f"the memory folder .reyn/memory/{layer} is reached through a link, so it is not used",
                "Put a plain folder in the link's place.",
            )
        return folder

    def _files(self, layer: Layer) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._folder(layer)) as entries:
                found = [e for e in entries if e.name.endswith(".md") and not e.name.startswith(".")]
        except (OSError, MemoryStoreError):
            return iter(())
        return iter(sorted((e for e in found if e.name != INDEX), key=lambda entry: entry.name))

    def _exists(self, layer: Layer, slug: str) -> bool:
        return os.path.lexists(self._folder(layer) / f"{slug}.md")

    def _known(self, layer: Layer | None) -> str:
        slugs = sorted(
            {
                e.name.removesuffix(".md")
                for each in LAYERS
                if layer in (None, each)
                for e in self._files(each)
            }
        )
        if not slugs:
            return "Nothing is remembered there yet."
        more = f" and {len(slugs) - 20} more" if len(slugs) > 20 else ""
        return f"There are: {', '.join(slugs[:20])}{more}."

    def _load(self, layer: Layer, slug: str) -> Memory:
        check_slug(slug)
        return parse(layer, slug, _read(self._folder(layer) / f"{slug}.md"))

    def _index(self, layer: Layer) -> None:
        text = render_index(layer, self.memories(layer)[0])
        for _ in range(_INDEX_ATTEMPTS):
            self._replace(self._folder(layer) / INDEX, text)
            written, text = text, render_index(layer, self.memories(layer)[0])
            if text == written:
                return

    def _replace(self, path: Path, text: str) -> None:
        """Write a whole file or nothing: a reader sees the old one or the new one."""
        temporary = path.with_name(f".{path.stem}.{secrets.token_hex(8)}.tmp")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


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
    """What tells one state of a folder from another. It runs at every turn, so it does not ask about links."""
    stamps = set()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".md") and entry.name != INDEX:
                status = entry.stat(follow_symlinks=False)
                stamps.add((entry.name, status.st_ino, status.st_mtime_ns, status.st_size))
    return frozenset(stamps)


def _read(path: Path) -> str:
    limit = BODY_BYTES + FRONT_MATTER_BYTES
    try:
        # Without O_NONBLOCK a FIFO that someone left in the folder would hang the kernel.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        reason = "it is a link" if path.is_symlink() else error.strerror
        raise MemoryStoreError(f"{path.name} cannot be read: {reason}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MemoryStoreError(f"{path.name} is no ordinary file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise MemoryStoreError(f"{path.name} is larger than {limit} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MemoryStoreError(f"{path.name} is not UTF-8 (byte {error.start})") from error
