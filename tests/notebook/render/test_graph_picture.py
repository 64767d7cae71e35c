"""The picture of a graph: no box lies on another, all lies within it, and every text is a text and within its box."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.notebook.render.blocks import Tone
from reyn_jupyter.notebook.render.graph_picture import GraphNode, graph_picture

TONES: tuple[Tone, ...] = ("good", "bad", "warn", "info", "muted", "plain")
SVG = "{http://www.w3.org/2000/svg}"
Edges = list[tuple[str, str]]


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[GraphNode]], Edges]:
    """Layers of boxes, each with any text, and lines from a box to any later layer."""
    words = st.text(max_size=60)
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    layers = [
        [
            GraphNode(
                f"n{depth}-{place}", draw(words), draw(words), draw(st.sampled_from(TONES))
            )
            for place in range(size)
        ]
        for depth, size in enumerate(sizes)
    ]  # fmt: skip
    names = [(depth, node.id) for depth, layer in enumerate(layers) for node in layer]
    possible = [(one[1], other[1]) for one, other in combinations(names, 2) if one[0] < other[0]]
    edges = draw(st.lists(st.sampled_from(possible), unique=True, max_size=20)) if possible else []
    return layers, edges


def read(picture: str) -> tuple[ElementTree.Element, list[Box]]:
    """A picture as XML, and its boxes in their order."""
    root = ElementTree.fromstring(picture)
    boxes = []
    for rect in root.iter(f"{SVG}rect"):
        if "rx" in rect.attrib:
            left, top = float(rect.attrib["x"]), float(rect.attrib["y"])
            boxes.append(
                Box(left, top, left + float(rect.attrib["width"]), top + float(rect.attrib["height"]))
            )
    return root, boxes


def size(root: ElementTree.Element) -> Box:
    return Box(*map(float, root.attrib["viewBox"].split()))


def picture_of(layers: Sequence[Sequence[str]], edges: Edges) -> tuple[ElementTree.Element, dict[str, Box]]:
    """A picture of boxes that are named, and where each lies."""
    root, boxes = read(graph_picture([[GraphNode(name, name) for name in layer] for layer in layers], edges))
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    return root, dict(zip(texts[::3], boxes, strict=True))  # the id, what it does, its state


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_no_box_lies_on_another_and_all_lie_within_the_picture(
    graph: tuple[list[list[GraphNode]], Edges],
) -> None:
    layers, edges = graph
    root, boxes = read(graph_picture(layers, edges))
    whole = size(root)
    assert len(boxes) == sum(map(len, layers))
    assert [pair for pair in combinations(boxes, 2) if pair[0].meets(pair[1])] == []
    assert all(
        whole.left <= box.left and whole.top <= box.top and box.right <= whole.right and box.bottom <= whole.bottom
        for box in boxes
    )  # fmt: skip
    lines = [path for path in root.iter(f"{SVG}path") if "marker-end" in path.attrib]
    assert len(lines) == len(edges)
    for line in lines:
        numbers = list(map(float, re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", line.attrib["d"])))
        for x, y in zip(numbers[::2], numbers[1::2], strict=True):
            assert 0 <= x <= whole.right and 0 <= y <= whole.bottom


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_any_text_is_text_that_can_be_sent_and_is_clipped_to_its_box(
    graph: tuple[list[list[GraphNode]], Edges],
) -> None:
    picture = graph_picture(*graph)
    root, boxes = read(picture)
    assert picture.encode()
    assert {each.tag for each in root.iter()} <= {
        f"{SVG}{name}" for name in ("svg", "defs", "marker", "path", "rect", "text")
    }
    clips = [each for each in root.iter(f"{SVG}svg") if each is not root]
    assert [
        Box(x, y, x + float(each.attrib["width"]), y + float(each.attrib["height"]))
        for each in clips
        if (x := float(each.attrib["x"])) is not None and (y := float(each.attrib["y"])) is not None
    ] == boxes
    texts = {id(text) for text in root.iter(f"{SVG}text")}
    assert texts == {id(text) for clip in clips for text in clip.iter(f"{SVG}text")}


def test_the_same_graph_is_always_drawn_the_same_way() -> None:
    layers = [[GraphNode("a", "read"), GraphNode("b", "look")], [GraphNode("c", "write")]]
    assert graph_picture(layers, [("a", "c"), ("b", "c")]) == graph_picture(layers, [("a", "c"), ("b", "c")])


def test_few_layers_lie_beside_each_other_and_many_below() -> None:
    _, chain = picture_of([["a"], ["b"], ["c"]], [("a", "b"), ("b", "c")])
    assert chain["a"].right < chain["b"].left and chain["a"].top == chain["b"].top
    names = [f"s{number}" for number in range(9)]
    root, long = picture_of([[name] for name in names], [])
    assert long["s0"].bottom < long["s1"].top and long["s0"].left == long["s1"].left
    assert size(root).right < 400


def test_a_step_lies_beside_the_one_that_it_waits_for() -> None:
    _, boxes = picture_of([["a", "b", "c"], ["d"]], [("a", "d")])
    assert boxes["d"].top == boxes["a"].top
    _, fan = picture_of(
        [["a"], ["b", "c", "d"], ["e"]], [(x, y) for x, y in ("ab", "ac", "ad", "be", "ce", "de")]
    )
    assert fan["a"].top == fan["c"].top == fan["e"].top


def test_boxes_change_places_so_that_lines_do_not_cross() -> None:
    _, boxes = picture_of([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")])
    assert (boxes["a"].top < boxes["b"].top) == (boxes["d"].top < boxes["c"].top)


def test_a_line_over_a_layer_does_not_run_through_its_boxes() -> None:
    root, boxes = picture_of([["a"], ["b"], ["c"]], [("a", "b"), ("b", "c"), ("a", "c")])
    longest = max((path.attrib["d"] for path in root.iter(f"{SVG}path")), key=len)
    ends = [float(y) for y in re.findall(r"[ML]\S+ (\S+?)C", longest)]
    middle = ends[1]
    assert not boxes["b"].top < middle < boxes["b"].bottom


def test_markup_is_text_and_a_state_is_said_besides_its_colour() -> None:
    picture = graph_picture([[GraphNode("a", "<script>alert(1)</script>", 'a "gap" & more', "warn")]], [])
    assert "<script" not in picture and "&lt;script&gt;" in picture and "&amp; more" in picture
    assert "stroke-dasharray" in picture  # a gap is told from a step without seeing colours


def test_long_and_wide_texts_are_cut_with_a_sign() -> None:
    picture = graph_picture([[GraphNode("a", "unpack-" * 20, "文字" * 40)]], [])
    _, title, note = ("".join(text.itertext()) for text in read(picture)[0].iter(f"{SVG}text"))
    assert title.endswith("…") and len(title) <= 25
    assert note.endswith("…") and len(note) <= 15


def test_nothing_to_draw_is_an_empty_picture() -> None:
    root, boxes = read(graph_picture([], []))
    assert boxes == [] and size(root).right > 0
