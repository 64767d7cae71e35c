"""A session with the first major version of MCP's SDK, as other packages pin it: what it uses, and what it serves.

`make setup-test` lays an environment with that version over the one of the tests. Sessions are in processes of it.
Their servers and clients are programs by hand, or of the second version.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from packaging.requirements import Requirement

import reyn_jupyter as reyn
from reyn_jupyter.backends import protocol_sdk
from reyn_jupyter.backends.mcp_sdk.sdk import MCP_SDK
from reyn_jupyter.backends.serving.address_file import AddressFile
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.sessions.serving.serve import ServeError
from tests.support.mcp_http import http_server
from tests.support.mcp_servers import PROGRAM
from tests.support.processes import ROOT, environment

FIRST = Path(sys.prefix) / "mcp-1" / "bin" / "python"
SERVE = """
import importlib.metadata, sys, threading
import reyn_jupyter as reyn
namespace = {"größe": [1, 2], "orders": [1]}
session = reyn.Session(sys.argv[1], namespace=namespace)
served = session.serve_mcp()
print(importlib.metadata.version("mcp"), flush=True)

def take():
    for line in sys.stdin:
        namespace[line.strip()] = 1
        print("there", flush=True)

threading.Thread(target=take, daemon=True).start()
served.join()
"""
USE = """
import json, sys
from contextlib import closing
import reyn_jupyter as reyn
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
entries = json.loads(sys.argv[2]).items()
servers = [McpServer(name, **{**entry, "args": tuple(entry.get("args", ()))}) for name, entry in entries]
with closing(reyn.Session(sys.argv[1], store="memory", namespace={}, mcp_servers=McpServerList(servers))) as session:
    for name, args in json.loads(sys.argv[3]):
        result = session.invoke_action(name, args)
        value = result.value if result.ok else None
        print(json.dumps([result.ok, value if isinstance(value, str | list | dict) else str(value)], default=str))
"""


def use(workspace: Path, servers: dict[str, dict[str, Any]], *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return code and value of each call, in a session of the first version."""
    words = [str(FIRST), "-c", textwrap.dedent(USE), str(workspace), json.dumps(servers), json.dumps(calls)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_programs_and_addresses_are_used(workspace: Path) -> None:
    with http_server() as far:
        servers = {
            "lab": {
                "transport": "stdio",
                "command": sys.executable,
                "args": ["-I", "-S", str(PROGRAM), "{}"],
            },
            "far": {"transport": "http", "url": far.entry().url},
        }
        found = use(
            workspace,
            servers,
            ("mcp__list_tools", {"server": "lab"}),
            ("mcp__lab__echo", {"text": "one"}),
            ("mcp__far__echo", {"text": "two"}),
            ("mcp__far__missing", {}),
            ("mcp__list_servers", {}),
        )
    assert "lab__echo" in [each["tool"] for each in found[0][1]["items"]]
    assert [each[1] for each in found[1:3]] == ["one", "two"]
    assert [each[0] for each in found] == [True, True, True, False, True]
    assert {row["server"]: row["state"] for row in found[4][1]} == {"lab": "ready", "far": "ready"}


@contextmanager
def served(workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """Serve a session of the first version, in a process of its own."""
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    words = [str(FIRST), "-c", SERVE, str(workspace)]
    with subprocess.Popen(words, env=environment(), text=True, **pipes) as kernel:
        try:
            assert kernel.stdout is not None and kernel.stdout.readline().startswith("1.")
            yield kernel
        finally:
            kernel.kill()


async def look(client: Client) -> None:
    """Use what a session serves."""
    assert client.protocol_version == "2025-11-25"
    tools = {each.name for each in (await client.list_tools()).tools}
    assert {"list_actions", "invoke_action", "inspect"} <= tools
    read = await client.call_tool(
        "invoke_action", {"action_name": "file__read", "args": {"path": "notes.txt"}}
    )
    assert "third line" in read.content[0].text and not read.is_error  # type: ignore[union-attr]
    listed = await client.call_tool("list_actions", {"category": "file"})
    assert listed.structured_content is not None
    names = {each.name: each.uri for each in (await client.list_resources()).resources}
    assert {"größe", "orders"} <= names.keys()
    [told] = (await client.read_resource(names["größe"])).contents
    assert "list" in told.text  # type: ignore[union-attr]
    with pytest.raises(MCPError, match="cursor"):
        await client.list_tools(cursor="elsewhere")
    with pytest.raises(MCPError, match="There is no resource"):
        await client.read_resource("reyn://nothing/here")
    prompts = {each.name for each in (await client.list_prompts()).prompts}
    assert "do" in prompts
    filled = await client.get_prompt("do", {"task": "Add them."})
    assert "Add them." in filled.messages[0].content.text  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_clients_of_the_second_version_are_served(workspace: Path, mode: str) -> None:
    async def work(kernel: subprocess.Popen[str]) -> list[str]:
        address = AddressFile(StateFolder(workspace)).find()
        told: list[str] = []
        moved = anyio.Event()

        async def hear(message: Any) -> None:
            told.append(getattr(message, "method", ""))
            moved.set()

        headers = {"Authorization": f"Bearer {address.token.reveal()}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(
                streamable_http_client(address.url, http_client=http), mode=mode, message_handler=hear
            ) as client,
        ):
            await look(client)
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.resources.subscribe
            assert kernel.stdin is not None and kernel.stdout is not None
            kernel.stdin.write("added\n")
            kernel.stdin.flush()
            assert await anyio.to_thread.run_sync(kernel.stdout.readline) == "there\n"
            await client.list_resources()  # which looks again
            with anyio.fail_after(60):
                await moved.wait()
        return told

    with served(workspace) as kernel:
        assert "notifications/resources/list_changed" in anyio.run(work, kernel)


def test_the_bridge_joins_a_client_to_it(workspace: Path) -> None:
    async def work() -> None:
        words = ["-P", "-m", "reyn_jupyter.mcp_bridge", "--workspace", str(workspace)]
        async with Client(StdioServerParameters(command=str(FIRST), args=words, env=environment())) as client:
            await look(client)

    with served(workspace):
        anyio.run(work)


def test_a_version_that_is_too_old_is_named_wherever_categories_are(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol_sdk, "version_of", lambda package: "1.27.2")
    with closing(reyn.Session(workspace, namespace={}, store="memory")) as session:
        status = mimebundle(session.status)["text/plain"]
        assert "1.27.2" in status and "1.30 or 2.3" in status and "pip check" in status
        assert "1.27.2" in session.list_actions().hidden["mcp"]
        assert "1.27.2" in str(session.invoke_action("mcp__list_servers").payload)
        with pytest.raises(ServeError, match=r"1\.30 or 2\.3"):
            session.serve_mcp()


@pytest.mark.parametrize(
    ("version", "works"),
    [
        ("1.29.1", False),
        ("1.30.0", True),
        ("1.31.2", True),
        ("2.2.9", False),
        ("2.3.0", True),
        ("3.0", False),
    ],
)
def test_the_versions_that_work_are_those_of_the_package(
    monkeypatch: pytest.MonkeyPatch, version: str, works: bool
) -> None:
    monkeypatch.setattr(protocol_sdk, "version_of", lambda package: version)
    assert (MCP_SDK.missing() is None) == works
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    [stated] = [each for each in map(Requirement, found) if each.name == "mcp"]
    assert stated.specifier.contains(version) == works


def test_models_without_which_the_first_version_does_not_work_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol_sdk, "version_of", lambda package: "1.30.0" if package == "mcp" else None)
    assert "mcp-types" in str(MCP_SDK.missing())
