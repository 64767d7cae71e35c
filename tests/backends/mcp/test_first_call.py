"""The first call of a process loads the protocol's SDK, and the engine's loop goes on meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.mcp_http import HttpServer, http_server
from tests.support.processes import started

FIRST = """
    import json, sys, threading
    import reyn_jupyter as reyn
    from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
    from tests.support.mcp_servers import program

    places = {}
    def note(event, args):
        if event == "import":
            places.setdefault(args[0].partition(".")[0], set()).add(threading.current_thread().name)

    servers = McpServerList([program(), McpServer("far", "http", url=sys.argv[2])])
    session = reyn.Session(sys.argv[1], store="memory", namespace={}, mcp_servers=servers)
    sys.addaudithook(note)
    for tool in ("lab__number", "far__count"):  # both give what their schemas announce
        session.invoke_action("mcp__list_tools", {"server": tool[:3]}).value
        session.invoke_action("mcp__call_tool", {"tool": tool, "tool_args": {}}).value
    print(json.dumps({name: sorted(threads) for name, threads in places.items()}), flush=True)
    session.close()
"""
HEAVY = {"mcp", "mcp_types", "httpx2", "jsonschema", "referencing"}


def imports(workspace: Path, far: HttpServer) -> dict[str, list[str]]:
    """Return the packages that a process imports for its first calls, and the threads that did."""
    process = started(FIRST, str(workspace), far.entry().url)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    found: dict[str, list[str]] = json.loads(said)
    return found


def test_the_sdk_and_what_it_loads_are_never_imported_on_the_loop(workspace: Path) -> None:
    with http_server() as far:
        found = imports(workspace, far)
    assert "mcp" in found  # by the call, and nowhere before
    assert not [name for name in HEAVY & found.keys() if "reyn-engine" in found[name]]
