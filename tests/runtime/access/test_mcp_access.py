"""What a session knows of an MCP server before it speaks with one."""

from __future__ import annotations

import pytest

from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
from reyn_jupyter.support.secret import Secret


@pytest.mark.parametrize("name", ["time", "git-2", "a.b_c", "7zip", "x" * 63])
def test_a_plain_word_is_a_name(name: str) -> None:
    assert McpServer(name, "stdio", command="run").name == name


@pytest.mark.parametrize(
    "name", ["", "a__b", "a_", "_a", "a/b", "my server", "a\n", "a\u202e", "x" * 64, "-a", "a:b"]
)
def test_a_name_that_could_pass_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a server"):
        McpServer(name, "stdio", command="run")


def test_a_server_without_a_way_to_it_is_refused() -> None:
    with pytest.raises(ValueError, match="reached by http, and has no url"):
        McpServer("far", "http", command="run")


def test_a_secret_of_an_entry_stands_in_no_text() -> None:
    server = McpServer(
        "far", "http", url="https://a.example/mcp", headers={"Authorization": Secret("KEY", "hush-hush")}
    )
    assert "hush" not in repr(server)


def test_who_listens_hears_of_new_servers_until_it_says_so() -> None:
    servers, heard = McpServerList(), []
    end = servers.subscribe(lambda: heard.append(list(servers.servers())))
    servers.replace([McpServer("time", "stdio", command="run")])
    end()
    servers.replace([])
    assert heard == [["time"]] and not servers.servers()


def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name"):
        McpServerList([McpServer("a", "stdio", command="x"), McpServer("a", "stdio", command="y")])
