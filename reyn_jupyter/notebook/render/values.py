"""Any value as blocks: a frame as a grid, JSON as a tree, text as numbered lines, the rest by its type's name."""

from __future__ import annotations

import json

from reyn_jupyter.notebook.render.figures import count
from reyn_jupyter.notebook.render.frames import frame_grid, frame_of
from reyn_jupyter.notebook.render.model import Block, Code, Lines, Message
from reyn_jupyter.notebook.render.tree import kind_of, tree
from reyn_jupyter.notebook.render.untrusted import Look, is_a, type_name

LINES = 40
_LINE = 400
_PARSED = 100_000  # characters of text that are tried as JSON


def preview(value: object, look: Look, knob: str) -> tuple[Block, ...]:
    """The first look at a value; `knob` names what gives all of it."""
    frame = frame_of(value)
    if frame is not None:
        return (frame_grid(frame, look, knob),)
    kind = kind_of(value)
    if is_a(value, str):
        return (text_lines(str.__str__(value), look, knob),)
    if kind in ("object", "array"):
        return (tree(value, look, knob),)
    if is_a(value, bytes):
        return (
            Message(f"{count(bytes.__len__(value), 'byte')} of binary content; all of it: {knob}", "muted"),
        )
    if kind == "other":
        return (
            Message(
                f"An object of type {look.line(type_name(value), 100)}; {knob} is the object itself.", "muted"
            ),
        )
    return (Code(look.compact(value)),)


def text_preview(text: str, look: Look, knob: str) -> tuple[Block, ...]:
    """A text; as a tree when it is a JSON array or object."""
    if len(text) <= _PARSED and text.lstrip()[:1] in ("{", "["):
        try:
            return (tree(json.loads(text), look, knob),)
        except (ValueError, RecursionError):
            pass
    return (text_lines(text, look, knob),)


def text_lines(text: str, look: Look, knob: str, first: int = 1, limit: int = LINES) -> Lines | Code:
    """The first lines of a text, numbered from `first`; a single short line stands alone."""
    total = text.count("\n") + (not text.endswith("\n"))
    if total <= 1 and len(text) <= _LINE:
        return Code(look.text(text.removesuffix("\n"), _LINE) or "(empty)")
    lines = text.split("\n", limit)[: min(limit, total)]
    cut = any(len(line) > _LINE for line in lines)
    more = (
        f"The first {limit} of {count(total, 'line')}"
        if total > limit
        else ("Long lines are cut" if cut else "")
    )
    shown = look.lines([line.removesuffix("\r") for line in lines], _LINE)
    return Lines(first, shown, "", f"{more}; all of it: {knob}" if more else "")
