"""A client of another program works on a kernel's session, while the kernel rests and while a cell runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPDeprecationWarning, StdioServerParameters
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_types import Implementation, ResourceListChangedNotification, ResourceUpdatedNotification

from tests.kernel.kernel_support import Kernel
from tests.support.mcp_client import call, text
from tests.support.processes import environment


def by_pipes(entry: dict[str, Any], work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Do what a client does that was given the entry of the card."""
    (server,) = entry["mcpServers"].values()
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env={**environment(), **server.get("env", {})}
    )

    async def run() -> Any:
        info = Implementation(name="editor", version="3")
        async with Client(parameters, client_info=info, **options) as client:
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


ORDERS = "reyn://variables/orders"


def test_a_client_is_told_of_what_a_cell_changes_before_it_asks_again(kernel: Kernel) -> None:
    kernel.run("orders = [1]\n%reyn serve mcp")
    entry = json.loads(kernel.value("__import__('json').dumps(session.served.stdio_entry)"))

    async def by_stream(client: Client) -> set[Any]:
        async with client.listen(resources_list_changed=True, resource_subscriptions=[ORDERS]) as changes:
            await asyncio.to_thread(kernel.run, "orders = [1, 2]\nmore = 1")
            return {type(await anext(changes)) for _ in range(2)}

    assert by_pipes(entry, by_stream) == {ResourcesListChanged, ResourceUpdated}

    async def heard(message: Any) -> None:
        if isinstance(message, ResourceListChangedNotification | ResourceUpdatedNotification):
            news.put_nowait(type(message))

    async def by_session(client: Client) -> set[Any]:
        await client.list_resources()
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource(ORDERS)
        await asyncio.to_thread(kernel.run, "orders = [1, 2, 3]\nstill_more = 1")
        return {await news.get() for _ in range(2)}

    news: asyncio.Queue[Any] = asyncio.Queue()
    told = by_pipes(entry, by_session, mode="legacy", message_handler=heard)
    assert told == {ResourceListChangedNotification, ResourceUpdatedNotification}
    kernel.run("%reyn serve stop")
