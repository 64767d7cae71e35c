"""The picture of a graph of steps: layers of boxes and the lines between them, as SVG on a white ground.

Invariants: the picture follows from its nodes and edges alone, so that the same graph is always drawn the same way; no
box lies on another, and every text is cut to its box and escaped. All that it shows stands in words beside it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from reyn_jupyter.notebook.render.blocks import Tone
from reyn_jupyter.support.sanitize import visible

_WIDTH, _HEIGHT = 200, 58  # of a box
_ACROSS, _ALONG = 22, 34  # between boxes of a layer, and between layers
_MARGIN = 8
_SIDEWAYS = 4  # layers at most that lie beside each other; more go downwards
_SWEEPS = 4
_FILLS: dict[Tone, tuple[str, str]] = {
    "good": ("#e2f4e5", "#3b8a4a"),
    "bad": ("#fde5e3", "#b3372b"),
    "warn": ("#fff3d1", "#93690c"),
    "info": ("#e2edfd", "#2f65b0"),
    "muted": ("#f3f3f3", "#8b8b8b"),
    "plain": ("#ffffff", "#5a5a5a"),
}
_DASHED: frozenset[Tone] = frozenset({"warn", "muted"})


@dataclass(frozen=True)
class GraphNode:
    """A box: its id, what it does, its state in words, and the tone that repeats the state."""

    id: str
    title: str
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True)
class _Place:
    x: float
    y: float


def graph_picture(layers: Sequence[Sequence[GraphNode]], edges: Sequence[tuple[str, str]]) -> str:
    """Return a graph as SVG.

    Args:
        layers: the boxes, those of a layer beside each other.
        edges: from one box to another one of a later layer, by their ids.

    Example:
        >>> one, two = GraphNode("a", "read"), GraphNode("b", "write")
        >>> graph_picture([[one], [two]], [("a", "b")]).startswith("<svg")
        True
    """
    nodes = {node.id: node for layer in layers for node in layer}
    at = {node.id: number for number, layer in enumerate(layers) for node in layer}
    rows, lines = _with_bends([[node.id for node in layer] for layer in layers], edges, at)
    rows = _untangle(rows, lines)
    sideways = len(layers) <= _SIDEWAYS
    places, width, height = _places(rows, lines, nodes, sideways)
    paths = "".join(_path([places[stop] for stop in line], nodes, line, sideways) for line in lines)
    boxes = "".join(_box(nodes[name], places[name]) for row in rows for name in row if name in nodes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui, sans-serif">'
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="#777"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="#fff"/>{paths}{boxes}</svg>'
    )


def _with_bends(
    rows: list[list[str]], edges: Sequence[tuple[str, str]], at: Mapping[str, int]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the layers with a place for each line that passes one, and each line by the places on its way."""
    lines = []
    for first, last in edges:
        line = [first]
        for number in range(at[first] + 1, at[last]):
            bend = f"\x00{first}\x00{last}\x00{number}"
            rows[number].append(bend)
            line.append(bend)
        lines.append([*line, last])
    return rows, lines


