"""Tools, calls and results as text, and which replies are calls."""

from __future__ import annotations

import itertools

import pytest

from reyn_jupyter.models.base import Message, ToolCall, ToolSet
from reyn_jupyter.models.local.tool_text import read_reply, reply_grammar, with_tools
from reyn_jupyter.models.written_calls import CallFilter

TOOLS = ToolSet(({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}},))
CALL = '{"name": "look", "arguments": {"thing": {"of": "day"}}}'


def read(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    ids = itertools.count()
    said, calls = read_reply(text, ["look"], lambda: str(next(ids)))
    return said, tuple((call.name, call.arguments) for call in calls)


def test_a_conversation_keeps_its_beginning_and_its_order() -> None:
    calls = (ToolCall("1", "look", '{"a": 1}'), ToolCall("2", "look", "{broken"))
    said = with_tools(
        (
            Message("system", "Be kind."), Message("user", "Hi"), Message("assistant", "Yes.", calls),
            Message("tool", "one", tool_call_id="1"), Message("tool", "two", tool_call_id="2"), Message("user", "And?"),
        ),
        TOOLS,
    )  # fmt: skip

    assert [message.role for message in said] == ["system", "user", "assistant", "user", "user"]
    assert said[0].content.startswith("Be kind.\n\n# Tools")
    assert '<tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>' in said[2].content
    assert said[3].content == "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
    assert with_tools(said[:1], ToolSet()) == said[:1]


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        CALL,
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
    ],
)
def test_a_reply_that_is_a_call_becomes_one(text: str) -> None:
    assert read(text) == ("", (("look", '{"thing": {"of": "day"}}'),))


@pytest.mark.parametrize(
    "text",
    [
        f"You could call {CALL}",
        f"{CALL} and then stop",
        CALL.replace("look", "delete"),
        f"<tool_call>{CALL[:-4]}",
        '{"name": "look", "arguments": "moon"}',
        "[" * 100_000,
    ],
)
def test_prose_and_broken_calls_stay_text(text: str) -> None:
    assert read(text) == (text, ())


def test_prose_around_tagged_calls_is_kept() -> None:
    assert read(f"First.\n<tool_call>{CALL}</tool_call>\nDone.")[0] == "First.\n\nDone."


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        (f"Well. <tool_call>{CALL}</tool_call>", "Well. "),
        (f"<tool_call>{CALL}</tool_call>", ""),
        (CALL, ""),
        (f"```json\n{CALL}\n```", ""),
        ("```python\n1 < 2\n```", "```python\n1 < 2\n```"),
        ("a <tool", "a "),
    ],
)
def test_nobody_hears_a_call_while_it_streams(text: str, heard: str) -> None:
    said: list[str] = []
    listener = CallFilter(said.append, within=True)
    for letter in text:
        listener(letter)

    assert "".join(said) == heard


def test_a_grammar_allows_what_is_offered_alone() -> None:
    assert reply_grammar(ToolSet(), "auto") is None
    assert reply_grammar(TOOLS, "unknown") is None
    assert '"const": "look"' in str(reply_grammar(TOOLS, "look"))
    assert "PROSE" not in str(reply_grammar(TOOLS, "required"))
    assert "call" not in str(reply_grammar(TOOLS, "none"))
