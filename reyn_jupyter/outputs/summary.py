"""Summarise a blob for the history: kind, size, and its most telling parts, in a budget of bytes.

Invariant: a summary never passes its budget and is valid UTF-8. Header and separators are reserved first; the lines of
head and tail then share what is left fairly, so that a long one never swallows another. Whatever is left out beyond
what the header's count tells is announced by one line in its place.
Source of the three formats: tool-output design, "automatic summary".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from reyn_jupyter.outputs.blobs.manifest import headline
from reyn_jupyter.outputs.content import FileContent, OutputPolicy, Structured, Text
from reyn_jupyter.outputs.convert import label_of
from reyn_jupyter.outputs.line_index import (
    LineIndex,
    count_lines,
    file_lines,
    first_lines,
    last_lines,
    read_lines,
)
from reyn_jupyter.support.encoding import ELLIPSIS, clean, clip, compact, one_line

Mask = Callable[[str], str]
PREFIX_BYTES = len("[blob:] ") + 36
HEAD_ELEMENTS = 2
_NAMES_SEEN = 100  # more never fit into a summary


def unmasked(text: str) -> str:
    return text


@dataclass(frozen=True)
class SummarySection:
    """One section: its title and lines. Of "keys" whole lines are dropped (`total` counts them), others are clipped."""

    title: str
    lines: tuple[str, ...]
    rule: Literal["lines", "keys"] = "lines"
    total: int = 0

    @property
    def separator(self) -> str:
        return f"── {self.title} ──"


@dataclass(frozen=True)
class Sketch:
    """A summary before it is cut: the header and the sections."""

    header: str
    parts: tuple[SummarySection, ...] = ()


def sketch_text(text: str, policy: OutputPolicy) -> Sketch:
    count = count_lines(text)
    head = first_lines(text, policy.head_lines)
    tail = last_lines(text, min(policy.tail_lines, max(0, count - len(head))))
    return _sketch_lines(headline("text", count), head, tail)


def _sketch_lines(header: str, head: Sequence[str], tail: Sequence[str]) -> Sketch:
    parts = [
        SummarySection(title, tuple(lines)) for title, lines in (("head", head), ("tail", tail)) if lines
    ]
    return Sketch(header, tuple(parts))


def sketch_value(value: Any, frame: dict[str, Any] | None = None) -> Sketch:
    """The sketch of a JSON value in memory, or of records that are encoded on demand."""
    if isinstance(value, dict):
        lines = tuple(
            f"{one_line(key)}: {label_of(item)}" for key, item in islice(value.items(), _NAMES_SEEN)
        )
        return Sketch(headline("json_object", len(value)), _keys("keys", lines, len(value)))
    if isinstance(value, str | int | float | None):
        return Sketch("json_value", (SummarySection("head", (to_text(value),)),))
    head = tuple(to_text(element) for element in value[:HEAD_ELEMENTS])
    schema, total = _schema(value[0] if len(value) else None, frame, empty=not len(value))
    parts = _keys("schema", schema, total) + ((SummarySection("head", head),) if head else ())
    return Sketch(headline("json_array", len(value), frame), parts)


def _keys(title: str, lines: tuple[str, ...], total: int) -> tuple[SummarySection, ...]:
    return (SummarySection(title, lines, "keys", total),) if lines else ()


def _schema(first: Any, frame: dict[str, Any] | None, *, empty: bool) -> tuple[tuple[str, ...], int]:
    """The schema lines of an array: dtypes of a frame, types of the first element's keys, or its own type."""
    if frame:
        columns = [*(frame.get("index") or {}).get("levels", []), *frame["columns"]]
        shown = columns[:_NAMES_SEEN]
        return tuple(f"{one_line(column['key'])}: {column['dtype']}" for column in shown), len(columns)
    if empty:
        return (), 0
    if isinstance(first, dict) and label_of(first) != "number":
        pairs = islice(first.items(), _NAMES_SEEN)
        return tuple(f"{one_line(key)}: {label_of(item)}" for key, item in pairs), len(first)
    return (label_of(first),), 1


def to_text(value: Any) -> str:
    """A value as compact JSON; its label when it is nested too deep to be written."""
    try:
        return compact(value)
    except (RecursionError, ValueError, TypeError):
        return label_of(value)


def sketch_file(content: FileContent, policy: OutputPolicy, mask: Mask = unmasked) -> Sketch:
    """The sketch of a handed-over file, read in parts. Raises OSError."""
    from reyn_jupyter.outputs.byte_source import FileSource, MaskedSource
    from reyn_jupyter.outputs.json_index import NotJsonError, index_json

    source = FileSource(content.path)
    shown = MaskedSource(source, mask)
    try:
        if content.kind == "json":
            try:
                return _sketch_index(shown, index_json(source))
            except (NotJsonError, ValueError, RecursionError):
                pass
        return _sketch_source(shown, file_lines(source), policy)
    finally:
        source.close()


