"""What a request is made of, and the key that it has."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.models.base import Message, Prefix, Request, ToolCall, canonical

texts = st.text(st.characters(exclude_categories=()))  # halves of characters too
calls = st.lists(st.builds(ToolCall, texts, texts, texts), max_size=3).map(tuple)
messages = st.lists(st.builds(Message, st.just("user"), st.sampled_from("abc")), max_size=6).map(tuple)
roles = st.sampled_from(["system", "user", "assistant", "tool"])


@given(st.builds(Message, roles, texts, calls, st.none() | texts))
def test_a_message_is_the_canonical_json_of_its_wire_form(message: Message) -> None:
    assert message.canonical == canonical(message.wire)
    assert json.loads(message.canonical.decode("utf-8", "surrogatepass")) == message.wire


@given(messages, messages, messages)
def test_a_key_does_not_depend_on_the_prefix_that_was_kept(
    earlier: tuple[Message, ...], known: tuple[Message, ...], all_of_it: tuple[Message, ...]
) -> None:
    plain = Request("m", all_of_it).key
    assert Request("m", all_of_it, prefix=Prefix(known, Prefix(earlier))).key == plain
    assert Request("m", all_of_it, prefix=Prefix(all_of_it, Prefix(all_of_it[:2]))).key == plain
