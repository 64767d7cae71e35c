"""The lines that hints show, read back by the real parser of each verb."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from reyn_jupyter.notebook import verbs
from reyn_jupyter.notebook.magic_line.invoke_line import parse_arguments
from reyn_jupyter.notebook.magic_line.options import parse, split
from reyn_jupyter.support.encoding import compact
from reyn_jupyter.support.reyn_line import reyn_line

WORD = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
JSON = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


def read(line: str) -> Any:
    """Read a line with the options of its verb."""
    _, name, rest = line.split(" ", 2)
    verb = verbs.find(name)
    assert verb is not None
    return parse(verb.options, rest)


@given(WORD, WORD)
@example("my server", "KEY")
@example("-x", "--take")
@example('it\'s "both" \\', '{"a": 1}')
def test_a_line_gives_back_its_words_and_options(name: str, other: str) -> None:
    login = read(reyn_line("mcp login", name, paste=True))
    assert (login.what, login.name, login.paste) == ("login", name, True)
    secret = read(reyn_line("mcp secret", name, other))
    assert (secret.name, secret.words) == (name, (other,))
    listed = read(reyn_line("list", name, filter=other))
    assert (listed.category, listed.filter) == ((name,), other)
    trust = read(reyn_line("trust", name, hash=other))
    assert (trust.name, trust.hash) == (name, other)
    assert read(reyn_line("corpora", name, other)).words == (name, other)


@given(JSON)
@example({"path": "a b.txt"})
@example({"path": "it's", "deep": {"rows": [1, {"say": 'so "loud"'}]}})
@example({"sql": "SELECT '{\"a\": 1}' AS x -- no = option"})
def test_json_on_a_line_needs_no_quotes(arguments: dict[str, Any]) -> None:
    for line in (compact(arguments), json.dumps(arguments)):
        words = split(f"file__read {line} -o result")
        assert words == ["file__read", line, "-o", "result"]
        assert parse_arguments((line,)) == (arguments, {})


def test_json_is_one_word_after_a_key_too() -> None:
    assert split('tags=["a b", "it\'s"] x={"a": "b c"} y=[1] z') == [
        'tags=["a b", "it\'s"]', 'x={"a": "b c"}', "y=[1]", "z",
    ]  # fmt: skip


def test_braces_that_are_not_json_are_read_as_before() -> None:
    assert split("{a} [b c] {{name}} key={x y}") == ["{a}", "[b", "c]", "{{name}}", "key={x", "y}"]
    assert split('{"a": 1}b \'{"a": 1}\'') == ["{a:", "1}b", '{"a": 1}']
