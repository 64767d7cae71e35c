"""Children of a JSON value by path, and the next place that holds a text.

Invariants: a value has the words that the static tree gives it (`render.tree_view`); nothing is parsed that is larger
than what is shown of it; an answer holds at most 200 children.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import Field

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.tree_view import ARRAY_HEAD, SMALL_BYTES, array_text, kind_of, value_text
from reyn_jupyter.notebook.render.value_text import Look, quote_json
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.notebook.serving.operations.blob_operations import BlobReading, reading
from reyn_jupyter.outputs.byte_source import BLOCK, MaskedSource
from reyn_jupyter.outputs.json_index import NotJsonError, parse_at
from reyn_jupyter.outputs.json_tree import Child, JsonTree, PathError
from reyn_jupyter.support.encoding import boundary
from reyn_jupyter.support.text import count

PAGE = 200
PARSED = 1 << 12  # bytes; a larger container is counted, not parsed
TEXT_PARSED = 1 << 16  # the same for texts and numbers
KEY = 80
COPIED = 1 << 18
_OPENERS = (b"[", b"{")
_TEXT_HEAD = 1 << 13


class BytePlace(WireMessage):
    """Place a value in the document, in bytes, as an earlier answer gave it; this saves walking the path."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)


class ReadTree(WireMessage):
    """Ask for children `offset` to `offset + limit - 1` of the value at a path from the root, or at a place."""

    blob: str
    path: tuple[str | int, ...] = ()
    place: BytePlace | None = None
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=100, ge=1, le=PAGE)


class TreeChild(WireMessage):
    """Describe one value. `position` is its number in its container, which a path may hold; `step` is the Python
    that reaches it, "" where its key is too long or secret; `count` is None for what has no children."""

    position: int
    key: str | None
    text: str
    kind: str
    count: int | None
    step: str
    place: BytePlace


class TreePage(WireMessage):
    """List children. `value` is the container itself, `total` the number of its children."""

    value: TreeChild
    total: int
    offset: int
    children: tuple[TreeChild, ...]


class FindInTree(WireMessage):
    """Search for the next key or value after byte `after` that holds `text`, large and small letters alike."""

    blob: str
    text: str = Field(min_length=1, max_length=400)
    after: int = 0


class FindPath(WireMessage):
    """Ask for the place of a value by a path of keys and numbers."""

    blob: str
    path: tuple[str | int, ...] = ()


class TreePath(WireMessage):
    """List the positions on the way from the root; `next` is the byte to search on from. Where there is nothing,
    `found` is False and the positions are those of the part of the way that exists."""

    found: bool
    way: tuple[int, ...] = ()
    next: int = 0
    note: str = ""


class ReadValue(WireMessage):
    blob: str
    place: BytePlace


class TreeValue(WireMessage):
    text: str


async def children(context: OperationContext, arguments: ReadTree) -> TreePage:
    def work(at: BlobReading) -> TreePage:
        tree = _tree(at)
        value = _value(tree, arguments)
        if tree.source.read(value.start, 1) not in _OPENERS:
            shown = _shown(tree, value, context.look)
            return TreePage(value=shown, total=0, offset=0, children=())
        index = tree.index(value)
        found = tree.children(index, arguments.offset, arguments.offset + arguments.limit)
        return TreePage(
            value=_shown(tree, value, context.look),
            total=index.count,
            offset=arguments.offset,
            children=tuple(_shown(tree, child, context.look) for child in found),
        )

    try:
        return await reading(context, arguments.blob, work, "reading the structure")
    except PathError as error:
        raise OperationError(
            f"{context.look.line(str(error), 200)}.", "Open it from the root instead."
        ) from None


def _tree(at: BlobReading) -> JsonTree:
    if not at.info.is_json:
        raise OperationError("The blob is no JSON, so it has no tree.", "The text pane shows it.")
    return JsonTree(at.view.source, at.info.id, lambda: at.view.json, at.kept)


def _value(tree: JsonTree, arguments: ReadTree) -> Child:
    place = arguments.place
    if place is None:
        return tree.walk(arguments.path)[-1]
    if not place.start < place.end <= tree.source.size:
        raise PathError(f"there is nothing from byte {place.start} to {place.end}", 0)
    return Child(0, None, place.start, place.end)


def _shown(tree: JsonTree, child: Child, look: Look) -> TreeChild:
    try:
        kind, text, count = _words(tree, child, look)
    except (NotJsonError, json.JSONDecodeError) as error:
        at = child.start + error.pos if isinstance(error, json.JSONDecodeError) else child.start
        kind, text, count = "other", f"damaged JSON at byte {at:,}: {look.line(str(error), 120)}", None
    key = look.line(child.position if child.key is None else child.key, KEY)
    return TreeChild(
        position=child.position,
        key=key,
        text=text,
        kind=kind,
        count=count,
        step=_step(child, key),
        place=BytePlace(start=child.start, end=child.end),
    )


def _step(child: Child, shown: str) -> str:
    """Return what Python appends; nothing for a key that is cut or has a secret in it."""
    key = child.key
    if key is None:
        return f"[{child.position}]"
    if shown.endswith("…") or "[redacted:" in shown:
        return ""
    return f'["{key}"]' if key.isprintable() and not set(key) & {'"', "\\"} else f"[{key!r}]"


