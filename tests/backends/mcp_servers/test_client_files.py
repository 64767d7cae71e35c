"""Taking servers over from the files of other clients."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.backends.mcp_servers.client_files import known_files, read_client_file, without_comments
from reyn_jupyter.backends.mcp_servers.server_file import ServerFileError

VS_CODE = """{
  // who starts what
  "inputs": [{"id": "github-token", "type": "promptString", "password": true}],
  "servers": {
    "git hub": {
      "type": "stdio", "command": "npx", "args": ["-y", "a // no comment", "/* nor this */"],
      "env": {"TOKEN": "${input:github-token}", "ROOT": "${workspaceFolder}/x", "K": "${env:KEY}",},
    },
    /* a remote one */ "far": {"type": "http", "url": "https://far.example/mcp"},
  },
}"""


def file(folder: Path, content: object) -> Path:
    path = folder / "client.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_file_of_vs_code_with_comments_is_read(tmp_path: Path):
    git, far = read_client_file(file(tmp_path, VS_CODE))
    assert git.entry and far.entry
    assert git.entry.name == "git-hub" and git.note == "called git-hub here"
    assert git.entry.args == ("-y", "a // no comment", "/* nor this */")
    assert [(each.kind, each.name) for each in git.entry.references] == [
        ("stored", "github-token"), ("place", "workspaceFolder"), ("environment", "KEY"),
    ]  # fmt: skip
    assert far.entry.url == "https://far.example/mcp"


def test_secrets_are_kept_apart_and_approvals_stay_behind(tmp_path: Path):
    (git, far) = read_client_file(
        file(
            tmp_path,
            {"mcpServers": {
                "git": {"command": "x", "env": {"GITHUB_TOKEN": "ghp_correct_horse", "LEVEL": "info"},
                        "alwaysAllow": ["*"], "trustHints": True},
                "far": {"url": "https://a.example/", "headers": {"X-Api-Key": "correct-horse"}},
            }},
        )
    )  # fmt: skip
    assert git.entry and far.entry
    assert git.secrets == {"GITHUB_TOKEN": "ghp_correct_horse"} and far.secrets == {
        "X_Api_Key": "correct-horse"
    }
    assert git.entry.plain == {
        "command": "x", "args": [], "env": {"GITHUB_TOKEN": "${input:GITHUB_TOKEN}", "LEVEL": "info"},
    }  # fmt: skip
    assert far.entry.headers == {"X-Api-Key": "${input:X_Api_Key}"}
    assert "kept apart" in git.note


def test_what_cannot_be_taken_is_named_and_the_rest_is(tmp_path: Path):
    found = read_client_file(
        file(
            tmp_path,
            {"mcpServers": {"sse": {"type": "sse", "url": "https://a.example"}, "mine": {"command": "x"}, "bad": 7,
                            "files": {"command": "x", "envFile": ".env"}, "a b": {"command": "1"},
                            "a-b": {"command": "2"}}},
        ),
        taken={"mine"},
    )  # fmt: skip
    assert [(each.entry.name if each.entry else each.note[:30]) for each in found] == [
        "left out: it uses the transpor", "left out: there is a server mi", "left out: it is no object; wri",
        "left out: its envFile is not r", "a-b", "left out: there is a server a-",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"servers": []}', "{'a': 1}", '{"a": 1, "a": 2}', "[" * 100_000]
)
def test_a_file_that_names_no_servers_is_refused(tmp_path: Path, content: str):
    with pytest.raises(ServerFileError):
        read_client_file(file(tmp_path, content))


def test_a_pipe_or_nothing_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing"):
        with pytest.raises(ServerFileError, match="cannot be read"):
            read_client_file(tmp_path / name)


@given(
    st.dictionaries(st.text(max_size=8), st.text(st.sampled_from('/*,"\\}] a\n'), max_size=12), max_size=4)
)
def test_texts_with_what_looks_like_comments_stay_as_they_are(env: dict[str, str]):

    values = {"servers": {"a": {"command": "x", "note": env}}, "rest": list(env.values())}
    commented = "// hello\n" + json.dumps(values, indent=1).replace("\n]", ",\n]") + "/* bye */"
    assert json.loads(without_comments(commented.encode(), Path("f"))) == values


def test_the_usual_places_are_looked_at(tmp_path: Path):
    for path in (".config/Claude/claude_desktop_config.json", ".cursor/mcp.json", "x/Code/User/mcp.json"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("{}")
    assert [client for client, _ in known_files(tmp_path, {}, "linux")] == ["Claude Desktop", "Cursor"]
    there = known_files(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "x")}, "linux")
    assert [client for client, _ in there] == ["Cursor", "VS Code"]
