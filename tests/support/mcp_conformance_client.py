"""Our client, as the protocol's conformance suite runs one: it calls each tool of the address in its last word.

A person is there who says yes to every question, and takes each value that a form proposes.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any
from unittest.mock import patch

import reyn_jupyter as reyn
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList

NUMBERS = {"a": 5, "b": 3}


def main() -> None:
    servers = McpServerList([McpServer("far", "http", url=sys.argv[-1])])
    with tempfile.TemporaryDirectory() as folder:
        session = reyn.Session(folder, store="memory", namespace={}, mcp_servers=servers)
        for tool in session.invoke_action("mcp__list_tools", {"server": "far"}).value["items"]:
            wanted: dict[str, Any] = tool["input_schema"].get("properties", {})
            args = {"tool": tool["tool"], "tool_args": {name: NUMBERS.get(name, "x") for name in wanted}}
            session.invoke_action("mcp__call_tool", args)
        session.close()


if __name__ == "__main__":
    with (
        patch("reyn_jupyter.backends.mcp.elicitation.somebody_there", lambda: True),
        patch("builtins.input", lambda prompt: ""),
    ):
        main()
