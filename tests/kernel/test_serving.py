"""A client of another program works on a kernel's session, while the kernel rests and while a cell runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import Implementation

from tests.kernel.kernel_support import Kernel
from tests.support.mcp_client import call, text
from tests.support.processes import environment


def by_pipes(entry: dict[str, Any], work: Callable[[Client], Awaitable[Any]]) -> Any:
    """Do what a client does that was given the entry of the card."""
    (server,) = entry["mcpServers"].values()
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env={**environment(), **server.get("env", {})}
    )

    async def run() -> Any:
        async with Client(parameters, client_info=Implementation(name="editor", version="3")) as client:
            return await work(client)

    return asyncio.run(run())


def test_a_client_works_on_live_data_also_while_a_cell_runs(kernel: Kernel, workspace: Path) -> None:
    kernel.run("import pandas as pd\norders = pd.DataFrame({'region': ['north'], 'value': [7]})")
    card = kernel.run("%reyn serve mcp")
    assert card.error is None and "No client has connected yet." in card.text
    entry = json.loads(kernel.value("__import__('json').dumps(session.served.stdio_entry)"))

    total = call("table__query", sql="SELECT sum(value) AS total FROM orders", sources={"orders": "orders"})
    answer = by_pipes(entry, total)
    assert not answer.is_error and "7" in text(answer)

    kernel.send("import pathlib\nwhile not pathlib.Path('gate').exists(): time.sleep(0.02)")
    try:
        assert "second line" in text(by_pipes(entry, call("file__read", path="notes.txt")))
    finally:
        (workspace / "gate").touch()

    assert "MCP server" in kernel.run("%reyn status").text
    assert "editor 3" in kernel.run("%reyn serve").text
    token = kernel.value("session.served.file.find().token.reveal()")
    assert token not in card.text and token not in kernel.run("%reyn serve").text
    assert "not served" in kernel.run("%reyn serve stop").text
