"""A configuration file is understood whole, or refused with its line."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.config import ConfigError
from reyn_jupyter.config.yaml_document import parse, parse_scalar, read_bytes


def refusal(text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode() if isinstance(text, str) else text, "reyn.yaml")
    return caught.value


def test_values_come_with_the_line_of_their_key():
    document = parse(b"# mine\nrouter:\n  surface: flat\n  limits: {max_steps: 3}\n", "reyn.yaml")
    assert document.values == {"router": {"surface": "flat", "limits": {"max_steps": 3}}}
    assert document.lines["router", "surface"] == 3
    assert document.lines["router", "limits", "max_steps"] == 4


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~\n"])
def test_a_file_without_values_is_empty_not_wrong(text):
    assert parse(text.encode(), "reyn.yaml").values == {}


def test_a_byte_order_mark_is_no_part_of_the_first_key():
    assert parse("\ufeffvariables: head".encode(), "reyn.yaml").values == {"variables": "head"}


def test_only_what_json_can_say_comes_out():
    document = parse(b"a: 2024-01-01\nb: 1.5\nc: yes\nd: [1, null]\noff: x\n1: y", "reyn.yaml")
    assert document.values == {"a": "2024-01-01", "b": 1.5, "c": True, "d": [1, None], "off": "x", "1": "y"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nrouter:\n\tsurface: flat", 3, "tab"),
        ("a: 1\nb: 2\na: 3", 3, "twice"),
        ("a: {b: 1, b: 2}", 1, "twice"),
        ("a: 1\nb: [1, 2", 2, "not valid YAML"),
        ("- a\n- b", 1, "a list where key: value lines are needed"),
        ("just text", 1, "a single value where"),
        ("a: 1\nb: !!python/object/apply:os.system ['id']", 2, "tag"),
        ("a: !!binary aGk=", 1, "tag"),
        ("a: !!set {x, y}", 1, "tag"),
        ("a: 1\n---\nb: 2", 2, "more than one document"),
        ("a: .nan", 1, "finite"),
        ("a: 1e999\nb: -.inf", 2, "finite"),
        ("? [a, b]\n: 1", 1, "plain word"),
        ("a: *nowhere", 1, "undefined alias"),
        ("a: " + "9" * 5000, 1, "cannot be read"),
        ("a: 1\nb: " + ":".join(["1"] * 3000), 2, "64 bits"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, line, words):
    error = refusal(text)
    assert error.line == line
    assert words in str(error)
    assert str(error).startswith("reyn.yaml, line ")


def test_text_that_is_no_utf8_is_refused_with_its_line():
    error = refusal(b"a: 1\nb: caf\xe9\n")
    assert (error.line, "UTF-8" in str(error)) == (2, True)


def test_a_nul_character_is_refused():
    assert "does not allow" in str(refusal("a: 1\nb: x\0y"))


def test_an_alias_bomb_runs_out_of_budget():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "aliases" in str(refusal("\n".join(lines)))


def test_a_mapping_that_holds_itself_is_refused():
    assert "aliases" in str(refusal("a: &a {b: *a}"))


@pytest.mark.parametrize("text", ["[" * 5000, "a: " * 5000, "{a: " * 5000, "- " * 5000])
def test_deep_nesting_is_refused_without_a_crash(text):
    refusal(text)


def test_too_many_entries_are_refused():
    assert "too many" in str(refusal("a: [" + "1," * 60_000 + "1]"))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80) | st.text(alphabet="ab:-[]{}&*!|>'\"#\n\t ,?%@", max_size=60))
def test_any_text_is_understood_or_refused_and_nothing_else(text):
    try:
        document = parse(text.encode("utf-8", "surrogatepass"), "x")
    except ConfigError as error:
        assert str(error).startswith("x")
    else:
        assert isinstance(document.values, dict)


def test_a_file_that_is_not_there_has_no_bytes(tmp_path):
    assert read_bytes(tmp_path / "none.yaml", "none.yaml") is None


def test_a_large_file_is_refused(tmp_path):
    (tmp_path / "big.yaml").write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read_bytes(tmp_path / "big.yaml", "big.yaml")


def test_links_pipes_and_folders_are_refused_at_once(tmp_path):
    (tmp_path / "secret").write_text("models: {}")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    for name, words in (("link", "is a link"), ("pipe", "no regular file"), ("folder", "no regular file")):
        with pytest.raises(ConfigError, match=words):
            read_bytes(tmp_path / f"{name}.yaml", f"{name}.yaml")


def test_a_typed_value_is_read_as_yaml_and_else_stays_text():
    assert parse_scalar('{"model": "a", "n": 2}') == {"model": "a", "n": 2}
    assert parse_scalar("off") is False
    assert parse_scalar("null") is None
    assert parse_scalar("ollama/llama3:8b") == "ollama/llama3:8b"
    assert parse_scalar("{broken") == "{broken"
    assert parse_scalar("*") == "*"
