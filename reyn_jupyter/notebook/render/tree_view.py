"""JSON-like values as a tree, bounded in depth, in breadth and in all.

Invariant: only dict, list, tuple and scalars are looked into; anything else is named by its type. A note stands
wherever children were left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render.blocks import Node, Tree
from reyn_jupyter.notebook.render.value_text import Look, is_a, quote_json, type_name
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.outputs.blob import KeyLine

CHILDREN = 30
DEPTH = 6
NODES = 240
OPEN_ROWS = 24  # of a tree that stands open deeper than its first level
_STRING = 240
_ROW = 80
_ROW_ITEMS = 40
ARRAY_HEAD = _ROW_ITEMS + 1
SMALL_BYTES = 16 * 12 + 2  # at most, of the JSON of a text that may stand in such a row


class _Bounds:
    """The number of nodes left to show, and whether something was left out."""

    def __init__(self) -> None:
        self.nodes = NODES
        self.cut = False

    def note(self, text: str) -> str:
        self.cut = True
        return text


def tree(value: object, look: Look, knob: str) -> Tree:
    """Return a value as a tree; `knob` names what gives all of it."""
    bounds = _Bounds()
    root = _node(None, value, DEPTH, bounds, look)
    more = f"Not all of it is shown; all of it: {knob}" if bounds.cut else ""
    return Tree(root, more, open_levels(root))


def open_levels(root: Node) -> int:
    """Return how many levels may stand open without the tree growing long; the first always does."""
    levels, rows = 1, len(root.children)
    below = [child for node in root.children for child in node.children]
    while below and rows + len(below) <= OPEN_ROWS:
        levels, rows = levels + 1, rows + len(below)
        below = [child for node in below for child in node.children]
    return levels


def members_tree(members: Sequence[KeyLine], total: int, look: Look, knob: str) -> Tree:
    """Return the first keys of a stored object; a large value is shown by its type alone."""
    bounds = _Bounds()
    children = [
        Node(look.line(member.key, 80), bounds.note(look.line(member.label, 60)), "other")
        if member.cut
        else _node(look.line(member.key, 80), member.value, DEPTH - 1, bounds, look)
        for member in members
    ]
    if len(children) < total:
        children.append(Node(None, bounds.note(f"… {total - len(children):,} more"), "more"))
    root = Node(None, count(total, "key"), "object", tuple(children))
    more = f"Not all of it is shown; all of it: {knob}" if bounds.cut else ""
    return Tree(root, more, open_levels(root))


def value_text(value: object, look: Look) -> str:
    """Return the words for one value, without its children."""
    return _node(None, value, 0, _Bounds(), look).text


def array_text(head: list[Any], total: int, look: Look) -> str:
    """Return the same for an array of which only the head is known; `ARRAY_HEAD` elements are enough."""
    text = count(total, "item")
    return _row(head, text, _Bounds(), look) if all(_is_small(item) for item in head[:CHILDREN]) else text


def kind_of(value: object) -> str:
    """Return the JSON type of a value, "other" for what JSON has no name for."""
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        (int, "number"),
        (float, "number"),
        (str, "string"),
        (dict, "object"),
        (list, "array"),
        (tuple, "array"),
    ):
        if is_a(value, kind):
            return name
    return "other"


def _node(key: str | None, value: Any, depth: int, bounds: _Bounds, look: Look) -> Node:
    bounds.nodes -= 1
    kind = kind_of(value)
    if kind not in ("object", "array"):
        return Node(key, _scalar(value, kind, bounds, look), kind)
    length = dict.__len__(value) if kind == "object" else len(value)
    text = count(length, "key" if kind == "object" else "item")
    if kind == "array" and all(_is_small(item) for item in value[:CHILDREN]):
        return Node(key, _row(value, text, bounds, look), kind)
    if depth == 0:
        return Node(
            key, text, kind, (Node(None, bounds.note("… deeper than shown here"), "more"),) if length else ()
        )
    children: list[Node] = []
    for name, item in islice(dict.items(value) if kind == "object" else enumerate(value), CHILDREN):
        if bounds.nodes <= 0:
            break
        children.append(_node(look.line(name, 80), item, depth - 1, bounds, look))
    if len(children) < length:
        children.append(Node(None, bounds.note(f"… {length - len(children):,} more"), "more"))
    return Node(key, text, kind, tuple(children))


def _is_small(value: object) -> bool:
    return kind_of(value) in ("null", "boolean", "number") or (is_a(value, str) and str.__len__(value) <= 16)


def _row(value: Any, text: str, bounds: _Bounds, look: Look) -> str:
    """Return a list of small scalars on one line."""
    shown = look.compact(value[:_ROW_ITEMS], _ROW)
    if len(value) <= _ROW_ITEMS and not shown.endswith("…"):
        return shown
    return bounds.note(f"{shown.rpartition(', ')[0]}, …] ({text})")


def _scalar(value: object, kind: str, bounds: _Bounds, look: Look) -> str:
    if is_a(value, str):
        shown = look.line(value, _STRING)
        left = str.__len__(value) - _STRING + 1
        return (
            quote_json(shown) if left <= 1 else bounds.note(f"{quote_json(shown)} ({left:,} more characters)")
        )
    return f"<{type_name(value)}>" if kind == "other" else look.compact(value)
