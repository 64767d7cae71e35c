from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.names import WRAPPERS, ActionName, MalformedNameError, NameEncoder

CATEGORIES = st.from_regex(r"[a-z][a-z0-9]{0,5}([._-][a-z0-9]{1,5}){0,2}", fullmatch=True)
ENTRIES = st.text(min_size=1, max_size=80).filter(lambda text: text.rstrip() == text)
NAMES = st.builds(ActionName, CATEGORIES, ENTRIES)


@pytest.mark.parametrize(
    ("text", "category", "entry"),
    [
        ("agent.peer__alice", "agent.peer", "alice"),
        ("mcp__call_tool", "mcp", "call_tool"),
        ("mcp__install_registry", "mcp", "install_registry"),
        ("rag_corpus__meetings", "rag_corpus", "meetings"),
        ("file__read", "file", "read"),
    ],
)
def test_the_published_examples_parse(text: str, category: str, entry: str) -> None:
    assert ActionName.parse(text) == ActionName(category, entry)


def test_the_category_ends_at_the_first_separator() -> None:
    assert ActionName.parse("memory_entry__a__b") == ActionName("memory_entry", "a__b")
    assert ActionName.parse("file___x") == ActionName("file", "_x")


@pytest.mark.parametrize("text", ["default_api.file__read", " default_api.default_api.file__read\n"])
def test_what_a_model_echoes_before_a_name_is_dropped(text: str) -> None:
    assert str(ActionName.parse(text)) == "file__read"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "__",
        "file",
        "file__",
        "__read",
        "file.read",
        "File__read",
        "../x__y",
        "a" * 600 + "__x",
        "a__" + "b" * 600,
    ],
)
def test_what_cannot_be_a_name_is_malformed(text: str) -> None:
    with pytest.raises(MalformedNameError):
        ActionName.parse(text)


@given(NAMES)
def test_a_name_survives_being_written_and_read(name: ActionName) -> None:
    assert ActionName.parse(str(name)) == name


@given(st.text())
def test_what_parses_once_parses_again_to_the_same(text: str) -> None:
    try:
        name = ActionName.parse(text)
    except MalformedNameError:
        return
    assert ActionName.parse(str(name)) == name


# Names that come close to one another once dots, lengths and scripts are given up.
TRICKY = st.sampled_from(
    ["agent.peer__x", "agent_peer__x", "agent-peer__x", "a.b__c", "a_b__c", "a__é", "a__ü", "a__" + "x" * 80]
).map(ActionName.parse)


@given(st.lists(NAMES | TRICKY, max_size=12, unique=True))
def test_function_names_conform_differ_and_lead_back(names: list[ActionName]) -> None:
    encoder = NameEncoder(names)
    encoded = [encoder.encode(name) for name in names]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", text) for text in encoded)
    assert len(set(encoded)) == len(names)
    assert not set(encoded) & set(WRAPPERS)
    assert [encoder.decode(text) for text in encoded] == names


@given(st.lists(NAMES | TRICKY, max_size=6, unique=True), st.randoms())
def test_function_names_do_not_depend_on_the_order(names: list[ActionName], random: object) -> None:
    encoder, turned = NameEncoder(names), NameEncoder(reversed(names))
    assert [encoder.encode(name) for name in names] == [turned.encode(name) for name in names]


def test_function_names_stay_readable() -> None:
    encoder = NameEncoder([ActionName.parse("file__read"), ActionName.parse("agent.peer__alice")])
    assert encoder.decode("file__read") == ActionName("file", "read")
    assert encoder.decode("agent_peer__alice") == ActionName("agent.peer", "alice")
    assert encoder.decode("nobody") is None


def test_names_that_would_meet_are_told_apart() -> None:
    plain, dotted = ActionName("agent_peer", "x"), ActionName("agent.peer", "x")
    encoder = NameEncoder([dotted, plain])
    assert encoder.encode(plain) == "agent_peer__x"
    assert encoder.encode(dotted).startswith("agent_peer__x_")
