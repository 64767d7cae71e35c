"""What a conversation knows of its turns, however they came and went."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.models.base import Message, ToolCall
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.router.context.history import Disclosure, Turn

steps = st.lists(
    st.tuples(st.sampled_from(["add", "insert", "drop", "remember", "cell", "shrink"]), st.integers(0, 9)),
    max_size=30,
)


def turn(number: int, size: int) -> Turn:
    call = ToolCall(f"call-{number}", "inspect", "{}")
    messages = (
        Message("user", "x" * size * 40),
        Message("assistant", "", (call,)),
        Message("tool", "y" * 60 * size, (), call.id),
    )
    cell = f"cell-{size}" if size % 3 == 0 else None
    return Turn(f"run-{number}", "x", messages, cell, size == 1, names=("a",) * (size == 2), hinted=size == 4)


@given(steps)
def test_its_totals_are_those_of_its_turns(script: list[tuple[str, int]]) -> None:
    conversation = Conversation("c")
    for number, (what, size) in enumerate(script):
        count = len(conversation.turns)
        if what in ("add", "cell"):
            conversation.add(turn(number, size))
        elif what == "insert":
            conversation.add(turn(number, size), min(size, count))
        elif what == "drop" and count:
            conversation.drop(size % count + 1)
        elif what == "remember" and count:
            run = conversation.turns[size % count].run
            conversation.remember(run, (Disclosure("c", "file", "a.txt", 1),), "schema")
            conversation.mark_sent(frozenset({run}), "host")
        elif what == "shrink":
            conversation.shrink(size * 50)
        turns = conversation.turns
        assert conversation.tokens == sum(each.tokens for each in turns)
        assert conversation.call_ids == {
            call.id for each in turns for m in each.messages for call in m.tool_calls
        }
        known = conversation.known_before(None)
        assert known.listed == any(each.listed for each in turns)
        assert known.hint_due == (not any(each.hinted for each in turns))
        assert known.names == next((each.names for each in reversed(turns) if each.names), ())


def test_a_history_that_cannot_shrink_further_is_left_as_it_is() -> None:
    conversation = Conversation("c")
    for number in range(20):
        conversation.add(turn(number, 8))
    assert conversation.shrink(10) == 19
    turns = conversation.turns
    assert conversation.shrink(10) == 0
    assert conversation.turns is turns
