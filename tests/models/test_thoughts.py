"""Thoughts are told apart from an answer, however a stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.models.thoughts import ThoughtFilter, split_thoughts

CALL = '<tool_call>\n{"name": "list_actions", "arguments": {}}\n</tool_call>'
CASES = {
    "<think>Two?</think>\n\nThree lines.": ("Two?", "Three lines."),
    "\n<think>\n\n</think>\n\nThree lines.": ("", "Three lines."),
    "Two?\n</think>\n\nThree lines.": ("Two?", "Three lines."),
    "<think>Two?</think><think>Or four?</think>Three.": ("Two?\n\nOr four?", "Three."),
    "<think>Two or": ("Two or", ""),
    f"<think>I list.\n{CALL}": ("I list.", f"\n{CALL}".strip()),
    f"<think>\n\n</think>\n\n{CALL}": ("", CALL),
    "[THINK]Two?[/THINK]Three.": ("Two?", "Three."),
    "◁think▷Two?◁/think▷Three.": ("Two?", "Three."),
    "<|channel|>analysis<|message|>Two?<|end|><|start|>assistant<|channel|>final<|message|>Three.<|return|>": (
        "Two?",
        "Three.",
    ),
    "analysisTwo?assistantfinalThree.": ("Two?", "Three."),
    "analysisReport is a name.": ("", "analysisReport is a name."),
    "Three lines.": ("", "Three lines."),
    "  Three lines.": ("", "  Three lines."),
    "Write `</think>` at the end.": ("", "Write `</think>` at the end."),
    "```\na\n</think>\nb\n```\nThat is it.": ("", "```\na\n</think>\nb\n```\nThat is it."),
    "A tag <think> in a sentence </think> stays.": ("", "A tag <think> in a sentence </think> stays."),
    "<thinner> is no tag.": ("", "<thinner> is no tag."),
    "": ("", ""),
}


def test_thoughts_are_split_from_the_answer() -> None:
    wrong = {text: split_thoughts(text) for text, said in CASES.items() if split_thoughts(text) != said}
    assert not wrong


@given(st.sampled_from([text for text in CASES if text.lstrip().startswith("<think>")]), st.data())
def test_stream_shows_the_answer_alone_however_it_is_cut(text: str, data: st.DataObject) -> None:
    pieces: list[str] = []
    feed = ThoughtFilter(pieces.append)
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        feed(rest[:size])
        rest = rest[size:]
    said = "".join(pieces)
    assert split_thoughts(text)[1].startswith(said.strip()) and "think>" not in said


@given(st.text(alphabet="<>/think \n[]THINK`a", max_size=60))
def test_no_character_of_a_reply_is_lost(text: str) -> None:
    thoughts, answer = split_thoughts(text)
    if not thoughts:
        assert answer.strip() in text
    kept = (thoughts + answer).replace("\n", "").replace(" ", "")
    for tag in ("<think>", "</think>", "[THINK]", "[/THINK]"):
        kept, text = kept.replace(tag, ""), text.replace(tag, "")
    assert sorted(kept) == sorted(text.replace("\n", "").replace(" ", ""))


@pytest.mark.parametrize("piece", ["<", "<thi", " \n"])
def test_beginning_of_a_tag_is_held_back_until_it_is_known(piece: str) -> None:
    pieces: list[str] = []
    feed = ThoughtFilter(pieces.append)
    feed(piece)
    assert pieces == []
    feed("x")
    assert "".join(pieces).strip() == f"{piece}x".strip()
