"""Files of the common `mcpServers` JSON: what they may say, and what becomes of those that say something else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.backends.mcp_servers.server_entry import (
    EntryError,
    check_name,
    read_entry,
    references,
    replace_references,
    usable_name,
)
from reyn_jupyter.backends.mcp_servers.server_file import (
    ServerFileError,
    parse_servers,
    read_servers,
    with_entry,
    without_entry,
    write_file,
)
from reyn_jupyter.runtime.access.mcp_access import SERVER_NAME

TIME = {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}}


def document(**servers: Any) -> bytes:
    return json.dumps({"mcpServers": servers}).encode()


def test_a_program_and_an_address_are_read_as_other_clients_write_them():
    found = parse_servers(
        document(
            time=TIME,
            far={"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            near={"url": "http://127.0.0.1:8000/mcp"},
            off={"command": "x", "disabled": True, "alwaysAllow": ["everything"], "timeout": 60},
        ),
        ".mcp.json",
    )  # fmt: skip
    assert not found.problems
    assert found.entries["time"].argv == ("uvx", "mcp-server-time")
    assert [each.transport for each in found.entries.values()] == ["stdio", "http", "http", "stdio"]
    assert found.entries["off"].disabled


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 200_000, "nested too deeply"),
        (b'{"mcpServers": {"a": ' + b"[" * 400 + b"]" * 400 + b"}}", "nested too deeply"),
        (b'{"mcpServers": {}, "mcpServers": {"a": {"command": "x"}}}', "'mcpServers' is there twice"),
        (b'{"mcpServers": {"a": {"command": "x", "command": "y"}}}', "'command' is there twice"),
        (b'{"mcpServers": {"a": {"command": "x", "n": NaN}}}', "NaN is no number"),
        (b'{"mcpServers": {"a": {"n": 1e999}}}', "too large"),
        (b'{"mcpServers": []}', "must be an object"),
        (b'{"mcpServers": {' + b",".join(b'"a%d": {}' % n for n in range(501)) + b"}}", "at most 500"),
        (b"[]", "must be an object"),
        (b'{"mcpServers": {', "line 1"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_such_json_is_refused_with_one_sentence(content: bytes, said: str):
    with pytest.raises(ServerFileError, match=said) as refused:
        parse_servers(content, ".mcp.json")
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


def test_a_file_that_is_large_a_pipe_a_link_or_a_folder_is_refused_at_once(tmp_path: Path):
    (tmp_path / "large").write_bytes(b" " * 10_000_000)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real").write_bytes(document(a=TIME))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()
    for name, said in {
        "large": "larger than 1 MiB",
        "pipe": "regular",
        "link": "a link",
        "folder": "regular",
    }.items():
        with pytest.raises(ServerFileError, match=said):
            read_servers(tmp_path / name, name)
    assert read_servers(tmp_path / "missing", "missing").content is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("uvx", "is no object"),
        ({}, '"command"'),
        ({"command": 3}, '"command"'),
        ({"command": " "}, '"command"'),
        ({"command": "x", "args": "y"}, '"args"'),
        ({"command": "x", "args": [1]}, '"args"'),
        ({"command": "x", "args": ["a"] * 300}, "at most 256"),
        ({"command": "x", "args": ["a\x00b"]}, "not drawn"),
        ({"command": "x", "args": ["safe\u202e"]}, "not drawn"),
        ({"command": "x", "env": {"A B": "1"}}, "which is none"),
        ({"command": "x", "env": {"A": 1}}, '"env.A"'),
        ({"command": "x", "env": {"A": "${not a name}"}}, "means nothing here"),
        ({"command": "x", "args": ["--key", "${API_KEY}"]}, "every program of the machine could read it"),
        ({"command": "x", "cwd": "${input:KEY}"}, "every program"),
        ({"command": "x", "disabled": "yes"}, "true or false"),
        ({"type": "sse", "url": "https://a.example/sse"}, "streamable HTTP has replaced"),
        ({"type": "ws", "url": "wss://a.example"}, '"stdio" and "http"'),
        ({"type": ["http"], "url": "https://a.example"}, '"stdio" and "http"'),
        ({"url": "file:///etc/passwd"}, "https://"),
        ({"url": "https://"}, '"url"'),
        ({"url": "https://user:word@a.example/"}, "password"),
        ({"url": "https://a.example/${TOKEN}"}, "headers"),
        ({"url": "https://a.example/", "headers": {"X Y": "1"}}, "which is none"),
        ({"url": "https://a.example/", "headers": {"X": "1\r\nHost: b"}}, "not drawn"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_and_takes_no_other_with_it(entry: object, said: str):
    found = parse_servers(document(before=TIME, broken=entry, after=TIME), ".mcp.json")
    assert list(found.entries) == ["before", "after"]
    (problem,) = found.problems
    assert said in problem and problem.startswith(".mcp.json: broken ")


@pytest.mark.parametrize("name", ["a__b", "a_", "a/b", "my server", "", "a\u202e", "é", "x" * 64])
def test_a_name_that_cannot_stand_in_the_name_of_a_tool_is_refused_with_one_that_can(name: str):
    with pytest.raises(EntryError, match="is no name of a server") as refused:
        check_name(name)
    assert repr(usable_name(name)) in str(refused.value)


@given(st.text(max_size=200))
def test_every_name_of_another_client_has_a_name_here(name: str):
    assert SERVER_NAME.fullmatch(usable_name(name))


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True),
        st.sampled_from(["", "a b", "${X:-}", "${HOME}/x"]),
        max_size=4,
    ),
    st.lists(st.text(st.characters(categories=["L", "N", "P"], exclude_characters="$"), max_size=20), max_size=5),
)  # fmt: skip
def test_what_is_written_is_read_as_it_was(env: dict[str, str], args: list[str]):
    entry = read_entry("a", {"command": "x", "args": args, "env": env})
    assert parse_servers(with_entry(parse_servers(b"{}", "f"), "f", entry), "f").entries == {"a": entry}


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_refused_and_what_was_put_in_is_not_looked_through_again(text: str):
    try:
        entry = read_entry("a", {"command": "x", "env": {"A": text}})
    except EntryError:
        return
    found = dict.fromkeys(entry.references, "${AGAIN}")
    put_in = replace_references(text, found)
    assert put_in.count("${AGAIN}") >= len(found)
    assert len(found) <= len(list(references(text)))


def test_a_change_keeps_what_the_file_says_besides(tmp_path: Path):
    path = tmp_path / ".mcp.json"
    path.write_text(
        json.dumps({"$schema": "x", "mcpServers": {"old": {"command": "y", "alwaysAllow": ["é"]}, "bad": 1}})
    )
    after = with_entry(read_servers(path, "f"), "f", read_entry("time", TIME))
    write_file(path, after)
    said = json.loads(path.read_text())
    assert said["$schema"] == "x" and said["mcpServers"]["old"]["alwaysAllow"] == ["é"]
    assert said["mcpServers"]["time"] == TIME and said["mcpServers"]["bad"] == 1
    assert path.stat().st_mode & 0o777 == 0o600
    write_file(path, without_entry(read_servers(path, "f"), "f", "bad"))
    assert list(read_servers(path, "f").entries) == ["old", "time"]
    with pytest.raises(ServerFileError, match="already"):
        with_entry(read_servers(path, "f"), "f", read_entry("time", TIME))


def test_a_write_goes_through_no_link(tmp_path: Path):
    (tmp_path / "target").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_file(tmp_path / "link", b"{} ")
    assert (tmp_path / "target").read_text() == "{}" and not (tmp_path / "link").is_symlink()
