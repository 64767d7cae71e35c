"""A server over HTTP in a process of its own, by the protocol's SDK: it can be killed and started again on its port.

The process prints its port. `modern` speaks the newest protocol, in which a server's question comes back as an answer;
without it the server is one of a session, which a restart forgets.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reyn_jupyter.runtime.access.mcp_access import McpServer
from tests.support.ports import free_port
from tests.support.processes import environment, mcp_python
from tests.support.waiting import until

SERVER = """
import sys
from mcp.server.mcpserver import Context, MCPServer
server = MCPServer("far", version="2")
seen = []

@server.tool()
async def echo(text: str) -> str:
    "Say it again."
    seen.append(text)
    return text

@server.tool()
async def count() -> int:
    "Count what was said."
    return len(seen)

@server.tool()
async def headers(context: Context) -> str:
    "Name the key of the request."
    return context.request_context.request.headers.get("authorization", "")

@server.tool()
async def hang() -> str:
    "Wait."
    import anyio
    await anyio.sleep(3600)

@server.tool()
async def grow(text: str, context: Context) -> str:
    "Learn a trick."
    server.add_tool(lambda: "new", name="grown", description=text)
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()  # for a client whose protocol knows no listening
    return "grown"

server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


class HttpServer:
    """A server at one port, under way or not.

    Attributes:
        port: where it is.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, tries: int = 3) -> None:
        """Start it, and wait until it listens; at another port where something has taken this one meanwhile."""
        process = self._process = subprocess.Popen(
            [mcp_python(), "-c", SERVER, str(self.port)],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: process.poll() is not None or self._listens())
        if process.poll() is not None:
            assert tries > 1, "the server ends by itself"
            self.port = free_port()
            self.start(tries - 1)

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def entry(self, name: str = "far", **more: Any) -> McpServer:
        """Return its entry."""
        return McpServer(name, "http", url=f"http://127.0.0.1:{self.port}/mcp", **more)

    def _listens(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def http_server() -> Iterator[HttpServer]:
    """Give a server that is under way, and kill it afterwards."""
    server = HttpServer()
    server.start()
    try:
        yield server
    finally:
        server.kill()
