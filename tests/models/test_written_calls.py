"""Calls written as text: every form is read, prose never, and no part of a call is heard, however a stream is cut."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.models.local.tool_text import read_reply
from reyn_jupyter.models.written_calls import CallFilter, is_call, may_become_calls, read_calls

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
words = st.from_regex(r"[a-z][a-z0-9_]{0,15}", fullmatch=True).filter(
    lambda word: word not in ("and", "as", "if", "in", "is", "or", "not", "for", "def", "del", "try")
)
arguments = st.dictionaries(words, json_values, max_size=3)


def as_python(name: str, args: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})"


FORMS = {
    "bare": lambda name, args: json.dumps({"name": name, "arguments": args}),
    "parameters": lambda name, args: json.dumps({"name": name, "parameters": args}, ensure_ascii=False),
    "tool": lambda name, args: json.dumps({"tool": name, "args": args}, indent=2),
    "function": lambda name, args: json.dumps({"function": name, "arguments": json.dumps(args)}),
    "nested": lambda name, args: json.dumps(
        [{"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}]
    ),
    "fenced": lambda name, args: f"```json\n{json.dumps({'name': name, 'arguments': args})}\n```",
    "tagged": lambda name, args: (
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': args})}\n</tool_call>"
    ),
    "mistral": lambda name, args: f"[TOOL_CALLS] [{json.dumps({'name': name, 'arguments': args})}]",
    "mistral 11": lambda name, args: f"[TOOL_CALLS]{name}[ARGS]{json.dumps(args)}",
    "llama": lambda name, args: f"<|python_tag|>{json.dumps({'name': name, 'parameters': args})}<|eom_id|>",
    "llama function": lambda name, args: f"<function={name}>{json.dumps(args)}</function>",
    "python": as_python,
    "react": lambda name, args: f"Thought: I should look.\nAction: {name}\nAction Input: {json.dumps(args)}",
    "react alone": lambda name, args: f"Action: {name}\nAction Input: {json.dumps(args)}\nObservation:",
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(name=words, args=arguments)
def test_any_call_survives_each_form(form: str, name: str, args: dict[str, Any]) -> None:
    text = FORMS[form](name, args)
    if "```" in text.strip("`") or "</function>" in json.dumps(args):
        return  # a fence in a fence
    (found,) = read_calls(text)
    assert (found.name, found.arguments) == (name, args)
    assert all(may_become_calls(text[:cut]) for cut in range(0, len(text), 7))


prose = st.from_regex(r"[A-Z][a-z]{1,8}( [a-z]{1,8}){1,6}[.:]", fullmatch=True)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10, deadline=None)
@given(before=prose, after=prose)
def test_whatever_prose_stands_around_a_call_it_is_none(form: str, before: str, after: str) -> None:
    text = FORMS[form]("file__delete", {"path": "a.txt"})
    assert read_calls(f"{before}\n{text}") == ()
    assert read_calls(f"{text}\n{after}") == ()
    assert read_calls(f"{before} {text} {after}") == ()


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_without_a_failure(text: str) -> None:
    assert all(isinstance(call.arguments, dict) for call in read_calls(text))
    is_call(text)


@pytest.mark.parametrize(
    "text",
    [
        "f(a=__import__('os').system('id'))",
        "f(a=[x for x in (1,)])",
        "f(*[1])",
        "f(**3)",
        "f({[1]: 2})",
        "f(a=1)(b=2)",
        "f(a=1); g()",
        "lambda: f()",
        "(" * 20_000 + ")",
        '{"name": "f", "arguments": {"a": NaN}}',
        '{"name": "Anna", "age": 3}',
        '{"name": "f", "arguments": {}, "answer": "The file is empty."}',
        "Thought: it says\nAction: f\nAction Input: {}\nThought: so\nAction: g\nAction Input: {}",
        "Thought: it says\nthat I should do this.\nAction: f\nAction Input: {}",
        "Action: f\nAction Input: {}\nObservation: done\nFinal Answer: It is done.",
        "<tool_call>{}</tool_call>",
    ],
)
def test_what_runs_code_or_says_more_than_a_call_is_none(text: str) -> None:
    assert read_calls(text) == ()


def test_text_that_turns_out_to_be_a_call_is_not_shown_as_it_comes() -> None:
    heard: list[str] = []
    listen = CallFilter(heard.append)
    for piece in ("```js", 'on\n{"name"', ': "f", "arguments": {}}\n```'):
        listen(piece)
    assert heard == []
    listen = CallFilter(heard.append)
    for piece in ("Th", "e ans", "wer is {4}."):
        listen(piece)
    assert "".join(heard) == "The answer is {4}."


NAMES = ("file__delete", "look")


def of_file(text: str) -> tuple[str, int]:
    """What a model from a file says beside its calls, and how many those are."""
    ids = itertools.count()
    said, calls = read_reply(text, NAMES, lambda: str(next(ids)))
    assert all(isinstance(json.loads(call.arguments), dict) and call.name in NAMES for call in calls)
    return said, len(calls)


def of_other(text: str) -> tuple[str, int]:
    """The same of any other model."""
    calls = read_calls(text)
    return ("" if calls else text), len(calls)


USERS = {"of a file": (of_file, True), "other": (of_other, False)}


def heard(text: str, cuts: list[int], within: bool) -> str:
    said: list[str] = []
    listen = CallFilter(said.append, within=within)
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    for start, end in itertools.pairwise(places):
        listen(text[start:end])
    return "".join(said)


PIECES = [
    "<tool_call>", "</tool_call>", "<tool", "```json\n", "\n```", "```", "```python\n", "[TOOL_CALLS]", "Well", "é()",
    "<|python_tag|>", "<function=look>", "</function>", "Thought: well\n", "Action: look\n", "Action Input: ", "{", "}",
    '{"name": "look", "arguments": {}}', '{"name": "look", "arguments": {"a": "<tool_call>"}}', "look()", "(look)()",
    '{"action_name": "file__read", "args": {}}', "look (a=1)", 'look(a="b")', "[", "]", " ", "\n", "\ud800", "\x00",
    '{"name": "other", "arguments": {}}', '{"name": "look", "arguments": {"a": NaN}}', "Observation:", "</s>",
]  # fmt: skip
made = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=7).map("".join)
written = st.sampled_from([FORMS[form]("look", {"at": "a"}) for form in FORMS])


@pytest.mark.parametrize("user", USERS)
@settings(max_examples=100, deadline=None)
@given(text=made | written, cuts=st.lists(st.integers(0, 400), max_size=5))
def test_what_is_heard_depends_on_no_cut_and_holds_nothing_of_a_call(
    user: str, text: str, cuts: list[int]
) -> None:
    read, within = USERS[user]
    said, calls = read(text)
    listened = heard(text, cuts, within)

    assert listened == heard(text, [], within) == heard(text, list(range(len(text))), within)
    assert text.startswith(listened)
    if calls:  # what was heard was said beside the calls, and is no part of one
        assert said.startswith(listened.strip())
        assert within or listened == ""
    else:
        assert said == text


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 15_000,
        '<tool_call>{"a":"' * 10_000,
        "<tool_call>" + "[" * 100_000,
        "```\n" * 50_000,
        "<tool_call> " + " " * 150_000 + "x",
        "x" + " \n" * 90_000 + "x",
        "```\n" + " " * 150_000 + "x```",
        "Action: look\nAction Input: {" + " " * 150_000 + "x",
        "look(" * 30_000,
        "<tool_call>{" * 30_000,
        "[TOOL_CALLS]" + "f{}" * 60_000,
    ],
)
def test_malformed_text_of_any_length_is_none_and_costs_little(user: str, text: str) -> None:
    read, within = USERS[user]
    assert read(text) == (text, 0)
    heard(text, list(range(0, len(text), 5_000)), within)


def test_white_space_without_end_is_heard_late_and_costs_little() -> None:
    said: list[str] = []
    filtered, began = CallFilter(said.append), time.process_time()
    for _ in range(20_000):
        filtered("    ")
    filtered("Hello, you")
    assert "".join(said) == " " * 80_000 + "Hello, you" and time.process_time() - began < 20
