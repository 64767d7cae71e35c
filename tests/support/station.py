"""A category as another package would write it: a weather station behind a program of its own and an HTTP server.

Its `start` runs the server as a program and opens a client to it; its entries are the stations that the server names;
`close` ends both. Faults are switched on from outside, and everything is counted.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.programs.owned_program import OwnedProgram

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"oslo rome"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}


async def nothing() -> None:
    """Go on at once."""


@dataclass
class Faults:
    """What the next call meets; each is awaited where its name says."""

    start: Callable[[], Awaitable[object]] = nothing
    entries: Callable[[], Awaitable[object]] = nothing
    close: Callable[[], Awaitable[object]] = nothing
    hidden: str | None = None
    more: list[Any] = field(default_factory=list)


COUNTS: Counter[str] = Counter()
FAULTS = Faults()


def reset() -> None:
    """Forget what was counted, and every fault."""
    COUNTS.clear()
    FAULTS.__init__()  # type: ignore[misc]


class Station:
    """One instance of the category: a server that runs as a program."""

    def __init__(self, services: Services, name: str = "station") -> None:
        COUNTS["made"] += 1
        self.services = services
        self.name = name
        self.program: OwnedProgram | None = None
        self.port = 0

    async def start(self) -> None:
        COUNTS["started"] += 1
        self.program = await self.services.programs.start([sys.executable, "-c", SERVER])
        await FAULTS.start()
        stdout = self.program.process.stdout
        assert stdout is not None
        self.port = int(await stdout.readline())

    async def close(self) -> None:
        COUNTS["closed"] += 1
        await FAULTS.close()
        if self.program is not None:
            await self.program.end()

    async def get(self) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.partition(b"\r\n\r\n")[2].decode()

    async def entries(self) -> Sequence[Entry]:
        COUNTS["listed"] += 1
        await FAULTS.entries()
        names = (await self.get()).split()
        return [*(Entry(name, f"The weather of {name}.", SCHEMA) for name in names), *FAULTS.more]

    async def read(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        COUNTS["read"] += 1
        return {"stations": await self.get(), "folder": str(context.workspace.root), "made": id(self)}

    def category(self, *, live: bool = True) -> Category:
        """Return the declaration, with live entries or with its operation alone."""
        return Category(
            self.name,
            "Ask weather stations.",
            (
                Operation(
                    "all", "Name every station.", SCHEMA, Tool(f"all_{self.name}", self.read, Purity.READ)
                ),
            ),
            Resources(
                Tool(f"one_{self.name}", self.read, Purity.READ),
                lambda entry, args: {},
                "read it",
                self.entries,
            )
            if live
            else None,
            hidden=lambda: FAULTS.hidden,
            start=self.start,
            close=self.close,
        )


def categories(services: Services) -> tuple[Category, ...]:
    """What the entry point of the package names."""
    return (Station(services).category(),)
