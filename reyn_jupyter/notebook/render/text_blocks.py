"""A text as blocks: numbered lines, one short line alone, or the tree that its JSON is."""

from __future__ import annotations

import json

from reyn_jupyter.notebook.render.blocks import Block, Code, Lines
from reyn_jupyter.notebook.render.tree_view import tree
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import count

LINES = 40
_LINE = 400
_PARSED = 100_000  # characters of text that are tried as JSON


def text_preview(text: str, look: Look, knob: str) -> tuple[Block, ...]:
    """Return a text; as a tree when it is a JSON array or object."""
    if len(text) <= _PARSED and text.lstrip()[:1] in ("{", "["):
        try:
            return (tree(json.loads(text), look, knob),)
        except (ValueError, RecursionError):
            pass
    return (text_lines(text, look, knob),)


def text_lines(text: str, look: Look, knob: str, first: int = 1, limit: int = LINES) -> Lines | Code:
    """Return the first lines of a text, numbered from `first`; a single short line stands alone."""
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