def _sketch_source(source: Any, index: LineIndex, policy: OutputPolicy) -> Sketch:
    def line(number: int) -> str:
        raw, _, _ = read_lines(source, index, number, number + 1, policy.summary_bytes)
        return raw.removesuffix(b"\r").decode(errors="replace") + (
            ELLIPSIS if len(raw) == policy.summary_bytes else ""
        )

    head = min(policy.head_lines, index.count)
    tail = range(max(head, index.count - policy.tail_lines), index.count)
    return _sketch_lines(
        headline("text", index.count), [line(i) for i in range(head)], [line(i) for i in tail]
    )


def _sketch_index(source: Any, index: Any) -> Sketch:
    from reyn_jupyter.outputs.json_index import elements, label_at, members, parse_at

    if index.kind == "json_object":
        shown = islice(members(source, index), _NAMES_SEEN)
        lines = tuple(f"{one_line(m.key)}: {label_at(source, m.start, m.end, m.inner)}" for m in shown)
        return Sketch(headline("json_object", index.count), _keys("keys", lines, index.count))
    first = [
        parse_at(source, start, end) if end - start < 1 << 20 else label_at(source, start, end)
        for start, end in elements(source, index, 0, HEAD_ELEMENTS)
    ]
    sketch = sketch_value(first)
    return Sketch(headline(index.kind, index.count), sketch.parts)


def render(sketch: Sketch, limit: int) -> str:
    """Write a sketch in at most `limit` bytes.

    >>> print(render(sketch_text("a\\n" * 9, OutputPolicy()), 400))
    text | 9 lines
    ── head ──
    a
    a
    a
    a
    a
    ── tail ──
    a
    a
    a
    """
    fixed = [sketch.header, *(part.separator for part in sketch.parts)]
    room = limit - sum(_size(line) + 1 for line in fixed) + 1
    rows = _fit(sketch.parts, max(0, room))
    written_parts = [
        "\n".join([part.separator, *lines]) for part, lines in zip(sketch.parts, rows, strict=True)
    ]
    return clip("\n".join([sketch.header, *written_parts]), limit)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _fit(parts: Sequence[SummarySection], room: int) -> list[list[str]]:
    """The lines of every part that fit: keys and lines share the room, each leaving what it does not need."""
    keys = [part for part in parts if part.rule == "keys"]
    lines = [part for part in parts if part.rule == "lines"]
    keys_need = sum(_size(line) + 1 for part in keys for line in part.lines)
    lines_need = sum(_size(line[:room]) + 1 for part in lines for line in part.lines)
    keys_room = room if not lines else max(room // 2, room - lines_need)
    used_by_keys = min(keys_need, keys_room)
    shared = iter(share_room([line for part in lines for line in part.lines], room - used_by_keys))
    return [
        _whole_lines(part, keys_room) if part.rule == "keys" else [next(shared) for _ in part.lines]
        for part in parts
    ]


def _whole_lines(part: SummarySection, room: int) -> list[str]:
    """As many lines as fit, and one that says how many keys are left out."""
    shown: list[str] = []
    for number, line in enumerate(part.lines):
        left = part.total - number - 1
        reserve = _size(_omitted(left)) + 1 if left else 0
        short = clip(clean(line), max(24, room // 3))
        if _size(short) + 1 + reserve > room and shown:
            break
        room -= _size(short) + 1
        shown.append(short)
    left = part.total - len(shown)
    return [*shown, _omitted(left)] if left else shown


def _omitted(number: int) -> str:
    return f"{ELLIPSIS} {number} keys omitted"


def share_room(lines: list[str], room: int) -> list[str]:
    """Clip lines to a common length, found so that short lines leave their share to long ones."""
    sizes = sorted(_size(line[: room + 1]) for line in lines)
    left = room - len(lines)
    level = 0
    for position, size in enumerate(sizes):
        level = max(0, left) // (len(sizes) - position)
        if size > level:
            break
        left -= size
    return [clip(line, max(level, 0)) if _size(line[: room + 1]) > level else clean(line) for line in lines]


def summarize(
    content: Text | Structured | FileContent,
    policy: OutputPolicy,
    *,
    prefix: int = PREFIX_BYTES,
    mask: Mask = unmasked,
) -> str:
    """The automatic summary of content, without its ``[blob:<id>]`` prefix, for which `prefix` bytes are left.

    Args:
        mask: covers what may not be shown, before anything is cut: a part of it would no longer be recognised.

    Raises:
        OSError: a handed-over file cannot be read.
    """
    if isinstance(content, Text):
        sketch = sketch_text(mask(content.text), policy)
    elif isinstance(content, FileContent):
        sketch = sketch_file(content, policy, mask)
    else:
        sketch = _masked(sketch_value(content.value, content.frame), mask)
    return render(sketch, policy.summary_bytes - prefix)


def _masked(sketch: Sketch, mask: Mask) -> Sketch:
    parts = (replace(part, lines=tuple(mask(line) for line in part.lines)) for part in sketch.parts)
    return replace(sketch, parts=tuple(parts))
