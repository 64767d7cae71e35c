"""Tool calls from deltas: any cutting of any calls gives the calls back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.models.base import ToolCall
from reyn_jupyter.models.providers.litellm_answer import ToolCallAssembler

arguments = st.dictionaries(st.text(max_size=5), st.text(max_size=10) | st.integers(), max_size=4).map(
    json.dumps
)
calls = st.lists(st.tuples(st.sampled_from(["list_actions", "file", "x"]), arguments), max_size=6)


@given(calls, st.integers(1, 9), st.randoms(use_true_random=False))
def test_fragments_of_several_calls_in_any_interleaving(
    wanted: list[tuple[str, str]], size: int, random: object
) -> None:
    assembler = ToolCallAssembler()
    for index, (name, _) in enumerate(wanted):
        assembler.add(index, f"id_{index}", name, "")
    pieces = {
        index: [text[start : start + size] for start in range(0, len(text), size)]
        for index, (_, text) in enumerate(wanted)
    }
    while any(pieces.values()):
        index = random.choice([index for index, rest in pieces.items() if rest])  # type: ignore[attr-defined]
        assembler.add(index, None, None, pieces[index].pop(0))

    assert assembler.finish("call") == tuple(
        ToolCall(f"id_{index}", name, text) for index, (name, text) in enumerate(wanted)
    )


@given(calls)
def test_whole_calls_without_index_or_id(wanted: list[tuple[str, str]]) -> None:
    assembler = ToolCallAssembler()
    for name, text in wanted:
        assembler.add(0, None, name, text)

    made = assembler.finish("call_7")

    assert [(call.name, call.arguments) for call in made] == wanted
    assert [call.id for call in made] == [f"call_7_{index}" for index in range(len(wanted))]


def test_a_name_and_an_id_that_are_repeated_in_every_piece_are_one_call() -> None:
    assembler = ToolCallAssembler()
    for piece in ('{"path"', ': "a"', "}"):
        assembler.add(0, "call_1", "file", piece)

    assert assembler.finish("call") == (ToolCall("call_1", "file", '{"path": "a"}'),)


def test_a_name_in_pieces_is_put_together() -> None:
    assembler = ToolCallAssembler()
    assembler.add(0, "call_1", "list_", None)
    assembler.add(0, None, "actions", None)
    assembler.add(None, None, None, "{}")

    assert assembler.finish("call") == (ToolCall("call_1", "list_actions", "{}"),)


def test_a_made_up_id_never_collides_with_a_given_one() -> None:
    assembler = ToolCallAssembler()
    assembler.add(0, "call_1", "a", "{}")
    assembler.add(1, None, "b", "{}")
    assembler.add(2, "call_1", "c", "{}")
    assembler.add(3, "call_2", "d", "{}")

    ids = [call.id for call in assembler.finish("call")]

    assert len(set(ids)) == 4
    assert ids[0] == "call_1"


def test_a_delta_with_nothing_in_it_is_no_call() -> None:
    assembler = ToolCallAssembler()
    assembler.add(0, None, None, None)
    assembler.add(1, "", "", "")

    assert assembler.finish("call") == ()


def test_half_a_call_is_handed_on_as_it_came() -> None:
    assembler = ToolCallAssembler()
    assembler.add(0, "call_1", "file", '{"path": "a')

    assert assembler.finish("call") == (ToolCall("call_1", "file", '{"path": "a'),)
