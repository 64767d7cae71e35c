"""Servers as people install them, for Python and for Node; `make setup-test` brings them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.mcp.server_log import OLDER
from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
from reyn_jupyter.runtime.record.events import ActionProgressed
from tests.support.courier import PageServer
from tests.support.mcp_servers import REAL, from_node, from_python

Make = Callable[..., reyn.Session]
pytestmark = pytest.mark.skipif(not REAL.exists(), reason="make setup-test installs them")


def called(session: reyn.Session, tool: str, **args: Any) -> Any:
    return session.invoke_action("mcp__call_tool", {"tool": tool, "tool_args": args}).value


def test_time(make: Make) -> None:
    session = make(from_python("time", "--local-timezone=UTC"))
    found = called(
        session, "time__convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
    )
    assert "21:00" in str(found)


def test_the_log_of_an_older_server_is_not_filled_by_the_probe_for_a_newer_protocol(make: Make) -> None:
    session = make(from_python("time", "--local-timezone=UTC"))
    called(session, "time__get_current_time", timezone="UTC")
    [state] = session.parts.services.mcp.states()
    assert session.parts.services.mcp.log("time") == (() if IS_FIRST else (OLDER,)) and state.last_line == ""


def test_git(make: Make, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    session = make(from_python("git", "--repository", str(workspace)))
    assert "notes.txt" in str(called(session, "git__git_status", repo_path=str(workspace)))


def test_fetch(make: Make) -> None:
    with PageServer({"/page": "a fine day"}) as pages:
        session = make(from_python("fetch", "--ignore-robots-txt", "--allow-private-ips"))
        assert "a fine day" in str(
            called(session, "fetch__fetch", url=pages.url("/page", "127.0.0.1"), raw=True)
        )


def test_filesystem(make: Make, workspace: Path) -> None:
    session = make(from_node("filesystem", str(workspace)))
    found = called(session, "filesystem__read_text_file", path=str(workspace / "notes.txt"))
    assert "second line" in found


def test_memory(make: Make, tmp_path: Path) -> None:
    server = from_node("memory")
    kept = McpServer("memory", "stdio", command=server.command, args=server.args,
                     env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})  # fmt: skip
    session = make(kept)
    entities = [{"name": "Ada", "entityType": "person", "observations": ["counts stars"]}]
    called(session, "memory__create_entities", entities=entities)
    assert "counts stars" in str(called(session, "memory__read_graph"))


def test_everything(make: Make) -> None:
    session = make(from_node("everything"))
    assert "hello" in str(called(session, "everything__echo", message="hello"))
    assert "5" in str(called(session, "everything__get-sum", a=2, b=3))
    image = next(part for part in called(session, "everything__get-tiny-image") if part.mime == "image/png")
    assert image.data[:4] == b"\x89PNG"
    structured = called(session, "everything__get-structured-content", location="New York")
    assert "temperature" in json.dumps(structured, default=str)
    listed = session.invoke_action("mcp__list_resources", {"server": "everything"}).value
    kinds = {each["kind"] for each in listed["items"]}
    assert "prompt" in kinds and {"resource", "template"} & kinds


def test_the_progress_of_a_long_call_is_told(workspace: Path) -> None:
    session = reyn.Session(
        workspace,
        store="memory",
        namespace={},
        mcp_servers=McpServerList([from_node("everything")]),
        config={"permissions": {"allow": ["mcp__*"]}},
    )
    asked = {
        "tool": "everything__trigger-long-running-operation",
        "tool_args": {"duration": 0.4, "steps": 4},
    }
    try:
        trace = session.ask(
            "go",
            model=ScriptedModel(call("invoke_action", action_name="mcp__call_tool", args=asked), "Done."),
        )
    finally:
        session.close()
    told = [(each.done, each.total) for each in trace.events if isinstance(each, ActionProgressed)]
    assert told[-1] == (4, 4)
