"""What a request is made of, and the key that it has."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.models.base import Message, ToolCall, canonical

texts = st.text(st.characters(exclude_categories=()))  # halves of characters too
calls = st.lists(st.builds(ToolCall, texts, texts, texts), max_size=3).map(tuple)
roles = st.sampled_from(["system", "user", "assistant", "tool"])


@given(st.builds(Message, roles, texts, calls, st.none() | texts))
def test_a_message_is_the_canonical_json_of_its_wire_form(message: Message) -> None:
    assert message.canonical == canonical(message.wire)
    assert json.loads(message.canonical.decode("utf-8", "surrogatepass")) == message.wire
