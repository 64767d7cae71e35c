"""Real servers in a sandbox: they work with what their entry gives them, and reach nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.landlock import Landlock
from reyn_jupyter.runtime.access.mcp_access import McpSandbox, McpServer, McpServerList
from reyn_jupyter.sessions.result_objects import ActionFailedError
from tests.support.courier import PageServer
from tests.support.mcp_servers import REAL, from_node, from_python

Make = Callable[..., reyn.Session]
BACKENDS = {each.name: each for each in (Bubblewrap(), Landlock())}
pytestmark = pytest.mark.skipif(not REAL.exists(), reason="make setup-test installs them")


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Make]:
    if (problem := BACKENDS[request.param].problem()) is not None:
        pytest.skip(f"{request.param} is not here: {problem}")
    made: list[reyn.Session] = []

    def session(server: McpServer, **given: tuple[str, ...]) -> reyn.Session:
        source = McpServerList([replace(server, sandbox=McpSandbox(**given))])
        config = {"sandbox": {"backend": request.param}}
        made.append(reyn.Session(workspace, namespace={}, mcp_servers=source, config=config))
        return made[-1]

    yield session
    for each in made:
        each.close()


def called(session: reyn.Session, tool: str, **args: Any) -> str:
    """Return what a tool answered, or what it failed with."""
    session.invoke_action("mcp__list_tools", {"server": tool.partition("__")[0]})  # it is started
    try:
        found = session.invoke_action("mcp__call_tool", {"tool": tool, "tool_args": args}).value
    except ActionFailedError as error:
        return f"failed: {error}"
    return found if isinstance(found, str) else str([part.text for part in found])


def refusal(session: reyn.Session) -> str:
    """Return why a server does not start."""
    with pytest.raises(ActionFailedError) as refused:
        session.invoke_action("mcp__list_tools", {"server": "time"}).value  # noqa: B018 - asked for, it raises
    return str(refused.value)


def test_a_server_works_with_nothing_given(make: Make) -> None:
    session = make(from_python("time", "--local-timezone=UTC"))
    times = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    assert "21:00" in called(session, "time__convert_time", **times)
    (row,) = session.invoke_action("mcp__list_servers", {}).value
    assert row["isolation"] == "sandbox; no network"
    assert session.mcp.rows[0]["isolation"] == "sandbox; no network"


def test_files_outside_of_what_was_given_are_out_of_reach_whatever_the_server_is_told(
    make: Make, workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "pay.txt"
    secret = workspace / ".env"
    for path in (outside, secret):
        path.write_text("loot-1f2e", encoding="ascii")
    session = make(from_node("filesystem", "/"), readable=(".",))  # the server itself would allow everything
    read = "filesystem__read_text_file"
    assert "second line" in called(session, read, path=str(workspace / "notes.txt"))
    state = next((workspace / ".reyn").rglob("*.jsonl"))
    for path in (outside, secret, state):
        said = called(session, read, path=str(path))
        assert "loot-1f2e" not in said
        assert '"run"' not in said
    made = workspace / "made.txt"
    assert "failed" in called(session, "filesystem__write_file", path=str(made), content="x")
    assert not made.exists()


def test_it_writes_where_its_entry_says(make: Make, workspace: Path) -> None:
    (workspace / "out").mkdir()
    session = make(from_node("filesystem", str(workspace / "out")), writable=("out",))
    called(session, "filesystem__write_file", path=str(workspace / "out" / "made.txt"), content="done")
    assert (workspace / "out" / "made.txt").read_text(encoding="ascii") == "done"


def test_it_reaches_the_hosts_of_its_entry_and_no_others(make: Make) -> None:
    with PageServer({"/page": "a fine day"}) as allowed, PageServer({"/page": "a dark night"}) as other:
        url = allowed.url("/page", "127.0.0.1")
        server = from_python("fetch", "--ignore-robots-txt", "--allow-private-ips")
        session = make(server, hosts=(url,))
        assert "a fine day" in called(session, "fetch__fetch", url=url, raw=True)
        said = called(session, "fetch__fetch", url=other.url("/page", "127.0.0.1"), raw=True)
        assert "failed" in said
        assert "a dark night" not in said


def test_git_reads_a_repository_of_its_entry(make: Make, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    server = from_python("git", "--repository", str(workspace))
    session = make(server, readable=(".",))
    if session.parts.settings.sandbox.backend == "landlock":
        pytest.skip("git works under bubblewrap alone")
    assert "notes.txt" in called(session, "git__git_status", repo_path=str(workspace))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"readable": (".reyn",)}, "holds secrets or the state"),
        ({"writable": ("nowhere",)}, "does not exist"),
    ],
)
def test_what_no_server_may_be_given_is_refused(
    make: Make, workspace: Path, given: dict[str, tuple[str, ...]], why: str
) -> None:
    (workspace / ".reyn").mkdir(exist_ok=True)
    assert why in refusal(make(from_python("time"), **given))


def test_without_a_sandbox_it_does_not_start_and_says_so(workspace: Path) -> None:
    server = replace(from_python("time"), sandbox=McpSandbox())
    config = {"sandbox": {"backend": "deno"}}
    session = reyn.Session(workspace, namespace={}, mcp_servers=McpServerList([server]), config=config)
    assert "no sandbox is in force here" in refusal(session)
    assert session.mcp.rows[0]["isolation"] == "sandbox; no network"
    session.close()
