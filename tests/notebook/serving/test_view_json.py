"""A display as JSON: what hosts draw themselves, small however much there is, and honest about what it leaves out."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.render.blocks import (  # fmt: skip
    Bullets,
    Cell,
    Code,
    Column,
    Commands,
    Diff,
    DiffLine,
    Facts,
    Fold,
    Grid,
    Lines,
    Node,
    Notice,
    Paragraph,
    Quote,
    Section,
    Span,
    Tree,
    View,
    missing_cell,
    number_cell,
)
from reyn_jupyter.notebook.serving.protocol import PROTOCOL, LiveBlob, Snapshot
from reyn_jupyter.notebook.serving.view_json import SNAPSHOT_BYTES, json_size, plain, to_snapshot
from reyn_jupyter.sessions.result_objects import Result
from tests.notebook.render.hosts.test_fit import HUGE
from tests.notebook.render.samples import HOSTILE, every_kind, trace

LONG = "漢<&> " * 20_000


def snapshot(made: View) -> dict[str, Any]:
    return to_snapshot(made, "session")


def texts(value: Any) -> list[str]:
    """Every text in it, in order."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts(each)]


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_object_keeps_to_the_budget_and_says_that_it_was_cut(name: str) -> None:
    whole = view(HUGE[name])
    made = snapshot(whole)
    assert len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()) <= SNAPSHOT_BYTES
    marks = ("…", "all of it", "Too long", "digits>")
    said = any(mark in text for text in texts(made["view"]["blocks"]) for mark in marks)
    assert said or made["view"] == plain(whole)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_every_object_is_a_snapshot_of_the_protocol(text: str) -> None:
    for name, each in every_kind(text).items():
        made = to_snapshot(view(each, tail=text if name == "live" else None), "session", LiveBlob(blob="b"))
        again = Snapshot.model_validate_json(json.dumps(made, ensure_ascii=False).encode())
        assert again.model_dump(mode="json") == made
        assert made["protocol"] == PROTOCOL and made["live"] == {
            "type": "blob",
            "blob": "b",
            "selector": None,
        }


def test_what_is_small_is_whole() -> None:
    made = view(trace(answer="# A\n\n- one\n\n| a |\n|--|\n| 1 |"))
    assert snapshot(made)["view"] == plain(made)


def test_a_cell_travels_without_what_is_as_usual() -> None:
    cells = ((Cell("1"), Cell("2", "good")), (number_cell("3 s", 3), missing_cell()))
    made = View("x", "x", blocks=(Grid("", (Column("a"), Column("b")), cells),))
    assert snapshot(made)["view"]["blocks"][0]["rows"] == [
        ["1", {"text": "2", "tone": "good"}],
        [["3 s", 3.0], {"text": "–", "tone": "muted", "missing": True}],
    ]


def test_a_table_keeps_as_many_rows_as_its_html() -> None:
    made = view(Result("f", "x", pd.DataFrame({f"column {i}": [f"value {i}"] * 60 for i in range(9)})))
    grid = snapshot(made)["view"]["blocks"][0]
    assert len(grid["rows"]) == to_html(made).count("<tr>") - 1
    assert grid["more"].startswith("These are the first 20 of 60 rows")


BIG: dict[str, tuple[Any, str]] = {
    "rows": (Grid("", (Column("a"),), ((Cell("word " * 9),),) * 2000), "of these 2,000 rows left out"),
    "columns": (Grid("", tuple(Column(f"c{i}") for i in range(900)), ()), "of these 900 columns left out"),
    "lines": (Lines(1, ("word " * 9,) * 2000), "of these 2,000 lines left out"),
    "a diff": (Diff("f", "", (DiffLine("+", "word " * 9),) * 2000), "of these 2,000 lines left out"),
    "commands": (Commands(("%reyn list",) * 3000), "of these 3,000 lines left out"),
    "facts": (Facts((("name", "value"),) * 3000), "of these 3,000 facts left out"),
    "items": (Bullets(((Paragraph((Span("word"),)),),) * 900), "of these 900 items left out"),
    "code": (Code(LONG), "… cut to keep this view small"),
    "a tree": (Tree(Node(None, "1", "object", (Node("k", LONG[:900], "string"),) * 99)), "Not all of it is shown"),
    "a quote": (Quote((Code(LONG),)), "… cut to keep this view small"),
    "a section": (Section("s", (Code(LONG),)), "… cut to keep this view small"),
    "a fold": (Fold((Span("f"),), blocks=(Code(LONG),)), "… cut to keep this view small"),
}  # fmt: skip


@pytest.mark.parametrize("what", BIG)
def test_what_was_left_out_is_counted_in_its_place_and_names_the_knob(what: str) -> None:
    block, said = BIG[what]
    blocks = (Notice("before"), block, Notice("after"))
    made = snapshot(View("x", "x", blocks=blocks, knob=".all"))
    assert SNAPSHOT_BYTES * 0.9 < json_size(made) <= SNAPSHOT_BYTES or what == "columns"
    found = texts(made["view"]["blocks"])
    assert any(said in text and text.endswith("; all of it: .all") for text in found)
    assert "before" in found and "after" in found


def test_one_huge_block_does_not_swallow_its_neighbours() -> None:
    made = snapshot(View("x", "x", blocks=(Code(LONG), Code("small"), Code(LONG))))
    sizes = [json_size(block) for block in made["view"]["blocks"]]
    assert made["view"]["blocks"][1]["text"] == "small"
    assert abs(sizes[0] - sizes[2]) < 200


def test_very_many_blocks_lose_the_last_ones_and_say_so() -> None:
    made = snapshot(View("x", "x", blocks=(Notice("word"),) * 3000, knob=".all"))
    assert "… parts were left out to keep this view small; all of it: .all" in texts(
        made["view"]["blocks"][-1]
    )


TEXT = st.text(st.characters(codec=None), max_size=60)
LEAVES = st.one_of(
    st.builds(Code, TEXT, TEXT),
    st.builds(Notice, TEXT, st.just("bad"), TEXT),
    st.builds(lambda spans: Paragraph(tuple(map(Span, spans))), st.lists(TEXT, max_size=4)),
    st.builds(lambda lines: Lines(1, tuple(lines)), st.lists(TEXT, max_size=20)),
    st.builds(lambda rows: Grid("", (Column("a"),), tuple((Cell(row),) for row in rows)), st.lists(TEXT, max_size=60)),
    st.builds(lambda pairs: Facts(tuple(pairs)), st.lists(st.tuples(TEXT, TEXT), max_size=30)),
)  # fmt: skip
BLOCKS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda title, blocks: Fold((Span(title),), blocks=tuple(blocks)), TEXT, st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None)
@given(st.lists(BLOCKS, max_size=6), st.integers(1, 60))
def test_any_view_keeps_to_the_budget_and_to_the_protocol(blocks: list[Any], times: int) -> None:
    made = snapshot(View("x", "x", blocks=tuple(blocks) * times, knob=".all"))
    sent = json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(sent) <= SNAPSHOT_BYTES
    Snapshot.model_validate_json(sent)
