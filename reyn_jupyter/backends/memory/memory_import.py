"""Memories out of Markdown that is there: ``CLAUDE.md``, ``AGENTS.md``, a folder of notes, an Obsidian vault.

Invariants: a plan is made of what was read once, and what was shown is what is written. Nothing that is remembered is
overwritten but what an import wrote and nobody has changed since. No link is followed, no folder that begins with a dot
is entered, and how much is read is bounded; what is left out is named.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from reyn_jupyter.backends.memory.memory_format import (
    BODY_BYTES,
    MEMORY_TYPES,
    NAME_LENGTH,
    SLUG_LENGTH,
    Memory,
    MemoryLayer,
    MemoryStoreError,
    MemoryType,
    content_mark,
    one_line,
    render,
)
from reyn_jupyter.backends.memory.memory_store import MemoryFacts
from reyn_jupyter.guard.own_memories import memory_digest
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT
from reyn_jupyter.support.front_matter import split_front_matter
from reyn_jupyter.support.text import count, shorten

MOST_FILES = 2_000
MOST_BYTES = 16 << 20  # of all files together
ENDINGS = frozenset({".md", ".markdown", ".mdx"})
INSTRUCTIONS = frozenset({"claude.md", "claude.local.md", "agents.md", "gemini.md"})  # how work is to be done
_SHOWN = 20  # lines of a note
_DESCRIPTION = 160  # characters that are taken from a text where it has no description
_WIKI_LINK = re.compile(r"(!?)\[\[([^\[\]|#\n]{1,200})(#[^\[\]|\n]{0,200})?(?:\|([^\[\]\n]{1,200}))?\]\]")
_TAG = re.compile(r"(?<![\w#/&])#([A-Za-z][\w/-]{0,60})")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

ImportStep = Literal["new", "update", "unchanged", "kept"]


class MemoryImportError(MemoryStoreError):
    """Nothing can be imported from there."""


@dataclass(frozen=True)
class SourceNote:
    """A file that was read: its path as it is named, its text, and the mark of its bytes."""

    path: str
    text: str
    mark: str


@dataclass(frozen=True)
class ImportItem:
    """One note and what becomes of it: "new", "update", "unchanged", or "kept" where the memory was changed here."""

    step: ImportStep
    memory: Memory
    note: str = ""


@dataclass(frozen=True)
class ImportPlan:
    """What an import would do.

    Attributes:
        items: by path.
        left_out: files that are not imported, and why.
        gone: slugs of memories whose file is not there any more; they stay.
    """

    items: tuple[ImportItem, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[Memory, ...]:
        """Return what is to be written."""
        return tuple(each.memory for each in self.items if each.step in ("new", "update"))

    def of(self, step: ImportStep) -> tuple[ImportItem, ...]:
        return tuple(each for each in self.items if each.step == step)

    @property
    def preview(self) -> str:
        """Return it for a question: each memory with its file, and the first lines of its text."""
        lines = []
        for each in self.items:
            if each.step in ("new", "update"):
                memory = each.memory
                lines.append(f"{each.step} {memory.layer}/{memory.slug} ← {memory.source}")
                lines.append(f"    {memory.name} ({memory.type}): {memory.description}")
                lines += [f"    {line}" for line in memory.body.strip().split("\n")]
        lines += [f"kept {each.memory.slug} ← {each.memory.source}: {each.note}" for each in self.of("kept")]
        lines += [f"left out {path}: {why}" for path, why in self.left_out]
        if unchanged := len(self.of("unchanged")):
            lines.append(f"unchanged: {unchanged}")
        return "\n".join(lines)


# Reading


def read_notes(
    place: Path, named: str, may_read: Callable[[str], bool] = lambda path: True
) -> tuple[list[SourceNote], list[tuple[str, str]]]:
    """Return the notes of a file or folder, by path, and what was left out, with why.

    Args:
        place: the file or folder, no link itself.
        named: what it is called in `SourceNote.path`; files of a folder follow after a slash.
        may_read: whether a file may be read, by that path.

    Raises:
        MemoryImportError: there is nothing there, or it is a link.
    """
    notes: list[SourceNote] = []
    left_out: list[tuple[str, str]] = []
    left = MOST_BYTES
    for path, open_it in _files(place, named, left_out):
        if len(notes) == MOST_FILES:
            left_out.append((path, f"only {MOST_FILES:,} files are read at once"))
            break
        if not may_read(path):
            left_out.append((path, "a rule does not allow reading it"))
            continue
        try:
            data = _bounded(open_it(), min(left, BODY_BYTES * 2))
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            left_out.append((path, "it is not UTF-8"))
        except OSError as error:
            left_out.append((path, error.strerror or "it cannot be read"))
        else:
            left -= len(data)
            if text.strip():
                notes.append(SourceNote(path, text, memory_digest(data)))
            else:
                left_out.append((path, "it is empty"))
    return sorted(notes, key=lambda note: note.path), left_out


def _files(
    place: Path, named: str, left_out: list[tuple[str, str]]
) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield the Markdown files at a place, each with what opens it. Raises MemoryImportError."""
    flags = os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC
    try:
        status = place.lstat()
    except (OSError, ValueError) as error:
        raise MemoryImportError(f"{named} cannot be read: {getattr(error, 'strerror', error)}") from error
    if stat.S_ISREG(status.st_mode):
        yield named, lambda: os.open(place, flags)
        return
    if not stat.S_ISDIR(status.st_mode):
        raise MemoryImportError(f"{named} is a link or no file", "Name the file or folder itself.")
    # By descriptors: a folder that is swapped for a link meanwhile leads nowhere.
    for folder, folders, names, descriptor in os.fwalk(place, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        inside = PurePosixPath(Path(folder).relative_to(place).as_posix())
        for name in sorted(names):
            if PurePosixPath(name).suffix.lower() not in ENDINGS or name.startswith("."):
                continue
            path = (PurePosixPath(named) / inside / name).as_posix()
            try:
                mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
            except OSError:
                continue
            if not stat.S_ISREG(mode):
                left_out.append((path, "it is a link or no file"))
                continue
            yield path, lambda name=name, descriptor=descriptor: os.open(name, flags, dir_fd=descriptor)  # type: ignore[misc]


def _bounded(descriptor: int, most: int) -> bytes:
    """Return a file's bytes. Raises OSError for one that has more."""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is no file")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(0, f"it is larger than {most:,} bytes")
    return data


# Planning


def plan_import(
    notes: Iterable[SourceNote],
    layer: MemoryLayer,
    there: Iterable[MemoryFacts],
    taken: Iterable[str] = (),
    *,
    root: str = "",
    left_out: Iterable[tuple[str, str]] = (),
    origins: Callable[[str], tuple[str, ...]] = lambda path: (),
    mask: Callable[[str], str] = str,
    replace_changed: bool = False,
) -> ImportPlan:
    """Return what becomes of notes.

    Args:
        layer: where they go.
        there: the person's memories in that layer.
        taken: other slugs that may not be used.
        root: the file or folder that they are of, as `read_notes` got it; memories of files below it may be gone.
        origins: says of a note, by its path, where its text of others comes from.
        mask: takes secrets out.
        replace_changed: whether a memory that was changed here since its import is written over.
    """
    notes, there = list(notes), list(there)
    known = {each.memory.source: each for each in there if each.memory.source}
    used = {each.slug for each in there} | set(taken)
    above = above_of(root)
    slugs: dict[str, str] = {}
    for note in notes:
        before = known.get(note.path)
        slugs[note.path] = before.slug if before is not None else _free_slug(note.path, used, above)
        used.add(slugs[note.path])
    links = {_stem(path): slug for path, slug in slugs.items()}
    items, refused = [], list(left_out)
    for note in notes:
        memory = replace(_memory(note, layer, slugs[note.path], links, mask), origins=origins(note.path))
        marked = replace(memory, imported=f"{note.mark} {content_mark(memory)}")
        try:
            render(marked)
        except MemoryStoreError as error:
            refused.append((note.path, str(error)))
            continue
        items.append(_item(marked, known.get(note.path), replace_changed))
    read = {note.path for note in notes} | {path for path, _ in refused}
    below = [path for path in known if root and (path == root or path.startswith(f"{root.rstrip('/')}/"))]
    gone = [known[path].slug for path in below if path not in read]
    return ImportPlan(tuple(items), tuple(refused), tuple(sorted(gone)))


def above_of(root: str) -> str:
    """Return what of the paths of an import from elsewhere is left out of slugs and tables: the folders above it.

    >>> above_of("/home/me/vault"), above_of("notes/vault")
    ('/home/me/', '')
    """
    return f"{root.rstrip('/').rpartition('/')[0]}/" if root.startswith("/") else ""


def _item(memory: Memory, before: MemoryFacts | None, replace_changed: bool) -> ImportItem:
    if before is None:
        return ImportItem("new", memory)
    mark, _, content = before.memory.imported.partition(" ")
    if before.content == content:  # nobody changed it here
        return ImportItem("unchanged" if before.memory.imported == memory.imported else "update", memory)
    if replace_changed:
        return ImportItem("update", memory, "what was changed here is written over")
    if mark == memory.imported.partition(" ")[0]:
        return ImportItem("unchanged", memory, "the memory was changed here")
    return ImportItem("kept", memory, "the file and the memory both changed since the last import")


def _memory(
    note: SourceNote, layer: MemoryLayer, slug: str, links: Mapping[str, str], mask: Callable[[str], str]
) -> Memory:
    front, body, problem = split_front_matter(note.text)
    text = _WIKI_LINK.sub(lambda match: _plain_link(match, links), body)
    stem = PurePosixPath(note.path).stem
    is_instructions = PurePosixPath(note.path).name.lower() in INSTRUCTIONS
    title = _text(front.get("title")) or _text(front.get("name")) or _first_heading(body)
    if is_instructions:
        title = note.path if "/" in note.path else stem
    about = _text(front.get("description")) or _text(front.get("summary")) or _first_words(text)
    tags = _tags(front, body)
    aliases = _words(front.get("aliases")) or _words(front.get("alias"))
    said = [about]
    said += [f"also: {', '.join(aliases)}"] if aliases else []
    said += [" ".join(f"#{tag}" for tag in tags)] if tags else []
    given = front.get("type")
    kind: MemoryType = given if given in MEMORY_TYPES else "feedback" if is_instructions else "reference"
    if problem:
        text = f"{text.rstrip()}\n\n(The front matter of {note.path} could not be read: {problem})\n"
    return Memory(
        layer,
        slug,
        one_line(mask(title or stem or note.path), NAME_LENGTH) or slug,
        one_line(mask("; ".join(filter(None, said)) or f"what {note.path} says"), 300),
        kind,
        mask(text),
        source=note.path,
    )


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _words(value: Any) -> list[str]:
    """Return a list of words as front matter has it: as a list, or as one text with commas."""
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    plain = (" ".join(str(each).split()) for each in given[:20] if isinstance(each, str | int))
    return [shorten(each, 60) for each in plain if each]


def _tags(front: Mapping[str, Any], body: str) -> list[str]:
    found = [each.lstrip("#") for each in _words(front.get("tags")) or _words(front.get("tag"))]
    found += [match[1] for match in _TAG.finditer(_CODE.sub("", body[:BODY_BYTES]))]
    return list(dict.fromkeys(filter(None, found)))[:10]


def _first_heading(body: str) -> str:
    for line in body[:20_000].split("\n"):
        if line.startswith("#") and line.lstrip("#").startswith((" ", "\t")):
            return " ".join(line.strip("# \t\r").split())
    return ""


def _first_words(body: str) -> str:
    for line in body[:20_000].split("\n"):
        text = line.strip().lstrip("#>-*+ \t")
        if text and not line.lstrip().startswith(("#", "```", "---", "![", "|", "<")):
            return shorten(" ".join(text.split()), _DESCRIPTION)
    return ""


def _plain_link(match: re.Match[str], links: Mapping[str, str]) -> str:
    """Return a wiki link as words, and the memory that it leads to where that is imported too."""
    embedded, target, section, words = match.groups()
    said = (words or f"{target}{section or ''}").strip()
    slug = links.get(_stem(target))
    if embedded and slug is None:
        return f"[{said}]"
    return said if slug is None else f"{said} (memory {slug})"


def _stem(path: str) -> str:
    name = PurePosixPath(path.strip()).name
    return unicodedata.normalize("NFC", name.removesuffix(".md")).casefold()


def _free_slug(path: str, taken: set[str], above: str) -> str:
    """Return a slug for a file that no other memory has."""
    plain = PurePosixPath(path.removeprefix(above)).with_suffix("").as_posix()
    folded = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", folded).strip("-")
    mark = memory_digest(path.encode("utf-8", "surrogateescape"))[:8]
    if not slug or slug == "memory" or len(slug) > SLUG_LENGTH or slug in taken:
        slug = f"{slug[: SLUG_LENGTH - 9].strip('-')}-{mark}".strip("-")
    number = 2
    while slug in taken:
        slug = f"{slug[: SLUG_LENGTH - 12].strip('-')}-{mark}{number}"
        number += 1
    return slug


def summary(plan: ImportPlan, *, done: bool) -> dict[str, Any]:
    """Return a plan as an action answers it; lists are cut, and counted."""
    rows = []
    for each in plan.items:
        if each.step != "unchanged" or each.note:
            row = {"memory": each.memory.slug, "from": each.memory.source, "step": each.step}
            rows.append({**row, "note": each.note} if each.note else row)
    answer: dict[str, Any] = {
        "imported" if done else "would_import": len(plan.of("new")),
        "updated" if done else "would_update": len(plan.of("update")),
        "unchanged": len(plan.of("unchanged")),
        "kept": len(plan.of("kept")),
        "memories": rows,
    }
    if plan.left_out:
        answer["left_out"] = [{"path": path, "why": why} for path, why in plan.left_out[:_SHOWN]]
        answer["left_out_total"] = len(plan.left_out)
    if plan.gone:
        answer["gone"] = list(plan.gone[:_SHOWN])
        stay = count(len(plan.gone), "memory", "memories")
        answer["note"] = f"{stay} of files that are gone stay; forget what is not true any more."
    return answer