def _untangle(rows: list[list[str]], lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the layers in an order in which lines cross seldom: each place at the mean of its neighbours.

    Source: Sugiyama, Tagawa and Toda, Methods for visual understanding of hierarchical system structures, 1981.
    """
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for line in lines:
        for one, other in pairwise(line):
            after.setdefault(one, []).append(other)
            before.setdefault(other, []).append(one)
    for sweep in range(_SWEEPS):
        neighbours = after if sweep % 2 else before
        for row in reversed(rows) if sweep % 2 else rows:
            where = {name: place for each in rows for place, name in enumerate(each)}
            means = {name: _mean(name, neighbours.get(name, ()), where) for name in row}
            row.sort(key=means.__getitem__)
    return rows


def _mean(name: str, near: Sequence[str], where: Mapping[str, int]) -> tuple[float, int]:
    """Return where a place is drawn to by its neighbours; without any it stays."""
    return (sum(where[each] for each in near) / len(near) if near else where[name], where[name])


def _places(
    rows: Sequence[Sequence[str]],
    lines: Sequence[Sequence[str]],
    nodes: Mapping[str, GraphNode],
    sideways: bool,
) -> tuple[dict[str, _Place], float, float]:
    """Return the middle of every place, and the size of the picture.

    A place lies beside the mean of those before it, as far as the others of its layer leave room.
    """
    along, across = (_WIDTH, _HEIGHT) if sideways else (_HEIGHT, _WIDTH)
    before: dict[str, list[str]] = {}
    for line in lines:
        for one, other in pairwise(line):
            before.setdefault(other, []).append(one)
    middles: dict[str, float] = {}
    halves = {name: (across if name in nodes else across / 4) / 2 for row in rows for name in row}
    for row in rows:
        end, off = float("-inf"), []
        for name in row:
            near = [middles[each] for each in before.get(name, ())]
            wanted = sum(near) / len(near) if near else max(end + _ACROSS, 0.0) + halves[name]
            middles[name] = max(wanted, end + _ACROSS + halves[name])
            end = middles[name] + halves[name]
            off.append(middles[name] - wanted)
        for name in row:
            middles[name] -= sum(off) / len(off)
    first = min((middles[name] - halves[name] for name in middles), default=0.0)
    last = max((middles[name] + halves[name] for name in middles), default=0.0)
    places = {}
    for number, row in enumerate(rows):
        depth = _MARGIN + number * (along + _ALONG) + along / 2
        for name in row:
            middle = _MARGIN + middles[name] - first
            places[name] = _Place(depth, middle) if sideways else _Place(middle, depth)
    deep = 2 * _MARGIN + len(rows) * along + max(0, len(rows) - 1) * _ALONG
    wide = 2 * _MARGIN + last - first
    return places, *((deep, wide) if sideways else (wide, deep))


def _path(
    stops: Sequence[_Place], nodes: Mapping[str, GraphNode], line: Sequence[str], sideways: bool
) -> str:
    """Return a line through its places, bent where it changes its lane, with an arrow at its end."""
    half = (_WIDTH if sideways else _HEIGHT) / 2
    parts: list[str] = []
    for number, (one, other) in enumerate(pairwise(stops)):
        into = half + 2 if line[number + 1] in nodes else half
        if sideways:
            (x1, y1), (x2, y2) = (one.x + half, one.y), (other.x - into, other.y)
            bend = (x1 + x2) / 2
            curve = f"C{bend:g} {y1:g} {bend:g} {y2:g} {x2:g} {y2:g}"
        else:
            (x1, y1), (x2, y2) = (one.x, one.y + half), (other.x, other.y - into)
            bend = (y1 + y2) / 2
            curve = f"C{x1:g} {bend:g} {x2:g} {bend:g} {x2:g} {y2:g}"
        parts.append(f"M{x1:g} {y1:g}{curve}" if not parts else f"L{x1:g} {y1:g}{curve}")
    return f'<path d="{"".join(parts)}" fill="none" stroke="#777" stroke-width="1.4" marker-end="url(#a)"/>'


def _box(node: GraphNode, place: _Place) -> str:
    fill, line = _FILLS[node.tone]
    dashes = ' stroke-dasharray="4 3"' if node.tone in _DASHED else ""
    left, top = place.x - _WIDTH / 2, place.y - _HEIGHT / 2
    middle = _WIDTH / 2
    texts = f'<text x="{middle:g}" y="15" font-size="10" fill="#5a5a5a">{_text(node.id, 34)}</text>'
    texts += f'<text x="{middle:g}" y="31" font-weight="600">{_text(node.title, 24)}</text>'
    texts += f'<text x="{middle:g}" y="48" fill="#444">{_text(node.note, 28)}</text>'
    place_of = f'x="{left:g}" y="{top:g}" width="{_WIDTH}" height="{_HEIGHT}"'
    # What is in an svg of its own is clipped to it.
    return (
        f'<rect {place_of} rx="7" fill="{fill}" stroke="{line}"{dashes}/>'
        f'<svg {place_of} font-size="12" text-anchor="middle" fill="#1a1a1a">{texts}</svg>'
    )


def _text(text: str, most: int) -> str:
    """Return a text for a box: at most so many letters, of wide ones half as many."""
    shown, room = visible(text), most
    for number, letter in enumerate(shown):
        room -= 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if room < 0:
            while number and room < 1:
                number -= 1
                room += 2 if unicodedata.east_asian_width(shown[number]) in "WF" else 1
            shown = shown[:number].rstrip() + "…"
            break
    return escape(shown)