def _words(tree: JsonTree, child: Child, look: Look) -> tuple[str, str, int | None]:
    """Return the kind of a value, its words, and how many children it has."""
    first, size = tree.source.read(child.start, 1), child.end - child.start
    if first not in _OPENERS:
        return _scalar(tree, child, first, look)
    if size <= PARSED:
        try:
            value = parse_at(tree.source, child.start, child.end)
        except (RecursionError, ValueError):
            pass  # it is counted instead, and the child that is wrong, or a number past all bounds, says so
        else:
            return kind_of(value), value_text(value, look), len(value)
    inner = child.inner if child.inner >= 0 else tree.index(child).count
    if first == b"{":
        return "object", count(inner, "key"), inner
    return "array", _array(tree, child, inner, look), inner


def _array(tree: JsonTree, child: Child, inner: int, look: Look) -> str:
    """Return a large array: its first elements when they are small, else how many there are."""
    words = count(inner, "item")
    start = tree.source.read(child.start, 64).lstrip(b"[ \t\r\n")[:1] if inner else b"["
    if start in _OPENERS:
        return words
    head = list(tree.children(tree.index(child), 0, ARRAY_HEAD))
    if any(each.end - each.start > SMALL_BYTES for each in head):
        return words
    try:
        return array_text([parse_at(tree.source, each.start, each.end) for each in head], inner, look)
    except (ValueError, RecursionError):
        return words


def _scalar(tree: JsonTree, child: Child, first: bytes, look: Look) -> tuple[str, str, None]:
    size = child.end - child.start
    if size > TEXT_PARSED:
        head = tree.source.read(child.start, _TEXT_HEAD)
        if first != b'"':
            return "number", f"<number of {size:,} digits>", None
        return (
            "string",
            f"{quote_json(look.line(_text_head(head), 240))} ({formatting.size(size - 2)} in all)",
            None,
        )
    try:
        value = parse_at(tree.source, child.start, child.end)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return "number", f"<int of about {size} digits>", None
    return kind_of(value), value_text(value, look), None


def _text_head(raw: bytes) -> str:
    """Return the beginning of a JSON string, of which the end is cut off somewhere."""
    raw = raw[: boundary(raw, len(raw) - 4)]
    for cut in range(12):
        try:
            return str(json.loads(raw[: len(raw) - cut] + b'"'))
        except ValueError:
            continue
    return raw[1:].decode(errors="replace")


async def find(context: OperationContext, arguments: FindInTree) -> TreePath:
    def work(at: BlobReading) -> TreePath:
        tree = _tree(at)
        for offset, length in _occurrences(tree, arguments.text, arguments.after):
            way = tree.way_to(offset)
            last = way[-1]
            in_key = offset < last.start
            if not in_key and tree.source.read(last.start, 1) in _OPENERS:
                continue  # punctuation between values
            following = last.start if in_key else max(last.end, offset + length)
            return TreePath(found=True, way=tuple(child.position for child in way[1:]), next=following)
        return TreePath(found=False)

    return await reading(context, arguments.blob, work, "searching")


def _occurrences(tree: JsonTree, text: str, after: int) -> Iterator[tuple[int, int]]:
    """Return where a text stands as JSON writes it, with or without escapes; block by block, with an overlap."""
    import re2

    options = re2.Options()
    options.log_errors = False
    forms = {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    words = "|".join(re2.escape(form.encode("utf-8", "replace").decode()) for form in sorted(forms))
    pattern = re2.compile(f"(?i){words}".encode(), options)
    overlap = 4 * max(map(len, forms)) + 8
    offset = max(0, after)
    while offset < tree.source.size:
        block = tree.source.read(offset, BLOCK + overlap)
        place = 0
        while (found := pattern.search(block, place)) and found.start() < BLOCK:
            yield offset + found.start(), found.end() - found.start()
            place = found.end()
        offset += max(BLOCK, place)


async def way(context: OperationContext, arguments: FindPath) -> TreePath:
    def work(at: BlobReading) -> TreePath:
        tree = _tree(at)
        try:
            found = tree.walk(arguments.path)
        except PathError as error:
            found = tree.walk(arguments.path[: error.walked])
            note = context.look.line(f"{error}; opened as far as it goes", 300)
            return TreePath(found=False, way=tuple(child.position for child in found[1:]), note=note)
        return TreePath(found=True, way=tuple(child.position for child in found[1:]), next=found[-1].start)

    return await reading(context, arguments.blob, work, "looking for the place")


async def value(context: OperationContext, arguments: ReadValue) -> TreeValue:
    def work(at: BlobReading) -> TreeValue:
        size = arguments.place.end - arguments.place.start
        if size > COPIED:
            raise OperationError(
                f"The value has {formatting.size(size)}, and at most {formatting.size(COPIED)} are copied.",
                "Copy its path, and take it in Python.",
            )
        # Covered before it is cut: a place may begin or end inside of a secret.
        covered = MaskedSource(at.view.source, context.session.parts.services.redactor.masked)
        raw = covered.read(arguments.place.start, size)
        return TreeValue(text=context.look.text(raw.decode(errors="replace"), COPIED))

    return await reading(context, arguments.blob, work, "reading the value")


OPERATIONS = (
    ServedOperation("tree.children", ReadTree, TreePage, children),
    ServedOperation("tree.find", FindInTree, TreePath, find),
    ServedOperation("tree.way", FindPath, TreePath, way),
    ServedOperation("tree.value", ReadValue, TreeValue, value),
)
